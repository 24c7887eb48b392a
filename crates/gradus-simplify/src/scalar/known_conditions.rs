//! Replaces conditions by constants where their value is known.
//!
//! Conditions are known in the arms of their branch, in the next values of a loop that repeats while the
//! condition holds, and in the loop's results.
//!
//! LLVM merges the guard of an inner loop with the test of the enclosing loop if both test the same
//! condition. The increment of the outer loop then lies in an arm of a branch. The pass exposes the increment
//! to the induction analysis again.

use crate::scalar::constants::integer_splat;
use gradus_analysis::PassContext;
use gradus_ir::{Body, Builder, Op, OpKind, Region, Unit, Use, Value};

/// Maximum number of uses inspected per branch.
const USES_MAX: usize = 256;

/// Visits all branches and loops of a body, inner ones first.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    let mut ops: Vec<Op> = body.walk(body.root()).collect();
    ops.reverse();
    let mut changed = false;
    for op in ops {
        changed |= match body.kind(op) {
            OpKind::If => {
                let arms = fold_condition_in_arms(unit, body, op);
                replace_by_condition(unit, body, op) || arms
            }
            OpKind::Repeat => forward_arm_values(body, op),
            _ => false,
        };
    }
    changed
}

/// Replaces uses of a branch condition in the arms by constants.
fn fold_condition_in_arms(unit: &mut Unit, body: &mut Body, branch: Op) -> bool {
    let condition = body.operand(branch, 0);
    if body.as_const(condition).is_some() {
        return false;
    }
    let uses: Vec<Use> = body.uses(condition).take(USES_MAX).collect();
    let arms = body.op_regions(branch).to_vec();
    let arm_of = |body: &Body, at: &Use| {
        let region = body.parent(at.op)?;
        arms.iter().position(|&arm| body.is_inside(region, arm))
    };
    let inside: Vec<(Use, usize)> = uses
        .into_iter()
        .filter_map(|at| Some((at, arm_of(body, &at)?)))
        .collect();
    let ty = body.ty(condition);
    for &(at, arm) in &inside {
        let known = Builder::new(unit, body).int(ty, i128::from(arm == 0));
        body.set_operand(at.op, at.index as usize, known);
    }
    !inside.is_empty()
}

/// Replaces a result that is true in one arm and false in the other by the condition.
fn replace_by_condition(unit: &Unit, body: &mut Body, branch: Op) -> bool {
    let condition = body.operand(branch, 0);
    let arms = body.op_regions(branch).to_vec();
    let mut changed = false;
    for (index, result) in body.results(branch).to_vec().into_iter().enumerate() {
        let bool_of = |arm: Region| {
            let value = yielded_value(body, arm, index)?;
            integer_splat(unit, body, value).filter(|(_, bits)| *bits == 1)
        };
        let (yes, no) = (bool_of(arms[0]), bool_of(arms[1]));
        let is = yes.is_some_and(|(n, _)| n != 0) && no.is_some_and(|(n, _)| n == 0);
        if is && body.has_uses(result) {
            body.replace_uses(result, condition);
            changed = true;
        }
    }
    changed
}

/// Replaces the operands of a `repeat` on `condition` by the values of known arms. Next values come from the
/// first arm of a branch on `condition`, results from the second arm, if the yielded value is defined outside
/// the branch.
fn forward_arm_values(body: &mut Body, repeat: Op) -> bool {
    let condition = body.operand(repeat, 0);
    let Some(around) = body.parent_op(repeat) else {
        return false;
    };
    let carried = body.operands(around).count();
    let mut changed = false;
    for index in 1..body.operand_count(repeat) {
        let value = body.operand(repeat, index);
        let arm = usize::from(index > carried);
        if let Some(given) = value_in_known_arm(body, value, condition, arm) {
            body.set_operand(repeat, index, given);
            changed = true;
        }
    }
    changed
}

/// Returns the value that `value` equals if `condition` selects the arm `arm`, provided the arm's value is
/// defined outside the arm.
fn value_in_known_arm(body: &Body, value: Value, condition: Value, arm: usize) -> Option<Value> {
    let op = body.def_op(value)?;
    if body.operands(op).next() != Some(condition) {
        return None;
    }
    match body.kind(op) {
        OpKind::Select => Some(body.operand(op, 1 + arm)),
        OpKind::If => {
            let number = body.results(op).iter().position(|&r| r == value)?;
            let region = body.op_regions(op)[arm];
            let given = yielded_value(body, region, number)?;
            (!body.is_defined_in(given, region)).then_some(given)
        }
        _ => None,
    }
}

/// Returns the value that a region yields at `index`; `None` if the region does not end in a yield.
fn yielded_value(body: &Body, region: Region, index: usize) -> Option<Value> {
    Some(body.operand(body.yield_of(region)?, index))
}
