//! ThreadSanitizer annotations: a fork happens before its task, a task before its join, and this library's
//! own memory accesses are ignored.
//!
//! The sanitizer intercepts the pool's calls of `malloc`, `free` and `memcpy`, but not the atomic operations
//! that order these calls, because only the program is instrumented. Workers and entries therefore run
//! [`with_accesses_ignored`], and program code runs [`with_accesses_checked`].
//!
//! The sanitizer's functions are weak references, null in a program built without the sanitizer. The table
//! of the functions is global, because readers of the table may be inlined into other objects.

use std::ffi::c_void;

std::arch::global_asm!(
    ".weak __tsan_acquire",
    ".weak __tsan_release",
    ".weak __tsan_ignore_thread_begin",
    ".weak __tsan_ignore_thread_end",
    ".pushsection .data.rel.ro.gr_tsan,\"aw\"",
    ".p2align 3",
    ".globl gr_tsan_entries",
    ".hidden gr_tsan_entries",
    "gr_tsan_entries:",
    ".8byte __tsan_acquire",
    ".8byte __tsan_release",
    ".8byte __tsan_ignore_thread_begin",
    ".8byte __tsan_ignore_thread_end",
    ".popsection",
);

/// The last two functions take no argument, and ignore the given one.
type Entry = Option<unsafe extern "C" fn(*mut c_void)>;

unsafe extern "C" {
    static gr_tsan_entries: [Entry; 4];
}

fn call(entry: usize, place: *mut c_void) {
    // SAFETY: the linker fills the table, and nothing writes to it.
    if let Some(entry) = unsafe { gr_tsan_entries[entry] } {
        // SAFETY: the sanitizer accepts any address.
        unsafe { entry(place) }
    }
}

/// Returns whether ThreadSanitizer is active.
pub(crate) fn is_active() -> bool {
    // SAFETY: the linker fills the table, and nothing writes to it.
    unsafe { gr_tsan_entries[0].is_some() }
}

/// Orders the operations before [`release`] of `place` before the following operations.
pub(crate) fn acquire(place: *mut c_void) {
    call(0, place);
}

/// Orders the preceding operations before those after [`acquire`] of `place`.
pub(crate) fn release(place: *mut c_void) {
    call(1, place);
}

/// Ignores the thread's accesses from here on.
pub(crate) fn ignore_begin() {
    call(2, std::ptr::null_mut());
}

/// Ends the last [`ignore_begin`].
pub(crate) fn ignore_end() {
    call(3, std::ptr::null_mut());
}

/// Runs library code, with its accesses ignored.
pub(crate) fn with_accesses_ignored<R>(work: impl FnOnce() -> R) -> R {
    ignore_begin();
    let result = work();
    ignore_end();
    result
}

/// Runs program code from inside [`with_accesses_ignored`].
pub(crate) fn with_accesses_checked<R>(work: impl FnOnce() -> R) -> R {
    ignore_end();
    let result = work();
    ignore_begin();
    result
}
