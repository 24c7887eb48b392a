//! Reductions: leaves are cut and combined in an order that depends on the number of iterations
//! alone, so that a sum has the same bits on any number of workers.
//!
//! One leaf's partial result is combined after the other into the result. While nobody waits for work, that is
//! done as the leaves are run; then what is left is dealt out ([`crate::rows`]), each leaf with a place for its
//! partial result, and the places are combined at the end.

use crate::ranges::{LINE, LONG};
use crate::rows::{self, Leaves};
use crate::{Carried, paying, pool, strand, tsan};
use smallvec::{SmallVec, smallvec};
use std::ffi::c_void;

/// Adds iterations `lo .. hi` to the partial result at `partial`.
pub type ReduceBody =
    unsafe extern "C" fn(lo: i64, hi: i64, partial: *mut c_void, context: *mut c_void);
/// Combines the partial result at `from`, of later iterations, into the one at `into`.
pub type Combine =
    unsafe extern "C" fn(into: *mut c_void, from: *const c_void, context: *mut c_void);

/// A loop is cut into at most this many leaves, where a partial result is no longer than a cache line: workers
/// end within a leaf's time of each other.
const LEAVES: i64 = 256;
/// Longer partial results are fewer, as each costs memory and time: at least this many.
const FEWEST_LEAVES: i64 = 16;
/// The bytes of all partial results together, where that leaves enough of them.
const PARTIALS_BYTES: usize = 1 << 20;

/// Partial results begin with a cache line: two workers never share one.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Line {
    _words: [u64; 8],
}

#[derive(Clone, Copy)]
struct Reduction {
    body: ReduceBody,
    combine: Combine,
    identity: Carried,
    context: Carried,
    result: Carried,
    size_bytes: usize,
    lo: i64,
    hi: i64,
    leaf: i64,
    depth: u32,
}

/// Leaves from `first` on, each with a place for its partial result.
struct Placed<'a> {
    all: &'a Reduction,
    first: u32,
    places: Carried,
}

impl Leaves for Placed<'_> {
    fn run_leaves(&self, first: u32, end: u32) {
        for leaf in first..end {
            let place = self.all.place(self.places, leaf - self.first);
            self.all.run_leaf(leaf, place);
        }
    }
}

impl Reduction {
    /// Runs all; `may_share` says, where so many leaves are done, whether further ones may run on other threads. Says
    /// whether any did.
    fn run(&self, may_share: impl Fn(u32) -> bool) -> bool {
        let leaves = (self.hi - self.lo + self.leaf - 1) / self.leaf;
        let leaves = u32::try_from(leaves).unwrap_or(u32::MAX);
        let mut partial = self.places(1);
        let partial = Carried(partial.as_mut_ptr().cast());
        for leaf in 0..leaves {
            if leaves - leaf > 1 && pool::is_hungry() && may_share(leaf) {
                self.share(leaf, leaves);
                return true;
            }
            self.run_leaf(leaf, partial);
            self.add(partial);
        }
        false
    }

    /// Deals out leaves `first .. end`.
    fn share(&self, first: u32, end: u32) {
        let mut places = self.places(end - first);
        let places = Carried(places.as_mut_ptr().cast());
        let placed = Placed {
            all: self,
            first,
            places,
        };
        rows::share(placed, first, end, self.depth);
        for leaf in 0..end - first {
            self.add(self.place(places, leaf));
        }
    }

    fn run_leaf(&self, leaf: u32, partial: Carried) {
        let lo = self.lo + i64::from(leaf) * self.leaf;
        let hi = (lo + self.leaf).min(self.hi);
        // SAFETY: the identity is that long, and the place at least as long; the rest is promised by the caller of
        // `gr_reduce`.
        unsafe {
            let from: *const u8 = self.identity.get().cast();
            std::ptr::copy_nonoverlapping(from, partial.get().cast(), self.size_bytes);
            tsan::shown(|| (self.body)(lo, hi, partial.get(), self.context.get()));
        }
    }

    /// Combines a partial result into the result.
    fn add(&self, partial: Carried) {
        let (result, context) = (self.result.get(), self.context.get());
        // SAFETY: both hold partial results of the promised size.
        tsan::shown(|| unsafe { (self.combine)(result, partial.get(), context) });
    }

    /// The lines of a partial result.
    fn lines(&self) -> usize {
        self.size_bytes.div_ceil(size_of::<Line>()).max(1)
    }

    /// Memory for so many partial results.
    fn places(&self, leaves: u32) -> SmallVec<[Line; 1]> {
        smallvec![Line::default(); self.lines() * leaves as usize]
    }

    fn place(&self, places: Carried, leaf: u32) -> Carried {
        let first: *mut Line = places.get().cast();
        // SAFETY: there are places for so many leaves.
        Carried(unsafe { first.add(self.lines() * leaf as usize).cast() })
    }
}

/// The iterations of a leaf, by what the loop is and not by who runs it.
fn leaf_size(trips: i64, grain: i64, size_bytes: usize) -> i64 {
    let leaves = match size_bytes <= size_of::<Line>() {
        true => LEAVES,
        false => i64::try_from(PARTIALS_BYTES / size_bytes)
            .unwrap_or(LEAVES)
            .clamp(FEWEST_LEAVES, LEAVES / 4),
    };
    let leaf = grain.max((trips + leaves - 1) / leaves).max(1);
    match leaf < LONG {
        true => leaf,
        false => (leaf + LINE - 1) / LINE * LINE,
    }
}

/// Runs `body` over `lo .. hi` in ranges; the partial results are combined, in the order of the
/// iterations, into `result`, which the caller has filled with what they are combined with.
/// `grain` is the smallest number of iterations that is worth a task of its own.
///
/// # Safety
/// `identity` and `result` point to `size_bytes` bytes, aligned to 8. `body` and `combine` may be
/// called on any thread, several at a time, with partial results of that size that started as a copy
/// of `identity`, and do not unwind.
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
        Carried(identity.cast_mut()),
        Carried(context),
        Carried(result),
    );
    let forks = !strand::loops_alone();
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
    let split = move |timed: Option<&paying::Run>| {
        let depth = strand::depth();
        strand::deeper(depth, || {
            all(depth).run(|leaf| timed.is_none_or(|run| run.may_share(leaf)))
        })
    };
    tsan::hidden(|| match forks {
        true => paying::timed(body as usize, hi - lo, |timed| {
            pool::on_worker(|| split(timed))
        }),
        false => {
            all(strand::depth()).run(|_| false);
        }
    });
}
