//! Restructuring of regions: moves ops between regions during raising.
//!
//! Used by every step that turns calls into region ops.
//!
//! # Invariants
//! No op is lost or duplicated, values keep their uses, and moved definitions still dominate their uses.

use gradus_ir::integers::{fold_binary, fold_cast, fold_icmp, int_value};
use gradus_ir::{Body, Builder, Op, OpKind, Region, TypeId, Unit, Value};
use std::collections::HashSet;

/// Moves the ops of `region`, without the terminator, before `at`; returns the terminator's operands.
pub(crate) fn move_region_before(body: &mut Body, region: Region, at: Op) -> Vec<Value> {
    let Some(last) = body.last(region) else {
        unreachable!("a verified region has a terminator");
    };
    let values = body.operands(last).collect();
    let ops: Vec<Op> = body.ops_in(region).filter(|&op| op != last).collect();
    for op in ops {
        body.detach(op);
        body.insert_before(at, op);
    }
    values
}

/// Replaces an `if` or `switch` by one of its arms. Returns false, without change, if the arm does not reach
/// its end.
pub(crate) fn replace_by_arm(body: &mut Body, op: Op, arm: usize) -> bool {
    let region = body.op_regions(op)[arm];
    let yields = |last: Op| matches!(body.kind(last), OpKind::Yield);
    if !body.last(region).is_some_and(yields) {
        return false;
    }
    let values = move_region_before(body, region, op);
    for (result, value) in body.results(op).to_vec().into_iter().zip(values) {
        body.replace_uses(result, value);
    }
    body.erase(op);
    true
}

/// Replaces a `loop` by one execution of its region. Returns false, without change, if the region does not
/// reach its end.
pub(crate) fn run_once(body: &mut Body, op: Op) -> bool {
    let region = body.op_regions(op)[0];
    let repeats = |last: Op| matches!(body.kind(last), OpKind::Repeat);
    if !body.last(region).is_some_and(repeats) {
        return false;
    }
    let initial: Vec<Value> = body.operands(op).collect();
    let params = body.region_params(region).to_vec();
    for (&param, &value) in params.iter().zip(&initial) {
        body.replace_uses(param, value);
    }
    let values = move_region_before(body, region, op);
    let given = values.into_iter().skip(1 + params.len());
    for (result, value) in body.results(op).to_vec().into_iter().zip(given) {
        body.replace_uses(result, value);
    }
    body.erase(op);
    true
}

/// Moves consecutive ops into the first region of a new op in place. Live-out values become results of the new
/// op.
pub(crate) fn wrap_ops(b: &mut Builder, ops: &[Op], kind: OpKind) -> Op {
    let inside: HashSet<Op> = ops
        .iter()
        .flat_map(|&op| {
            let nested = b.body.op_regions(op).to_vec();
            let nested: Vec<Op> = nested.into_iter().flat_map(|r| b.body.walk(r)).collect();
            nested.into_iter().chain([op])
        })
        .collect();
    let leaving: Vec<Value> = ops
        .iter()
        .flat_map(|&op| b.body.results(op).to_vec())
        .filter(|&v| b.body.uses(v).any(|u| !inside.contains(&u.op)))
        .collect();
    let types: Vec<TypeId> = leaving.iter().map(|v| b.body.ty(*v)).collect();
    b.set_insertion_before(ops[0]);
    b.loc = b.body.ops[ops[0]].loc;
    let op = b.op(kind, &[], &types, 1);
    let region = b.body.op_regions(op)[0];
    for &moved in ops {
        b.body.detach(moved);
        b.body.append(region, moved);
    }
    for (&value, result) in leaving.iter().zip(b.body.results(op).to_vec()) {
        let outside: Vec<_> = b.body.uses(value).collect();
        for at in outside.into_iter().filter(|u| !inside.contains(&u.op)) {
            b.body.set_operand(at.op, at.index as usize, result);
        }
    }
    b.set_insertion_end(region);
    b.yield_(&leaving);
    op
}

