//! Solver of inclusion constraints: a worklist with difference propagation.
//!
//! A node keeps its set and the part of the set that has not been propagated. A memory cell becomes a node when a
//! constraint first names it. Constraints on a pointer (loads, stores, byte copies, calls) add edges between nodes as
//! the pointer's set grows.
//!
//! Folds change the identity of cells. A round therefore runs with the folds found so far; [`Solver::solve`] repeats
//! rounds until no fold changes. Folds only grow, and after [`ROUNDS_MAX`] rounds a changed object counts bytes modulo
//! 1.

use crate::call_graph::CallGraph;
use crate::points_to::folds::{Fold, visit_elements};
use crate::points_to::inclusion::build::Builder;
use crate::points_to::inclusion::constraints::{Constraint, NodeId, Program, Step};
use crate::points_to::inclusion::contexts::Instances;
use crate::points_to::inclusion::layouts::{FoldRequest, Layouts};
use crate::points_to::inclusion::nodes::{Move, Node};
use crate::points_to::inclusion::objects::{
    Cell, EXTERNAL, Location, ObjectId, ObjectKey, Objects,
};
use crate::points_to::leaf_tables::Slots;
use crate::points_to::memcpy;
use crate::points_to::union_find::gcd;
use gradus_ir::{FuncId, Unit};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Rounds before changed objects lose all offsets.
const ROUNDS_MAX: u32 = 16;

/// Maximal number of offsets of one object in one set. STRUCTURE of real programs needs some dozens.
const OFFSETS_MAX: usize = 64;

/// Maximal number of additions of a location to a set, over all rounds. Beyond it, the caller falls back to unification.
const WORK_MAX: u64 = 4_000_000;

/// Maximal number of cells of one object.
const CELLS_MAX: usize = 1024;

/// Maximal number of instances of a folded cell that one byte copy enumerates.
const REPEATS_MAX: usize = 128;

/// A byte copy between two locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Transfer {
    to: Location,
    from: Location,
    size_bytes: Option<u64>,
}

/// The analysis of a call graph.
pub(crate) struct Solver<'a> {
    pub unit: &'a Unit,
    pub closure: &'a CallGraph,
    pub program: Program,
    pub instances: Instances,
    pub slots: Vec<Slots<NodeId>>,
    pub returns: Vec<Vec<Option<NodeId>>>,
    pub objects: Objects,
    pub escaped: HashSet<ObjectId>,
    pub cells: BTreeMap<Cell, NodeId>,
    pub bound: BTreeMap<usize, BTreeSet<FuncId>>,
    pub unknown_calls: HashSet<usize>,
    /// Constraints of the program and of resolved calls.
    constraints: Vec<Constraint>,
    nodes: Vec<Node>,
    work: Vec<NodeId>,
    transfers: HashSet<Transfer>,
    incoming: HashMap<ObjectId, Vec<Transfer>>,
    outgoing: HashMap<ObjectId, Vec<Transfer>>,
    cell_count: HashMap<ObjectId, usize>,
    requests: BTreeSet<FoldRequest>,
    /// Movements of pointers by an unknown multiple of a stride: first location and stride in bytes.
    pub steps: BTreeSet<(Cell, u64)>,
    changed: BTreeSet<ObjectId>,
    work_done: u64,
}

