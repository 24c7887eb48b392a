//! The thread pool of the process: a common interface over two implementations.
//!
//! A program uses either a rayon pool ([`rayon_pool`]) or the threads of its OpenMP library ([`libomp`]). The
//! latter is chosen if a part of the program runs on the OpenMP library anyway: two pools would compete for
//! the processor cores. The linker makes the choice ([`uses_libomp`]).

pub(crate) mod backoff;
mod current_cpu;
mod direct_handoff;
mod external_submit;
mod idle;
mod libomp;
mod rayon_pool;
pub mod scope;

use crate::kernel_faults;
use crate::pool::scope::Scope;
use crate::thread_context;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

/// `GRADUS_FORCE_FORK` applies to forks nested less deeply.
const MAX_FORCED_DEPTH: u32 = 10;

/// Stack size of a worker. A block of a GPU kernel keeps per-thread and shared memory on the worker's stack.
/// Untouched pages cost nothing.
pub(crate) const STACK_BYTES: usize = 64 << 20;

/// Number of threads requested by the program; 0 if none was requested.
static REQUESTED_WORKERS: AtomicUsize = AtomicUsize::new(0);

fn env_number(name: &str) -> Option<usize> {
    env_number_at_level(name, 0)
}

/// Reads a number from an environment variable. OMP_NUM_THREADS may be a list with a number per nesting
/// level; the last entry applies to all deeper levels.
fn env_number_at_level(name: &str, level: usize) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    let number = text.split(',').take(level + 1).last()?.trim();
    number.parse().ok().filter(|n| *n > 0)
}

/// [`requested_workers`], for a region at nesting depth `level`.
pub(crate) fn requested_workers_at(level: i32) -> usize {
    let level = usize::try_from(level).unwrap_or(0);
    let is_set =
        REQUESTED_WORKERS.load(Ordering::Relaxed) > 0 || env_number("GRADUS_NUM_THREADS").is_some();
    let listed = (!is_set).then(|| env_number_at_level("OMP_NUM_THREADS", level));
    listed.flatten().unwrap_or_else(requested_workers)
}

/// Upper bound on the threads of the program (`OMP_THREAD_LIMIT`).
pub(crate) fn thread_limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| env_number("OMP_THREAD_LIMIT").unwrap_or(usize::MAX))
}

/// Number of workers for the next fork outside the pool: the program's last request, else the environment,
/// else the processors.
pub(crate) fn requested_workers() -> usize {
    static OUTSIDE: OnceLock<usize> = OnceLock::new();
    let wanted = match REQUESTED_WORKERS.load(Ordering::Relaxed) {
        0 => *OUTSIDE.get_or_init(|| {
            let asked = env_number("GRADUS_NUM_THREADS").or_else(|| env_number("OMP_NUM_THREADS"));
            asked.unwrap_or_else(processors)
        }),
        set => set,
    };
    wanted.min(thread_limit())
}

/// Number of processors available to the program.
fn processors() -> usize {
    static THERE: OnceLock<usize> = OnceLock::new();
    *THERE.get_or_init(|| std::thread::available_parallelism().map_or(1, Into::into))
}

/// Returns whether the workers may outnumber the processors; a spinning thread then occupies the processor
/// of another thread.
pub(crate) fn is_oversubscribed() -> bool {
    requested_workers() > processors()
}

/// Sets the thread count and stack size of the OpenMP library, before `main`. Both libraries must agree on
/// the number of threads: a program allocates an element for each reported thread, and reads the result of
/// every thread. If the OpenMP threads are the workers, the stacks must hold the data of a worker.
extern "C" fn export_omp_settings() {
    let set = |name: &CStr, value: String| {
        if let Ok(value) = CString::new(value) {
            // SAFETY: both are C strings, and no other thread exists yet to read the environment.
            unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
        }
    };
    if env_number("GRADUS_NUM_THREADS").is_some() || env_number("OMP_NUM_THREADS").is_none() {
        set(c"OMP_NUM_THREADS", requested_workers().to_string());
    }
    let sizes = ["OMP_STACKSIZE", "KMP_STACKSIZE", "GOMP_STACKSIZE"];
    if is_libomp_linked() && sizes.iter().all(|name| std::env::var_os(name).is_none()) {
        set(c"OMP_STACKSIZE", format!("{STACK_BYTES}B"));
    }
}

/// Run by the loader.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static AGREE: extern "C" fn() = export_omp_settings;

/// Sets the number of workers for later forks outside the pool.
pub(crate) fn set_requested_workers(workers: usize) {
    // GRADUS_NUM_THREADS overrides the program's requests.
    if workers > 0 && env_number("GRADUS_NUM_THREADS").is_none() {
        REQUESTED_WORKERS.store(workers, Ordering::Relaxed);
    }
}

