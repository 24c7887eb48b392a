//! The tape plan: selects the saved forward values and their save locations.
//!
//! The plan is data: the forward pass writes according to the plan, and the reverse pass reads.
//!
//! 1. From the forward values that the reverse pass requires, follow [`crate::tape::remat::source`] to all inputs of
//!    possible recomputations.
//! 2. A min-cut selects the saved values ([`crate::tape::save_selection`]). Saving costs the bytes of the
//!    value, recomputing costs its op. Both are multiplied by the trip counts of the loops in which the value
//!    *varies*, because LLVM hoists invariant code.
//! 3. Every saved value gets a [`SaveLocation`]. The home is a slot if the value varies in no loop. The home is an
//!    array over the innermost loops whose trip counts are known before the outermost of them, if any.
//!    Otherwise the home is a field of a frame that each iteration of a `loop` pushes.
//!
//! Snapshots of a size known at the array's allocation are elements of an array. Other snapshots lie on the
//! tape stack or on the heap, and their address is saved.
//!
//! Iterations that may run concurrently allocate heap blocks in place of stack memory. Short arrays lie in a
//! tail slot of their iteration instead, because meshes and sparse matrices have many rows with few
//! neighbours each.

use crate::analysis::body_facts::snapshots::SnapshotExtent;
use crate::analysis::body_facts::{BodyFacts, EarlyLength};
use crate::analysis::forward_value::{Availability, Node, defining_region};
use crate::tape::remat::source;
use crate::tape::save_selection::SaveGraph;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Body, Code, Diagnostic, Op, OpKind, Region, TypeId, Unit, Value};
use std::collections::{HashMap, HashSet};

/// Save location of a forward value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveLocation {
    /// An SSA value: the reverse pass reads values of the forward pass's outermost region directly.
    SsaValue,
    /// A slot of the derivative's frame or tape block, by number.
    Slot(usize),
    /// A field of a frame that each iteration of a `loop` pushes.
    Frame(Op, usize),
    /// An element of an array, by number.
    Array(usize),
    /// The address of an element in an array of snapshots or tail slots, by number.
    BlockElement(usize),
}

/// Size of a tail slot: the heap block for an array of eight 32-bit integers or four doubles.
pub const TAIL_SLOT_BYTES: i64 = 32;

/// Element type of a tape array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayElement {
    /// Values of this type.
    Value(TypeId),
    /// Copies of a snapshot, by number in the facts.
    Snapshot(usize),
    /// Tail slots of [`TAIL_SLOT_BYTES`].
    Room,
}

/// A tape array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapeArray {
    /// The saved forward value.
    pub saved: Node,
    /// The element type.
    pub element: ArrayElement,
    /// The `for` loops that index the array, outermost first.
    pub loops: Vec<Op>,
    /// Length per dimension.
    pub lengths: Vec<EarlyLength>,
    /// The array is allocated just before this op, which contains all of `loops`.
    pub anchor: Op,
    /// True if the array is allocated on the heap: the allocation runs at most once, or in iterations that
    /// may run concurrently. Otherwise the array lies on the tape stack.
    pub on_heap: bool,
}

/// A field of a frame or of the tape block: the saved forward value, and its type.
pub type Field = (Node, TypeId);

