//! The tape plan: which nodes are kept, and where.
//!
//! The plan is data: the forward sweep writes what it says, the return sweep reads it.
//!
//! 1. From the nodes that the return sweep asks for, follow [`crate::node::source`] to all nodes
//!    that recomputing may take.
//! 2. A minimum cut chooses: a node costs its bytes where it is kept and its op where it is
//!    recomputed, both times the trips of the loops it *varies* in, as LLVM moves what does not vary
//!    out of a loop (project selection; Picard 1976).
//! 3. Every kept node gets a [`Home`]: a slot where it varies in no loop; an array over the
//!    innermost loops whose trip counts are known before the outermost of them; else a field of a
//!    frame that each iteration of a `loop` pushes on a stack. Snapshots whose size is known there, too, lie in
//!    an array one beside the other; others on the stack or the heap, and what is kept is where. What iterations
//!    that may run at once would push is a block of the heap; an array lies in its iteration's room while it is
//!    short, as a mesh's nodes and a sparse matrix's rows have few neighbours each, and there are very many of
//!    them.

use crate::facts::snapshots::Extent;
use crate::facts::{Facts, Length, is_independent};
use crate::node::{Node, Source, cost_of_op, home_region, source};
use crate::tape::mincut::{INFINITE, Network, SINK, SOURCE};
use gradus_ir::mutant::{Mutant, planted};
use gradus_ir::{Body, Op, OpKind, Region, TypeId, Unit, Value};
use std::collections::{HashMap, HashSet};

/// Where a kept node lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In a register: the return sweep sees the forward sweep's outermost values.
    Direct,
    /// A slot of the derivative's own frame, or of its tape block, by number.
    Slot(usize),
    /// A field of a frame that each iteration of a `loop` pushes.
    Frame(Op, usize),
    /// An element of an array, by number.
    Array(usize),
    /// The address of an element of an array of snapshots or of rooms, by number.
    Block(usize),
}

/// What a room holds: the block that a list of eight integers or four numbers would take of the heap.
pub const ROOM_BYTES: i64 = 32;

/// What an array of the tape consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Values of this type.
    Value(TypeId),
    /// The copies that a snapshot makes, by its number in the facts.
    Snapshot(usize),
    /// Rooms of [`ROOM_BYTES`].
    Room,
}

/// An array of the tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapeArray {
    /// What it keeps.
    pub node: Node,
    /// What one element is.
    pub element: Element,
    /// The `for`s over which it is indexed, outermost first.
    pub loops: Vec<Op>,
    /// How long it is in each of these dimensions.
    pub lengths: Vec<Length>,
    /// It is made just before this op, which holds all of `loops`.
    pub anchor: Op,
    /// Whether it is made at most once, or by iterations that may run at once, and so lies on the heap; else on the
    /// tape's stack.
    pub on_heap: bool,
}

/// A part of a frame or of the tape block: what it keeps, and its type.
pub type Field = (Node, TypeId);

/// The tape of a derivative.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Where each kept node lies.
    pub homes: HashMap<Node, Home>,
    /// All arrays.
    pub arrays: Vec<TapeArray>,
    /// Which arrays are made before an op.
    pub anchored: HashMap<Op, Vec<usize>>,
    /// Which snapshots are made before an op, by their numbers in the facts.
    pub snapshots: HashMap<Op, Vec<usize>>,
    /// Which of these the region that they are made in works in from the start.
    pub worked_in: HashMap<Region, Vec<usize>>,
    /// Per `loop`: what each iteration's frame holds.
    pub frames: HashMap<Op, Vec<Field>>,
    stacked_snapshots: bool,
    /// The loops whose iterations may run at once and push no frames: each piece that an iteration pushes is a
    /// block of the heap, as iterations would wait for each other at a stack.
    pub in_blocks: HashSet<Op>,
    /// Whether what is pushed lies on a stack; else each piece is a block of the heap.
    segment_stack: bool,
    /// What the slots hold.
    pub slots: Vec<Field>,
    /// Per node: the loops of which only the first iteration keeps it, as the others run at the same time and
    /// have the same value.
    pub first_keeps: HashMap<Node, Vec<Op>>,
    /// The kept nodes in the order in which they were asked for.
    pub kept: Vec<Node>,
    /// The carried values that run backwards in the return sweep.
    pub backwards: HashSet<Node>,
    /// The ops that make the steps of these: they promise nothing about overflow and bounds.
    pub wrapping: HashSet<Op>,
    /// What the return sweep computes again.
    pub redone: HashSet<Node>,
    /// All that the return sweep asks for, by itself or to compute something again.
    pub asked: HashSet<Node>,
    /// Per replayed loop: the arrays that are made once for all its iterations, before it.
    pub hoisted: HashMap<Op, Vec<usize>>,
    /// The replayed loops that the forward sweep leaves out: nothing needs what they give.
    pub idle: HashSet<Op>,
}

