//! Fork and join: two calls at once, and scopes of any number of tasks.

use crate::{Carried, pool, strand, tsan, waiting};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A task.
pub type Task = unsafe extern "C" fn(context: *mut c_void);

/// A group of tasks that is waited for together. Begins as zeros; [`gr_sync`] must be the last call
/// on it before its memory goes.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Scope {
    /// The tasks that have not ended.
    open: AtomicUsize,
}

/// Runs `first` and `second`, possibly at once; returns when both have ended.
///
/// # Safety
/// Both may be called with their contexts, `second` on any thread, and do not unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_join(
    first: Task,
    first_context: *mut c_void,
    second: Task,
    second_context: *mut c_void,
) {
    if strand::must_not_wait() || strand::is_closed() {
        // SAFETY: promised by the caller.
        return unsafe {
            first(first_context);
            second(second_context);
        };
    }
    let (first_context, second_context) = (Carried(first_context), Carried(second_context));
    let both = move || {
        let depth = strand::depth();
        let mut fence = 0_u8;
        let place = Carried((&raw mut fence).cast());
        tsan::release(place.get());
        pool::both(
            || {
                // SAFETY: promised by the caller.
                let first = || unsafe { first(first_context.get()) };
                strand::deeper(depth, || tsan::shown(first));
            },
            || {
                // SAFETY: promised by the caller.
                let second = || unsafe { second(second_context.get()) };
                strand::deeper(depth, || {
                    tsan::acquire(place.get());
                    tsan::shown(second);
                    tsan::release(place.get());
                });
            },
        );
        tsan::acquire(place.get());
    };
    tsan::hidden(|| pool::on_worker(both));
}

/// Makes a task of `scope` that gets a copy of the `size_bytes` bytes at `context`. Where nobody
/// waits for work the task runs at once, here.
///
/// # Safety
/// `task` may be called on any thread, with a pointer to such a copy (aligned to 16), and does not
/// unwind. The scope outlives the task: [`gr_sync`] is called before its memory goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_spawn(
    scope: *const Scope,
    task: Task,
    context: *const c_void,
    size_bytes: usize,
) {
    if !pool::gr_hungry() {
        // SAFETY: promised by the caller; a task may use its context up.
        return unsafe { task(context.cast_mut()) };
    }
    tsan::hidden(|| fork(scope, task, context, size_bytes));
}

/// Makes a task that others can steal.
fn fork(scope: *const Scope, task: Task, context: *const c_void, size_bytes: usize) {
    // Not zeroed: the C library has small blocks at hand, but not where they must be zero.
    let mut copy = Vec::<u128>::with_capacity(size_bytes.div_ceil(size_of::<u128>()).max(1));
    // SAFETY: the context is that long, and the copy has room for as much.
    unsafe {
        std::ptr::copy_nonoverlapping(context.cast::<u8>(), copy.as_mut_ptr().cast(), size_bytes)
    };
    // SAFETY: the scope outlives its tasks.
    unsafe { &*scope }.open.fetch_add(1, Ordering::Relaxed);
    let depth = strand::depth();
    let place = Carried(scope.cast_mut().cast());
    tsan::release(copy.as_mut_ptr().cast());
    pool::spawn(scope, move || {
        strand::deeper(depth, || {
            // Only what came before its own spawn comes before a task.
            tsan::acquire(copy.as_mut_ptr().cast());
            // SAFETY: promised by the caller of `gr_spawn`.
            tsan::shown(|| unsafe { task(copy.as_mut_ptr().cast()) });
            tsan::release(place.get());
        });
        let scope: *const Scope = place.get().cast();
        // SAFETY: the scope lives until the count is zero.
        unsafe { &*scope }.open.fetch_sub(1, Ordering::Release);
    });
}

/// Waits for the tasks of `scope`, and does other work meanwhile.
///
/// # Safety
/// `scope` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_sync(scope: *const Scope) {
    // SAFETY: promised by the caller.
    let open = unsafe { &(*scope).open };
    if open.load(Ordering::Acquire) != 0 {
        wait(open);
    }
    pool::synced(scope);
    tsan::acquire(scope.cast_mut().cast());
}

/// Apart from [`gr_sync`], so that a scope whose tasks have ended, or were none, is a test and no frame.
#[cold]
fn wait(open: &AtomicUsize) {
    tsan::hidden(|| waiting::until(|| open.load(Ordering::Acquire) == 0));
}
