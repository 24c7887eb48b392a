//! Who works: the one set of threads of a process, and what they are asked to do.
//!
//! There are two bodies behind these functions, one in a program: a pool of our own ([`own`]), and, where
//! a part of the program runs on OpenMP's library in any case, the threads of that library ([`libomp`]):
//! two sets of threads on the same cores would fight for them. The link says which ([`on_libomp`]).

mod cores;
mod guests;
mod handed;
mod idle;
mod libomp;
mod own;

use crate::cuda::faults;
use crate::strand;
use crate::tasks::Scope;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

/// Below this depth of nested forks `GRADUS_FORCE_FORK` no longer forces.
const FORCED_DEPTH: u32 = 10;

/// The stack of a worker: a block of a GPU kernel keeps there what its threads keep, and what they share.
/// Pages that are not touched cost nothing.
pub(crate) const STACK_BYTES: usize = 64 << 20;

/// The number of threads that the program itself asked for; 0 where it did not.
static WANTED: AtomicUsize = AtomicUsize::new(0);

fn number(name: &str) -> Option<usize> {
    number_at(name, 0)
}

/// OMP_NUM_THREADS may be a list, one number for each level of nesting; the last is that of all further ones, too.
fn number_at(name: &str, level: usize) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    let number = text.split(',').take(level + 1).last()?.trim();
    number.parse().ok().filter(|n| *n > 0)
}

/// [`wanted`], of a region inside of so many others.
pub(crate) fn wanted_at(level: i32) -> usize {
    let level = usize::try_from(level).unwrap_or(0);
    let is_set = WANTED.load(Ordering::Relaxed) > 0 || number("GRADUS_NUM_THREADS").is_some();
    let listed = (!is_set).then(|| number_at("OMP_NUM_THREADS", level));
    listed.flatten().unwrap_or_else(wanted)
}

/// So many threads at most work for one of the program's own.
pub(crate) fn limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| number("OMP_THREAD_LIMIT").unwrap_or(usize::MAX))
}

/// The number of workers that the next fork outside of the pool has: what the program set last, else
/// what the environment says, else what the machine has.
pub(crate) fn wanted() -> usize {
    static OUTSIDE: OnceLock<usize> = OnceLock::new();
    let wanted = match WANTED.load(Ordering::Relaxed) {
        0 => *OUTSIDE.get_or_init(|| {
            let asked = number("GRADUS_NUM_THREADS").or_else(|| number("OMP_NUM_THREADS"));
            asked.unwrap_or_else(processors)
        }),
        set => set,
    };
    wanted.min(limit())
}

/// The processors that the program may run on.
fn processors() -> usize {
    static THERE: OnceLock<usize> = OnceLock::new();
    *THERE.get_or_init(|| std::thread::available_parallelism().map_or(1, Into::into))
}

/// Whether there may be more workers than processors: who waits then keeps its processor from another one.
pub(crate) fn is_crowded() -> bool {
    wanted() > processors()
}

