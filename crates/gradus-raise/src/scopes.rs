//! Scopes around tasks that have none, as small as can be.
//!
//! A scope waits at its end for the tasks made inside. It goes from the first task of a strand to its last
//! wait, where all is waited for there, else to the end of the strand.

use crate::regions::wrap_ops;
use gradus_ir::{BarrierScope, Body, Builder, Op, OpKind, Region, Unit};

/// The region whose end all tasks of a strand must have reached: the root's, or that of the nearest op
/// around that runs its region as a strand or as one of several.
pub(crate) fn strand(body: &Body, op: Op) -> Region {
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

/// Puts scopes around tasks that have none.
pub(crate) fn scopes(unit: &mut Unit, body: &mut Body) {
    let mut strands = Vec::new();
    for op in body.walk(body.root()) {
        if matches!(body.kind(op), OpKind::Spawn { .. }) && !in_scope(body, op) {
            let strand = strand(body, op);
            if !strands.contains(&strand) {
                strands.push(strand);
            }
        }
    }
    for strand in strands {
        scope_in(unit, body, strand);
    }
}

fn in_scope(body: &Body, op: Op) -> bool {
    let strand = strand(body, op);
    let mut at = body.parent(op);
    while let Some(region) = at.filter(|r| *r != strand) {
        let owner = body.owner(region);
        if owner.is_some_and(|o| matches!(body.kind(o), OpKind::Scope)) {
            return true;
        }
        at = owner.and_then(|o| body.parent(o));
    }
    false
}

/// One scope for the tasks of a strand: as small as it can be where the last of it is a wait.
fn scope_in(unit: &mut Unit, body: &mut Body, strand: Region) {
    let mut region = strand;
    loop {
        let busy: Vec<Op> = body
            .ops_in(region)
            .filter(|&op| concerns(body, op))
            .collect();
        let [only] = busy[..] else { break };
        let branches = matches!(body.kind(only), OpKind::If | OpKind::Switch(_));
        let inner: Vec<Region> = body
            .op_regions(only)
            .iter()
            .copied()
            .filter(|r| body.ops_in(*r).any(|op| concerns(body, op)))
            .collect();
        let waited = |region: Region| {
            let busy = body.ops_in_rev(region).find(|&op| concerns(body, op));
            busy.is_some_and(|op| matches!(body.kind(op), OpKind::Sync))
        };
        match inner[..] {
            [inner] if branches && waited(inner) => region = inner,
            _ => break,
        }
    }
    let ops: Vec<Op> = body.ops_in(region).collect();
    let Some(first) = ops.iter().position(|&op| concerns(body, op)) else {
        unreachable!("a strand gets a scope because a task is made in it");
    };
    let last = ops
        .iter()
        .rposition(|&op| concerns(body, op))
        .unwrap_or(first);
    let waited = matches!(body.kind(ops[last]), OpKind::Sync);
    let end = match waited {
        true => last,
        // Without a wait tasks run on while the rest of the region does.
        false => ops.len() - 2,
    };
    for barrier in barriers(body, &ops[first..=end]) {
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

/// The barriers among the ops and inside them, at which tasks must have ended.
fn barriers(body: &Body, ops: &[Op]) -> Vec<Op> {
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

/// Whether an op makes tasks or waits for them, or one inside does.
fn concerns(body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Sync) || spawns(body, op) || {
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

/// Whether the op, or one inside that belongs to the same strand, spawns a task that no scope inside
/// waits for.
pub(crate) fn spawns(body: &Body, op: Op) -> bool {
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

/// Takes away syncs outside of all scopes: no task is there to wait for.
pub(crate) fn drop_idle_syncs(body: &mut Body) {
    let idle = |op: &Op| matches!(body.kind(*op), OpKind::Sync) && !in_scope(body, *op);
    let idle: Vec<Op> = body.walk(body.root()).filter(idle).collect();
    for op in idle {
        body.erase(op);
    }
}
