//! Solver of inclusion constraints: a worklist with difference propagation.
//!
//! A node keeps its set and the part of the set that has not been propagated. A memory cell becomes a node when a
//! constraint first names it. Constraints on a pointer (loads, stores, byte copies, calls) add edges between nodes as
//! the pointer's set grows. The nodes of a cycle of copies become one node (`cycles.rs`).
//!
//! Folds change the identity of cells. A round therefore runs with the folds found so far; [`Solver::solve`] repeats
//! rounds until no fold changes. Folds only grow, and after [`ROUNDS_MAX`] rounds a changed object counts bytes modulo
//! 1.

mod bits;
mod calls;
mod cells;
mod copies;
mod cycles;
mod declared_floats;
mod differences;
mod locations;

use crate::call_graph::CallGraph;
use crate::points_to::folds::Fold;
use crate::points_to::inclusion::build::Builder;
use crate::points_to::inclusion::constraints::{Constraint, NodeId, NodeKind, Program, Step};
use crate::points_to::inclusion::contexts::Instances;
use crate::points_to::inclusion::layouts::{FoldRequest, Layouts};
use crate::points_to::inclusion::location_set::LocationSet;
use crate::points_to::inclusion::nodes::{Move, Node};
use crate::points_to::inclusion::objects::{Cell, EXTERNAL, Location, ObjectId, Objects};
use crate::points_to::inclusion::solver::cells::{CellUse, Cells};
use crate::points_to::inclusion::solver::copies::Transfer;
use crate::points_to::inclusion::solver::cycles::Representatives;
use crate::points_to::inclusion::solver::locations::Locations;
use crate::points_to::leaf_tables::Slots;
use crate::points_to::memcpy;
use crate::points_to::union_find::gcd;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{FuncId, Unit};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};

/// Rounds before changed objects lose all offsets.
const ROUNDS_MAX: u32 = 16;

/// Maximal number of offsets of one object in one set. Structures of real programs need some dozens.
const OFFSETS_MAX: usize = 64;

/// Maximal work over all rounds: about the number of additions to sets. Beyond it, the caller falls back to unification.
const WORK_MAX: u64 = 10_000_000;

/// The analysis of a call graph.
pub(crate) struct Solver<'a> {
    pub unit: &'a Unit,
    pub closure: &'a CallGraph,
    pub program: Program,
    pub instances: Instances,
    pub slots: Vec<Slots<NodeId>>,
    pub returns: Vec<Vec<Option<NodeId>>>,
    /// Per instance: the addresses among the variadic arguments.
    pub variadic: Vec<NodeId>,
    pub objects: Objects,
    pub escaped: HashSet<ObjectId>,
    cells: Cells,
    pub bound: BTreeMap<usize, BTreeSet<FuncId>>,
    pub unknown_calls: HashSet<usize>,
    /// Constraints of the program and of resolved calls.
    constraints: Vec<Constraint>,
    nodes: Vec<Node>,
    representatives: Representatives,
    locations: Locations,
    /// Nodes with a delta, in the order of copies.
    work: BinaryHeap<Reverse<(u32, NodeId)>>,
    transfers: HashSet<Transfer>,
    incoming: HashMap<ObjectId, Vec<Transfer>>,
    outgoing: HashMap<ObjectId, Vec<Transfer>>,
    requests: BTreeSet<FoldRequest>,
    /// Movements of pointers by an unknown multiple of a stride: first location and stride in bytes.
    pub steps: BTreeSet<(Cell, u64)>,
    changed: BTreeSet<ObjectId>,
    work_done: u64,
}

