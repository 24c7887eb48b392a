//! Parallel intrinsics of the header `gradus/parallel.h`, as calls in compiled code.

use super::{Effects, ExternalFn, Row};

/// A parallel intrinsic. The result, if any, is a branch condition; the intrinsic applies to the branch for
/// 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ParallelIntrinsic {
    /// `→ i32`: a statement executed as a task.
    Spawning,
    /// `→ i32`: an expression; the last call runs as a task, after evaluation of the call's arguments.
    SpawningCall,
    /// `→ i32`: a loop with possibly concurrent iterations.
    Looping,
    /// `→ i32`: a statement with a sync at the end, for the tasks spawned inside.
    Scoping,
    /// Waits for the tasks spawned so far.
    Syncing,
}

// table
pub(super) const ROWS: &[Row] = &[
    row(&["__gr_spawning"], ParallelIntrinsic::Spawning),
    row(&["__gr_spawning_call"], ParallelIntrinsic::SpawningCall),
    row(&["__gr_looping"], ParallelIntrinsic::Looping),
    row(&["__gr_scoping"], ParallelIntrinsic::Scoping),
    row(&["__gr_syncing"], ParallelIntrinsic::Syncing),
];

const fn row(names: &'static [&'static str], id: ParallelIntrinsic) -> Row {
    Row {
        names,
        known: ExternalFn::Fork(id),
        effects: Effects::UNKNOWN,
    }
}
