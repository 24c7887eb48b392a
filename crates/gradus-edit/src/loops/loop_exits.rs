//! Exit branches of loops, and their conditions in the last iteration.
//!
//! `A; if (c) break; B` is `loop { A; if c { yield exit } else { B; yield again }; repeat }`: the branch
//! continues in every iteration except the last. Code that executes the iterations in reverse needs `c` only
//! for the last iteration; [`expose_exit_conditions`] makes that value a loop result.

use gradus_ir::integers::int_value;
use gradus_ir::{Body, Builder, Op, OpKind, Region, Unit, Value};

/// Maximum nesting depth of the exits of a loop.
const EXITS_MAX: usize = 8;

/// Branch that may leave the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitBranch {
    /// Loop that the branch may leave.
    pub lp: Op,
    /// Index of the arm that continues the loop.
    pub continuing_arm: usize,
    /// Loop result that holds the branch condition of the last iteration that reached the branch. `None` if
    /// the last iteration leaves the loop whenever it reaches the branch.
    pub exit_condition: Option<Value>,
}

/// Branch on the path to the loop condition.
struct Exit {
    op: Op,
    continuing_arm: usize,
    /// Terminators of the continuing arm and of the exiting arm.
    ends: [Op; 2],
    /// True if no op after the branch leaves the loop.
    is_only_exit: bool,
}

/// Returns the exit information of `branch`. `None` if the branch is no loop exit, or if no loop result holds
/// its condition in the last iteration (see [`expose_exit_conditions`]).
pub fn exit_branch(unit: &Unit, body: &Body, branch: Op) -> Option<ExitBranch> {
    let mut owner = body.parent_op(branch)?;
    for _ in 0..EXITS_MAX {
        if matches!(body.kind(owner), OpKind::Loop { .. }) {
            break;
        }
        owner = body.parent_op(owner)?;
    }
    let list = exits(unit, body, owner);
    let at = list.iter().position(|exit| exit.op == branch)?;
    let exit = &list[at];
    let last = match exit.is_only_exit {
        true => None,
        false => Some(last_condition(body, owner, &list[..=at])?),
    };
    Some(ExitBranch {
        lp: owner,
        continuing_arm: exit.continuing_arm,
        exit_condition: last,
    })
}

/// Adds the exit conditions of the last iteration as results to every loop; returns the number of added
/// results. The new results have no uses; dead-code elimination removes those that stay unused.
pub fn expose_exit_conditions(unit: &mut Unit, body: &mut Body) -> usize {
    let loops: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::Loop { .. }))
        .collect();
    let mut added = 0;
    for lp in loops {
        let list = exits(unit, body, lp);
        for (at, exit) in list.iter().enumerate() {
            if exit.is_only_exit || last_condition(body, lp, &list[..=at]).is_some() {
                continue;
            }
            let mut condition = body.operand(exit.op, 0);
            let ty = body.ty(condition);
            let no = Builder::new(unit, body).bool(false);
            for outer in list[..at].iter().rev() {
                body.add_operand(outer.ends[0], condition);
                body.add_operand(outer.ends[1], no);
                condition = body.add_result(outer.op, ty);
            }
            if let Some(end) = body.last(body.op_regions(lp)[0]) {
                body.add_operand(end, condition);
                body.add_result(lp, ty);
                added += 1;
            }
        }
    }
    added
}

/// Returns the exit branches of a loop, each nested in the continuing arm of the previous branch.
fn exits(unit: &Unit, body: &Body, lp: Op) -> Vec<Exit> {
    let mut found = Vec::new();
    if !matches!(body.kind(lp), OpKind::Loop { .. }) {
        return found;
    }
    let mut region = body.op_regions(lp)[0];
    let Some(end) = body
        .last(region)
        .filter(|e| *body.kind(*e) == OpKind::Repeat)
    else {
        return found;
    };
    let mut again = body.operand(end, 0);
    while found.len() < EXITS_MAX {
        let Some((exit, next, inside)) = exit(unit, body, region, again) else {
            break;
        };
        found.push(exit);
        (again, region) = (next, inside);
    }
    found
}

/// Matches the branch in `region` that defines `again`, if exactly one arm yields false. Also returns the
/// value that the other arm yields, and its region.
fn exit(unit: &Unit, body: &Body, region: Region, again: Value) -> Option<(Exit, Value, Region)> {
    let op = body.def_op(again)?;
    if !matches!(body.kind(op), OpKind::If) || body.parent(op) != Some(region) {
        return None;
    }
    let number = body.results(op).iter().position(|v| *v == again)?;
    let arms = body.op_regions(op);
    let end = |arm: usize| {
        let end = body.last(arms[arm])?;
        (*body.kind(end) == OpKind::Yield).then_some(end)
    };
    let ends = [end(0)?, end(1)?];
    let says = |arm: usize| body.operand(ends[arm], number);
    let number_of = |v: Value| int_value(unit, body, v).map(|(n, _)| n);
    let leaves = match (number_of(says(0)), number_of(says(1))) {
        (Some(0), other) if other != Some(0) => 0,
        (other, Some(0)) if other != Some(0) => 1,
        _ => return None,
    };
    let stays = 1 - leaves;
    let exit = Exit {
        op,
        continuing_arm: stays,
        ends: [ends[stays], ends[leaves]],
        is_only_exit: number_of(says(stays)) == Some(1),
    };
    Some((exit, says(stays), arms[stays]))
}

/// Returns the loop result that holds the condition of the last exit in `exits`.
fn last_condition(body: &Body, lp: Op, exits: &[Exit]) -> Option<Value> {
    let (exit, outer) = exits.split_last()?;
    let condition = body.operand(exit.op, 0);
    let end = body.last(body.op_regions(lp)[0])?;
    let first = 1 + body.operand_count(lp);
    let traced = |mut value: Value| {
        for step in outer {
            let number = body.results(step.op).iter().position(|v| *v == value)?;
            value = body.operand(step.ends[0], number);
        }
        Some(value)
    };
    let results = body.results(lp).iter().enumerate();
    results
        .filter(|(number, _)| traced(body.operand(end, first + number)) == Some(condition))
        .map(|(_, value)| *value)
        .next()
}