impl<'a> Solver<'a> {
    /// Solves the constraints of a builder. With `uses_tags`, a load reads the stores with compatible TBAA tags alone.
    pub fn solve(builder: Builder<'a>, uses_tags: bool) -> Solver<'a> {
        let mut solver = Solver {
            unit: builder.unit,
            closure: builder.closure,
            program: builder.program,
            instances: builder.instances,
            slots: builder.slots,
            returns: builder.returns,
            variadic: builder.variadic,
            objects: builder.objects,
            escaped: HashSet::new(),
            cells: Cells::new(uses_tags),
            bound: BTreeMap::new(),
            unknown_calls: HashSet::new(),
            constraints: Vec::new(),
            nodes: Vec::new(),
            representatives: Representatives::default(),
            locations: Locations::default(),
            work: BinaryHeap::new(),
            transfers: HashSet::new(),
            incoming: HashMap::new(),
            outgoing: HashMap::new(),
            requests: BTreeSet::new(),
            steps: BTreeSet::new(),
            changed: BTreeSet::new(),
            work_done: 0,
        };
        for round in 0.. {
            solver.round();
            solver.grow_for_accesses();
            solver.answer_requests();
            solver.fold_copy_cycles();
            if solver.changed.is_empty() || solver.is_exhausted() {
                break;
            }
            if round >= ROUNDS_MAX {
                for object in std::mem::take(&mut solver.changed) {
                    solver
                        .objects
                        .get_mut(object)
                        .folds
                        .insert(Fold::of_whole_object(1));
                }
            }
        }
        solver
    }
    /// Returns true if the program needs too much work. The sets are then incomplete.
    pub fn is_exhausted(&self) -> bool {
        self.work_done > WORK_MAX
    }
    /// Returns the locations of a node, in the order of objects and offsets.
    pub fn set(&self, node: NodeId) -> Vec<Location> {
        let set = self.numbers(node);
        match self.program.kinds.get(node.0 as usize) {
            Some(NodeKind::Pointer) if self.locations.has_bits(set) => {
                self.locations.list(&set.minus(&self.locations.bits))
            }
            _ => self.locations.list(set),
        }
    }
    /// Returns true if a load reads the stores with compatible TBAA tags alone.
    pub fn uses_tags(&self) -> bool {
        self.cells.uses_tags()
    }
    /// Returns the nodes of the stores to each cell, in the order of cells.
    pub fn stored_cells(&self) -> impl Iterator<Item = (Cell, NodeId)> {
        self.cells.stored()
    }
    fn numbers(&self, node: NodeId) -> &LocationSet {
        &self.nodes[self.representatives.get(node).0 as usize].set
    }
    fn has_locations(&self, node: NodeId) -> bool {
        !self.numbers(node).is_empty()
    }
    fn round(&mut self) {
        let kinds = self.program.kinds.iter();
        self.nodes = kinds.map(|&kind| Node::of(kind)).collect();
        self.representatives = Representatives::new(self.nodes.len());
        self.locations = Locations::default();
        self.work.clear();
        self.constraints = self.program.constraints.clone();
        self.escaped.clear();
        self.cells.clear();
        self.bound.clear();
        self.unknown_calls.clear();
        self.transfers.clear();
        self.incoming.clear();
        self.outgoing.clear();
        self.requests.clear();
        self.steps.clear();
        self.changed.clear();
        self.escape(EXTERNAL);
        for number in 0..self.constraints.len() {
            self.start(number as u32);
        }
        loop {
            while let Some(Reverse((_, node))) = self.work.pop() {
                self.propagate(node);
                if self.representatives.is_search_due() && !self.is_exhausted() {
                    self.merge_cycles();
                }
            }
            let is_new = self.apply_bits()
                || self.apply_otherwise()
                || self.apply_loads_of_declared_floats();
            if self.is_exhausted() || !is_new {
                break;
            }
        }
    }
    fn node(&mut self, node: NodeId) -> &mut Node {
        let representative = self.representatives.get(node);
        &mut self.nodes[representative.0 as usize]
    }
    /// Makes a constraint effective.
    fn start(&mut self, number: u32) {
        match self.constraints[number as usize].clone() {
            Constraint::Address {
                node,
                object,
                offset,
            } => self.add(node, Location::at(object, offset)),
            Constraint::Copy { to, from, bytes } => self.edge(from, to, Move::By(bytes)),
            Constraint::Moved { to, from, step } => self.edge(from, to, Move::Step(step)),
            Constraint::Load { ptr, .. } | Constraint::Store { ptr, .. } => self.watch(ptr, number),
            Constraint::CopyBytes { to, from, .. } => {
                self.watch(to, number);
                if from != to {
                    self.watch(from, number);
                }
            }
            Constraint::Difference { base, to, from, .. } => {
                for node in BTreeSet::from([base, to, from]) {
                    self.watch(node, number);
                }
            }
            Constraint::Call { callee, .. } => self.watch(callee, number),
            Constraint::Escape { node } => self.escape_node(node),
            Constraint::Otherwise { .. }
            | Constraint::LoadBits { .. }
            | Constraint::StoreBits { .. } => {}
        }
    }
    /// Registers a constraint on a pointer and applies it to the present locations.
    fn watch(&mut self, ptr: NodeId, number: u32) {
        self.node(ptr).uses.push(number);
        let present = self.set(ptr);
        if !present.is_empty() {
            self.apply(number, ptr, &present);
        }
    }
    fn enqueue(&mut self, id: NodeId) {
        let id = self.representatives.get(id);
        let rank = self.representatives.rank(id);
        if !std::mem::replace(&mut self.node(id).is_queued, true) {
            self.work.push(Reverse((rank, id)));
        }
    }
    /// Adds a location to a node.
    fn add(&mut self, id: NodeId, location: Location) {
        self.work_done += 1;
        if self.is_exhausted() {
            // The result is discarded.
            return;
        }
        let Some(location) = self.content(id, location) else {
            // Not an error: the node holds numbers alone.
            return;
        };
        let is_bits = self.is_bits(location);
        let number = self.locations.number(location, is_bits);
        let node = self.node(id);
        if !node.set.insert(number) {
            return;
        }
        node.delta.insert(number);
        self.enqueue(id);
        self.limit_offsets(id, location.object);
    }
    /// Adds locations to a node.
    fn add_all(&mut self, id: NodeId, set: &LocationSet) {
        let node = self.node(id);
        let (holds_any, is_part) = (node.holds_any(), node.kind == NodeKind::Part);
        let is_plain = holds_any || !is_part && !self.locations.has_bits(set);
        if !is_plain {
            for location in self.locations.list(set) {
                self.add(id, location);
            }
            return;
        }
        let node = self.node(id);
        let mut new = set.minus(&node.set);
        if !self.locations.stale.is_disjoint(&new) {
            for at in self.locations.list(&new.common(&self.locations.stale)) {
                self.add(id, at);
            }
            new = new.minus(&self.locations.stale).minus(&self.node(id).set);
        }
        self.work_done += 1 + u64::from(new.len() / 8);
        if new.is_empty() || self.is_exhausted() {
            return;
        }
        let node = self.node(id);
        node.set.extend(&new);
        node.delta.extend(&new);
        self.enqueue(id);
        for object in self.locations.crowded_in(&new) {
            self.limit_offsets(id, object);
        }
    }
    fn add_external(&mut self, id: NodeId) {
        if self.node(id).kind != NodeKind::Part {
            self.add(id, Location::start(EXTERNAL));
        }
    }
    /// Folds an object to which a node points at too many offsets.
    fn limit_offsets(&mut self, id: NodeId, object: ObjectId) {
        let set = self.numbers(id);
        if set.len() as usize <= OFFSETS_MAX || self.locations.count(set, object) <= OFFSETS_MAX {
            return;
        }
        let places = self.locations.of_object(set, object);
        let steps = places
            .windows(2)
            .map(|pair| pair[0].offset.abs_diff(pair[1].offset));
        self.fold(object, Fold::of_whole_object(steps.fold(0, gcd).max(1)));
        let data = self.objects.get_mut(object);
        if !std::mem::replace(&mut data.is_normalized, true) {
            self.changed.insert(object);
        }
        self.locations.normalize(object, &self.objects);
    }
    fn fold(&mut self, object: ObjectId, fold: Fold) {
        if !self.objects.get(object).key.is_without_memory()
            && self.objects.get_mut(object).folds.insert(fold)
        {
            self.changed.insert(object);
        }
    }
    /// Adds an edge and propagates the present locations along it.
    fn edge(&mut self, from: NodeId, to: NodeId, movement: Move) {
        let (from, to) = (self.representatives.get(from), self.representatives.get(to));
        if from == to && movement == Move::By(0) {
            return;
        }
        let node = self.node(from);
        if !node.known_edges.insert((to, movement)) {
            return;
        }
        node.edges.push((to, movement));
        self.representatives.count_edge();
        if movement == Move::By(0) {
            let present = self.numbers(from).clone();
            self.add_all(to, &present);
        } else {
            let present = self.all(from);
            self.follow(to, movement, &present);
        }
    }
    fn follow(&mut self, to: NodeId, movement: Move, locations: &[Location]) {
        for &location in locations {
            match movement {
                Move::By(bytes) => {
                    for there in self.moved(location, bytes) {
                        self.add(to, there);
                    }
                }
                Move::Step(step) => self.step(to, location, step),
                Move::Bits if self.is_bits(location) => self.add(to, location),
                Move::Bits => {}
            }
        }
    }
    /// Returns the locations `bytes` behind a location.
    fn moved(&mut self, from: Location, bytes: i64) -> Vec<Location> {
        let mut list = Vec::new();
        let array = self.objects.visit_moved(from, bytes, |at| list.push(at));
        if let Err(array) = array {
            // Many elements leave the array: the fold includes their places.
            let fold = Fold {
                first: array.first.saturating_add(bytes.min(0)),
                end: array.end.map(|end| end.saturating_add(bytes.max(0))),
                stride: array.stride,
            };
            self.fold(from.object, fold);
        }
        list
    }
    /// Moves a location by an unknown multiple of a stride. Without a known array, the layout of the object decides
    /// at the end of the round.
    fn step(&mut self, to: NodeId, from: Location, step: Step) {
        if self.is_bits(from) {
            return self.add(to, from);
        }
        let mut at = from.offset.wrapping_add(step.offset);
        if let Some((start, end)) = step.array {
            let fold = Fold {
                first: from.offset.wrapping_add(start),
                end: end.map(|end| from.offset.wrapping_add(end)),
                stride: step.stride,
            };
            self.fold(from.object, fold);
            at = fold.normalize(at);
        } else {
            self.requests.insert(FoldRequest {
                object: from.object,
                offset: at,
                index: step.index,
                stride: step.stride,
                forward: step.forward,
                in_fortran: step.in_fortran,
            });
        }
        let first = Cell {
            object: from.object,
            offset: at.wrapping_add(step.index),
        };
        self.steps.insert((first, step.stride));
        let element = Location {
            offset: at,
            stride: gcd(from.stride, step.stride),
            ..from
        };
        for there in self.moved(element, step.index) {
            self.add(to, there);
        }
        if step.passes_end
            && !is_planted(Mutant::EndOfWalkLost)
            && let Some(array) = self.objects.array_of(element)
        {
            // The pointer behind the last element, and before the first, addresses the neighbour.
            let ends = [array.end, array.first.checked_sub_unsigned(step.stride)];
            for end in ends.into_iter().flatten() {
                self.add(to, Location::at(from.object, end));
            }
        }
    }
    /// Returns true if no fold covers an offset.
    fn is_exact(&self, object: ObjectId, offset: i64) -> bool {
        let folds = self.objects.get(object).folds.list();
        !folds.iter().any(|fold| fold.contains(offset))
    }
    fn propagate(&mut self, id: NodeId) {
        let node = self.node(id);
        node.is_queued = false;
        let delta = std::mem::take(&mut node.delta);
        let escapes = node.escapes;
        let new = self.locations.list(&delta);
        if escapes {
            for location in &new {
                self.escape(location.object);
            }
        }
        for index in 0..self.node(id).edges.len() {
            match self.node(id).edges[index] {
                (to, Move::By(0)) => self.add_all(to, &delta),
                (to, movement) => self.follow(to, movement, &new),
            }
        }
        for index in 0..self.node(id).uses.len() {
            let number = self.node(id).uses[index];
            self.apply(number, id, &new);
        }
    }
    /// Applies a constraint to new locations of one of its pointers.
    fn apply(&mut self, number: u32, on: NodeId, new: &[Location]) {
        match self.constraints[number as usize].clone() {
            Constraint::Load { to, bytes, tag, .. } => {
                for location in new {
                    if location.object == EXTERNAL {
                        self.add_external(to);
                    }
                    for cell in self.cells_at(*location, bytes, CellUse::Load(tag)) {
                        self.edge(cell, to, Move::By(0));
                    }
                }
            }
            Constraint::Store {
                bytes, from, tag, ..
            } => {
                for location in new {
                    if location.object == EXTERNAL {
                        self.escape_node(from);
                    }
                    for cell in self.cells_at(*location, bytes, CellUse::Store(tag)) {
                        self.edge(from, cell, Move::By(0));
                    }
                }
            }
            Constraint::CopyBytes {
                to,
                from,
                size_bytes,
            } => {
                let news = new.to_vec();
                let on = self.representatives.get(on);
                let is_to = on == self.representatives.get(to);
                let (tos, froms): (Vec<_>, Vec<_>) = (self.all(to), self.all(from));
                let tos = if is_to { &news } else { &tos };
                self.transfer_all(tos, &froms, size_bytes);
                if on == self.representatives.get(from) {
                    let tos = self.all(to);
                    self.transfer_all(&tos, &news, size_bytes);
                }
            }
            Constraint::Difference {
                result,
                base,
                to,
                from,
            } => self.difference(result, base, to, from),
            Constraint::Call { call, .. } => self.call(call, new),
            Constraint::Address { .. }
            | Constraint::Copy { .. }
            | Constraint::Moved { .. }
            | Constraint::Escape { .. }
            | Constraint::LoadBits { .. }
            | Constraint::StoreBits { .. }
            | Constraint::Otherwise { .. } => {
                unreachable!("these constraints wait for no location")
            }
        }
    }
    /// Returns the locations of a node and of the cycle in which it lies.
    fn all(&self, node: NodeId) -> Vec<Location> {
        self.locations.list(self.numbers(node))
    }
    /// Gives the results of casts of integers without an address their objects. Returns true if a set changed.
    fn apply_otherwise(&mut self) -> bool {
        let mut empty = Vec::new();
        for constraint in &self.constraints {
            if let Constraint::Otherwise { node, from, object } = *constraint
                && !self.has_locations(from)
                && !self.has_locations(node)
            {
                empty.push((node, object));
            }
        }
        for &(node, object) in &empty {
            self.add(node, Location::start(object));
        }
        !empty.is_empty()
    }
    /// Folds the objects of shifted cycles of copies: each cell equals the cell one shift further on.
    fn fold_copy_cycles(&mut self) {
        let far = self
            .transfers
            .iter()
            .filter(|copy| memcpy::is_far(copy.size_bytes));
        let ends = far.map(|copy| {
            let end = |at: Location| (at.object.0, at.offset);
            (end(copy.to), end(copy.from))
        });
        let mut ends: Vec<_> = ends.collect();
        ends.sort_unstable();
        for (object, period) in memcpy::copy_periods(&ends) {
            self.fold(
                ObjectId(object),
                Fold::of_whole_object(period.unsigned_abs()),
            );
        }
    }
    /// Lets the folds include every access: an access of numbers has no constraint.
    fn grow_for_accesses(&mut self) {
        let accesses: BTreeSet<(NodeId, i64)> = (self.program.evidence.cells.iter())
            .map(|(node, at, _)| (*node, *at))
            .collect();
        for (node, at) in accesses {
            for location in self.all(node) {
                self.moved(location, at);
            }
        }
    }
    /// Answers the requests of the round from the layouts of the objects.
    fn answer_requests(&mut self) {
        let requests = std::mem::take(&mut self.requests);
        if requests.is_empty() {
            return;
        }
        let layouts = Layouts::of(self);
        for request in requests {
            let FoldRequest { object, stride, .. } = request;
            let start = request.offset.wrapping_add(request.index);
            let rest = request.forward && self.is_exact(object, start);
            let fold = match layouts.array_around(request) {
                Some((first, end)) => Fold {
                    first,
                    end: (end != i64::MAX).then_some(end),
                    stride,
                },
                None => Fold {
                    first: if rest { start } else { Fold::NO_START },
                    end: None,
                    stride,
                },
            };
            self.fold(request.object, fold);
        }
    }
}