impl Plan {
    /// Whether anything lies on the tape's stack.
    pub fn uses_stack(&self) -> bool {
        let pushes = !self.frames.is_empty()
            || self.stacked_snapshots
            || self.arrays.iter().any(|a| !a.on_heap);
        self.segment_stack && pushes
    }
    /// The nodes that are kept in registers and come to be in a region, in order.
    pub fn direct_in(&self, facts: &Facts<'_>, region: Region) -> Vec<Node> {
        let home = |node: &Node| match *node {
            Node::Base(number) => facts.body.parent(self.arrays[number].anchor),
            node => home_region(facts, node),
        };
        let here = |(node, at): (&Node, &Home)| {
            (*at == Home::Direct && home(node) == Some(region)).then_some(*node)
        };
        let mut nodes: Vec<Node> = self.homes.iter().filter_map(here).collect();
        nodes.sort_unstable();
        nodes
    }
    /// Whether an array has a room, to lie in while it is short.
    pub fn has_room(&self, array: usize) -> bool {
        self.homes.contains_key(&Node::Room(array))
    }
    /// The snapshots made before an op.
    pub fn snapshots_at(&self, op: Op) -> &[usize] {
        self.snapshots.get(&op).map_or(&[], Vec::as_slice)
    }
    /// Whether a snapshot has a block of its own that is made at most once, or by iterations that run at once, and
    /// so lies on the heap; else it is on the tape's stack, or an array's element.
    pub fn snapshot_on_heap(&self, facts: &Facts<'_>, number: usize) -> bool {
        let loops = facts.varying_loops(Node::Snapshot(number));
        loops.is_empty() || loops.iter().any(|lp| self.in_blocks.contains(lp))
    }
    /// The array that holds all copies of a snapshot.
    pub fn array_of(&self, snapshot: usize) -> Option<usize> {
        match self.homes.get(&Node::Snapshot(snapshot)) {
            Some(Home::Block(number)) => Some(*number),
            _ => None,
        }
    }
}

/// Most regions of a body whose outermost values are kept in registers.
const DIRECT_REGIONS_MAX: usize = 256;

/// Whether one function of forward and return sweep should keep its outermost values in registers: not
/// where very many paths lie between, as LLVM's register allocation takes time that grows with the
/// product of live ranges and blocks, and puts them into memory in the end.
pub fn is_direct(body: &Body) -> bool {
    let regions = body
        .ops
        .iter()
        .filter(|(op, _)| body.parent(*op).is_some())
        .map(|(op, _)| body.op_regions(op).len());
    regions.sum::<usize>() <= DIRECT_REGIONS_MAX
}

/// How a plan is made.
#[derive(Clone, Copy, Debug)]
pub struct PlanOptions {
    /// Whether the return sweep sees the forward sweep's outermost values in registers.
    pub direct: bool,
    /// Values per shadow.
    pub width: u32,
    /// Whether a kept value costs by the loops it varies in, not by those it stands in.
    pub variance_cost: bool,
    /// Whether a minimum cut chooses; else everything asked for is kept.
    pub recompute: bool,
    /// Whether conditions may be kept.
    pub conditions: bool,
    /// Whether shadow pointers are weighed; else those asked for are kept.
    pub shadow_pointers: bool,
    /// Whether there is a stack of segments.
    pub segment_stack: bool,
}

