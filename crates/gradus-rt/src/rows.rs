//! What is left of a loop is dealt out: an equal row of leaves to each worker that may come, and so many are asked to
//! ([`share`]). Each begins with the row that has its number, so that it meets in its caches what it left
//! there in the loop before; who has none left takes half of another one's row, which is one atomic
//! operation. So nobody waits for leaves that a worker has not begun, however long it is kept away. The rows
//! are our own; that workers come at all is the pool's fork and join.

use crate::{Carried, pool, strand, tsan};
use std::sync::atomic::{AtomicU64, Ordering};

/// What `GRADUS_FORCE_FORK` asks for at least.
pub(crate) const FORCED_LEAVES: i64 = 8;

/// A loop cut into leaves.
pub(crate) trait Leaves: Sync {
    /// Runs leaves `first .. end`, on any worker, beside others.
    fn run_leaves(&self, first: u32, end: u32);
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

/// A loop that several workers are at. What each of them reads first lies together, as it comes from another
/// processor's cache.
#[repr(align(128))]
struct Shared<L> {
    all: L,
    /// Forks around the loop.
    depth: u32,
    rows: Vec<Row>,
    fence: Carried,
}

/// Runs leaves `first .. end` on all workers that come.
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

    /// Takes part, and asks `others` to: half of them are asked by the first who comes.
    fn ask(&self, others: usize) {
        if others == 0 || self.rows.iter().all(Row::is_empty) {
            return self.take_part();
        }
        let farther = others / 2;
        pool::both(
            || self.ask(others - 1 - farther),
            || {
                strand::deeper(self.depth, || {
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
                // Not an error: no row has leaves left.
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
