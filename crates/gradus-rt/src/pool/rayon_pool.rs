//! The rayon pool, created on first use.
//!
//! If the main thread creates the pool, the main thread is worker 0, and works only inside calls of this
//! library. Any other thread of the program submits its work and waits ([`crate::pool::external_submit`]), or works alone if no
//! worker could fetch the work. A pool created by another thread has only workers of its own.
//!
//! A later request for a different number of threads creates a second pool of that size; the first pool's
//! workers sleep.
//!
//! A forked process has a single thread, regardless of earlier pools, and works alone.
//!
//! Rayon provides deques and stealing. Sleeping is managed in [`idle`]: every submission to a pool is
//! followed by a wake-up call, and every piece of work begins with [`idle::rise`].

use super::idle::{self, IdleWorkers};
use super::{STACK_BYTES, requested_workers};
use crate::pool::backoff;
use crate::pool::backoff::Progress;
use crate::pool::direct_handoff::Piece;
use crate::pool::external_submit;
use crate::{SendPtr, thread_context, tsan};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Properties of the first pool.
struct Settings {
    workers: usize,
    /// Worker 0 is the program's main thread.
    has_main: bool,
    idlers: &'static IdleWorkers,
}

/// The workers of a pool.
#[derive(Clone, Copy)]
pub(super) struct WorkerPool {
    pub(super) workers: usize,
    /// The pool, unless the global (first) pool.
    pool: Option<&'static ThreadPool>,
    pub(super) idlers: &'static IdleWorkers,
}

impl WorkerPool {
    /// Creates a further pool, which lives until program end; `None` if the system provides no threads.
    pub(super) fn new(workers: usize) -> Option<WorkerPool> {
        let idlers = IdleWorkers::new(workers, false);
        let pool = Box::leak(Box::new(builder(workers, idlers).build().ok()?));
        Some(WorkerPool {
            workers,
            pool: Some(pool),
            idlers,
        })
    }

    fn first() -> WorkerPool {
        let settings = settings();
        WorkerPool {
            workers: settings.workers,
            pool: None,
            idlers: settings.idlers,
        }
    }

    /// Submits a job for any of the workers.
    pub(super) fn spawn(self, job: impl FnOnce() + Send + 'static) {
        match self.pool {
            Some(pool) => pool.spawn(job),
            None => rayon_core::spawn(job),
        }
    }
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

#[cfg(target_os = "linux")]
fn is_main_thread() -> bool {
    // SAFETY: both calls only return numbers.
    unsafe { libc::getpid() == libc::gettid() }
}

#[cfg(not(target_os = "linux"))]
fn is_main_thread() -> bool {
    // SAFETY: the call only returns a number.
    unsafe { libc::pthread_main_np() == 1 }
}

/// The process was forked from a process with a pool, and has none of the pool's threads.
static IS_FORKED_CHILD: AtomicBool = AtomicBool::new(false);

extern "C" fn mark_forked_child() {
    IS_FORKED_CHILD.store(true, Ordering::Relaxed);
}

fn is_forked_child() -> bool {
    IS_FORKED_CHILD.load(Ordering::Relaxed)
}

thread_local! {
    /// Minimum number of workers for the next fork: the ranks of a team.
    static MIN_WORKERS: Cell<usize> = const { Cell::new(0) };
}

/// The pool for a fork outside all pools, if other than the first pool.
fn other_pool() -> Option<WorkerPool> {
    static OTHERS: Mutex<Option<HashMap<usize, WorkerPool>>> = Mutex::new(None);
    let wanted = requested_workers().max(MIN_WORKERS.get());
    if wanted == settings().workers || thread_context::depth() > 0 || is_forked_child() {
        return None;
    }
    let mut others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
    let others = others.get_or_insert_default();
    if let Some(other) = others.get(&wanted) {
        return Some(*other);
    }
    let other = WorkerPool::new(wanted)?;
    others.insert(wanted, other);
    Some(other)
}

fn builder(workers: usize, idlers: &'static IdleWorkers) -> ThreadPoolBuilder {
    ThreadPoolBuilder::new()
        .num_threads(workers)
        .stack_size(STACK_BYTES)
        .start_handler(|index| {
            tsan::ignore_begin();
            idlers.worker_loop(index)
        })
}

fn settings() -> &'static Settings {
    SETTINGS.get_or_init(|| {
        let workers = requested_workers();
        let has_main = is_main_thread();
        let idlers = IdleWorkers::new(workers, has_main);
        // SAFETY: the handler only stores a flag.
        unsafe { libc::pthread_atfork(None, None, Some(mark_forked_child)) };
        let mut pool = builder(workers, idlers);
        if has_main {
            pool = pool.use_current_thread();
        }
        // If threads are unavailable, rayon creates its own pool at the next fork.
        let made = pool.build_global().is_ok();
        Settings {
            workers: if made {
                workers
            } else {
                rayon_core::current_num_threads()
            },
            has_main: made && has_main,
            idlers,
        }
    })
}

