//! Where a thread stands: how deep in forks, and as which of how many threads.
//!
//! A program may ask for its thread's number anywhere, also in files that know nothing of us; what it
//! gets must fit what really runs at once ([`crate::answers`]). Every entry of the library that makes
//! work for several threads says here who runs it, and takes it back at its end.

use crate::team::Member;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// A thread's place.
#[derive(Clone, Copy)]
pub(crate) struct Strand {
    /// Forks around it.
    pub(crate) depth: u32,
    /// Whether several threads of ours may be at work around it: the number of its worker is that of
    /// its thread, unless it is a rank.
    pub(crate) inside: bool,
    /// Whether a region of ours runs this: its tasks may be others' work.
    region: bool,
    /// The rank, directly in a team.
    pub(crate) member: *const Member,
    /// Regions of another run-time library around it when its work began.
    pub(crate) foreign_level: i32,
    /// Whether it runs a final task: what that makes runs where it stands.
    pub(crate) is_final: bool,
    /// How many threads the regions that begin here are to have, as set here or where the team around began; 0
    /// where nothing was set.
    pub(crate) wanted: u32,
    /// Whether this is a region of ours without ranks in one that has them: it has one thread.
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

/// Whether work of ours was ever told its thread's number: see [`must_not_wait`].
static NUMBERED: AtomicBool = AtomicBool::new(false);

/// This thread's place.
pub(crate) fn here() -> Strand {
    STRAND.get()
}

/// The present depth of forks.
pub(crate) fn depth() -> u32 {
    STRAND.get().depth
}

/// Whether this is a region of ours without ranks, directly: the code of all its threads, run by one.
pub(crate) fn is_one_for_all() -> bool {
    let here = STRAND.get();
    here.region && !here.inside
}

/// Whether what this thread makes stays with it: it runs a final task, or is a rank of a team with fewer
/// ranks than there are workers.
pub(crate) fn is_closed() -> bool {
    let here = STRAND.get();
    // SAFETY: a member lives as long as it is somebody's place.
    here.is_final || !here.member.is_null() && unsafe { &*here.member }.is_narrow()
}

/// A final task begins, if `is_final`: until [`gr_final_end`] what it makes runs where it stands, in its
/// order. Gives what that is to be called with.
#[unsafe(no_mangle)]
pub extern "C" fn gr_final(is_final: bool) -> bool {
    let before = STRAND.get();
    STRAND.set(Strand {
        is_final: before.is_final || is_final,
        ..before
    });
    before.is_final
}

/// Ends what [`gr_final`] began.
#[unsafe(no_mangle)]
pub extern "C" fn gr_final_end(before: bool) {
    STRAND.set(Strand {
        is_final: before,
        ..STRAND.get()
    });
}

/// Runs `work` as a worker, one level of forks deeper.
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
        foreign_level: crate::foreign::level(),
        is_final: false,
        wanted,
        alone: false,
    });
    let result = work();
    STRAND.set(before);
    result
}

/// Regions that begin here are to have so many threads.
pub(crate) fn want(threads: u32) {
    STRAND.set(Strand {
        wanted: threads,
        ..STRAND.get()
    });
}

/// The code of this thread goes on at another level of the other library's regions.
pub(crate) fn at_level(foreign_level: i32) {
    let here = STRAND.get();
    STRAND.set(Strand {
        foreign_level,
        ..here
    });
}

/// Work that was told its thread's number may keep something of its own under that number: while it
/// waits for a loop of its own, no other work that could ask for the same number may run on its thread.
/// A rank knows its number from the start.
pub(crate) fn must_not_wait() -> bool {
    let here = STRAND.get();
    // SAFETY: a member lives as long as it is somebody's place.
    let is_rank = !here.member.is_null() && unsafe { &*here.member }.team().size() > 1;
    is_rank || here.inside && NUMBERED.load(Ordering::Relaxed)
}

/// Whether the loops of this thread are its own: it must not wait for them, or runs a final task, in whose order they
/// are.
pub(crate) fn loops_alone() -> bool {
    must_not_wait() || STRAND.get().is_final
}

/// Work of ours has been told its thread's number.
pub(crate) fn numbered() {
    NUMBERED.store(true, Ordering::Relaxed);
}

/// What follows may make tasks: until [`gr_leave`] this thread is one of the workers. Gives what that
/// is to be called with.
#[unsafe(no_mangle)]
pub extern "C" fn gr_enter() -> bool {
    let before = STRAND.get();
    let enters = !before.inside;
    if enters {
        STRAND.set(Strand {
            inside: true,
            foreign_level: crate::foreign::level(),
            ..before
        });
    }
    enters
}

/// Ends what [`gr_enter`] began.
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

/// A region begins of which there are no ranks, and no work that several threads do but in what it calls. Gives what
/// [`gr_region_end`] is to be called with.
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

/// Ends what [`gr_region`] began.
#[unsafe(no_mangle)]
pub extern "C" fn gr_region_end(before: i32) {
    STRAND.set(Strand {
        region: before & 1 != 0,
        alone: before & 2 != 0,
        ..STRAND.get()
    });
}

/// Whether a region runs this, of ours or of the other library: 0 where none does, 2 directly in a rank of a team,
/// whose loops are its own but not its tasks, else 1. Outside of all, tasks of OpenMP are work of the thread that makes
/// them, and a program may rely on their order.
#[unsafe(no_mangle)]
pub extern "C" fn gr_in_region() -> i32 {
    let here = STRAND.get();
    match (here.region, here.member.is_null()) {
        (true, false) => 2,
        (true, true) => 1,
        _ => crate::foreign::has_threads().into(),
    }
}
