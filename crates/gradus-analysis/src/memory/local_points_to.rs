//! Points-to sets and escape analysis of one body.
//!
//! Inclusion-based and field-insensitive (Andersen, 1994), on small sets. A worklist of values propagates
//! each change of a value's set to the value's users. Objects are allocations, arguments and globals.
//! [`Object::Unknown`] stands for all remaining memory. The contents of an allocation are tracked until the
//! allocation escapes; then the contents escape too. Integers and aggregates carry the objects of the
//! pointers from which they were built. A set with more than [`MAX_OBJECTS`] members becomes unknown and
//! its members escape.
//!
//! An object allocated in a loop may belong to an earlier iteration if a pointer reaches the object through
//! a loop-carried value or through memory. Such a target is marked `old`.

use crate::cfg::nesting::{Nest, is_loop};
use crate::memory::effects::{Effects, FunctionEffects};
use gradus_ir::externals::{ExternalFn, MemoryFn};
use gradus_ir::{
    Body, CastOp, ConstId, ConstKind, Definition, Entity, FuncId, GlobalId, Linkage, Op, OpKind,
    Region, Type, Unit, Value,
};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// Largest points-to set; a larger set becomes unknown.
pub const MAX_OBJECTS: usize = 8;

/// An abstract object of the points-to analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// All memory that the body did not allocate or that escaped from the body.
    Unknown,
    /// The object of an `alloca`.
    Stack(Op),
    /// The object of a call that returns fresh memory.
    Heap(Op),
    /// The object behind the argument of this index.
    Param(u32),
    /// A global variable.
    Global(GlobalId),
    /// The code of a function.
    Code(FuncId),
}

/// Index of an object in its body's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u32);

/// Index of [`Object::Unknown`].
pub const UNKNOWN: ObjectId = ObjectId(0);

/// A member of a points-to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointsToTarget {
    /// The object.
    pub object: ObjectId,
    /// True if the object may belong to an earlier iteration of a loop around the allocation.
    pub old: bool,
}

/// A points-to set.
pub type Targets = SmallVec<[PointsToTarget; 2]>;

#[derive(Clone, Debug, Default)]
struct ObjectState {
    escaped: bool,
    /// True if the object is `escaped` only because strands of the body share it.
    shared: bool,
    /// True if the contents escape: the object is passed to code that may capture the pointers in it.
    leaky: bool,
    holds: Targets,
    readers: Vec<Op>,
    known_readers: HashSet<Op>,
    copied_to: Vec<ObjectId>,
}

/// The points-to sets of one body. Valid until the first edit.
#[derive(Clone, Debug)]
pub struct PointsTo {
    objects: Vec<Object>,
    states: Vec<ObjectState>,
    ids: HashMap<Object, ObjectId>,
    sets: Vec<Targets>,
    consts: HashMap<ConstId, Targets>,
    by_value: Vec<bool>,
}

impl PointsTo {
    /// Computes the points-to sets of `body`. `func` supplies the parameter attributes, if known.
    pub fn of(
        unit: &Unit,
        func: Option<FuncId>,
        body: &Body,
        nest: &Nest,
        effects: &Effects,
    ) -> PointsTo {
        let attrs = func.map(|func| unit.attrs(unit.functions[func].attrs));
        let by_value = (0..body.params().len())
            .map(|index| attrs.is_some_and(|a| a.param(index, "byval").is_some()));
        let mut solver = Solver {
            unit,
            body,
            nest,
            effects,
            table: PointsTo {
                objects: Vec::new(),
                states: Vec::new(),
                ids: HashMap::new(),
                sets: vec![Targets::new(); body.values.len()],
                consts: HashMap::new(),
                by_value: by_value.collect(),
            },
            work: Vec::new(),
            queued: vec![false; body.values.len()],
            changed_objects: Vec::new(),
        };
        solver.table.id(Object::Unknown);
        solver.seed();
        solver.run();
        for object in solver.thread_shared() {
            let state = &mut solver.table.states[object.0 as usize];
            state.shared |= !state.escaped;
            solver.escape(object);
        }
        solver.run();
        solver.table
    }

