//! Teams: the same code on several threads concurrently, with barriers, as in OpenMP's `parallel`.
//!
//! A team is for code that cannot be split into loops and tasks. Ranks wait for each other, and each rank
//! therefore needs its own thread. A program that requests a number of ranks may rely on the number
//! (`num_threads(4)`, and the rank times a quarter of the work). The team gets exactly that number: workers,
//! if the pool has enough, else new threads. A team inside a region has a single rank, as OpenMP gives
//! nested regions one thread, unless the program allowed more active levels.

use crate::foreign_library;
use crate::pool::backoff;
use crate::runtime_schedule::{AtomicSchedule, Kind};
use crate::team_state::{MAX_LOOPS_IN_PROGRESS, Member, Team};
use crate::{SendPtr, enclosing_regions, pool, thread_context, tsan};
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Runs rank `rank` of `size`.
pub type TeamBody =
    unsafe extern "C" fn(member: *const Member, rank: i32, size: i32, context: *mut c_void);

impl Member {
    /// Returns whether this rank executes the current single region.
    pub(crate) fn claim_single(&self) -> bool {
        let number = self.singles.replace(self.singles.get() + 1);
        let singles = &self.team().claimed_singles;
        let claim =
            singles.compare_exchange(number, number + 1, Ordering::AcqRel, Ordering::Relaxed);
        claim.is_ok()
    }

