//! Invokes in the forward pass: emitted as calls, with their handler.
//!
//! The input form is that of `gradus_edit::normalize_invokes`: the first region only yields the call's result.
//! Handlers are executed in the forward pass alone. A handler that leaves the function has no reverse pass,
//! and a handler that continues does its work after the invoke.

use super::{ForwardPass, Task};
use gradus_ir::{CallInfo, FuncId, Op, OpKind, TypeId, Value};

impl ForwardPass<'_, '_, '_, '_> {
    pub(super) fn invoke(&mut self, op: Op) {
        if !gradus_edit::is_normalized(self.out.unit, self.facts.body, op) {
            let finding = self.facts.unhandled_region_error(self.out.unit, op);
            return self.findings.push(finding);
        }
        if self.facts.may_unwind_after_write(op) {
            let finding = self.facts.torn_write_error(self.out.unit, op);
            self.findings.push(finding);
        }
        self.call(op);
        if self.handler.is_none() {
            self.define_results_of_nounwind(op);
        }
    }

    /// Defines the results of an invoke whose call was replaced by code that cannot throw.
    fn define_results_of_nounwind(&mut self, op: Op) {
        let body = self.facts.body;
        let Some(end) = body.last(body.op_regions(op)[0]) else {
            return self.ice(Some(op), "a region of an invoke has no terminator");
        };
        for (number, &result) in body.results(op).iter().enumerate() {
            if !self.values.contains_key(&result) {
                let value = self.value(body.operand(end, number));
                self.values.insert(result, value);
            }
        }
    }

    /// Clones the invoke on the derivative's values.
    pub(super) fn clone_invoke(&mut self, op: Op) -> Op {
        let body = self.facts.body;
        let operands: Vec<Value> = body.operands(op).map(|v| self.value(v)).collect();
        let given = body.call_result(op).map(|v| body.ty(v));
        let new = self.make_invoke(op, body.kind(op).clone(), &operands, given);
        self.out.body.ops[new].flags = body.ops[op].flags;
        self.out.body.ops[new].name = body.ops[op].name.clone();
        if let Some(result) = self.facts.call_result(op) {
            let value = self.out.body.results(new)[0];
            self.values.insert(result, value);
        }
        new
    }

    /// Emits a call or invoke in place of the primal's call or invoke. The first result is the call's result.
    pub(super) fn call_or_invoke(&mut self, op: Op, func: FuncId, args: &[Value]) -> Op {
        if !matches!(self.facts.body.kind(op), OpKind::Invoke(_)) {
            return self.out.build().call(func, args);
        }
        let ty = self.out.unit.functions[func].ty;
        let given = self.out.unit.result_type(ty);
        let given = given.filter(|ty| !self.out.unit.types.is_void(*ty));
        let callee = self.out.build().func(func);
        let mut operands = vec![callee];
        operands.extend(args);
        let kind = OpKind::Invoke(Box::new(CallInfo::plain(ty)));
        self.make_invoke(op, kind, &operands, given)
    }

    /// Emits an invoke. The first result is the call's result, the others correspond to the results of the
    /// primal's invoke. [`Self::open_handler`] fills the handler.
    fn make_invoke(
        &mut self,
        op: Op,
        kind: OpKind,
        operands: &[Value],
        given: Option<TypeId>,
    ) -> Op {
        let body = self.facts.body;
        let others = self.results_except_call(op);
        let returns = body.yield_of(body.op_regions(op)[0]);
        let result = given.filter(|_| returns.is_some());
        let mut types: Vec<TypeId> = result.into_iter().collect();
        types.extend(others.iter().map(|at| body.ty(body.results(op)[*at])));
        let new = self.out.build().op(kind, operands, &types, 2);
        let first = self.out.body.op_regions(new)[0];
        let param = given.map(|ty| self.out.body.add_param(first, ty));
        let outside = std::mem::replace(&mut self.out.insertion_point, (first, None));
        match returns {
            Some(end) => {
                let mut values: Vec<Value> = param.into_iter().collect();
                for &at in &others {
                    values.push(self.value(body.operand(end, at)));
                }
                self.out.build().yield_(&values);
            }
            None => {
                self.out.build().op(OpKind::Unreachable, &[], &[], 0);
            }
        }
        self.out.insertion_point = outside;
        let skip = usize::from(result.is_some());
        let results = self.out.body.results(new).to_vec();
        for (&at, &value) in others.iter().zip(results.get(skip..).unwrap_or(&[])) {
            self.values.insert(body.results(op)[at], value);
        }
        self.handler = Some(new);
        new
    }

    /// Returns the indices of an invoke's results other than the call's result.
    fn results_except_call(&self, op: Op) -> Vec<usize> {
        let given = self.facts.call_result(op);
        let results = self.facts.body.results(op);
        (0..results.len())
            .filter(|at| Some(results[*at]) != given)
            .collect()
    }

    /// Starts emission of the handler of the last emitted invoke.
    pub(super) fn open_handler(&mut self, op: Op) {
        let Some(new) = self.handler.take() else {
            // Not an error: the call was replaced by code that cannot throw.
            return;
        };
        let body = self.facts.body;
        let inside = self.out.body.op_regions(new)[1];
        let outside = std::mem::replace(&mut self.out.insertion_point, (inside, None));
        self.tasks.push(Task::LeaveHandler(outside));
        self.tasks
            .push(Task::Ops(body.first(body.op_regions(op)[1])));
    }

    /// Returns true if a `yield` ends a handler that continues after the invoke.
    pub(super) fn is_handler_end(&self, end: Op) -> bool {
        let body = self.facts.body;
        let owner = body.parent_op(end);
        owner.is_some_and(|owner| matches!(body.kind(owner), OpKind::Invoke(_)))
    }

    /// Emits the end of a handler; the call's result becomes zero.
    pub(super) fn end_handler(&mut self, end: Op) {
        let body = self.facts.body;
        let region = body.parent(end);
        let Some(op) = region.and_then(|region| body.owner(region)) else {
            return self.ice(
                Some(end),
                "the terminator of a handler is outside of an invoke",
            );
        };
        let new = self.out.body.owner(self.out.insertion_point.0);
        let Some(new) = new else {
            return self.ice(
                Some(end),
                "a handler of the derivative is outside of an invoke",
            );
        };
        let others = self.results_except_call(op);
        let mut values: Vec<Value> = Vec::new();
        let results = self.out.body.results(new);
        if results.len() > others.len() {
            let ty = self.out.body.ty(results[0]);
            values.push(self.out.build().zero(ty));
        }
        for at in others {
            values.push(self.value(body.operand(end, at)));
        }
        self.out.build().yield_(&values);
    }
}
