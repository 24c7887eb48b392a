//! Whether it pays to share a loop: short ones are timed, shared and alone.
//!
//! What a fork and a join take, and what it costs to meet in another processor's cache what one left in one's own,
//! depends on the machine and on what else runs there; what a loop's iterations take is estimated before, in simple
//! operations. Of loops of some microseconds neither tells whether two workers are faster than one. So each of them
//! is timed as it runs: a few times shared, a few times alone, and from then on whichever was faster, where sharing it
//! has to save a part of the time ([`SAVED`]) that is worth another processor's. The other way is tried again now and
//! then, ever less often as long as that changes nothing.
//!
//! Loops are known by their body and by about how many iterations they run; each thread that begins loops has its
//! own times of them. Nothing but time depends on it: reductions are cut and combined by their iterations alone.

use crate::{pool, tsan};
use std::cell::Cell;
use std::time::Instant;

/// Sharing must save one part in so many.
const SAVED: u64 = 6;
/// Loops that take longer alone are shared, untimed.
const SHORT_NANOS: u64 = 200_000;
/// After so many runs of one way the other is tried, at first and at last.
const SOON: u32 = 64;
const LATE: u32 = 2048;
/// So many runs of a way are made at a time: only the last is timed, as the first finds in its caches what the other way
/// left there.
const TRIES: u32 = 3;
/// A time is no longer than this.
const MOST_NANOS: u64 = u64::MAX >> 11;
/// How many loops are remembered.
const PLACES: usize = 256;

/// How a loop is to run.
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

/// What is known of a loop. All zero where that is nothing.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Its body and the size of its number of iterations, as one number.
    key: usize,
    /// The time of an iteration, in 1/1024 nanoseconds; 0 where it is not known.
    shared: u64,
    alone: u64,
    way: Way,
    /// Whether the way is more than tried.
    settled: bool,
    /// How many runs were made this way.
    runs: u32,
    /// How many a settled way has.
    stretch: u32,
}

impl Times {
    fn pays(&self) -> bool {
        self.shared.saturating_add(self.alone / SAVED) < self.alone
    }

    /// Whether a loop of so many iterations is so long that it is shared in any case.
    fn is_long(&self, trips: u64) -> bool {
        let nanos = |rate: u64| rate.saturating_mul(trips) >> 10;
        nanos(self.alone) > SHORT_NANOS || nanos(self.shared) > SHORT_NANOS
    }

    /// A run of so many iterations, shared or not, took so long.
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

    /// An iteration took so long.
    fn time(&mut self, shared: bool, rate: u64) {
        let known = match shared {
            true => &mut self.shared,
            false => &mut self.alone,
        };
        let new = match *known {
            0 => rate,
            // What takes longer for once was interrupted.
            old if rate > old => old + (rate - old).min(old) / 16,
            old if self.settled => old - (old - rate) / 2,
            _ => rate,
        };
        *known = new.max(1);
    }

    /// Goes over to the other way, to try it, or settles for the better one.
    fn turn(&mut self) {
        let is_known = self.shared > 0 && self.alone > 0;
        let better = if self.pays() { Way::Shared } else { Way::Alone };
        self.runs = 0;
        if !is_known || self.settled && better == self.way {
            self.way = self.way.other();
            self.settled = false;
            return;
        }
        // A try that changes nothing is made less often.
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

/// A run of a loop under way.
pub(crate) struct Run {
    way: Way,
    begin: Instant,
}

impl Run {
    /// Whether the loop may be shared from here on, where so many leaves are done: alone it stays only as long as a
    /// short one takes. The clock takes longer than a short leaf, so that it is asked ever less often.
    pub(crate) fn may_share(&self, done: u32) -> bool {
        self.way == Way::Shared || done.is_power_of_two() && self.nanos() > SHORT_NANOS
    }

    fn nanos(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).map_or(MOST_NANOS, |n| n.min(MOST_NANOS))
    }
}

/// The place of a loop, and its key.
fn place(body: usize, trips: u64) -> (usize, usize) {
    let size = trips.max(1).ilog2() as usize;
    // Functions begin with multiples of 16.
    let place = (body >> 4 ^ body >> 12 ^ size.wrapping_mul(37)) % PLACES;
    (place, body << 6 | size)
}

/// Runs a loop of so many iterations by `run`, which asks whether it may be shared, where it is `None` always, and
/// says whether it was.
pub(crate) fn timed(body: usize, trips: i64, run: impl FnOnce(Option<&Run>) -> bool) {
    // A race that does not happen is not found.
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

    /// How many of so many runs are shared, where an iteration takes so long shared and alone.
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

    /// Other work came to the machine, or left it.
    #[test]
    fn what_changes_is_noticed() {
        let mut times = NOTHING;
        assert!(shared_of(&mut times, 5_000, 200, 100) < 500);
        shared_of(&mut times, LATE, 50, 100);
        assert!(shared_of(&mut times, 5_000, 50, 100) > 4_500);
        shared_of(&mut times, 500, 200, 100);
        assert!(shared_of(&mut times, 5_000, 200, 100) < 500);
    }

    /// One run that was interrupted changes nothing.
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
