//! Verifier rules of regions and of region-owning ops: V001, V005 to V009, V028.

use super::walk::Context;
use super::{Rule, Verifier};
use crate::{Op, OpKind, ReduceOp, Region, TailKind, Type, TypeId, Value};

impl Verifier<'_> {
    /// Checks a region's terminator and parameters.
    pub(super) fn region(&mut self, region: Region, context: Context) {
        let body = self.body;
        self.region_params(region);
        let owner = body.owner(region);
        let Some(last) = body.last(region) else {
            return match owner {
                Some(op) => self.fail(Rule::LastTerminates, op, "a region of the op is empty"),
                None => self.fail_without_op(Rule::LastTerminates, "the body is empty"),
            };
        };
        for op in body.ops_in(region) {
            if body.kind(op).is_terminator() != (op == last) {
                let text = if op == last {
                    "the last op of the region is not a terminator"
                } else {
                    "a terminator precedes the last op of the region"
                };
                return self.fail(Rule::LastTerminates, op, text);
            }
        }
        self.terminator(last, owner, context);
    }

    fn terminator(&mut self, last: Op, owner: Option<Op>, context: Context) {
        let owner_kind = owner.map(|op| self.body.kind(op));
        match (self.body.kind(last), owner, owner_kind) {
            (OpKind::Unreachable | OpKind::Resume, ..) => {}
            (OpKind::Return, None, _) => self.returned(last),
            (OpKind::Return, Some(_), _) => self.nested_return(last, context),
            (OpKind::Repeat, Some(owner), Some(OpKind::Loop { .. })) => self.repeat(last, owner),
            (OpKind::Yield, Some(owner), Some(kind)) if !matches!(kind, OpKind::Loop { .. }) => {
                let expected = self.yielded(owner, kind, self.body.parent(last));
                let own = self.types(self.body.operands(last));
                self.require(
                    own == expected,
                    Rule::YieldFits,
                    last,
                    "the types of the values differ from the expected types",
                );
            }
            _ => self.fail(
                Rule::TerminatorFits,
                last,
                "the terminator does not match the op that owns the region",
            ),
        }
    }

    fn types(&self, values: impl Iterator<Item = Value>) -> Vec<TypeId> {
        values.map(|v| self.body.ty(v)).collect()
    }

    /// Returns the types that a region of `owner` yields.
    fn yielded(&self, owner: Op, kind: &OpKind, region: Option<Region>) -> Vec<TypeId> {
        use OpKind::*;
        let body = self.body;
        match kind {
            ParFor { .. } if body.op_regions(owner).first().copied() != region => {
                self.combiner_type(owner, region).into_iter().collect()
            }
            If
            | Switch(_)
            | Invoke(_)
            | Foreign(_)
            | ParFor { .. }
            | Scope
            | Single { .. }
            | Critical(_) => self.types(body.results(owner).iter().copied()),
            For { .. } => self.types(body.operands(owner).skip(1)),
            _ => Vec::new(),
        }
    }

    /// Returns the value type of a combiner region of a `par.for`.
    fn combiner_type(&self, owner: Op, region: Option<Region>) -> Option<TypeId> {
        let body = self.body;
        let OpKind::ParFor { reductions, .. } = body.kind(owner) else {
            return None;
        };
        let mut regions = body.op_regions(owner).iter().skip(1);
        let own = regions.position(|r| Some(*r) == region)?;
        let custom = |(i, op): (usize, &ReduceOp)| (*op == ReduceOp::Custom).then_some(i);
        let index = reductions.iter().enumerate().filter_map(custom).nth(own)?;
        body.results(owner).get(index).map(|r| body.ty(*r))
    }

    fn repeat(&mut self, last: Op, owner: Op) {
        let body = self.body;
        let mut expected = self.types(body.operands(owner));
        expected.extend(self.types(body.results(owner).iter().copied()));
        let own = self.types(body.operands(last));
        let fits = own.first().is_some_and(|ty| self.is_bool(*ty)) && own[1..] == expected;
        self.require(
            fits,
            Rule::RepeatFits,
            last,
            "expected an `i1`, the carried values and the results",
        );
    }

    fn returned(&mut self, op: Op) {
        let own = self.types(self.body.operands(op));
        let fits = match self.result {
            Some(ty) if self.unit.types.is_void(ty) => own.is_empty(),
            Some(ty) => own == [ty],
            None => true,
        };
        self.require(
            fits,
            Rule::ReturnFits,
            op,
            "the value does not have the function's result type",
        );
    }

    fn nested_return(&mut self, op: Op, context: Context) {
        let before = self.body.prev(op).map(|call| self.body.kind(call));
        let tail = match before {
            Some(OpKind::Call(info)) => info.tail == TailKind::MustTail,
            _ => false,
        };
        let fits = tail && !context.parallel;
        self.require(
            fits,
            Rule::ReturnFits,
            op,
            "a nested `return` needs a preceding `musttail` call and no enclosing parallel op",
        );
        self.returned(op);
    }

    // ---- parameters ------------------------------------------------------------------------

    fn region_params(&mut self, region: Region) {
        let body = self.body;
        let Some(owner) = body.owner(region) else {
            // Not an error: the body's own parameters are compared with the function's type.
            return;
        };
        let own = self.types(body.region_params(region).iter().copied());
        if own.iter().any(|ty| !self.has_size(*ty)) {
            self.fail(
                Rule::ValueType,
                owner,
                "a region parameter has type `void` or a function type",
            );
        }
        let first = body.op_regions(owner).first() == Some(&region);
        let Some(expected) = self.expected_params(owner, first, region) else {
            // Not an error: any parameters fit.
            return;
        };
        self.require(
            own == expected,
            Rule::RegionParams,
            owner,
            "the region parameters have other types",
        );
    }

    /// Returns the expected parameter types of a region; `None` if any parameters are legal.
    fn expected_params(&self, owner: Op, first: bool, region: Region) -> Option<Vec<TypeId>> {
        use OpKind::*;
        let operands = self.types(self.body.operands(owner));
        Some(match self.body.kind(owner) {
            Loop { .. } | For { .. } => operands,
            ShareFor { .. } => operands.get(..1)?.to_vec(),
            ParFor { .. } if !first => {
                let ty = self.combiner_type(owner, Some(region));
                ty.map_or_else(Vec::new, |ty| vec![ty; 2])
            }
            ParFor { dims, .. } => operands.get(..*dims as usize)?.to_vec(),
            Spmd { .. } => operands.repeat(2),
            Invoke(info) if first => {
                let result = self.unit.result_type(info.signature)?;
                match self.unit.types.is_void(result) {
                    true => Vec::new(),
                    false => vec![result],
                }
            }
            Foreign(_) => return None,
            _ => Vec::new(),
        })
    }

    // ---- conditions ------------------------------------------------------------------------

    pub(super) fn structure(&mut self, op: Op, kind: &OpKind) {
        let fits = match kind {
            OpKind::If => self.is_bool(self.operand_type(op, 0)),
            OpKind::Switch(cases) => match *self.ty(self.operand_type(op, 0)) {
                Type::Int(bits) => bits >= 128 || cases.iter().all(|case| case >> bits == 0),
                _ => false,
            },
            OpKind::For { .. } => self.is_scalar_int(self.operand_type(op, 0)),
            _ => true,
        };
        self.require(
            fits,
            Rule::Condition,
            op,
            "the first operand has the wrong type, or cannot represent a case",
        );
    }
}
