//! State of a team: its ranks, their progress through shared constructs, and the context in which the team
//! began.
//!
//! The context of a thread refers to its rank ([`crate::thread_context`]). [`crate::team`] begins teams and runs
//! the shared constructs.

use crate::runtime_schedule::AtomicSchedule;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Limit of loops in progress at once without a barrier in between; faster ranks wait.
pub(crate) const MAX_LOOPS_IN_PROGRESS: usize = 8;

/// A running team.
#[derive(Debug)]
pub struct Team {
    pub(crate) size: AtomicU32,
    /// The enclosing regions of this library.
    pub(crate) enclosing: EnclosingRegions,
    /// Context of the thread that began the team.
    pub(crate) begin_context: BeginContext,
    pub(crate) arrived: AtomicU32,
    pub(crate) generation: AtomicU32,
    /// Number of single regions already claimed by a rank.
    pub(crate) claimed_singles: AtomicU64,
    pub(crate) loops: [SharedLoop; MAX_LOOPS_IN_PROGRESS],
    /// Schedule of loops without a schedule of their own (`schedule(runtime)`).
    pub(crate) schedule: AtomicSchedule,
    /// Address broadcast by a rank (`copyprivate`).
    pub(crate) broadcast: AtomicPtr<c_void>,
}

/// Enclosing regions of this library: the number of levels, and of levels with several threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EnclosingRegions {
    pub(crate) levels: i32,
    pub(crate) active: i32,
    /// Product of the thread counts of all enclosing regions.
    pub(crate) threads: u32,
}

/// Context in which a team begins: the thread number and number of threads if the work belongs to this
/// library, and the rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeginContext {
    pub(crate) place: Option<(i32, i32)>,
    pub(crate) member: *const Member,
    /// Thread count requested for regions begun in that context.
    pub(crate) wanted: u32,
}

// SAFETY: the beginning thread waits for the team's end, and ranks read only constant fields of the member.
unsafe impl Send for BeginContext {}
// SAFETY: as above.
unsafe impl Sync for BeginContext {}

/// A loop whose iterations the ranks fetch from a shared counter.
#[derive(Debug, Default)]
pub(crate) struct SharedLoop {
    /// Number of the loop in this slot, counted from 1; 0 if no rank has reached the slot.
    pub(crate) number: AtomicU64,
    pub(crate) next: AtomicI64,
    /// Number of ranks that have reached the loop's end.
    pub(crate) ranks_done: AtomicU32,
}

/// A rank of a team, and its progress through the team's shared constructs.
#[derive(Debug)]
pub struct Member {
    pub(crate) team: *const Team,
    pub(crate) rank: u32,
    /// Some workers are not in the team.
    excludes_workers: bool,
    pub(crate) singles: Cell<u64>,
    pub(crate) loops: Cell<u64>,
    /// Number of the last loop whose end this rank has reached. Each rank counts once in
    /// [`SharedLoop::ranks_done`], and fetches nothing from a slot that later loops may use.
    pub(crate) ended_loop: Cell<u64>,
    /// Number of round-robin chunks this rank has taken from the current loop.
    pub(crate) chunks_taken: Cell<i64>,
    /// The dispatch loop in progress, of code compiled for the OpenMP library.
    pub(crate) dispatch: Cell<Dispatch>,
}

/// Parameters of a dispatch loop: bounds in the program's index type, and chunks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dispatch {
    pub(crate) lower: i64,
    pub(crate) step: i64,
    pub(crate) trips: i64,
    pub(crate) chunk: i64,
    pub(crate) guided: bool,
}

impl Member {
    pub(crate) fn new(team: &Team, rank: u32, excludes_workers: bool) -> Self {
        Member {
            team,
            rank,
            excludes_workers,
            singles: Cell::new(0),
            loops: Cell::new(0),
            ended_loop: Cell::new(0),
            chunks_taken: Cell::new(0),
            dispatch: Cell::default(),
        }
    }

    /// Returns whether some workers are not in the team.
    pub(crate) fn excludes_workers(&self) -> bool {
        self.excludes_workers
    }

    /// The team.
    pub(crate) fn team(&self) -> &Team {
        // SAFETY: the team lives until all of its ranks have ended.
        unsafe { &*self.team }
    }
}

impl Team {
    /// The number of ranks.
    pub(crate) fn size(&self) -> u32 {
        self.size.load(Ordering::Relaxed)
    }

    /// Sets the number of ranks. Each rank stores the number before reaching any shared construct.
    pub(crate) fn set_size(&self, ranks: u32) {
        self.size.store(ranks, Ordering::Relaxed);
    }
}
