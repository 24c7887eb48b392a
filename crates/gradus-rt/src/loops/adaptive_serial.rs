//! Profitability of loop sharing: short loops are timed shared and serial.
//!
//! The cost of a fork and a join, and of data in another processor's cache, depends on the machine and its
//! load. The cost of an iteration is estimated in advance, in simple operations. For loops of some
//! microseconds neither predicts whether two workers are faster than one. Each such loop is therefore timed:
//! a few runs shared, a few runs serial, and then the faster mode is used. Sharing must save a fraction of
//! the time ([`MIN_SAVING`]) that justifies another processor. The other mode is retried periodically, at growing
//! intervals while the decision stays unchanged.
//!
//! A loop is identified by its body and the magnitude of its trip count; each thread that begins loops has
//! its own timings. Only time depends on the decision: reductions are divided and combined by trip count
//! alone.

use crate::{pool, tsan};
use std::cell::Cell;
use std::time::Instant;

/// Sharing must save at least one part in `MIN_SAVING`.
const MIN_SAVING: u64 = 6;
/// Loops that take longer serially are shared without timing.
const MAX_TIMED_NANOS: u64 = 200_000;
/// Runs between two retries: initial and final interval.
const FIRST_RETRY_RUNS: u32 = 64;
const LAST_RETRY_RUNS: u32 = 2048;
/// Runs per trial of a mode. Only the last run is timed, because the first finds the other mode's data in
/// its caches.
const RUNS_PER_TRIAL: u32 = 3;
/// Upper bound on a measured time.
const MAX_NANOS: u64 = u64::MAX >> 11;
/// Number of cached loops.
const CACHE_SLOTS: usize = 256;

/// Execution mode of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LoopMode {
    #[default]
    Shared,
    Serial,
}

impl LoopMode {
    fn other(self) -> LoopMode {
        match self {
            LoopMode::Shared => LoopMode::Serial,
            LoopMode::Serial => LoopMode::Shared,
        }
    }
}

/// Timings of a loop. All zero if unknown.
#[derive(Clone, Copy, Debug)]
struct LoopTimings {
    /// The body and the magnitude of the trip count.
    key: usize,
    /// Time per iteration, in 1/1024 nanoseconds; 0 if unknown.
    shared: u64,
    serial: u64,
    mode: LoopMode,
    /// The mode is decided, not on trial.
    decided: bool,
    /// Runs in the current mode.
    runs: u32,
    /// Runs between two retries of a decided mode.
    retry_interval: u32,
}

impl LoopTimings {
    fn is_sharing_faster(&self) -> bool {
        self.shared.saturating_add(self.serial / MIN_SAVING) < self.serial
    }

    /// Returns whether a loop of `trips` iterations is long enough to be shared untimed.
    fn is_long(&self, trips: u64) -> bool {
        let nanos = |rate: u64| rate.saturating_mul(trips) >> 10;
        nanos(self.serial) > MAX_TIMED_NANOS || nanos(self.shared) > MAX_TIMED_NANOS
    }

    /// Records a run of `trips` iterations in `nanos` nanoseconds.
    fn record_run(&mut self, shared: bool, trips: u64, nanos: u64) {
        self.runs += 1;
        let is_last = self.runs
            >= if self.decided {
                self.retry_interval
            } else {
                RUNS_PER_TRIAL
            };
        if is_last || self.decided {
            self.update_rate(shared, (nanos << 10) / trips.max(1));
        }
        if is_last {
            self.switch_mode();
        }
    }

    /// Updates the time per iteration.
    fn update_rate(&mut self, shared: bool, rate: u64) {
        let known = match shared {
            true => &mut self.shared,
            false => &mut self.serial,
        };
        let new = match *known {
            0 => rate,
            // A single long run was interrupted.
            old if rate > old => old + (rate - old).min(old) / 16,
            old if self.decided => old - (old - rate) / 2,
            _ => rate,
        };
        *known = new.max(1);
    }

    /// Switches to the other mode for a trial, or decides on the faster mode.
    fn switch_mode(&mut self) {
        let is_known = self.shared > 0 && self.serial > 0;
        let better = if self.is_sharing_faster() {
            LoopMode::Shared
        } else {
            LoopMode::Serial
        };
        self.runs = 0;
        if !is_known || self.decided && better == self.mode {
            self.mode = self.mode.other();
            self.decided = false;
            return;
        }
        // A trial without effect is repeated less often.
        let changes = self.decided || better == self.mode;
        self.retry_interval = match changes {
            true => FIRST_RETRY_RUNS,
            false => (self.retry_interval * 2).clamp(FIRST_RETRY_RUNS, LAST_RETRY_RUNS),
        };
        self.mode = better;
        self.decided = true;
    }
}

