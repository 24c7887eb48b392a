//! The OpenMP library's threads as workers, for a program with regions that stay on the OpenMP library.
//!
//! A fork outside all regions of this library begins a region of the OpenMP library, with the library's own
//! threads, as the program itself would. Inside a remaining OpenMP region, the fork gets as many threads as
//! OpenMP gives a nested region. Within the region, every thread has a deque of tasks. A waiting thread, or
//! a thread at the region's end, takes the newest task of its own deque, or else the oldest task of another
//! deque. OpenMP tasks are not used: a `taskwait` of the program would wait for tasks of this library, and
//! run the tasks while holding a lock.
//!
//! A spawn outside all regions begins a region that ends at the sync of the spawn's scope. Begin and end use
//! the entry points of GNU compilers (`GOMP_parallel_start`, `GOMP_parallel_end`), which both OpenMP
//! libraries provide.

use super::requested_workers;
use crate::foreign_library;
use crate::foreign_library::{Function, call};
use crate::pool::backoff;
use crate::pool::scope::Scope;
use crate::{thread_context, tsan};
use crossbeam_deque::{Steal, Stealer, Worker};
use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

type Task = Box<dyn FnOnce() + Send>;

/// State shared by the threads of a region.
struct Region {
    /// A deque per possible thread, used by that thread only.
    queues: Vec<Worker<Task>>,
    stealers: Vec<Stealer<Task>>,
    /// The code that began the region has finished.
    ended: AtomicBool,
    /// Code to be run by each thread with the rank and the number of ranks; `None`: tasks, until the end.
    work: Option<*const (dyn Fn(u32, u32) + Sync)>,
    /// Scope of the spawn that began the region; null for a region within a single call.
    scope: *const Scope,
    /// Position of the beginning thread before the region.
    before: RegionPosition,
}

// SAFETY: a deque is used by its thread only, and `before` by the thread that began the region.
unsafe impl Sync for Region {}

impl Region {
    fn new(wanted: usize, scope: *const Scope) -> Box<Region> {
        let queues: Vec<_> = (0..wanted.max(1)).map(|_| Worker::new_lifo()).collect();
        Box::new(Region {
            stealers: queues.iter().map(Worker::stealer).collect(),
            queues,
            ended: AtomicBool::new(false),
            work: None,
            scope,
            before: POSITION.get(),
        })
    }
}

/// Position of a thread in a region; the region is null outside.
#[derive(Clone, Copy)]
struct RegionPosition {
    region: *const Region,
    rank: usize,
    size: usize,
    /// Nesting level of the OpenMP library in the region.
    level: i32,
}

thread_local! {
    static POSITION: Cell<RegionPosition> = const {
        Cell::new(RegionPosition { region: std::ptr::null(), rank: 0, size: 1, level: 0 })
    };
}

impl RegionPosition {
    /// The region, if the thread is in no OpenMP region nested inside.
    fn region(&self) -> Option<&'static Region> {
        // SAFETY: a region lives while any thread has a position in the region.
        unsafe { self.region.as_ref() }.filter(|_| self.level == foreign_library::level())
    }
}

/// The OpenMP library's functions for the start and end of a region.
struct Library {
    start: *mut c_void,
    end: *mut c_void,
}

// SAFETY: the functions may be called on any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// The OpenMP library with both functions; `None` selects the rayon pool. Both come from the library that
/// answers level queries.
fn library() -> Option<&'static Library> {
    static FOUND: OnceLock<Option<Library>> = OnceLock::new();
    let find = || {
        let known = Function::Level.find()?;
        let mut about = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: the names are C strings, and every result is tested before use.
        unsafe {
            if libc::dladdr(known, about.as_mut_ptr()) == 0 {
                return None;
            }
            let name = about.assume_init().dli_fname;
            let handle = libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if handle.is_null() {
                return None;
            }
            let start = libc::dlsym(handle, c"GOMP_parallel_start".as_ptr());
            let end = libc::dlsym(handle, c"GOMP_parallel_end".as_ptr());
            (!start.is_null() && !end.is_null()).then_some(Library { start, end })
        }
    };
    FOUND.get_or_init(find).as_ref()
}

pub(super) fn is_available() -> bool {
    library().is_some()
}

/// Body of a region's threads, except the thread that began the region.
unsafe extern "C" fn region_thread_body(region: *mut c_void) {
    tsan::ignore_begin();
    // SAFETY: the region lives until all of its threads have reached the end.
    let region: &Region = unsafe { &*region.cast() };
    let before = POSITION.get();
    set_position(region);
    match region.work {
        // SAFETY: the closure lives as long as the region.
        Some(work) => unsafe { run(&*work) },
        None => backoff::work_until(|| region.ended.load(Ordering::Acquire)),
    }
    while run_one_task() {}
    POSITION.set(before);
    tsan::ignore_end();
}

fn run(work: &(dyn Fn(u32, u32) + Sync)) {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    work(number(POSITION.get().rank), number(size()));
}

