//! Code of the last iteration of a worksharing loop (`lastprivate`).
//!
//! The thread of the last iteration executes such code after the loop, under a flag that the runtime sets. The flag's
//! branches become unconditional markers of the position; the code then moves to the end of the last iteration.

use crate::regions::ops_between;
use gradus_edit::{ValueMap, clone_op_within, is_pure};
use gradus_ir::{Body, Builder, ConstKind, IntPredicate, Op, OpKind, Region, TypeId, Unit, Value};
use std::collections::HashSet;

/// Returns the branches on the slot that flags the thread of the last iteration. Their conditions become true,
/// which marks their positions until the branches move into the loop.
pub(super) fn last_branches(
    unit: &mut Unit,
    body: &mut Body,
    slot: Op,
    asks: Op,
) -> Result<Vec<Op>, &'static str> {
    const UNKNOWN: &str = "the use of the last-iteration flag (`lastprivate`) is not recognised";
    let address = body.result(slot);
    let mut branches = Vec::new();
    let mut loads = Vec::new();
    for at in body.uses(address).map(|u| u.op) {
        match body.kind(at) {
            OpKind::Load(_) => loads.push(at),
            OpKind::Store(_) => {}
            OpKind::Call(_) if at == asks || unit.marker_callee(body, at).is_some() => {}
            _ => return Err(UNKNOWN),
        }
    }
    for load in loads {
        let users: Vec<Op> = body.uses(body.result(load)).map(|u| u.op).collect();
        for test in users {
            let is_zero = body.as_int(unit, body.operand(test, 1)) == Some(0);
            let swapped = match body.kind(test) {
                OpKind::ICmp(IntPredicate::Ne) if is_zero => false,
                OpKind::ICmp(IntPredicate::Eq) if is_zero => true,
                _ => return Err(UNKNOWN),
            };
            let users: Vec<Op> = body.uses(body.result(test)).map(|u| u.op).collect();
            for branch in users {
                if !matches!(body.kind(branch), OpKind::If) {
                    return Err(UNKNOWN);
                }
                branches.push(match swapped {
                    true => swap_arms(unit, body, branch),
                    false => branch,
                });
            }
        }
    }
    let truth = Builder::new(unit, body).bool(true);
    for &branch in &branches {
        body.set_operand(branch, 0, truth);
    }
    Ok(branches)
}

/// Replaces a branch by one with swapped arms; the caller sets the condition.
fn swap_arms(unit: &mut Unit, body: &mut Body, branch: Op) -> Op {
    let condition = body.operand(branch, 0);
    let old: Vec<Value> = body.results(branch).to_vec();
    let types: Vec<TypeId> = old.iter().map(|value| body.ty(*value)).collect();
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(branch);
    b.loc = b.body.ops[branch].loc;
    let (swapped, first, second) = b.if_(condition, &types);
    let arms = body.op_regions(branch).to_vec();
    body.move_ops(arms[0], second);
    body.move_ops(arms[1], first);
    let new: Vec<Value> = body.results(swapped).to_vec();
    for (old, new) in std::iter::zip(old, new) {
        body.replace_uses(old, new);
    }
    body.erase(branch);
    swapped
}

/// Checks that the code of `branch` after the loop may run at the end of the last iteration. A load of a
/// program variable forbids the move: other iterations may still write the variable (`lastprivate(conditional:
/// x)`).
pub(super) fn check_movable_to_last(
    unit: &Unit,
    body: &Body,
    branch: Op,
) -> Result<(), &'static str> {
    if body.results(branch).iter().any(|r| body.has_uses(*r)) {
        return Err("code of the last iteration (`lastprivate`) yields a thread-private value");
    }
    let reads_variable = |op: Op| {
        let at = matches!(body.kind(op), OpKind::Load(_)).then(|| body.operand(op, 0));
        let at = at.and_then(|address| body.as_const(address));
        match at.map(|address| &unit.constant(address).kind) {
            Some(ConstKind::Global { global, .. }) => !unit.globals[*global].constant,
            _ => false,
        }
    };
    match body.walk(body.op_regions(branch)[0]).any(reads_variable) {
        true => Err(
            "code of the last iteration (`lastprivate`) reads a variable that any iteration may write",
        ),
        false => Ok(()),
    }
}

