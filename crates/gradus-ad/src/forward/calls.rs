//! Calls in the forward pass.

use super::ForwardPass;
use crate::analysis::forward_value::Node;
use crate::calculus::math_call_with_result;
use crate::emit::builder::Lanes;
use crate::emit::masked_ops::match_masked_access;
use crate::shadow::indirect_calls;
use crate::variant::{Mode, ParamRole, ResultRole};
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn, MathFn, ReduceFn};
use gradus_ir::{FuncId, Op, OpKind, Value};

impl ForwardPass<'_, '_, '_, '_> {
    pub(super) fn call(&mut self, op: Op) {
        let body = self.facts.body;
        let callee = self.out.unit.callee(body, op);
        let known = callee.and_then(|f| self.out.unit.known(f));
        match known {
            Some(ExternalFn::Memory(function)) => self.memory_call(op, function),
            Some(ExternalFn::Marker(
                CompilerIntrinsic::LifetimeStart | CompilerIntrinsic::LifetimeEnd,
            )) => {}
            // The reverse pass still accesses the stack memory.
            Some(ExternalFn::Marker(CompilerIntrinsic::StackRestore)) if !self.forward_mode() => {}
            Some(ExternalFn::Math(function)) => {
                self.math(op, function);
                self.emit_shadow_and_tangent(op);
            }
            Some(ExternalFn::MathOut(_) | ExternalFn::Complex(_)) => {
                self.clone_plain(op);
                self.emit_shadow_and_tangent(op);
            }
            Some(ExternalFn::Masked(_)) => self.masked(op),
            Some(ExternalFn::Reduce(_)) => {
                self.clone_plain(op);
                self.reduce_beside(op);
            }
            _ if self.facts.pointer_targets(op).is_some() => self.pointer_call(op),
            _ => match callee.filter(|_| self.facts.is_active_call(op)) {
                Some(callee) => self.active_call(op, callee),
                None => {
                    if self.facts.is_unhandled_call(op) {
                        self.refuse_call(op);
                    }
                    if self.facts.is_null_call(op) {
                        let stop =
                            indirect_calls::unknown_callee_stop(self.out.unit, self.facts, op);
                        self.out.build().call(stop, &[]);
                    }
                    self.clone_plain(op);
                    self.clone_result_companion(op);
                }
            },
        }
    }

    /// Emits a math function. A derivative does not report through errno and calls the intrinsic, if any,
    /// which lets LLVM move, merge and vectorise the call. If the program itself reads errno, the C library's
    /// function remains.
    fn math(&mut self, op: Op, function: MathFn) {
        let callee = self.out.unit.callee(self.facts.body, op);
        let own = callee.is_some_and(|f| self.out.unit.is_user_declared(f));
        if function.intrinsic().is_none() || own || self.out.unit.takes_errno_address() {
            self.clone_plain(op);
            return;
        }
        let actual = self.out.unit.call_args(self.facts.body, op);
        let args: Vec<Value> = actual.iter().map(|v| self.value(*v)).collect();
        let mut builder = self.out.build();
        builder.fast_math = self.facts.body.ops[op].flags;
        let ty = self.facts.body.ty(self.facts.body.result(op));
        let value = math_call_with_result(&mut builder, function, &args, ty);
        self.values
            .extend(self.facts.call_result(op).map(|result| (result, value)));
    }

    fn refuse_call(&mut self, op: Op) {
        let finding = self.facts.unhandled_call_error(self.out.unit, op);
        self.findings.push(finding);
    }