impl PlanOptions {
    /// Whether the return sweep sees the values of a region in registers: those of the outermost one in a
    /// combined derivative, and those of an iteration that is run again.
    fn is_direct(&self, facts: &Facts<'_>, region: Region) -> bool {
        match facts.body.owner(region) {
            None => self.direct,
            Some(op) => facts.replayed(op).is_some(),
        }
    }
    /// Whether a node that the return sweep asks for is kept without weighing.
    fn never_redone(&self, node: &Node) -> bool {
        !self.recompute || !self.shadow_pointers && matches!(node, Node::Shadow(_))
    }
    /// Whether a node is there in the return sweep only.
    fn never_kept(facts: &Facts<'_>, node: &Node) -> bool {
        matches!(node, Node::Shadow(address) if facts.is_shadow_late(*address))
    }
}

/// The plan for a return sweep that asks for `needed`.
pub fn plan(unit: &mut Unit, facts: &Facts<'_>, needed: &[Node], options: PlanOptions) -> Plan {
    let graph = Graph::of(unit, facts, needed, options);
    let kept = graph.cut(unit, facts, needed, options);
    let mut planner = Planner {
        unit,
        facts,
        options,
        plan: Plan {
            segment_stack: options.segment_stack,
            ..Plan::default()
        },
    };
    planner.plan.asked = graph.index.keys().copied().collect();
    for &node in &graph.direct {
        planner.plan.homes.insert(node, Home::Direct);
    }
    let mut all = Vec::new();
    for node in kept {
        if let Node::Snapshot(number) = node {
            let anchor = facts.snapshots[number].anchor;
            planner
                .plan
                .snapshots
                .entry(anchor)
                .or_default()
                .push(number);
            if planner.place_side_by_side(number) {
                planner.plan.kept.push(node);
                continue;
            }
            all.extend([node, Node::SnapshotBlock(number)]);
        } else {
            all.push(node);
        }
    }
    for node in all {
        planner.plan.kept.push(node);
        let loops = planner.varying_loops(node);
        let region = home_region(facts, node).unwrap_or(facts.body.root());
        let alone = planner.first_keeps(region, &loops);
        if !alone.is_empty() {
            planner.plan.first_keeps.insert(node, alone);
        }
        planner.place(node, region, loops);
    }
    planner.make_rooms();
    planner.keep_in_blocks();
    planner.compute_again(needed);
    planner.plan
}

struct Graph {
    nodes: Vec<(Node, Source)>,
    index: HashMap<Node, usize>,
    direct: Vec<Node>,
}

impl Graph {
    fn of(unit: &Unit, facts: &Facts<'_>, needed: &[Node], options: PlanOptions) -> Graph {
        let mut graph = Graph {
            nodes: Vec::new(),
            index: HashMap::new(),
            direct: Vec::new(),
        };
        let mut work: Vec<Node> = needed.iter().rev().copied().collect();
        while let Some(node) = work.pop() {
            if graph.index.contains_key(&node) {
                continue;
            }
            let from = source(unit, facts, node);
            if from == Source::AtHand {
                continue;
            }
            graph.index.insert(node, graph.nodes.len());
            let direct = home_region(facts, node).is_some_and(|r| options.is_direct(facts, r));
            let made_here =
                matches!(node, Node::Snapshot(_)) || PlanOptions::never_kept(facts, &node);
            if direct && !made_here {
                graph.direct.push(node);
                graph.nodes.push((node, Source::AtHand));
                continue;
            }
            if let Source::Recompute { from, .. } = &from {
                work.extend(from.iter().rev());
            }
            graph.nodes.push((node, from));
        }
        graph
    }

