//! Alias-set constraints of ops: builds the alias sets of a call graph.
//!
//! One pass over all bodies unifies pointers according to each op (`unify.rs` has the algorithm).
//! `outside_calls.rs` handles calls of external functions. Byte copies then reach a fixpoint: the memory
//! cells of source and destination point to the same alias sets. Integers of pointer width are tracked like
//! pointers, because an optimised `memcpy` of a pointer is an integer load and store. Unknown code is one
//! alias set that points to itself; all memory reachable from unknown code is merged with it.

use crate::call_graph::{CallGraph, Callee};
use crate::cfg::no_return::NoReturnRegions;
use crate::cfg::value_copies;
use crate::points_to::alias_sets::{
    AliasSet, AliasSetId, AliasSets, CellRef, CellState, CopyBytes, MemoryOrigin, Slots,
};
use crate::points_to::constant_tables;
use crate::points_to::pointer_arith::OffsetConstraint;
use crate::points_to::union_find::{AliasSetUnifier, NodeOffset};
use crate::types::flat_aggregates::FlatTypes;
use crate::types::lattice::CellType;
use gradus_ir::{
    AttrValue, Body, ConstId, ConstKind, Definition, Entity, FuncId, GlobalId, Op, OpKind, TbaaTag,
    TbaaTypeId, Type, TypeId, Unit, Value,
};
use std::collections::{HashMap, HashSet};

/// Computes [`Memory::of`].
pub(crate) fn solve(unit: &Unit, closure: &CallGraph) -> AliasSets {
    let mut solver = Solver::new(unit, closure);
    solver.add_initializers();
    for &func in closure.roots() {
        solver.root(func);
    }
    for (func, body) in closure.bodies(unit) {
        solver.declare_params(func, body);
        let mut at = ConstraintBuilder {
            solver: &mut solver,
            func,
            body,
        };
        let lost = NoReturnRegions::of(unit, body);
        for op in body.walk(body.root()) {
            let handed = matches!(body.kind(op), OpKind::Store(_))
                || matches!(closure.callee(unit, body, op), Some(Callee::Outside(_)));
            // A function that never returns gets no constraints from stores and external calls on no-return
            // paths.
            if !(handed && lost.contains(body, op)) {
                at.op(op);
            }
        }
    }
    solver.solve_fixpoint();
    solver.finish()
}

/// A byte copy, before the alias sets are final.
#[derive(Clone, Copy)]
pub(crate) struct Copy {
    pub at: (FuncId, Op),
    pub to: NodeOffset,
    pub from: NodeOffset,
    pub size_bytes: Option<u64>,
}

/// An indirect call: target of the callee pointer, arguments and result.
#[derive(Clone)]
struct IndirectCall {
    at: (FuncId, Op),
    address: NodeOffset,
    /// Location from which the callee pointer is loaded, if known.
    loaded_from: Option<NodeOffset>,
    signature: TypeId,
    params: Vec<Vec<NodeOffset>>,
    result: Vec<NodeOffset>,
}

/// Policy for unresolved facts: an indirect call without known callees, or a pointer difference between two
/// distinct alias sets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnresolvedPolicy {
    /// Defers the call or difference to a later round.
    Defer,
    /// Assumes distance 0 if the target exists only through the distance itself; otherwise defers.
    AssumeZero,
    /// The callee is unknown code; the distance is any number of bytes.
    Escape,
}

