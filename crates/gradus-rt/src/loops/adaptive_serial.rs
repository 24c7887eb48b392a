//! Profitability of loop sharing: short loops are timed shared and serial.
//!
//! The cost of a fork and a join, and of data in another processor's cache, depends on the machine and its
//! load. The cost of an iteration is estimated in advance, in simple operations. For loops of some
//! microseconds neither predicts whether two workers are faster than one. Each such loop is therefore timed:
//! a few runs shared, a few runs serial, and then the faster mode is used. Sharing must save a fraction of
//! the time ([`SAVED`]) that justifies another processor. The other mode is retried periodically, at growing
//! intervals while the decision stays unchanged.
//!
//! A loop is identified by its body and the magnitude of its trip count; each thread that begins loops has
//! its own timings. Only time depends on the decision: reductions are divided and combined by trip count
//! alone.

use crate::{pool, tsan};
use std::cell::Cell;
use std::time::Instant;

/// Sharing must save at least one part in `SAVED`.
const SAVED: u64 = 6;
/// Loops that take longer serially are shared without timing.
const SHORT_NANOS: u64 = 200_000;
/// Runs between two retries: initial and final interval.
const SOON: u32 = 64;
const LATE: u32 = 2048;
/// Runs per trial of a mode. Only the last run is timed, because the first finds the other mode's data in
/// its caches.
const TRIES: u32 = 3;
/// Upper bound on a measured time.
const MOST_NANOS: u64 = u64::MAX >> 11;
/// Number of cached loops.
const PLACES: usize = 256;

/// Execution mode of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    #[default]
    Shared,
    Alone,
}

impl Way {
    fn other(self) -> Way {
        match self {
            Way::Shared => Way::Alone,
            Way::Alone => Way::Shared,
        }
    }
}

/// Timings of a loop. All zero if unknown.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// The body and the magnitude of the trip count.
    key: usize,
    /// Time per iteration, in 1/1024 nanoseconds; 0 if unknown.
    shared: u64,
    alone: u64,
    way: Way,
    /// The mode is decided, not on trial.
    settled: bool,
    /// Runs in the current mode.
    runs: u32,
    /// Runs between two retries of a decided mode.
    stretch: u32,
}

impl Times {
    fn pays(&self) -> bool {
        self.shared.saturating_add(self.alone / SAVED) < self.alone
    }

    /// Returns whether a loop of `trips` iterations is long enough to be shared untimed.
    fn is_long(&self, trips: u64) -> bool {
        let nanos = |rate: u64| rate.saturating_mul(trips) >> 10;
        nanos(self.alone) > SHORT_NANOS || nanos(self.shared) > SHORT_NANOS
    }

    /// Records a run of `trips` iterations in `nanos` nanoseconds.
    fn note(&mut self, shared: bool, trips: u64, nanos: u64) {
        self.runs += 1;
        let is_last = self.runs >= if self.settled { self.stretch } else { TRIES };
        if is_last || self.settled {
            self.time(shared, (nanos << 10) / trips.max(1));
        }
        if is_last {
            self.turn();
        }
    }

    /// Updates the time per iteration.
    fn time(&mut self, shared: bool, rate: u64) {
        let known = match shared {
            true => &mut self.shared,
            false => &mut self.alone,
        };
        let new = match *known {
            0 => rate,
            // A single long run was interrupted.
            old if rate > old => old + (rate - old).min(old) / 16,
            old if self.settled => old - (old - rate) / 2,
            _ => rate,
        };
        *known = new.max(1);
    }

    /// Switches to the other mode for a trial, or decides on the faster mode.
    fn turn(&mut self) {
        let is_known = self.shared > 0 && self.alone > 0;
        let better = if self.pays() { Way::Shared } else { Way::Alone };
        self.runs = 0;
        if !is_known || self.settled && better == self.way {
            self.way = self.way.other();
            self.settled = false;
            return;
        }
        // A trial without effect is repeated less often.
        let changes = self.settled || better == self.way;
        self.stretch = match changes {
            true => SOON,
            false => (self.stretch * 2).clamp(SOON, LATE),
        };
        self.way = better;
        self.settled = true;
    }
}