    /// The nodes to keep, in the order of discovery.
    fn cut(
        &self,
        unit: &Unit,
        facts: &Facts<'_>,
        needed: &[Node],
        options: PlanOptions,
    ) -> Vec<Node> {
        let asked: HashSet<&Node> = needed.iter().collect();
        let mut network = Network::default();
        let pairs: Vec<(usize, usize)> = self
            .nodes
            .iter()
            .map(|_| (network.add_node(), network.add_node()))
            .collect();
        for (at, (node, from)) in self.nodes.iter().enumerate() {
            let (available, recomputed) = pairs[at];
            let redo = match from {
                Source::AtHand => continue,
                Source::KeepOnly => INFINITE,
                Source::Recompute { .. }
                    if options.never_redone(node)
                        && asked.contains(node)
                        && !PlanOptions::never_kept(facts, node) =>
                {
                    INFINITE
                }
                Source::Recompute { cost, .. } => {
                    weigh(*cost as f64 * facts.variations(unit, *node))
                }
            };
            let keep = match from {
                _ if PlanOptions::never_kept(facts, node) => INFINITE,
                Source::Recompute { .. }
                    if options.recompute
                        && !options.conditions
                        && is_condition(unit, facts, *node) =>
                {
                    INFINITE
                }
                _ => keep_cost(unit, facts, *node, options),
            };
            network.add_arc(available, recomputed, keep);
            network.add_arc(recomputed, SINK, redo);
            if let Source::Recompute { from, .. } = from {
                for dependency in from {
                    if let Some(&on) = self.index.get(dependency) {
                        network.add_arc(recomputed, pairs[on].0, INFINITE);
                    }
                }
            }
        }
        for node in needed {
            if let Some(&at) = self.index.get(node) {
                network.add_arc(SOURCE, pairs[at].0, INFINITE);
            }
        }
        let side = network.source_side();
        let kept = |at: usize| {
            self.nodes[at].1 != Source::AtHand && side[pairs[at].0] && !side[pairs[at].1]
        };
        (0..self.nodes.len())
            .filter(|&at| kept(at))
            .map(|at| self.nodes[at].0)
            .collect()
    }
}

/// What keeping a node costs, in units of one addition.
pub fn cost_of_keeping(unit: &Unit, facts: &Facts<'_>, node: Node, width: u32) -> f64 {
    if let Node::Snapshot(number) = node {
        return SNAPSHOT_COST * facts.snapshot_numbers(unit, number);
    }
    per_value(unit, facts, node, width) * facts.variations(unit, node)
}

/// What running all iterations of a loop costs, in the same units.
pub fn cost_of_running(unit: &Unit, facts: &Facts<'_>, lp: Op) -> f64 {
    let body = facts.body;
    let inside = body.walk(body.op_regions(lp)[0]);
    inside
        .map(|op| cost_of_op(unit, facts, op) as f64 * facts.executions(unit, body.parent(op)))
        .sum()
}

fn is_condition(unit: &Unit, facts: &Facts<'_>, node: Node) -> bool {
    match node {
        Node::Primal(value) => unit.types.int_bits(facts.body.ty(value)) == Some(1),
        _ => false,
    }
}

fn weigh(cost: f64) -> u64 {
    (cost.min(1e15) as u64).min(INFINITE / 1024)
}

/// What a number of a snapshot costs: it is copied in bulk.
const SNAPSHOT_COST: f64 = 9.0;

/// What keeping a node costs the cut.
fn keep_cost(unit: &Unit, facts: &Facts<'_>, node: Node, options: PlanOptions) -> u64 {
    if let Node::Snapshot(number) = node {
        return weigh(SNAPSHOT_COST * facts.snapshot_numbers(unit, number)).max(1);
    }
    let times = match options.variance_cost {
        true => facts.variations(unit, node),
        false => facts.executions(unit, home_region(facts, node)),
    };
    weigh(per_value(unit, facts, node, options.width) * times).max(1)
}

/// What keeping one value of a node costs: memory traffic for writing and reading.
fn per_value(unit: &Unit, facts: &Facts<'_>, node: Node, width: u32) -> f64 {
    2.5 * facts.kept_bytes(unit, node, width) as f64 + 2.0
}

/// An array that a plan got.
struct NewArray {
    number: usize,
    /// Where it is made, and the loops around that in which it is made anew.
    region: Region,
    varying: Vec<Op>,
    /// It is made once for all iterations of a replayed loop.
    hoisted: bool,
}

/// The loops around an op, outermost first.
fn around(facts: &Facts<'_>, op: Op) -> Vec<Op> {
    let region = facts.body.parent(op);
    region.map_or(Vec::new(), |region| facts.loops_around(region))
}

/// Which loops keep what their iterations push apart.
struct Apart {
    framed: HashSet<Op>,
}

impl Apart {
    /// Those around an op.
    fn around(&self, facts: &Facts<'_>, op: Op) -> Vec<Op> {
        let apart = |lp: &Op| is_independent(facts.body, *lp) && !self.framed.contains(lp);
        around(facts, op).into_iter().filter(apart).collect()
    }
}