std::arch::global_asm!(
    ".weak gr_on_libomp",
    ".pushsection .data.rel.ro.gr_body,\"aw\"",
    ".p2align 3",
    ".local gr_body_entry",
    "gr_body_entry:",
    ".8byte gr_on_libomp",
    ".popsection",
);

unsafe extern "C" {
    static gr_body_entry: usize;
}

/// Returns whether the link defines `gr_on_libomp`, and thereby selects the OpenMP threads.
fn is_libomp_linked() -> bool {
    // SAFETY: the linker fills the entry, and nothing writes to it.
    unsafe { gr_body_entry != 0 }
}

/// Returns whether the OpenMP threads are the workers.
fn uses_libomp() -> bool {
    is_libomp_linked() && libomp::is_available()
}

/// Returns whether the calling thread is a worker.
pub(crate) fn is_worker() -> bool {
    match uses_libomp() {
        true => libomp::pending().is_some(),
        false => rayon_pool::is_worker(),
    }
}

/// Returns whether the enclosing region is also a region of the OpenMP library, which counts the region.
pub(crate) fn is_in_foreign_region() -> bool {
    uses_libomp() && libomp::pending().is_some()
}

/// Returns whether the calling thread can start a team on all workers.
pub(crate) fn can_start_team() -> bool {
    uses_libomp() || rayon_pool::can_gather()
}

/// Returns whether other workers exist. A request for a single thread does not shrink an existing pool.
pub(crate) fn has_other_workers() -> bool {
    match uses_libomp() {
        true => libomp::size() > 1,
        false => rayon_pool::has_others(),
    }
}

/// Returns whether loops are split regardless of size.
pub(crate) fn always_forks() -> bool {
    gr_always_fork.load(Ordering::Relaxed) != 0
        && is_worker()
        && !thread_context::keeps_tasks_local()
}

/// Returns whether stealable work should be created: the worker's own deque is empty, and other workers
/// exist. False for a thread outside the pool, which has no deque. Also false for a final task, and for a
/// rank of a team that excludes some workers, because other threads must not run tasks of either. Under
/// `GRADUS_FORCE_FORK`, true for every worker with fewer than [`MAX_FORCED_DEPTH`] enclosing forks.
pub(crate) fn needs_stealable_work() -> bool {
    if thread_context::keeps_tasks_local() {
        return false;
    }
    let pending = match uses_libomp() {
        true => libomp::pending(),
        false => rayon_pool::pending(),
    };
    pending.is_some_and(|pending| {
        !pending && has_other_workers()
            || always_forks() && thread_context::depth() < MAX_FORCED_DEPTH
    })
}

/// Runs `work` on a worker: on the calling thread if the thread is a worker, or if no other thread could or
/// may run `work`.
pub(crate) fn on_worker<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    kernel_faults::without_recovery(|| match uses_libomp() {
        true if thread_context::keeps_tasks_local() => work(),
        true => libomp::on_worker(work),
        false => rayon_pool::on_worker(work),
    })
}

/// Runs both closures, `second` possibly on another worker. Called by a worker.
pub(crate) fn join(first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
    match uses_libomp() {
        true => libomp::both(first, second),
        false => rayon_pool::both(first, second),
    }
}

/// Creates a task of `scope` for any worker. Called if [`gr_hungry`] holds.
pub(crate) fn spawn(scope: *const Scope, task: impl FnOnce() + Send + 'static) {
    match uses_libomp() {
        true => libomp::spawn(scope, task),
        false => rayon_pool::spawn(task),
    }
}

/// Records that the tasks of `scope` have ended, and that the scope's owner continues on the calling thread.
pub(crate) fn end_scope(scope: *const Scope) {
    if is_libomp_linked() {
        libomp::synced(scope);
    }
}

/// Runs a task of the pool; returns whether there was a task.
pub(crate) fn run_one_task() -> bool {
    match uses_libomp() {
        true => libomp::run_one_task(),
        false => matches!(rayon_core::yield_now(), Some(rayon_core::Yield::Executed)),
    }
}

/// Runs `work` on `size` workers concurrently, with the rank and the number of ranks. A pool of sufficient
/// size is created if required. Fewer ranks run if the system provides no more threads.
pub(crate) fn run_team(size: u32, work: &(dyn Fn(u32, u32) + Sync)) {
    match uses_libomp() {
        true => libomp::gather(size, work),
        false => rayon_pool::gather(size, work),
    }
}

/// Aborts: a rank has no thread, and other ranks of the team may wait for the rank.
pub(crate) fn abort_without_thread() -> ! {
    abort_with(c"gradus: cannot create a thread for a parallel region\n")
}

/// Prints a text and aborts.
pub(crate) fn abort_with(text: &CStr) -> ! {
    // SAFETY: the text is valid, and nothing unwinds through this library.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.count_bytes());
        libc::abort()
    }
}

