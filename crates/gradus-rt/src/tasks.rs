//! Fork-join: two calls in parallel, and scopes with any number of tasks.

use crate::pool::backoff;
use crate::pool::scope::Scope;
use crate::{SendPtr, pool, thread_context, tsan};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Body of a task.
pub type Task = unsafe extern "C" fn(context: *mut c_void);

/// Runs `first` and `second`, possibly in parallel; returns when both have ended.
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
    if thread_context::must_not_run_other_work() || thread_context::keeps_tasks_local() {
        // SAFETY: promised by the caller.
        return unsafe {
            first(first_context);
            second(second_context);
        };
    }
    let (first_context, second_context) = (SendPtr(first_context), SendPtr(second_context));
    let both = move || {
        let depth = thread_context::depth();
        let mut fence = 0_u8;
        let place = SendPtr((&raw mut fence).cast());
        tsan::release(place.get());
        pool::join(
            || {
                // SAFETY: promised by the caller.
                let first = || unsafe { first(first_context.get()) };
                thread_context::with_deeper_fork(depth, || tsan::with_accesses_checked(first));
            },
            || {
                // SAFETY: promised by the caller.
                let second = || unsafe { second(second_context.get()) };
                thread_context::with_deeper_fork(depth, || {
                    tsan::acquire(place.get());
                    tsan::with_accesses_checked(second);
                    tsan::release(place.get());
                });
            },
        );
        tsan::acquire(place.get());
    };
    tsan::with_accesses_ignored(|| pool::on_worker(both));
}

/// Creates a task of `scope`, with a copy of the `size_bytes` bytes at `context`. If no thread needs work,
/// the task runs immediately on the calling thread.
///
/// # Safety
/// `task` may be called on any thread with a pointer to the copy (aligned to 16 bytes), and does not unwind.
/// The scope outlives the task: [`gr_sync`] is called before its memory is released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_spawn(
    scope: *const Scope,
    task: Task,
    context: *const c_void,
    size_bytes: usize,
) {
    if !pool::gr_hungry() {
        // SAFETY: promised by the caller; a task may modify its context.
        return unsafe { task(context.cast_mut()) };
    }
    tsan::with_accesses_ignored(|| spawn_stealable(scope, task, context, size_bytes));
}

/// Creates a stealable task.
fn spawn_stealable(scope: *const Scope, task: Task, context: *const c_void, size_bytes: usize) {
    // Uninitialised: the C library caches small blocks, but not zeroed ones.
    let mut copy = Vec::<u128>::with_capacity(size_bytes.div_ceil(size_of::<u128>()).max(1));
    // SAFETY: the context has `size_bytes` bytes, and so does the copy.
    unsafe {
        std::ptr::copy_nonoverlapping(context.cast::<u8>(), copy.as_mut_ptr().cast(), size_bytes)
    };
    // SAFETY: the scope outlives its tasks.
    unsafe { &*scope }.open.fetch_add(1, Ordering::Relaxed);
    let depth = thread_context::depth();
    let place = SendPtr(scope.cast_mut().cast());
    tsan::release(copy.as_mut_ptr().cast());
    pool::spawn(scope, move || {
        thread_context::with_deeper_fork(depth, || {
            // Only operations before the task's own spawn happen before the task.
            tsan::acquire(copy.as_mut_ptr().cast());
            // SAFETY: promised by the caller of `gr_spawn`.
            tsan::with_accesses_checked(|| unsafe { task(copy.as_mut_ptr().cast()) });
            tsan::release(place.get());
        });
        let scope: *const Scope = place.get().cast();
        // SAFETY: the scope lives until the count is zero.
        unsafe { &*scope }.open.fetch_sub(1, Ordering::Release);
    });
}

/// Waits for the tasks of `scope`, and runs other work meanwhile.
///
/// # Safety
/// `scope` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_sync(scope: *const Scope) {
    // SAFETY: promised by the caller.
    let open = unsafe { &(*scope).open };
    if open.load(Ordering::Acquire) != 0 {
        wait_for_tasks(open);
    }
    pool::end_scope(scope);
    tsan::acquire(scope.cast_mut().cast());
}

/// The slow path of [`gr_sync`], kept out of line: a scope without open tasks then costs a test and no stack
/// frame.
#[cold]
fn wait_for_tasks(open: &AtomicUsize) {
    tsan::with_accesses_ignored(|| backoff::work_until(|| open.load(Ordering::Acquire) == 0));
}
