//! What ThreadSanitizer must be told: that a fork comes before its task, and a task before its join; and
//! that what this library does to memory of its own is not the program's.
//!
//! The sanitizer sees the calls of `malloc`, `free` and `memcpy` that a pool makes, but not the atomic
//! operations that order them, as only the program is instrumented. So workers begin [`hidden`], the entries
//! are, and the program's code is [`shown`] wherever it is called.
//!
//! The sanitizer's functions are weak references: null in a program that is built without it. The table of
//! them is global, since what reads it may be inlined into other objects.

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

/// The last two take nothing, and overlook what they are given.
type Entry = Option<unsafe extern "C" fn(*mut c_void)>;

unsafe extern "C" {
    static gr_tsan_entries: [Entry; 4];
}

fn call(entry: usize, place: *mut c_void) {
    // SAFETY: the table is filled by the linker and never written.
    if let Some(entry) = unsafe { gr_tsan_entries[entry] } {
        // SAFETY: the sanitizer takes any address.
        unsafe { entry(place) }
    }
}

/// Whether races are looked for.
pub(crate) fn watches() -> bool {
    // SAFETY: the table is filled by the linker and never written.
    unsafe { gr_tsan_entries[0].is_some() }
}

/// What was done before [`release`] of the same place is visible from here on.
pub(crate) fn acquire(place: *mut c_void) {
    call(0, place);
}

/// What was done until here is visible after [`acquire`] of the same place.
pub(crate) fn release(place: *mut c_void) {
    call(1, place);
}

/// From here on this thread's accesses are this library's.
pub(crate) fn hide() {
    call(2, std::ptr::null_mut());
}

/// From here on this thread's accesses are what they were before [`hide`].
pub(crate) fn show() {
    call(3, std::ptr::null_mut());
}

/// Runs what belongs to this library.
pub(crate) fn hidden<R>(work: impl FnOnce() -> R) -> R {
    hide();
    let result = work();
    show();
    result
}

/// Runs the program's code, from inside of [`hidden`].
pub(crate) fn shown<R>(work: impl FnOnce() -> R) -> R {
    show();
    let result = work();
    hide();
    result
}
