//! The markers of `gradus/parallel.h`: what its words become where Gradus compiles.

use super::{Effects, Known, Row};

/// A marker. Those that give a number stand in a condition, whose side for 1 is what they mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ForkFn {
    /// `→ i32`: a statement that is a task.
    Spawning,
    /// `→ i32`: an expression whose last call is a task; its arguments are computed before.
    SpawningCall,
    /// `→ i32`: a loop whose iterations may run at once.
    Looping,
    /// `→ i32`: a statement at whose end its tasks are waited for.
    Scoping,
    /// Waits for the tasks made so far.
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
