//! Parallel intrinsics of the header `gradus/parallel.h`, as calls in compiled code.

use super::{Effects, Known, Row};

/// A parallel intrinsic. The result, if any, is a branch condition; the intrinsic applies to the branch for
/// 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ForkFn {
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
    row(&["__gr_spawning"], ForkFn::Spawning),
    row(&["__gr_spawning_call"], ForkFn::SpawningCall),
    row(&["__gr_looping"], ForkFn::Looping),
    row(&["__gr_scoping"], ForkFn::Scoping),
    row(&["__gr_syncing"], ForkFn::Syncing),
];

const fn row(names: &'static [&'static str], id: ForkFn) -> Row {
    Row {
        names,
        known: Known::Fork(id),
        effects: Effects::UNKNOWN,
    }
}
