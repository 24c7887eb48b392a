//! Raising of spawn statements: the arm of a `gr_spawn` or `cilk_spawn` becomes a task.
//!
//! The arguments of a spawned call are computed before the spawn. Values live-out of the arm go through memory and
//! are reloaded after the next sync; an earlier use gets a sync in front. [`crate::intrinsics`] finds the statements.

use crate::handlers;
use crate::intrinsics::{SerialReason, other_arm, privatize_allocations};
use crate::regions::move_region_before;
use gradus_edit::{is_pure, is_speculatable};
use gradus_ir::externals::ExternalFn;
use gradus_ir::{AllocaStorage, Body, Builder, Op, OpKind, Region, TypeId, Unit, Value};

/// Hoists the ops before the last call of an arm above the branch: arguments are computed before the spawn.
pub(crate) fn hoist_arguments(unit: &Unit, body: &mut Body, branch: Op, side: Region) {
    let calls = |op: &Op| match body.kind(*op) {
        OpKind::Call(_) => {
            let known = unit.known_callee(body, *op);
            !matches!(known, Some(ExternalFn::Marker(_)))
        }
        kind => matches!(kind, OpKind::Invoke(_)),
    };
    let Some(call) = body.ops_in_rev(side).find(calls) else {
        // Not an error: an optimiser has inlined the call, and the whole arm is the task.
        return;
    };
    let before: Vec<Op> = body.ops_in(side).take_while(|op| *op != call).collect();
    for op in before {
        body.detach(op);
        body.insert_before(branch, op);
    }
}

/// Hoists the ops of the other arm above the branch, and replaces results computed equally in both arms. An
/// optimiser that finds a task's argument recomputed after the task sinks the computation into both arms.
pub(crate) fn hoist_common_values(unit: &Unit, body: &mut Body, branch: Op, side: Region) {
    let Some(other) = other_arm(body, branch, side) else {
        unreachable!("a branch has two arms");
    };
    let ends = [side, other].map(|r| body.last(r).and_then(|end| ends_with_values(body, end)));
    let [Some(here), Some(there)] = ends else {
        // Not an error: control does not reach the end of an arm, which then yields nothing.
        return;
    };
    let made = body
        .ops_in(other)
        .filter(|op| !body.kind(*op).is_terminator());
    let made: Vec<Op> = made.collect();
    if !made.iter().all(|op| is_speculatable(unit, body, *op)) {
        return;
    }
    for op in made {
        body.detach(op);
        body.insert_before(branch, op);
    }
    let results = body.results(branch).to_vec();
    for (result, (a, b)) in results.into_iter().zip(here.into_iter().zip(there)) {
        if is_structurally_equal(unit, body, a, b) {
            body.replace_uses(result, b);
        }
    }
}

/// Returns true if two values are identical or structurally equal.
fn is_structurally_equal(unit: &Unit, body: &Body, a: Value, b: Value) -> bool {
    let mut work = vec![(a, b)];
    for _ in 0..SEARCH_OPS_MAX {
        let Some((a, b)) = work.pop() else {
            return true;
        };
        if a == b {
            continue;
        }
        let (Some(one), Some(two)) = (body.def_op(a), body.def_op(b)) else {
            return false;
        };
        let alike = body.kind(one) == body.kind(two)
            && body.ops[one].flags == body.ops[two].flags
            && body.ty(a) == body.ty(b)
            && is_speculatable(unit, body, one)
            && !matches!(body.kind(one), OpKind::Freeze)
            && body.results(one).len() == 1
            && body.operand_count(one) == body.operand_count(two);
        if !alike {
            return false;
        }
        work.extend(body.operands(one).zip(body.operands(two)));
    }
    false
}

/// The search limit for the store of a task's result, and for structural comparison, in ops.
const SEARCH_OPS_MAX: usize = 64;

