//! Teams: the same code on every worker at once, with barriers, as OpenMP's `parallel` means it.
//!
//! A team is for code that cannot be cut into loops and tasks. Its ranks wait for each other, so each
//! needs a thread of its own. A program that asks for a number of them may rely on it (`num_threads(4)`, and
//! the rank times a quarter of the work), so it gets them: workers, where the pool has them to spare, else
//! threads of the team's own. Inside of a region a team has one rank, as OpenMP gives nested regions one thread,
//! unless the program was told that more regions may be active.

use crate::schedule::{Kind, Set};
use crate::{Carried, answers, foreign, pool, strand, tsan, waiting};
use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Runs rank `rank` of `size`.
pub type TeamBody =
    unsafe extern "C" fn(member: *const Member, rank: i32, size: i32, context: *mut c_void);

/// Loops without a barrier between them that may be under way at once: ranks that are further ahead
/// wait.
const LOOPS: usize = 8;

/// A team that runs.
#[derive(Debug)]
pub struct Team {
    size: AtomicU32,
    /// The regions of ours around it.
    pub(crate) around: Around,
    /// The place that began it.
    pub(crate) begun: Begun,
    arrived: AtomicU32,
    generation: AtomicU32,
    /// How many single regions have found the rank that runs them.
    singles: AtomicU64,
    loops: [SharedLoop; LOOPS],
    /// How iterations come to ranks where a loop does not say.
    pub(crate) schedule: Set,
    /// What one rank gives to all.
    pub(crate) given: AtomicPtr<c_void>,
}

/// What stands around a place: so many regions of ours, so many of them with several threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around {
    pub(crate) levels: i32,
    pub(crate) active: i32,
    /// All that the threads of these regions are, if each of them began as many.
    pub(crate) threads: u32,
}

/// A place that begins a team: its number and of how many it was one where the work is ours, and the rank that it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) place: Option<(i32, i32)>,
    pub(crate) member: *const Member,
    /// What was set there for regions that begin there.
    pub(crate) wanted: u32,
}

// SAFETY: whoever begins a team waits for it to end, and its ranks read of the member what never changes.
unsafe impl Send for Begun {}
// SAFETY: as above.
unsafe impl Sync for Begun {}

/// A loop whose iterations the ranks fetch from one counter.
#[derive(Debug, Default)]
struct SharedLoop {
    /// The loop that has this place, counted from 1; 0 while nobody has come to it.
    number: AtomicU64,
    next: AtomicI64,
    /// Ranks that have come to its end.
    left: AtomicU32,
}

/// A rank: its team, and its way through the regions that the team shares.
#[derive(Debug)]
pub struct Member {
    pub(crate) team: *const Team,
    pub(crate) rank: u32,
    /// Whether there are workers that are not in the team.
    narrow: bool,
    singles: Cell<u64>,
    loops: Cell<u64>,
    /// How many parts of the last such loop this rank had in turn.
    turns: Cell<i64>,
    /// The loop that a foreign compiler's code has under way.
    pub(crate) dispatch: Cell<Dispatch>,
}

/// A loop whose parts are asked for by its own numbers.
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

    /// Whether there are workers that are not in the team.
    pub(crate) fn is_narrow(&self) -> bool {
        self.narrow
    }

    pub(crate) fn team(&self) -> &Team {
        // SAFETY: the team is there until all of its ranks have ended.
        unsafe { &*self.team }
    }

    /// Whether this rank is the one that runs the single region that it has come to.
    pub(crate) fn single(&self) -> bool {
        let number = self.singles.replace(self.singles.get() + 1);
        let singles = &self.team().singles;
        let claim =
            singles.compare_exchange(number, number + 1, Ordering::AcqRel, Ordering::Relaxed);
        claim.is_ok()
    }

    /// Begins a loop whose iterations are fetched.
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
            // The place is free when nobody has had it, or all ranks have left the loop that did; the
            // counter was put back by the last of them.
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
            waiting::pause(times);
        }
    }

    /// Fetches the next `chunk` of `trips` iterations, or with `guided` the next share of what is
    /// left, at least `chunk`: the first and one past the last; two times `trips` where none is left.
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

    /// As [`Member::loop_next`], where the program names a chunk; without (0), as the schedule says that is set.
    pub(crate) fn next_part(&self, trips: i64, chunk: i64, guided: bool) -> (i64, i64) {
        let set = self.team().schedule.get();
        match set.kind {
            _ if chunk != 0 => self.loop_next(trips, chunk, guided),
            Kind::Static => self.loop_turn(trips, set.chunk),
            Kind::Dynamic => self.loop_next(trips, set.chunk, false),
            Kind::Guided => self.loop_next(trips, set.chunk, true),
        }
    }

    /// The rank's next chunk where they go round, or without one (0) its only part.
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