/// The alias sets under construction, with the facts of all bodies.
pub(crate) struct Solver<'a> {
    pub unit: &'a Unit,
    pub closure: &'a CallGraph,
    pub leaves: FlatTypes,
    pub classes: AliasSetUnifier,
    pub slots: HashMap<FuncId, Slots<NodeOffset>>,
    returns: HashMap<FuncId, Vec<Option<NodeOffset>>>,
    globals: HashMap<GlobalId, NodeOffset>,
    functions: HashMap<FuncId, NodeOffset>,
    pub copies: Vec<Copy>,
    /// Pointers moved by pointer differences.
    pub offset_constraints: Vec<OffsetConstraint>,
    unseen: Option<NodeOffset>,
    /// Indirect calls.
    indirect: Vec<IndirectCall>,
    bound_calls: HashSet<(FuncId, Op, FuncId)>,
    /// Type evidence of accesses to single cells.
    pub evidence: Vec<(NodeOffset, CellType)>,
    pub bases: HashSet<(NodeOffset, TbaaTypeId)>,
    pub sources: HashSet<(NodeOffset, TypeId)>,
}

impl<'a> Solver<'a> {
    fn new(unit: &'a Unit, closure: &'a CallGraph) -> Self {
        let leaves = FlatTypes::of(unit);
        let mut slots = HashMap::new();
        let mut returns = HashMap::new();
        for (func, body) in closure.bodies(unit) {
            slots.insert(func, Slots::new(body, &leaves));
            let result = unit.result_type(unit.functions[func].ty);
            let count = result.map_or(0, |ty| leaves.get(ty).len());
            returns.insert(func, vec![None; count]);
        }
        Solver {
            unit,
            closure,
            leaves,
            classes: AliasSetUnifier::default(),
            slots,
            returns,
            globals: HashMap::new(),
            functions: HashMap::new(),
            copies: Vec::new(),
            offset_constraints: Vec::new(),
            unseen: None,
            indirect: Vec::new(),
            bound_calls: HashSet::new(),
            evidence: Vec::new(),
            bases: HashSet::new(),
            sources: HashSet::new(),
        }
    }

    /// Returns true if a leaf of this type may hold an address.
    pub fn holds_address(&self, ty: TypeId) -> bool {
        match self.unit.types.get(self.unit.types.scalar(ty)) {
            Type::Ptr(_) | Type::Array { .. } | Type::Struct { .. } => true,
            Type::Int(bits) => u64::from(*bits) >= self.unit.layout.pointer_bytes * 8,
            _ => false,
        }
    }
    /// Creates an alias set for a new object.
    pub fn object(&mut self, origin: MemoryOrigin) -> NodeOffset {
        let target = self.classes.new_node();
        self.classes.content(target).origins.push(origin);
        target
    }
    /// Returns the alias set of unknown code. The set points to itself at every offset.
    pub fn unseen(&mut self) -> NodeOffset {
        if let Some(target) = self.unseen {
            return target;
        }
        let target = self.object(MemoryOrigin::Unknown);
        self.unseen = Some(target);
        self.classes.content(target).escaped = true;
        self.classes.add_stride(target, 1);
        let points = self.classes.pointee(target);
        self.classes.unify(points, target);
        self.classes
            .cell(target)
            .observed
            .add(&CellType::UNKNOWN_WRITE);
        target
    }
    /// Returns the start of a global variable.
    pub fn global(&mut self, global: GlobalId) -> NodeOffset {
        if let Some(&target) = self.globals.get(&global) {
            return target;
        }
        let target = self.object(MemoryOrigin::Global(global));
        self.globals.insert(global, target);
        target
    }
    /// Returns the address of a function.
    pub fn function(&mut self, func: FuncId) -> NodeOffset {
        if let Some(&target) = self.functions.get(&func) {
            return target;
        }
        let target = self.object(MemoryOrigin::Function(func));
        self.functions.insert(func, target);
        target
    }

