//! Reductions: leaves are divided and combined in an order that depends on the trip count alone. A sum
//! therefore has equal bits for any number of workers.
//!
//! The partial results of the leaves are combined into the result in iteration order. While no thread needs
//! work, each partial result is combined right after its leaf. Then the remaining leaves are distributed
//! ([`crate::loops::partition`]), each with memory for its partial result, and the partial results are combined at the
//! end.

use crate::loops::adaptive_serial;
use crate::loops::parallel_for::{LEAF_MULTIPLE, MIN_ROUNDED_LEAF};
use crate::loops::partition;
use crate::loops::partition::Leaves;
use crate::{SendPtr, pool, thread_context, tsan};
use smallvec::{SmallVec, smallvec};
use std::ffi::c_void;

/// Adds iterations `lo .. hi` to the partial result at `partial`.
pub type ReduceBody =
    unsafe extern "C" fn(lo: i64, hi: i64, partial: *mut c_void, context: *mut c_void);
/// Combines the partial result at `from`, of later iterations, into the partial result at `into`.
pub type Combine =
    unsafe extern "C" fn(into: *mut c_void, from: *const c_void, context: *mut c_void);

/// Maximum number of leaves, for partial results of at most a cache line: workers finish within the time of
/// a leaf of each other.
const MAX_LEAVES: i64 = 256;
/// Minimum number of leaves for larger partial results, each of which costs memory and time.
const MIN_LEAVES: i64 = 16;
/// Target size of all partial results together, in bytes.
const PARTIALS_BYTES: usize = 1 << 20;

/// Partial results are aligned to cache lines: two workers never share a line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct CacheLine {
    _words: [u64; 8],
}

#[derive(Clone, Copy)]
struct Reduction {
    body: ReduceBody,
    combine: Combine,
    identity: SendPtr,
    context: SendPtr,
    result: SendPtr,
    size_bytes: usize,
    lo: i64,
    hi: i64,
    leaf: i64,
    depth: u32,
}

/// Leaves from `first` on, each with memory for its partial result.
struct PartialLeaves<'a> {
    all: &'a Reduction,
    first: u32,
    places: SendPtr,
}

impl Leaves for PartialLeaves<'_> {
    fn run_leaves(&self, first: u32, end: u32) {
        for leaf in first..end {
            let place = self.all.partial_at(self.places, leaf - self.first);
            self.all.run_leaf(leaf, place);
        }
    }
}

impl Reduction {
    /// Runs the reduction; `may_share` decides, after `leaf` leaves, whether other threads may run further
    /// leaves. Returns whether the reduction was shared.
    fn run(&self, may_share: impl Fn(u32) -> bool) -> bool {
        let leaves = (self.hi - self.lo + self.leaf - 1) / self.leaf;
        let leaves = u32::try_from(leaves).unwrap_or(u32::MAX);
        let mut partial = self.allocate_partials(1);
        let partial = SendPtr(partial.as_mut_ptr().cast());
        for leaf in 0..leaves {
            if leaves - leaf > 1 && pool::needs_stealable_work() && may_share(leaf) {
                self.run_shared(leaf, leaves);
                return true;
            }
            self.run_leaf(leaf, partial);
            self.combine_into_result(partial);
        }
        false
    }

    /// Distributes leaves `first .. end`.
    fn run_shared(&self, first: u32, end: u32) {
        let mut places = self.allocate_partials(end - first);
        let places = SendPtr(places.as_mut_ptr().cast());
        let placed = PartialLeaves {
            all: self,
            first,
            places,
        };
        partition::run_shared(placed, first, end, self.depth);
        for leaf in 0..end - first {
            self.combine_into_result(self.partial_at(places, leaf));
        }
    }