struct Planner<'a, 'f> {
    unit: &'a mut Unit,
    facts: &'a Facts<'f>,
    options: PlanOptions,
    plan: Plan,
}

impl Planner<'_, '_> {
    /// Puts what iterations that may run at once push into blocks of the heap, and says what is left for the stack.
    /// Where they push frames, one for each iteration of a loop inside, all stays on the stack, and they wait.
    fn keep_in_blocks(&mut self) {
        let apart = self.apart();
        let (facts, plan) = (self.facts, &mut self.plan);
        for array in &mut plan.arrays {
            let around = apart.around(facts, array.anchor);
            array.on_heap |= !around.is_empty();
            plan.in_blocks.extend(around);
        }
        for number in plan.snapshots.values().flatten() {
            let around = apart.around(facts, facts.snapshots[*number].anchor);
            plan.in_blocks.extend(around);
        }
        let stacked = |number: &usize| {
            plan.array_of(*number).is_none() && !plan.snapshot_on_heap(facts, *number)
        };
        plan.stacked_snapshots = plan.snapshots.values().flatten().any(stacked);
    }

    /// The loops whose iterations may run at once and push no frames.
    fn apart(&self) -> Apart {
        let frames = self.plan.frames.keys();
        Apart {
            framed: frames.flat_map(|lp| around(self.facts, *lp)).collect(),
        }
    }

    /// Gives arrays that iterations which may run at once make for themselves a room, beside the array in which
    /// these keep where theirs begins.
    fn make_rooms(&mut self) {
        let apart = self.apart();
        for number in 0..self.plan.arrays.len() {
            let array = &self.plan.arrays[number];
            let Some(Home::Array(outer)) = self.plan.homes.get(&Node::Base(number)) else {
                continue;
            };
            let by_value = matches!(array.element, Element::Value(_));
            if !by_value || apart.around(self.facts, array.anchor).is_empty() {
                continue;
            }
            let outer = &self.plan.arrays[*outer];
            let over = (outer.loops.clone(), outer.lengths.clone(), outer.anchor);
            let region = self.facts.body.parent(outer.anchor);
            let scope = region.and_then(|region| self.facts.replayed_around(region));
            let rooms = self.add_array(Node::Room(number), Element::Room, over, scope);
            let home = Home::Block(rooms.number);
            self.plan.homes.insert(Node::Room(number), home);
            if !rooms.hoisted {
                self.place(Node::Base(rooms.number), rooms.region, rooms.varying);
            }
        }
    }

    /// Finds what is computed again, which is all that is asked for or leads to it by way of nothing that is kept;
    /// of it, the carried values that run backwards.
    fn compute_again(&mut self, needed: &[Node]) {
        let mut work = needed.to_vec();
        while let Some(node) = work.pop() {
            if self.plan.homes.contains_key(&node) || !self.plan.redone.insert(node) {
                continue;
            }
            let Source::Recompute { from, .. } = source(self.unit, self.facts, node) else {
                continue;
            };
            work.extend(from);
            if let Some(backwards) = self.facts.backwards(node) {
                self.plan.backwards.insert(node);
                let ops = backwards.steps.iter().map(|step| step.op);
                self.plan.wrapping.extend(ops);
            }
        }
    }

    /// The loops in which a node is kept once per iteration.
    fn varying_loops(&self, node: Node) -> Vec<Op> {
        let Some(region) = home_region(self.facts, node) else {
            return self.facts.varying_loops(node);
        };
        let mut loops = match self.options.variance_cost || planted(Mutant::KeptWithoutInnermost) {
            true => self.facts.varying_loops(node),
            false => self.facts.loops_around(region),
        };
        if planted(Mutant::KeptWithoutInnermost) {
            loops.pop();
            return self.facts.within_replay(region, loops);
        }
        loops = self.facts.kept_in(region, &loops);
        self.facts.within_replay(region, loops)
    }

    /// The loops whose iterations may run at once and all have the same value of a node in `region`, kept in
    /// `loops`: the first iteration keeps it.
    fn first_keeps(&self, region: Region, loops: &[Op]) -> Vec<Op> {
        let mut around = self.facts.loops_around(region);
        around.retain(|lp| is_independent(self.facts.body, *lp) && !loops.contains(lp));
        self.facts.within_replay(region, around)
    }

