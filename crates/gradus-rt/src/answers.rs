//! Questions about threads that a program asks of OpenMP's library, answered where the work is ours.
//!
//! On a worker a thread's number is the worker's and there are as many threads as workers; a rank of a
//! team has its rank. Two pieces of work that run at once never get the same number. Everywhere else
//! the other library answers, or what holds for one thread. How many threads there may be is the same
//! for both ([`pool`] sees to it): a program makes room for each of them, and reads what each left.

use crate::foreign::{self, Function, call};
use crate::team::{Around, Begun};
use crate::{pool, strand};
use std::sync::atomic::{AtomicI32, Ordering};

/// The number of this thread and how many there are, where the work is ours.
fn place() -> Option<(i32, i32)> {
    let here = strand::here();
    if !here.inside || here.foreign_level != foreign::level() {
        return None;
    }
    // SAFETY: a member lives as long as it is somebody's place.
    match unsafe { here.member.as_ref() } {
        Some(member) => {
            let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
            Some((number(member.rank), number(member.team().size())))
        }
        None => Some((pool::gr_worker(), pool::gr_workers())),
    }
}

/// [`place`], for a program that may keep something under the number.
fn standing() -> Option<(i32, i32)> {
    let place = place()?;
    strand::numbered();
    Some(place)
}

/// The number of this thread and how many there are in the region around it. A region without ranks in a rank of
/// another is that rank's alone.
fn innermost() -> Option<(i32, i32)> {
    let place = standing()?;
    Some(if strand::here().alone { (0, 1) } else { place })
}

fn asked(function: Function, otherwise: i32) -> i32 {
    function.find().map_or(otherwise, |f| call!(f, () -> i32,))
}

fn thread_number(function: Function) -> i32 {
    innermost().map_or_else(|| asked(function, 0), |(number, _)| number)
}

fn threads(function: Function) -> i32 {
    innermost().map_or_else(|| asked(function, 1), |(_, threads)| threads)
}

/// Of a rank, what was set for regions that begin there. Elsewhere what runs next may be told any worker's number,
/// and a program may have made room for as many threads as it is told here: loops inside of loops and tasks may have
/// all workers, whatever was set there.
fn most_threads(function: Function) -> i32 {
    let set = || i32::try_from(wanted_inside()).unwrap_or(i32::MAX);
    match place() {
        Some(_) if !strand::here().member.is_null() => set(),
        Some(_) => set().max(pool::gr_workers()),
        None => asked(function, 1).max(pool::gr_workers()),
    }
}

fn one_or_more(function: Function) -> i32 {
    asked(function, 1)
}

fn is_parallel(function: Function) -> i32 {
    standing().map_or_else(|| asked(function, 0), |_| i32::from(around().active > 0))
}

/// The regions of ours around this place.
pub(crate) fn around() -> Around {
    let Some((_, threads)) = place() else {
        return Around::default();
    };
    // SAFETY: a member lives as long as it is somebody's place.
    let member = unsafe { strand::here().member.as_ref() };
    let further = member
        .map(|member| member.team().around)
        .unwrap_or_default();
    Around {
        levels: further.levels + 1,
        active: further.active + i32::from(threads > 1),
        threads: further
            .threads
            .max(1)
            .saturating_mul(threads.unsigned_abs()),
    }
}

/// The number of threads that a region may have here, so that all together are no more than the program may have.
pub(crate) fn room() -> u32 {
    let limit = u32::try_from(pool::limit()).unwrap_or(u32::MAX);
    match limit {
        u32::MAX => limit,
        _ => (limit / around().threads.max(1)).max(1),
    }
}

/// Of our regions the one whose threads are the other library's is counted by that.
fn counted(ours: i32) -> i32 {
    match pool::is_in_foreign_region() {
        true => (ours - 1).max(0),
        false => ours,
    }
}

fn level(function: Function) -> i32 {
    asked(function, 0) + counted(around().levels)
}

fn active_level(function: Function) -> i32 {
    asked(function, 0) + counted(around().active)
}

/// What the program set last; negative where it did not. The other library keeps one number for each thread that is
/// not its own, and ours are not.
static LEVELS: AtomicI32 = AtomicI32::new(-1);

fn most_levels(function: Function) -> i32 {
    match LEVELS.load(Ordering::Relaxed) {
        set if set >= 0 => set,
        _ => asked(function, 1),
    }
}

/// Whether no region has several threads.
pub(crate) fn is_serial() -> bool {
    LEVELS.load(Ordering::Relaxed) == 0
}

/// Sets how many regions around each other may have several threads.
fn set_levels(function: Function, argument: i32, levels: i32) {
    if levels >= 0 {
        LEVELS.store(levels, Ordering::Relaxed);
    }
    if let Some(f) = function.find() {
        call!(f, (i32), argument);
    }
}

fn is_final(function: Function) -> i32 {
    match strand::here().is_final {
        true => 1,
        false => asked(function, 0),
    }
}

/// Sets how many threads later regions have: in a region, those that begin in the same task of it.
fn set(function: Function, threads: i32) {
    if strand::depth() > 0 && place().is_some() {
        return strand::want(u32::try_from(threads).unwrap_or(0));
    }
    if foreign::level() == 0 {
        pool::set_wanted(usize::try_from(threads).unwrap_or(0));
    }
    if let Some(f) = function.find() {
        call!(f, (i32), threads);
    }
}