/// So many iterations or a few more: at least one chunk, and whole ones.
pub(crate) fn whole(iterations: i64, chunk: i64) -> i64 {
    let chunk = chunk.max(1);
    let chunks = iterations / chunk + i64::from(iterations % chunk != 0);
    chunks.max(1).saturating_mul(chunk)
}

/// One team at a time: ranks of two could wait for each other's workers.
static BUSY: Mutex<()> = Mutex::new(());

impl Team {
    fn new(size: u32) -> Self {
        Team {
            size: AtomicU32::new(size),
            around: answers::around(),
            begun: answers::begun(),
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

    /// There are so many ranks, as each of them says before it comes to anything that they share.
    fn has(&self, ranks: u32) {
        self.size.store(ranks, Ordering::Relaxed);
    }

    /// Every rank comes here before any goes on; who waits does other work meanwhile.
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
            tsan::hidden(|| waiting::until(passed));
        }
        tsan::acquire(self.fence());
    }
}

/// Runs `body` once for every rank of a team of `wanted` ranks (0: as many as there are workers);
/// returns when all have ended.
///
/// # Safety
/// `body` may be called with `context` on several threads at once, and does not unwind.
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
        return strand::as_member(&member, || run(&member, 1));
    }
    let from_pool = strand::depth() == 0 && pool::can_gather();
    match from_pool.then(|| BUSY.try_lock().ok()).flatten() {
        Some(_others_wait) => on_workers(size, &run),
        None => on_threads(size, &run),
    }
}

/// How many ranks a team has that is to have `wanted` of them (0: as many as there are workers) and begins here.
#[unsafe(no_mangle)]
pub extern "C" fn gr_ranks(wanted: i32) -> i32 {
    i32::try_from(ranks(wanted)).unwrap_or(i32::MAX)
}

fn ranks(wanted: i32) -> u32 {
    let ours = strand::depth() > 0 || strand::is_one_for_all();
    let ranks = match (ours || foreign::has_threads(), wanted) {
        (true, _) if !answers::may_nest() => 1,
        (false, _) if answers::is_serial() => 1,
        (true, 0) => answers::wanted_inside(),
        (false, 0) => pool::gr_workers().unsigned_abs(),
        (_, wanted) => wanted.unsigned_abs(),
    };
    ranks.min(answers::room())
}

/// A team whose ranks are workers.
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

/// Runs one rank, as part of this library.
fn as_rank(team: &Team, member: &Member, size: u32, run: &(dyn Fn(&Member, u32) + Sync)) {
    strand::as_member(member, || {
        tsan::acquire(team.fence());
        tsan::shown(|| run(member, size));
        tsan::release(team.fence());
    });
}

/// A team whose ranks are the calling thread and threads that live as long as it.
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
                // Those that have begun wait for it: the program cannot go on.
                no_thread();
            }
        }
        rank(0);
    });
    tsan::acquire(team.fence());
}

/// A rank has no thread to run on: others of its team may wait for it, so that the program cannot go on.
pub(crate) fn no_thread() -> ! {
    fail(c"gradus: the system gives no thread for a rank of a region\n")
}

fn fail(text: &CStr) -> ! {
    // SAFETY: the text is there, and nothing unwinds through this library.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.count_bytes());
        libc::abort()
    }
}

/// Every rank of the team comes here before any goes on.
///
/// # Safety
/// `member` is the calling rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_barrier(member: *const Member) {
    // SAFETY: promised by the caller.
    unsafe { &*member }.team().wait();
}

/// Whether this rank is the one that runs the single region that it has come to.
///
/// # Safety
/// `member` is the calling rank; all ranks come to the same single regions in the same order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_single(member: *const Member) -> bool {
    // SAFETY: promised by the caller.
    unsafe { &*member }.single()
}

/// The part of rank `rank` of `size` of a loop of `trips` iterations: it begins with the one given, and ends
/// before `*end`. Rank r has iterations r·p to (r+1)·p, p = ⌈trips/size⌉: loops that an optimiser turned into
/// rank arithmetic rely on exactly this.
///
/// # Safety
/// `end` can be written.
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
/// As for [`gr_single`], for such loops.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_loop_begin(member: *const Member) {
    // SAFETY: promised by the caller.
    unsafe { &*member }.loop_begin();
}

/// Fetches iterations of the loop begun last: the next `chunk` of `trips`, or with `guided` the next
/// share of what is left, at least `chunk`; with 0 for a chunk, as the schedule says that is set
/// (`schedule(runtime)`). Gives the first; `*end` is one past the last. Nothing is
/// left where the first is `trips`.
///
/// # Safety
/// As for [`gr_loop_begin`]; `end` can be written.
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
                // SAFETY: the end is a variable.
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
