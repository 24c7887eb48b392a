//! Teams: the same code on several threads concurrently, with barriers, as in OpenMP's `parallel`.
//!
//! A team is for code that cannot be split into loops and tasks. Ranks wait for each other, and each rank
//! therefore needs its own thread. A program that requests a number of ranks may rely on the number
//! (`num_threads(4)`, and the rank times a quarter of the work). The team gets exactly that number: workers,
//! if the pool has enough, else new threads. A team inside a region has a single rank, as OpenMP gives
//! nested regions one thread, unless the program allowed more active levels.

use crate::omp::schedule::{Kind, Set};
use crate::omp::{foreign_library, queries};
use crate::{Carried, backoff, pool, thread_context, tsan};
use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Runs rank `rank` of `size`.
pub type TeamBody =
    unsafe extern "C" fn(member: *const Member, rank: i32, size: i32, context: *mut c_void);

/// Limit of loops in progress at once without a barrier in between; faster ranks wait.
const LOOPS: usize = 8;

/// A running team.
#[derive(Debug)]
pub struct Team {
    size: AtomicU32,
    /// The enclosing regions of this library.
    pub(crate) around: Around,
    /// Context of the thread that began the team.
    pub(crate) begun: Begun,
    arrived: AtomicU32,
    generation: AtomicU32,
    /// Number of single regions already claimed by a rank.
    singles: AtomicU64,
    loops: [SharedLoop; LOOPS],
    /// Schedule of loops without a schedule of their own (`schedule(runtime)`).
    pub(crate) schedule: Set,
    /// Address broadcast by a rank (`copyprivate`).
    pub(crate) given: AtomicPtr<c_void>,
}

/// Enclosing regions of this library: the number of levels, and of levels with several threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around {
    pub(crate) levels: i32,
    pub(crate) active: i32,
    /// Product of the thread counts of all enclosing regions.
    pub(crate) threads: u32,
}

/// Context in which a team begins: the thread number and number of threads if the work belongs to this
/// library, and the rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) place: Option<(i32, i32)>,
    pub(crate) member: *const Member,
    /// Thread count requested for regions begun in that context.
    pub(crate) wanted: u32,
}

// SAFETY: the beginning thread waits for the team's end, and ranks read only constant fields of the member.
unsafe impl Send for Begun {}
// SAFETY: as above.
unsafe impl Sync for Begun {}

/// A loop whose iterations the ranks fetch from a shared counter.
#[derive(Debug, Default)]
struct SharedLoop {
    /// Number of the loop in this slot, counted from 1; 0 if no rank has reached the slot.
    number: AtomicU64,
    next: AtomicI64,
    /// Number of ranks that have reached the loop's end.
    left: AtomicU32,
}

/// A rank of a team, and its progress through the team's shared constructs.
#[derive(Debug)]
pub struct Member {
    pub(crate) team: *const Team,
    pub(crate) rank: u32,
    /// Some workers are not in the team.
    narrow: bool,
    singles: Cell<u64>,
    loops: Cell<u64>,
    /// Number of round-robin chunks this rank has taken from the current loop.
    turns: Cell<i64>,
    /// The dispatch loop in progress, of code compiled for the OpenMP library.
    pub(crate) dispatch: Cell<Dispatch>,
}

/// Parameters of a dispatch loop: bounds in the program's index type, and chunks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dispatch {
    pub(crate) lower: i64,
    pub(crate) step: i64,
    pub(crate) trips: i64,
    pub(crate) chunk: i64,
    pub(crate) guided: bool,
}

impl Member {
    fn new(team: &Team, rank: u32, narrow: bool) -> Self {
        Member {
            team,
            rank,
            narrow,
            singles: Cell::new(0),
            loops: Cell::new(0),
            turns: Cell::new(0),
            dispatch: Cell::default(),
        }
    }

    /// Returns whether some workers are not in the team.
    pub(crate) fn is_narrow(&self) -> bool {
        self.narrow
    }

    pub(crate) fn team(&self) -> &Team {
        // SAFETY: the team lives until all of its ranks have ended.
        unsafe { &*self.team }
    }

