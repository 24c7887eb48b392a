//! Inlining of a team: the code of the only rank replaces the team, worksharing excepted.
//!
//! Place: last step of folding, see [`crate::team_to_parallel_loop`].

use crate::reductions::REDUCTION_LOCK;
use crate::regions::move_region_before;
use gradus_ir::{AllocaStorage, Body, Builder, Op, OpKind, Region, Unit};

/// Replaces comparisons of the rank by their result for the only rank.
pub(super) fn settle(unit: &mut Unit, body: &mut Body, compared: Vec<(Op, bool)>) {
    for (op, truth) in compared {
        let value = Builder::new(unit, body).bool(truth);
        let result = body.result(op);
        body.replace_uses(result, value);
        body.erase(op);
    }
}

/// Inlines the code of a team's only rank, without worksharing, in place of the team.
pub(super) fn inline_team_body(body: &mut Body, team: Op) {
    let region = body.op_regions(team)[0];
    drop_rank_ops(body, region);
    let allocas: Vec<Op> = body
        .ops_in(region)
        .filter(|&op| matches!(body.kind(op), OpKind::Alloca(_)))
        .collect();
    for op in allocas {
        move_to_enclosing_strand(body, op, team);
    }
    move_region_before(body, region, team);
    body.erase(team);
}

/// Moves an allocation of constant size to the strand around a team.
pub(super) fn move_to_enclosing_strand(body: &mut Body, op: Op, team: Op) {
    let home = body.enclosing_strand(team);
    let place = match home == body.root() {
        true => AllocaStorage::Frame,
        false => AllocaStorage::Private,
    };
    let fixed = body.operands(op).all(|v| body.as_const(v).is_some());
    if let OpKind::Alloca(info) = &mut body.ops[op].kind
        && fixed
    {
        info.storage = place;
        body.detach(op);
        match body.first(home) {
            Some(first) => body.insert_before(first, op),
            None => body.append(home, op),
        }
    }
}

/// Removes ops that matter between ranks only.
fn drop_rank_ops(body: &mut Body, region: Region) {
    let mut open = vec![region];
    while let Some(region) = open.pop() {
        let ops: Vec<Op> = body.ops_in(region).collect();
        for op in ops {
            match body.kind(op) {
                OpKind::Barrier(_) => body.erase(op),
                OpKind::Critical(name) if **name == *REDUCTION_LOCK => inline_op_region(body, op),
                OpKind::Single { .. } => {
                    let inner = body.op_regions(op)[0];
                    let nested: Vec<Op> = body.ops_in(inner).collect();
                    inline_op_region(body, op);
                    let regions = nested.iter().filter(|&&o| body.parent(o).is_some());
                    open.extend(regions.flat_map(|&o| body.op_regions(o).to_vec()));
                }
                OpKind::ParFor { .. } | OpKind::Spmd { .. } | OpKind::Spawn { .. } => {}
                _ => open.extend(body.op_regions(op)),
            }
        }
    }
}

fn inline_op_region(body: &mut Body, op: Op) {
    let region = body.op_regions(op)[0];
    let values = move_region_before(body, region, op);
    for (result, value) in body.results(op).to_vec().into_iter().zip(values) {
        body.replace_uses(result, value);
    }
    body.erase(op);
}