    fn root(&mut self, func: FuncId) {
        let Some(body) = self.unit.functions[func].body.as_deref() else {
            // Not an error: the parameters of a function without a body have no uses.
            return;
        };
        for (number, &param) in body.params().iter().enumerate() {
            if self.address_leaves(body.ty(param)).contains(&true) {
                let object = self.object(MemoryOrigin::Argument(func, number as u32));
                self.point_leaves_to(func, body, param, object);
            }
        }
    }
    /// Returns, per leaf of a type, true if the leaf may hold an address.
    fn address_leaves(&self, ty: TypeId) -> Vec<bool> {
        let leaves = self.leaves.get(ty).iter();
        leaves.map(|leaf| self.holds_address(leaf.ty)).collect()
    }
    /// Records that every address leaf of `value` may point to `target`.
    fn point_leaves_to(&mut self, func: FuncId, body: &Body, value: Value, target: NodeOffset) {
        let range = self.slots[&func].range(value);
        for (position, holds) in range.zip(self.address_leaves(body.ty(value))) {
            if holds {
                self.unify_leaf(func, position, target);
            }
        }
    }
    /// Records that the leaf at `position` may point to `target`.
    pub fn unify_leaf(&mut self, func: FuncId, position: usize, target: NodeOffset) {
        let Some(slots) = self.slots.get_mut(&func) else {
            unreachable!("every function of the closure has a table of its values' leaves");
        };
        match *slots.at(position) {
            Some(old) => self.classes.unify(old, target),
            None => *slots.at(position) = Some(target),
        }
    }
    /// Returns the target of the leaf at `position`.
    pub fn slot(&mut self, func: FuncId, position: usize) -> Option<NodeOffset> {
        let slot = self.slots.get_mut(&func)?.at(position);
        match *slot {
            Some(target) => Some(target),
            None => {
                let target = self.classes.new_node();
                *slot = Some(target);
                Some(target)
            }
        }
    }

    /// Returns the targets of the leaves of `func`'s result.
    fn result_of(&mut self, func: FuncId) -> Vec<NodeOffset> {
        let Some(slots) = self.returns.get_mut(&func) else {
            unreachable!("every function of the closure has a table of its result's leaves");
        };
        let classes = &mut self.classes;
        let list = slots.iter_mut();
        list.map(|slot| *slot.get_or_insert_with(|| classes.new_node()))
            .collect()
    }
    /// Creates alias sets for the parameters and the result of an indirect call.
    fn fresh_signature(&mut self, signature: TypeId) -> (Vec<Vec<NodeOffset>>, Vec<NodeOffset>) {
        let fresh = |solver: &mut Self, ty: TypeId| -> Vec<NodeOffset> {
            let count = solver.leaves.get(ty).len();
            (0..count).map(|_| solver.classes.new_node()).collect()
        };
        let params = self.unit.param_types(signature).to_vec();
        let params: Vec<Vec<NodeOffset>> = params.iter().map(|ty| fresh(self, *ty)).collect();
        let result = self.unit.result_type(signature);
        let result = result.map_or(Vec::new(), |ty| fresh(self, ty));
        (params, result)
    }
    /// Unifies a function's parameters and result with the arguments and the result of the call `at`.
    fn bind_call(
        &mut self,
        at: (FuncId, Op),
        func: FuncId,
        args: &[Vec<NodeOffset>],
        result: &[NodeOffset],
    ) {
        let Some(body) = self.unit.functions[func].body.as_deref() else {
            return self.external_indirect_call(at, func);
        };
        for (&param, targets) in body.params().iter().zip(args) {
            let range = self.slots[&func].range(param);
            let holds = self.address_leaves(body.ty(param));
            for ((position, &target), holds) in range.zip(targets).zip(holds) {
                if holds {
                    self.unify_leaf(func, position, target);
                }
            }
        }
        for (own, &seen) in self.result_of(func).into_iter().zip(result) {
            self.classes.unify(own, seen);
        }
    }