    /// Emits a masked load or store, and the corresponding access to shadow memory.
    fn masked(&mut self, op: Op) {
        self.clone_plain(op);
        let body = self.facts.body;
        let Some(access) = match_masked_access(self.out.unit, body, op) else {
            return self.refuse(op);
        };
        let loads = body.results(op).first().copied();
        let stores_shadow =
            self.forward_mode() || self.facts.holds_pointer(self.out.unit, access.data);
        let clears =
            loads.is_none() && !stores_shadow && self.clears_shadow_pointer(op, access.data);
        let wanted = match loads {
            Some(result) => self.has_companion(result),
            None => self.facts.has_shadow(access.ptr) && (stores_shadow || clears),
        };
        if !wanted {
            return;
        }
        let data = match clears {
            true => {
                let zero = self.out.build().zero(body.ty(access.data));
                Lanes::from_elem(zero, self.facts.width)
            }
            false => self.companion(access.data),
        };
        let mut lanes = Lanes::new();
        if let (Some(result), false) = (loads, self.facts.has_shadow(access.ptr)) {
            if self.facts.has_shadow(result) {
                return self.refuse(op);
            }
            // The loaded lanes have zero tangents; the pass-through lanes may have tangents.
            let mask = self.value(access.mask);
            for &value in &data {
                let zero = self.out.build().zero(body.ty(result));
                lanes.push(self.out.build().select(mask, zero, value));
            }
            self.companions.insert(result, lanes);
            return;
        }
        let addresses = self.companion(access.ptr);
        for (lane, (&address, &value)) in addresses.iter().zip(&data).enumerate() {
            let mut operands: Vec<Value> = body.operands(op).map(|v| self.value(v)).collect();
            operands[access.ptr_index] = address;
            operands[access.data_index] = value;
            let types: Vec<_> = body.results(op).iter().map(|v| body.ty(*v)).collect();
            let real = self.activity_test(access.ptr, lane);
            let kind = body.kind(op).clone();
            let Some(&ty) = types.first() else {
                self.when(real, |pass| {
                    pass.out.build().op(kind, &operands, &[], 0);
                });
                continue;
            };
            let read = self.out.build().value(kind, &operands, ty);
            lanes.push(match real {
                None => read,
                Some(real) => {
                    let mask = self.value(access.mask);
                    let zero = self.out.build().zero(ty);
                    let inactive = self.out.build().select(mask, zero, value);
                    self.out.build().select(real, read, inactive)
                }
            });
        }
        if let Some(result) = loads {
            self.companions.insert(result, lanes);
        }
    }

    /// Emits the shadow or tangent of the result of a call that is cloned unchanged. A call that returns its
    /// pointer argument has the shadow of the argument. A pointer with run-time activity is its own shadow.
    /// Any other shadow or tangent cannot be derived from such a call, which is refused.
    fn clone_result_companion(&mut self, op: Op) {
        let body = self.facts.body;
        let callee = self.out.unit.callee(body, op);
        let known = callee.and_then(|f| self.out.unit.known(f));
        for &result in body.results(op) {
            if !self.has_companion(result) {
                continue;
            }
            let lanes = if matches!(known, Some(ExternalFn::Marker(m)) if m.returns_argument()) {
                let viewed = body.operand(op, 1);
                self.companion(viewed)
            } else if known == Some(ExternalFn::Marker(CompilerIntrinsic::ThreadlocalAddress)) {
                self.thread_local_shadow(op)
            } else {
                if !self.facts.shadow_may_be_primal(result) {
                    self.refuse_call(op);
                }
                Lanes::from_elem(self.value(result), self.facts.width)
            };
            self.companions.insert(result, lanes);
        }
    }

    /// Emits the current thread's shadow of a thread-local variable.
    fn thread_local_shadow(&mut self, op: Op) -> Lanes {
        let body = self.facts.body;
        let variables = self.companion(body.operand(op, 1));
        let ty = body.ty(body.result(op));
        let callee = self.value(body.operand(op, 0));
        let kind = body.kind(op).clone();
        (variables.iter())
            .map(|variable| {
                self.out
                    .build()
                    .value(kind.clone(), &[callee, *variable], ty)
            })
            .collect()
    }

    fn reduce_beside(&mut self, op: Op) {
        let body = self.facts.body;
        let result = body.result(op);
        if !self.has_companion(result) {
            return;
        }
        if self.has_dependency_sets() {
            return self.unite_vector_lanes(op);
        }
        let callee = self.out.unit.callee(body, op);
        let sum =
            callee.filter(|f| self.out.unit.known(*f) == Some(ExternalFn::Reduce(ReduceFn::Fadd)));
        let Some(func) = sum.filter(|_| self.facts.is_active(result)) else {
            return self.tangent(op);
        };
        // A sum over lanes is linear: the tangent is the sum of the tangents.
        let args = self.out.unit.call_args(body, op);
        let mut sums = Lanes::new();
        for lane in 0..self.facts.width {
            let tangents: Vec<Value> = args.iter().map(|v| self.tangent_of(*v, lane)).collect();
            let call = self.out.build().call(func, &tangents);
            sums.push(self.out.body.result(call));
        }
        self.companions.insert(result, sums);
    }

    /// Returns the tangent of a value for one batch element, zero for an inactive value.
    pub(super) fn tangent_of(&mut self, value: Value, lane: usize) -> Value {
        match self.facts.is_active(value) {
            true => self.companion(value)[lane],
            false => {
                let ty = self.facts.body.ty(value);
                self.out.build().zero(ty)
            }
        }
    }

