//! Synchronisation ops at which a block is split.

use gradus_ir::{BarrierScope, Body, Op, OpKind, Unit};

/// Scope of a synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// All threads of the block arrive before any thread continues.
    Barrier,
    /// All threads of the warp arrive before any thread of the warp continues.
    WarpBarrier,
}

/// Returns the scope of a barrier; `None` for an op that does not synchronise.
pub(crate) fn split(_unit: &Unit, body: &Body, op: Op) -> Option<Split> {
    match body.kind(op) {
        OpKind::Barrier(BarrierScope::Warp) => Some(Split::WarpBarrier),
        OpKind::Barrier(_) => Some(Split::Barrier),
        _ => None,
    }
}
