//! Verifier rules of parallel ops: V028 to V031.

use super::walk::Context;
use super::{Rule, Verifier};
use crate::{Op, OpKind, ReduceOp, TypeId};

impl Verifier<'_> {
    pub(super) fn parallel(&mut self, op: Op, kind: &OpKind, context: Context) {
        use OpKind::*;
        match kind {
            Spawn { .. } | Sync => {
                self.require(
                    context.in_scope,
                    Rule::TaskPlace,
                    op,
                    "no enclosing op is a `scope`",
                );
                if let Spawn {
                    has_condition: when,
                    has_final: serial,
                } = kind
                {
                    self.conditions(op, usize::from(*when) + usize::from(*serial));
                }
            }
            Barrier(_) => self.check_rank_context(op, context),
            Single { copy, .. } => {
                self.check_rank_context(op, context);
                self.single(op, *copy);
            }
            ShareFor { chunked, .. } => {
                self.check_rank_context(op, context);
                let count = 1 + usize::from(*chunked);
                if count != self.body.operand_count(op) {
                    return self.fail(
                        Rule::ParallelShape,
                        op,
                        "expected an extent, and a chunk size if the loop is chunked",
                    );
                }
                self.extents(op, count);
            }
            ParFor {
                dims, reductions, ..
            } => {
                let dims = *dims as usize;
                if dims == 0 || dims + reductions.len() != self.body.operand_count(op) {
                    return self.fail(
                        Rule::ParallelShape,
                        op,
                        "expected one operand per dimension and per reduction",
                    );
                }
                let custom = reductions.iter().filter(|r| **r == ReduceOp::Custom);
                if custom.count() + 1 != self.body.op_regions(op).len() {
                    return self.fail(
                        Rule::ParallelShape,
                        op,
                        "expected a body and one combiner region per custom reduction",
                    );
                }
                self.extents(op, dims);
                let fits = (dims..)
                    .zip(reductions)
                    .all(|(i, r)| self.reduces(*r, self.operand_type(op, i)));
                self.require(
                    fits,
                    Rule::ParallelShape,
                    op,
                    "a reduction operator does not support the reduced type",
                );
            }
            Spmd { dims, .. } => {
                if *dims as usize != self.body.operand_count(op) {
                    return self.fail(
                        Rule::ParallelShape,
                        op,
                        "expected one operand per dimension",
                    );
                }
                self.extents(op, *dims as usize);
            }
            _ => {}
        }
    }

    fn check_rank_context(&mut self, op: Op, context: Context) {
        self.require(
            !context.rank_divergent,
            Rule::RankPlace,
            op,
            "an enclosing op runs on some ranks only",
        );
    }

    fn extents(&mut self, op: Op, count: usize) {
        let fits = (0..count).all(|i| self.is_scalar_int(self.operand_type(op, i)));
        self.require(fits, Rule::Condition, op, "an extent is not an integer");
    }

    /// Checks that a task's operands are `count` values of type `i1`.
    fn conditions(&mut self, op: Op, count: usize) {
        if count != self.body.operand_count(op) {
            return self.fail(
                Rule::ParallelShape,
                op,
                "expected one operand for each of `when` and `serial`",
            );
        }
        let fits = (0..count).all(|i| self.is_bool(self.operand_type(op, i)));
        self.require(fits, Rule::Condition, op, "a condition is not of type `i1`");
    }

    /// Checks a `single`: the operands, results of the ranks that skip the region, have the types of the
    /// results.
    fn single(&mut self, op: Op, copy: bool) {
        let body = self.body;
        let fits = match copy {
            true => body.operand_count(op) == 0,
            false => {
                let own = body.results(op).iter().map(|r| body.ty(*r));
                own.eq(body.operands(op).map(|v| body.ty(v)))
            }
        };
        let detail =
            "the operand types differ from the result types, or a `single copy` has operands";
        self.require(fits, Rule::ParallelShape, op, detail);
    }

    fn reduces(&self, reduction: ReduceOp, ty: TypeId) -> bool {
        use ReduceOp::*;
        match reduction {
            FAdd | FMul | FMax | FMin | FMaximum | FMinimum => self.is_float(ty),
            Add | Mul | And | Or | Xor | Max | Min | UMax | UMin => self.is_int(ty),
            Custom => true,
        }
    }
}