/// Moves the code of `branch` after the loop to the end of the last iteration.
pub(super) fn move_to_last_iteration(
    unit: &mut Unit,
    body: &mut Body,
    counted: Op,
    branch: Op,
) -> Result<(), &'static str> {
    const FAR: &str = "code of the last iteration (`lastprivate`) cannot move into the loop";
    check_movable_to_last(unit, body, branch)?;
    let behind = code_after_loop(body, counted, branch).ok_or(FAR)?;
    let region = body.op_regions(counted)[0];
    let end = body.last(region).ok_or(FAR)?;
    let mut map = ValueMap::new();
    for (index, &result) in body.results(counted).iter().enumerate() {
        map.set(result, body.operand(end, index));
    }
    let arm = body.op_regions(branch)[0];
    let mut wanted: HashSet<Value> = operands_in_region(body, arm);
    let mut needed = HashSet::new();
    for part in behind.iter().rev() {
        let given = part.test_results(body);
        wanted.extend(
            given
                .filter(|(r, _)| wanted.contains(r))
                .map(|(_, v)| v)
                .collect::<Vec<_>>(),
        );
        for &op in part.ops.iter().rev() {
            if body.results(op).iter().any(|r| wanted.contains(r)) {
                if !is_pure(unit, body, op) {
                    return Err(FAR);
                }
                wanted.extend(body.operands(op));
                needed.insert(op);
            }
        }
    }
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(end);
    b.loc = b.body.ops[branch].loc;
    for part in &behind {
        for &op in part.ops.iter().filter(|op| needed.contains(op)) {
            clone_op_within(op, &mut b, &mut map);
        }
        for (result, value) in part.test_results(b.body).collect::<Vec<_>>() {
            map.set(result, map.get_or_same(value));
        }
    }
    let trips = b.body.operand(counted, 0);
    let ty = b.body.ty(trips);
    let one = b.int(ty, 1);
    let final_index = b.sub(trips, one);
    let index = b.body.region_params(region)[0];
    let is_last = b.icmp(IntPredicate::Eq, index, final_index);
    let ops: Vec<Op> = b.body.ops_in(arm).collect();
    clone_under(&mut b, is_last, ops, &mut map);
    b.body.erase(branch);
    for part in behind.iter().rev() {
        part.drop_dead_results(&mut b, &needed);
    }
    Ok(())
}

/// The code after a loop in its region.
struct AfterLoop {
    ops: Vec<Op>,
    /// The test that guards the loop, and the end of its arm.
    test: Option<(Op, Op)>,
}

impl AfterLoop {
    /// Returns the results of the test, with their values if the loop ran.
    fn test_results<'a>(&self, body: &'a Body) -> impl Iterator<Item = (Value, Value)> + use<'a> {
        let test = self.test.into_iter();
        test.flat_map(|(test, end)| {
            let results = body.results(test).iter().copied();
            results.zip(body.operands(end))
        })
    }

    /// Poisons unused results of the test in the loop's arm, and erases dead `needed` ops.
    fn drop_dead_results(&self, b: &mut Builder<'_>, needed: &HashSet<Op>) {
        if let Some((test, end)) = self.test {
            for (index, result) in b.body.results(test).to_vec().into_iter().enumerate() {
                if !b.body.has_uses(result) {
                    let nothing = b.body.ty(result);
                    let nothing = b.poison(nothing);
                    b.body.set_operand(end, index, nothing);
                }
            }
        }
        for &op in self.ops.iter().rev().filter(|op| needed.contains(op)) {
            if b.body
                .results(op)
                .iter()
                .all(|result| !b.body.has_uses(*result))
            {
                b.body.erase(op);
            }
        }
    }
}

/// Returns the code between a loop and `branch`, which may follow tests that guard the loop.
fn code_after_loop(body: &Body, counted: Op, branch: Op) -> Option<Vec<AfterLoop>> {
    let (mut at, mut found) = (counted, Vec::new());
    while body.parent(at) != body.parent(branch) {
        let arm = body.parent(at)?;
        let test = body
            .owner(arm)
            .filter(|op| matches!(body.kind(*op), OpKind::If))?;
        let end = body.yield_of(arm)?;
        found.push(AfterLoop {
            ops: ops_between(body, at, end)?,
            test: Some((test, end)),
        });
        at = test;
    }
    found.push(AfterLoop {
        ops: ops_between(body, at, branch)?,
        test: None,
    });
    Some(found)
}

/// Clones the ops of an arm, up to its yield, under a condition.
pub(super) fn clone_under(b: &mut Builder<'_>, condition: Value, ops: Vec<Op>, map: &mut ValueMap) {
    let (_, yes, no) = b.if_(condition, &[]);
    b.set_insertion_end(no);
    b.yield_(&[]);
    b.set_insertion_end(yes);
    for op in ops {
        match b.body.kind(op) {
            OpKind::Yield => {
                b.yield_(&[]);
            }
            _ => {
                clone_op_within(op, b, map);
            }
        }
    }
}

fn operands_in_region(body: &Body, region: Region) -> HashSet<Value> {
    let ops = body.walk(region);
    ops.flat_map(|op| body.operands(op).collect::<Vec<_>>())
        .collect()
}
