//! Thread context: fork depth, team rank and region state of the calling thread.
//!
//! A program may query its thread number anywhere, also in files compiled without knowledge of this library.
//! The answer must agree with the threads that run concurrently ([`crate::omp::queries`]). Every entry that
//! creates parallel work sets the context of the executing thread, and restores the context at the end.

use crate::team::Member;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Context of a thread.
#[derive(Clone, Copy)]
pub(crate) struct Strand {
    /// Number of enclosing forks.
    pub(crate) depth: u32,
    /// Several threads of this library may be at work. The thread number is then the worker's index, unless
    /// the thread is a rank.
    pub(crate) inside: bool,
    /// A region of this library encloses the code: tasks may run on other threads.
    region: bool,
    /// The rank, directly in a team; else null.
    pub(crate) member: *const Member,
    /// Level of enclosing OpenMP-library regions at the start of the work.
    pub(crate) foreign_level: i32,
    /// A final task runs: its tasks and loops run in place.
    pub(crate) is_final: bool,
    /// Requested number of threads for regions begun here, set here or at the start of the enclosing team; 0
    /// if unset.
    pub(crate) wanted: u32,
    /// A region without ranks, nested in a region with ranks: the inner region has one thread.
    pub(crate) alone: bool,
}

const OUTSIDE: Strand = Strand {
    depth: 0,
    inside: false,
    region: false,
    member: std::ptr::null(),
    foreign_level: 0,
    is_final: false,
    wanted: 0,
    alone: false,
};

thread_local! {
    static STRAND: Cell<Strand> = const { Cell::new(OUTSIDE) };
}

/// Set once any work has queried its thread number: see [`must_not_wait`].
static NUMBERED: AtomicBool = AtomicBool::new(false);

/// The context of the calling thread.
pub(crate) fn here() -> Strand {
    STRAND.get()
}

/// The current fork depth.
pub(crate) fn depth() -> u32 {
    STRAND.get().depth
}

/// Returns whether the innermost region has no ranks: a single thread runs the code of all threads.
pub(crate) fn is_one_for_all() -> bool {
    let here = STRAND.get();
    here.region && !here.inside
}

/// Returns whether work created by the thread stays on the thread: in a final task, or in a rank of a team
/// with fewer ranks than workers.
pub(crate) fn is_closed() -> bool {
    let here = STRAND.get();
    // SAFETY: a member lives while any thread's context refers to it.
    here.is_final || !here.member.is_null() && unsafe { &*here.member }.is_narrow()
}

/// Begins a final task if `is_final`: until [`gr_final_end`], nested work runs in place, in program order.
/// Returns the argument for [`gr_final_end`].
#[unsafe(no_mangle)]
pub extern "C" fn gr_final(is_final: bool) -> bool {
    let before = STRAND.get();
    STRAND.set(Strand {
        is_final: before.is_final || is_final,
        ..before
    });
    before.is_final
}

/// Ends the effect of [`gr_final`].
#[unsafe(no_mangle)]
pub extern "C" fn gr_final_end(before: bool) {
    STRAND.set(Strand {
        is_final: before,
        ..STRAND.get()
    });
}

/// Runs `work` as a worker, one fork level deeper.
pub(crate) fn deeper<R>(depth: u32, work: impl FnOnce() -> R) -> R {
    as_strand(depth + 1, std::ptr::null(), 0, work)
}

/// Runs `work` as a rank of a team.
pub(crate) fn as_member<R>(member: &Member, work: impl FnOnce() -> R) -> R {
    let wanted = member.team().begun.wanted;
    as_strand(1.max(depth()), member, wanted, work)
}

fn as_strand<R>(depth: u32, member: *const Member, wanted: u32, work: impl FnOnce() -> R) -> R {
    let before = STRAND.replace(Strand {
        depth,
        inside: true,
        region: true,
        member,
        foreign_level: crate::omp::foreign_library::level(),
        is_final: false,
        wanted,
        alone: false,
    });
    let result = work();
    STRAND.set(before);
    result
}

/// Requests `threads` threads for regions begun by the calling thread.
pub(crate) fn want(threads: u32) {
    STRAND.set(Strand {
        wanted: threads,
        ..STRAND.get()
    });
}

/// Sets the OpenMP-library level at which the thread's code continues.
pub(crate) fn at_level(foreign_level: i32) {
    let here = STRAND.get();
    STRAND.set(Strand {
        foreign_level,
        ..here
    });
}

/// Returns whether the thread must not run other work while waiting for a loop of its own. Work that has
/// queried its thread number may store data under that number, and other work on the thread could query the
/// same number. A rank knows its number from the start.
pub(crate) fn must_not_wait() -> bool {
    let here = STRAND.get();
    // SAFETY: a member lives while any thread's context refers to it.
    let is_rank = !here.member.is_null() && unsafe { &*here.member }.team().size() > 1;
    is_rank || here.inside && NUMBERED.load(Ordering::Relaxed)
}

/// Returns whether the thread runs its loops alone: because other work is excluded while waiting, or because
/// a final task requires program order.
pub(crate) fn loops_alone() -> bool {
    must_not_wait() || STRAND.get().is_final
}

/// Records that work has queried its thread number.
pub(crate) fn numbered() {
    NUMBERED.store(true, Ordering::Relaxed);
}

/// Makes the thread a worker until [`gr_leave`], because the following code may create tasks. Returns the
/// argument for [`gr_leave`].
#[unsafe(no_mangle)]
pub extern "C" fn gr_enter() -> bool {
    let before = STRAND.get();
    let enters = !before.inside;
    if enters {
        STRAND.set(Strand {
            inside: true,
            foreign_level: crate::omp::foreign_library::level(),
            ..before
        });
    }
    enters
}

/// Ends the effect of [`gr_enter`].
#[unsafe(no_mangle)]
pub extern "C" fn gr_leave(entered: bool) {
    if entered {
        STRAND.set(Strand {
            is_final: STRAND.get().is_final,
            region: STRAND.get().region,
            ..OUTSIDE
        });
    }
}

/// Begins a region without ranks, in which only callees may create parallel work. Returns the argument for
/// [`gr_region_end`].
#[unsafe(no_mangle)]
pub extern "C" fn gr_region() -> i32 {
    let before = STRAND.get();
    STRAND.set(Strand {
        region: true,
        alone: !before.member.is_null(),
        ..before
    });
    i32::from(before.region) | i32::from(before.alone) << 1
}

/// Ends the effect of [`gr_region`].
#[unsafe(no_mangle)]
pub extern "C" fn gr_region_end(before: i32) {
    STRAND.set(Strand {
        region: before & 1 != 0,
        alone: before & 2 != 0,
        ..STRAND.get()
    });
}

/// Returns whether a region of this library or of the OpenMP library encloses the code. 0: no region; 2:
/// directly in a rank of a team, which runs its loops alone but shares its tasks; else 1. Outside all
/// regions, an OpenMP task runs on its creating thread, and a program may rely on the order.
#[unsafe(no_mangle)]
pub extern "C" fn gr_in_region() -> i32 {
    let here = STRAND.get();
    match (here.region, here.member.is_null()) {
        (true, false) => 2,
        (true, true) => 1,
        _ => crate::omp::foreign_library::has_threads().into(),
    }
}