    fn id(&mut self, object: Object) -> ObjectId {
        if let Some(&id) = self.ids.get(&object) {
            return id;
        }
        let id = ObjectId(self.objects.len() as u32);
        self.objects.push(object);
        self.states.push(ObjectState::default());
        self.ids.insert(object, id);
        id
    }
    /// Returns the index of an object if the body mentions it.
    pub fn find(&self, object: Object) -> Option<ObjectId> {
        self.ids.get(&object).copied()
    }
    /// Returns the object of an index.
    pub fn object(&self, id: ObjectId) -> Object {
        self.objects[id.0 as usize]
    }
    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }
    /// Returns true if there are no objects. [`Object::Unknown`] always exists.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
    /// Returns the points-to set of a value; empty for null.
    pub fn targets(&self, body: &Body, value: Value) -> &[PointsToTarget] {
        match body.values[value].def {
            Definition::Const(id) => self.consts.get(&id).map_or(&[], |t| t.as_slice()),
            _ => &self.sets[value.index()],
        }
    }
    /// Returns true if the body allocated the object. No older pointer points into such an object.
    pub fn is_local(&self, id: ObjectId) -> bool {
        match self.object(id) {
            Object::Stack(_) | Object::Heap(_) => true,
            Object::Param(index) => self.by_value.get(index as usize) == Some(&true),
            _ => false,
        }
    }
    /// Returns true if pointers into the object are known outside the body or are stored in untracked
    /// memory.
    pub fn escaped(&self, id: ObjectId) -> bool {
        self.states[id.0 as usize].escaped
    }
    /// Returns true if the body allocated the object and no unknown pointer can point into it.
    pub fn is_private(&self, id: ObjectId) -> bool {
        self.is_local(id) && !self.escaped(id)
    }
    /// Returns true if the body allocated the object and only pointers of the body can point into it.
    /// Pointers of all strands of the body count.
    pub fn is_private_or_strand_shared(&self, id: ObjectId) -> bool {
        self.is_private(id) || self.states[id.0 as usize].shared
    }
    /// Returns the objects reachable by the caller through the returned value: its targets and,
    /// transitively, their contents. The objects may be private while the body runs.
    pub fn returned(&self, body: &Body) -> HashSet<ObjectId> {
        let ends = body
            .walk(body.root())
            .filter(|op| matches!(body.kind(*op), OpKind::Return));
        let values = ends.flat_map(|op| body.operands(op).collect::<Vec<Value>>());
        let targets = values.flat_map(|value| self.targets(body, value).to_vec());
        let targets = targets.map(|target| target.object).collect();
        let mut found = self.reachable_from(&targets);
        found.extend(targets);
        found
    }
    /// Returns the objects reachable from the contents of the objects in `from`, transitively.
    pub fn reachable_from(&self, from: &HashSet<ObjectId>) -> HashSet<ObjectId> {
        let holds = |id: ObjectId| self.contents(id).iter().map(|target| target.object);
        let mut work: Vec<ObjectId> = from.iter().copied().flat_map(holds).collect();
        let mut found = HashSet::new();
        while let Some(id) = work.pop() {
            if found.insert(id) {
                work.extend(holds(id));
            }
        }
        found
    }
    /// Returns the targets of the pointers that the body stored in an object.
    pub fn contents(&self, id: ObjectId) -> &[PointsToTarget] {
        &self.states[id.0 as usize].holds
    }
}

struct Solver<'a> {
    unit: &'a Unit,
    body: &'a Body,
    nest: &'a Nest,
    effects: &'a Effects,
    table: PointsTo,
    work: Vec<Value>,
    queued: Vec<bool>,
    changed_objects: Vec<ObjectId>,
}