/// The tape plan of a derivative.
#[derive(Clone, Debug, Default)]
pub struct TapePlan {
    /// Save location per saved forward value.
    pub locations: HashMap<Node, SaveLocation>,
    /// All arrays.
    pub arrays: Vec<TapeArray>,
    /// Arrays allocated before an op.
    pub anchored: HashMap<Op, Vec<usize>>,
    /// Snapshots taken before an op, by number in the facts.
    pub snapshots: HashMap<Op, Vec<usize>>,
    /// In-place snapshots per region.
    pub in_place_snapshots: HashMap<Region, Vec<usize>>,
    /// Fields of each iteration's frame, per `loop`.
    pub frames: HashMap<Op, Vec<Field>>,
    stacked_snapshots: bool,
    /// Concurrent loops that push no frames. Each allocation in their iterations is a heap block, because
    /// concurrent iterations would contend for a stack.
    pub heap_loops: HashSet<Op>,
    /// True if pushed memory lies on a stack of segments; otherwise each push is a heap block.
    segment_stack: bool,
    /// Forward value and type per slot.
    pub slots: Vec<Field>,
    /// Per forward value: loops in which only the first iteration saves the value, because all concurrent
    /// iterations have an equal value.
    pub first_iteration_saves: HashMap<Node, Vec<Op>>,
    /// Saved forward values, in the order of discovery.
    pub saved: Vec<Node>,
    /// Carried values that the reverse pass recomputes by inversion.
    pub inverted: HashSet<Node>,
    /// Ops of the inverted steps, emitted without overflow and bounds flags.
    pub wrapping_ops: HashSet<Op>,
    /// Forward values that the reverse pass recomputes.
    pub recomputed: HashSet<Node>,
    /// All forward values that the reverse pass requires, directly or as an input of a recomputation.
    pub required: HashSet<Node>,
    /// Per recomputed loop: arrays allocated once before the loop, for all iterations.
    pub hoisted: HashMap<Op, Vec<usize>>,
    /// Recomputed loops that the forward pass omits, because no other code requires their results.
    pub skipped_loops: HashSet<Op>,
}

impl TapePlan {
    /// Returns true if the plan uses the tape stack.
    pub fn uses_stack(&self) -> bool {
        let pushes = !self.frames.is_empty()
            || self.stacked_snapshots
            || self.arrays.iter().any(|a| !a.on_heap);
        self.segment_stack && pushes
    }
    /// Returns the forward values defined in a region that the reverse pass reads as SSA values, in order.
    pub fn ssa_values_in(&self, facts: &BodyFacts<'_>, region: Region) -> Vec<Node> {
        let home = |node: &Node| match *node {
            Node::ArrayBase(number) => facts.body.parent(self.arrays[number].anchor),
            node => defining_region(facts, node),
        };
        let here = |(node, at): (&Node, &SaveLocation)| {
            (*at == SaveLocation::SsaValue && home(node) == Some(region)).then_some(*node)
        };
        let mut nodes: Vec<Node> = self.locations.iter().filter_map(here).collect();
        nodes.sort_unstable();
        nodes
    }
    /// Returns true if an array has a tail slot, which holds the array while it is short.
    pub fn has_tail_slot(&self, array: usize) -> bool {
        self.locations.contains_key(&Node::Room(array))
    }
    /// Returns the snapshots taken before an op.
    pub fn snapshots_at(&self, op: Op) -> &[usize] {
        self.snapshots.get(&op).map_or(&[], Vec::as_slice)
    }
    /// Returns true if a snapshot has its own heap block: it is taken at most once, or in concurrent
    /// iterations. Otherwise the snapshot lies on the tape stack or in an array.
    pub fn snapshot_on_heap(&self, facts: &BodyFacts<'_>, number: usize) -> bool {
        let loops = facts.varying_loops(Node::Snapshot(number));
        loops.is_empty() || loops.iter().any(|lp| self.heap_loops.contains(lp))
    }
    /// Returns the array that holds all copies of a snapshot.
    pub fn array_of(&self, snapshot: usize) -> Option<usize> {
        match self.locations.get(&Node::Snapshot(snapshot)) {
            Some(SaveLocation::BlockElement(number)) => Some(*number),
            _ => None,
        }
    }
}

/// Limit on the number of regions of a body whose outermost values stay in SSA form.
const DIRECT_REGIONS_MAX: usize = 256;

/// Returns true if the outermost values of a combined derivative should stay in SSA form. A body with very
/// many regions should save them: the time of LLVM's register allocator grows with the product of live ranges
/// and blocks, and the values are spilled in the end.
pub fn fits_ssa_values(body: &Body) -> bool {
    let regions = body
        .ops
        .iter()
        .filter(|(op, _)| body.parent(*op).is_some())
        .map(|(op, _)| body.op_regions(op).len());
    regions.sum::<usize>() <= DIRECT_REGIONS_MAX
}

/// Options of the tape plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanOptions {
    /// True if the reverse pass reads outermost values of the forward pass as SSA values.
    pub ssa_outermost: bool,
    /// Values per shadow.
    pub width: u32,
    /// True if the cost of a saved value counts the loops in which the value varies, not all enclosing loops.
    pub variance_cost: bool,
    /// True if a min-cut selects; otherwise every required value is saved.
    pub recompute: bool,
    /// True if conditions may be saved.
    pub conditions: bool,
    /// True if the min-cut includes shadow pointers; otherwise every required shadow pointer is saved.
    pub shadow_pointers: bool,
    /// True if the tape stack consists of segments.
    pub segment_stack: bool,
}