    /// Begins a loop with dynamically fetched iterations.
    pub(crate) fn begin_shared_loop(&self) {
        let team = self.team();
        let number = self.loops.get() + 1;
        self.loops.set(number);
        self.chunks_taken.set(0);
        let place = &team.loops[number as usize % MAX_LOOPS_IN_PROGRESS];
        let before = number.saturating_sub(MAX_LOOPS_IN_PROGRESS as u64);
        let mut times = 0;
        loop {
            let now = place.number.load(Ordering::Acquire);
            if now == number {
                return;
            }
            // The slot is free if unused so far, or if all ranks have left its previous loop. The claiming
            // rank resets the counter.
            let unused = now == 0 && number <= MAX_LOOPS_IN_PROGRESS as u64;
            let left = || now == before && place.ranks_done.load(Ordering::Acquire) == team.size();
            if unused || left() {
                let claim = place.number.compare_exchange(
                    now,
                    u64::MAX,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                if claim.is_ok() {
                    place.ranks_done.store(0, Ordering::Relaxed);
                    place.next.store(0, Ordering::Relaxed);
                    place.number.store(number, Ordering::Release);
                    return;
                }
            }
            times += 1;
            backoff::backoff(times);
        }
    }

    /// Fetches the next `chunk` of `trips` iterations; with `guided`, the next share of the remaining
    /// iterations, at least `chunk`. Returns the first iteration and the end; `(trips, trips)` if none is
    /// left.
    pub(crate) fn fetch_chunk(&self, trips: i64, chunk: i64, guided: bool) -> (i64, i64) {
        if self.has_ended_loop() {
            return (trips, trips);
        }
        let team = self.team();
        let place = &team.loops[self.loops.get() as usize % MAX_LOOPS_IN_PROGRESS];
        let chunk = chunk.max(1);
        let share = |first: i64| match guided {
            true => round_up_to_chunk((trips - first) / (2 * i64::from(team.size())), chunk),
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
        self.end_loop();
        (trips, trips)
    }

    /// Returns whether this rank has reached the end of the loop begun last.
    fn has_ended_loop(&self) -> bool {
        self.ended_loop.get() == self.loops.get()
    }

    /// Counts this rank as done with the loop begun last.
    fn end_loop(&self) {
        let number = self.loops.get();
        if self.ended_loop.replace(number) != number {
            let place = &self.team().loops[number as usize % MAX_LOOPS_IN_PROGRESS];
            place.ranks_done.fetch_add(1, Ordering::Release);
        }
    }

    /// [`Member::fetch_chunk`] if the program names a chunk; for chunk 0, the runtime schedule applies.
    pub(crate) fn fetch_scheduled_chunk(&self, trips: i64, chunk: i64, guided: bool) -> (i64, i64) {
        let set = self.team().schedule.get();
        match set.kind {
            _ if chunk != 0 => self.fetch_chunk(trips, chunk, guided),
            Kind::Static => self.next_static_chunk(trips, set.chunk),
            Kind::Dynamic => self.fetch_chunk(trips, set.chunk, false),
            Kind::Guided => self.fetch_chunk(trips, set.chunk, true),
        }
    }

    /// The rank's next chunk in round-robin order; for chunk 0, the rank's only share.
    fn next_static_chunk(&self, trips: i64, chunk: i64) -> (i64, i64) {
        let team = self.team();
        let (rank, size) = (i64::from(self.rank), i64::from(team.size()));
        let turn = self.chunks_taken.replace(self.chunks_taken.get() + 1);
        let (number, chunk) = match chunk {
            0 if turn > 0 => (size, trips),
            0 => (rank, trips / size + i64::from(trips % size != 0)),
            _ => (turn.saturating_mul(size).saturating_add(rank), chunk),
        };
        let first = number.saturating_mul(chunk);
        if first < trips {
            return (first, first.saturating_add(chunk).min(trips));
        }
        self.end_loop();
        (trips, trips)
    }
}

/// Rounds up to a multiple of `chunk`, at least one chunk.
pub(crate) fn round_up_to_chunk(iterations: i64, chunk: i64) -> i64 {
    let chunk = chunk.max(1);
    let chunks = iterations / chunk + i64::from(iterations % chunk != 0);
    chunks.max(1).saturating_mul(chunk)
}

/// Held by the team on the workers: ranks of two teams could wait for each other's workers.
static POOL_TEAM: Mutex<()> = Mutex::new(());

impl Team {
    fn new(size: u32) -> Self {
        Team {
            size: AtomicU32::new(size),
            enclosing: enclosing_regions::enclosing_regions(),
            begin_context: enclosing_regions::begin_context(),
            arrived: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            claimed_singles: AtomicU64::new(0),
            loops: Default::default(),
            schedule: AtomicSchedule::outside(),
            broadcast: AtomicPtr::default(),
        }
    }

    fn fence(&self) -> *mut c_void {
        (&raw const self.generation).cast_mut().cast()
    }

    /// Team barrier; a waiting rank runs other work.
    pub(crate) fn barrier(&self) {
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
            tsan::with_accesses_ignored(|| backoff::work_until(passed));
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
    let context = SendPtr(context);
    // SAFETY: promised by the caller.
    let run = |member: &Member, size: u32| unsafe {
        let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        body(member, number(member.rank), number(size), context.get());
    };
    let size = rank_count(wanted);
    if size == 1 {
        let team = Team::new(1);
        let member = Member::new(&team, 0, pool::has_other_workers());
        return thread_context::with_rank(&member, || run(&member, 1));
    }
    let from_pool = thread_context::depth() == 0 && pool::can_start_team();
    match from_pool.then(|| POOL_TEAM.try_lock().ok()).flatten() {
        Some(_others_wait) => run_on_workers(size, &run),
        None => run_on_threads(size, &run),
    }
}

/// The number of ranks of a team that begins here and requests `wanted` ranks (0: the default number).
#[unsafe(no_mangle)]
pub extern "C" fn gr_ranks(wanted: i32) -> i32 {
    i32::try_from(rank_count(wanted)).unwrap_or(i32::MAX)
}

fn rank_count(wanted: i32) -> u32 {
    let ours = thread_context::depth() > 0 || thread_context::is_region_without_ranks();
    let ranks = match (ours || foreign_library::has_threads(), wanted) {
        (true, _) if !enclosing_regions::may_nest() => 1,
        (false, _) if enclosing_regions::is_serial() => 1,
        (true, 0) => enclosing_regions::nested_thread_count(),
        (false, 0) => pool::gr_workers().unsigned_abs(),
        (_, wanted) => wanted.unsigned_abs(),
    };
    ranks.min(enclosing_regions::remaining_threads())
}

/// Runs a team on the workers.
fn run_on_workers(wanted: u32, run: &(dyn Fn(&Member, u32) + Sync)) {
    let workers = pool::gr_workers().unsigned_abs();
    let team = Team::new(wanted);
    tsan::release(team.fence());
    tsan::with_accesses_ignored(|| {
        pool::run_team(wanted, &|rank, size| {
            team.set_size(size);
            run_rank(&team, &Member::new(&team, rank, size < workers), size, run);
        });
    });
    tsan::acquire(team.fence());
}

/// Runs a rank, as part of this library.
fn run_rank(team: &Team, member: &Member, size: u32, run: &(dyn Fn(&Member, u32) + Sync)) {
    thread_context::with_rank(member, || {
        tsan::acquire(team.fence());
        tsan::with_accesses_checked(|| run(member, size));
        tsan::release(team.fence());
    });
}

/// Runs a team on the calling thread and on threads that end with the team.
fn run_on_threads(size: u32, run: &(dyn Fn(&Member, u32) + Sync)) {
    let team = Team::new(size);
    tsan::release(team.fence());
    let rank = |rank: u32| {
        tsan::with_accesses_ignored(|| run_rank(&team, &Member::new(&team, rank, true), size, run));
    };
    std::thread::scope(|scope| {
        for number in 1..size {
            let thread = std::thread::Builder::new().stack_size(pool::STACK_BYTES);
            if thread.spawn_scoped(scope, move || rank(number)).is_err() {
                // The ranks already started wait for the missing rank: the program cannot continue.
                pool::abort_without_thread();
            }
        }
        rank(0);
    });
    tsan::acquire(team.fence());
}

/// Team barrier: every rank arrives before any rank continues.
///
/// # Safety
/// `member` is the calling rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_barrier(member: *const Member) {
    // SAFETY: promised by the caller.
    unsafe { &*member }.team().barrier();
}

/// Returns whether this rank executes the current single region.
///
/// # Safety
/// `member` is the calling rank; all ranks reach the same single regions in equal order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_single(member: *const Member) -> bool {
    // SAFETY: promised by the caller.
    unsafe { &*member }.claim_single()
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
    unsafe { &*member }.begin_shared_loop();
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
    let (first, after) = unsafe { &*member }.fetch_scheduled_chunk(trips, chunk, guided);
    // SAFETY: promised by the caller.
    unsafe { *end = after };
    first
}

#[cfg(test)]
mod tests {
    use super::{gr_part, round_up_to_chunk};

    #[test]
    fn static_shares_are_contiguous() {
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
    fn rounds_up_to_whole_chunks() {
        for (iterations, chunk, wanted) in [(0, 0, 1), (0, 4, 4), (6, 4, 8), (8, 4, 8), (25, 1, 25)]
        {
            assert_eq!(round_up_to_chunk(iterations, chunk), wanted);
        }
    }
}