    /// Iterates byte copies, indirect calls and callbacks to a fixpoint.
    ///
    /// Each round reads the copies forwards and backwards, which keeps the number of rounds low for long
    /// chains of copies. An unresolved indirect call escapes only after all facts are exhausted, because
    /// the arguments of one virtual call may resolve the next.
    fn solve_fixpoint(&mut self) {
        loop {
            let before = self.classes.changes;
            crate::points_to::memcpy::collapse_copy_cycles(&mut self.classes, &self.copies);
            for &copy in &self.copies {
                crate::points_to::memcpy::unify_cells(&mut self.classes, copy);
            }
            for &copy in self.copies.iter().rev() {
                crate::points_to::memcpy::unify_cells(&mut self.classes, copy);
            }
            self.solve_offsets(UnresolvedPolicy::Defer);
            self.resolve_indirect_calls(UnresolvedPolicy::Defer);
            self.bind_escaped_functions();
            if self.classes.changes == before {
                self.solve_offsets(UnresolvedPolicy::AssumeZero);
            }
            if self.classes.changes == before {
                self.solve_offsets(UnresolvedPolicy::Escape);
                self.resolve_indirect_calls(UnresolvedPolicy::Escape);
            }
            if self.classes.changes == before {
                return;
            }
        }
    }
    /// Binds indirect calls to their possible callees. If the callee may be unknown, all functions of the
    /// type are bound, and arguments and result escape.
    fn resolve_indirect_calls(&mut self, unknown: UnresolvedPolicy) {
        for call in self.indirect.clone() {
            let is_unknown = self.classes.content(call.address).origins.is_empty();
            if is_unknown && unknown == UnresolvedPolicy::Defer {
                continue;
            }
            let (functions, elsewhere) = self.callees(&call);
            for func in functions {
                if self.bound_calls.insert((call.at.0, call.at.1, func)) {
                    self.bind_call(call.at, func, &call.params, &call.result);
                }
            }
            if elsewhere {
                let unseen = self.unseen();
                for &target in call.params.iter().flatten().chain(&call.result) {
                    self.classes.unify(target, unseen);
                }
            }
        }
    }
    /// Returns the possible callees of an indirect call, and true if an unknown callee is possible.
    fn callees(&mut self, call: &IndirectCall) -> (Vec<FuncId>, bool) {
        let content = self.classes.content(call.address);
        let only_functions = content
            .origins
            .iter()
            .all(|o| matches!(o, MemoryOrigin::Function(_)));
        let (escaped, is_empty) = (content.escaped, content.origins.is_empty());
        if is_empty
            && !escaped
            && (call
                .loaded_from
                .is_some_and(|table| self.is_null_slot(table))
                || self.is_only_null(call.address))
        {
            return (Vec::new(), false);
        }
        if escaped || is_empty || !only_functions {
            return (self.closure.candidates(call.signature).to_vec(), true);
        }
        let content = self.classes.content(call.address);
        let mut found: Vec<FuncId> = (content.origins.iter())
            .filter_map(|origin| match origin {
                MemoryOrigin::Function(func) => Some(*func),
                _ => None,
            })
            .filter(|func| self.unit.functions[*func].ty == call.signature)
            .collect();
        found.sort_unstable();
        found.dedup();
        (found, false)
    }
    fn bind_escaped_functions(&mut self) {
        let Some(unseen) = self.unseen else {
            // Not an error: no address escapes to unknown code.
            return;
        };
        let origins = self.classes.content(unseen).origins.clone();
        for origin in origins {
            if let MemoryOrigin::Function(func) = origin {
                self.called_from_unknown(func, unseen);
            }
        }
    }
    /// Records that unknown code may call `func` with pointers to `target` and receive such pointers.
    pub fn called_from_unknown(&mut self, func: FuncId, target: NodeOffset) {
        let Some(body) = self.unit.functions[func].body.as_deref() else {
            // Not an error: a function without a body is itself unknown code.
            return;
        };
        for &param in body.params() {
            self.point_leaves_to(func, body, param, target);
        }
        for own in self.result_of(func) {
            self.classes.unify(own, target);
        }
    }