impl PlanOptions {
    /// Returns true if the reverse pass reads values of a region as SSA values: values of the outermost
    /// region in a combined derivative, and values of a recomputed iteration.
    pub(super) fn is_ssa_region(&self, facts: &BodyFacts<'_>, region: Region) -> bool {
        match facts.body.owner(region) {
            None => self.ssa_outermost,
            Some(op) => facts.recomputed_loop(op).is_some(),
        }
    }
    /// Returns true if a required forward value is saved without choice.
    pub(super) fn must_be_saved(&self, node: &Node) -> bool {
        !self.recompute || !self.shadow_pointers && matches!(node, Node::Shadow(_))
    }
    /// Returns true if a forward value exists in the reverse pass only.
    pub(super) fn cannot_be_saved(facts: &BodyFacts<'_>, node: &Node) -> bool {
        matches!(node, Node::Shadow(address) if facts.is_lazy_shadow(*address))
    }
}

/// Plans the tape of a reverse pass that requires `needed`.
pub fn plan(
    unit: &mut Unit,
    facts: &BodyFacts<'_>,
    needed: &[Node],
    options: PlanOptions,
) -> TapePlan {
    let graph = SaveGraph::of(unit, facts, needed, options);
    let kept = graph.cut(unit, facts, needed, options);
    let mut planner = Planner {
        unit,
        facts,
        options,
        plan: TapePlan {
            segment_stack: options.segment_stack,
            ..TapePlan::default()
        },
    };
    planner.plan.required = graph.index.keys().copied().collect();
    for &node in &graph.ssa_values {
        planner.plan.locations.insert(node, SaveLocation::SsaValue);
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
            if planner.place_snapshot_in_array(number) {
                planner.plan.saved.push(node);
                continue;
            }
            all.extend([node, Node::SnapshotBlock(number)]);
        } else {
            all.push(node);
        }
    }
    for node in all {
        planner.plan.saved.push(node);
        let loops = planner.varying_loops(node);
        let region = defining_region(facts, node).unwrap_or(facts.body.root());
        let alone = planner.loops_with_equal_value(region, &loops);
        if !alone.is_empty() {
            planner.plan.first_iteration_saves.insert(node, alone);
        }
        planner.assign_location(node, region, loops);
    }
    planner.add_tail_slots();
    planner.move_to_heap_blocks();
    planner.record_recomputed(needed);
    planner.plan
}

/// A newly planned array.
struct NewArray {
    number: usize,
    /// Region of the allocation, and the enclosing loops that repeat the allocation.
    region: Region,
    varying: Vec<Op>,
    /// True if the array is allocated once for all iterations of a recomputed loop.
    hoisted: bool,
}

/// Returns the loops that enclose an op, outermost first.
fn around(facts: &BodyFacts<'_>, op: Op) -> Vec<Op> {
    let region = facts.body.parent(op);
    region.map_or(Vec::new(), |region| facts.loops_around(region))
}

/// Determines the loops whose iterations allocate their own blocks.
struct PerIterationBlocks {
    framed_loops: HashSet<Op>,
}

impl PerIterationBlocks {
    /// Returns the enclosing loops of an op that are concurrent and push no frames.
    fn around(&self, facts: &BodyFacts<'_>, op: Op) -> Vec<Op> {
        let apart = |lp: &Op| facts.body.is_independent(*lp) && !self.framed_loops.contains(lp);
        around(facts, op).into_iter().filter(apart).collect()
    }
}

struct Planner<'a, 'f> {
    unit: &'a mut Unit,
    facts: &'a BodyFacts<'f>,
    options: PlanOptions,
    plan: TapePlan,
}

