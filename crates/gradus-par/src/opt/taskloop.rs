//! Taskloop conversion: loops that only spawn one task per iteration become parallel loops.
//!
//! A parallel loop is split into chunks large enough for a fork, whereas spawned tasks are created, or tested
//! for demand, one by one. A parallel loop waits for its iterations, unlike the loop of tasks: an earlier wait
//! is always legal. If possibly no parallel region executes the function ([`orphaned_tasks`]), the loop is versioned.

use crate::prepare_ad::orphaned_tasks;
use gradus_edit::{ValueMap, clone_op_within, is_pure, loops_to_fors};
use gradus_ir::{Body, Builder, Flags, Op, OpKind, Region, Unit};

/// Turns the task loops of a body into parallel loops; returns the number of loops.
pub fn convert_task_loops(unit: &mut Unit, body: &mut Body) -> usize {
    let spawns = |op: Op| matches!(body.kind(op), OpKind::Spawn { .. });
    if !body.walk(body.root()).any(spawns) {
        return 0;
    }
    loops_to_fors(unit, body);
    let loops: Vec<(Op, Op)> = body
        .walk(body.root())
        .filter_map(|op| Some((op, only_task(unit, body, op)?)))
        // A rank runs its parallel loops alone, whereas its tasks are shared.
        .filter(|(op, _)| !body.is_in_team(*op))
        .collect();
    for &(op, spawn) in &loops {
        to_par_for(unit, body, op, spawn);
    }
    loops.len()
}

/// Returns the only task of each iteration of a `for` without carried values and other effects.
fn only_task(unit: &Unit, body: &Body, op: Op) -> Option<Op> {
    if !matches!(body.kind(op), OpKind::For { .. }) || body.operand_count(op) != 1 {
        return None;
    }
    let region = body.op_regions(op)[0];
    let end = body.last(region)?;
    let spawn = body.prev(end)?;
    let free = OpKind::Spawn {
        has_condition: false,
        has_final: false,
    };
    let before = body.ops_in(region).take_while(|o| *o != spawn);
    let quiet = before.into_iter().all(|o| is_pure(unit, body, o));
    (*body.kind(spawn) == free && quiet && is_leaf_task(body, body.op_regions(spawn)[0]))
        .then_some(spawn)
}

/// Returns true if the task reaches its end and spawns no tasks.
fn is_leaf_task(body: &Body, region: Region) -> bool {
    let ends = |op: Op| matches!(body.kind(op), OpKind::Yield);
    let tasks = |op: Op| {
        matches!(
            body.kind(op),
            OpKind::Spawn { .. } | OpKind::Sync | OpKind::Resume | OpKind::Return
        )
    };
    body.last(region).is_some_and(ends) && !body.walk(region).any(tasks)
}

fn to_par_for(unit: &mut Unit, body: &mut Body, op: Op, spawn: Op) {
    let b = &mut Builder::new(unit, body);
    b.set_insertion_before(op);
    b.loc = b.body.ops[op].loc;
    if b.body.ops[spawn].flags.has(Flags::ORPHANED_TASK) {
        version_by_region(b, op);
    }
    let task = b.body.op_regions(spawn)[0];
    gradus_edit::inline_region(b, spawn, task, &[]);
    b.set_insertion_before(op);
    let (trips, region) = (b.body.operand(op, 0), b.body.op_regions(op)[0]);
    let index = b.body.region_params(region)[0];
    let (_, inner) = b.par_for(trips, &[], None);
    let own = b.body.region_params(inner)[0];
    b.body.replace_uses(index, own);
    b.body.move_ops(region, inner);
    b.body.erase(op);
}

/// Versions a loop by the presence of a region with shared loops, else a copy runs. Tasks of a team's rank stay
/// tasks; tasks without a region are run by the creating thread.
fn version_by_region(b: &mut Builder<'_>, op: Op) {
    let shared = orphaned_tasks::shares_loops(b);
    let (_, region, otherwise) = b.if_(shared, &[]);
    b.set_insertion_end(otherwise);
    clone_op_within(op, b, &mut ValueMap::new());
    b.yield_(&[]);
    b.set_insertion_end(region);
    b.body.move_op(op, region);
    b.yield_(&[]);
}
