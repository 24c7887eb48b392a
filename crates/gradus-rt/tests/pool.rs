//! Guarantees of the pool, through its C interface, with as many workers as processors.

use gradus_rt::loops::parallel_for::gr_for;
use gradus_rt::loops::reduce::gr_reduce;
use gradus_rt::omp::critical::{Lock, gr_lock, gr_unlock};
use gradus_rt::pool::gr_workers;
use gradus_rt::pool::scope::Scope;
use gradus_rt::tasks::{gr_join, gr_spawn, gr_sync};
use gradus_rt::team::{gr_barrier, gr_loop_begin, gr_loop_next, gr_single, gr_team};
use gradus_rt::team_state::Member;
use gradus_rt::thread_context::{gr_final, gr_final_end, gr_in_region, gr_region, gr_region_end};
use std::ffi::c_void;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::{Duration, Instant};

fn pointer<T>(value: &T) -> *mut c_void {
    from_ref(value).cast_mut().cast()
}

/// The context of a C body.
unsafe fn behind<'a, T>(context: *mut c_void) -> &'a T {
    unsafe { &*context.cast::<T>() }
}

unsafe extern "C" fn count(lo: i64, hi: i64, context: *mut c_void) {
    let seen: &Vec<AtomicU32> = unsafe { behind(context) };
    for i in lo..hi {
        seen[i as usize].fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_loop_runs_every_iteration_once() {
    for (trips, grain) in [
        (0, 1),
        (1, 1),
        (7, 1),
        (1000, 0),
        (100_000, 1),
        (100_000, 99_999),
    ] {
        let seen: Vec<AtomicU32> = (0..trips).map(|_| AtomicU32::new(0)).collect();
        unsafe { gr_for(0, trips, grain, count, pointer(&seen)) };
        assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 1));
    }
}

unsafe extern "C" fn ranges(_: i64, _: i64, context: *mut c_void) {
    let seen: &AtomicI64 = unsafe { behind(context) };
    seen.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn final_task_runs_loops_serially() {
    let seen = AtomicI64::new(0);
    let before = gr_final(true);
    unsafe { gr_for(0, 1_000_000, 1, ranges, pointer(&seen)) };
    gr_final_end(before);
    assert_eq!(seen.load(Ordering::Relaxed), 1, "one range has all");
}

unsafe extern "C" fn remainders(lo: i64, _: i64, context: *mut c_void) {
    let seen: &AtomicI64 = unsafe { behind(context) };
    seen.fetch_or(lo % 8, Ordering::Relaxed);
}

#[test]
fn long_leaves_are_line_multiples() {
    for (trips, grain) in [(100_003, 1), (70_001, 6_669), (1_999_999, 12_345)] {
        let seen = AtomicI64::new(0);
        unsafe { gr_for(0, trips, grain, remainders, pointer(&seen)) };
        assert_eq!(seen.load(Ordering::Relaxed), 0, "{trips}, {grain}");
    }
}

unsafe extern "C" fn outer(lo: i64, hi: i64, context: *mut c_void) {
    for _ in lo..hi {
        unsafe { gr_for(0, 100, 1, count, context) };
    }
}

#[test]
fn loops_nest() {
    let seen: Vec<AtomicU32> = (0..100).map(|_| AtomicU32::new(0)).collect();
    unsafe { gr_for(0, 50, 1, outer, pointer(&seen)) };
    assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 50));
}

unsafe extern "C" fn loops_in_new_threads(lo: i64, hi: i64, context: *mut c_void) {
    let seen: &Vec<AtomicU32> = unsafe { behind(context) };
    for _ in lo..hi {
        std::thread::scope(|threads| {
            threads.spawn(|| unsafe { gr_for(0, 100, 1, count, pointer(seen)) });
        });
    }
}

