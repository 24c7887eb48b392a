//! The ops at which threads of a block meet.

use gradus_ir::{BarrierScope, Body, Op, OpKind, Unit};

/// What happens where threads meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// Every thread of the block comes here before any goes on.
    Barrier,
    /// The same for the threads of a warp.
    WarpBarrier,
}

/// Whether threads meet at an op, and how.
pub(crate) fn split(_unit: &Unit, body: &Body, op: Op) -> Option<Split> {
    match body.kind(op) {
        OpKind::Barrier(BarrierScope::Warp) => Some(Split::WarpBarrier),
        OpKind::Barrier(_) => Some(Split::Barrier),
        _ => None,
    }
}
