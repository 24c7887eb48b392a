//! Thread context: fork depth, team rank and region state of the calling thread.
//!
//! A program may query its thread number anywhere, also in files compiled without knowledge of this library.
//! The answer must agree with the threads that run concurrently ([`crate::omp::queries`]). Every entry that
//! creates parallel work sets the context of the executing thread, and restores the context at the end.

use crate::foreign_library;
use crate::team_state::Member;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Context of a thread.
#[derive(Clone, Copy)]
pub(crate) struct ThreadContext {
    /// Number of enclosing forks.
    pub(crate) depth: u32,
    /// Several threads of this library may be at work. The thread number is then the worker's index, unless
    /// the thread is a rank.
    pub(crate) is_parallel: bool,
    /// A region of this library encloses the code: tasks may run on other threads.
    in_region: bool,
    /// The rank, directly in a team; else null.
    pub(crate) member: *const Member,
    /// Level of enclosing OpenMP-library regions at the start of the work.
    pub(crate) foreign_level: i32,
    /// A final task runs: its tasks and loops run in place.
    pub(crate) is_final: bool,
    /// Requested number of threads for regions begun here, set here or at the start of the enclosing team; 0
    /// if unset.
    pub(crate) requested_threads: u32,
    /// A region without ranks, nested in a region with ranks: the inner region has one thread.
    pub(crate) is_serial_region: bool,
}

const OUTSIDE_REGIONS: ThreadContext = ThreadContext {
    depth: 0,
    is_parallel: false,
    in_region: false,
    member: std::ptr::null(),
    foreign_level: 0,
    is_final: false,
    requested_threads: 0,
    is_serial_region: false,
};

thread_local! {
    static CONTEXT: Cell<ThreadContext> = const { Cell::new(OUTSIDE_REGIONS) };
}

/// Set once any work has queried its thread number: see [`must_not_run_other_work`].
static NUMBER_QUERIED: AtomicBool = AtomicBool::new(false);

/// The context of the calling thread.
pub(crate) fn current() -> ThreadContext {
    CONTEXT.get()
}

/// The current fork depth.
pub(crate) fn depth() -> u32 {
    CONTEXT.get().depth
}

/// Returns whether the innermost region has no ranks: a single thread runs the code of all threads.
pub(crate) fn is_region_without_ranks() -> bool {
    let here = CONTEXT.get();
    here.in_region && !here.is_parallel
}

/// Returns whether work created by the thread stays on the thread: in a final task, or in a rank of a team
/// with fewer ranks than workers.
pub(crate) fn keeps_tasks_local() -> bool {
    let here = CONTEXT.get();
    // SAFETY: a member lives while any thread's context refers to it.
    here.is_final || !here.member.is_null() && unsafe { &*here.member }.excludes_workers()
}

/// Begins a final task if `is_final`: until [`gr_final_end`], nested work runs in place, in program order.
/// Returns the argument for [`gr_final_end`].
#[unsafe(no_mangle)]
pub extern "C" fn gr_final(is_final: bool) -> bool {
    let before = CONTEXT.get();
    CONTEXT.set(ThreadContext {
        is_final: before.is_final || is_final,
        ..before
    });
    before.is_final
}

/// Ends the effect of [`gr_final`].
#[unsafe(no_mangle)]
pub extern "C" fn gr_final_end(before: bool) {
    CONTEXT.set(ThreadContext {
        is_final: before,
        ..CONTEXT.get()
    });
}

/// Runs `work` as a worker, one fork level deeper.
pub(crate) fn with_deeper_fork<R>(depth: u32, work: impl FnOnce() -> R) -> R {
    with_context(depth + 1, std::ptr::null(), 0, work)
}

/// Runs `work` as a rank of a team.
pub(crate) fn with_rank<R>(member: &Member, work: impl FnOnce() -> R) -> R {
    let wanted = member.team().begin_context.wanted;
    with_context(1.max(depth()), member, wanted, work)
}