impl Planner<'_, '_> {
    /// Moves allocations of concurrent iterations to heap blocks, and records whether the stack is still
    /// used. If the iterations push frames, for a `loop` inside, all allocations stay on the stack, and the
    /// iterations run serially.
    fn move_to_heap_blocks(&mut self) {
        let apart = self.apart();
        let (facts, plan) = (self.facts, &mut self.plan);
        for array in &mut plan.arrays {
            let around = apart.around(facts, array.anchor);
            array.on_heap |= !around.is_empty();
            plan.heap_loops.extend(around);
        }
        for number in plan.snapshots.values().flatten() {
            let around = apart.around(facts, facts.snapshots[*number].anchor);
            plan.heap_loops.extend(around);
        }
        let stacked = |number: &usize| {
            plan.array_of(*number).is_none() && !plan.snapshot_on_heap(facts, *number)
        };
        plan.stacked_snapshots = plan.snapshots.values().flatten().any(stacked);
    }

    /// Collects the concurrent loops that push no frames.
    fn apart(&self) -> PerIterationBlocks {
        let frames = self.plan.frames.keys();
        PerIterationBlocks {
            framed_loops: frames.flat_map(|lp| around(self.facts, *lp)).collect(),
        }
    }

    /// Adds tail slots for arrays that concurrent iterations allocate. The tail slots lie parallel to the
    /// array that holds the addresses of the iterations' arrays.
    fn add_tail_slots(&mut self) {
        let apart = self.apart();
        for number in 0..self.plan.arrays.len() {
            let array = &self.plan.arrays[number];
            let Some(SaveLocation::Array(outer)) =
                self.plan.locations.get(&Node::ArrayBase(number))
            else {
                continue;
            };
            let by_value = matches!(array.element, ArrayElement::Value(_));
            if !by_value || apart.around(self.facts, array.anchor).is_empty() {
                continue;
            }
            let outer = &self.plan.arrays[*outer];
            let over = (outer.loops.clone(), outer.lengths.clone(), outer.anchor);
            let region = self.facts.body.parent(outer.anchor);
            let scope = region.and_then(|region| self.facts.enclosing_recomputed_loop(region));
            let rooms = self.add_array(Node::Room(number), ArrayElement::Room, over, scope);
            let home = SaveLocation::BlockElement(rooms.number);
            self.plan.locations.insert(Node::Room(number), home);
            if !rooms.hoisted {
                self.assign_location(Node::ArrayBase(rooms.number), rooms.region, rooms.varying);
            }
        }
    }

    /// Records the recomputed forward values: required values and their inputs, up to saved values. Also
    /// records the carried values recomputed by inversion.
    fn record_recomputed(&mut self, needed: &[Node]) {
        let mut work = needed.to_vec();
        while let Some(node) = work.pop() {
            if self.plan.locations.contains_key(&node) || !self.plan.recomputed.insert(node) {
                continue;
            }
            let Availability::Recompute { from, .. } = source(self.unit, self.facts, node) else {
                continue;
            };
            work.extend(from);
            if let Some(backwards) = self.facts.invertible_induction(node) {
                self.plan.inverted.insert(node);
                let ops = backwards.steps.iter().map(|step| step.op);
                self.plan.wrapping_ops.extend(ops);
            }
        }
    }

    /// Returns the loops in which a forward value is saved once per iteration.
    fn varying_loops(&self, node: Node) -> Vec<Op> {
        let Some(region) = defining_region(self.facts, node) else {
            return self.facts.varying_loops(node);
        };
        let mut loops =
            match self.options.variance_cost || is_planted(Mutant::TapeIndexWithoutInnermost) {
                true => self.facts.varying_loops(node),
                false => self.facts.loops_around(region),
            };
        if is_planted(Mutant::TapeIndexWithoutInnermost) {
            loops.pop();
            return self.facts.loops_within_recomputed(region, loops);
        }
        loops = self.facts.saving_loops(region, &loops);
        self.facts.loops_within_recomputed(region, loops)
    }

    /// Returns the concurrent loops in which a forward value of `region`, saved per iteration of `loops`, is
    /// equal in all iterations. The first iteration saves the value.
    fn loops_with_equal_value(&self, region: Region, loops: &[Op]) -> Vec<Op> {
        let mut around = self.facts.loops_around(region);
        around.retain(|lp| self.facts.body.is_independent(*lp) && !loops.contains(lp));
        self.facts.loops_within_recomputed(region, around)
    }