impl<'a> Solver<'a> {
    /// Solves the constraints of a builder.
    pub fn solve(builder: Builder<'a>) -> Solver<'a> {
        let mut solver = Solver {
            unit: builder.unit,
            closure: builder.closure,
            program: builder.program,
            instances: builder.instances,
            slots: builder.slots,
            returns: builder.returns,
            objects: builder.objects,
            escaped: HashSet::new(),
            cells: BTreeMap::new(),
            bound: BTreeMap::new(),
            unknown_calls: HashSet::new(),
            constraints: Vec::new(),
            nodes: Vec::new(),
            work: Vec::new(),
            transfers: HashSet::new(),
            incoming: HashMap::new(),
            outgoing: HashMap::new(),
            cell_count: HashMap::new(),
            requests: BTreeSet::new(),
            steps: BTreeSet::new(),
            changed: BTreeSet::new(),
            work_done: 0,
        };
        for round in 0.. {
            solver.round();
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
    /// Returns the locations of a node.
    pub fn set(&self, node: NodeId) -> &BTreeSet<Location> {
        &self.nodes[node.0 as usize].set
    }
    fn round(&mut self) {
        self.nodes = vec![Node::default(); self.program.node_count as usize];
        self.constraints = self.program.constraints.clone();
        self.escaped.clear();
        self.cells.clear();
        self.bound.clear();
        self.unknown_calls.clear();
        self.transfers.clear();
        self.incoming.clear();
        self.outgoing.clear();
        self.cell_count.clear();
        self.requests.clear();
        self.steps.clear();
        self.changed.clear();
        self.escape(EXTERNAL);
        for number in 0..self.constraints.len() {
            self.start(number as u32);
        }
        loop {
            while let Some(node) = self.work.pop() {
                self.propagate(node);
            }
            if !self.apply_otherwise() {
                break;
            }
        }
    }
    fn node(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node.0 as usize]
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
            Constraint::Otherwise { .. } => {}
        }
    }
    /// Registers a constraint on a pointer and applies it to the present locations.
    fn watch(&mut self, ptr: NodeId, number: u32) {
        self.node(ptr).uses.push(number);
        let present: Vec<Location> = self.set(ptr).iter().copied().collect();
        if !present.is_empty() {
            self.apply(number, ptr, &present);
        }
    }
    fn enqueue(&mut self, id: NodeId) {
        let node = self.node(id);
        if !std::mem::replace(&mut node.is_queued, true) {
            self.work.push(id);
        }
    }
    /// Adds a location to a node.
    fn add(&mut self, id: NodeId, location: Location) {
        self.work_done += 1;
        if self.is_exhausted() {
            // The result is discarded.
            return;
        }
        let location = self.objects.location(location);
        if !self.node(id).set.insert(location) {
            return;
        }
        self.node(id).delta.push(location);
        self.enqueue(id);
        if self.node(id).set.len() > OFFSETS_MAX {
            self.limit_offsets(id, location.object);
        }
    }
    fn add_external(&mut self, id: NodeId) {
        self.add(id, Location::start(EXTERNAL));
    }
    /// Folds an object to which a node points at too many offsets.
    fn limit_offsets(&mut self, id: NodeId, object: ObjectId) {
        let end = |offset, stride| Location {
            object,
            offset,
            stride,
        };
        let range = end(i64::MIN, 0)..=end(i64::MAX, u64::MAX);
        let offsets: Vec<i64> = self.set(id).range(range).map(|at| at.offset).collect();
        if offsets.len() > OFFSETS_MAX {
            let steps = offsets.windows(2).map(|pair| pair[0].abs_diff(pair[1]));
            self.fold(object, Fold::of_whole_object(steps.fold(0, gcd).max(1)));
            let data = self.objects.get_mut(object);
            if !std::mem::replace(&mut data.is_normalized, true) {
                self.changed.insert(object);
            }
        }
    }
    fn fold(&mut self, object: ObjectId, fold: Fold) {
        if !matches!(self.objects.get(object).key, ObjectKey::Function(_))
            && self.objects.get_mut(object).folds.insert(fold)
        {
            self.changed.insert(object);
        }
    }
    /// Adds an edge and propagates the present locations along it.
    fn edge(&mut self, from: NodeId, to: NodeId, movement: Move) {
        if from == to && movement == Move::By(0) {
            return;
        }
        let node = self.node(from);
        if node.known_edges.insert((to, movement)) {
            node.edges.push((to, movement));
            let present: Vec<Location> = self.set(from).iter().copied().collect();
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
        if node.escapes {
            for location in &delta {
                self.escape(location.object);
            }
        }
        for index in 0..self.node(id).edges.len() {
            let (to, movement) = self.node(id).edges[index];
            self.follow(to, movement, &delta);
        }
        for index in 0..self.node(id).uses.len() {
            let number = self.node(id).uses[index];
            self.apply(number, id, &delta);
        }
    }
    /// Applies a constraint to new locations of one of its pointers.
    fn apply(&mut self, number: u32, on: NodeId, new: &[Location]) {
        match self.constraints[number as usize].clone() {
            Constraint::Load { to, bytes, .. } => {
                for location in new {
                    if location.object == EXTERNAL {
                        self.add_external(to);
                    }
                    for cell in self.cells_at(*location, bytes) {
                        self.edge(cell, to, Move::By(0));
                    }
                }
            }
            Constraint::Store { bytes, from, .. } => {
                for location in new {
                    if location.object == EXTERNAL {
                        self.escape_node(from);
                    }
                    for cell in self.cells_at(*location, bytes) {
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
                let (tos, froms): (Vec<_>, Vec<_>) = (self.all(to), self.all(from));
                let tos = if on == to { &news } else { &tos };
                self.transfer_all(tos, &froms, size_bytes);
                if on == from {
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
            | Constraint::Otherwise { .. } => {
                unreachable!("these constraints wait for no location")
            }
        }
    }
    fn all(&self, node: NodeId) -> Vec<Location> {
        self.set(node).iter().copied().collect()
    }
    /// Gives the results of casts of integers without an address their objects. Returns true if a set changed.
    fn apply_otherwise(&mut self) -> bool {
        let mut empty = Vec::new();
        for constraint in &self.constraints {
            if let Constraint::Otherwise { node, from, object } = *constraint
                && self.set(from).is_empty()
                && self.set(node).is_empty()
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

/// Memory cells and byte copies.
impl Solver<'_> {
    /// Returns the cells `bytes` behind a location; none for [`EXTERNAL`] and functions.
    fn cells_at(&mut self, at: Location, bytes: i64) -> Vec<NodeId> {
        let data = self.objects.get(at.object);
        if at.object == EXTERNAL || matches!(data.key, ObjectKey::Function(_)) {
            return Vec::new();
        }
        let places = self.moved(at, bytes);
        places.into_iter().map(|place| self.cell(place)).collect()
    }
    /// Returns the cell at a location.
    fn cell(&mut self, at: Location) -> NodeId {
        let at = self.objects.cell(at);
        if let Some(&cell) = self.cells.get(&at) {
            return cell;
        }
        let cell = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node::default());
        self.cells.insert(at, cell);
        if self.objects.get(at.object).has_unknown_content {
            let behind = self.objects.behind(at.object, at.offset);
            self.add(cell, Location::start(behind));
        }
        if self.escaped.contains(&at.object) {
            self.escape_cell(cell);
        }
        self.limit_cells(at.object);
        if self.is_exhausted() {
            return cell;
        }
        for transfer in self.outgoing.get(&at.object).cloned().unwrap_or_default() {
            self.send(transfer, at.offset, cell);
        }
        for transfer in self.incoming.get(&at.object).cloned().unwrap_or_default() {
            self.receive(transfer, at.offset, cell);
        }
        cell
    }
    fn limit_cells(&mut self, object: ObjectId) {
        let count = self.cell_count.entry(object).or_default();
        *count += 1;
        if *count > CELLS_MAX {
            let offsets: Vec<i64> = self.cells_in(object).map(|(at, _)| at.offset).collect();
            let steps = offsets.windows(2).map(|pair| pair[0].abs_diff(pair[1]));
            self.fold(object, Fold::of_whole_object(steps.fold(0, gcd).max(1)));
        }
    }
    /// Returns the cells of an object.
    pub fn cells_in(&self, object: ObjectId) -> impl Iterator<Item = (Cell, NodeId)> {
        let all = |offset| Cell { object, offset };
        let cells = self.cells.range(all(i64::MIN)..=all(i64::MAX));
        cells.map(|(at, cell)| (*at, *cell))
    }
    fn transfer_all(&mut self, to: &[Location], from: &[Location], size_bytes: Option<u64>) {
        let to = self.all_starts(to, size_bytes);
        let from = self.all_starts(from, size_bytes);
        for &to in &to {
            for &from in &from {
                self.transfer(Transfer {
                    to,
                    from,
                    size_bytes,
                });
            }
        }
    }
    /// Returns the starts of blocks of `size_bytes` at locations.
    fn all_starts(&mut self, places: &[Location], size_bytes: Option<u64>) -> Vec<Location> {
        let mut list = Vec::new();
        for &at in places {
            if let Some(starts) = self.objects.starts(at, size_bytes) {
                list.extend(starts);
                continue;
            }
            // Many elements: the fold includes the memory that a block at the last element reaches.
            if let Some(array) = self.objects.array_of(at) {
                let end = size_bytes.and_then(|size| array.end?.checked_add_unsigned(size));
                self.fold(at.object, Fold { end, ..array });
            }
            list.push(Location { stride: 0, ..at });
        }
        list
    }
    fn transfer(&mut self, transfer: Transfer) {
        let Transfer { to, from, .. } = transfer;
        let is_function = |object| matches!(self.objects.get(object).key, ObjectKey::Function(_));
        if to == from || is_function(to.object) || is_function(from.object) {
            return;
        }
        if !self.transfers.insert(transfer) {
            return;
        }
        self.outgoing.entry(from.object).or_default().push(transfer);
        self.incoming.entry(to.object).or_default().push(transfer);
        let sources: Vec<_> = self.cells_in(from.object).collect();
        for (at, cell) in sources {
            self.send(transfer, at.offset, cell);
        }
        let goals: Vec<_> = self.cells_in(to.object).collect();
        for (at, cell) in goals {
            self.receive(transfer, at.offset, cell);
        }
    }
    /// Copies a source cell to its places in the destination.
    fn send(&mut self, transfer: Transfer, offset: i64, cell: NodeId) {
        let Transfer { to, from, .. } = transfer;
        let places = self.distances(from, offset, transfer);
        if !places.is_empty() && to.object == EXTERNAL {
            return self.escape_node(cell);
        }
        for distance in places {
            let goal = self.cell(Location::at(to.object, to.offset.wrapping_add(distance)));
            self.edge(cell, goal, Move::By(0));
        }
    }
    /// Fills a destination cell from its places in the source.
    fn receive(&mut self, transfer: Transfer, offset: i64, cell: NodeId) {
        let Transfer { to, from, .. } = transfer;
        let places = self.distances(to, offset, transfer);
        if !places.is_empty() && from.object == EXTERNAL {
            return self.add_external(cell);
        }
        for distance in places {
            let source = self.cell(Location::at(
                from.object,
                from.offset.wrapping_add(distance),
            ));
            self.edge(source, cell, Move::By(0));
        }
    }
    /// Returns the distances from `start`, within the copied range, at which the cell `offset` of the object lies.
    ///
    /// A folded cell lies at many distances. Beyond [`REPEATS_MAX`], the other end receives the fold instead.
    fn distances(&mut self, start: Location, offset: i64, transfer: Transfer) -> Vec<i64> {
        let size = transfer
            .size_bytes
            .map_or(i64::MAX, |n| i64::try_from(n).unwrap_or(i64::MAX));
        let range = start.offset..start.offset.saturating_add(size);
        let folds = self.objects.get(start.object).folds.list();
        let covering = folds.iter().filter(|fold| fold.contains(offset));
        let stride = covering.map(|fold| fold.stride).fold(0, gcd);
        self.work_done += 64;
        let mut places = Vec::new();
        let is_complete = visit_elements(folds, offset, &range, &mut |at| {
            places.push(at.wrapping_sub(start.offset));
        });
        if !is_complete || places.len() > REPEATS_MAX {
            let other = if start == transfer.to {
                transfer.from
            } else {
                transfer.to
            };
            let end = transfer
                .size_bytes
                .map(|_| other.offset.saturating_add(size));
            let fold = Fold {
                first: other.offset,
                end,
                stride: stride.max(1),
            };
            self.fold(other.object, fold);
            places.truncate(REPEATS_MAX);
        }
        places
    }
}

/// Unknown code and indirect calls.
impl Solver<'_> {
    fn escape_node(&mut self, id: NodeId) {
        if !std::mem::replace(&mut self.node(id).escapes, true) {
            for location in self.all(id) {
                self.escape(location.object);
            }
        }
    }
    /// Lets unknown code read and write an object.
    fn escape(&mut self, object: ObjectId) {
        if !self.escaped.insert(object) {
            return;
        }
        if let ObjectKey::Function(func) = self.objects.get(object).key {
            return self.call_from_unknown(func);
        }
        let cells: Vec<NodeId> = self.cells_in(object).map(|(_, cell)| cell).collect();
        for cell in cells {
            self.escape_cell(cell);
        }
    }
    fn escape_cell(&mut self, cell: NodeId) {
        self.escape_node(cell);
        self.add_external(cell);
    }
    fn call_from_unknown(&mut self, func: FuncId) {
        let Some(context) = self.instances.shared_of(func) else {
            // Not an error: a function without a body is itself unknown code.
            return;
        };
        for node in self.params(func).into_iter().flatten().flatten() {
            self.add_external(node);
        }
        for node in self.returns[context.0 as usize]
            .clone()
            .into_iter()
            .flatten()
        {
            self.escape_node(node);
        }
    }
    /// Returns the nodes of the leaves of each parameter of a function's shared instance.
    fn params(&self, func: FuncId) -> Vec<Vec<Option<NodeId>>> {
        let body = self.unit.functions[func].body.as_deref();
        let (Some(body), Some(context)) = (body, self.instances.shared_of(func)) else {
            // Not an error: a function without a body has no nodes.
            return Vec::new();
        };
        let slots = &self.slots[context.0 as usize];
        let params = body.params().iter();
        params.map(|&param| slots.of(param).to_vec()).collect()
    }
    fn call(&mut self, number: usize, callees: &[Location]) {
        for location in callees {
            match self.objects.get(location.object).key {
                ObjectKey::Function(func) => self.bind(number, func),
                ObjectKey::External
                | ObjectKey::Argument(..)
                | ObjectKey::Returned(..)
                | ObjectKey::Behind(..) => self.call_unknown(number),
                // Data is no code: the pointer does not have this value at the call.
                ObjectKey::ByValue(..)
                | ObjectKey::Alloca(..)
                | ObjectKey::Heap(..)
                | ObjectKey::Global(_) => {}
            }
        }
    }
    /// Lets a call reach unknown code and every function of its type.
    fn call_unknown(&mut self, number: usize) {
        if !self.unknown_calls.insert(number) {
            return;
        }
        let call = self.program.calls[number].clone();
        for &func in self.closure.candidates(call.signature) {
            self.bind(number, func);
        }
        for node in call.args.into_iter().flatten().flatten() {
            self.escape_node(node);
        }
        for node in call.result.into_iter().flatten() {
            self.add_external(node);
        }
    }
    /// Connects a call with a callee.
    fn bind(&mut self, number: usize, func: FuncId) {
        let call = self.program.calls[number].clone();
        if self.unit.functions[func].ty != call.signature {
            return;
        }
        if !self.bound.entry(number).or_default().insert(func) {
            return;
        }
        if let Some(own) = self.program.guarded.get(&(number, func)).cloned() {
            for constraint in own {
                self.constraints.push(constraint);
                self.start(self.constraints.len() as u32 - 1);
            }
            return;
        }
        let Some(context) = self.instances.shared_of(func) else {
            return self.call_unknown(number);
        };
        for (param, arg) in self.params(func).into_iter().zip(&call.args) {
            for (to, from) in param.into_iter().zip(arg) {
                if let (Some(to), Some(from)) = (to, from) {
                    self.edge(*from, to, Move::By(0));
                }
            }
        }
        let returned = self.returns[context.0 as usize].clone();
        for (from, to) in returned.into_iter().zip(&call.result) {
            if let (Some(from), Some(to)) = (from, to) {
                self.edge(from, *to, Move::By(0));
            }
        }
    }
    /// Adds `result = base + (to - from)`.
    ///
    /// Two pointers into one object have the distance of their offsets, up to the folds. The sum `p + (q - p)` is `q`,
    /// in whatever object. Other differences between objects have no meaning in C. Null pointers have distance 0.
    fn difference(&mut self, result: NodeId, base: NodeId, to: NodeId, from: NodeId) {
        let (bases, tos, froms) = (self.all(base), self.all(to), self.all(from));
        for &base in &bases {
            self.add(result, base);
            let mut strides: BTreeMap<i64, u64> = BTreeMap::new();
            for &from in &froms {
                for &to in &tos {
                    let distance = to.offset.wrapping_sub(from.offset);
                    if to.object == from.object {
                        let folds = self.objects.get(to.object).folds.list().iter();
                        let stride = folds.map(|fold| fold.stride).fold(0, gcd);
                        let known = strides.entry(distance).or_insert(0);
                        *known = gcd(gcd(*known, stride), gcd(to.stride, from.stride));
                    } else if base.object == from.object {
                        let bytes = base.offset.wrapping_sub(from.offset);
                        let stride = gcd(to.stride, gcd(base.stride, from.stride));
                        for there in self.moved(to, bytes) {
                            self.add(result, Location { stride, ..there });
                        }
                    }
                }
            }
            for (distance, stride) in strides {
                if stride > 0 {
                    self.fold(base.object, Fold::of_whole_object(stride));
                }
                let stride = gcd(base.stride, stride);
                for there in self.moved(base, distance) {
                    self.add(result, Location { stride, ..there });
                }
            }
        }
    }
}
