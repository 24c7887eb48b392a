//! `omp_set_schedule`: sets the run-time schedule of loops, of the current team or outside teams.

use crate::foreign_library::{Function, call};
use crate::runtime_schedule::{Schedule, outside};
use crate::thread_context;
use std::sync::atomic::Ordering;

/// Sets the schedule of later `schedule(runtime)` loops.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_omp_set_schedule(kind: u32, chunk: i32) {
    let member = thread_context::current().member;
    // SAFETY: a member lives while any thread's context refers to it, thus longer than this call.
    let place = match unsafe { member.as_ref() } {
        Some(member) => &member.team().schedule.0,
        None => outside(),
    };
    if let Some(asked) = Schedule::from_number(kind, chunk) {
        place.store(asked.to_bits(), Ordering::Relaxed);
    }
    if let Some(f) = Function::SetSchedule.find() {
        call!(f, (u32, i32), kind, chunk);
    }
}

/// Fortran interface.
///
/// # Safety
/// Both are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_omp_set_schedule_(kind: *const u32, chunk: *const i32) {
    // SAFETY: promised by the caller. The C function takes the values.
    unsafe { __wrap_omp_set_schedule(*kind, *chunk) };
}
