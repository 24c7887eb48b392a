//! Reversal of calls.

use crate::analysis::forward_value::Node;
use crate::emit::builder::Lanes;
use crate::reverse::reverse_pass::ReversePass;
use crate::shadow::indirect_calls;
use crate::variant::{Mode, ParamRole, ResultRole, Signature, Variant};
use gradus_ir::externals::{ExternalFn, ReduceFn};
use gradus_ir::{Body, FuncId, Op, OpKind, Type, Value};
use std::collections::HashMap;

impl ReversePass<'_, '_, '_, '_> {
    pub(super) fn undo_call(&mut self, op: Op) {
        let callee = self.out.unit.callee(self.facts.body, op);
        match callee.and_then(|f| self.out.unit.known(f)) {
            Some(ExternalFn::Memory(function)) => self.undo_memory_call(op, function),
            Some(ExternalFn::Math(_) | ExternalFn::MathOut(_) | ExternalFn::Complex(_)) => {
                self.undo_by_rule(op)
            }
            Some(ExternalFn::Masked(_)) => self.undo_masked(op),
            Some(ExternalFn::Reduce(function)) => self.undo_reduce(op, function),
            _ if self.facts.pointer_targets(op).is_some() => self.undo_pointer_call(op),
            _ => {
                if let Some(callee) = callee.filter(|_| self.facts.is_active_call(op)) {
                    self.undo_active_call(op, callee);
                } else if self.facts.is_unhandled_call(op) {
                    let finding = self.facts.unhandled_call_error(self.out.unit, op);
                    self.findings.push(finding);
                }
            }
        }
    }

    /// Reverses a sum over lanes: every lane receives the adjoint of the sum.
    fn undo_reduce(&mut self, op: Op, function: ReduceFn) {
        let body = self.facts.body;
        let result = body.result(op);
        if !self.facts.is_active(result) {
            return;
        }
        if function != ReduceFn::Fadd {
            return self.refuse(op);
        }
        let Some(seeds) = self.take_adjoint(result) else {
            // Not an error: no adjoint was accumulated, and it is zero.
            return;
        };
        let args = self.out.unit.call_args(body, op);
        let (start, vector) = (args[0], args[1]);
        self.accumulate_adjoint(start, seeds.clone());
        let ty = body.ty(vector);
        let Type::Vector { len, .. } = *self.out.unit.types.get(ty) else {
            return self.ice(
                Some(op),
                "the operand of a vector reduction is not a vector",
            );
        };
        let mut lanes = Lanes::new();
        for &seed in &seeds {
            let zero = self.out.build().zero(ty);
            let first = self.out.build().i64(0);
            let kind = OpKind::InsertElement;
            let single = self.out.build().value(kind, &[zero, seed, first], ty);
            let all = OpKind::Shuffle(vec![0; len as usize].into());
            lanes.push(self.out.build().value(all, &[single, zero], ty));
        }
        self.accumulate_adjoint(vector, lanes);
    }

    /// Emits the call of a derivative. If the primal call may have thrown into a handler that continues, the
    /// derivative is called only if the primal call returned normally.
    fn call_if_returned_normally(&mut self, op: Op, func: FuncId, args: &[Value]) -> Option<Value> {
        let Some(came_back) = normal_return_flag(self.facts.body, op) else {
            let call = self.out.build().call(func, args);
            return self.out.body.results(call).first().copied();
        };
        let condition = self.primal(came_back);
        let ty = self.out.unit.functions[func].ty;
        let results: Vec<_> = (self.out.unit.result_type(ty).into_iter())
            .filter(|ty| !self.out.unit.types.is_void(*ty))
            .collect();
        let (made, yes, no) = self.out.build().if_(condition, &results);
        let outside = std::mem::replace(&mut self.out.insertion_point, (yes, None));
        let call = self.out.build().call(func, args);
        let given = self.out.body.results(call).to_vec();
        self.out.build().yield_(&given);
        self.out.insertion_point = (no, None);
        let nothing: Vec<Value> = (results.iter())
            .map(|ty| self.out.build().zero(*ty))
            .collect();
        self.out.build().yield_(&nothing);
        self.out.insertion_point = outside;
        self.out.body.results(made).first().copied()
    }

