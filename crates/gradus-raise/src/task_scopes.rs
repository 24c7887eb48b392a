//! Scopes of tasks: inserts minimal scopes around tasks without one.
//!
//! A scope waits at its end for its tasks. The inserted scope extends from the first task of a strand to the
//! last sync, if no task follows, else to the end of the strand.

use crate::regions::wrap_ops;
use gradus_ir::{BarrierScope, Body, Builder, Op, OpKind, Region, Unit};

/// Returns the region by whose end all tasks of a strand must have finished. The region is the root, or belongs
/// to the nearest enclosing op that runs its region as a strand or as one of several.
pub(crate) fn strand_region(body: &Body, op: Op) -> Region {
    let mut at = body.parent(op).unwrap_or(body.root());
    while let Some(owner) = body.owner(at) {
        let ends = matches!(
            body.kind(owner),
            OpKind::Spawn { .. }
                | OpKind::ParFor { .. }
                | OpKind::Spmd { .. }
                | OpKind::ShareFor { .. }
                | OpKind::Single { .. }
                | OpKind::Critical(_)
        );
        match body.parent(owner) {
            Some(outer) if !ends => at = outer,
            _ => break,
        }
    }
    at
}

/// Inserts scopes around tasks without one.
pub(crate) fn insert_scopes(unit: &mut Unit, body: &mut Body) {
    let mut strands = Vec::new();
    for op in body.walk(body.root()) {
        if matches!(body.kind(op), OpKind::Spawn { .. }) && !in_scope(body, op) {
            let strand = strand_region(body, op);
            if !strands.contains(&strand) {
                strands.push(strand);
            }
        }
    }
    for strand in strands {
        insert_scope(unit, body, strand);
    }
}

/// Returns true if a scope of the op's strand encloses `op`.
pub(crate) fn in_scope(body: &Body, op: Op) -> bool {
    let strand = body.owner(strand_region(body, op));
    body.ancestors(op)
        .take_while(|at| Some(*at) != strand)
        .any(|at| matches!(body.kind(at), OpKind::Scope))
}

/// Inserts one scope for the tasks of a strand, minimal if the strand's last task op is a sync.
fn insert_scope(unit: &mut Unit, body: &mut Body, strand: Region) {
    let mut region = strand;
    loop {
        let busy: Vec<Op> = body
            .ops_in(region)
            .filter(|&op| has_task_op(body, op))
            .collect();
        let [only] = busy[..] else { break };
        let branches = matches!(body.kind(only), OpKind::If | OpKind::Switch(_));
        let inner: Vec<Region> = body
            .op_regions(only)
            .iter()
            .copied()
            .filter(|r| body.ops_in(*r).any(|op| has_task_op(body, op)))
            .collect();
        let waited = |region: Region| {
            let busy = body.ops_in_rev(region).find(|&op| has_task_op(body, op));
            busy.is_some_and(|op| matches!(body.kind(op), OpKind::Sync))
        };
        match inner[..] {
            [inner] if branches && waited(inner) => region = inner,
            _ => break,
        }
    }
    let ops: Vec<Op> = body.ops_in(region).collect();
    let Some(first) = ops.iter().position(|&op| has_task_op(body, op)) else {
        unreachable!("a strand with a new scope contains a task op");
    };
    let last = ops
        .iter()
        .rposition(|&op| has_task_op(body, op))
        .unwrap_or(first);
    let waited = matches!(body.kind(ops[last]), OpKind::Sync);
    let end = match waited {
        true => last,
        // Without a sync, tasks run concurrently with the rest of the region.
        false => ops.len() - 2,
    };
    for barrier in team_barriers(body, &ops[first..=end]) {
        let sync = body.new_op(OpKind::Sync, &[], &[], 0);
        body.insert_before(barrier, sync);
    }
    let mut list = Vec::new();
    let mut at = Some(ops[first]);
    while let Some(op) = at {
        list.push(op);
        at = if op == ops[end] { None } else { body.next(op) };
    }
    let mut b = Builder::new(unit, body);
    wrap_ops(&mut b, &list, OpKind::Scope);
}

/// Returns the team barriers among `ops` and nested ops; tasks must have finished at a barrier.
fn team_barriers(body: &Body, ops: &[Op]) -> Vec<Op> {
    let mut found = Vec::new();
    let mut open = ops.to_vec();
    while let Some(op) = open.pop() {
        match body.kind(op) {
            OpKind::Barrier(BarrierScope::Team) => found.push(op),
            OpKind::Spmd { .. } | OpKind::Spawn { .. } => {}
            _ => {
                let regions = body.op_regions(op).iter();
                open.extend(regions.flat_map(|r| body.ops_in(*r)));
            }
        }
    }
    found
}

/// Returns true if `op` spawns or syncs, directly or in a nested op.
fn has_task_op(body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Sync) || has_unscoped_spawn(body, op) || {
        let regions = body.op_regions(op).iter();
        let scoped = matches!(
            body.kind(op),
            OpKind::Scope | OpKind::Spmd { .. } | OpKind::Spawn { .. }
        );
        !scoped
            && regions
                .flat_map(|r| body.walk(*r))
                .any(|o| matches!(body.kind(o), OpKind::Sync) && !in_scope(body, o))
    }
}

/// Returns true if `op`, or a nested op of the strand, spawns a task without an inner scope.
pub(crate) fn has_unscoped_spawn(body: &Body, op: Op) -> bool {
    let mut open = vec![op];
    while let Some(op) = open.pop() {
        match body.kind(op) {
            OpKind::Spawn { .. } => return true,
            OpKind::Scope | OpKind::Spmd { .. } => continue,
            _ => {}
        }
        for &region in body.op_regions(op) {
            open.extend(body.ops_in(region));
        }
    }
    false
}

/// Removes syncs outside of all scopes: no task can be pending.
pub(crate) fn drop_idle_syncs(body: &mut Body) {
    let idle = |op: &Op| matches!(body.kind(*op), OpKind::Sync) && !in_scope(body, *op);
    let idle: Vec<Op> = body.walk(body.root()).filter(idle).collect();
    for op in idle {
        body.erase(op);
    }
}
