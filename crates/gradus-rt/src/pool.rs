//! The pool, made at its first use.
//!
//! Where the main thread makes it, that thread is worker 0, and comes to work only inside of our calls.
//! A further thread of the program is a guest: its work is handed in and it waits, or it works alone
//! where nobody would come to fetch it. A pool that another thread makes has workers of its own only.
//!
//! A program that asks for another number of threads later gets a pool of that size beside the first,
//! whose workers then sleep.

use crate::{Carried, strand, tsan};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// What the environment asks for.
struct Settings {
    workers: usize,
    /// Whether worker 0 is the program's main thread.
    has_main: bool,
    force_fork: bool,
}

/// Below this depth of nested forks `GRADUS_FORCE_FORK` no longer forces.
const FORCED_DEPTH: u32 = 10;

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// The number of threads that the program itself asked for; 0 where it did not.
static WANTED: AtomicUsize = AtomicUsize::new(0);

fn number(name: &str) -> Option<usize> {
    // OMP_NUM_THREADS may be a list, one number for each level of nesting.
    let text = std::env::var(name).ok()?;
    let first = text.split(',').next()?.trim();
    first.parse().ok().filter(|n| *n > 0)
}

#[cfg(target_os = "linux")]
fn is_main_thread() -> bool {
    // SAFETY: both only give numbers.
    unsafe { libc::getpid() == libc::gettid() }
}

#[cfg(not(target_os = "linux"))]
fn is_main_thread() -> bool {
    // SAFETY: it only gives a number.
    unsafe { libc::pthread_main_np() == 1 }
}

/// The number of workers that the next fork outside of the pool has: what the program set last, else
/// what the environment says, else what the machine has.
pub(crate) fn wanted() -> usize {
    static OUTSIDE: OnceLock<usize> = OnceLock::new();
    match WANTED.load(Ordering::Relaxed) {
        0 => *OUTSIDE.get_or_init(|| {
            let asked = number("GRADUS_NUM_THREADS").or_else(|| number("OMP_NUM_THREADS"));
            asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into))
        }),
        set => set,
    }
}

/// Before the program begins: OpenMP's library, which runs what is not ours, has as many threads as our
/// pool. A program may make room for as many as it is told there are, and read what each of them left.
extern "C" fn agree_on_threads() {
    if number("GRADUS_NUM_THREADS").is_none() && number("OMP_NUM_THREADS").is_some() {
        return;
    }
    if let Ok(text) = CString::new(wanted().to_string()) {
        // SAFETY: both are C strings, and no other thread is there yet to read the environment.
        unsafe { libc::setenv(c"OMP_NUM_THREADS".as_ptr(), text.as_ptr(), 1) };
    }
}

/// Run by the loader.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static AGREE: extern "C" fn() = agree_on_threads;

/// From now on forks outside of the pool have `workers` workers.
pub(crate) fn set_wanted(workers: usize) {
    // GRADUS_NUM_THREADS is how a run is told otherwise than its program says.
    if workers > 0 && number("GRADUS_NUM_THREADS").is_none() {
        WANTED.store(workers, Ordering::Relaxed);
    }
}

/// The pool for a fork outside of any pool, where it is not the first one.
fn another() -> Option<&'static ThreadPool> {
    static OTHERS: Mutex<Option<HashMap<usize, &'static ThreadPool>>> = Mutex::new(None);
    let wanted = wanted();
    if wanted == settings().workers || strand::depth() > 0 {
        return None;
    }
    let mut others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
    let others = others.get_or_insert_default();
    if let Some(pool) = others.get(&wanted) {
        return Some(pool);
    }
    let pool = builder(wanted).build().ok()?;
    let pool = &*Box::leak(Box::new(pool));
    others.insert(wanted, pool);
    Some(pool)
}

/// The stack of a worker: a block of a GPU kernel keeps there what its threads keep, and what they share.
/// Pages that are not touched cost nothing.
const STACK_BYTES: usize = 64 << 20;

fn builder(workers: usize) -> ThreadPoolBuilder {
    ThreadPoolBuilder::new()
        .num_threads(workers)
        .stack_size(STACK_BYTES)
        .start_handler(|_| tsan::hide())
        .exit_handler(|_| tsan::show())
}

