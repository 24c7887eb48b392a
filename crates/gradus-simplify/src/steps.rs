//! A branch that moves a value on or leaves it: the value moves always, by nothing where the branch leaves it.
//!
//! `if c { yield p + n } else { yield p }` is `p + (c ? n : 0)`. What a loop carries through such a branch is
//! then seen as a sum. Only integers and addresses: a sum with zero may be another float.

use crate::Facts;
use gradus_edit::{is_speculatable, sweep_from};
use gradus_ir::{BinaryOp, Body, Builder, Op, OpKind, Region, Unit, Value};

/// How many ops the computation of an amount may take; they run always then.
const OPS: usize = 4;

/// A result of a branch that is a step in one arm.
struct Found {
    /// The branch's result.
    result: Value,
    /// The op that makes the step, and the number of its operand that is the amount.
    step: Op,
    amount: usize,
    /// The arm that it stands in.
    arm: usize,
    /// The ops of that arm that compute the amount.
    ops: Vec<Op>,
}

/// Looks at all branches of a body, inner ones first.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &Facts) -> bool {
    let mut branches: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::If))
        .collect();
    branches.reverse();
    let mut changed = false;
    for branch in branches {
        for number in 0..body.results(branch).len() {
            if let Some(found) = find(unit, body, branch, number) {
                apply(unit, body, branch, &found);
                changed = true;
            }
        }
    }
    changed
}

fn find(unit: &Unit, body: &Body, branch: Op, number: usize) -> Option<Found> {
    let result = body.results(branch)[number];
    if !body.has_uses(result) {
        return None;
    }
    let arms = body.op_regions(branch);
    let given = |arm: usize| {
        let end = body.last(arms[arm])?;
        matches!(body.kind(end), OpKind::Yield).then(|| body.operand(end, number))
    };
    let values = [given(0)?, given(1)?];
    [0, 1].into_iter().find_map(|arm| {
        let (moved, stays) = (values[arm], values[1 - arm]);
        let step = body.def_op(moved)?;
        if body.parent(step) != Some(arms[arm]) || !is_outside(body, branch, stays) {
            return None;
        }
        let amount = amount(body, step, stays)?;
        let ops = slice(unit, body, arms[arm], body.operand(step, amount))?;
        Some(Found {
            result,
            step,
            amount,
            arm,
            ops,
        })
    })
}

/// Whether a value is there before a branch.
fn is_outside(body: &Body, branch: Op, value: Value) -> bool {
    let home = body.region_of(value);
    home.is_none_or(|home| {
        body.parent(branch)
            .is_some_and(|around| body.is_inside(around, home))
    })
}

/// The number of the operand that an op adds to `from`, or takes from it.
fn amount(body: &Body, op: Op, from: Value) -> Option<usize> {
    match body.kind(op) {
        OpKind::Binary(BinaryOp::Add) if body.operand(op, 1) == from => Some(0),
        OpKind::Binary(BinaryOp::Add | BinaryOp::Sub) if body.operand(op, 0) == from => Some(1),
        OpKind::Addr { .. } if body.operand_count(op) == 2 && body.operand(op, 0) == from => {
            Some(1)
        }
        _ => None,
    }
}

/// The few ops of an arm that compute a value, in their order, where they may run always.
fn slice(unit: &Unit, body: &Body, arm: Region, value: Value) -> Option<Vec<Op>> {
    let mut found: Vec<Op> = Vec::new();
    let mut work = vec![value];
    while let Some(value) = work.pop() {
        let inside = body
            .region_of(value)
            .is_some_and(|home| body.is_inside(home, arm));
        if !inside {
            continue;
        }
        let op = body.def_op(value)?;
        let cheap = body.parent(op) == Some(arm) && body.kind(op).is_arithmetic();
        if !cheap || !is_speculatable(unit, body, op) {
            return None;
        }
        if !found.contains(&op) {
            found.push(op);
            work.extend(body.operands(op));
        }
        if found.len() > OPS {
            return None;
        }
    }
    Some(body.ops_in(arm).filter(|op| found.contains(op)).collect())
}

fn apply(unit: &mut Unit, body: &mut Body, branch: Op, found: &Found) {
    for &op in &found.ops {
        body.detach(op);
        body.insert_before(branch, op);
    }
    let condition = body.operand(branch, 0);
    let kind = body.kind(found.step).clone();
    let mut operands: Vec<Value> = body.operands(found.step).collect();
    let ty = body.ty(found.result);
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[found.step].loc;
    b.at_op(branch);
    let by = operands[found.amount];
    let of_amount = b.body.ty(by);
    let nothing = b.zero(of_amount);
    operands[found.amount] = match found.arm {
        0 => b.select(condition, by, nothing),
        _ => b.select(condition, nothing, by),
    };
    // Without the step's promises: they are not made for the other arm.
    let moved = b.value(kind, &operands, ty);
    body.replace_uses(found.result, moved);
    sweep_from(unit, body, [moved]);
}
