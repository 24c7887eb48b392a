//! Which branches of a loop's body leave the loop, and what is known of them in the last iteration.
//!
//! `A; if (c) break; B` is `loop { A; if c { yield exit } else { B; yield again }; repeat }`: in every
//! iteration but the last one the branch goes on. Who runs the iterations backwards need not know `c` of
//! each, only that of the last; [`keep_exits`] makes it a result of the loop.

use gradus_ir::integers::int_value;
use gradus_ir::{Body, Builder, Op, OpKind, Region, Unit, Value};

/// How many exits of one loop are looked at, one inside the other.
const EXITS: usize = 8;

/// A branch that may leave the loop it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitBranch {
    /// The loop.
    pub lp: Op,
    /// The number of the arm that goes on.
    pub stays: usize,
    /// The loop's result that holds the branch's condition in the last iteration that reached it; `None`
    /// where the last iteration, if it reaches the branch, leaves there.
    pub last: Option<Value>,
}

/// A branch on the way to where a loop is decided to go on.
struct Exit {
    op: Op,
    stays: usize,
    /// The end of the arm that goes on, and of the one that leaves.
    ends: [Op; 2],
    /// Whether nothing behind it leaves the loop.
    decides: bool,
}

/// What is known of a branch as an exit of a loop; `None` where it is none, or where its condition in the
/// last iteration is no result of the loop (see [`keep_exits`]).
pub fn exit_branch(unit: &Unit, body: &Body, branch: Op) -> Option<ExitBranch> {
    let mut owner = body.owner(body.parent(branch)?)?;
    for _ in 0..EXITS {
        if matches!(body.kind(owner), OpKind::Loop { .. }) {
            break;
        }
        owner = body.owner(body.parent(owner)?)?;
    }
    let list = exits(unit, body, owner);
    let at = list.iter().position(|exit| exit.op == branch)?;
    let exit = &list[at];
    let last = match exit.decides {
        true => None,
        false => Some(last_condition(body, owner, &list[..=at])?),
    };
    Some(ExitBranch {
        lp: owner,
        stays: exit.stays,
        last,
    })
}

/// Gives every loop the conditions of its exits in the last iteration as results; gives the number of
/// results added. They have no uses yet: what sweeps dead results takes them away.
pub fn keep_exits(unit: &mut Unit, body: &mut Body) -> usize {
    let loops: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::Loop { .. }))
        .collect();
    let mut added = 0;
    for lp in loops {
        let list = exits(unit, body, lp);
        for (at, exit) in list.iter().enumerate() {
            if exit.decides || last_condition(body, lp, &list[..=at]).is_some() {
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

/// The branches of a loop that may leave it: each in the arm of the one before that goes on.
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
    while found.len() < EXITS {
        let Some((exit, next, inside)) = exit(unit, body, region, again) else {
            break;
        };
        found.push(exit);
        (again, region) = (next, inside);
    }
    found
}

/// The branch in `region` that makes `again`, where one arm says no; what the other arm says, and its
/// region.
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
        stays,
        ends: [ends[stays], ends[leaves]],
        decides: number_of(says(stays)) == Some(1),
    };
    Some((exit, says(stays), arms[stays]))
}

/// The loop's result that is the condition of the last of these exits.
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
