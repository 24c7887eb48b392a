//! Verifier rules of calls, invokes and landing pads: V024 to V026.

use super::{Rule, Verifier};
use crate::{CallInfo, Op, OpKind, TailKind, Type, Value};

impl Verifier<'_> {
    pub(super) fn call(&mut self, op: Op, kind: &OpKind) {
        match kind {
            OpKind::Call(info) => {
                self.signature(op, info);
                if info.tail == TailKind::MustTail {
                    self.must_tail(op);
                }
            }
            OpKind::Invoke(info) => {
                self.signature(op, info);
                if info.tail == TailKind::MustTail {
                    self.fail(Rule::MustTail, op, "an invoke cannot be a `musttail` call");
                }
                let pad = self.body.op_regions(op)[1];
                let first = self.body.first(pad).map(|first| self.body.kind(first));
                let fits = matches!(first, Some(OpKind::LandingPad(_)));
                self.require(
                    fits,
                    Rule::Pad,
                    op,
                    "the unwind region does not begin with a landing pad",
                );
            }
            _ => self.check_pad_position(op),
        }
    }

    fn signature(&mut self, op: Op, info: &CallInfo) {
        let Type::Func {
            params, variadic, ..
        } = self.ty(info.signature)
        else {
            return self.fail(Rule::Signature, op, "the signature is not a function type");
        };
        let bundled: usize = info.bundles.iter().map(|(_, n)| *n as usize).sum();
        let Some(args) = (self.body.operand_count(op) - 1).checked_sub(bundled) else {
            return self.fail(
                Rule::Signature,
                op,
                "the operand bundles claim more operands than the op has",
            );
        };
        let callee = self.is_scalar_ptr(self.operand_type(op, 0));
        let count = args == params.len() || (*variadic && args > params.len());
        let fits = callee
            && count
            && params
                .iter()
                .enumerate()
                .all(|(i, ty)| self.operand_type(op, i + 1) == *ty);
        self.require(
            fits,
            Rule::Signature,
            op,
            "the callee is not a pointer, or the arguments do not match the signature",
        );
    }

    fn must_tail(&mut self, op: Op) {
        let body = self.body;
        let returns = body.next(op).is_some_and(|next| {
            let values: Vec<Value> = body.operands(next).collect();
            *body.kind(next) == OpKind::Return && values == body.results(op)
        });
        self.require(
            returns,
            Rule::MustTail,
            op,
            "the next op is not a `return` of the call's result",
        );
    }

    fn check_pad_position(&mut self, op: Op) {
        let body = self.body;
        let region = body.parent(op);
        let owner = region.and_then(|r| body.owner(r));
        let fits = owner.is_some_and(|owner| {
            matches!(body.kind(owner), OpKind::Invoke(_))
                && body.op_regions(owner).get(1).copied() == region
                && body.prev(op).is_none()
        });
        self.require(
            fits,
            Rule::Pad,
            op,
            "the landing pad is not the first op of an unwind region",
        );
    }
}
