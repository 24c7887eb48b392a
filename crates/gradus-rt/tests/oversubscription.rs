//! Oversubscription: more workers than processors.

use gradus_rt::loops::parallel_for::gr_for;
use gradus_rt::omp::queries::__wrap_omp_set_num_threads;
use gradus_rt::pool::{gr_worker, gr_workers};
use gradus_rt::team::{gr_barrier, gr_team};
use gradus_rt::team_state::Member;
use std::ffi::c_void;
use std::ptr::from_ref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Records the participating workers, a bit for each.
unsafe extern "C" fn record_worker(lo: i64, hi: i64, context: *mut c_void) {
    let seen = unsafe { &*context.cast::<AtomicU64>() };
    for _ in lo..hi {
        let since = Instant::now();
        while since.elapsed() < Duration::from_micros(150) {}
        seen.fetch_or(1 << gr_worker(), Ordering::Relaxed);
    }
}

unsafe extern "C" fn barrier_rounds(
    member: *const Member,
    rank: i32,
    _: i32,
    context: *mut c_void,
) {
    let seen = unsafe { &*context.cast::<AtomicU64>() };
    for _ in 0..20 {
        unsafe { gr_barrier(member) };
        seen.fetch_or(1 << rank, Ordering::Relaxed);
    }
}

/// A loop is shared by as many workers as there are processors; all workers join a team.
#[test]
fn at_most_one_worker_per_processor() {
    let processors = std::thread::available_parallelism().map_or(1, Into::into);
    let workers = (4 * processors).min(60);
    __wrap_omp_set_num_threads(i32::try_from(workers).expect("a few"));
    let workers = gr_workers().unsigned_abs() as usize;
    let taking_part = |seen: &AtomicU64| seen.load(Ordering::Relaxed).count_ones() as usize;
    let context = |seen: &AtomicU64| from_ref(seen).cast_mut().cast();
    for _ in 0..3 {
        let mut many = 0;
        for _ in 0..20 {
            let seen = AtomicU64::new(0);
            unsafe { gr_for(0, 64, 1, record_worker, context(&seen)) };
            many += usize::from(taking_part(&seen) > processors);
        }
        // Some workers are still awake after their start and after a team; a worker that falls asleep may be
        // woken again immediately.
        assert!(many < 5, "{many} of 20");
        let seen = AtomicU64::new(0);
        unsafe { gr_team(0, barrier_rounds, context(&seen)) };
        assert_eq!(taking_part(&seen), workers);
    }
}
