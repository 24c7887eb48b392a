//! Rules of parallel ops: V028 to V031.

use super::walk::Context;
use super::{Check, Rule};
use crate::{Op, OpKind, RmwOp, TypeId};

impl Check<'_> {
    pub(super) fn parallel(&mut self, op: Op, kind: &OpKind, context: Context) {
        use OpKind::*;
        match kind {
            Spawn | Sync => {
                self.require(
                    context.in_scope,
                    Rule::TaskPlace,
                    op,
                    "there is no scope around it",
                );
            }
            Barrier(_) | Single { .. } => self.rank_place(op, context),
            ShareFor { .. } => {
                self.rank_place(op, context);
                self.extents(op, 1);
            }
            ParFor { dims, reductions } => {
                let dims = *dims as usize;
                if dims == 0 || dims + reductions.len() != self.body.operand_count(op) {
                    return self.fail(Rule::ParallelShape, op, "its operands do not fit");
                }
                self.extents(op, dims);
                let fits = (dims..)
                    .zip(reductions)
                    .all(|(i, r)| self.reduces(*r, self.operand_type(op, i)));
                self.require(
                    fits,
                    Rule::ParallelShape,
                    op,
                    "a reduction does not fit its type",
                );
            }
            Spmd { dims, .. } => {
                if *dims as usize != self.body.operand_count(op) {
                    return self.fail(Rule::ParallelShape, op, "its operands do not fit");
                }
                self.extents(op, *dims as usize);
            }
            _ => {}
        }
    }

    fn rank_place(&mut self, op: Op, context: Context) {
        self.require(
            !context.divided,
            Rule::RankPlace,
            op,
            "only some ranks come here",
        );
    }

    fn extents(&mut self, op: Op, count: usize) {
        let fits = (0..count).all(|i| self.is_scalar_int(self.operand_type(op, i)));
        self.require(fits, Rule::Condition, op, "an extent is no integer");
    }

    fn reduces(&self, reduction: RmwOp, ty: TypeId) -> bool {
        use RmwOp::*;
        match reduction {
            FAdd | FMax | FMin | FMaximum | FMinimum => self.is_float(ty),
            Add | And | Or | Xor | Max | Min | UMax | UMin => self.is_int(ty),
            Xchg | Sub | Nand | FSub | UIncWrap | UDecWrap | USubCond | USubSat => false,
        }
    }
}
