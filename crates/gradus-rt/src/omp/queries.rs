//! OpenMP thread queries (`omp_get_thread_num`, …), answered for work of this library.
//!
//! On a worker, the thread number is the worker's index, and the number of threads is the number of workers;
//! a rank of a team has its rank. Two pieces of work that run concurrently never have equal numbers.
//! Everywhere else the OpenMP library answers, or the defaults for a single thread apply. Both libraries
//! report the same maximum number of threads ([`pool`] ensures agreement): a program allocates an element
//! per thread, and reads all elements.

use crate::enclosing_regions::{
    active_level, begin_context, enclosing_regions, level, max_active_levels, nested_thread_count,
    number_and_count, query_library, set_max_active_levels,
};
use crate::foreign_library;
use crate::foreign_library::{Function, call};
use crate::team_state::BeginContext;
use crate::{pool, thread_context};

/// [`number_and_count`], for a program that may store data under the number.
fn query_number_and_count() -> Option<(i32, i32)> {
    let place = number_and_count()?;
    thread_context::mark_number_queried();
    Some(place)
}

/// The thread number and the number of threads in the innermost region. A region without ranks inside a rank
/// has a single thread.
fn innermost_region() -> Option<(i32, i32)> {
    let place = query_number_and_count()?;
    Some(if thread_context::current().is_serial_region {
        (0, 1)
    } else {
        place
    })
}

fn thread_number(function: Function) -> i32 {
    innermost_region().map_or_else(|| query_library(function, 0), |(number, _)| number)
}

fn thread_count(function: Function) -> i32 {
    innermost_region().map_or_else(|| query_library(function, 1), |(_, threads)| threads)
}

/// The maximum number of threads of a region begun here. A rank returns the number set for its nested
/// regions. Elsewhere, later work may get any worker's number, and a program may have allocated as many
/// elements as reported here. Nested loops and tasks may use all workers, whatever number was set.
fn max_threads(function: Function) -> i32 {
    let set = || i32::try_from(nested_thread_count()).unwrap_or(i32::MAX);
    match number_and_count() {
        Some(_) if !thread_context::current().member.is_null() => set(),
        Some(_) => set().max(pool::gr_workers()),
        None => query_library(function, 1).max(pool::gr_workers()),
    }
}

fn query_library_or_one(function: Function) -> i32 {
    query_library(function, 1)
}

fn in_parallel(function: Function) -> i32 {
    query_number_and_count().map_or_else(
        || query_library(function, 0),
        |_| i32::from(enclosing_regions().active > 0),
    )
}

fn is_final(function: Function) -> i32 {
    match thread_context::current().is_final {
        true => 1,
        false => query_library(function, 0),
    }
}

/// Sets the thread count of later regions; inside a region, of regions begun in the same task.
fn set_thread_count(function: Function, threads: i32) {
    if thread_context::depth() > 0 && number_and_count().is_some() {
        return thread_context::request_threads(u32::try_from(threads).unwrap_or(0));
    }
    if foreign_library::level() == 0 {
        pool::set_requested_workers(usize::try_from(threads).unwrap_or(0));
    }
    if let Some(f) = function.find() {
        call!(f, (i32), threads);
    }
}

/// Defines entries without arguments that return a number.
macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident: $answer:ident($function:ident);)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> i32 {
            $answer(Function::$function)
        }
    )*};
}

