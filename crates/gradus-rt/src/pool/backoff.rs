//! Backoff: a waiting thread spins for about the cost of a wake-up, then sleeps.
//!
//! Waking a thread takes longer than many a parallel loop. A thread that waits for another worker's share of
//! a loop therefore spins before rayon takes over the waiting ([`await_progress`]). An idle worker of the rayon
//! pool spins for a while, because the next loop is often near.

use crate::pool;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Maximum spin time of an idle worker, and of a thread that waits for another worker.
pub(crate) const MAX_SPIN: Duration = Duration::from_micros(100);
/// Number of failed polls after which the wait counts as long.
const LONG_WAIT_POLLS: u32 = 1_000;
/// Polls between two reads of the clock.
pub(crate) const POLLS_PER_CLOCK: u32 = 32;

/// Progress of a stealable share of a loop.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU8);

const BEGUN: u8 = 1;
const ENDED: u8 = 2;

impl Progress {
    pub(crate) fn begin(&self) {
        self.0.store(BEGUN, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.0.store(ENDED, Ordering::Relaxed);
    }

    fn is_in_progress(&self) -> bool {
        self.0.load(Ordering::Relaxed) == BEGUN
    }
}

/// Runs other work while a share started by another worker is in progress, for a limited time; rayon waits
/// afterwards.
pub(crate) fn await_progress(progress: &Progress) {
    let mut since: Option<Instant> = None;
    let mut looks = 0;
    while progress.is_in_progress() {
        if pool::run_one_task() {
            since = None;
            continue;
        }
        std::hint::spin_loop();
        looks += 1;
        if looks % POLLS_PER_CLOCK == 0
            && since.get_or_insert_with(Instant::now).elapsed() > MAX_SPIN
        {
            return;
        }
    }
}

/// Runs other work of the pool until `done` holds.
pub(crate) fn work_until(done: impl Fn() -> bool) {
    let mut idle = 0_u32;
    while !done() {
        if pool::run_one_task() {
            idle = 0;
        } else {
            idle = idle.saturating_add(1);
            if idle == LONG_WAIT_POLLS {
                pool::request_tasks();
            }
            backoff(idle);
        }
    }
}

/// Pauses briefly; longer after many failed polls, to leave the processor to other threads.
pub(crate) fn backoff(times: u32) {
    match times {
        0..=LONG_WAIT_POLLS if !pool::is_oversubscribed() => std::hint::spin_loop(),
        _ => backoff_yielding(times),
    }
}

/// Like [`backoff`], but yields from the start: regions may have more threads than there are processors.
pub(crate) fn backoff_yielding(times: u32) {
    match times {
        0..=4_000 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(50)),
    }
}
