//! Parallel loops: a body that runs over ranges, so that a vectoriser sees a plain loop in it.
//!
//! A loop is cut into leaves. Its worker runs them one after the other while nobody waits for work; then what
//! is left is dealt out to all workers, an equal row of leaves to each, and they are asked to come
//! ([`Shared`]). Each begins with the row that has its number, so that it meets in its caches what it left
//! there in the loop before; who has none left takes half of another one's row, which is one atomic
//! operation. The rows are our own; that workers come at all is the pool's fork and join.

use crate::{Carried, pool, strand, tsan};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs iterations `lo .. hi`.
pub type RangeBody = unsafe extern "C" fn(lo: i64, hi: i64, context: *mut c_void);

/// Leaves are at most this many iterations long, so that a worker looks up now and then.
const LEAF_MAX: i64 = 2048;
/// A loop is cut into about this many leaves for each worker, so that late ones can be taken.
const LEAVES_PER_WORKER: i64 = 8;
/// What `GRADUS_FORCE_FORK` asks for at least.
const FORCED_LEAVES: i64 = 8;
/// Leaves begin at multiples of this many iterations, where they are long enough to bear it: accesses to
/// arrays are as aligned in each of them as in the first one, and neighbours share few cache lines.
pub(crate) const LINE: i64 = 8;
/// A leaf is cut to whole lines from so many on.
pub(crate) const LONG: i64 = 8 * LINE;

#[derive(Clone, Copy)]
struct Loop {
    body: RangeBody,
    context: Carried,
    lo: i64,
    hi: i64,
    /// The iterations of a leaf.
    leaf: i64,
    depth: u32,
}

impl Loop {
    fn leaves(&self) -> u32 {
        u32::try_from((self.hi - self.lo + self.leaf - 1) / self.leaf).unwrap_or(u32::MAX)
    }

    fn run_leaves(&self, first: u32, end: u32) {
        let lo = self.lo + i64::from(first) * self.leaf;
        let hi = (self.lo + i64::from(end) * self.leaf).min(self.hi);
        // SAFETY: the caller of `gr_for` promised that the body takes every range of the loop.
        tsan::shown(|| unsafe { (self.body)(lo, hi, self.context.get()) });
    }

    /// Runs all: leaf by leaf, until there are others who could take what is left.
    fn run(&self) {
        let leaves = self.leaves();
        for leaf in 0..leaves {
            if leaves - leaf > 1 && pool::is_hungry() {
                return Shared::new(self, leaf, leaves).run();
            }
            self.run_leaves(leaf, leaf + 1);
        }
    }
}

/// A worker's row of leaves that nobody has begun: the number of the first one, and of the one behind the last.
/// Only its worker, who goes on from the first, ever fills it, when it is empty; all others take from its end.
#[derive(Debug)]
#[repr(align(64))]
struct Row(AtomicU64);

impl Row {
    fn pack(first: u32, end: u32) -> u64 {
        u64::from(first) << 32 | u64::from(end)
    }

    fn unpack(word: u64) -> (u32, u32) {
        ((word >> 32) as u32, word as u32)
    }

    /// Cuts what `cut` says off the row `first .. end`: gives what stays and what is taken. `None` if the row
    /// is empty. No leaf ever comes back to where it was, but as one that nobody has begun.
    fn take(&self, cut: impl Fn(u32, u32) -> [(u32, u32); 2]) -> Option<(u32, u32)> {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let (first, end) = Row::unpack(seen);
            if first >= end {
                return None;
            }
            let [stays, taken] = cut(first, end);
            let new = Row::pack(stays.0, stays.1);
            let swap =
                self.0
                    .compare_exchange_weak(seen, new, Ordering::Relaxed, Ordering::Relaxed);
            match swap {
                Ok(_) => return Some(taken),
                Err(now) => seen = now,
            }
        }
    }

    fn is_empty(&self) -> bool {
        let (first, end) = Row::unpack(self.0.load(Ordering::Relaxed));
        first >= end
    }

    fn next(&self) -> Option<(u32, u32)> {
        self.take(|first, end| [(first + 1, end), (first, first + 1)])
    }

    /// The farther half, or the only leaf.
    fn half(&self) -> Option<(u32, u32)> {
        self.take(|first, end| {
            let middle = first + (end - first) / 2;
            [(first, middle), (middle, end)]
        })
    }

    /// Fills the row, if it is still as empty as it was.
    fn fill(&self, (first, end): (u32, u32)) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        let (next, last) = Row::unpack(seen);
        let new = Row::pack(first, end);
        next >= last
            && self
                .0
                .compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