    /// Returns whether this rank executes the current single region.
    pub(crate) fn single(&self) -> bool {
        let number = self.singles.replace(self.singles.get() + 1);
        let singles = &self.team().singles;
        let claim =
            singles.compare_exchange(number, number + 1, Ordering::AcqRel, Ordering::Relaxed);
        claim.is_ok()
    }

    /// Begins a loop with dynamically fetched iterations.
    pub(crate) fn loop_begin(&self) {
        let team = self.team();
        let number = self.loops.get() + 1;
        self.loops.set(number);
        self.turns.set(0);
        let place = &team.loops[number as usize % LOOPS];
        let before = number.saturating_sub(LOOPS as u64);
        let mut times = 0;
        loop {
            let now = place.number.load(Ordering::Acquire);
            if now == number {
                return;
            }
            // The slot is free if unused so far, or if all ranks have left its previous loop. The claiming
            // rank resets the counter.
            let unused = now == 0 && number <= LOOPS as u64;
            let left = || now == before && place.left.load(Ordering::Acquire) == team.size();
            if unused || left() {
                let claim = place.number.compare_exchange(
                    now,
                    u64::MAX,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                if claim.is_ok() {
                    place.left.store(0, Ordering::Relaxed);
                    place.next.store(0, Ordering::Relaxed);
                    place.number.store(number, Ordering::Release);
                    return;
                }
            }
            times += 1;
            backoff::pause(times);
        }
    }

    /// Fetches the next `chunk` of `trips` iterations; with `guided`, the next share of the remaining
    /// iterations, at least `chunk`. Returns the first iteration and the end; `(trips, trips)` if none is
    /// left.
    pub(crate) fn loop_next(&self, trips: i64, chunk: i64, guided: bool) -> (i64, i64) {
        let team = self.team();
        let place = &team.loops[self.loops.get() as usize % LOOPS];
        let chunk = chunk.max(1);
        let share = |first: i64| match guided {
            true => whole((trips - first) / (2 * i64::from(team.size())), chunk),
            false => chunk,
        };
        let mut first = place.next.load(Ordering::Relaxed);
        while first < trips {
            let after = first.saturating_add(share(first)).min(trips);
            match place.next.compare_exchange_weak(
                first,
                after,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return (first, after),
                Err(now) => first = now,
            }
        }
        place.left.fetch_add(1, Ordering::Release);
        (trips, trips)
    }

    /// [`Member::loop_next`] if the program names a chunk; for chunk 0, the runtime schedule applies.
    pub(crate) fn next_part(&self, trips: i64, chunk: i64, guided: bool) -> (i64, i64) {
        let set = self.team().schedule.get();
        match set.kind {
            _ if chunk != 0 => self.loop_next(trips, chunk, guided),
            Kind::Static => self.loop_turn(trips, set.chunk),
            Kind::Dynamic => self.loop_next(trips, set.chunk, false),
            Kind::Guided => self.loop_next(trips, set.chunk, true),
        }
    }

    /// The rank's next chunk in round-robin order; for chunk 0, the rank's only share.
    fn loop_turn(&self, trips: i64, chunk: i64) -> (i64, i64) {
        let team = self.team();
        let (rank, size) = (i64::from(self.rank), i64::from(team.size()));
        let turn = self.turns.replace(self.turns.get() + 1);
        let (number, chunk) = match chunk {
            0 if turn > 0 => (size, trips),
            0 => (rank, trips / size + i64::from(trips % size != 0)),
            _ => (turn.saturating_mul(size).saturating_add(rank), chunk),
        };
        let first = number.saturating_mul(chunk);
        if first < trips {
            return (first, first.saturating_add(chunk).min(trips));
        }
        let place = &team.loops[self.loops.get() as usize % LOOPS];
        place.left.fetch_add(1, Ordering::Release);
        (trips, trips)
    }
}

/// Rounds up to a multiple of `chunk`, at least one chunk.
pub(crate) fn whole(iterations: i64, chunk: i64) -> i64 {
    let chunk = chunk.max(1);
    let chunks = iterations / chunk + i64::from(iterations % chunk != 0);
    chunks.max(1).saturating_mul(chunk)
}

/// Held by the team on the workers: ranks of two teams could wait for each other's workers.
static BUSY: Mutex<()> = Mutex::new(());

impl Team {
    fn new(size: u32) -> Self {
        Team {
            size: AtomicU32::new(size),
            around: queries::around(),
            begun: queries::begun(),
            arrived: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            singles: AtomicU64::new(0),
            loops: Default::default(),
            schedule: Set::outside(),
            given: AtomicPtr::default(),
        }
    }

