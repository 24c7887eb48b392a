//! Parallel loops: a body that runs over ranges, so that a vectoriser sees a plain loop in it.

use crate::{Carried, pool, strand, tsan};
use std::ffi::c_void;

/// Runs iterations `lo .. hi`.
pub type RangeBody = unsafe extern "C" fn(lo: i64, hi: i64, context: *mut c_void);

/// Leaves are at most this many iterations long, so that a worker looks up now and then.
const LEAF_MAX: i64 = 2048;
/// A loop is cut into about this many leaves for each worker, so that late ones can be stolen.
const LEAVES_PER_WORKER: i64 = 8;
/// What `GRADUS_FORCE_FORK` asks for at least.
const FORCED_LEAVES: i64 = 8;
/// Leaves begin at multiples of this many iterations, where they are long enough to bear it: accesses to
/// arrays are as aligned in each of them as in the first one, and neighbours share few cache lines.
pub(crate) const LINE: i64 = 8;
/// A leaf is cut down to whole lines from so many on.
pub(crate) const LONG: i64 = 8 * LINE;

#[derive(Clone, Copy)]
struct Loop {
    body: RangeBody,
    context: Carried,
    leaf: i64,
    depth: u32,
}

impl Loop {
    fn leaf(&self, lo: i64, hi: i64) {
        // SAFETY: the caller of `gr_for` promised that the body takes every range of the loop.
        tsan::shown(|| unsafe { (self.body)(lo, hi, self.context.get()) });
    }

    /// Runs `lo .. hi`: leaf by leaf, and gives away half of what is left whenever nothing of this
    /// worker's is left to steal.
    fn run(&self, mut lo: i64, hi: i64) {
        while hi - lo > self.leaf {
            if pool::forces() || pool::is_hungry() {
                let leaves = (hi - lo + self.leaf - 1) / self.leaf;
                let middle = lo + leaves / 2 * self.leaf;
                self.fork(lo, middle, hi);
                return;
            }
            self.leaf(lo, lo + self.leaf);
            lo += self.leaf;
        }
        self.leaf(lo, hi);
    }

    fn fork(&self, lo: i64, middle: i64, hi: i64) {
        let mut fence = 0_u8;
        let place = Carried((&raw mut fence).cast());
        tsan::release(place.get());
        pool::both(
            || self.run(lo, middle),
            || {
                strand::deeper(self.depth, || {
                    tsan::acquire(place.get());
                    self.run(middle, hi);
                    tsan::release(place.get());
                });
            },
        );
        tsan::acquire(place.get());
    }
}

/// The iterations of a leaf: as many as make the fork worth while (`grain`), else a share of the loop.
fn leaf_size(trips: i64, grain: i64) -> i64 {
    let leaf = if pool::forces() {
        (trips / FORCED_LEAVES).max(1)
    } else {
        let workers = i64::from(pool::gr_workers());
        let share = trips / (LEAVES_PER_WORKER * workers).max(1);
        grain.max(share.clamp(1, LEAF_MAX))
    };
    match leaf < LONG {
        true => leaf,
        false => leaf - leaf % LINE,
    }
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
        let leaf = leaf_size(hi - lo, grain);
        let all = Loop {
            body,
            context,
            leaf,
            depth,
        };
        strand::deeper(depth, || all.run(lo, hi));
    };
    tsan::hidden(|| pool::on_worker(split));
}
