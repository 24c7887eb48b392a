//! Full unrolling of `for` ops with a small constant trip count.

use crate::rewrite::clone::{ValueMap, clone_ops_within};
use gradus_ir::{Body, Builder, Op, OpKind, Unit, Value};

/// Unrolls a `for` whose trip count is a constant of at most `max_runs`, if all copies together have at most
/// `max_ops` ops. Returns whether the loop was unrolled.
pub fn unroll_for(unit: &mut Unit, body: &mut Body, op: Op, max_runs: u64, max_ops: usize) -> bool {
    if !matches!(body.kind(op), OpKind::For { .. }) {
        return false;
    }
    let runs = body.as_int(unit, body.operand(op, 0));
    let Some(runs) = runs
        .and_then(|n| u64::try_from(n).ok())
        .filter(|&n| n <= max_runs)
    else {
        return false;
    };
    let region = body.op_regions(op)[0];
    let per_run = usize::try_from(runs).map_or(0, |n| max_ops / n.max(1));
    let size = body.walk(region).take(per_run + 1).count();
    let Some(end) = body
        .last(region)
        .filter(|&e| *body.kind(e) == OpKind::Yield)
    else {
        return false;
    };
    if size > per_run {
        return false;
    }
    let params = body.region_params(region).to_vec();
    let mut carried: Vec<Value> = body.operands(op).skip(1).collect();
    let next: Vec<Value> = body.operands(end).collect();
    let index_type = body.ty(params[0]);
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(op);
    for run in 0..runs {
        let mut map = ValueMap::zip(&params[1..], &carried);
        let index = b.int(index_type, i128::from(run));
        map.set(params[0], index);
        clone_ops_within(region, &mut b, &mut map);
        carried = next.iter().map(|&v| map.get_or_same(v)).collect();
    }
    for (result, value) in body.results(op).to_vec().into_iter().zip(carried) {
        body.replace_uses(result, value);
    }
    body.erase(op);
    true
}
