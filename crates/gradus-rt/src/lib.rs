//! What Gradus links into parallel programs: loops, reductions, tasks and teams of threads over one set
//! of workers, behind a C interface of `gr_*` symbols: a work-stealing pool (rayon's) or the threads of
//! OpenMP's library ([`pool`]).
//!
//! Lowered programs call nothing else, so that there is one scheduler in a process. The main thread is
//! a worker, and a task is finished by the thread that began it: thread-local state, `errno` and MPI's
//! funnelled mode stay as the program expects them. `GRADUS_NUM_THREADS`, else `OMP_NUM_THREADS`, sets
//! the number of workers.
//!
//! Work is split lazily: a loop or a spawn makes something that can be stolen only while its worker's
//! own queue is empty (Tzannes et al., *Lazy Binary Splitting*, PPoPP'10), the same with one worker as
//! with many. `GRADUS_FORCE_FORK=1` forks eagerly, for tests.
//!
//! Where a program asks OpenMP's library which thread it is on, or for its part of a loop, and stands
//! in work of ours, the answer is ours ([`answers`], [`worksharing`]); all else goes on to that library.
//!
//! Nothing unwinds through this library: bodies that may throw catch before they return.
//!
//! `unsafe` is what a C interface is made of; every entry states what its caller promises.
#![deny(missing_docs)]

pub mod answers;
pub mod critical;
pub mod cuda;
pub mod exceptions;
mod foreign;
mod paying;
pub mod pool;
pub mod ranges;
pub mod reduce;
mod rows;
mod schedule;
mod scratch;
pub mod strand;
pub mod tasks;
pub mod team;
mod tsan;
mod waiting;
pub mod worksharing;

use std::ffi::c_void;

/// A pointer that goes along with a body from the thread that made it to the one that runs it. Who
/// lowers a program answers for what may be shared behind it.
#[derive(Clone, Copy)]
struct Carried(*mut c_void);

// SAFETY: the program's own synchronisation, which lowering keeps, governs what is behind it.
unsafe impl Send for Carried {}
unsafe impl Sync for Carried {}

impl Carried {
    /// The pointer. A method, so that closures capture the whole.
    fn get(self) -> *mut c_void {
        self.0
    }
}