/// Replaces `value` by a constant and propagates: folds arithmetic and removes branches with constant
/// conditions.
pub(crate) fn settle(unit: &mut Unit, body: &mut Body, value: Value, constant: i64) {
    let ty = body.ty(value);
    let known = Builder::new(unit, body).int(ty, i128::from(constant));
    let mut open: Vec<Op> = body.uses(value).map(|u| u.op).collect();
    body.replace_uses(value, known);
    while let Some(op) = open.pop() {
        if body.parent(op).is_none() {
            continue;
        }
        match body.kind(op) {
            OpKind::If | OpKind::Switch(_) => {
                if let Some(arm) = constant_arm(unit, body, op) {
                    let results = body.results(op).to_vec();
                    let users = users_of(body, &results);
                    if replace_by_arm(body, op, arm) {
                        open.extend(users);
                    }
                }
            }
            _ => {
                if let Some(folded) = folded_constant(unit, body, op) {
                    let result = body.result(op);
                    open.extend(users_of(body, &[result]));
                    body.replace_uses(result, folded);
                    body.erase(op);
                }
            }
        }
    }
}

fn users_of(body: &Body, values: &[Value]) -> Vec<Op> {
    let uses = values.iter().flat_map(|&v| body.uses(v));
    uses.map(|u| u.op).collect()
}

/// Returns the arm selected by a constant condition.
fn constant_arm(unit: &Unit, body: &Body, op: Op) -> Option<usize> {
    let (value, _) = int_value(unit, body, body.operand(op, 0))?;
    Some(match body.kind(op) {
        OpKind::If => usize::from(value == 0),
        OpKind::Switch(cases) => {
            let found = cases.iter().position(|&case| case == value);
            found.unwrap_or(cases.len())
        }
        _ => return None,
    })
}

/// Returns the constant result of an op with constant operands.
fn folded_constant(unit: &mut Unit, body: &mut Body, op: Op) -> Option<Value> {
    let result = *body.results(op).first()?;
    let ty = body.ty(result);
    let width = unit.types.int_bits(ty)?;
    let operand = |i: usize| int_value(unit, body, body.operand(op, i));
    let value = match *body.kind(op) {
        OpKind::ICmp(predicate) => {
            let ((a, bits), (b, _)) = (operand(0)?, operand(1)?);
            u128::from(fold_icmp(predicate, bits, a, b))
        }
        OpKind::Cast(cast) => {
            let (a, bits) = operand(0)?;
            fold_cast(cast, bits, width, a)?
        }
        OpKind::Binary(binary) => {
            let ((a, bits), (b, _)) = (operand(0)?, operand(1)?);
            fold_binary(binary, bits, a, b)?
        }
        OpKind::Select => {
            let (condition, _) = operand(0)?;
            return Some(body.operand(op, if condition == 1 { 1 } else { 2 }));
        }
        _ => return None,
    };
    Some(Builder::new(unit, body).int(ty, value as i128))
}

/// Returns the ops strictly between two ops of a region; `None` if `last` does not follow `first` in its
/// region.
pub(crate) fn ops_between(body: &Body, first: Op, last: Op) -> Option<Vec<Op>> {
    if body.parent(first) != body.parent(last) {
        return None;
    }
    let mut ops = Vec::new();
    let mut at = body.next(first);
    while let Some(op) = at {
        if op == last {
            return Some(ops);
        }
        ops.push(op);
        at = body.next(op);
    }
    None
}

/// Removes unused results of branches, and the code that computes only those.
pub(crate) fn drop_unused_branch_results(unit: &Unit, body: &mut Body) {
    let branches: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::If | OpKind::Switch(_)))
        .collect();
    // Inner branches last: an outer branch's yield uses an inner branch's result.
    for op in branches {
        let used = |v: &Value| body.has_uses(*v);
        let keep: Vec<bool> = body.results(op).iter().map(used).collect();
        if keep.iter().all(|k| *k) {
            continue;
        }
        for region in body.op_regions(op).to_vec() {
            let Some(end) = body.last(region) else {
                continue;
            };
            if !matches!(body.kind(end), OpKind::Yield) {
                continue;
            }
            let old: Vec<Value> = body.operands(end).collect();
            let pairs = old.iter().zip(&keep);
            let kept: Vec<Value> = pairs.filter(|(_, k)| **k).map(|(v, _)| *v).collect();
            body.set_operands(end, &kept);
            gradus_edit::remove_dead_defs(unit, body, old);
        }
        body.retain_results(op, &keep);
    }
}
