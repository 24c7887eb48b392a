//! Converts a conditional step of a value into an unconditional step by a selected amount.
//!
//! `if c { yield p + n } else { yield p }` becomes `p + (c ? n : 0)`, which reduction analysis recognises as
//! a sum. Handles integers and addresses only: adding zero may change a float.

use gradus_analysis::PassContext;
use gradus_edit::{is_speculatable, remove_dead_defs};
use gradus_ir::{BinaryOp, Body, Builder, Op, OpKind, Region, Unit, Value};

/// Maximum number of ops that compute the amount; these ops become unconditional.
const AMOUNT_OPS_MAX: usize = 4;

/// Branch result that is a step in one arm.
struct ConditionalStep {
    /// Result of the branch.
    result: Value,
    /// Op that makes the step, and the index of its amount operand.
    step: Op,
    amount: usize,
    /// Arm that contains the step.
    arm: usize,
    /// Ops of the arm that compute the amount.
    ops: Vec<Op>,
}

/// Visits all branches of a body, inner ones first.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    let mut branches: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::If))
        .collect();
    branches.reverse();
    let mut changed = false;
    for branch in branches {
        for number in 0..body.results(branch).len() {
            if let Some(found) = match_step(unit, body, branch, number) {
                rewrite_step(unit, body, branch, &found);
                changed = true;
            }
        }
    }
    changed
}

fn match_step(unit: &Unit, body: &Body, branch: Op, number: usize) -> Option<ConditionalStep> {
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
        if body.parent(step) != Some(arms[arm]) || !is_defined_before(body, branch, stays) {
            return None;
        }
        let amount = amount_operand(body, step, stays)?;
        let ops = amount_slice(unit, body, arms[arm], body.operand(step, amount))?;
        Some(ConditionalStep {
            result,
            step,
            amount,
            arm,
            ops,
        })
    })
}

/// Returns whether a value is defined before a branch.
fn is_defined_before(body: &Body, branch: Op, value: Value) -> bool {
    body.parent(branch)
        .is_some_and(|around| body.is_visible_in(value, around))
}

/// Returns the index of the operand that an op adds to or subtracts from `from`.
fn amount_operand(body: &Body, op: Op, from: Value) -> Option<usize> {
    match body.kind(op) {
        OpKind::Binary(BinaryOp::Add) if body.operand(op, 1) == from => Some(0),
        OpKind::Binary(BinaryOp::Add | BinaryOp::Sub) if body.operand(op, 0) == from => Some(1),
        OpKind::Addr { .. } if body.operand_count(op) == 2 && body.operand(op, 0) == from => {
            Some(1)
        }
        _ => None,
    }
}

/// Returns the ops of an arm that compute a value, in order, if they are few and speculatable.
fn amount_slice(unit: &Unit, body: &Body, arm: Region, value: Value) -> Option<Vec<Op>> {
    let mut found: Vec<Op> = Vec::new();
    let mut work = vec![value];
    while let Some(value) = work.pop() {
        if !body.is_defined_in(value, arm) {
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
        if found.len() > AMOUNT_OPS_MAX {
            return None;
        }
    }
    Some(body.ops_in(arm).filter(|op| found.contains(op)).collect())
}

fn rewrite_step(unit: &mut Unit, body: &mut Body, branch: Op, found: &ConditionalStep) {
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
    b.set_insertion_before(branch);
    let by = operands[found.amount];
    let of_amount = b.body.ty(by);
    let nothing = b.zero(of_amount);
    operands[found.amount] = match found.arm {
        0 => b.select(condition, by, nothing),
        _ => b.select(condition, nothing, by),
    };
    // Drops the flags of the step, which do not hold for the other arm.
    let moved = b.value(kind, &operands, ty);
    body.replace_uses(found.result, moved);
    remove_dead_defs(unit, body, [moved]);
}
