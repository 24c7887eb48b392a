//! How threads wait: awake for about as long as it takes to wake one up, then asleep.
//!
//! Waking a thread takes longer than many a parallel loop. So who waits for a part of a loop that another
//! worker has looks on itself before it leaves the waiting to rayon ([`for_other`]), and a worker of our own
//! pool that has no work stays up for a while, as the next loop is often near.

use crate::pool;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// How long a worker without work stays up at most, and who waits looks on at what another one does.
pub(crate) const AWAKE: Duration = Duration::from_micros(100);
/// Who has looked in vain so often has waited for long.
const LONG: u32 = 1_000;
/// Looks between two glances at the clock.
pub(crate) const LOOKS: u32 = 32;

/// How far a part of a loop has come that others may take.
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

    fn is_under_way(&self) -> bool {
        self.0.load(Ordering::Relaxed) == BEGUN
    }
}

/// Does other work while a part that another worker has begun is under way, but not for long: rayon
/// waits from then on.
pub(crate) fn for_other(progress: &Progress) {
    let mut since: Option<Instant> = None;
    let mut looks = 0;
    while progress.is_under_way() {
        if pool::help() {
            since = None;
            continue;
        }
        std::hint::spin_loop();
        looks += 1;
        if looks % LOOKS == 0 && since.get_or_insert_with(Instant::now).elapsed() > AWAKE {
            return;
        }
    }
}

/// Does other work of the pool until `done` holds.
pub(crate) fn until(done: impl Fn() -> bool) {
    let mut idle = 0_u32;
    while !done() {
        if pool::help() {
            idle = 0;
        } else {
            idle = idle.saturating_add(1);
            if idle == LONG {
                pool::wish_for_tasks();
            }
            pause(idle);
        }
    }
}

/// Waits a little; longer after many times in vain, so that waiting costs others nothing.
pub(crate) fn pause(times: u32) {
    match times {
        0..=LONG if !pool::is_crowded() => std::hint::spin_loop(),
        _ => pause_for_others(times),
    }
}

/// As [`pause`], where others are to go on at once: regions may have more threads than there are processors.
pub(crate) fn pause_for_others(times: u32) {
    match times {
        0..=4_000 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(50)),
    }
}