/// Before the program begins: OpenMP's library, which runs what is not ours, has as many threads as our
/// pool. A program may make room for as many as it is told there are, and read what each of them left.
/// Where its threads are our workers, they have room for what workers keep on their stacks.
extern "C" fn agree_on_threads() {
    let set = |name: &CStr, value: String| {
        if let Ok(value) = CString::new(value) {
            // SAFETY: both are C strings, and no other thread is there yet to read the environment.
            unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
        }
    };
    if number("GRADUS_NUM_THREADS").is_some() || number("OMP_NUM_THREADS").is_none() {
        set(c"OMP_NUM_THREADS", wanted().to_string());
    }
    let sizes = ["OMP_STACKSIZE", "KMP_STACKSIZE", "GOMP_STACKSIZE"];
    if is_chosen() && sizes.iter().all(|name| std::env::var_os(name).is_none()) {
        set(c"OMP_STACKSIZE", format!("{STACK_BYTES}B"));
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

/// Whether the link defines `gr_on_libomp`: OpenMP's threads are to do the work.
fn is_chosen() -> bool {
    // SAFETY: the linker fills it, and it is never written.
    unsafe { gr_body_entry != 0 }
}

/// Whether OpenMP's threads do the work.
fn on_libomp() -> bool {
    is_chosen() && libomp::is_there()
}

/// Whether this thread is a worker.
pub(crate) fn is_worker() -> bool {
    match on_libomp() {
        true => libomp::pending().is_some(),
        false => own::is_worker(),
    }
}

/// Whether a region of ours around this is one of the other library's, which counts it.
pub(crate) fn is_in_foreign_region() -> bool {
    on_libomp() && libomp::pending().is_some()
}

/// Whether all workers come to a call made by this thread.
pub(crate) fn can_gather() -> bool {
    on_libomp() || own::can_gather()
}

/// Whether there are workers beside the thread that asks: also where the program wants one thread, as
/// a pool keeps the size that it was made with.
pub(crate) fn has_others() -> bool {
    match on_libomp() {
        true => libomp::size() > 1,
        false => own::has_others(),
    }
}

/// Whether loops are split whatever their size.
pub(crate) fn forces() -> bool {
    gr_always_fork.load(Ordering::Relaxed) != 0 && is_worker() && !strand::is_closed()
}

/// Whether there is reason to make something that others can steal: this worker has nothing left
/// that they could, and there are others. A guest has no queue, and no reason; nor has a
/// final task, or a rank of a team that not all workers are in: others must not come to its tasks.
pub(crate) fn is_hungry() -> bool {
    if strand::is_closed() {
        return false;
    }
    let pending = match on_libomp() {
        true => libomp::pending(),
        false => own::pending(),
    };
    pending.is_some_and(|pending| {
        !pending && has_others() || forces() && strand::depth() < FORCED_DEPTH
    })
}

/// Runs `work` on a worker: here, if this thread is one or if nobody else would or may.
pub(crate) fn on_worker<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    faults::aside(|| match on_libomp() {
        true if strand::is_closed() => work(),
        true => libomp::on_worker(work),
        false => own::on_worker(work),
    })
}

/// Runs both, `second` possibly on another worker; called by a worker.
pub(crate) fn both(first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
    match on_libomp() {
        true => libomp::both(first, second),
        false => own::both(first, second),
    }
}

/// Makes a task of `scope`, for any worker; called where [`gr_hungry`] holds.
pub(crate) fn spawn(scope: *const Scope, task: impl FnOnce() + Send + 'static) {
    match on_libomp() {
        true => libomp::spawn(scope, task),
        false => own::spawn(task),
    }
}

/// The tasks of `scope` have ended, and the code that it belongs to goes on here.
pub(crate) fn synced(scope: *const Scope) {
    if is_chosen() {
        libomp::synced(scope);
    }
}

/// Does a piece of the pool's work; whether there was any.
pub(crate) fn help() -> bool {
    match on_libomp() {
        true => libomp::help(),
        false => matches!(rayon_core::yield_now(), Some(rayon_core::Yield::Executed)),
    }
}

/// Runs `work` on each of `size` workers at once, with its rank and their number. Where there are fewer, they
/// are those of a larger pool, and where the system has no more threads, fewer.
pub(crate) fn gather(size: u32, work: &(dyn Fn(u32, u32) + Sync)) {
    match on_libomp() {
        true => libomp::gather(size, work),
        false => own::gather(size, work),
    }
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The number of workers: those of the pool that runs this, else those that the next fork will have.
#[unsafe(no_mangle)]
pub extern "C" fn gr_workers() -> i32 {
    count(match strand::depth() {
        0 => wanted(),
        _ if on_libomp() => libomp::size(),
        _ => rayon_core::current_num_threads(),
    })
}

/// The number of workers that are at work at once: no more than there are processors, of those of the pool that
/// runs this.
pub(crate) fn abreast() -> usize {
    match on_libomp() {
        true => libomp::size(),
        false => own::abreast(),
    }
}

/// The number of the worker that runs this, from 0; 0 outside of the pool.
#[unsafe(no_mangle)]
pub extern "C" fn gr_worker() -> i32 {
    match on_libomp() {
        true => libomp::rank(),
        false => rayon_core::current_thread_index().map_or(0, count),
    }
}

/// So many tasks are made beyond the one that others can steal: see [`wish`].
static WISHED: AtomicU32 = AtomicU32::new(0);
/// Tasks that are wished for at once, for each worker.
const WISHES: u32 = 8;

/// A worker has looked for work in vain for as long as it looks. Mostly one task that can be stolen is enough, as the
/// next is made soon after it was; but where tasks are long and are made by one worker, between two of them that worker
/// runs one itself, and the others have nothing for the rest of it. Then it makes some in store. How many more tasks that
/// makes, also in recursions, is bounded by how often others fall asleep.
fn wish(workers: usize) {
    let wishes = u32::try_from(workers).unwrap_or(1).saturating_mul(WISHES);
    if WISHED.load(Ordering::Relaxed) < wishes {
        WISHED.store(wishes, Ordering::Relaxed);
    }
}

/// One who waits for others has found nothing to do for long.
pub(crate) fn wish_for_tasks() {
    if !on_libomp() {
        wish(own::abreast());
    }
}

/// Takes one of the wishes, if there are any.
fn grant() -> bool {
    let one_less = |wishes: u32| wishes.checked_sub(1);
    WISHED
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
        .is_ok()
}

/// Whether a spawn should make a task rather than run in place. Recursions ask it in every task of their
/// upper levels, and mostly with something of their own left to steal, or alone: that is answered first.
#[unsafe(no_mangle)]
pub extern "C" fn gr_hungry() -> bool {
    let may_be = match own::pending() {
        Some(pending) => {
            (!pending || WISHED.load(Ordering::Relaxed) > 0)
                && rayon_core::current_num_threads() > 1
                || gr_always_fork.load(Ordering::Relaxed) != 0
        }
        None => true,
    };
    may_be && is_starving()
}

/// Whether this is a worker from which others can steal.
fn may_grant() -> bool {
    own::is_worker() && has_others() && !strand::is_closed()
}

/// [`gr_hungry`], of a thread of which more must be known.
#[cold]
fn is_starving() -> bool {
    match on_libomp() {
        // A spawn outside of all regions begins one.
        true => is_hungry() || libomp::pending().is_none() && !strand::is_closed(),
        false => own::is_ready() && (is_hungry() || may_grant() && grant()),
    }
}

/// The workers that are awake and have nothing to do, or had nothing a moment ago: lowered code reads it, as
/// loops may be smaller that fork while there are any.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static gr_awake: AtomicU32 = AtomicU32::new(0);

/// Not zero where every loop forks, whatever its size: lowered code reads it before it decides that a
/// loop is too small. Set before `main`.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static gr_always_fork: AtomicU8 = AtomicU8::new(0);

/// The same for loops that call code which is not known. Where OpenMP's threads do the work, a region of
/// that library in such code must find itself nested, as it does in a loop that forked, and not make threads
/// in every iteration.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static gr_always_fork_calls: AtomicU8 = AtomicU8::new(0);

extern "C" fn read_force() {
    // SAFETY: a C string; nobody changes the environment this early.
    let value = unsafe { libc::getenv(c"GRADUS_FORCE_FORK".as_ptr()) };
    // SAFETY: `getenv` gives null or a C string.
    if !value.is_null() && unsafe { CStr::from_ptr(value) } == c"1" {
        gr_always_fork.store(1, Ordering::Relaxed);
        gr_always_fork_calls.store(1, Ordering::Relaxed);
    }
    if is_chosen() {
        gr_always_fork_calls.store(1, Ordering::Relaxed);
    }
}

#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static READ_FORCE: extern "C" fn() = read_force;
