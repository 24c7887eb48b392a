//! Parallel loops: the body runs over ranges, and a vectoriser sees a plain loop inside.
//!
//! A loop is divided into leaves. The worker runs leaf after leaf while no thread needs work; then the
//! remaining leaves are distributed to all workers ([`crate::loops::partition`]).

use crate::kernel_faults;
use crate::loops::adaptive_serial;
use crate::loops::partition;
use crate::loops::partition::{Leaves, MIN_FORCED_LEAVES};
use crate::{SendPtr, pool, thread_context, tsan};
use std::ffi::c_void;

/// Runs iterations `lo .. hi`.
pub type RangeBody = unsafe extern "C" fn(lo: i64, hi: i64, context: *mut c_void);

/// Maximum iterations per leaf: a worker checks for idle workers between leaves.
const MAX_LEAF: i64 = 2048;
/// Target number of leaves per worker, for load balancing.
const LEAVES_PER_WORKER: i64 = 8;
/// Leaf sizes are multiples of this many iterations, if large enough. Array accesses of each leaf are then
/// aligned like those of the first, and neighbouring leaves share few cache lines.
pub(crate) const LEAF_MULTIPLE: i64 = 8;
/// Minimum leaf size that is rounded to [`LEAF_MULTIPLE`].
pub(crate) const MIN_ROUNDED_LEAF: i64 = 8 * LEAF_MULTIPLE;

#[derive(Clone, Copy)]
struct ParallelLoop {
    body: RangeBody,
    context: SendPtr,
    lo: i64,
    hi: i64,
    /// Iterations per leaf.
    leaf: i64,
    depth: u32,
    /// True if the range is a kernel's grid, whose faults belong to the kernel.
    kernel: bool,
}

impl Leaves for ParallelLoop {
    fn run_leaves(&self, first: u32, end: u32) {
        let lo = self.lo + i64::from(first) * self.leaf;
        let hi = (self.lo + i64::from(end) * self.leaf).min(self.hi);
        // SAFETY: the caller of `gr_for` promised that the body accepts every range of the loop.
        tsan::with_accesses_checked(|| unsafe {
            run_body(self.kernel, self.body, lo, hi, self.context.get())
        });
    }
}

impl ParallelLoop {
    fn leaf_count(&self) -> u32 {
        u32::try_from((self.hi - self.lo + self.leaf - 1) / self.leaf).unwrap_or(u32::MAX)
    }

    /// Runs the loop leaf by leaf, until other workers could take the remaining leaves and sharing is
    /// allowed. Returns whether the loop was shared.
    fn run(&self, timed: Option<&adaptive_serial::TimedRun>) -> bool {
        let leaves = self.leaf_count();
        for leaf in 0..leaves {
            let may_share = || timed.is_none_or(|run| run.may_share(leaf));
            if leaves - leaf > 1 && pool::needs_stealable_work() && may_share() {
                partition::run_shared(*self, leaf, leaves, self.depth);
                return true;
            }
            self.run_leaves(leaf, leaf + 1);
        }
        false
    }
}

/// Runs a range, possibly part of a kernel.
///
/// # Safety
/// The body accepts the range.
unsafe fn run_body(kernel: bool, body: RangeBody, lo: i64, hi: i64, context: *mut c_void) {
    // SAFETY: promised by the caller.
    unsafe {
        match kernel {
            true => kernel_faults::run(body, lo, hi, context),
            false => body(lo, hi, context),
        }
    }
}

/// Iterations per leaf: a share of the loop, but enough to be worth a fork (`grain`), and balanced over the
/// workers if leaves are few.
fn leaf_size(trips: i64, grain: i64) -> i64 {
    let leaf = if pool::always_forks() {
        (trips / MIN_FORCED_LEAVES).max(1)
    } else {
        let workers = pool::max_active_workers() as i64;
        let share = trips / (LEAVES_PER_WORKER * workers);
        let leaf = grain.max(share.clamp(1, MAX_LEAF));
        let rounds = ceil_div(ceil_div(trips, leaf), workers);
        let even = ceil_div(trips, rounds * workers);
        if even >= grain / 2 { even } else { leaf }
    };
    // A range of leaves stores 32-bit indices.
    let leaf = leaf.max(trips >> 31);
    match leaf < MIN_ROUNDED_LEAF {
        true => leaf,
        false => ceil_div(leaf, LEAF_MULTIPLE) * LEAF_MULTIPLE,
    }
}

/// The quotient, rounded up.
fn ceil_div(dividend: i64, divisor: i64) -> i64 {
    dividend / divisor + i64::from(dividend % divisor != 0)
}

/// Runs `body` over subranges of `lo .. hi`, in parallel and in any order; returns when all have ended.
/// `grain` is the minimum number of iterations that is worth a task.
///
/// # Safety
/// `body` may be called with any range inside `lo .. hi` and `context`, on any thread, several times
/// concurrently, and does not unwind.
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
    let kernel = kernel_faults::is_in_kernel();
    if thread_context::runs_loops_alone() {
        // SAFETY: promised by the caller.
        return unsafe { run_body(kernel, body, lo, hi, context) };
    }
    let context = SendPtr(context);
    let split = move |timed: Option<&adaptive_serial::TimedRun>| {
        let depth = thread_context::depth();
        let leaf = match pool::has_other_workers() || pool::always_forks() {
            true => leaf_size(hi - lo, grain),
            false => hi - lo,
        };
        let all = ParallelLoop {
            body,
            context,
            lo,
            hi,
            leaf,
            depth,
            kernel,
        };
        thread_context::with_deeper_fork(depth, || all.run(timed))
    };
    tsan::with_accesses_ignored(|| match grain {
        // The program declares each iteration worth a task.
        1 => {
            pool::on_worker(|| split(None));
        }
        _ => adaptive_serial::run_timed(body as usize, hi - lo, |timed| {
            pool::on_worker(|| split(timed))
        }),
    });
}
