//! Warp lockstep: inserts warp barriers around volatile stores to shared memory, for code written before
//! Volta.
//!
//! Threads of a warp communicate in such code through volatile shared memory without a barrier, on the
//! assumption of lockstep execution:
//!
//! ```text
//! volatile s; s[t] += s[t + 16]; s[t] += s[t + 8]   →   read; meet; write; meet; read; meet; write; meet
//! ```
//!
//! CUDA no longer specifies the order, and every order is allowed. The pass inserts a warp barrier before
//! and after each volatile store to shared memory. Loads between two stores need no barrier, because loads
//! do not conflict. [`crate::opt::barrier_removal`] removes redundant barriers.
//!
//! Place: before [`crate::opt::uniform_guards`], which must not move code across the barriers. In a block that cannot be
//! split ([`crate::blocks::skeleton`]), the barrier is refused.

use crate::blocks::blocks_to_lower;
use crate::{Options, PassOutcome};
use gradus_analysis::{Alias, Object, PassContext};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{AllocaStorage, BarrierScope, Body, Builder, Op, OpKind, Unit};

/// Runs the pass.
pub(crate) fn run(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    _: &Options,
) -> PassOutcome {
    let mut stores: Vec<Op> = Vec::new();
    for block in blocks_to_lower(body) {
        stores.extend(volatile_shared_stores(unit, body, facts, block));
    }
    for store in stores {
        insert_warp_barriers(unit, body, store);
    }
    PassOutcome::default()
}

/// The volatile stores of a block to shared memory.
pub(crate) fn volatile_shared_stores(
    unit: &Unit,
    body: &Body,
    facts: &PassContext,
    block: Op,
) -> Vec<Op> {
    let region = body.op_regions(block)[0];
    let stores = body.walk(region).filter(|op| is_volatile_store(body, *op));
    let mut stores: Vec<Op> = stores.collect();
    if !stores.is_empty() {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        stores.retain(|store| may_write_shared(&alias, facts, *store));
    }
    stores
}

fn is_volatile_store(body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Store(access) if access.volatile)
}

/// Returns whether a store may write shared memory of a block.
fn may_write_shared(alias: &Alias, facts: &PassContext, store: Op) -> bool {
    let (unit, body) = (alias.unit, alias.body);
    let is_shared = |object: &Object| match object {
        Object::Stack(op) => {
            matches!(body.kind(*op), OpKind::Alloca(info) if info.storage == AllocaStorage::Shared)
        }
        _ => false,
    };
    let accesses = facts.effects.of_op(unit, body, store);
    let targets = accesses.iter().filter_map(|access| alias.objects(access));
    let mut objects = targets.flatten().map(|t| alias.points_to.object(t.object));
    objects.any(|object| is_shared(&object))
}

fn insert_warp_barriers(unit: &mut Unit, body: &mut Body, store: Op) {
    let is_barrier = |body: &Body, op: Option<Op>| {
        op.is_some_and(|op| matches!(body.kind(op), OpKind::Barrier(_)))
    };
    let (before, after) = (body.prev(store), body.next(store));
    let met = is_barrier(body, before) || is_planted(Mutant::LockstepBarrierOnlyAfter);
    let meet = is_barrier(body, after) || is_planted(Mutant::LockstepBarrierOnlyBefore);
    let loc = body.ops[store].loc;
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    for (at, there) in [(Some(store), met), (after, meet)] {
        if let Some(at) = at.filter(|_| !there) {
            b.set_insertion_before(at);
            b.op(OpKind::Barrier(BarrierScope::Warp), &[], &[], 0);
        }
    }
}