const NOTHING: Times = Times {
    key: 0,
    shared: 0,
    alone: 0,
    way: Way::Shared,
    settled: false,
    runs: 0,
    stretch: 0,
};

thread_local! {
    static LOOPS: [Cell<Times>; PLACES] = const { [const { Cell::new(NOTHING) }; PLACES] };
}

/// A loop run in progress.
pub(crate) struct Run {
    way: Way,
    begin: Instant,
}

impl Run {
    /// Returns whether the loop may be shared after `done` leaves. A serial run stays serial only while it
    /// is short. Reading the clock costs more than a short leaf, and happens at growing intervals.
    pub(crate) fn may_share(&self, done: u32) -> bool {
        self.way == Way::Shared || done.is_power_of_two() && self.nanos() > SHORT_NANOS
    }

    fn nanos(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).map_or(MOST_NANOS, |n| n.min(MOST_NANOS))
    }
}

/// The cache slot of a loop, and its key.
fn place(body: usize, trips: u64) -> (usize, usize) {
    let size = trips.max(1).ilog2() as usize;
    // Functions are aligned to 16 bytes.
    let place = (body >> 4 ^ body >> 12 ^ size.wrapping_mul(37)) % PLACES;
    (place, body << 6 | size)
}

/// Runs a loop of `trips` iterations by `run`, which receives the timed run (`None`: may be shared at any
/// time) and returns whether the loop was shared.
pub(crate) fn timed(body: usize, trips: i64, run: impl FnOnce(Option<&Run>) -> bool) {
    // ThreadSanitizer finds only races that occur: loops are always shared.
    if pool::forces() || !pool::has_others() || tsan::watches() {
        run(None);
        return;
    }
    let trips = trips.unsigned_abs();
    let (place, key) = place(body, trips);
    let known = LOOPS.with(|loops| loops[place].get());
    let known = match known.key == key {
        true => known,
        false => Times { key, ..NOTHING },
    };
    if known.is_long(trips) {
        run(None);
        return;
    }
    let this = Run {
        way: known.way,
        begin: Instant::now(),
    };
    let shared = run(Some(&this));
    let mut times = known;
    times.note(shared, trips, this.nanos());
    LOOPS.with(|loops| loops[place].set(times));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of shared runs out of `runs`, with the given time per iteration shared and serial.
    fn shared_of(times: &mut Times, runs: u32, shared: u64, alone: u64) -> u32 {
        let mut count = 0;
        for _ in 0..runs {
            let is_shared = times.way == Way::Shared;
            count += u32::from(is_shared);
            let nanos = if is_shared { shared } else { alone };
            times.note(is_shared, 100, 100 * nanos);
        }
        count
    }

    #[test]
    fn what_is_faster_is_done_most() {
        for (shared, alone, least, most) in [
            (60, 100, 9_000, 10_000),
            (90, 100, 0, 500),
            (140, 100, 0, 500),
        ] {
            let count = shared_of(&mut { NOTHING }, 10_000, shared, alone);
            assert!((least..=most).contains(&count), "{shared} {alone}: {count}");
        }
    }

    /// Load on the machine appears or disappears.
    #[test]
    fn what_changes_is_noticed() {
        let mut times = NOTHING;
        assert!(shared_of(&mut times, 5_000, 200, 100) < 500);
        shared_of(&mut times, LATE, 50, 100);
        assert!(shared_of(&mut times, 5_000, 50, 100) > 4_500);
        shared_of(&mut times, 500, 200, 100);
        assert!(shared_of(&mut times, 5_000, 200, 100) < 500);
    }

    /// A single interrupted run has no effect.
    #[test]
    fn an_interruption_is_forgotten() {
        let mut times = NOTHING;
        shared_of(&mut times, 200, 50, 100);
        let shared = times.way == Way::Shared;
        times.note(shared, 100, 1_000_000);
        assert!(shared_of(&mut times, 1_000, 50, 100) > 900);
    }

    #[test]
    fn long_loops_are_not_tried_alone() {
        let mut times = NOTHING;
        for _ in 0..TRIES {
            times.note(true, 100, 1_000_000);
        }
        assert!(times.is_long(100) && !times.is_long(10));
    }
}
