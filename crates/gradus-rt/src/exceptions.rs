//! Propagation of exceptions from a task to the sync of its scope.
//!
//! A task that may throw is called by code that catches everything and passes the exception to [`gr_keep`].
//! After the sync, the program fetches the exception with [`gr_thrown`] and rethrows. Nothing unwinds
//! through this library. The first exception of a group is propagated; later exceptions are destroyed.
//!
//! The C++ run time counts exceptions in flight per thread (Itanium C++ ABI: Exception Handling, 2.2.2) for
//! `std::uncaught_exceptions`. An exception leaves the count of the catching thread and joins the count of
//! the rethrowing thread. The run time's functions are weak references, null in a program without C++.

use crate::pool::scope::Scope;
use crate::tasks::gr_sync;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A scope whose tasks may throw. Initialised with zeros.
#[repr(C)]
#[derive(Debug, Default)]
pub struct ThrowingScope {
    /// The tasks.
    pub scope: Scope,
    /// The stored exception, an `_Unwind_Exception`; null if none.
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

/// Each function takes a pointer or nothing, and returns a pointer or nothing.
type Entry = Option<unsafe extern "C" fn(*mut c_void) -> *mut c_void>;

unsafe extern "C" {
    static gr_exception_entries: [Entry; 3];
    fn _Unwind_DeleteException(exception: *mut c_void);
}

fn call(entry: usize, argument: *mut c_void) -> *mut c_void {
    // SAFETY: the linker fills the table, and nothing writes to it.
    match unsafe { gr_exception_entries[entry] } {
        // SAFETY: the entries are the run time's functions, called with matching arguments.
        Some(entry) => unsafe { entry(argument) },
        None => std::ptr::null_mut(),
    }
}

/// The C++ run time's record of a thread.
#[repr(C)]
struct Globals {
    caught: *mut c_void,
    uncaught: u32,
}

/// Adds `by` to the number of exceptions in flight on the calling thread.
fn count(by: i32) {
    let globals: *mut Globals = call(0, std::ptr::null_mut()).cast();
    // SAFETY: the pointer is the thread's own record, or null.
    if let Some(globals) = unsafe { globals.as_mut() } {
        globals.uncaught = globals.uncaught.wrapping_add_signed(by);
    }
}

/// Stores the exception by which a task of the group ended.
///
/// # Safety
/// `group` is valid; `exception` comes from a landing pad of the calling thread, and no other code owns it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_keep(group: *const ThrowingScope, exception: *mut c_void) {
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

/// Removes the group's exception, to be rethrown on the calling thread.
///
/// # Safety
/// `group` stores an exception, and its tasks have ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_thrown(group: *const ThrowingScope) -> *mut c_void {
    count(1);
    // SAFETY: promised by the caller.
    let place = unsafe { &(*group).exception };
    place.swap(std::ptr::null_mut(), Ordering::AcqRel)
}

/// Ends a group that is left by an exception: waits for the tasks, and destroys a stored exception.
///
/// # Safety
/// The obligations of [`gr_sync`] apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_abandon(group: *const ThrowingScope) {
    // SAFETY: promised by the caller.
    unsafe { gr_sync(&raw const (*group).scope) };
    // SAFETY: promised by the caller.
    let kept = unsafe { &(*group).exception }.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if !kept.is_null() {
        // SAFETY: no other thread has the exception any more.
        unsafe { _Unwind_DeleteException(kept) };
    }
}

/// Terminates the program, as C++ does for an uncaught exception.
#[unsafe(no_mangle)]
pub extern "C" fn gr_uncaught(exception: *mut c_void) {
    call(1, exception);
    call(2, std::ptr::null_mut());
    std::process::abort();
}