fn settings() -> &'static Settings {
    SETTINGS.get_or_init(|| {
        let workers = wanted();
        let has_main = is_main_thread();
        let mut pool = builder(workers);
        if has_main {
            pool = pool.use_current_thread();
        }
        // Threads that cannot be had leave the pool to rayon's own making, at the next fork.
        let made = pool.build_global().is_ok();
        Settings {
            workers: if made {
                workers
            } else {
                rayon_core::current_num_threads()
            },
            has_main: made && has_main,
            force_fork: gr_always_fork.load(Ordering::Relaxed) != 0,
        }
    })
}

/// Whether this thread is a worker.
pub(crate) fn is_worker() -> bool {
    settings();
    rayon_core::current_thread_index().is_some()
}

/// Whether all workers come to a call made by this thread.
pub(crate) fn can_gather() -> bool {
    is_worker() || !settings().has_main
}

/// Whether there are workers beside the thread that asks: also where the program wants one thread, as
/// the pool keeps the size that it was made with.
pub(crate) fn has_others() -> bool {
    !is_worker() || rayon_core::current_num_threads() > 1
}

/// Whether loops are split whatever their size.
pub(crate) fn forces() -> bool {
    settings().force_fork && is_worker() && !strand::is_narrow()
}

/// Whether there is reason to make something that others can steal: this worker has nothing left
/// that they could. A guest has no queue, and no reason; nor has a rank of a team that not all workers
/// are in: others must not come to its tasks.
pub(crate) fn is_hungry() -> bool {
    if strand::is_narrow() {
        return false;
    }
    match rayon_core::current_thread_has_pending_tasks() {
        Some(pending) => !pending || forces() && strand::depth() < FORCED_DEPTH,
        None => false,
    }
}

/// Runs `work` on a worker: here, if this thread is one or if nobody else would or may.
pub(crate) fn on_worker<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let other = another();
    let deserted = settings().has_main && settings().workers == 1;
    if other.is_none() && (is_worker() || deserted || strand::is_narrow()) {
        return work();
    }
    let mut fence = 0_u8;
    let place = Carried((&raw mut fence).cast());
    tsan::release(place.get());
    let handed_in = move || {
        tsan::acquire(place.get());
        let result = work();
        tsan::release(place.get());
        result
    };
    let result = match other {
        Some(pool) => pool.install(handed_in),
        None => rayon_core::join(handed_in, || ()).0,
    };
    tsan::acquire(place.get());
    result
}

/// The number of workers: those of the pool that runs this, else those that the next fork will have.
#[unsafe(no_mangle)]
pub extern "C" fn gr_workers() -> i32 {
    let workers = match strand::depth() {
        0 => wanted(),
        _ => rayon_core::current_num_threads(),
    };
    i32::try_from(workers).unwrap_or(i32::MAX)
}

/// The number of the worker that runs this, from 0; 0 outside of the pool.
#[unsafe(no_mangle)]
pub extern "C" fn gr_worker() -> i32 {
    rayon_core::current_thread_index().map_or(0, |i| i32::try_from(i).unwrap_or(i32::MAX))
}

/// Whether a spawn should make a task rather than run in place. Recursions ask it in every task of their
/// upper levels, and mostly with something of their own left to steal: that is answered first.
#[unsafe(no_mangle)]
pub extern "C" fn gr_hungry() -> bool {
    let may_be = match rayon_core::current_thread_has_pending_tasks() {
        Some(pending) => !pending || gr_always_fork.load(Ordering::Relaxed) != 0,
        None => true,
    };
    may_be && is_starving()
}

/// [`gr_hungry`], of a thread of which more must be known.
#[cold]
fn is_starving() -> bool {
    settings();
    is_hungry() && another().is_none()
}

/// Not zero where every loop forks, whatever its size: lowered code reads it before it decides that a
/// loop is too small. Set before `main`.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static gr_always_fork: AtomicU8 = AtomicU8::new(0);

extern "C" fn read_force() {
    // SAFETY: a C string; nobody changes the environment this early.
    let value = unsafe { libc::getenv(c"GRADUS_FORCE_FORK".as_ptr()) };
    // SAFETY: `getenv` gives null or a C string.
    if !value.is_null() && unsafe { CStr::from_ptr(value) } == c"1" {
        gr_always_fork.store(1, Ordering::Relaxed);
    }
}

#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static READ_FORCE: extern "C" fn() = read_force;
