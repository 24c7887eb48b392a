//! Synchronisation ops at which a block is split.

use gradus_ir::{BarrierScope, Body, Op, OpKind, Unit};

/// Scope of a synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncScope {
    /// All threads of the block arrive before any thread continues.
    Barrier,
    /// All threads of the warp arrive before any thread of the warp continues.
    WarpBarrier,
}

/// Returns the scope of a barrier; `None` for an op that does not synchronise.
pub(crate) fn sync_scope(_unit: &Unit, body: &Body, op: Op) -> Option<SyncScope> {
    match body.kind(op) {
        OpKind::Barrier(BarrierScope::Warp) => Some(SyncScope::WarpBarrier),
        OpKind::Barrier(_) => Some(SyncScope::Barrier),
        _ => None,
    }
}
