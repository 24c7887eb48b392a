//! Distribution of a loop's remaining leaves: an equal range of leaves per worker, stealable in halves
//! ([`run_shared`]).
//!
//! Each worker starts with the range of its own index, whose data its caches hold from the previous loop. A
//! worker without leaves steals half of another worker's range, in a single atomic operation. No thread ever
//! waits for unstarted leaves, however long a worker is preempted. The ranges are implemented here; the
//! pool's fork and join recruit the workers.

use crate::{SendPtr, pool, thread_context, tsan};
use std::sync::atomic::{AtomicU64, Ordering};

/// Minimum number of leaves under `GRADUS_FORCE_FORK`.
pub(crate) const MIN_FORCED_LEAVES: i64 = 8;

/// A loop divided into leaves.
pub(crate) trait Leaves: Sync {
    /// Runs leaves `first .. end` on any worker, concurrently with other leaves.
    fn run_leaves(&self, first: u32, end: u32);
}

/// A worker's range of unstarted leaves, packed as first and end. Only the owner, who takes leaves from the
/// front, refills an empty range; all other workers steal from the back.
#[derive(Debug)]
#[repr(align(64))]
struct LeafRange(AtomicU64);

impl LeafRange {
    fn pack(first: u32, end: u32) -> u64 {
        u64::from(first) << 32 | u64::from(end)
    }

    fn unpack(word: u64) -> (u32, u32) {
        ((word >> 32) as u32, word as u32)
    }

    /// Divides the range `first .. end` by `cut`, and returns the part taken. `None` if the range is empty.
    /// A leaf returns to a range only if unstarted; no ABA problem arises.
    fn split_off(&self, cut: impl Fn(u32, u32) -> [(u32, u32); 2]) -> Option<(u32, u32)> {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let (first, end) = LeafRange::unpack(seen);
            if first >= end {
                return None;
            }
            let [stays, taken] = cut(first, end);
            let new = LeafRange::pack(stays.0, stays.1);
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
        let (first, end) = LeafRange::unpack(self.0.load(Ordering::Relaxed));
        first >= end
    }

    fn take_front(&self) -> Option<(u32, u32)> {
        self.split_off(|first, end| [(first + 1, end), (first, first + 1)])
    }

    /// Steals the farther half, or the only leaf.
    fn steal_half(&self) -> Option<(u32, u32)> {
        self.split_off(|first, end| {
            let middle = first + (end - first) / 2;
            [(first, middle), (middle, end)]
        })
    }

    /// Refills the range, if still empty and unchanged.
    fn refill(&self, (first, end): (u32, u32)) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        let (next, last) = LeafRange::unpack(seen);
        let new = LeafRange::pack(first, end);
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
struct SharedLoop<L> {
    all: L,
    /// Number of enclosing forks.
    depth: u32,
    ranges: Vec<LeafRange>,
    fence: SendPtr,
}

/// Runs leaves `first .. end` on all workers that arrive.
pub(crate) fn run_shared(all: impl Leaves, first: u32, end: u32, depth: u32) {
    let workers = pool::max_active_workers() as u64;
    let leaves = u64::from(end - first);
    let begin = |row: u64| first + u32::try_from(row * leaves / workers).unwrap_or(0);
    let row = |row| LeafRange(AtomicU64::new(LeafRange::pack(begin(row), begin(row + 1))));
    let shared = SharedLoop {
        all,
        depth,
        ranges: (0..workers).map(row).collect(),
        fence: SendPtr(std::ptr::null_mut()),
    };
    shared.run();
}

impl<L: Leaves> SharedLoop<L> {
    fn run(mut self) {
        let mut fence = 0_u8;
        self.fence = SendPtr((&raw mut fence).cast());
        let others = match pool::always_forks() {
            true => MIN_FORCED_LEAVES as usize,
            false => self.ranges.len(),
        };
        tsan::release(self.fence.get());
        self.recruit(others - 1);
        tsan::acquire(self.fence.get());
    }

    /// Takes part in the loop, and recruits `others` further workers: the first recruit recruits half of the
    /// others.
    fn recruit(&self, others: usize) {
        if others == 0 || self.ranges.iter().all(LeafRange::is_empty) {
            return self.run_until_done();
        }
        let farther = others / 2;
        pool::join(
            || self.recruit(others - 1 - farther),
            || {
                thread_context::with_deeper_fork(self.depth, || {
                    tsan::acquire(self.fence.get());
                    self.recruit(farther);
                    tsan::release(self.fence.get());
                });
            },
        );
    }

    /// Runs leaves until none is left.
    fn run_until_done(&self) {
        let own = pool::gr_worker().unsigned_abs() as usize % self.ranges.len();
        loop {
            while let Some((first, end)) = self.ranges[own].take_front() {
                self.all.run_leaves(first, end);
            }
            let (before, behind) = self.ranges.split_at(own);
            let Some(taken) = behind.iter().chain(before).find_map(LeafRange::steal_half) else {
                // Not an error: no range has leaves left.
                return;
            };
            // A leaf that waits may run another worker's share of this loop on the same thread, with the
            // same range.
            if !self.ranges[own].refill(taken) {
                for leaf in taken.0..taken.1 {
                    self.all.run_leaves(leaf, leaf + 1);
                }
            }
        }
    }
}
