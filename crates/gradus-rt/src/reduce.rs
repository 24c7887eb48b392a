//! Reductions: leaves are cut and combined in an order that depends on the number of iterations
//! alone, so that a sum has the same bits on any number of workers.

use crate::ranges::{LINE, LONG};
use crate::{Carried, pool, strand, tsan};
use smallvec::{SmallVec, smallvec};
use std::ffi::c_void;

/// Adds iterations `lo .. hi` to the partial result at `partial`.
pub type ReduceBody =
    unsafe extern "C" fn(lo: i64, hi: i64, partial: *mut c_void, context: *mut c_void);
/// Combines the partial result at `from`, of later iterations, into the one at `into`.
pub type Combine =
    unsafe extern "C" fn(into: *mut c_void, from: *const c_void, context: *mut c_void);

/// A loop is cut into at most this many leaves.
const LEAVES: i64 = 64;
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
    size_bytes: usize,
    lo: i64,
    hi: i64,
    leaf: i64,
    depth: u32,
    /// Whether parts may run on other threads.
    forks: bool,
}

impl Reduction {
    /// Leaves `first .. last` into `partial`, which holds the identity.
    fn run(&self, first: i64, last: i64, partial: Carried) {
        if last - first == 1 {
            let lo = self.lo + first * self.leaf;
            let hi = (lo + self.leaf).min(self.hi);
            // SAFETY: promised by the caller of `gr_reduce`.
            let leaf = || unsafe { (self.body)(lo, hi, partial.get(), self.context.get()) };
            return tsan::shown(leaf);
        }
        let middle = first + (last - first) / 2;
        let mut right = self.fresh();
        let other = Carried(right.as_mut_ptr().cast());
        if self.forks && pool::is_hungry() {
            self.fork(first, middle, last, partial, other);
        } else {
            self.run(first, middle, partial);
            self.run(middle, last, other);
        }
        // SAFETY: both hold partial results of the promised size.
        tsan::shown(|| unsafe { (self.combine)(partial.get(), other.get(), self.context.get()) });
    }

    fn fork(&self, first: i64, middle: i64, last: i64, partial: Carried, other: Carried) {
        tsan::release(other.get());
        pool::both(
            || self.run(first, middle, partial),
            || {
                strand::deeper(self.depth, || {
                    tsan::acquire(other.get());
                    self.run(middle, last, other);
                    tsan::release(other.get());
                });
            },
        );
        tsan::acquire(other.get());
    }

    /// A partial result that holds the identity.
    fn fresh(&self) -> SmallVec<[Line; 1]> {
        let lines = self.size_bytes.div_ceil(size_of::<Line>()).max(1);
        let mut memory: SmallVec<[Line; 1]> = smallvec![Line::default(); lines];
        // SAFETY: the identity is that long, and the memory at least as long.
        unsafe {
            let from: *const u8 = self.identity.get().cast();
            std::ptr::copy_nonoverlapping(from, memory.as_mut_ptr().cast(), self.size_bytes);
        }
        memory
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
    let leaf = grain.max((hi - lo + LEAVES - 1) / LEAVES).max(1);
    let leaf = match leaf < LONG {
        true => leaf,
        false => (leaf + LINE - 1) / LINE * LINE,
    };
    let leaves = (hi - lo + leaf - 1) / leaf;
    let (identity, context, result) = (
        Carried(identity.cast_mut()),
        Carried(context),
        Carried(result),
    );
    let forks = !strand::must_not_wait();
    let all = move |depth| {
        let all = Reduction {
            body,
            combine,
            identity,
            context,
            size_bytes,
            lo,
            hi,
            leaf,
            depth,
            forks,
        };
        let mut partial = all.fresh();
        let partial = Carried(partial.as_mut_ptr().cast());
        all.run(0, leaves, partial);
        // SAFETY: as promised.
        tsan::shown(|| unsafe { combine(result.get(), partial.get(), context.get()) });
    };
    tsan::hidden(|| match forks {
        true => pool::on_worker(move || {
            let depth = strand::depth();
            strand::deeper(depth, || all(depth));
        }),
        false => all(strand::depth()),
    });
}