/// Sets the calling thread's position to the region.
fn set_position(region: &Region) {
    let ask = |function: Function, otherwise| {
        let number = function.find().map_or(otherwise, |f| call!(f, () -> i32,));
        usize::try_from(number).unwrap_or(0)
    };
    POSITION.set(RegionPosition {
        region,
        rank: ask(Function::ThreadNum, 0).min(region.queues.len() - 1),
        size: ask(Function::NumThreads, 1).clamp(1, region.queues.len()),
        level: foreign_library::level(),
    });
}

fn begin_region(region: &Region) {
    let Some(library) = library() else {
        let text = c"gradus: a parallel region needs threads of the OpenMP library, and the library is not loaded\n";
        // SAFETY: the text is valid, and nothing unwinds through this library.
        unsafe {
            libc::write(2, text.as_ptr().cast(), text.count_bytes());
            libc::abort()
        }
    };
    foreign_library::mark_region_begun();
    let threads = u32::try_from(region.queues.len()).unwrap_or(u32::MAX);
    let shared = (&raw const *region).cast_mut().cast::<c_void>();
    let body: unsafe extern "C" fn(*mut c_void) = region_thread_body;
    call!(
        library.start,
        (unsafe extern "C" fn(*mut c_void), *mut c_void, u32),
        body,
        shared,
        threads
    );
    set_position(region);
}

/// Ends a region. No task is left: every thread searches for tasks before leaving.
fn end_region(region: &Region) {
    while run_one_task() {}
    region.ended.store(true, Ordering::Release);
    if let Some(library) = library() {
        call!(library.end, (),);
    }
    POSITION.set(region.before);
}

/// Returns whether the thread has stealable work; `None` outside a region.
pub(super) fn pending() -> Option<bool> {
    let here = POSITION.get();
    let region = here.region()?;
    Some(!region.queues[here.rank].is_empty())
}

/// The rank of the thread in the enclosing region.
pub(super) fn rank() -> i32 {
    super::to_i32(POSITION.get().rank)
}

/// The number of threads of the enclosing region, or of the next region.
pub(super) fn size() -> usize {
    let here = POSITION.get();
    match here.region.is_null() {
        true => requested_workers(),
        false => here.size,
    }
}

pub(super) fn on_worker<R>(work: impl FnOnce() -> R) -> R {
    if POSITION.get().region().is_some() {
        return work();
    }
    let region = Region::new(requested_workers(), std::ptr::null());
    begin_region(&region);
    let result = work();
    end_region(&region);
    result
}

pub(super) fn gather(size: u32, work: &(dyn Fn(u32, u32) + Sync)) {
    let mut region = Region::new(size as usize, std::ptr::null());
    let work: *const (dyn Fn(u32, u32) + Sync + '_) = work;
    // SAFETY: all threads have reached the region's end before the function returns.
    region.work = Some(unsafe { std::mem::transmute::<*const _, *const _>(work) });
    begin_region(&region);
    // SAFETY: as above.
    run(unsafe { &*work });
    end_region(&region);
}

pub(super) fn both(first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
    let here = POSITION.get();
    let Some(region) = here.region() else {
        first();
        return second();
    };
    let done = AtomicBool::new(false);
    let task = || {
        second();
        done.store(true, Ordering::Release);
    };
    let task: Box<dyn FnOnce() + Send + '_> = Box::new(task);
    // SAFETY: the task has ended, and no longer accesses the stack frame, before the function returns.
    let task: Task = unsafe { std::mem::transmute(task) };
    region.queues[here.rank].push(task);
    first();
    backoff::work_until(|| done.load(Ordering::Acquire));
}

pub(super) fn spawn(scope: *const Scope, task: impl FnOnce() + Send + 'static) {
    if POSITION.get().region().is_none() {
        begin_region(Box::leak(Region::new(requested_workers(), scope)));
        thread_context::set_foreign_level(foreign_library::level());
    }
    let here = POSITION.get();
    match here.region() {
        Some(region) => region.queues[here.rank].push(Box::new(task)),
        None => task(),
    }
}

/// Ends the region that a spawn of `scope` began.
#[cold]
pub(super) fn synced(scope: *const Scope) {
    let here = POSITION.get();
    let Some(region) = here.region().filter(|region| region.scope == scope) else {
        // Not an error: another scope, or none, began the region.
        return;
    };
    tsan::with_accesses_ignored(|| {
        end_region(region);
        thread_context::set_foreign_level(foreign_library::level());
        // SAFETY: a spawn leaked the region, and all threads have left it.
        drop(unsafe { Box::from_raw((&raw const *region).cast_mut()) });
    });
}

/// Runs a task of the thread's own deque, or of another thread in the region; returns whether there was a
/// task.
pub(super) fn run_one_task() -> bool {
    let here = POSITION.get();
    let Some(region) = here.region() else {
        return false;
    };
    let steal = || {
        let mut others = (1..here.size).map(|by| &region.stealers[(here.rank + by) % here.size]);
        others.find_map(steal_oldest)
    };
    match region.queues[here.rank].pop().or_else(steal) {
        Some(task) => {
            task();
            true
        }
        None => false,
    }
}

/// The oldest task of another thread's deque.
fn steal_oldest(queue: &Stealer<Task>) -> Option<Task> {
    loop {
        match queue.steal() {
            Steal::Success(task) => return Some(task),
            Steal::Empty => return None,
            Steal::Retry => {}
        }
    }
}