    /// Replaces an active call of a function with a body by a call of its derivative.
    fn active_call(&mut self, op: Op, callee: FuncId) {
        if !self.forward_mode() && self.facts.is_recomputed_call(op) {
            let copy = self.clone_plain(op);
            if self.facts.is_read_only_call(op) {
                self.allow_deletion(copy);
            }
            return;
        }
        let mode = match self.forward_mode() {
            true => Mode::Forward,
            false => Mode::Augmented,
        };
        let variant = self
            .facts
            .call_variant(self.out.unit, op, callee, mode, self.variant);
        let signature = variant.signature(self.out.unit);
        let func = variant.declare(self.out.unit);
        self.needs.push(variant.clone());
        let actual = self.out.unit.call_args(self.facts.body, op);
        let mut args: Vec<Value> = Vec::new();
        for (role, _) in &signature.params {
            match *role {
                ParamRole::Primal(number) => args.push(self.value(actual[number])),
                ParamRole::Shadow(number, lane) => {
                    let lanes = self.companion(actual[number]);
                    args.push(lanes[lane as usize]);
                }
                ParamRole::Cotangent(_) | ParamRole::Tape => {}
            }
        }
        if variant.takes_further_args(self.out.unit) {
            let further = actual.iter().skip(variant.args.len());
            args.extend(further.map(|v| self.value(*v)).collect::<Vec<Value>>());
        }
        let call = self.call_or_invoke(op, func, &args);
        self.call_results(op, call, &signature.results);
    }

    /// Lets LLVM delete a call whose result is unused, although the call is not known to return. The reverse
    /// pass calls the whole derivative, which repeats the primal's work. Without the deletion, each level of
    /// a recursion would execute all deeper levels.
    fn allow_deletion(&mut self, call: Op) {
        let OpKind::Call(info) = &mut self.out.body.ops[call].kind else {
            // Not an error: an invoke has a handler, and remains.
            return;
        };
        let stated = info.attrs.map(|id| self.out.unit.attrs(id).clone());
        let reading = stated.unwrap_or_default().restricted_to_reads();
        info.attrs = Some(self.out.unit.intern_attrs(reading));
    }

    /// Replaces an indirect call by a call of the dispatch function.
    fn pointer_call(&mut self, op: Op) {
        let mode = match self.forward_mode() {
            true => Mode::Forward,
            false => Mode::Augmented,
        };
        let found =
            indirect_calls::dispatch_function(self.out.unit, self.facts, op, mode, self.variant);
        let Some(found) = found else {
            return self.refuse_call(op);
        };
        self.needs.extend(found.needs);
        let actual = self.out.unit.call_args(self.facts.body, op);
        let mut args = vec![self.value(self.facts.body.operand(op, 0))];
        for (role, _) in &found.signature.params {
            match *role {
                ParamRole::Primal(number) => args.push(self.value(actual[number])),
                ParamRole::Shadow(number, lane) => {
                    let lanes = self.companion(actual[number]);
                    args.push(lanes[lane as usize]);
                }
                ParamRole::Cotangent(_) | ParamRole::Tape => {}
            }
        }
        let call = self.call_or_invoke(op, found.func, &args);
        self.call_results(op, call, &found.signature.results);
    }

    fn call_results(&mut self, op: Op, call: Op, roles: &[(ResultRole, gradus_ir::TypeId)]) {
        let result = self.facts.call_result(op);
        let mut companions = Lanes::new();
        for (number, (role, _)) in roles.iter().enumerate() {
            let whole = self.out.body.result(call);
            let part = match roles.len() {
                1 => whole,
                _ => self.out.build().extract(whole, &[number as u32]),
            };
            match role {
                ResultRole::Tape => {
                    self.save_forward_value(Node::CalleeTape(op), Lanes::from_elem(part, 1));
                }
                ResultRole::Primal => {
                    if let Some(result) = result {
                        self.values.insert(result, part);
                    }
                }
                ResultRole::Shadow(_) => companions.push(part),
                ResultRole::Adjoint(..) => {}
            }
        }
        if companions.is_empty() {
            // Not an error: the result has no shadow or tangent.
            return;
        }
        match result.filter(|_| companions.len() == self.facts.width) {
            Some(result) => {
                self.companions.insert(result, companions);
            }
            None => self.ice(
                Some(op),
                "a derivative returns too few shadows or tangents, or the call has no result",
            ),
        }
    }
}
