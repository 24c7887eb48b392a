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
use crate::SendPtr;
use crate::pool::direct_handoff::{Piece, run_piece};
use crate::pool::rayon_pool::WorkerPool;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest timeout for the start of submitted work.
const MAX_TIMEOUT_NANOS: u64 = 20_000_000;
/// Shortest timeout, after repeated timeouts.
const MIN_TIMEOUT_NANOS: u64 = 50_000;
/// The current timeout.
static TIMEOUT_NANOS: AtomicU64 = AtomicU64::new(MAX_TIMEOUT_NANOS);
/// Reserve pools that are not in use.
static RESERVE_POOLS: Mutex<Vec<WorkerPool>> = Mutex::new(Vec::new());

/// Runs `work` on a worker of `crew`, or of a reserve pool of equal size after a timeout.
pub(super) fn submit_external(crew: WorkerPool, work: impl FnOnce() + Send) {
    let piece = Piece::new(work);
    piece.mark_awaited();
    let patience = TIMEOUT_NANOS.load(Ordering::Relaxed);
    if submit_and_wait(crew, &piece, Duration::from_nanos(patience)) {
        TIMEOUT_NANOS.store(MAX_TIMEOUT_NANOS.min(patience * 2), Ordering::Relaxed);
        return;
    }
    TIMEOUT_NANOS.store(MIN_TIMEOUT_NANOS.max(patience / 4), Ordering::Relaxed);
    let free = reserve_pool(crew.workers);
    // If the system provides no more threads, the only option is to wait.
    submit_and_wait(free.unwrap_or(crew), &piece, Duration::MAX);
    if let Some(crew) = free {
        RESERVE_POOLS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(crew);
    }
}

/// Takes or creates a reserve pool of `workers` workers.
fn reserve_pool(workers: usize) -> Option<WorkerPool> {
    let mut free = RESERVE_POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    match free.iter().position(|crew| crew.workers == workers) {
        Some(place) => Some(free.swap_remove(place)),
        None => WorkerPool::new(workers),
    }
}

/// Submits the piece to `crew` and returns whether the piece ended. After a timeout without a start, no
/// worker will run the piece.
fn submit_and_wait<F: FnOnce() + Send>(
    crew: WorkerPool,
    piece: &Piece<F>,
    patience: Duration,
) -> bool {
    let taken = Arc::new(AtomicBool::new(false));
    let (theirs, head) = (Arc::clone(&taken), SendPtr(piece.head().cast()));
    crew.spawn(move || {
        idle::rise();
        if !theirs.swap(true, Ordering::AcqRel) {
            // SAFETY: the piece was not withdrawn, and the submitting thread waits for its end.
            unsafe { run_piece(head.get().cast()) };
        }
    });
    // The submitting thread cannot run the work itself.
    crew.idlers.wake_one_always();
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