impl Solver<'_> {
    // ---- seeds -----------------------------------------------------------------------------

    fn seed(&mut self) {
        for index in 0..self.body.params().len() {
            let param = self.body.params()[index];
            if self.has_pointer_type(param) {
                let id = self.table.id(Object::Param(index as u32));
                self.add(param, id, false);
                if self.table.is_local(id) {
                    self.add_content(id, UNKNOWN, false);
                }
            }
        }
        let body = self.body;
        for op in body.walk(body.root()) {
            for value in body.operands(op) {
                if let Definition::Const(id) = body.values[value].def {
                    self.constant(id);
                }
            }
            self.seed_op(op);
        }
    }

    fn has_pointer_type(&self, value: Value) -> bool {
        let mut work: SmallVec<[_; 4]> = SmallVec::from_slice(&[self.body.ty(value)]);
        while let Some(ty) = work.pop() {
            match self.unit.types.get(ty) {
                Type::Ptr(_) | Type::Opaque(_) => return true,
                Type::Vector { elem, .. } | Type::Array { elem, .. } => work.push(*elem),
                Type::Struct { fields, .. } => work.extend_from_slice(fields),
                _ => {}
            }
        }
        false
    }

    fn constant(&mut self, id: ConstId) {
        if self.table.consts.contains_key(&id) {
            return;
        }
        let mut targets = Targets::new();
        let mut parts = vec![id];
        while let Some(part) = parts.pop() {
            let object = match &self.unit.constant(part).kind {
                ConstKind::Global { global, .. } => Object::Global(*global),
                ConstKind::Func(func) => Object::Code(*func),
                ConstKind::Foreign(_) => Object::Unknown,
                ConstKind::Aggregate(members) => {
                    parts.extend(members);
                    continue;
                }
                _ => continue,
            };
            let object = self.table.id(object);
            if !targets.iter().any(|t| t.object == object) {
                targets.push(PointsToTarget { object, old: false });
            }
        }
        if targets.len() > MAX_OBJECTS {
            targets.clear();
            targets.push(PointsToTarget {
                object: UNKNOWN,
                old: false,
            });
        }
        self.table.consts.insert(id, targets);
    }

    fn seed_op(&mut self, op: Op) {
        match self.body.kind(op) {
            OpKind::Alloca(_) => {
                let id = self.table.id(Object::Stack(op));
                self.add(self.body.result(op), id, false);
            }
            OpKind::Call(_) | OpKind::Invoke(_) => self.call(op),
            OpKind::LandingPad(_) | OpKind::Foreign(_) => self.unknown_results(op),
            OpKind::Cast(CastOp::IntToPtr) => self.unknown_results(op),
            OpKind::Load(_) | OpKind::Store(_) | OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => {
                self.access(op);
            }
            _ => {
                for index in 0..self.body.operand_count(op) {
                    if self.body.as_const(self.body.operand(op, index)).is_some() {
                        self.transfer(op, index);
                    }
                }
            }
        }
    }

    fn unknown_results(&mut self, op: Op) {
        for &result in self.body.results(op) {
            if self.has_pointer_type(result) {
                self.add(result, UNKNOWN, false);
            }
        }
    }

    // ---- sets ------------------------------------------------------------------------------

    fn set(&self, value: Value) -> Targets {
        Targets::from_slice(self.table.targets(self.body, value))
    }

    fn add(&mut self, value: Value, object: ObjectId, old: bool) {
        let outcome = insert(
            &mut self.table.sets[value.index()],
            PointsToTarget { object, old },
        );
        if self.apply_insertion(outcome) && !self.queued[value.index()] {
            self.queued[value.index()] = true;
            self.work.push(value);
        }
    }

    /// Lets the members dropped from a set escape. Returns true if the set changed.
    fn apply_insertion(&mut self, outcome: Insertion) -> bool {
        outcome.dropped.iter().for_each(|t| self.escape(t.object));
        outcome.changed
    }

    /// Adds the targets of `from` to `to`. `across` is the loop whose back edge the value crosses.
    fn copy_targets(&mut self, from: Value, to: Value, across: Option<Op>) {
        for target in self.set(from) {
            let old =
                target.old || across.is_some_and(|lp| self.is_allocated_in(target.object, lp));
            self.add(to, target.object, old);
        }
    }

    fn is_allocated_in(&self, object: ObjectId, lp: Op) -> bool {
        match self.table.object(object) {
            Object::Stack(op) | Object::Heap(op) => self.nest.contains(lp, op),
            _ => false,
        }
    }

    fn is_allocated_in_any_loop(&self, object: ObjectId) -> bool {
        match self.table.object(object) {
            Object::Stack(op) | Object::Heap(op) => self.nest.loop_depth(op) > 0,
            _ => false,
        }
    }

    /// Marks an object as escaped. The worklist of objects propagates the escape to the contents.
    fn escape(&mut self, object: ObjectId) {
        let state = &mut self.table.states[object.0 as usize];
        if object != UNKNOWN && !state.escaped {
            state.escaped = true;
            self.changed_objects.push(object);
        }
    }

    fn escape_value(&mut self, value: Value) {
        for target in self.set(value) {
            self.escape(target.object);
        }
    }

    /// Records that the memory of `object` may hold a pointer into `held`.
    fn add_content(&mut self, object: ObjectId, held: ObjectId, old: bool) {
        if !self.table.is_local(object) {
            return self.escape(held);
        }
        let state = &self.table.states[object.0 as usize];
        if state.escaped || state.leaky {
            self.escape(held);
        }
        let old = old || self.is_allocated_in_any_loop(held);
        let holds = &mut self.table.states[object.0 as usize].holds;
        let outcome = insert(holds, PointsToTarget { object: held, old });
        if self.apply_insertion(outcome) {
            self.changed_objects.push(object);
        }
    }

    /// Records that code that may capture pointers reads the memory of `object`.
    fn escape_contents(&mut self, object: ObjectId) {
        let state = &mut self.table.states[object.0 as usize];
        if !state.leaky {
            state.leaky = true;
            for held in state.holds.clone() {
                self.escape(held.object);
            }
        }
    }

    // ---- propagation -----------------------------------------------------------------------

    fn run(&mut self) {
        loop {
            if let Some(object) = self.changed_objects.pop() {
                self.object_changed(object);
            } else if let Some(value) = self.work.pop() {
                self.queued[value.index()] = false;
                let uses: SmallVec<[_; 8]> = self.body.uses(value).collect();
                for at in uses {
                    self.transfer(at.op, at.index as usize);
                }
            } else {
                // Not an error: both worklists are empty.
                return;
            }
        }
    }

    /// Returns the local objects that a strand writes while another strand may observe the write. A strand
    /// observes writes at an unknown call, which may acquire a lock, and at an ordering access. At these
    /// ops the objects are not private.
    fn thread_shared(&self) -> Vec<ObjectId> {
        let body = self.body;
        let strands = body.walk(body.root()).filter(|op| {
            let kind = body.kind(*op);
            matches!(
                kind,
                OpKind::ParFor { .. } | OpKind::Spawn { .. } | OpKind::Spmd { .. }
            )
        });
        let mut found = Vec::new();
        for strand in strands {
            let inside = || body.op_regions(strand).iter().flat_map(|r| body.walk(*r));
            if !inside().any(|op| self.may_observe_writes(op)) {
                continue;
            }
            let written = inside().flat_map(|op| self.written_by(op));
            found.extend(written.filter(|object| {
                self.table.is_local(*object) && !self.is_allocated_in(*object, strand)
            }));
        }
        found
    }

    fn may_observe_writes(&self, op: Op) -> bool {
        let kind = self.body.kind(op);
        if kind.call_info().is_none() {
            return FunctionEffects::is_ordering(kind);
        }
        let callee = self.effects.of_call(self.unit, self.body, op);
        callee.synchronizes || callee.may_sync_ranks
    }

    /// Returns the objects that an op may write, directly or through a callee.
    fn written_by(&self, op: Op) -> Vec<ObjectId> {
        let pointers: SmallVec<[Value; 4]> = match self.body.kind(op) {
            OpKind::Store(_) => [self.body.operand(op, 1)].into_iter().collect(),
            OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => {
                [self.body.operand(op, 0)].into_iter().collect()
            }
            kind if kind.call_info().is_some() => self.body.operands(op).collect(),
            _ => SmallVec::new(),
        };
        let targets = pointers.into_iter().flat_map(|pointer| self.set(pointer));
        targets.map(|target| target.object).collect()
    }

    fn object_changed(&mut self, object: ObjectId) {
        let state = &self.table.states[object.0 as usize];
        let (readers, copies) = (state.readers.clone(), state.copied_to.clone());
        let holds = state.holds.clone();
        if state.escaped && self.table.is_local(object) {
            for held in &holds {
                self.escape(held.object);
            }
            self.add_content(object, UNKNOWN, false);
        }
        for op in readers {
            self.read_from(op, object);
        }
        for to in copies {
            for held in &holds {
                self.add_content(to, held.object, held.old);
            }
        }
    }

    fn read_from(&mut self, op: Op, object: ObjectId) {
        let result = self.body.result(op);
        let wants = self.has_pointer_type(result);
        if wants && (!self.table.is_local(object) || self.table.escaped(object)) {
            self.add(result, UNKNOWN, false);
        }
        for held in self.table.states[object.0 as usize].holds.clone() {
            if wants || held.object != UNKNOWN {
                self.add(result, held.object, held.old);
            }
        }
    }

    /// Transfers a load, store or atomic access after its pointer's or value's set grew.
    fn access(&mut self, op: Op) {
        let (pointer, stored): (usize, &[usize]) = match self.body.kind(op) {
            OpKind::Load(_) => (0, &[]),
            OpKind::Store(_) => (1, &[0]),
            OpKind::AtomicRmw(..) => (0, &[1]),
            _ => (0, &[2]),
        };
        let reads = !matches!(self.body.kind(op), OpKind::Store(_));
        for target in self.set(self.body.operand(op, pointer)) {
            let object = target.object;
            if reads {
                let state = &mut self.table.states[object.0 as usize];
                if state.known_readers.insert(op) {
                    state.readers.push(op);
                }
                self.read_from(op, object);
            }
            for &index in stored {
                let value = self.body.operand(op, index);
                for held in self.set(value) {
                    self.add_content(object, held.object, held.old);
                }
                if self.is_wide_integer(value) {
                    self.add_content(object, UNKNOWN, false);
                }
            }
        }
    }

    /// Returns true if an integer is wide enough to hold a pointer and is no constant.
    fn is_wide_integer(&self, value: Value) -> bool {
        let ty = self.body.ty(value);
        if self.body.as_const(value).is_some() {
            return false;
        }
        self.unit.types.int_bits(ty).is_some()
            && self.unit.layout.store_bytes(self.unit, ty) >= self.unit.layout.pointer_bytes
    }

    fn transfer(&mut self, op: Op, index: usize) {
        let from = self.body.operand(op, index);
        match self.body.kind(op) {
            OpKind::ICmp(_) | OpKind::FCmp(_) | OpKind::Fence { .. } | OpKind::Return => {}
            OpKind::Addr { .. } if index > 0 => {}
            OpKind::Load(_) | OpKind::Store(_) | OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => {
                self.access(op);
            }
            OpKind::Call(_) | OpKind::Invoke(_) => self.call(op),
            OpKind::Foreign(_) | OpKind::Resume => self.escape_value(from),
            OpKind::Yield | OpKind::Repeat => self.transfer_terminator(op, index),
            OpKind::If | OpKind::Switch(_) => {}
            kind if is_loop(kind) => self.transfer_loop_operand(op, index),
            _ => {
                for result in self.body.results(op).to_vec() {
                    self.copy_targets(from, result, None);
                }
            }
        }
    }

    /// A loop operand flows into the carried value of the first iteration. For a `for` loop with zero
    /// iterations the operand also flows into the result.
    fn transfer_loop_operand(&mut self, op: Op, index: usize) {
        let from = self.body.operand(op, index);
        let params = self.body.region_params(self.region(op)).to_vec();
        match self.body.kind(op) {
            OpKind::Loop { .. } => {
                if let Some(&param) = params.get(index) {
                    self.copy_targets(from, param, None);
                }
            }
            OpKind::For { .. } if index > 0 => {
                if let Some(&param) = params.get(index) {
                    self.copy_targets(from, param, None);
                }
                if let Some(&result) = self.body.results(op).get(index - 1) {
                    self.copy_targets(from, result, None);
                }
            }
            OpKind::ParFor { dims, .. } if index >= *dims as usize => self.escape_value(from),
            _ => {}
        }
    }

    fn region(&self, op: Op) -> Region {
        self.body.op_regions(op)[0]
    }

    /// A terminator operand flows into a result of the enclosing op or into the next carried value.
    fn transfer_terminator(&mut self, op: Op, index: usize) {
        let from = self.body.operand(op, index);
        let Some(region) = self.body.parent(op) else {
            unreachable!("a terminator is in a region");
        };
        let Some(owner) = self.body.owner(region) else {
            unreachable!("the root region ends with a return");
        };
        let results = self.body.results(owner).to_vec();
        let params = self.body.region_params(region).to_vec();
        match self.body.kind(owner) {
            OpKind::Loop { .. } => match index.checked_sub(1) {
                Some(carried) if carried < params.len() => {
                    self.copy_targets(from, params[carried], Some(owner));
                }
                Some(rest) => {
                    if let Some(&result) = results.get(rest - params.len()) {
                        self.copy_targets(from, result, Some(owner));
                    }
                }
                None => {}
            },
            OpKind::For { .. } => {
                if let (Some(&param), Some(&result)) = (params.get(index + 1), results.get(index)) {
                    self.copy_targets(from, param, Some(owner));
                    self.copy_targets(from, result, Some(owner));
                }
            }
            kind if is_loop(kind) => self.escape_value(from),
            _ => {
                if let Some(&result) = results.get(index) {
                    self.copy_targets(from, result, None);
                }
            }
        }
    }

    // ---- calls -----------------------------------------------------------------------------

    fn call(&mut self, op: Op) {
        let effects = self.effects.of_call(self.unit, self.body, op);
        let args = self.unit.call_args(self.body, op);
        let result = match self.body.kind(op) {
            OpKind::Invoke(_) => self.body.region_params(self.region(op)).first().copied(),
            _ => self.body.results(op).first().copied(),
        };
        let carrier = result.filter(|r| self.has_pointer_type(*r) || self.is_wide_integer(*r));
        let result = result.filter(|r| self.has_pointer_type(*r));
        let callee = self.unit.callee(self.body, op);
        let known = callee.is_some_and(|func| self.unit.known(func).is_some());
        for (index, &arg) in args.iter().enumerate() {
            let param = effects.param(index);
            let is_pointer = self.unit.types.is_ptr(self.body.ty(arg));
            if param.captures || !(is_pointer || known) {
                self.escape_value(arg);
            }
            if let Some(carrier) = carrier.filter(|_| param.returned) {
                self.copy_targets(arg, carrier, None);
            }
        }
        for value in self.body.operands(op).skip(1 + args.len()) {
            self.escape_value(value);
        }
        if !self.copy(op, &args) {
            self.transfer_call_contents(&effects, &args);
        }
        if let Some(result) = result {
            if effects.returns_fresh {
                let id = self.table.id(Object::Heap(op));
                if effects.fresh_holds_pointers {
                    self.add_content(id, UNKNOWN, false);
                }
                if effects.fresh_may_be_cyclic {
                    self.escape(id);
                }
                self.add(result, id, false);
            }
            if effects.returns_other {
                self.add(result, UNKNOWN, false);
            }
        }
    }

    /// An argument's contents escape if the callee reads them. If the callee writes the memory, the memory
    /// may hold any unknown pointer afterwards.
    fn transfer_call_contents(
        &mut self,
        effects: &crate::memory::effects::FunctionEffects,
        args: &[Value],
    ) {
        for (index, &arg) in args.iter().enumerate() {
            let param = effects.param(index);
            for target in self.set(arg) {
                if !param.reads.is_nothing() {
                    self.escape_contents(target.object);
                }
                if !param.writes.is_nothing() {
                    self.add_content(target.object, UNKNOWN, false);
                }
            }
        }
    }

    /// A memory copy propagates the contents of the source to the destination. Returns false for all
    /// callees without known effects on contents.
    fn copy(&mut self, op: Op, args: &[Value]) -> bool {
        use MemoryFn::*;
        let known = self.unit.known_callee(self.body, op);
        let (to, from) = match known {
            Some(ExternalFn::Memory(
                Memcpy | MemcpyIntrinsic | Memmove | MemmoveIntrinsic | Mempcpy,
            )) => (0, 1),
            Some(ExternalFn::Memory(Bcopy)) => (1, 0),
            Some(ExternalFn::Memory(
                Memset | MemsetIntrinsic | Bzero | Free | Delete | RustDealloc,
            )) => {
                return true;
            }
            _ => return false,
        };
        let (Some(&to), Some(&from)) = (args.get(to), args.get(from)) else {
            return false;
        };
        for source in self.set(from) {
            for destination in self.set(to) {
                self.copy_between(source.object, destination.object);
            }
        }
        true
    }

    fn copy_between(&mut self, from: ObjectId, to: ObjectId) {
        let source = &mut self.table.states[from.0 as usize];
        if !source.copied_to.contains(&to) {
            source.copied_to.push(to);
        }
        for held in source.holds.clone() {
            self.add_content(to, held.object, held.old);
        }
        if !self.table.is_local(from) || self.table.escaped(from) {
            self.add_content(to, UNKNOWN, false);
        }
    }
}

