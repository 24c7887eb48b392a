//! Work of a thread that is no worker: it is handed in to a pool, and the thread waits for it asleep.
//!
//! All workers of the pool may wait, too, in code of the program: its iterations each join a thread that runs a loop
//! of its own, say. What no worker has begun for a while is therefore taken back and goes to a pool that is there for
//! such work alone, as other run-time libraries give every thread of the program workers of its own from the start.
//!
//! Workers that are only busy come to it in the end, and are too many for the machine with those of a second pool. So a
//! while is long at first, and gets short in a program that has been let down.

use super::handed::{Piece, perform};
use super::idle;
use super::own::Crew;
use crate::Carried;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread waits at most for a worker that begins its work.
const LONGEST_NANOS: u64 = 20_000_000;
/// The same where workers did not come the last times.
const SHORTEST_NANOS: u64 = 50_000;
/// How long a thread waits from now on.
static PATIENCE: AtomicU64 = AtomicU64::new(LONGEST_NANOS);
/// Pools for such work that have none now.
static FREE: Mutex<Vec<Crew>> = Mutex::new(Vec::new());

/// Has a worker of `crew` run `work`, or of another pool of its size where none comes.
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
    // Where the system has no more threads, all that is left is to wait.
    is_done(free.unwrap_or(crew), &piece, Duration::MAX);
    if let Some(crew) = free {
        FREE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(crew);
    }
}

/// A pool of so many workers that this thread has for itself.
fn free(workers: usize) -> Option<Crew> {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    match free.iter().position(|crew| crew.workers == workers) {
        Some(place) => Some(free.swap_remove(place)),
        None => Crew::new(workers),
    }
}

/// Whether a worker of `crew` has done the piece; where none began it for so long, nobody will.
fn is_done<F: FnOnce() + Send>(crew: Crew, piece: &Piece<F>, patience: Duration) -> bool {
    let taken = Arc::new(AtomicBool::new(false));
    let (theirs, head) = (Arc::clone(&taken), Carried(piece.head().cast()));
    crew.spawn(move || {
        idle::rise();
        if !theirs.swap(true, Ordering::AcqRel) {
            // SAFETY: it was not taken back, so that who handed it in waits until it has ended.
            unsafe { perform(head.get().cast()) };
        }
    });
    // Who hands it in cannot do it.
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
