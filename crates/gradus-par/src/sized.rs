//! Teams of which the program states how many ranks they have (`num_threads(4)`).
//!
//! A program may rely on that number: each of four ranks takes a quarter of an array, whoever runs them. So the
//! serial projection of such a team is not one rank but all of them, one after the other, which is a run of the
//! team where no rank waits for another one. It is a parallel loop over the ranks: they run at once as
//! iterations do.

use crate::ordered::orders;
use gradus_ir::{Body, Builder, CastOp, FuncId, IntPredicate, Op, OpKind, SpmdKind};
use gradus_ir::{Unit, Value};
use std::collections::HashSet;

/// The teams of a body whose number of ranks is stated, inner ones first.
pub(crate) fn sized(unit: &Unit, body: &Body) -> Vec<Op> {
    let is_sized = |op: &Op| {
        let team = OpKind::Spmd {
            kind: SpmdKind::Team,
            dims: 1,
        };
        *body.kind(*op) == team && !is_open(unit, body, body.operand(*op, 0))
    };
    let mut teams: Vec<Op> = body.walk(body.root()).filter(is_sized).collect();
    teams.reverse();
    teams
}

/// Whether a number of ranks is "as many as there are" (0) or one, or a choice of these.
fn is_open(unit: &Unit, body: &Body, extent: Value) -> bool {
    if let Some(number) = body.as_int(unit, extent) {
        return number == 0 || number == 1;
    }
    let Some(op) = body.def_op(extent) else {
        return false;
    };
    match body.kind(op) {
        OpKind::Select => (1..3).all(|arm| is_open(unit, body, body.operand(op, arm))),
        OpKind::Cast(CastOp::SExt | CastOp::ZExt | CastOp::Trunc) => {
            is_open(unit, body, body.operand(op, 0))
        }
        _ => false,
    }
}

/// Makes a parallel loop of a team; whether it could: no rank waits for another one, shares its work, or tells
/// it something while both run. `ordered` are functions that may do so.
pub(crate) fn to_loop(unit: &mut Unit, body: &mut Body, op: Op, ordered: &HashSet<FuncId>) -> bool {
    let region = body.op_regions(op)[0];
    let apart = |inside: Op| is_apart(unit, body, inside, ordered);
    if !body.walk(region).all(apart) {
        return false;
    }
    let b = &mut Builder::new(unit, body);
    b.at_op(op);
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

fn is_apart(unit: &Unit, body: &Body, op: Op, ordered: &HashSet<FuncId>) -> bool {
    match body.kind(op) {
        OpKind::Critical(_) | OpKind::ParFor { .. } => true,
        OpKind::Load(access) | OpKind::Store(access) => access.is_plain(),
        OpKind::AtomicRmw(..) => !body.has_uses(body.result(op)),
        OpKind::CmpXchg { .. } | OpKind::Unreachable => false,
        _ => !orders(unit, body, op, ordered),
    }
}
