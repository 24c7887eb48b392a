//! Where a condition is known, it is a constant: in the arms of its branch, for what the next
//! iteration of a loop gets that repeats while it holds, and for what is left of the last one.
//!
//! A host merges the test before an inner loop with the test of the loop around it where both ask the
//! same; then the outer loop steps on in the arm of a branch. Here it steps on again for all to see,
//! so that its iterations can be counted.

use crate::Facts;
use crate::literals::integer;
use gradus_ir::{Body, Builder, Op, OpKind, Region, Unit, Use, Value};

/// How many uses of one condition are looked at for each of its branches.
const USES: usize = 256;

/// Looks at all branches and loops of a body, inner ones first.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &Facts) -> bool {
    let mut ops: Vec<Op> = body.walk(body.root()).collect();
    ops.reverse();
    let mut changed = false;
    for op in ops {
        changed |= match body.kind(op) {
            OpKind::If => {
                let arms = know_in_arms(unit, body, op);
                merge_to_condition(unit, body, op) || arms
            }
            OpKind::Repeat => give_from_arms(body, op),
            _ => false,
        };
    }
    changed
}

/// Uses of a branch's condition in its arms are uses of a constant.
fn know_in_arms(unit: &mut Unit, body: &mut Body, branch: Op) -> bool {
    let condition = body.operand(branch, 0);
    if body.as_const(condition).is_some() {
        return false;
    }
    let uses: Vec<Use> = body.uses(condition).take(USES).collect();
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

/// A result that is true after one arm and false after the other is the condition.
fn merge_to_condition(unit: &Unit, body: &mut Body, branch: Op) -> bool {
    let condition = body.operand(branch, 0);
    let arms = body.op_regions(branch).to_vec();
    let mut changed = false;
    for (index, result) in body.results(branch).to_vec().into_iter().enumerate() {
        let bool_of = |arm: Region| {
            let value = yielded(body, arm, index)?;
            integer(unit, body, value).filter(|(_, bits)| *bits == 1)
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

/// What a loop carries on that repeats while the condition of a branch holds is what the branch's first
/// arm gives, where that stands outside of the branch; what it leaves is what the second one gives.
fn give_from_arms(body: &mut Body, repeat: Op) -> bool {
    let condition = body.operand(repeat, 0);
    let Some(around) = body.parent(repeat).and_then(|region| body.owner(region)) else {
        return false;
    };
    let carried = body.operands(around).count();
    let mut changed = false;
    for index in 1..body.operand_count(repeat) {
        let value = body.operand(repeat, index);
        let arm = usize::from(index > carried);
        if let Some(given) = given_by(body, value, condition, arm) {
            body.set_operand(repeat, index, given);
            changed = true;
        }
    }
    changed
}

/// What a value is that one of two arms gives, where a condition chooses that arm and it stands outside.
fn given_by(body: &Body, value: Value, condition: Value, arm: usize) -> Option<Value> {
    let op = body.def_op(value)?;
    if body.operands(op).next() != Some(condition) {
        return None;
    }
    match body.kind(op) {
        OpKind::Select => Some(body.operand(op, 1 + arm)),
        OpKind::If => {
            let number = body.results(op).iter().position(|&r| r == value)?;
            let region = body.op_regions(op)[arm];
            let given = yielded(body, region, number)?;
            let inside = |made| body.is_inside(made, region);
            (!body.region_of(given).is_some_and(inside)).then_some(given)
        }
        _ => None,
    }
}

/// What a region gives as its `index`th value; `None` where it does not end in a yield.
fn yielded(body: &Body, region: Region, index: usize) -> Option<Value> {
    let last = body.last(region)?;
    matches!(body.kind(last), OpKind::Yield).then(|| body.operand(last, index))
}