    fn finish(mut self) -> AliasSets {
        let calls = std::mem::take(&mut self.indirect);
        let callees = (calls.iter())
            .map(|call| (call.at, self.callees(call)))
            .collect();
        let mut number: HashMap<u32, AliasSetId> = HashMap::new();
        let mut roots = Vec::new();
        for node in 0..self.classes.len() as u32 {
            let root = self.classes.find(NodeOffset { node, offset: 0 }).node;
            number.entry(root).or_insert_with(|| {
                roots.push(root);
                AliasSetId::from_index(roots.len() - 1)
            });
        }
        let classes = &mut self.classes;
        let mut place = |target: NodeOffset| {
            let target = classes.find_raw(target);
            CellRef {
                class: number[&target.node],
                offset_bytes: target.offset,
            }
        };
        let mut memory = AliasSets {
            leaves: self.leaves,
            ..AliasSets::default()
        };
        for copy in &self.copies {
            memory.copies.push(CopyBytes {
                at: copy.at,
                to: place(copy.to),
                from: place(copy.from),
                size_bytes: copy.size_bytes,
            });
        }
        memory.callees = callees;
        for (func, slots) in self.slots {
            memory.functions.insert(func, slots.map(&mut place));
        }
        for (func, slots) in self.returns {
            let slots = slots.into_iter().map(|s| s.map(&mut place)).collect();
            memory.returns.insert(func, slots);
        }
        let evidence: Vec<(CellRef, CellType)> = (self.evidence.iter())
            .map(|(target, seen)| (place(*target), *seen))
            .collect();
        let globals = self.globals.into_iter();
        memory.globals = globals.map(|(g, target)| (g, place(target))).collect();
        for root in roots {
            let content = classes.take_content(root);
            let mut class = AliasSet {
                modulus_bytes: content.modulus,
                origins: content.origins,
                escaped: content.escaped,
                ..AliasSet::default()
            };
            class.origins.sort_unstable();
            class.origins.dedup();
            for (offset, cell) in content.cells {
                let points = cell.target.map(|target| {
                    let target = classes.find_raw(target);
                    CellRef {
                        class: number[&target.node],
                        offset_bytes: target.offset,
                    }
                });
                let seen = cell.observed;
                class.words.insert(
                    offset,
                    CellState {
                        target: points,
                        observed: seen,
                    },
                );
            }
            memory.classes.push(class);
        }
        for (place, seen) in evidence {
            let class = &mut memory.classes[place.class.index()];
            class
                .evidence
                .entry(place.offset_bytes)
                .or_default()
                .add(&seen);
        }
        for (target, stride) in std::mem::take(&mut classes.steps) {
            let target = classes.find_raw(target);
            let class = &mut memory.classes[number[&target.node].index()];
            class.strides.push((target.offset, stride));
        }
        for class in &mut memory.classes {
            class.strides.sort_unstable();
            class.strides.dedup();
        }
        memory
    }
}

/// Adds the constraints of the ops of one body.
pub(crate) struct ConstraintBuilder<'r, 'a> {
    pub solver: &'r mut Solver<'a>,
    pub func: FuncId,
    pub body: &'a Body,
}

