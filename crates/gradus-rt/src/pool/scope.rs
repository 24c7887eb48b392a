//! Scope of tasks: a counter, in the program's memory, of tasks in progress.
//!
//! [`crate::tasks`] changes the counter. With OpenMP threads as workers, the address of the scope identifies
//! the region that a spawn of the scope began ([`super::libomp`]).

use std::sync::atomic::AtomicUsize;

/// A group of tasks with a common sync. Initialised with zeros; [`gr_sync`](crate::tasks::gr_sync) must be the last call on the
/// scope before its memory is released.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Scope {
    /// Number of tasks in progress.
    pub(crate) open: AtomicUsize,
}
