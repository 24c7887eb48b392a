//! What ThreadSanitizer must be told: that a fork comes before its task, and a task before its join.
//!
//! The sanitizer's functions are weak references: null in a program that is built without it.

use std::ffi::c_void;

std::arch::global_asm!(
    ".weak __tsan_acquire",
    ".weak __tsan_release",
    ".pushsection .data.rel.ro.gr_tsan,\"aw\"",
    ".p2align 3",
    ".local gr_tsan_entries",
    "gr_tsan_entries:",
    ".8byte __tsan_acquire",
    ".8byte __tsan_release",
    ".popsection",
);

type Entry = Option<unsafe extern "C" fn(*mut c_void)>;

unsafe extern "C" {
    static gr_tsan_entries: [Entry; 2];
}

/// What was done before [`release`] of the same place is visible from here on.
pub(crate) fn acquire(place: *mut c_void) {
    // SAFETY: the table is filled by the linker and never written.
    if let Some(entry) = unsafe { gr_tsan_entries[0] } {
        // SAFETY: the sanitizer takes any address.
        unsafe { entry(place) }
    }
}

/// What was done until here is visible after [`acquire`] of the same place.
pub(crate) fn release(place: *mut c_void) {
    // SAFETY: as above.
    if let Some(entry) = unsafe { gr_tsan_entries[1] } {
        // SAFETY: the sanitizer takes any address.
        unsafe { entry(place) }
    }
}