/// Moves the store of a branch's only result into the arm; the address is computed before the branch.
pub(crate) fn move_store_into_arm(unit: &Unit, body: &mut Body, branch: Op, side: Region) {
    let yields = |end: &Op| matches!(body.kind(*end), OpKind::Yield);
    let stored = result_store(unit, body, branch).zip(body.last(side).filter(yields));
    let Some(((chain, before), end)) = stored else {
        // Not an error: the result has other uses and goes through memory, or the arm is no-return.
        return;
    };
    let given = body.operand(end, 0);
    for op in before {
        body.detach(op);
        body.insert_before(branch, op);
    }
    let result = body.result(branch);
    body.replace_uses(result, given);
    for op in chain {
        body.detach(op);
        body.insert_before(end, op);
    }
}

/// Returns the ops that store the result of a branch, and the remaining ops before the store. `None` for other
/// uses or intervening effects.
fn result_store(unit: &Unit, body: &Body, branch: Op) -> Option<(Vec<Op>, Vec<Op>)> {
    let [mut value] = *body.results(branch) else {
        return None;
    };
    let mut chain = Vec::new();
    loop {
        let mut uses = body.uses(value);
        let (Some(used), None) = (uses.next(), uses.next()) else {
            return None;
        };
        chain.push(used.op);
        match body.kind(used.op) {
            OpKind::Cast(_) => value = body.result(used.op),
            OpKind::Store(access) if access.is_plain() && used.index == 0 => break,
            _ => return None,
        }
    }
    let store = *chain.last()?;
    let (mut before, mut at) = (Vec::new(), body.next(branch));
    for _ in 0..SEARCH_OPS_MAX {
        let op = at?;
        if op == store {
            return Some((chain, before));
        }
        let load = matches!(body.kind(op), OpKind::Load(access) if access.is_plain());
        if !chain.contains(&op) {
            if !load && !is_pure(unit, body, op) {
                return None;
            }
            before.push(op);
        }
        at = body.next(op);
    }
    None
}

/// Turns an arm of a branch into a task.
pub(crate) fn raise_spawn(
    unit: &mut Unit,
    body: &mut Body,
    branch: Op,
    side: Region,
) -> Result<(), SerialReason> {
    let other = other_arm(body, branch, side);
    let empty = other.is_none_or(|other| {
        let alone = body.first(other) == body.last(other);
        let never = |op: Op| matches!(body.kind(op), OpKind::Unreachable);
        alone || body.last(other).is_some_and(never)
    });
    let ends = |op: Op| matches!(body.kind(op), OpKind::Yield);
    if let Some(call) = handlers::call_with_handler(unit, body, side) {
        return Err((handlers::CAUGHT_HERE, Some(call)));
    }
    let passes = |op: &Op| matches!(body.kind(*op), OpKind::Resume);
    if let Some(end) = body.walk(side).find(passes) {
        return Err((handlers::RUNS_DESTRUCTORS, Some(end)));
    }
    let leaves = |op: Op| matches!(body.kind(op), OpKind::Return);
    if !empty || !body.last(side).is_some_and(ends) || body.walk(side).any(leaves) {
        return Err(("control may leave the statement", None));
    }
    let before = other.and_then(|other| {
        let end = body.last(other)?;
        ends_with_values(body, end)
    });
    let b = &mut Builder::new(unit, body);
    let results = b.body.results(branch).to_vec();
    let slots = result_slots(b, branch, &results);
    b.loc = b.body.ops[branch].loc;
    b.set_insertion_before(branch);
    for (index, slot) in slots.iter().enumerate() {
        let old = before.as_ref().map(|values| values[index]);
        if let (Some(slot), Some(old)) = (
            *slot,
            old.filter(|v| !b.body.is_undef_or_poison(b.unit, *v)),
        ) {
            b.store(old, slot);
        }
    }
    // Further conditions of the branch are tested before the spawn. Without further conditions the branch is
    // removed with the intrinsic.
    let condition = b.body.operand(branch, 0);
    let (asked, [on, off]) = {
        let (asked, yes, no) = b.if_(condition, &[]);
        let is_first = b.body.op_regions(branch)[0] == side;
        (asked, if is_first { [yes, no] } else { [no, yes] })
    };
    b.set_insertion_end(off);
    b.yield_(&[]);
    b.set_insertion_end(on);
    let kind = OpKind::Spawn {
        has_condition: false,
        has_final: false,
    };
    let task = b.op(kind, &[], &[], 1);
    b.yield_(&[]);
    let region = b.body.op_regions(task)[0];
    b.set_insertion_end(region);
    let end = b.yield_(&[]);
    let values = move_region_before(b.body, side, end);
    b.set_insertion_before(end);
    for (slot, value) in slots.iter().zip(values) {
        if let Some(slot) = *slot {
            b.store(value, slot);
        }
    }
    for (slot, result) in slots.into_iter().zip(results) {
        if let Some(slot) = slot {
            reload_after_sync(b, asked, result, slot);
        }
    }
    b.body.erase(branch);
    privatize_allocations(body, region);
    Ok(())
}

