//! Teams with a stated number of ranks (`num_threads(4)`).
//!
//! A program may rely on the stated number: each of four ranks processes a quarter of an array. The serial
//! projection of such a team is therefore all ranks, one after the other, a legal run if no rank waits for
//! another. The projection is a parallel loop over the ranks.

use crate::thread_count::order_dependence::may_order_iterations;
use gradus_ir::{Body, Builder, CastOp, FuncId, IntPredicate, Op, OpKind, SpmdKind};
use gradus_ir::{Unit, Value};
use std::collections::HashSet;

/// Returns the teams of a body with a stated number of ranks, inner teams first.
pub(crate) fn teams_with_stated_size(unit: &Unit, body: &Body) -> Vec<Op> {
    let is_sized = |op: &Op| {
        let team = OpKind::Spmd {
            kind: SpmdKind::Team,
            dims: 1,
        };
        *body.kind(*op) == team && !is_unspecified_or_one(unit, body, body.operand(*op, 0))
    };
    let mut teams: Vec<Op> = body.walk(body.root()).filter(is_sized).collect();
    teams.reverse();
    teams
}

/// Returns the teams of a body with (`stated`) or without a stated number of ranks.
pub fn teams(unit: &Unit, body: &Body, stated: bool) -> Vec<Op> {
    let sized = teams_with_stated_size(unit, body);
    let team = OpKind::Spmd {
        kind: SpmdKind::Team,
        dims: 1,
    };
    let is_one = |op: &Op| *body.kind(*op) == team && sized.contains(op) == stated;
    body.walk(body.root()).filter(is_one).collect()
}

/// Returns true if the number of ranks is unspecified (0) or one, or selects between the two.
fn is_unspecified_or_one(unit: &Unit, body: &Body, extent: Value) -> bool {
    if let Some(number) = body.as_int(unit, extent) {
        return number == 0 || number == 1;
    }
    let Some(op) = body.def_op(extent) else {
        return false;
    };
    match body.kind(op) {
        OpKind::Select => {
            (1..3).all(|arm| is_unspecified_or_one(unit, body, body.operand(op, arm)))
        }
        OpKind::Cast(CastOp::SExt | CastOp::ZExt | CastOp::Trunc) => {
            is_unspecified_or_one(unit, body, body.operand(op, 0))
        }
        _ => false,
    }
}

/// Turns a team into a parallel loop over ranks. Returns false if a rank may wait for another, share work or
/// communicate. `ordered` holds the functions that may order their callers.
pub(crate) fn team_to_loop(
    unit: &mut Unit,
    body: &mut Body,
    op: Op,
    ordered: &HashSet<FuncId>,
) -> bool {
    let region = body.op_regions(op)[0];
    let apart = |inside: Op| is_rank_independent(unit, body, inside, ordered);
    if !body.walk(region).all(apart) {
        return false;
    }
    let b = &mut Builder::new(unit, body);
    b.set_insertion_before(op);
    b.loc = b.body.ops[op].loc;
    let extent = b.body.operand(op, 0);
    let ty = b.body.ty(extent);
    let (zero, one) = (b.int(ty, 0), b.int(ty, 1));
    let stated = b.icmp(IntPredicate::Sgt, extent, zero);
    let ranks = b.select(stated, extent, one);
    let (_, inner) = b.par_for(ranks, &[], None);
    let rank = b.body.region_params(inner)[0];
    let params = b.body.region_params(region).to_vec();
    for (param, value) in params.into_iter().zip([rank, ranks]) {
        b.body.replace_uses(param, value);
    }
    b.body.move_ops(region, inner);
    b.body.erase(op);
    true
}

fn is_rank_independent(unit: &Unit, body: &Body, op: Op, ordered: &HashSet<FuncId>) -> bool {
    match body.kind(op) {
        OpKind::Critical(_) | OpKind::ParFor { .. } => true,
        OpKind::Load(access) | OpKind::Store(access) => access.is_plain(),
        OpKind::AtomicRmw(..) => !body.has_uses(body.result(op)),
        OpKind::CmpXchg { .. } | OpKind::Unreachable => false,
        _ => !may_order_iterations(unit, body, op, ordered),
    }
}