/// A loop that several workers are at.
struct Shared<'a> {
    all: &'a Loop,
    rows: Vec<Row>,
    fence: Carried,
}

impl<'a> Shared<'a> {
    /// Leaves `first .. end`.
    fn new(all: &'a Loop, first: u32, end: u32) -> Self {
        let workers = u64::from(pool::gr_workers().unsigned_abs().max(1));
        let leaves = u64::from(end - first);
        let begin = |row: u64| first + u32::try_from(row * leaves / workers).unwrap_or(0);
        let row = |row| Row(AtomicU64::new(Row::pack(begin(row), begin(row + 1))));
        Shared {
            all,
            rows: (0..workers).map(row).collect(),
            fence: Carried(std::ptr::null_mut()),
        }
    }

    fn run(mut self) {
        let mut fence = 0_u8;
        self.fence = Carried((&raw mut fence).cast());
        let others = match pool::forces() {
            true => FORCED_LEAVES as usize,
            false => self.rows.len(),
        };
        tsan::release(self.fence.get());
        self.ask(others - 1);
        tsan::acquire(self.fence.get());
    }

    /// Takes part, and asks `others` to: half of them are asked by the first who comes.
    fn ask(&self, others: usize) {
        if others == 0 || self.rows.iter().all(Row::is_empty) {
            return self.take_part();
        }
        let farther = others / 2;
        pool::both(
            || self.ask(others - 1 - farther),
            || {
                strand::deeper(self.all.depth, || {
                    tsan::acquire(self.fence.get());
                    self.ask(farther);
                    tsan::release(self.fence.get());
                });
            },
        );
    }

    /// Runs leaves as long as there are any.
    fn take_part(&self) {
        let own = pool::gr_worker().unsigned_abs() as usize % self.rows.len();
        loop {
            while let Some((first, end)) = self.rows[own].next() {
                self.all.run_leaves(first, end);
            }
            let (before, behind) = self.rows.split_at(own);
            let Some(taken) = behind.iter().chain(before).find_map(Row::half) else {
                return;
            };
            // A leaf of this loop that waits may have another worker's part run here, with the same row.
            if !self.rows[own].fill(taken) {
                for leaf in taken.0..taken.1 {
                    self.all.run_leaves(leaf, leaf + 1);
                }
            }
        }
    }
}

/// The iterations of a leaf: a share of the loop, but as many as make the fork worth while (`grain`), and such
/// that all workers get as many leaves where they are few.
fn leaf_size(trips: i64, grain: i64) -> i64 {
    let leaf = if pool::forces() {
        (trips / FORCED_LEAVES).max(1)
    } else {
        let workers = i64::from(pool::gr_workers().max(1));
        let share = trips / (LEAVES_PER_WORKER * workers);
        let leaf = grain.max(share.clamp(1, LEAF_MAX));
        let rounds = up(up(trips, leaf), workers);
        let even = up(trips, rounds * workers);
        if even >= grain / 2 { even } else { leaf }
    };
    // A row counts leaves in 32 bits.
    let leaf = leaf.max(trips >> 31);
    match leaf < LONG {
        true => leaf,
        false => up(leaf, LINE) * LINE,
    }
}

/// The quotient, rounded up.
fn up(dividend: i64, divisor: i64) -> i64 {
    dividend / divisor + i64::from(dividend % divisor != 0)
}

/// Runs `body` over `lo .. hi` in ranges, at once and in any order; returns when all have ended.
/// `grain` is the smallest number of iterations that is worth a task of its own.
///
/// # Safety
/// `body` may be called with any range inside `lo .. hi` and `context`, on any thread, several at a
/// time, and does not unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_for(
    lo: i64,
    hi: i64,
    grain: i64,
    body: RangeBody,
    context: *mut c_void,
) {
    if hi <= lo {
        return;
    }
    if strand::must_not_wait() {
        // SAFETY: promised by the caller.
        return unsafe { body(lo, hi, context) };
    }
    let context = Carried(context);
    let split = move || {
        let depth = strand::depth();
        let leaf = match pool::has_others() || pool::forces() {
            true => leaf_size(hi - lo, grain),
            false => hi - lo,
        };
        let all = Loop {
            body,
            context,
            lo,
            hi,
            leaf,
            depth,
        };
        strand::deeper(depth, || all.run());
    };
    tsan::hidden(|| pool::on_worker(split));
}
