//! Constraints of calls with a known body and of indirect calls.

use crate::call_graph::Callee;
use crate::points_to::inclusion::build::{BodyBuilder, Builder};
use crate::points_to::inclusion::constraints::{ByteCopy, Constraint, IndirectCall, NodeId};
use crate::points_to::inclusion::objects::Context;
use gradus_ir::{AttrValue, FuncId, Op, TypeId};

impl Builder<'_> {
    /// Builds the constraints of each indirect call for each external function of its type. The solver adds them when
    /// the function is a callee.
    pub(super) fn add_guarded_calls(&mut self) {
        for (number, context) in self.call_contexts.clone().into_iter().enumerate() {
            let call = self.program.calls[number].clone();
            let (func, op) = call.at;
            let Some(body) = self.body(func) else {
                unreachable!("the functions of the call graph have bodies");
            };
            for &callee in self.closure.candidates(call.signature) {
                if self.closure.contains(callee) {
                    continue;
                }
                let others = std::mem::take(&mut self.program.constraints);
                let copies = self.program.copies.len();
                let mut reader = BodyBuilder {
                    builder: self,
                    context,
                    func,
                    body,
                };
                reader.external_call(op, callee);
                let own = std::mem::replace(&mut self.program.constraints, others);
                self.program.guarded.insert((number, callee), own);
                for copy in &mut self.program.copies[copies..] {
                    copy.guard = Some((number, callee));
                }
            }
        }
    }
}

impl BodyBuilder<'_, '_> {
    pub(super) fn call(&mut self, op: Op) {
        let unit = self.builder.unit;
        let Some(callee) = self.builder.closure.callee(unit, self.body, op) else {
            unreachable!("the op is a call");
        };
        match callee {
            Callee::Inside(func) => {
                let Some(context) = self.builder.instances.callee(self.context, op) else {
                    unreachable!("a direct call has an instance of its callee");
                };
                self.direct_call(op, func, context);
            }
            Callee::Indirect(signature) => self.indirect_call(op, signature),
            Callee::Outside(func) => self.external_call(op, func),
            Callee::Foreign => self.escape_operands(op, 1),
        }
    }
    fn direct_call(&mut self, op: Op, func: FuncId, context: Context) {
        let unit = self.builder.unit;
        let Some(callee) = self.builder.body(func) else {
            unreachable!("the functions of the call graph have bodies");
        };
        let args = unit.call_args(self.body, op);
        for (index, &arg) in args.iter().enumerate() {
            let Some(&param) = callee.params().get(index) else {
                let variadic = self.builder.variadic[context.0 as usize];
                for from in self.nodes(arg).into_iter().flatten() {
                    self.builder.program.copy(variadic, from);
                }
                continue;
            };
            let from = self.nodes(arg);
            let mut inner = BodyBuilder {
                builder: self.builder,
                context,
                func,
                body: callee,
            };
            let to = inner.nodes(param);
            if let Some(ty) = self.byval_type(op, index) {
                let size = unit.layout.size_bytes(unit, ty);
                if let (Some(Some(from)), Some(Some(to))) = (from.first(), to.first()) {
                    self.copy_bytes(op, *to, *from, Some(size));
                }
                continue;
            }
            self.copy_nodes(&to, &from);
        }
        if let Some(value) = self.body.call_result(op) {
            let from = self.builder.returns[context.0 as usize].clone();
            let to = self.nodes(value);
            self.copy_nodes(&to, &from);
        }
    }
    fn copy_nodes(&mut self, to: &[Option<NodeId>], from: &[Option<NodeId>]) {
        for (to, from) in to.iter().zip(from) {
            if let (Some(to), Some(from)) = (to, from) {
                self.builder.program.copy(*to, *from);
            }
        }
    }
    /// Adds a byte copy.
    pub fn copy_bytes(&mut self, op: Op, to: NodeId, from: NodeId, size_bytes: Option<u64>) {
        let copy = ByteCopy {
            at: (self.func, op),
            to,
            from,
            size_bytes,
            guard: None,
        };
        self.builder.program.copies.push(copy);
        self.builder.program.push(Constraint::CopyBytes {
            to,
            from,
            size_bytes,
        });
    }
    fn indirect_call(&mut self, op: Op, signature: TypeId) {
        let unit = self.builder.unit;
        let Some(callee) = self.node(self.body.operand(op, 0)) else {
            unreachable!("the callee of an indirect call is a pointer");
        };
        let args = unit.call_args(self.body, op);
        let args = args.into_iter().map(|arg| self.nodes(arg)).collect();
        let result = self
            .body
            .call_result(op)
            .map_or(Vec::new(), |v| self.nodes(v));
        let call = self.builder.program.calls.len();
        self.builder.call_contexts.push(self.context);
        self.builder.program.calls.push(IndirectCall {
            at: (self.func, op),
            signature,
            args,
            result,
        });
        let constraint = Constraint::Call { callee, call };
        self.builder.program.push(constraint);
    }
    /// Returns the pointee type of a `byval` argument.
    fn byval_type(&self, op: Op, index: usize) -> Option<TypeId> {
        let attrs = self.body.kind(op).call_info()?.attrs?;
        match self.builder.unit.attrs(attrs).param(index, "byval")? {
            AttrValue::Type(ty) => Some(*ty),
            _ => None,
        }
    }
}