pub(super) fn is_worker() -> bool {
    settings();
    rayon_core::current_thread_index().is_some()
}

pub(super) fn can_gather() -> bool {
    !is_forked_child() && (is_worker() || !settings().has_main)
}

pub(super) fn has_others() -> bool {
    !is_forked_child() && (!is_worker() || rayon_core::current_num_threads() > 1)
}

/// Returns whether the worker has stealable work; `None` outside the pool.
pub(super) fn pending() -> Option<bool> {
    rayon_core::current_thread_has_pending_tasks()
}

/// Returns whether a spawn would go to the calling thread's pool.
pub(super) fn is_spawn_local() -> bool {
    settings();
    other_pool().is_none()
}

pub(super) fn on_worker<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let other = other_pool();
    let deserted = is_forked_child() || settings().has_main && settings().workers == 1;
    if other.is_none() && (is_worker() || deserted || thread_context::keeps_tasks_local()) {
        return work();
    }
    let mut fence = 0_u8;
    let place = SendPtr((&raw mut fence).cast());
    tsan::release(place.get());
    let mut result = None;
    let handed_in = || {
        tsan::acquire(place.get());
        result = Some(work());
        tsan::release(place.get());
    };
    let crew = other.unwrap_or_else(WorkerPool::first);
    tsan::with_accesses_ignored(|| external_submit::submit_external(crew, handed_in));
    tsan::acquire(place.get());
    match result {
        Some(result) => result,
        None => unreachable!("submitted work runs before `submit_external` returns"),
    }
}

/// The workers that serve the calling worker's pool.
fn current_idle_workers() -> &'static IdleWorkers {
    idle::current_pool().unwrap_or_else(|| settings().idlers)
}

/// The number of concurrently active workers.
pub(super) fn max_active_workers() -> usize {
    current_idle_workers().max_active_workers()
}

pub(super) fn both(first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
    let piece = Piece::new(second);
    // SAFETY: the piece stays here until withdrawn or awaited below.
    if let Some(given) = unsafe { current_idle_workers().deliver(piece.head()) } {
        first();
        if !given.withdraw() {
            return piece.wait(current_idle_workers());
        }
        if let Some(second) = piece.into_work() {
            second();
        }
        return;
    }
    let Some(second) = piece.into_work() else {
        unreachable!("an unshared piece of work is still available");
    };
    let progress = Progress::default();
    rayon_core::join(
        || {
            current_idle_workers().wake_if_allowed();
            first();
            backoff::await_progress(&progress);
        },
        || {
            idle::rise();
            progress.begin();
            second();
            progress.end();
        },
    );
}

pub(super) fn spawn(task: impl FnOnce() + Send + 'static) {
    rayon_core::spawn(|| {
        idle::rise();
        task();
    });
    current_idle_workers().wake_if_allowed();
}

/// Runs a team on the workers. A worker may reach its rank while waiting inside another rank's work, and the
/// other rank would then wait for the new rank at the next barrier. Such a rank gets its own thread.
pub(super) fn gather(size: u32, work: &(dyn Fn(u32, u32) + Sync)) {
    let run = || {
        let workers = u32::try_from(rayon_core::current_num_threads()).unwrap_or(u32::MAX);
        let size = size.min(workers);
        std::thread::scope(|threads| {
            rayon_core::in_place_scope(|scope| {
                scope.spawn_broadcast(|_, worker| {
                    idle::rise();
                    let rank = u32::try_from(worker.index()).unwrap_or(u32::MAX);
                    if rank >= size {
                        return;
                    }
                    if thread_context::depth() == 0 {
                        return work(rank, size);
                    }
                    let thread = std::thread::Builder::new().stack_size(super::STACK_BYTES);
                    let rank = move || tsan::with_accesses_ignored(|| work(rank, size));
                    if thread.spawn_scoped(threads, rank).is_err() {
                        super::abort_without_thread();
                    }
                });
                current_idle_workers().wake_all();
            });
        });
    };
    MIN_WORKERS.set(size as usize);
    on_worker(run);
    MIN_WORKERS.set(0);
}