fn ends_with_values(body: &Body, end: Op) -> Option<Vec<Value>> {
    matches!(body.kind(end), OpKind::Yield).then(|| body.operands(end).collect())
}

/// Allocates a slot per used result, in the frame of the strand that executes the branch.
fn result_slots(b: &mut Builder<'_>, branch: Op, results: &[Value]) -> Vec<Option<Value>> {
    let home = strand_region(b.body, branch);
    let types: Vec<Option<TypeId>> = results
        .iter()
        .map(|v| b.body.has_uses(*v).then(|| b.body.ty(*v)))
        .collect();
    if let Some(first) = b.body.first(home) {
        b.set_insertion_before(first);
    }
    let mut slots = Vec::new();
    for ty in types {
        slots.push(ty.map(|ty| b.alloca(ty)));
    }
    if home != b.body.root() {
        for slot in slots.iter().flatten() {
            if let Some(op) = b.body.def_op(*slot)
                && let OpKind::Alloca(info) = &mut b.body.ops[op].kind
            {
                info.storage = AllocaStorage::Private;
            }
        }
    }
    slots
}

/// Returns the region executed anew by each task or iteration around `op`, or the root.
fn strand_region(body: &Body, op: Op) -> Region {
    let mut at = body.parent(op).unwrap_or(body.root());
    while let Some(owner) = body.owner(at) {
        let own = match body.kind(owner) {
            OpKind::Spawn { .. } => true,
            _ => body.is_independent(owner),
        };
        match body.parent(owner) {
            Some(outer) if !own => at = outer,
            _ => break,
        }
    }
    at
}

/// Replaces uses of a task's value by loads of its slot after a sync.
fn reload_after_sync(b: &mut Builder<'_>, task: Op, value: Value, slot: Value) {
    let ty = b.body.ty(value);
    let uses: Vec<_> = b.body.uses(value).collect();
    for used in uses {
        b.set_insertion_before(used.op);
        if !is_synced_before(b.body, task, used.op) {
            b.op(OpKind::Sync, &[], &[], 0);
        }
        let now = b.load(ty, slot);
        b.body.set_operand(used.op, used.index as usize, now);
    }
}

/// Returns true if every path from the task to the use passes a sync.
fn is_synced_before(body: &Body, task: Op, user: Op) -> bool {
    let syncs = |op: Op| matches!(body.kind(op), OpKind::Sync);
    let home = body.parent(task);
    let mut at = user;
    loop {
        let mut before = body.prev(at);
        while let Some(op) = before.filter(|op| *op != task) {
            if syncs(op) {
                return true;
            }
            before = body.prev(op);
        }
        if body.parent(at) == home {
            return false;
        }
        match body.parent_op(at) {
            Some(owner) => at = owner,
            None => return false,
        }
    }
}