/// All workers wait for program threads that submit work to the pool.
#[test]
fn external_loops_while_workers_block() {
    let seen: Vec<AtomicU32> = (0..100).map(|_| AtomicU32::new(0)).collect();
    unsafe { gr_for(0, 50, 1, loops_in_new_threads, pointer(&seen)) };
    assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 50));
}

unsafe extern "C" fn add(lo: i64, hi: i64, partial: *mut c_void, _: *mut c_void) {
    let partial = partial.cast::<f64>();
    for i in lo..hi {
        unsafe { *partial += 1.0 / (1.0 + i as f64) };
    }
}

unsafe extern "C" fn plus(into: *mut c_void, from: *const c_void, _: *mut c_void) {
    unsafe { *into.cast::<f64>() += *from.cast::<f64>() };
}

#[test]
fn sums_are_deterministic() {
    let sum = || {
        let (zero, mut result) = (0.0_f64, 10.0_f64);
        let (zero, out) = (pointer(&zero), (&raw mut result).cast());
        unsafe { gr_reduce(0, 1_000_000, 100, add, plus, zero, out, 8, null_mut()) };
        result
    };
    let serial: f64 = 10.0
        + (0..1_000_000)
            .map(|i| 1.0 / (1.0 + f64::from(i)))
            .sum::<f64>();
    let first = sum();
    assert!((first - serial).abs() < 1e-10 * serial);
    for _ in 0..50 {
        assert_eq!(sum().to_bits(), first.to_bits());
    }
}

/// Sums by remainder, longer than a cache line.
const SUMS: usize = 1000;

unsafe extern "C" fn add_each(lo: i64, hi: i64, partial: *mut c_void, _: *mut c_void) {
    let partial = unsafe { &mut *partial.cast::<[f64; SUMS]>() };
    for i in lo..hi {
        partial[i as usize % SUMS] += 1.0 / (1.0 + i as f64);
    }
}

unsafe extern "C" fn plus_each(into: *mut c_void, from: *const c_void, _: *mut c_void) {
    let (into, from) = unsafe {
        (
            &mut *into.cast::<[f64; SUMS]>(),
            &*from.cast::<[f64; SUMS]>(),
        )
    };
    into.iter_mut().zip(from).for_each(|(a, b)| *a += b);
}

#[test]
fn array_sums_are_deterministic() {
    let sums = || {
        let (zero, mut result) = ([0.0_f64; SUMS], [1.0_f64; SUMS]);
        let (zero, out) = (pointer(&zero), (&raw mut result).cast());
        let size = size_of_val(&result);
        unsafe {
            gr_reduce(
                0,
                200_000,
                10,
                add_each,
                plus_each,
                zero,
                out,
                size,
                null_mut(),
            )
        };
        result
    };
    let first = sums();
    for (place, sum) in first.iter().enumerate() {
        let terms = (place..200_000)
            .step_by(SUMS)
            .map(|i| 1.0 / (1.0 + i as f64));
        assert!((sum - 1.0 - terms.sum::<f64>()).abs() < 1e-12);
    }
    for _ in 0..20 {
        assert_eq!(sums().map(f64::to_bits), first.map(f64::to_bits));
    }
}