/// Entries that take nothing and give a number.
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
    /// The number of this thread.
    __wrap_omp_get_thread_num: thread_number(ThreadNum);
    /// The number of threads at work together.
    __wrap_omp_get_num_threads: threads(NumThreads);
    /// How many threads a region may have.
    __wrap_omp_get_max_threads: most_threads(MaxThreads);
    /// Whether several threads are at work.
    __wrap_omp_in_parallel: is_parallel(InParallel);
    /// The number of regions around this.
    __wrap_omp_get_level: level(Level);
    /// The number of regions with several threads around this.
    __wrap_omp_get_active_level: active_level(ActiveLevel);
    /// How many regions around each other may have several threads.
    __wrap_omp_get_max_active_levels: most_levels(MostLevels);
    /// Whether what runs is a final task.
    __wrap_omp_in_final: is_final(InFinal);
    /// How many teams there are, which are the other library's.
    __wrap_omp_get_num_teams: one_or_more(NumTeams);
    /// As asked by Fortran.
    __wrap_omp_get_thread_num_: thread_number(ThreadNumF);
    /// As asked by Fortran.
    __wrap_omp_get_num_threads_: threads(NumThreadsF);
    /// As asked by Fortran.
    __wrap_omp_get_max_threads_: most_threads(MaxThreadsF);
    /// As asked by Fortran.
    __wrap_omp_in_parallel_: is_parallel(InParallelF);
    /// As asked by Fortran.
    __wrap_omp_get_level_: level(LevelF);
}

/// Whether what runs is a final task, asked by code that we made.
#[unsafe(no_mangle)]
pub extern "C" fn gr_in_final() -> i32 {
    is_final(Function::InFinal)
}

/// Whether a region inside of those around this may have several threads.
pub(crate) fn may_nest() -> bool {
    let folded = i32::from(strand::is_one_for_all());
    !foreign::is_one_of_teams()
        && active_level(Function::ActiveLevel) + folded < most_levels(Function::MostLevels)
}

/// The number of threads of a region inside of those around this that does not say it itself.
pub(crate) fn wanted_inside() -> u32 {
    match strand::here().wanted {
        0 => u32::try_from(pool::wanted_at(
            __wrap_omp_get_level() + i32::from(strand::is_one_for_all()),
        ))
        .unwrap_or(1),
        set => set,
    }
}

/// The number of threads of the region around this that has this level.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_omp_get_team_size(level: i32) -> i32 {
    of_level(level, Function::TeamSize, 1, |(_, threads)| threads)
}

/// The number that this thread or the one that began its region has at this level.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_omp_get_ancestor_thread_num(level: i32) -> i32 {
    of_level(level, Function::Ancestor, 0, |(number, _)| number)
}

/// What holds of this place, or of that which began the region around it, and so on, at a level.
fn of_level(level: i32, function: Function, alone: i32, own: fn((i32, i32)) -> i32) -> i32 {
    let mut here = Begun {
        place: standing(),
        ..begun()
    };
    let mut at = match here.place {
        Some(_) => __wrap_omp_get_level(),
        None => 0,
    };
    while let Some(place) = here.place {
        if at == level {
            return own(place);
        }
        // SAFETY: a member lives as long as it is somebody's place, and a team as long as its ranks.
        let member = unsafe { here.member.as_ref() };
        here = member.map_or(NOWHERE, |member| member.team().begun);
        at -= 1;
    }
    let otherwise = if level == 0 { alone } else { -1 };
    function
        .find()
        .map_or(otherwise, |f| call!(f, (i32) -> i32, level))
}

/// No place of ours.
const NOWHERE: Begun = Begun {
    place: None,
    member: std::ptr::null(),
    wanted: 0,
};

/// This place, for a team that begins here.
pub(crate) fn begun() -> Begun {
    Begun {
        place: place(),
        member: strand::here().member,
        wanted: match place() {
            Some(_) => strand::here().wanted,
            None => 0,
        },
    }
}

/// Sets how many threads later regions have.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_omp_set_num_threads(threads: i32) {
    set(Function::SetNumThreads, threads);
}

/// Sets how many regions around each other may have several threads.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_omp_set_max_active_levels(levels: i32) {
    set_levels(Function::SetLevels, levels, levels);
}

/// Lets all regions around each other have several threads, or one only.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap_omp_set_nested(nested: i32) {
    let levels = if nested == 0 { 1 } else { i32::MAX };
    set_levels(Function::SetNested, nested, levels);
}

/// As asked by Fortran.
///
/// # Safety
/// `levels` can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_omp_set_max_active_levels_(levels: *const i32) {
    // SAFETY: promised by the caller. The C function takes a number.
    __wrap_omp_set_max_active_levels(unsafe { *levels });
}

/// As asked by Fortran, whose truth values are not zero.
///
/// # Safety
/// `nested` can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_omp_set_nested_(nested: *const i32) {
    // SAFETY: promised by the caller. The C function takes a number.
    __wrap_omp_set_nested(unsafe { *nested });
}

/// As asked by Fortran.
///
/// # Safety
/// `threads` can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_omp_set_num_threads_(threads: *const i32) {
    // SAFETY: promised by the caller. The C function takes a number.
    set(Function::SetNumThreads, unsafe { *threads });
}