    /// Assigns save locations to `node`, defined in `region` and varying in `varying`, and to the required
    /// arrays and frames.
    fn assign_location(&mut self, node: Node, region: Region, varying: Vec<Op>) {
        let (mut node, mut region, mut varying) = (node, region, varying);
        loop {
            let scope = self.facts.enclosing_recomputed_loop(region);
            let Some(&innermost) = varying.last() else {
                let home = match self.options.is_ssa_region(self.facts, region) {
                    true => SaveLocation::SsaValue,
                    false => self.slot(node),
                };
                self.plan.locations.insert(node, home);
                return;
            };
            if matches!(self.facts.body.kind(innermost), OpKind::Loop { .. }) {
                let field = self.field(innermost, node);
                self.plan
                    .locations
                    .insert(node, SaveLocation::Frame(innermost, field));
                let frame = Node::LastFrame(innermost);
                if self.plan.locations.contains_key(&frame) {
                    return;
                }
                region = self
                    .facts
                    .body
                    .parent(innermost)
                    .unwrap_or(self.facts.body.root());
                varying = self
                    .facts
                    .loops_within_recomputed(region, self.facts.loops_around(region));
                node = frame;
                continue;
            }
            let (loops, lengths, anchor) = self.split_indexable_suffix(&mut varying, scope);
            let element =
                ArrayElement::Value(self.facts.saved_type(self.unit, node, self.options.width));
            let array = self.add_array(node, element, (loops, lengths, anchor), scope);
            self.plan
                .locations
                .insert(node, SaveLocation::Array(array.number));
            if array.hoisted {
                return;
            }
            if let Some(loops) = self.plan.first_iteration_saves.get_mut(&node) {
                loops.retain(|lp| !array.varying.contains(lp));
            }
            (node, region, varying) = (Node::ArrayBase(array.number), array.region, array.varying);
        }
    }

