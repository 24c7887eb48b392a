//! Exceptions on their way from a task to the sync that waits for it.
//!
//! A task that may throw is called by code that catches whatever comes and hands it to [`gr_keep`]; behind
//! the sync the program takes it by [`gr_thrown`] and raises it again. Nothing unwinds through this library.
//! The first exception that a group keeps is the one that arrives; further ones end here.
//!
//! What is in flight is counted for each thread by the C++ run time (Itanium C++ ABI: Exception Handling,
//! 2.2.2), which `std::uncaught_exceptions` reads: an exception leaves the count of the thread that kept
//! it and joins that of the thread that raises it again. The run time's functions are weak references:
//! null in a program without C++.

use crate::tasks::{Scope, gr_sync};
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A scope whose tasks may throw. Begins as zeros.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Keeping {
    /// Its tasks.
    pub scope: Scope,
    /// The exception kept, an `_Unwind_Exception`; null while there is none.
    exception: AtomicPtr<c_void>,
}

std::arch::global_asm!(
    ".weak __cxa_get_globals",
    ".weak __cxa_begin_catch",
    ".weak _ZSt9terminatev",
    ".pushsection .data.rel.ro.gr_exceptions,\"aw\"",
    ".p2align 3",
    ".local gr_exception_entries",
    "gr_exception_entries:",
    ".8byte __cxa_get_globals",
    ".8byte __cxa_begin_catch",
    ".8byte _ZSt9terminatev",
    ".popsection",
);

/// Each takes a pointer or nothing, and gives one or nothing.
type Entry = Option<unsafe extern "C" fn(*mut c_void) -> *mut c_void>;

unsafe extern "C" {
    static gr_exception_entries: [Entry; 3];
    fn _Unwind_DeleteException(exception: *mut c_void);
}

fn call(entry: usize, argument: *mut c_void) -> *mut c_void {
    // SAFETY: the table is filled by the linker and never written.
    match unsafe { gr_exception_entries[entry] } {
        // SAFETY: these are the run time's functions, called with what they take.
        Some(entry) => unsafe { entry(argument) },
        None => std::ptr::null_mut(),
    }
}

/// What the C++ run time knows of a thread.
#[repr(C)]
struct Globals {
    caught: *mut c_void,
    uncaught: u32,
}

/// Adds `by` to the number of exceptions in flight on this thread.
fn count(by: i32) {
    let globals: *mut Globals = call(0, std::ptr::null_mut()).cast();
    // SAFETY: the thread's own, or null.
    if let Some(globals) = unsafe { globals.as_mut() } {
        globals.uncaught = globals.uncaught.wrapping_add_signed(by);
    }
}

/// Keeps an exception that a task of the group was left by.
///
/// # Safety
/// `group` is one; `exception` is what a landing pad of this thread was given, and nobody else has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_keep(group: *const Keeping, exception: *mut c_void) {
    count(-1);
    // SAFETY: promised by the caller.
    let place = unsafe { &(*group).exception };
    let none = std::ptr::null_mut();
    let kept = place.compare_exchange(none, exception, Ordering::AcqRel, Ordering::Relaxed);
    if kept.is_err() {
        // SAFETY: promised by the caller.
        unsafe { _Unwind_DeleteException(exception) };
    }
}

/// Takes what the group keeps, to be raised on this thread.
///
/// # Safety
/// `group` is one that keeps something, and its tasks have ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_thrown(group: *const Keeping) -> *mut c_void {
    count(1);
    // SAFETY: promised by the caller.
    let place = unsafe { &(*group).exception };
    place.swap(std::ptr::null_mut(), Ordering::AcqRel)
}

/// Ends a group that is left by an exception: waits for its tasks, and drops what they threw.
///
/// # Safety
/// As for [`gr_sync`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_abandon(group: *const Keeping) {
    // SAFETY: promised by the caller.
    unsafe { gr_sync(&raw const (*group).scope) };
    // SAFETY: promised by the caller.
    let kept = unsafe { &(*group).exception }.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if !kept.is_null() {
        // SAFETY: nobody else has it any more.
        unsafe { _Unwind_DeleteException(kept) };
    }
}

/// Ends the program, as C++ does where nobody catches what was raised.
#[unsafe(no_mangle)]
pub extern "C" fn gr_uncaught(exception: *mut c_void) {
    call(1, exception);
    call(2, std::ptr::null_mut());
    std::process::abort();
}