    /// Gives `node`, which comes to be in `region` and varies in `varying`, its home; and so to
    /// the arrays and frames that this takes.
    fn place(&mut self, node: Node, region: Region, varying: Vec<Op>) {
        let (mut node, mut region, mut varying) = (node, region, varying);
        loop {
            let scope = self.facts.replayed_around(region);
            let Some(&innermost) = varying.last() else {
                let home = match self.options.is_direct(self.facts, region) {
                    true => Home::Direct,
                    false => self.slot(node),
                };
                self.plan.homes.insert(node, home);
                return;
            };
            if matches!(self.facts.body.kind(innermost), OpKind::Loop { .. }) {
                let field = self.field(innermost, node);
                self.plan.homes.insert(node, Home::Frame(innermost, field));
                let frame = Node::LastFrame(innermost);
                if self.plan.homes.contains_key(&frame) {
                    return;
                }
                region = self
                    .facts
                    .body
                    .parent(innermost)
                    .unwrap_or(self.facts.body.root());
                varying = self
                    .facts
                    .within_replay(region, self.facts.loops_around(region));
                node = frame;
                continue;
            }
            let (loops, lengths, anchor) = self.indexable(&mut varying, scope);
            let element = Element::Value(self.facts.kept_type(self.unit, node, self.options.width));
            let array = self.add_array(node, element, (loops, lengths, anchor), scope);
            self.plan.homes.insert(node, Home::Array(array.number));
            if array.hoisted {
                return;
            }
            if let Some(loops) = self.plan.first_keeps.get_mut(&node) {
                loops.retain(|lp| !array.varying.contains(lp));
            }
            (node, region, varying) = (Node::Base(array.number), array.region, array.varying);
        }
    }

    /// A new array over loops, of these lengths, made before an op or, where that is inside of the replayed
    /// loop `scope`, if possible before that.
    fn add_array(
        &mut self,
        node: Node,
        element: Element,
        (loops, lengths, anchor): (Vec<Op>, Vec<Length>, Op),
        scope: Option<Op>,
    ) -> NewArray {
        let body = self.facts.body;
        // The array is made anew whenever its place is reached, also in loops in which what it
        // holds does not vary.
        let region = body.parent(anchor).unwrap_or(body.root());
        let varying = self
            .facts
            .within_replay(region, self.facts.loops_around(region));
        let number = self.plan.arrays.len();
        let sized = |scope: &Op| {
            varying.is_empty()
                && self.sized_before(*scope, &lengths)
                && self.element_sized_before(element, *scope)
        };
        let hoisted = scope.filter(sized);
        let on_heap = varying.is_empty() && (scope.is_none() || hoisted.is_some());
        match hoisted {
            Some(scope) => self.plan.hoisted.entry(scope).or_default().push(number),
            None => self.plan.anchored.entry(anchor).or_default().push(number),
        }
        self.plan.arrays.push(TapeArray {
            node,
            element,
            loops,
            lengths,
            anchor,
            on_heap,
        });
        NewArray {
            number,
            region,
            varying,
            hoisted: hoisted.is_some(),
        }
    }

    /// Gives all copies of a snapshot a place in one array, if it is a block whose size is known before loops
    /// around it, and each iteration of these makes a copy, or none does.
    fn place_side_by_side(&mut self, number: usize) -> bool {
        let facts = self.facts;
        let (node, anchor) = (Node::Snapshot(number), facts.snapshots[number].anchor);
        let region = facts.body.parent(anchor).unwrap_or(facts.body.root());
        let mut varying = facts.within_replay(region, facts.varying_loops(node));
        let innermost = varying.last().copied();
        if !innermost.is_some_and(|lp| matches!(facts.body.kind(lp), OpKind::For { .. })) {
            return false;
        }
        let scope = facts.replayed_around(region);
        let over = self.indexable(&mut varying, scope);
        if !self.is_sized(number, over.2) {
            return false;
        }
        if facts.snapshots[number].worked_in {
            (self.plan.worked_in.entry(region).or_default()).push(number);
        }
        let array = self.add_array(node, Element::Snapshot(number), over, scope);
        self.plan.homes.insert(node, Home::Block(array.number));
        if !array.hoisted {
            self.place(Node::Base(array.number), array.region, array.varying);
        }
        true
    }