fn with_context<R>(depth: u32, member: *const Member, wanted: u32, work: impl FnOnce() -> R) -> R {
    let before = CONTEXT.replace(ThreadContext {
        depth,
        is_parallel: true,
        in_region: true,
        member,
        foreign_level: foreign_library::level(),
        is_final: false,
        requested_threads: wanted,
        is_serial_region: false,
    });
    let result = work();
    CONTEXT.set(before);
    result
}

/// Requests `threads` threads for regions begun by the calling thread.
pub(crate) fn request_threads(threads: u32) {
    CONTEXT.set(ThreadContext {
        requested_threads: threads,
        ..CONTEXT.get()
    });
}

/// Sets the OpenMP-library level at which the thread's code continues.
pub(crate) fn set_foreign_level(foreign_level: i32) {
    let here = CONTEXT.get();
    CONTEXT.set(ThreadContext {
        foreign_level,
        ..here
    });
}

/// Returns whether the thread must not run other work while waiting for a loop of its own. Work that has
/// queried its thread number may store data under that number, and other work on the thread could query the
/// same number. A rank knows its number from the start.
pub(crate) fn must_not_run_other_work() -> bool {
    let here = CONTEXT.get();
    // SAFETY: a member lives while any thread's context refers to it.
    let is_rank = !here.member.is_null() && unsafe { &*here.member }.team().size() > 1;
    is_rank || here.is_parallel && NUMBER_QUERIED.load(Ordering::Relaxed)
}

/// Returns whether the thread runs its loops alone: because other work is excluded while waiting, or because
/// a final task requires program order.
pub(crate) fn runs_loops_alone() -> bool {
    must_not_run_other_work() || CONTEXT.get().is_final
}

/// Records that work has queried its thread number.
pub(crate) fn mark_number_queried() {
    NUMBER_QUERIED.store(true, Ordering::Relaxed);
}

/// Makes the thread a worker until [`gr_leave`], because the following code may create tasks. Returns the
/// argument for [`gr_leave`].
#[unsafe(no_mangle)]
pub extern "C" fn gr_enter() -> bool {
    let before = CONTEXT.get();
    let enters = !before.is_parallel;
    if enters {
        CONTEXT.set(ThreadContext {
            is_parallel: true,
            foreign_level: foreign_library::level(),
            ..before
        });
    }
    enters
}

/// Ends the effect of [`gr_enter`].
#[unsafe(no_mangle)]
pub extern "C" fn gr_leave(entered: bool) {
    if entered {
        CONTEXT.set(ThreadContext {
            is_final: CONTEXT.get().is_final,
            in_region: CONTEXT.get().in_region,
            ..OUTSIDE_REGIONS
        });
    }
}

/// Begins a region without ranks, in which only callees may create parallel work. Returns the argument for
/// [`gr_region_end`].
#[unsafe(no_mangle)]
pub extern "C" fn gr_region() -> i32 {
    let before = CONTEXT.get();
    CONTEXT.set(ThreadContext {
        in_region: true,
        is_serial_region: !before.member.is_null(),
        ..before
    });
    i32::from(before.in_region) | i32::from(before.is_serial_region) << 1
}

/// Ends the effect of [`gr_region`].
#[unsafe(no_mangle)]
pub extern "C" fn gr_region_end(before: i32) {
    CONTEXT.set(ThreadContext {
        in_region: before & 1 != 0,
        is_serial_region: before & 2 != 0,
        ..CONTEXT.get()
    });
}

/// Returns whether a region of this library or of the OpenMP library encloses the code. 0: no region; 2:
/// directly in a rank of a team, which runs its loops alone but shares its tasks; else 1. Outside all
/// regions, an OpenMP task runs on its creating thread, and a program may rely on the order.
#[unsafe(no_mangle)]
pub extern "C" fn gr_in_region() -> i32 {
    let here = CONTEXT.get();
    match (here.in_region, here.member.is_null()) {
        (true, false) => 2,
        (true, true) => 1,
        _ => foreign_library::has_threads().into(),
    }
}
