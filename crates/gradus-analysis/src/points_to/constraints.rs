//! Alias-set constraints of ops: builds the alias sets of a call graph.
//!
//! One pass over all bodies unifies pointers according to each op (`union_find.rs` has the algorithm).
//! `external_calls.rs` handles calls of external functions, and `alias_set_solver.rs` the fixpoint. Integers of
//! pointer width are tracked like pointers, because an optimised `memcpy` of a pointer is an integer load and store.

use crate::call_graph::Callee;
use crate::points_to::alias_set_solver::{Copy, IndirectCall, Solver};
use crate::points_to::alias_sets::MemoryOrigin;
use crate::points_to::constant_tables;
use crate::points_to::union_find::NodeOffset;
use crate::types::lattice::CellType;
use gradus_ir::{
    AttrValue, Body, ConstId, ConstKind, Definition, FuncId, Op, OpKind, TbaaTag, TypeId, Unit,
    Value,
};

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

    pub(super) fn op(&mut self, op: Op) {
        let body = self.body;
        body.value_flows(op, |from, to| self.copy(from, to));
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
    fn call(&mut self, op: Op) {
        let Some(callee) = self.solver.closure.callee(self.unit(), self.body, op) else {
            unreachable!("the op is a call");
        };
        match callee {
            Callee::Inside(func) => {
                let Some(callee) = self.unit().functions[func].body.as_deref() else {
                    unreachable!("the functions of the call graph have bodies");
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
        if let Some(value) = self.body.call_result(op) {
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