/// The first iteration waits for all others, at most ten seconds.
unsafe extern "C" fn block_first_iteration(lo: i64, hi: i64, _: *mut c_void, context: *mut c_void) {
    let [others, waited_for]: &[AtomicU32; 2] = unsafe { behind(context) };
    let until = Instant::now() + Duration::from_secs(10);
    if lo > 0 {
        others.fetch_add((hi - lo) as u32, Ordering::Relaxed);
        return;
    }
    while others.load(Ordering::Relaxed) < 63 && Instant::now() < until {
        std::thread::yield_now();
    }
    waited_for.store(others.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Other workers take a reduction's unstarted leaves, however long a worker is blocked.
#[test]
fn unstarted_leaves_are_stolen() {
    if gr_workers() < 2 {
        return;
    }
    let counts = [AtomicU32::new(0), AtomicU32::new(0)];
    let (zero, mut result) = (0.0_f64, 0.0_f64);
    let (zero, out) = (pointer(&zero), (&raw mut result).cast());
    unsafe {
        gr_reduce(
            0,
            64,
            1,
            block_first_iteration,
            plus,
            zero,
            out,
            8,
            pointer(&counts),
        )
    };
    assert_eq!(counts[1].load(Ordering::Relaxed), 63);
}

/// The first iterations take long, and half of the iterations contain a loop.
unsafe extern "C" fn uneven(lo: i64, hi: i64, context: *mut c_void) {
    let seen: &Vec<AtomicU32> = unsafe { behind(context) };
    for i in lo..hi {
        for _ in 0..(512 - i) * 20 {
            std::hint::spin_loop();
        }
        if i % 2 == 0 {
            let inner = AtomicU32::new(0);
            unsafe { gr_for(0, 64, 1, add_up, pointer(&inner)) };
            assert_eq!(inner.load(Ordering::Relaxed), 64);
        }
        seen[i as usize].fetch_add(1, Ordering::Relaxed);
    }
}

unsafe extern "C" fn add_up(lo: i64, hi: i64, context: *mut c_void) {
    let sum: &AtomicU32 = unsafe { behind(context) };
    sum.fetch_add((hi - lo) as u32, Ordering::Relaxed);
}

/// Workers steal leaves of each other's ranges, also while waiting for a nested loop.
#[test]
fn long_ranges_are_stolen() {
    for _ in 0..50 {
        let seen: Vec<AtomicU32> = (0..512).map(|_| AtomicU32::new(0)).collect();
        unsafe { gr_for(0, 512, 1, uneven, pointer(&seen)) };
        assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 1));
    }
}

/// The pauses are close to the spin time of workers: a lost wake-up would block the test forever.
#[test]
fn no_lost_wakeups() {
    let rounds = |first: u64| {
        for round in 0..400 {
            let seen: Vec<AtomicU32> = (0..64).map(|_| AtomicU32::new(0)).collect();
            unsafe { gr_for(0, 64, 1, count, pointer(&seen)) };
            assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 1));
            std::thread::sleep(Duration::from_micros((first + round * 7) % 230));
        }
    };
    std::thread::scope(|threads| {
        for first in [0, 60, 130] {
            threads.spawn(move || rounds(first));
        }
    });
}

struct Fib {
    n: u32,
    result: AtomicI64,
}

unsafe extern "C" fn fib(context: *mut c_void) {
    let this: &Fib = unsafe { behind(context) };
    if this.n < 2 {
        this.result.store(i64::from(this.n), Ordering::Relaxed);
        return;
    }
    let part = |n| Fib {
        n,
        result: AtomicI64::new(0),
    };
    let (a, b) = (part(this.n - 1), part(this.n - 2));
    unsafe { gr_join(fib, pointer(&a), fib, pointer(&b)) };
    let sum = a.result.load(Ordering::Relaxed) + b.result.load(Ordering::Relaxed);
    this.result.store(sum, Ordering::Relaxed);
}

#[test]
fn joins_nest() {
    let all = Fib {
        n: 20,
        result: AtomicI64::new(0),
    };
    unsafe { fib(pointer(&all)) };
    assert_eq!(all.result.load(Ordering::Relaxed), 6765);
}

#[repr(C)]
struct Leaf<'a> {
    number: i64,
    sum: &'a AtomicI64,
}

unsafe extern "C" fn leaf(context: *mut c_void) {
    let this: &Leaf = unsafe { behind(context) };
    this.sum.fetch_add(this.number, Ordering::Relaxed);
}

#[test]
fn sync_waits_and_contexts_are_copied() {
    let sum = AtomicI64::new(0);
    let scope = Scope::default();
    for round in 1..=3 {
        for number in 0..1000 {
            let context = Leaf { number, sum: &sum };
            unsafe { gr_spawn(&raw const scope, leaf, pointer(&context), size_of::<Leaf>()) };
        }
        unsafe { gr_sync(&raw const scope) };
        assert_eq!(sum.load(Ordering::Relaxed), round * 499_500);
    }
}

