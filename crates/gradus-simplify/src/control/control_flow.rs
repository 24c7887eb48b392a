//! Simplifies structured control flow: branches on constants, empty branches, merges of equal values, loops
//! with zero or one iteration.

use crate::scalar::constants::integer_splat;
use gradus_analysis::PassContext;
use gradus_edit::{is_speculatable, remove_dead_defs};
use gradus_ir::{Body, Builder, Op, OpKind, Region, Unit, Value};

/// Simplifies all structured ops of a body, inner ones first.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    let mut ops: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| !body.op_regions(op).is_empty())
        .collect();
    ops.reverse();
    let mut changed = false;
    for op in ops {
        changed |= match body.kind(op) {
            OpKind::If | OpKind::Switch(_) => {
                replace_by_known_arm(unit, body, op)
                    || branch_to_selects(unit, body, op)
                    || merge_equal_results(unit, body, op)
                    || hoist_common_ops(unit, body, op)
            }
            OpKind::For { .. } => simplify_short_for(unit, body, op),
            OpKind::Loop { .. } => simplify_single_loop(unit, body, op),
            _ => false,
        };
    }
    changed
}

/// Moves the ops of a region, except its terminator, before `op`.
fn splice_before(body: &mut Body, region: Region, op: Op) {
    while let Some(first) = body
        .first(region)
        .filter(|&o| !body.kind(o).is_terminator())
    {
        body.detach(first);
        body.insert_before(op, first);
    }
}

fn replace_results(body: &mut Body, op: Op, values: &[Value]) {
    for (old, &new) in body.results(op).to_vec().into_iter().zip(values) {
        body.replace_uses(old, new);
    }
}

/// Replaces a branch on a constant by the taken arm.
pub(crate) fn replace_by_known_arm(unit: &Unit, body: &mut Body, op: Op) -> bool {
    let condition = body.operand(op, 0);
    let Some((n, _)) = integer_splat(unit, body, condition) else {
        return false;
    };
    let arm = match body.kind(op) {
        OpKind::If => usize::from(n == 0),
        OpKind::Switch(cases) => cases.iter().position(|c| *c == n).unwrap_or(cases.len()),
        _ => return false,
    };
    let region = body.op_regions(op)[arm];
    let Some(values) = body.yielded(region) else {
        return false;
    };
    splice_before(body, region, op);
    replace_results(body, op, &values);
    body.erase(op);
    true
}

/// Replaces a branch with empty arms by selects.
fn branch_to_selects(unit: &mut Unit, body: &mut Body, op: Op) -> bool {
    let arms = body.op_regions(op).to_vec();
    let empty = arms.iter().all(|&r| body.first(r) == body.last(r));
    if !matches!(body.kind(op), OpKind::If) || !empty {
        return false;
    }
    let (Some(yes), Some(no)) = (body.yielded(arms[0]), body.yielded(arms[1])) else {
        return false;
    };
    let condition = body.operand(op, 0);
    let loc = body.ops[op].loc;
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.set_insertion_before(op);
    let values: Vec<Value> = yes
        .iter()
        .zip(&no)
        .map(|(&x, &y)| if x == y { x } else { b.select(condition, x, y) })
        .collect();
    replace_results(body, op, &values);
    body.erase(op);
    remove_dead_defs(unit, body, values.into_iter().chain([condition]));
    true
}

/// Replaces a result that is equal in all arms, or equal to another result.
fn merge_equal_results(unit: &Unit, body: &mut Body, op: Op) -> bool {
    let arms = body.op_regions(op).to_vec();
    let all: Vec<Vec<Value>> = arms.iter().filter_map(|&r| body.yielded(r)).collect();
    let mut seen: std::collections::HashMap<Vec<Value>, Value> = std::collections::HashMap::new();
    let mut changed = false;
    for (index, result) in body.results(op).to_vec().into_iter().enumerate() {
        if !body.has_uses(result) {
            continue;
        }
        let given: Vec<Value> = all.iter().map(|values| values[index]).collect();
        let mut solid = given.iter().copied().filter(|&v| !body.is_poison(unit, v));
        let Some(value) = solid.next().or(given.first().copied()) else {
            continue;
        };
        let same = solid.all(|v| v == value);
        let inside = body.region_of(value).is_some_and(|r| arms.contains(&r));
        if same && !inside {
            body.replace_uses(result, value);
            changed = true;
        } else if let Some(&twin) = seen.get(&given) {
            body.replace_uses(result, twin);
            changed = true;
        } else {
            seen.insert(given, result);
        }
    }
    changed
}

