//! The verifier's walk over a body: each op once, in program order, with the enclosing context.
//!
//! A value is visible while the defining region is open and after the defining op has finished. One flag per
//! value and one per region therefore decide each use in constant time.

use super::{Rule, Verifier};
use crate::result_types::implied;
use crate::{Definition, Entity, Op, OpKind, Region, TypeId, Value, parallel_ops, scalar_ops};

/// The context of a region, as required by the rules.
#[derive(Clone, Copy, Default)]
pub(super) struct Context {
    /// True inside a `scope`.
    pub in_scope: bool,
    /// True inside a region that does not run on all ranks of the nearest `spmd` together.
    pub rank_divergent: bool,
    /// True inside any parallel op.
    pub parallel: bool,
}

impl Context {
    fn inside(self, kind: &OpKind) -> Self {
        use OpKind::*;
        let mut inner = self;
        inner.parallel |= kind.is_parallel();
        match kind {
            Scope => inner.in_scope = true,
            Spmd { .. } => inner.rank_divergent = false,
            ParFor { .. } | ShareFor { .. } | Single { .. } | Critical(_) | Spawn { .. } => {
                inner.rank_divergent = true;
            }
            _ => {}
        }
        inner
    }
}

enum Step {
    Op(Op),
    Enter(Region),
    Leave(Region),
    Finish(Op),
}

struct Visibility {
    /// Values with a finished definition.
    values: Vec<bool>,
    /// The open regions, on the path from the root.
    open: Vec<bool>,
    constants: Vec<bool>,
}

/// Checks all ops of the body.
pub(super) fn run(check: &mut Verifier) {
    let body = check.body;
    let mut seen = Visibility {
        values: vec![false; body.values.len()],
        open: vec![false; body.regions().count()],
        constants: vec![false; body.values.len()],
    };
    let mut contexts = vec![Context::default()];
    let mut stack = vec![Step::Enter(body.root())];
    while let Some(step) = stack.pop() {
        match step {
            Step::Enter(region) => {
                seen.open[region.index()] = true;
                if let Some(owner) = body.owner(region) {
                    let context = contexts[contexts.len() - 1];
                    contexts.push(context.inside(body.kind(owner)));
                }
                for param in body.region_params(region) {
                    seen.values[param.index()] = true;
                }
                stack.push(Step::Leave(region));
                check.region(region, contexts[contexts.len() - 1]);
                stack.extend(body.first(region).map(Step::Op));
            }
            Step::Leave(region) => {
                seen.open[region.index()] = false;
                contexts.pop();
            }
            Step::Op(op) => {
                check.op(op, contexts[contexts.len() - 1], &mut seen);
                stack.extend(body.next(op).map(Step::Op));
                stack.push(Step::Finish(op));
                stack.extend(body.op_regions(op).iter().rev().map(|r| Step::Enter(*r)));
            }
            Step::Finish(op) => {
                for result in body.results(op) {
                    seen.values[result.index()] = true;
                }
            }
        }
    }
}

impl Verifier<'_> {
    fn op(&mut self, op: Op, context: Context, seen: &mut Visibility) {
        let body = self.body;
        for (index, value) in body.operands(op).enumerate() {
            self.operand(op, index, value, seen);
        }
        if !self.counts_fit(op) {
            return;
        }
        let kind = body.kind(op);
        self.result_types_fit(op, kind);
        self.flags_fit(op, kind);
        use OpKind::*;
        match kind {
            scalar_ops!() | Freeze => self.scalar(op, kind),
            Alloca(_)
            | Load(_)
            | Store(_)
            | Addr { .. }
            | AtomicRmw(..)
            | CmpXchg { .. }
            | Fence { .. } => self.memory(op, kind),
            Call(_) | Invoke(_) | LandingPad(_) => self.call(op, kind),
            If | Switch(_) | Loop { .. } | For { .. } => self.structure(op, kind),
            parallel_ops!() => self.parallel(op, kind, context),
            Yield | Repeat | Return | Unreachable | Resume | Foreign(_) => {}
        }
    }

    fn operand(&mut self, op: Op, index: usize, value: Value, seen: &mut Visibility) {
        let body = self.body;
        if let Definition::Const(id) = body.values[value].def {
            if !std::mem::replace(&mut seen.constants[value.index()], true) {
                let constant = self.unit.constant(id);
                let fits = self.constant_fits(constant) && constant.ty == body.ty(value);
                self.require(
                    fits,
                    Rule::ConstantFits,
                    op,
                    &format!("operand {index} is a constant that does not match the type"),
                );
            }
            return;
        }
        let open = body.region_of(value).is_some_and(|r| seen.open[r.index()]);
        if !open || !seen.values[value.index()] {
            self.fail(
                Rule::Visible,
                op,
                format!("operand {index} has no visible definition"),
            );
        }
    }

    /// Checks that the numbers of operands, results and regions match the op's row.
    fn counts_fit(&mut self, op: Op) -> bool {
        let body = self.body;
        let kind = body.kind(op);
        let row = kind.row();
        let counts = [
            (
                Rule::OperandCount,
                row.operands,
                body.operand_count(op),
                "operands",
            ),
            (
                Rule::ResultCount,
                row.results,
                body.results(op).len(),
                "results",
            ),
            (
                Rule::RegionCount,
                row.regions,
                body.op_regions(op).len(),
                "regions",
            ),
        ];
        let mut fits = true;
        for (rule, count, own, what) in counts {
            if !count.admits(own) {
                let asked = count.describe();
                self.fail(
                    rule,
                    op,
                    format!("the op has {own} {what}, expected {asked}"),
                );
                fits = false;
            }
        }
        if let OpKind::Switch(cases) = kind {
            let mut sorted: Vec<u128> = cases.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            if sorted.len() != cases.len() || body.op_regions(op).len() != cases.len() + 1 {
                self.fail(
                    Rule::RegionCount,
                    op,
                    format!(
                        "the {} cases are not distinct, or do not match the regions",
                        cases.len()
                    ),
                );
                fits = false;
            }
        }
        fits
    }

    fn result_types_fit(&mut self, op: Op, kind: &OpKind) {
        let body = self.body;
        let own: Vec<TypeId> = body.results(op).iter().map(|v| body.ty(*v)).collect();
        if own.iter().any(|ty| !self.has_size(*ty)) {
            self.fail(
                Rule::ValueType,
                op,
                "a result has type `void` or a function type",
            );
        }
        let operands: Vec<TypeId> = body.operands(op).map(|v| body.ty(v)).collect();
        let Some(types) = implied(self.unit, kind, &operands) else {
            // Not an error: the operands do not imply the results.
            return;
        };
        let fits = types.len() == own.len()
            && std::iter::zip(&types, &own).all(|(a, b)| a.is(self.unit, *b));
        // An alloca may have a pointer to any address space.
        let pointer =
            matches!(kind, OpKind::Alloca(_)) && own.iter().all(|ty| self.is_scalar_ptr(*ty));
        self.require(
            fits || pointer,
            Rule::ResultType,
            op,
            "the result types differ from the implied types",
        );
    }
}