    fn fence(&self) -> *mut c_void {
        (&raw const self.generation).cast_mut().cast()
    }

    /// The number of ranks.
    pub(crate) fn size(&self) -> u32 {
        self.size.load(Ordering::Relaxed)
    }

    /// Sets the number of ranks. Each rank stores the number before reaching any shared construct.
    fn has(&self, ranks: u32) {
        self.size.store(ranks, Ordering::Relaxed);
    }

    /// Team barrier; a waiting rank runs other work.
    pub(crate) fn wait(&self) {
        if self.size() == 1 {
            return;
        }
        tsan::release(self.fence());
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.size() {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.fetch_add(1, Ordering::Release);
        } else {
            let passed = || self.generation.load(Ordering::Acquire) != generation;
            tsan::hidden(|| backoff::until(passed));
        }
        tsan::acquire(self.fence());
    }
}

/// Runs `body` once for every rank of a team of `wanted` ranks (0: the default number), and returns when all
/// ranks have ended.
///
/// # Safety
/// `body` may be called with `context` on several threads concurrently, and does not unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_team(wanted: i32, body: TeamBody, context: *mut c_void) {
    let context = Carried(context);
    // SAFETY: promised by the caller.
    let run = |member: &Member, size: u32| unsafe {
        let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        body(member, number(member.rank), number(size), context.get());
    };
    let size = ranks(wanted);
    if size == 1 {
        let team = Team::new(1);
        let member = Member::new(&team, 0, pool::has_others());
        return thread_context::as_member(&member, || run(&member, 1));
    }
    let from_pool = thread_context::depth() == 0 && pool::can_gather();
    match from_pool.then(|| BUSY.try_lock().ok()).flatten() {
        Some(_others_wait) => on_workers(size, &run),
        None => on_threads(size, &run),
    }
}

/// The number of ranks of a team that begins here and requests `wanted` ranks (0: the default number).
#[unsafe(no_mangle)]
pub extern "C" fn gr_ranks(wanted: i32) -> i32 {
    i32::try_from(ranks(wanted)).unwrap_or(i32::MAX)
}

fn ranks(wanted: i32) -> u32 {
    let ours = thread_context::depth() > 0 || thread_context::is_one_for_all();
    let ranks = match (ours || foreign_library::has_threads(), wanted) {
        (true, _) if !queries::may_nest() => 1,
        (false, _) if queries::is_serial() => 1,
        (true, 0) => queries::wanted_inside(),
        (false, 0) => pool::gr_workers().unsigned_abs(),
        (_, wanted) => wanted.unsigned_abs(),
    };
    ranks.min(queries::room())
}

/// Runs a team on the workers.
fn on_workers(wanted: u32, run: &(dyn Fn(&Member, u32) + Sync)) {
    let workers = pool::gr_workers().unsigned_abs();
    let team = Team::new(wanted);
    tsan::release(team.fence());
    tsan::hidden(|| {
        pool::gather(wanted, &|rank, size| {
            team.has(size);
            as_rank(&team, &Member::new(&team, rank, size < workers), size, run);
        });
    });
    tsan::acquire(team.fence());
}

/// Runs a rank, as part of this library.
fn as_rank(team: &Team, member: &Member, size: u32, run: &(dyn Fn(&Member, u32) + Sync)) {
    thread_context::as_member(member, || {
        tsan::acquire(team.fence());
        tsan::shown(|| run(member, size));
        tsan::release(team.fence());
    });
}