    /// Whether the size of a snapshot, and whether it is made in all iterations of the loops inside of an op
    /// that it stands in or in none of them, is known before that op.
    fn is_sized(&self, number: usize, before: Op) -> bool {
        let (facts, body) = (self.facts, self.facts.body);
        let snapshot = &facts.snapshots[number];
        let home = body.parent(before);
        let visible = |value: Value| {
            let made = body.region_of(value);
            made.is_none_or(|made| home.is_some_and(|home| body.is_inside(home, made)))
        };
        let sized = match snapshot.extent {
            Extent::Bytes(_) => true,
            Extent::Block(size) => {
                visible(size) && facts.varying_loops(Node::Primal(size)).is_empty()
            }
            Extent::Addresses(_) => false,
        };
        let mut at = snapshot.anchor;
        while at != before {
            let Some(owner) = body.parent(at).and_then(|region| body.owner(region)) else {
                return false;
            };
            match body.kind(owner) {
                OpKind::For { .. } => {}
                OpKind::If if visible(body.operand(owner, 0)) => {}
                _ => return false,
            }
            at = owner;
        }
        sized
    }

    /// Whether an element's size, and whether there is one at all, is known before a replayed loop.
    fn element_sized_before(&self, element: Element, replayed: Op) -> bool {
        let Element::Snapshot(number) = element else {
            return true;
        };
        self.is_sized(number, replayed)
    }

    /// Whether the trip counts of loops inside a replayed loop come from outside of it, so that an array
    /// over them can be made once for all its iterations.
    fn sized_before(&self, replayed: Op, lengths: &[Length]) -> bool {
        let body = self.facts.body;
        let inside = body.op_regions(replayed)[0];
        lengths.iter().all(|length| {
            let home = body.region_of(body.operand(length.of, 0));
            home.is_none_or(|home| !body.is_inside(home, inside))
        })
    }

    /// Splits the longest run of `for`s off the end of `varying` whose lengths are known where an array
    /// over all of them is made; gives it, its lengths and that place. Loops in between in which the
    /// node does not vary are passed over where possible, else counted in. All lies inside of `scope`.
    fn indexable(&self, varying: &mut Vec<Op>, scope: Option<Op>) -> (Vec<Op>, Vec<Length>, Op) {
        let mut loops: Vec<Op> = Vec::new();
        let mut lengths: Vec<Length> = Vec::new();
        let mut anchor = None;
        while let Some(&next) = varying.last() {
            let outer = varying.len().checked_sub(2).map(|i| varying[i]).or(scope);
            let passed = self.facts.outermost_below(next, outer);
            let mut all = loops.clone();
            all.push(next);
            let countable = matches!(self.facts.body.kind(next), OpKind::For { .. });
            let length = |lp: &Op| {
                let length = self.facts.length_at(self.unit, *lp, passed)?;
                // Rows of different lengths stay so, but where a loop that gives them is passed over.
                let passed_over = !varying.contains(&length.of) && !all.contains(&length.of);
                (length.of == *lp || passed_over).then_some(length)
            };
            let known: Option<Vec<Length>> = countable
                .then(|| all.iter().map(length).collect())
                .flatten();
            if let Some(known) = known {
                anchor = Some(passed);
                lengths = known;
            } else if countable && loops.is_empty() {
                anchor = Some(next);
                lengths = vec![Length { of: next, more: 0 }];
                varying.pop();
                loops.push(next);
                varying.extend(self.facts.loops_between(next, outer));
                continue;
            } else {
                break;
            }
            varying.pop();
            loops.push(next);
        }
        loops.reverse();
        lengths.reverse();
        let anchor = anchor.unwrap_or(loops[0]);
        (loops, lengths, anchor)
    }

    fn slot(&mut self, node: Node) -> Home {
        let ty = self.facts.kept_type(self.unit, node, self.options.width);
        self.plan.slots.push((node, ty));
        Home::Slot(self.plan.slots.len() - 1)
    }

    fn field(&mut self, frame: Op, node: Node) -> usize {
        let ty = self.facts.kept_type(self.unit, node, self.options.width);
        let fields = self.plan.frames.entry(frame).or_default();
        fields.push((node, ty));
        fields.len() - 1
    }
}
