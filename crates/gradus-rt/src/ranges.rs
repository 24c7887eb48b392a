//! Parallel loops: a body that runs over ranges, so that a vectoriser sees a plain loop in it.
//!
//! A loop is cut into leaves. Its worker runs them one after the other while nobody waits for work; then what
//! is left is dealt out to all workers ([`crate::rows`]).

use crate::cuda::faults;
use crate::rows::{self, FORCED_LEAVES, Leaves};
use crate::{Carried, paying, pool, strand, tsan};
use std::ffi::c_void;

/// Runs iterations `lo .. hi`.
pub type RangeBody = unsafe extern "C" fn(lo: i64, hi: i64, context: *mut c_void);

/// Leaves are at most this many iterations long, so that a worker looks up now and then.
const LEAF_MAX: i64 = 2048;
/// A loop is cut into about this many leaves for each worker, so that late ones can be taken.
const LEAVES_PER_WORKER: i64 = 8;
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
    /// True if the range is a kernel's grid, whose faults belong to the kernel.
    kernel: bool,
}

impl Leaves for Loop {
    fn run_leaves(&self, first: u32, end: u32) {
        let lo = self.lo + i64::from(first) * self.leaf;
        let hi = (self.lo + i64::from(end) * self.leaf).min(self.hi);
        // SAFETY: the caller of `gr_for` promised that the body takes every range of the loop.
        tsan::shown(|| unsafe { run_body(self.kernel, self.body, lo, hi, self.context.get()) });
    }
}

impl Loop {
    fn leaves(&self) -> u32 {
        u32::try_from((self.hi - self.lo + self.leaf - 1) / self.leaf).unwrap_or(u32::MAX)
    }

    /// Runs all: leaf by leaf, until there are others who could take what is left, if it may be shared. Says whether
    /// it was.
    fn run(&self, timed: Option<&paying::Run>) -> bool {
        let leaves = self.leaves();
        for leaf in 0..leaves {
            let may_share = || timed.is_none_or(|run| run.may_share(leaf));
            if leaves - leaf > 1 && pool::is_hungry() && may_share() {
                rows::share(*self, leaf, leaves, self.depth);
                return true;
            }
            self.run_leaves(leaf, leaf + 1);
        }
        false
    }
}

/// Runs a range, which may be a part of a kernel.
///
/// # Safety
/// The body takes the range.
unsafe fn run_body(kernel: bool, body: RangeBody, lo: i64, hi: i64, context: *mut c_void) {
    // SAFETY: promised by the caller.
    unsafe {
        match kernel {
            true => faults::run(body, lo, hi, context),
            false => body(lo, hi, context),
        }
    }
}

/// The iterations of a leaf: a share of the loop, but as many as make the fork worth while (`grain`), and such
/// that all workers get as many leaves where they are few.
fn leaf_size(trips: i64, grain: i64) -> i64 {
    let leaf = if pool::forces() {
        (trips / FORCED_LEAVES).max(1)
    } else {
        let workers = pool::abreast() as i64;
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
    let kernel = faults::is_in_kernel();
    if strand::loops_alone() {
        // SAFETY: promised by the caller.
        return unsafe { run_body(kernel, body, lo, hi, context) };
    }
    let context = Carried(context);
    let split = move |timed: Option<&paying::Run>| {
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
            kernel,
        };
        strand::deeper(depth, || all.run(timed))
    };
    tsan::hidden(|| match grain {
        // Each iteration is worth a task, as the program says.
        1 => {
            pool::on_worker(|| split(None));
        }
        _ => paying::timed(body as usize, hi - lo, |timed| {
            pool::on_worker(|| split(timed))
        }),
    });
}