fn to_i32(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Number of workers: of the current pool, or of the next fork outside a pool.
#[unsafe(no_mangle)]
pub extern "C" fn gr_workers() -> i32 {
    to_i32(match thread_context::depth() {
        0 => requested_workers(),
        _ if uses_libomp() => libomp::size(),
        _ => rayon_core::current_num_threads(),
    })
}

/// Number of concurrently active workers of the current pool, at most the number of processors.
pub(crate) fn max_active_workers() -> usize {
    match uses_libomp() {
        true => libomp::size(),
        false => rayon_pool::max_active_workers(),
    }
}

/// Index of the current worker, from 0; 0 outside the pool.
#[unsafe(no_mangle)]
pub extern "C" fn gr_worker() -> i32 {
    match uses_libomp() {
        true => libomp::rank(),
        false => rayon_core::current_thread_index().map_or(0, to_i32),
    }
}

/// Number of requested extra tasks, beyond a single stealable task: see [`request_extra_tasks`].
static EXTRA_TASKS: AtomicU32 = AtomicU32::new(0);
/// Extra tasks requested at once, per worker.
const EXTRA_TASKS_PER_WORKER: u32 = 8;

/// Requests extra tasks, when a worker has found no work until its spin time ended. Mostly a single
/// stealable task suffices, because the next task is created soon after a theft. Exception: a single worker
/// creates long tasks and runs a task itself between two creations, which leaves the other workers idle. The
/// creator then creates a reserve of tasks. The number of extra tasks, also in recursions, is bounded by the
/// number of workers that go to sleep.
fn request_extra_tasks(workers: usize) {
    let wishes = u32::try_from(workers)
        .unwrap_or(1)
        .saturating_mul(EXTRA_TASKS_PER_WORKER);
    if EXTRA_TASKS.load(Ordering::Relaxed) < wishes {
        EXTRA_TASKS.store(wishes, Ordering::Relaxed);
    }
}

/// Requests tasks on behalf of a thread that has waited long without finding work.
pub(crate) fn request_tasks() {
    if !uses_libomp() {
        request_extra_tasks(rayon_pool::max_active_workers());
    }
}

/// Consumes a requested task, if any is left.
fn take_extra_task() -> bool {
    let one_less = |wishes: u32| wishes.checked_sub(1);
    EXTRA_TASKS
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
        .is_ok()
}

/// Returns whether a spawn should create a task instead of running in place. Recursions call this in every
/// task of the upper levels. The frequent cases, a non-empty deque and a single worker, return first.
#[unsafe(no_mangle)]
pub extern "C" fn gr_hungry() -> bool {
    let may_be = match rayon_pool::pending() {
        Some(pending) => {
            (!pending || EXTRA_TASKS.load(Ordering::Relaxed) > 0)
                && rayon_core::current_num_threads() > 1
                || gr_always_fork.load(Ordering::Relaxed) != 0
        }
        None => true,
    };
    may_be && should_spawn_slow()
}

/// Returns whether other threads can steal from the calling worker.
fn can_be_stolen_from() -> bool {
    rayon_pool::is_worker() && has_other_workers() && !thread_context::keeps_tasks_local()
}

/// [`gr_hungry`], the slow path.
#[cold]
fn should_spawn_slow() -> bool {
    match uses_libomp() {
        // A spawn outside all regions begins a region.
        true => {
            needs_stealable_work()
                || libomp::pending().is_none() && !thread_context::keeps_tasks_local()
        }
        false => {
            rayon_pool::is_spawn_local()
                && (needs_stealable_work() || can_be_stolen_from() && take_extra_task())
        }
    }
}

/// Number of awake workers without work, now or a moment ago. Lowered code reads the counter: with idle
/// workers, smaller loops are worth a fork.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static gr_awake: AtomicU32 = AtomicU32::new(0);

/// Non-zero if every loop forks regardless of size. Lowered code reads the flag before the size test. Set
/// before `main`.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static gr_always_fork: AtomicU8 = AtomicU8::new(0);

/// [`gr_always_fork`], for loops that call unknown callees. With OpenMP threads as workers, a region of the
/// OpenMP library in such a callee must be nested, as in a forked loop, and not create threads in every
/// iteration.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static gr_always_fork_calls: AtomicU8 = AtomicU8::new(0);

extern "C" fn read_force() {
    // SAFETY: a C string; nothing modifies the environment this early.
    let value = unsafe { libc::getenv(c"GRADUS_FORCE_FORK".as_ptr()) };
    // SAFETY: `getenv` returns null or a C string.
    if !value.is_null() && unsafe { CStr::from_ptr(value) } == c"1" {
        gr_always_fork.store(1, Ordering::Relaxed);
        gr_always_fork_calls.store(1, Ordering::Relaxed);
    }
    if is_libomp_linked() {
        gr_always_fork_calls.store(1, Ordering::Relaxed);
    }
}

#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static READ_FORCE: extern "C" fn() = read_force;
