//! Distribution of a loop's remaining leaves: an equal range of leaves per worker, stealable in halves
//! ([`share`]).
//!
//! Each worker starts with the range of its own index, whose data its caches hold from the previous loop. A
//! worker without leaves steals half of another worker's range, in a single atomic operation. No thread ever
//! waits for unstarted leaves, however long a worker is preempted. The ranges are implemented here; the
//! pool's fork and join recruit the workers.

use crate::{Carried, pool, thread_context, tsan};
use std::sync::atomic::{AtomicU64, Ordering};

/// Minimum number of leaves under `GRADUS_FORCE_FORK`.
pub(crate) const FORCED_LEAVES: i64 = 8;

/// A loop divided into leaves.
pub(crate) trait Leaves: Sync {
    /// Runs leaves `first .. end` on any worker, concurrently with other leaves.
    fn run_leaves(&self, first: u32, end: u32);
}

/// A worker's range of unstarted leaves, packed as first and end. Only the owner, who takes leaves from the
/// front, refills an empty range; all other workers steal from the back.
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

    /// Divides the range `first .. end` by `cut`, and returns the part taken. `None` if the range is empty.
    /// A leaf returns to a range only if unstarted; no ABA problem arises.
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

    /// Steals the farther half, or the only leaf.
    fn half(&self) -> Option<(u32, u32)> {
        self.take(|first, end| {
            let middle = first + (end - first) / 2;
            [(first, middle), (middle, end)]
        })
    }

    /// Refills the range, if still empty and unchanged.
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

/// A loop shared by several workers. Fields that each worker reads first are adjacent, because they come
/// from another processor's cache.
#[repr(align(128))]
struct Shared<L> {
    all: L,
    /// Number of enclosing forks.
    depth: u32,
    rows: Vec<Row>,
    fence: Carried,
}

/// Runs leaves `first .. end` on all workers that arrive.
pub(crate) fn share(all: impl Leaves, first: u32, end: u32, depth: u32) {
    let workers = pool::abreast() as u64;
    let leaves = u64::from(end - first);
    let begin = |row: u64| first + u32::try_from(row * leaves / workers).unwrap_or(0);
    let row = |row| Row(AtomicU64::new(Row::pack(begin(row), begin(row + 1))));
    let shared = Shared {
        all,
        depth,
        rows: (0..workers).map(row).collect(),
        fence: Carried(std::ptr::null_mut()),
    };
    shared.run();
}

impl<L: Leaves> Shared<L> {
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

    /// Takes part in the loop, and recruits `others` further workers: the first recruit recruits half of the
    /// others.
    fn ask(&self, others: usize) {
        if others == 0 || self.rows.iter().all(Row::is_empty) {
            return self.take_part();
        }
        let farther = others / 2;
        pool::both(
            || self.ask(others - 1 - farther),
            || {
                thread_context::deeper(self.depth, || {
                    tsan::acquire(self.fence.get());
                    self.ask(farther);
                    tsan::release(self.fence.get());
                });
            },
        );
    }

    /// Runs leaves until none is left.
    fn take_part(&self) {
        let own = pool::gr_worker().unsigned_abs() as usize % self.rows.len();
        loop {
            while let Some((first, end)) = self.rows[own].next() {
                self.all.run_leaves(first, end);
            }
            let (before, behind) = self.rows.split_at(own);
            let Some(taken) = behind.iter().chain(before).find_map(Row::half) else {
                // Not an error: no range has leaves left.
                return;
            };
            // A leaf that waits may run another worker's share of this loop on the same thread, with the
            // same range.
            if !self.rows[own].fill(taken) {
                for leaf in taken.0..taken.1 {
                    self.all.run_leaves(leaf, leaf + 1);
                }
            }
        }
    }
}