#[derive(Default)]
struct Phases {
    here: AtomicU32,
    singles: AtomicU32,
    early: AtomicU32,
    iterations: AtomicI64,
    lock: Lock,
    locked: AtomicU32,
}

unsafe extern "C" fn phases(member: *const Member, _: i32, size: i32, context: *mut c_void) {
    let this: &Phases = unsafe { behind(context) };
    for round in 1..=100 {
        this.here.fetch_add(1, Ordering::Relaxed);
        unsafe { gr_barrier(member) };
        if this.here.load(Ordering::Relaxed) < round * size.unsigned_abs() {
            this.early.fetch_add(1, Ordering::Relaxed);
        }
        if unsafe { gr_single(member) } {
            this.singles.fetch_add(1, Ordering::Relaxed);
        }
        unsafe { gr_loop_begin(member) };
        let mut end = 0;
        loop {
            let guided = round % 2 == 0;
            let first = unsafe { gr_loop_next(member, 37, 3, guided, &raw mut end) };
            if first == 37 {
                break;
            }
            this.iterations
                .fetch_add((first..end).sum(), Ordering::Relaxed);
        }
        unsafe { gr_lock(&raw const this.lock) };
        let inside = this.locked.load(Ordering::Relaxed);
        this.locked.store(inside + 1, Ordering::Relaxed);
        unsafe { gr_unlock(&raw const this.lock) };
    }
}

#[test]
fn team_constructs_synchronize() {
    let phases_seen = Phases::default();
    unsafe { gr_team(0, phases, pointer(&phases_seen)) };
    let ranks = phases_seen.here.load(Ordering::Relaxed) / 100;
    assert!(ranks >= 1);
    assert_eq!(phases_seen.early.load(Ordering::Relaxed), 0);
    assert_eq!(phases_seen.singles.load(Ordering::Relaxed), 100);
    assert_eq!(
        phases_seen.iterations.load(Ordering::Relaxed),
        100 * 36 * 37 / 2
    );
    assert_eq!(phases_seen.locked.load(Ordering::Relaxed), 100 * ranks);
}

/// The first rank shares its loops with other workers, whether or not each has started its own rank.
unsafe extern "C" fn first_rank_runs_loop(
    member: *const Member,
    rank: i32,
    _: i32,
    context: *mut c_void,
) {
    if rank == 0 {
        unsafe { gr_for(0, 50, 1, outer, context) };
    }
    unsafe { gr_barrier(member) };
}

/// A worker that runs a piece of another rank's loop does not start its own rank inside.
#[test]
fn late_ranks_do_not_deadlock() {
    for turn in 0..2_000 {
        let seen: Vec<AtomicU32> = (0..100).map(|_| AtomicU32::new(0)).collect();
        unsafe { gr_team(0, first_rank_runs_loop, pointer(&seen)) };
        assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 50));
        if turn % 4 == 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

unsafe extern "C" fn team_in_loop(lo: i64, hi: i64, context: *mut c_void) {
    for _ in lo..hi {
        unsafe { gr_team(0, phases, context) };
    }
}

#[test]
fn nested_team_has_one_rank() {
    let phases_seen = Phases::default();
    unsafe { gr_for(0, 4, 1, team_in_loop, pointer(&phases_seen)) };
    assert_eq!(phases_seen.here.load(Ordering::Relaxed), 400);
}

/// Threads that ran work, compared with the thread of the team.
struct Threads {
    team: std::thread::ThreadId,
    other_threads: AtomicU32,
}