#[derive(Default)]
struct Insertion {
    changed: bool,
    dropped: Targets,
}

/// The single member of a saturated set: the unknown object, marked old.
const SATURATED: PointsToTarget = PointsToTarget {
    object: UNKNOWN,
    old: true,
};

/// Adds a target to a set. A saturated set drops the target; dropped targets must escape.
fn insert(set: &mut Targets, target: PointsToTarget) -> Insertion {
    let target = PointsToTarget {
        old: target.old && target.object != UNKNOWN,
        ..target
    };
    let mut outcome = Insertion::default();
    if set.first() == Some(&SATURATED) {
        outcome.dropped.push(target);
        return outcome;
    }
    match set.iter_mut().find(|t| t.object == target.object) {
        Some(known) if known.old || !target.old => return outcome,
        Some(known) => known.old = true,
        None => set.push(target),
    }
    outcome.changed = true;
    if set.len() > MAX_OBJECTS {
        outcome.dropped = std::mem::take(set);
        set.push(SATURATED);
    }
    outcome
}

/// Returns true if a global is constant and cannot be interposed at link time.
pub(crate) fn is_constant_memory(unit: &Unit, global: GlobalId) -> bool {
    let global = &unit.globals[global];
    global.constant && global.linkage != Linkage::Interposable
}