    /// Reverses a call of a function with a body: calls the reverse pass of the callee with the callee's
    /// tape, or the callee's whole derivative if its inputs are unchanged.
    fn undo_active_call(&mut self, op: Op, callee: FuncId) {
        let mode = match self.facts.is_recomputed_call(op) {
            true => Mode::Combined,
            false => Mode::Reverse,
        };
        let mut variant = self
            .facts
            .call_variant(self.out.unit, op, callee, mode, self.variant);
        variant.primal_result = variant.primal_result && mode == Mode::Reverse;
        variant.concurrent = self.may_conflict();
        let signature = variant.signature(self.out.unit);
        let func = variant.declare(self.out.unit);
        self.needs.push(variant.clone());
        if self.is_in_two_way_fork() {
            self.needs.push(Variant {
                concurrent: self.variant.concurrent,
                ..variant
            });
        }
        self.undo_with(op, func, &[], &signature);
    }

    /// Reverses an indirect call by the dispatch function of reverse passes.
    fn undo_pointer_call(&mut self, op: Op) {
        let mode = Mode::Reverse;
        let found =
            indirect_calls::dispatch_function(self.out.unit, self.facts, op, mode, self.variant);
        let Some(found) = found else {
            return self.refuse(op);
        };
        self.needs.extend(found.needs);
        let address = self.primal(self.facts.body.operand(op, 0));
        self.undo_with(op, found.func, &[address], &found.signature);
    }

    /// Calls the function that reverses a call, with `first` and the arguments of the signature. Returned
    /// adjoints are accumulated into the call's arguments.
    fn undo_with(&mut self, op: Op, func: FuncId, first: &[Value], signature: &Signature) {
        let body = self.facts.body;
        let actual = self.out.unit.call_args(body, op);
        let seeds = match self.facts.call_result(op) {
            Some(result) if self.facts.is_active(result) => {
                let lanes = self.adjoint(result);
                self.adjoints.remove(&result);
                lanes
            }
            _ => Lanes::new(),
        };
        let mut args: Vec<Value> = first.to_vec();
        for (role, ty) in &signature.params {
            args.push(match *role {
                ParamRole::Primal(number) => self.primal(actual[number]),
                ParamRole::Shadow(number, lane) => self.shadows_of(actual[number])[lane as usize],
                ParamRole::Cotangent(lane) => match seeds.get(lane as usize) {
                    Some(seed) => *seed,
                    None => self.out.build().zero(*ty),
                },
                ParamRole::Tape => self.recall(Node::CalleeTape(op))[0],
            });
        }
        let whole = self.call_if_returned_normally(op, func, &args);
        let mut adjoints: HashMap<usize, Lanes> = HashMap::new();
        for (number, (role, _)) in signature.results.iter().enumerate() {
            let ResultRole::Adjoint(arg, _) = role else {
                continue;
            };
            let Some(whole) = whole else {
                self.ice(Some(op), "a derivative that returns adjoints has no result");
                break;
            };
            let part = match signature.results.len() {
                1 => whole,
                _ => self.out.build().extract(whole, &[number as u32]),
            };
            adjoints.entry(*arg).or_default().push(part);
        }
        for (number, &argument) in actual.iter().enumerate() {
            if let Some(lanes) = adjoints.remove(&number) {
                self.accumulate_adjoint(argument, lanes);
            }
        }
    }
}

/// Returns the result of an invoke that indicates normal return, if the handler continues.
pub(crate) fn normal_return_flag(body: &Body, op: Op) -> Option<Value> {
    let end = |number: usize| {
        let region = *body.op_regions(op).get(number)?;
        body.yield_of(region)
    };
    let (normal, handler) = (end(0)?, end(1)?);
    let is_bit = |at: usize| {
        let (yes, no) = (body.operand(normal, at), body.operand(handler, at));
        body.ty(yes) == body.ty(no) && body.as_const(yes).is_some() && body.as_const(no).is_some()
    };
    let at = (0..body.results(op).len()).find(|at| is_bit(*at))?;
    Some(body.results(op)[at])
}