unsafe extern "C" fn count_other_threads(lo: i64, hi: i64, context: *mut c_void) {
    let this: &Threads = unsafe { behind(context) };
    for _ in lo..hi {
        let stranger = std::thread::current().id() != this.team;
        this.other_threads
            .fetch_add(u32::from(stranger), Ordering::Relaxed);
        std::thread::yield_now();
    }
}

unsafe extern "C" fn alone(_: *const Member, _: i32, size: i32, context: *mut c_void) {
    assert_eq!(size, 1);
    unsafe { gr_for(0, 1000, 1, count_other_threads, context) };
}

/// A program that requests a single thread has allocated memory for a single thread.
#[test]
fn single_thread_team_runs_alone() {
    let threads = Threads {
        team: std::thread::current().id(),
        other_threads: AtomicU32::new(0),
    };
    unsafe { gr_team(1, alone, pointer(&threads)) };
    assert_eq!(threads.other_threads.load(Ordering::Relaxed), 0);
}

/// A forked process has no workers and waits for none. A team's ranks, as many as reported, are new threads.
/// An alarm ends a process that hangs.
#[cfg(unix)]
#[test]
fn forked_process_needs_no_worker() {
    let seen: Vec<AtomicU32> = (0..1000).map(|_| AtomicU32::new(0)).collect();
    unsafe { gr_for(0, 1000, 1, count, pointer(&seen)) };
    let phases_seen = Phases::default();
    let child = unsafe { libc::fork() };
    if child == 0 {
        unsafe {
            libc::alarm(60);
            gr_for(0, 1000, 1, count, pointer(&seen));
            gr_team(0, phases, pointer(&phases_seen));
            let all = seen.iter().all(|n| n.load(Ordering::Relaxed) == 2);
            let ranks = phases_seen.here.load(Ordering::Relaxed) / 100;
            let wanted = gr_workers().unsigned_abs();
            libc::_exit(i32::from(!all || ranks != wanted));
        }
    }
    let mut status = -1;
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    unsafe { gr_for(0, 1000, 1, count, pointer(&seen)) };
    assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 2));
}

unsafe extern "C" fn query_region(_: *const Member, _: i32, _: i32, context: *mut c_void) {
    let answer: &AtomicI64 = unsafe { behind(context) };
    answer.fetch_add(gr_in_region().into(), Ordering::Relaxed);
}

#[test]
fn in_region_query() {
    assert_eq!(gr_in_region(), 0);
    let outer = gr_region();
    assert_eq!(gr_in_region(), 1);
    let inner = gr_region();
    gr_region_end(inner);
    assert_eq!(gr_in_region(), 1);
    gr_region_end(outer);
    assert_eq!(gr_in_region(), 0);
    let answer = AtomicI64::new(0);
    unsafe { gr_team(1, query_region, pointer(&answer)) };
    assert_eq!(answer.load(Ordering::Relaxed), 2);
    assert_eq!(gr_in_region(), 0);
}

/// A rank may ask for iterations again after the end of a loop. Each rank must count once per loop, or a later
/// loop waits for the loop's slot forever.
#[test]
fn fetching_after_the_end_of_a_loop_gets_nothing() {
    unsafe extern "C" fn body(member: *const Member, _: i32, _: i32, context: *mut c_void) {
        let sum: &AtomicI64 = unsafe { behind(context) };
        for _ in 0..40 {
            unsafe { gr_loop_begin(member) };
            let (mut end, mut ends) = (0, 0);
            while ends < 3 {
                let first = unsafe { gr_loop_next(member, 10, 3, false, &raw mut end) };
                ends += i32::from(first == 10);
                sum.fetch_add((first..end).sum(), Ordering::Relaxed);
            }
        }
    }
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let sum = AtomicI64::new(0);
        unsafe { gr_team(2, body, pointer(&sum)) };
        done.send(sum.load(Ordering::Relaxed))
            .expect("the test waits");
    });
    let sum = wait.recv_timeout(Duration::from_secs(60));
    assert_eq!(sum, Ok(40 * 45), "a loop waits for its slot");
}
