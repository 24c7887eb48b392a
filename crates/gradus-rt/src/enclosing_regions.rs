//! Enclosing parallel regions of the calling thread: thread number, nesting level, and the limits on the
//! threads of a nested region.
//!
//! [`crate::team`] sizes a team by these limits; [`crate::omp::queries`] answers the program. Regions of the OpenMP
//! library count too.

use crate::foreign_library;
use crate::foreign_library::{Function, call};
use crate::team_state::{BeginContext, EnclosingRegions};
use crate::{pool, thread_context};
use std::sync::atomic::{AtomicI32, Ordering};

/// The thread number and the number of threads, for work of this library.
pub(crate) fn number_and_count() -> Option<(i32, i32)> {
    let here = thread_context::current();
    if !here.is_parallel || here.foreign_level != foreign_library::level() {
        return None;
    }
    // SAFETY: a member lives while any thread's context refers to it.
    match unsafe { here.member.as_ref() } {
        Some(member) => {
            let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
            Some((number(member.rank), number(member.team().size())))
        }
        None => Some((pool::gr_worker(), pool::gr_workers())),
    }
}

/// Returns the answer of the OpenMP library's `function`; `otherwise` without the library.
pub(crate) fn query_library(function: Function, otherwise: i32) -> i32 {
    function.find().map_or(otherwise, |f| call!(f, () -> i32,))
}

/// The enclosing regions of this library.
pub(crate) fn enclosing_regions() -> EnclosingRegions {
    let Some((_, threads)) = number_and_count() else {
        return EnclosingRegions::default();
    };
    // SAFETY: a member lives while any thread's context refers to it.
    let member = unsafe { thread_context::current().member.as_ref() };
    let further = member
        .map(|member| member.team().enclosing)
        .unwrap_or_default();
    EnclosingRegions {
        levels: further.levels + 1,
        active: further.active + i32::from(threads > 1),
        threads: further
            .threads
            .max(1)
            .saturating_mul(threads.unsigned_abs()),
    }
}

/// Upper bound on the threads of a region begun here, so that all nested regions together stay within the
/// thread limit.
pub(crate) fn remaining_threads() -> u32 {
    let limit = u32::try_from(pool::thread_limit()).unwrap_or(u32::MAX);
    match limit {
        u32::MAX => limit,
        _ => (limit / enclosing_regions().threads.max(1)).max(1),
    }
}

/// Subtracts the region that runs on OpenMP threads: the OpenMP library counts that region itself.
fn without_library_region(ours: i32) -> i32 {
    match pool::is_in_foreign_region() {
        true => (ours - 1).max(0),
        false => ours,
    }
}

/// Number of enclosing regions of both libraries.
pub(crate) fn level(function: Function) -> i32 {
    query_library(function, 0) + without_library_region(enclosing_regions().levels)
}

/// Number of enclosing regions of both libraries with several threads.
pub(crate) fn active_level(function: Function) -> i32 {
    query_library(function, 0) + without_library_region(enclosing_regions().active)
}

/// The program's last setting of the maximum number of active levels; negative if unset. The OpenMP library
/// stores the setting per thread, and workers are not threads of the OpenMP library.
static MAX_ACTIVE_LEVELS: AtomicI32 = AtomicI32::new(-1);

/// Maximum number of nested regions with several threads.
pub(crate) fn max_active_levels(function: Function) -> i32 {
    match MAX_ACTIVE_LEVELS.load(Ordering::Relaxed) {
        set if set >= 0 => set,
        _ => query_library(function, 1),
    }
}

/// Returns whether no region may have several threads.
pub(crate) fn is_serial() -> bool {
    MAX_ACTIVE_LEVELS.load(Ordering::Relaxed) == 0
}

/// Sets the maximum number of nested regions with several threads.
pub(crate) fn set_max_active_levels(function: Function, argument: i32, levels: i32) {
    if levels >= 0 {
        MAX_ACTIVE_LEVELS.store(levels, Ordering::Relaxed);
    }
    if let Some(f) = function.find() {
        call!(f, (i32), argument);
    }
}

/// Returns whether a nested region begun here may have several threads.
pub(crate) fn may_nest() -> bool {
    let folded = i32::from(thread_context::is_region_without_ranks());
    !foreign_library::is_one_of_teams()
        && active_level(Function::ActiveLevel) + folded < max_active_levels(Function::MostLevels)
}

/// The default thread count of a nested region begun here.
pub(crate) fn nested_thread_count() -> u32 {
    match thread_context::current().requested_threads {
        0 => u32::try_from(pool::requested_workers_at(
            level(Function::Level) + i32::from(thread_context::is_region_without_ranks()),
        ))
        .unwrap_or(1),
        set => set,
    }
}

/// The current context, for a team that begins here.
pub(crate) fn begin_context() -> BeginContext {
    BeginContext {
        place: number_and_count(),
        member: thread_context::current().member,
        wanted: match number_and_count() {
            Some(_) => thread_context::current().requested_threads,
            None => 0,
        },
    }
}