/// Hoists a result that every arm computes by the same op from operands defined before the branch.
fn hoist_common_ops(unit: &Unit, body: &mut Body, op: Op) -> bool {
    let arms = body.op_regions(op).to_vec();
    let all: Option<Vec<Vec<Value>>> = arms.iter().map(|&r| body.yielded(r)).collect();
    let Some(all) = all else {
        return false;
    };
    let mut changed = false;
    for (index, result) in body.results(op).to_vec().into_iter().enumerate() {
        let made: Option<Vec<Op>> = all.iter().map(|v| body.def_op(v[index])).collect();
        let Some((&first, others)) = made.as_deref().and_then(<[Op]>::split_first) else {
            continue;
        };
        let outside = |v: Value| !arms.iter().any(|&arm| body.is_defined_in(v, arm));
        let alike = |other: &Op| {
            body.kind(*other) == body.kind(first) && body.operands(*other).eq(body.operands(first))
        };
        let movable = body.parent(first) == Some(arms[0])
            && body.has_uses(result)
            && body.results(first).len() == 1
            && is_speculatable(unit, body, first)
            && body.operands(first).all(outside);
        if !movable || !others.iter().all(alike) {
            continue;
        }
        let flags = others.iter().fold(body.ops[first].flags, |flags, o| {
            flags.and(body.ops[*o].flags)
        });
        let value = body.result(first);
        body.detach(first);
        body.insert_before(op, first);
        body.ops[first].flags = flags;
        body.replace_uses(result, value);
        changed = true;
    }
    changed
}

/// Replaces a `for` with a constant trip count of zero or one.
fn simplify_short_for(unit: &mut Unit, body: &mut Body, op: Op) -> bool {
    let runs = body.operand(op, 0);
    let Some((n, _)) = integer_splat(unit, body, runs).filter(|c| c.0 <= 1) else {
        return false;
    };
    let initial: Vec<Value> = body.operands(op).skip(1).collect();
    let region = body.op_regions(op)[0];
    if n == 0 {
        replace_results(body, op, &initial);
    } else {
        if body.yielded(region).is_none() {
            return false;
        }
        let params = body.region_params(region).to_vec();
        let ty = body.ty(runs);
        let zero = Builder::new(unit, body).int(ty, 0);
        body.replace_uses(params[0], zero);
        for (&param, &value) in params[1..].iter().zip(&initial) {
            body.replace_uses(param, value);
        }
        let Some(values) = body.yielded(region) else {
            unreachable!("a loop region that yields keeps its terminator");
        };
        splice_before(body, region, op);
        replace_results(body, op, &values);
    }
    body.erase(op);
    true
}

/// Replaces a `loop` whose condition is constant false.
fn simplify_single_loop(unit: &Unit, body: &mut Body, op: Op) -> bool {
    let region = body.op_regions(op)[0];
    let Some(end) = body
        .last(region)
        .filter(|&o| matches!(body.kind(o), OpKind::Repeat))
    else {
        return false;
    };
    if !integer_splat(unit, body, body.operand(end, 0)).is_some_and(|c| c.0 == 0) {
        return false;
    }
    let initial: Vec<Value> = body.operands(op).collect();
    let params = body.region_params(region).to_vec();
    for (param, &value) in params.into_iter().zip(&initial) {
        body.replace_uses(param, value);
    }
    let values: Vec<Value> = body.operands(end).skip(1 + initial.len()).collect();
    splice_before(body, region, op);
    replace_results(body, op, &values);
    body.erase(op);
    true
}