impl<'a> ConstraintBuilder<'_, 'a> {
    pub fn unit(&self) -> &'a Unit {
        self.solver.unit
    }
    /// Returns the targets of a value's leaves; `None` for leaves without an address.
    pub fn targets(&mut self, value: Value) -> Vec<Option<NodeOffset>> {
        let range = self.solver.slots[&self.func].range(value);
        if let Definition::Const(id) = self.body.values[value].def {
            self.constant(id, range.start);
            return self.solver.slots[&self.func].of(value).to_vec();
        }
        let ty = self.body.ty(value);
        let count = range.len();
        (0..count)
            .map(|leaf| {
                let leaf_ty = self.solver.leaves.get(ty)[leaf].ty;
                match self.solver.holds_address(leaf_ty) {
                    true => self.solver.slot(self.func, range.start + leaf),
                    false => None,
                }
            })
            .collect()
    }
    /// Returns the target of a pointer.
    pub fn target(&mut self, value: Value) -> Option<NodeOffset> {
        self.targets(value).into_iter().flatten().next()
    }
    /// Adds the addresses in a constant. `position` is the position of the constant's first leaf.
    fn constant(&mut self, id: ConstId, position: usize) {
        let mut work = vec![(id, position)];
        while let Some((id, position)) = work.pop() {
            let constant = self.unit().constant(id);
            let target = match &constant.kind {
                ConstKind::Func(func) => self.solver.function(*func),
                ConstKind::Global { global, .. }
                    if constant_tables::is_type_info(self.unit(), *global) =>
                {
                    continue;
                }
                ConstKind::Global { global, offset } => self.solver.global(*global).plus(*offset),
                ConstKind::Foreign(_) if self.solver.holds_address(constant.ty) => {
                    self.solver.unseen()
                }
                ConstKind::Aggregate(parts) => {
                    let split = self.solver.leaves.get(constant.ty).len();
                    let mut at = position;
                    for &part in parts {
                        work.push((part, at));
                        let ty = self.unit().constant(part).ty;
                        let step = self.solver.leaves.get(ty).len();
                        at = (at + step).min(position + split.saturating_sub(1));
                    }
                    continue;
                }
                _ => continue,
            };
            self.solver.unify_leaf(self.func, position, target);
        }
    }
    /// Copies the targets of `from`, starting at leaf `skip_from`, to `to`, starting at leaf `skip_to`.
    fn copy_leaves(&mut self, from: Value, skip_from: usize, to: Value, skip_to: usize) {
        let from = self.targets(from);
        let range = self.solver.slots[&self.func].range(to);
        for (target, position) in from.into_iter().skip(skip_from).zip(range.skip(skip_to)) {
            if let Some(target) = target {
                self.solver.unify_leaf(self.func, position, target);
            }
        }
    }
    /// Copies the targets of `from` to `to`.
    pub fn copy(&mut self, from: Value, to: Value) {
        self.copy_leaves(from, 0, to, 0);
    }
    /// Records that every address leaf of `value` may point to `target`.
    pub fn add_pointee(&mut self, value: Value, target: NodeOffset) {
        self.solver
            .point_leaves_to(self.func, self.body, value, target);
    }
    /// Adds the constraints of a load of `value` from `ptr` or a store of `value` to `ptr`.
    pub fn access(&mut self, op: Op, ptr: Value, value: Value) {
        let Some(place) = self.target(ptr) else {
            // Not an error: the address is null or undefined.
            return;
        };
        let ty = self.body.ty(value);
        let targets = self.targets(value);
        let tag = self.tag(op);
        if let Some(tag) = tag {
            self.solver.note_tbaa_base(place, tag);
        }
        let tagged = tag.map_or(CellType::NOTHING, |t| {
            crate::types::lattice::tbaa_type(self.unit(), t.access)
        });
        for (leaf, target) in targets.into_iter().enumerate() {
            let leaf = self.solver.leaves.get(ty)[leaf];
            let at = place.plus(leaf.offset_bytes as i64);
            let mut seen = self.solver.access_evidence(leaf.ty);
            if seen.is_nothing() {
                seen = tagged;
            }
            self.solver.note_elements(at, leaf.ty, seen);
            let Some(target) = target else { continue };
            let word = self.unit().layout.pointer_bytes;
            let bytes = self.unit().layout.store_bytes(self.unit(), leaf.ty);
            if bytes > 64 * word {
                self.solver.classes.add_stride(at, word as i64);
            }
            for k in 0..(bytes / word).clamp(1, 64) {
                let points = self.solver.classes.pointee(at.plus((k * word) as i64));
                self.solver.classes.unify(points, target);
            }
        }
    }
    /// Returns the TBAA tag of an access.
    fn tag(&self, op: Op) -> Option<TbaaTag> {
        let meta = self.body.ops[op].meta.map(|id| self.unit().meta(id));
        meta.and_then(|m| m.tbaa)
    }

    fn op(&mut self, op: Op) {
        let body = self.body;
        value_copies::value_copies(body, op, |from, to| self.copy(from, to));
        match body.kind(op) {
            OpKind::Alloca(info) => {
                let object = self.solver.object(MemoryOrigin::Alloca(self.func, op));
                self.solver.declare(object, info.ty);
                if body.as_int(self.unit(), body.operand(op, 0)) != Some(1) {
                    let bytes = self.unit().layout.size_bytes(self.unit(), info.ty);
                    self.solver.classes.add_stride(object, bytes as i64);
                }
                self.add_pointee(body.result(op), object);
            }
            OpKind::Load(_) => self.access(op, body.operand(op, 0), body.result(op)),
            OpKind::Store(_) => self.access(op, body.operand(op, 1), body.operand(op, 0)),
            OpKind::AtomicRmw(..) => {
                self.access(op, body.operand(op, 0), body.operand(op, 1));
                self.access(op, body.operand(op, 0), body.result(op));
            }
            OpKind::CmpXchg { .. } => {
                self.access(op, body.operand(op, 0), body.operand(op, 2));
                self.copy(body.operand(op, 1), body.result(op));
                self.copy(body.operand(op, 2), body.result(op));
            }
            OpKind::Addr { .. } => self.addr(op),
            OpKind::Cast(cast) => self.cast(op, *cast),
            OpKind::Binary(binary) => self.binary(op, *binary),
            OpKind::ExtractValue(path) => {
                let from = body.operand(op, 0);
                let range = self.solver.leaves.member(self.unit(), body.ty(from), path);
                self.copy_leaves(from, range.start, body.result(op), 0);
            }
            OpKind::InsertValue(path) => {
                let (whole, part) = (body.operand(op, 0), body.operand(op, 1));
                let range = self.solver.leaves.member(self.unit(), body.ty(whole), path);
                self.copy(whole, body.result(op));
                self.copy_leaves(part, 0, body.result(op), range.start);
            }
            OpKind::ExtractElement | OpKind::InsertElement | OpKind::Shuffle(_) => {
                for value in body.operands(op) {
                    self.copy(value, body.result(op));
                }
            }
            OpKind::Call(_) | OpKind::Invoke(_) => self.call(op),
            OpKind::LandingPad(_) => {
                let object = self.solver.unseen();
                self.add_pointee(body.result(op), object);
            }
            OpKind::Return => self.return_(op),
            OpKind::Foreign(_) => self.escape_operands(op, 0),
            _ => {}
        }
    }
    /// Lets the operands of an op from index `skip` on, and its results, escape to unknown code.
    pub fn escape_operands(&mut self, op: Op, skip: usize) {
        let unseen = self.solver.unseen();
        for value in self.body.operands(op).skip(skip) {
            for target in self.targets(value).into_iter().flatten() {
                self.solver.classes.unify(target, unseen);
            }
        }
        for &value in self.body.results(op) {
            self.add_pointee(value, unseen);
        }
    }
    fn return_(&mut self, op: Op) {
        if self.body.operand_count(op) == 0 {
            return;
        }
        let own = self.solver.result_of(self.func);
        let value = self.body.operand(op, 0);
        for (target, own) in self.targets(value).into_iter().zip(own) {
            if let Some(target) = target {
                self.solver.classes.unify(target, own);
            }
        }
    }
    /// Returns the result of a call: the op's result or the parameter of an invoke's region 0.
    pub fn call_result(&self, op: Op) -> Option<Value> {
        match self.body.kind(op) {
            OpKind::Invoke(_) => {
                let region = self.body.op_regions(op)[0];
                self.body.region_params(region).first().copied()
            }
            _ => self.body.results(op).first().copied(),
        }
    }
    fn call(&mut self, op: Op) {
        let Some(callee) = self.solver.closure.callee(self.unit(), self.body, op) else {
            unreachable!("only calls are read as calls");
        };
        match callee {
            Callee::Inside(func) => {
                let Some(callee) = self.unit().functions[func].body.as_deref() else {
                    unreachable!("the functions inside the closure have bodies");
                };
                let result = self.solver.result_of(func);
                let params: Vec<Vec<Option<NodeOffset>>> = callee
                    .params()
                    .iter()
                    .map(|&p| self.param_targets(func, callee, p))
                    .collect();
                self.bind_arguments(op, &params, &result);
            }
            Callee::Indirect(signature) => {
                let (params, result) = self.solver.fresh_signature(signature);
                let callee = self.body.operand(op, 0);
                if let Some(address) = self.target(callee) {
                    let table =
                        self.body
                            .def_op(callee)
                            .and_then(|load| match self.body.kind(load) {
                                OpKind::Load(_) => self.target(self.body.operand(load, 0)),
                                _ => None,
                            });
                    self.solver.indirect.push(IndirectCall {
                        at: (self.func, op),
                        address,
                        loaded_from: table,
                        signature,
                        params: params.clone(),
                        result: result.clone(),
                    });
                }
                let params: Vec<Vec<Option<NodeOffset>>> = params
                    .into_iter()
                    .map(|list| list.into_iter().map(Some).collect())
                    .collect();
                self.bind_arguments(op, &params, &result);
            }
            Callee::Outside(func) => self.external_call(op, func),
            Callee::Foreign => self.escape_operands(op, 1),
        }
    }
    fn param_targets(
        &mut self,
        func: FuncId,
        body: &Body,
        param: Value,
    ) -> Vec<Option<NodeOffset>> {
        let range = self.solver.slots[&func].range(param);
        let ty = body.ty(param);
        range
            .enumerate()
            .map(|(leaf, position)| {
                let leaf_ty = self.solver.leaves.get(ty)[leaf].ty;
                match self.solver.holds_address(leaf_ty) {
                    true => self.solver.slot(func, position),
                    false => None,
                }
            })
            .collect()
    }
    /// Binds a call's arguments and result to the callee. A `byval` argument is a byte copy.
    fn bind_arguments(
        &mut self,
        op: Op,
        params: &[Vec<Option<NodeOffset>>],
        result: &[NodeOffset],
    ) {
        let args = self.unit().call_args(self.body, op);
        for (index, &arg) in args.iter().enumerate() {
            let Some(param) = params.get(index) else {
                for target in self.targets(arg).into_iter().flatten() {
                    let unseen = self.solver.unseen();
                    self.solver.classes.unify(target, unseen);
                }
                continue;
            };
            let targets = self.targets(arg);
            if let Some(ty) = self.byval_type(op, index) {
                if let (Some(Some(from)), Some(Some(to))) = (targets.first(), param.first()) {
                    let size_bytes = Some(self.unit().layout.size_bytes(self.unit(), ty));
                    self.solver.copies.push(Copy {
                        at: (self.func, op),
                        to: *to,
                        from: *from,
                        size_bytes,
                    });
                }
                continue;
            }
            for (target, param) in targets.into_iter().zip(param) {
                if let (Some(target), Some(param)) = (target, *param) {
                    self.solver.classes.unify(target, param);
                }
            }
        }
        if let Some(value) = self.call_result(op) {
            let range = self.solver.slots[&self.func].range(value);
            for (position, &target) in range.zip(result) {
                self.solver.unify_leaf(self.func, position, target);
            }
        }
    }
    /// Returns the pointee type of a `byval` argument.
    fn byval_type(&self, op: Op, index: usize) -> Option<TypeId> {
        let attrs = self.body.kind(op).call_info()?.attrs?;
        match self.unit().attrs(attrs).param(index, "byval")? {
            AttrValue::Type(ty) => Some(*ty),
            _ => None,
        }
    }
}