const UNKNOWN: LoopTimings = LoopTimings {
    key: 0,
    shared: 0,
    serial: 0,
    mode: LoopMode::Shared,
    decided: false,
    runs: 0,
    retry_interval: 0,
};

thread_local! {
    static LOOPS: [Cell<LoopTimings>; CACHE_SLOTS] = const { [const { Cell::new(UNKNOWN) }; CACHE_SLOTS] };
}

/// A loop run in progress.
pub(crate) struct TimedRun {
    way: LoopMode,
    begin: Instant,
}

impl TimedRun {
    /// Returns whether the loop may be shared after `done` leaves. A serial run stays serial only while it
    /// is short. Reading the clock costs more than a short leaf, and happens at growing intervals.
    pub(crate) fn may_share(&self, done: u32) -> bool {
        self.way == LoopMode::Shared || done.is_power_of_two() && self.nanos() > MAX_TIMED_NANOS
    }

    fn nanos(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).map_or(MAX_NANOS, |n| n.min(MAX_NANOS))
    }
}

/// The cache slot of a loop, and its key.
fn cache_slot(body: usize, trips: u64) -> (usize, usize) {
    let size = trips.max(1).ilog2() as usize;
    // Functions are aligned to 16 bytes.
    let place = (body >> 4 ^ body >> 12 ^ size.wrapping_mul(37)) % CACHE_SLOTS;
    (place, body << 6 | size)
}

/// Runs a loop of `trips` iterations by `run`, which receives the timed run (`None`: may be shared at any
/// time) and returns whether the loop was shared.
pub(crate) fn run_timed(body: usize, trips: i64, run: impl FnOnce(Option<&TimedRun>) -> bool) {
    // ThreadSanitizer finds only races that occur: loops are always shared.
    if pool::always_forks() || !pool::has_other_workers() || tsan::is_active() {
        run(None);
        return;
    }
    let trips = trips.unsigned_abs();
    let (place, key) = cache_slot(body, trips);
    let known = LOOPS.with(|loops| loops[place].get());
    let known = match known.key == key {
        true => known,
        false => LoopTimings { key, ..UNKNOWN },
    };
    if known.is_long(trips) {
        run(None);
        return;
    }
    let this = TimedRun {
        way: known.mode,
        begin: Instant::now(),
    };
    let shared = run(Some(&this));
    let mut times = known;
    times.record_run(shared, trips, this.nanos());
    LOOPS.with(|loops| loops[place].set(times));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of shared runs out of `runs`, with the given time per iteration shared and serial.
    fn shared_of(times: &mut LoopTimings, runs: u32, shared: u64, alone: u64) -> u32 {
        let mut count = 0;
        for _ in 0..runs {
            let is_shared = times.mode == LoopMode::Shared;
            count += u32::from(is_shared);
            let nanos = if is_shared { shared } else { alone };
            times.record_run(is_shared, 100, 100 * nanos);
        }
        count
    }

    #[test]
    fn prefers_faster_mode() {
        for (shared, alone, least, most) in [
            (60, 100, 9_000, 10_000),
            (90, 100, 0, 500),
            (140, 100, 0, 500),
        ] {
            let count = shared_of(&mut { UNKNOWN }, 10_000, shared, alone);
            assert!((least..=most).contains(&count), "{shared} {alone}: {count}");
        }
    }

    /// Load on the machine appears or disappears.
    #[test]
    fn adapts_to_changed_times() {
        let mut times = UNKNOWN;
        assert!(shared_of(&mut times, 5_000, 200, 100) < 500);
        shared_of(&mut times, LAST_RETRY_RUNS, 50, 100);
        assert!(shared_of(&mut times, 5_000, 50, 100) > 4_500);
        shared_of(&mut times, 500, 200, 100);
        assert!(shared_of(&mut times, 5_000, 200, 100) < 500);
    }

    /// A single interrupted run has no effect.
    #[test]
    fn ignores_single_slow_run() {
        let mut times = UNKNOWN;
        shared_of(&mut times, 200, 50, 100);
        let shared = times.mode == LoopMode::Shared;
        times.record_run(shared, 100, 1_000_000);
        assert!(shared_of(&mut times, 1_000, 50, 100) > 900);
    }

    #[test]
    fn long_loops_are_not_timed() {
        let mut times = UNKNOWN;
        for _ in 0..RUNS_PER_TRIAL {
            times.record_run(true, 100, 1_000_000);
        }
        assert!(times.is_long(100) && !times.is_long(10));
    }
}