    fn run_leaf(&self, leaf: u32, partial: SendPtr) {
        let lo = self.lo + i64::from(leaf) * self.leaf;
        let hi = (lo + self.leaf).min(self.hi);
        // SAFETY: the identity has `size_bytes` bytes, and the memory at least as many; the rest is promised
        // by the caller of `gr_reduce`.
        unsafe {
            let from: *const u8 = self.identity.get().cast();
            std::ptr::copy_nonoverlapping(from, partial.get().cast(), self.size_bytes);
            tsan::with_accesses_checked(|| (self.body)(lo, hi, partial.get(), self.context.get()));
        }
    }

    /// Combines a partial result into the result.
    fn combine_into_result(&self, partial: SendPtr) {
        let (result, context) = (self.result.get(), self.context.get());
        // SAFETY: both hold partial results of the promised size.
        tsan::with_accesses_checked(|| unsafe { (self.combine)(result, partial.get(), context) });
    }

    /// Number of cache lines of a partial result.
    fn lines(&self) -> usize {
        self.size_bytes.div_ceil(size_of::<CacheLine>()).max(1)
    }

    /// Allocates memory for `leaves` partial results.
    fn allocate_partials(&self, leaves: u32) -> SmallVec<[CacheLine; 1]> {
        smallvec![CacheLine::default(); self.lines() * leaves as usize]
    }

    fn partial_at(&self, places: SendPtr, leaf: u32) -> SendPtr {
        let first: *mut CacheLine = places.get().cast();
        // SAFETY: the memory holds enough partial results.
        SendPtr(unsafe { first.add(self.lines() * leaf as usize).cast() })
    }
}

/// Iterations per leaf; depends on the loop only, not on the workers.
fn leaf_size(trips: i64, grain: i64, size_bytes: usize) -> i64 {
    let leaves = match size_bytes <= size_of::<CacheLine>() {
        true => MAX_LEAVES,
        false => i64::try_from(PARTIALS_BYTES / size_bytes)
            .unwrap_or(MAX_LEAVES)
            .clamp(MIN_LEAVES, MAX_LEAVES / 4),
    };
    let leaf = grain.max((trips + leaves - 1) / leaves).max(1);
    match leaf < MIN_ROUNDED_LEAF {
        true => leaf,
        false => (leaf + LEAF_MULTIPLE - 1) / LEAF_MULTIPLE * LEAF_MULTIPLE,
    }
}

/// Runs `body` over subranges of `lo .. hi`. The partial results are combined, in iteration order, into
/// `result`, which the caller has initialised. `grain` is the minimum number of iterations that is worth a
/// task.
///
/// # Safety
/// `identity` and `result` point to `size_bytes` bytes, aligned to 8. `body` and `combine` may be called on
/// any thread, several times concurrently, with partial results of that size that started as a copy of
/// `identity`, and do not unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_reduce(
    lo: i64,
    hi: i64,
    grain: i64,
    body: ReduceBody,
    combine: Combine,
    identity: *const c_void,
    result: *mut c_void,
    size_bytes: usize,
    context: *mut c_void,
) {
    if hi <= lo {
        return;
    }
    let leaf = leaf_size(hi - lo, grain, size_bytes);
    let (identity, context, result) = (
        SendPtr(identity.cast_mut()),
        SendPtr(context),
        SendPtr(result),
    );
    let forks = !thread_context::runs_loops_alone();
    let all = move |depth| Reduction {
        body,
        combine,
        identity,
        context,
        result,
        size_bytes,
        lo,
        hi,
        leaf,
        depth,
    };
    let split = move |timed: Option<&adaptive_serial::TimedRun>| {
        let depth = thread_context::depth();
        thread_context::with_deeper_fork(depth, || {
            all(depth).run(|leaf| timed.is_none_or(|run| run.may_share(leaf)))
        })
    };
    tsan::with_accesses_ignored(|| match forks {
        true => adaptive_serial::run_timed(body as usize, hi - lo, |timed| {
            pool::on_worker(|| split(timed))
        }),
        false => {
            all(thread_context::depth()).run(|_| false);
        }
    });
}
