//! Run-time library of parallel programs: loops, reductions, tasks and teams over a single thread pool,
//! behind the C interface `gr_*`. The pool is a work-stealing pool (rayon's) or the threads of an OpenMP
//! library ([`pool`]).
//!
//! Lowered programs call no other scheduler; a process has exactly one. The main thread is a worker, and a
//! task finishes on the thread that started the task. Thread-local state, `errno` and MPI's funnelled mode
//! therefore behave as the program expects. `GRADUS_NUM_THREADS`, else `OMP_NUM_THREADS`, sets the number of
//! workers.
//!
//! Work is split lazily: a loop or a spawn creates stealable work only while the worker's own deque is empty
//! (Tzannes et al., *Lazy Binary Splitting*, PPoPP'10), with one worker as with many. `GRADUS_FORCE_FORK=1`
//! forks eagerly, for tests.
//!
//! A program may query the OpenMP library for the thread number, or for a share of a worksharing loop,
//! inside work of this library. Such queries are answered here ([`omp::queries`], [`omp::worksharing`]); all others go
//! to the OpenMP library.
//!
//! # Invariants
//! - Nothing unwinds through this library: a body that may throw catches before returning.
//! - `unsafe` belongs to the C interface; every entry states the caller's obligations.
#![deny(missing_docs)]

pub mod cuda;
mod enclosing_regions;
pub mod exceptions;
mod foreign_library;
mod kernel_faults;
pub mod loops;
pub mod omp;
pub mod pool;
mod runtime_schedule;
pub mod tasks;
pub mod team;
pub mod team_state;
pub mod thread_context;
pub mod thread_scratch;
mod tsan;

use std::ffi::c_void;

/// A pointer passed with a body from the creating thread to the running thread. The lowering is responsible
/// for the sharing of the pointee.
#[derive(Clone, Copy)]
struct SendPtr(*mut c_void);

// SAFETY: the program's own synchronisation, preserved by the lowering, governs the pointee.
unsafe impl Send for SendPtr {}
unsafe impl Sync for SendPtr {}

impl SendPtr {
    /// The pointer; a method, because closures then capture the whole struct.
    fn get(self) -> *mut c_void {
        self.0
    }
}
