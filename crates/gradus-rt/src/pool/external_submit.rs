//! External submission: work of a thread outside the pool is submitted to a pool, and the thread sleeps
//! until completion.
//!
//! All workers of the pool may be blocked in program code, for example in iterations that each join a thread
//! with its own loop. Work that no worker has started for some time is therefore withdrawn, and submitted to
//! a reserve pool for external work. Other run-time libraries create a team for each external thread from
//! the start.
//!
//! Busy workers reach the work eventually, and a second pool would oversubscribe the machine. The timeout is
//! therefore long at first, and becomes short in a program whose submissions timed out.

use super::idle;
use crate::Carried;
use crate::pool::direct_handoff::{Piece, perform};
use crate::pool::rayon_pool::Crew;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest timeout for the start of submitted work.
const LONGEST_NANOS: u64 = 20_000_000;
/// Shortest timeout, after repeated timeouts.
const SHORTEST_NANOS: u64 = 50_000;
/// The current timeout.
static PATIENCE: AtomicU64 = AtomicU64::new(LONGEST_NANOS);
/// Reserve pools that are not in use.
static FREE: Mutex<Vec<Crew>> = Mutex::new(Vec::new());

/// Runs `work` on a worker of `crew`, or of a reserve pool of equal size after a timeout.
pub(super) fn hand_in(crew: Crew, work: impl FnOnce() + Send) {
    let piece = Piece::new(work);
    piece.will_be_awaited();
    let patience = PATIENCE.load(Ordering::Relaxed);
    if is_done(crew, &piece, Duration::from_nanos(patience)) {
        PATIENCE.store(LONGEST_NANOS.min(patience * 2), Ordering::Relaxed);
        return;
    }
    PATIENCE.store(SHORTEST_NANOS.max(patience / 4), Ordering::Relaxed);
    let free = free(crew.workers);
    // If the system provides no more threads, the only option is to wait.
    is_done(free.unwrap_or(crew), &piece, Duration::MAX);
    if let Some(crew) = free {
        FREE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(crew);
    }
}

/// Takes or creates a reserve pool of `workers` workers.
fn free(workers: usize) -> Option<Crew> {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    match free.iter().position(|crew| crew.workers == workers) {
        Some(place) => Some(free.swap_remove(place)),
        None => Crew::new(workers),
    }
}

/// Submits the piece to `crew` and returns whether the piece ended. After a timeout without a start, no
/// worker will run the piece.
fn is_done<F: FnOnce() + Send>(crew: Crew, piece: &Piece<F>, patience: Duration) -> bool {
    let taken = Arc::new(AtomicBool::new(false));
    let (theirs, head) = (Arc::clone(&taken), Carried(piece.head().cast()));
    crew.spawn(move || {
        idle::rise();
        if !theirs.swap(true, Ordering::AcqRel) {
            // SAFETY: the piece was not withdrawn, and the submitting thread waits for its end.
            unsafe { perform(head.get().cast()) };
        }
    });
    // The submitting thread cannot run the work itself.
    crew.idlers.call_in();
    let begin = Instant::now();
    while !piece.has_ended() {
        let left = patience.saturating_sub(begin.elapsed());
        if left.is_zero() && !taken.swap(true, Ordering::AcqRel) {
            return false;
        }
        match left.is_zero() {
            true => std::thread::park(),
            false => std::thread::park_timeout(left),
        }
    }
    true
}