/// Runs a team on the calling thread and on threads that end with the team.
fn on_threads(size: u32, run: &(dyn Fn(&Member, u32) + Sync)) {
    let team = Team::new(size);
    tsan::release(team.fence());
    let rank = |rank: u32| {
        tsan::hidden(|| as_rank(&team, &Member::new(&team, rank, true), size, run));
    };
    std::thread::scope(|scope| {
        for number in 1..size {
            let thread = std::thread::Builder::new().stack_size(pool::STACK_BYTES);
            if thread.spawn_scoped(scope, move || rank(number)).is_err() {
                // The ranks already started wait for the missing rank: the program cannot continue.
                no_thread();
            }
        }
        rank(0);
    });
    tsan::acquire(team.fence());
}

/// Aborts: a rank has no thread, and other ranks of the team may wait for the rank.
pub(crate) fn no_thread() -> ! {
    fail(c"gradus: the system gives no thread for a rank of a region\n")
}

fn fail(text: &CStr) -> ! {
    // SAFETY: the text is valid, and nothing unwinds through this library.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.count_bytes());
        libc::abort()
    }
}

/// Team barrier: every rank arrives before any rank continues.
///
/// # Safety
/// `member` is the calling rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_barrier(member: *const Member) {
    // SAFETY: promised by the caller.
    unsafe { &*member }.team().wait();
}

/// Returns whether this rank executes the current single region.
///
/// # Safety
/// `member` is the calling rank; all ranks reach the same single regions in equal order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_single(member: *const Member) -> bool {
    // SAFETY: promised by the caller.
    unsafe { &*member }.single()
}

/// The static share of rank `rank` of `size` in a loop of `trips` iterations: starts at the returned
/// iteration, and ends before `*end`. Rank r gets iterations r·p to (r+1)·p, p = ⌈trips/size⌉. Loops that an
/// optimiser turned into rank arithmetic rely on this formula.
///
/// # Safety
/// `end` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_part(rank: i64, size: i64, trips: i64, end: *mut i64) -> i64 {
    let [rank, size, trips] = [rank, size, trips].map(|n| n as u64);
    let share = trips.div_ceil(size.max(1));
    let start = rank.saturating_mul(share).min(trips);
    // SAFETY: promised by the caller.
    unsafe { *end = start.saturating_add(share).min(trips) as i64 };
    start as i64
}

/// Begins a loop whose iterations are fetched by [`gr_loop_next`].
///
/// # Safety
/// The obligations of [`gr_single`] apply, for such loops.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_loop_begin(member: *const Member) {
    // SAFETY: promised by the caller.
    unsafe { &*member }.loop_begin();
}

/// Fetches iterations of the loop begun last: the next `chunk` of `trips`; with `guided`, the next share of
/// the remaining iterations, at least `chunk`. For chunk 0 the runtime schedule applies
/// (`schedule(runtime)`). Returns the first iteration and stores the end in `*end`. No iteration is left if
/// the result is `trips`.
///
/// # Safety
/// The obligations of [`gr_loop_begin`] apply; `end` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_loop_next(
    member: *const Member,
    trips: i64,
    chunk: i64,
    guided: bool,
    end: *mut i64,
) -> i64 {
    // SAFETY: promised by the caller.
    let (first, after) = unsafe { &*member }.next_part(trips, chunk, guided);
    // SAFETY: promised by the caller.
    unsafe { *end = after };
    first
}

#[cfg(test)]
mod tests {
    use super::{gr_part, whole};

    #[test]
    fn parts_follow_each_other() {
        for (trips, size) in [(0_i64, 3), (1, 4), (7, 2), (8, 4), (9, 4), (1 << 40, 7)] {
            let share = trips / size + i64::from(trips % size != 0);
            let mut done = 0;
            for rank in 0..size {
                let mut end = -1;
                // SAFETY: `end` is a local variable.
                let start = unsafe { gr_part(rank, size, trips, &raw mut end) };
                assert_eq!((start, end), (done, (done + share).min(trips)));
                done = end;
            }
            assert_eq!(done, trips);
        }
    }

    #[test]
    fn parts_are_whole_chunks() {
        for (iterations, chunk, wanted) in [(0, 0, 1), (0, 4, 4), (6, 4, 8), (8, 4, 8), (25, 1, 25)]
        {
            assert_eq!(whole(iterations, chunk), wanted);
        }
    }
}