entries! {
    /// Thread number (`omp_get_thread_num`).
    __wrap_omp_get_thread_num: thread_number(ThreadNum);
    /// Number of threads of the innermost region.
    __wrap_omp_get_num_threads: thread_count(NumThreads);
    /// Maximum number of threads of a region.
    __wrap_omp_get_max_threads: max_threads(MaxThreads);
    /// Non-zero inside a region with several threads.
    __wrap_omp_in_parallel: in_parallel(InParallel);
    /// Number of enclosing regions.
    __wrap_omp_get_level: level(Level);
    /// Number of enclosing regions with several threads.
    __wrap_omp_get_active_level: active_level(ActiveLevel);
    /// Maximum number of nested regions with several threads.
    __wrap_omp_get_max_active_levels: max_active_levels(MostLevels);
    /// Non-zero in a final task.
    __wrap_omp_in_final: is_final(InFinal);
    /// Number of teams; teams belong to the OpenMP library.
    __wrap_omp_get_num_teams: query_library_or_one(NumTeams);
    /// Fortran interface.
    __wrap_omp_get_thread_num_: thread_number(ThreadNumF);
    /// Fortran interface.
    __wrap_omp_get_num_threads_: thread_count(NumThreadsF);
    /// Fortran interface.
    __wrap_omp_get_max_threads_: max_threads(MaxThreadsF);
    /// Fortran interface.
    __wrap_omp_in_parallel_: in_parallel(InParallelF);
    /// Fortran interface.
    __wrap_omp_get_level_: level(LevelF);
}

/// Non-zero in a final task; called by lowered code.
#[unsafe(no_mangle)]
pub extern "C" fn gr_in_final() -> i32 {
    is_final(Function::InFinal)
}

/// Number of threads of the enclosing region at a level.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_omp_get_team_size(level: i32) -> i32 {
    query_at_level(level, Function::TeamSize, 1, |(_, threads)| threads)
}

/// Thread number, at a level, of the calling thread or of its ancestor.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_omp_get_ancestor_thread_num(level: i32) -> i32 {
    query_at_level(level, Function::Ancestor, 0, |(number, _)| number)
}

/// Evaluates `own` for the enclosing region at `level`, following the chain of beginning threads.
fn query_at_level(level: i32, function: Function, alone: i32, own: fn((i32, i32)) -> i32) -> i32 {
    let mut here = BeginContext {
        place: query_number_and_count(),
        ..begin_context()
    };
    let mut at = match here.place {
        Some(_) => __wrap_omp_get_level(),
        None => 0,
    };
    while let Some(place) = here.place {
        if at == level {
            return own(place);
        }
        // SAFETY: a member lives while any thread's context refers to it, and a team as long as its ranks.
        let member = unsafe { here.member.as_ref() };
        here = member.map_or(NO_CONTEXT, |member| member.team().begin_context);
        at -= 1;
    }
    let otherwise = if level == 0 { alone } else { -1 };
    function
        .find()
        .map_or(otherwise, |f| call!(f, (i32) -> i32, level))
}

/// Context outside this library's work.
const NO_CONTEXT: BeginContext = BeginContext {
    place: None,
    member: std::ptr::null(),
    wanted: 0,
};

/// Sets the thread count of later regions.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_omp_set_num_threads(threads: i32) {
    set_thread_count(Function::SetNumThreads, threads);
}

/// Sets the maximum number of nested regions with several threads.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_omp_set_max_active_levels(levels: i32) {
    set_max_active_levels(Function::SetLevels, levels, levels);
}

/// Enables or disables several threads in nested regions.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_omp_set_nested(nested: i32) {
    let levels = if nested == 0 { 1 } else { i32::MAX };
    set_max_active_levels(Function::SetNested, nested, levels);
}

/// Fortran interface.
///
/// # Safety
/// `levels` is readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_omp_set_max_active_levels_(levels: *const i32) {
    // SAFETY: promised by the caller. The C function takes the value.
    __wrap_omp_set_max_active_levels(unsafe { *levels });
}

/// Fortran interface; a true logical is non-zero.
///
/// # Safety
/// `nested` is readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_omp_set_nested_(nested: *const i32) {
    // SAFETY: promised by the caller. The C function takes the value.
    __wrap_omp_set_nested(unsafe { *nested });
}

/// Fortran interface.
///
/// # Safety
/// `threads` is readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_omp_set_num_threads_(threads: *const i32) {
    // SAFETY: promised by the caller. The C function takes the value.
    set_thread_count(Function::SetNumThreads, unsafe { *threads });
}