    /// Adds an array over loops, allocated before an op. If the op lies in the recomputed loop `scope`, the
    /// allocation is hoisted out of `scope` if possible.
    fn add_array(
        &mut self,
        node: Node,
        element: ArrayElement,
        (loops, lengths, anchor): (Vec<Op>, Vec<EarlyLength>, Op),
        scope: Option<Op>,
    ) -> NewArray {
        let body = self.facts.body;
        // The allocation is repeated whenever control reaches it, also in loops in which the saved value does
        // not vary.
        let region = body.parent(anchor).unwrap_or(body.root());
        let varying = self
            .facts
            .loops_within_recomputed(region, self.facts.loops_around(region));
        let number = self.plan.arrays.len();
        let sized = |scope: &Op| {
            varying.is_empty()
                && self.are_trip_counts_known_before(*scope, &lengths)
                && self.is_element_size_known_before(element, *scope)
        };
        let hoisted = scope.filter(sized);
        let on_heap = varying.is_empty() && (scope.is_none() || hoisted.is_some());
        match hoisted {
            Some(scope) => self.plan.hoisted.entry(scope).or_default().push(number),
            None => self.plan.anchored.entry(anchor).or_default().push(number),
        }
        self.plan.arrays.push(TapeArray {
            saved: node,
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

    /// Places all copies of a snapshot in one array. Requires a block whose size is known before the
    /// enclosing loops, and that either all iterations of the loops or none take a copy.
    fn place_snapshot_in_array(&mut self, number: usize) -> bool {
        let facts = self.facts;
        let (node, anchor) = (Node::Snapshot(number), facts.snapshots[number].anchor);
        let region = facts.body.parent(anchor).unwrap_or(facts.body.root());
        let mut varying = facts.loops_within_recomputed(region, facts.varying_loops(node));
        let innermost = varying.last().copied();
        if !innermost.is_some_and(|lp| matches!(facts.body.kind(lp), OpKind::For { .. })) {
            return false;
        }
        let scope = facts.enclosing_recomputed_loop(region);
        let over = self.split_indexable_suffix(&mut varying, scope);
        if !self.is_size_known_before(number, over.2) {
            return false;
        }
        if facts.snapshots[number].in_place {
            (self.plan.in_place_snapshots.entry(region).or_default()).push(number);
        }
        let array = self.add_array(node, ArrayElement::Snapshot(number), over, scope);
        self.plan
            .locations
            .insert(node, SaveLocation::BlockElement(array.number));
        if !array.hoisted {
            self.assign_location(Node::ArrayBase(array.number), array.region, array.varying);
        }
        true
    }

    /// Returns true if two facts are known before an enclosing op: the size of a snapshot, and whether all
    /// iterations of the loops inside the op take the snapshot or none does.
    fn is_size_known_before(&self, number: usize, before: Op) -> bool {
        let (facts, body) = (self.facts, self.facts.body);
        let snapshot = &facts.snapshots[number];
        let Some(home) = body.parent(before) else {
            return false;
        };
        let visible = |value: Value| body.is_visible_in(value, home);
        let sized = match snapshot.extent {
            SnapshotExtent::Bytes(_) => true,
            SnapshotExtent::Block(size) => {
                visible(size) && facts.varying_loops(Node::Primal(size)).is_empty()
            }
            SnapshotExtent::Addresses(_) => false,
        };
        let mut at = snapshot.anchor;
        while at != before {
            let Some(owner) = body.parent_op(at) else {
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

    /// Returns true if the size of an element, and the existence of elements, are known before a recomputed
    /// loop.
    fn is_element_size_known_before(&self, element: ArrayElement, replayed: Op) -> bool {
        let ArrayElement::Snapshot(number) = element else {
            return true;
        };
        self.is_size_known_before(number, replayed)
    }

    /// Returns true if the trip counts of loops in a recomputed loop come from outside. An array over them
    /// can then be allocated once for all iterations.
    fn are_trip_counts_known_before(&self, replayed: Op, lengths: &[EarlyLength]) -> bool {
        let body = self.facts.body;
        let inside = body.op_regions(replayed)[0];
        lengths
            .iter()
            .all(|length| !body.is_defined_in(body.operand(length.of, 0), inside))
    }

    /// Splits off the longest suffix of `for` loops in `varying` whose lengths are known at the allocation of
    /// an array over all of them. Returns the loops, their lengths, and the anchor of the allocation. Loops
    /// in between in which the value does not vary are skipped if possible, otherwise included. The result
    /// lies within `scope`.
    fn split_indexable_suffix(
        &self,
        varying: &mut Vec<Op>,
        scope: Option<Op>,
    ) -> (Vec<Op>, Vec<EarlyLength>, Op) {
        let mut loops: Vec<Op> = Vec::new();
        let mut lengths: Vec<EarlyLength> = Vec::new();
        let mut anchor = None;
        while let Some(&next) = varying.last() {
            let outer = varying.len().checked_sub(2).map(|i| varying[i]).or(scope);
            let passed = self.facts.outermost_below(next, outer);
            let mut all = loops.clone();
            all.push(next);
            let countable = matches!(self.facts.body.kind(next), OpKind::For { .. });
            let length = |lp: &Op| {
                let length = self.facts.length_bound_at(self.unit, *lp, passed)?;
                // Rows of varying length keep their length, except if the loop that determines the length is
                // skipped.
                let passed_over = !varying.contains(&length.of) && !all.contains(&length.of);
                (length.of == *lp || passed_over).then_some(length)
            };
            let known: Option<Vec<EarlyLength>> = countable
                .then(|| all.iter().map(length).collect())
                .flatten();
            if let Some(known) = known {
                anchor = Some(passed);
                lengths = known;
            } else if countable && loops.is_empty() {
                anchor = Some(next);
                lengths = vec![EarlyLength { of: next, plus: 0 }];
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

    fn slot(&mut self, node: Node) -> SaveLocation {
        let ty = self.facts.saved_type(self.unit, node, self.options.width);
        self.plan.slots.push((node, ty));
        SaveLocation::Slot(self.plan.slots.len() - 1)
    }

    fn field(&mut self, frame: Op, node: Node) -> usize {
        let ty = self.facts.saved_type(self.unit, node, self.options.width);
        let fields = self.plan.frames.entry(frame).or_default();
        fields.push((node, ty));
        fields.len() - 1
    }
}

/// Returns the internal error for a forward value that is missing in the plan.
pub fn missing_value_error(node: Node) -> Diagnostic {
    Diagnostic::error(
        Code::CompilerDied,
        format!("internal error: the tape plan does not provide {node:?}"),
    )
}
