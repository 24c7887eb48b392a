//! Cooperative threads: the threads of a kernel with spin loops run as fibers, each on its own stack.
//!
//! A fiber runs until a barrier ([`gr_turn_meet`]), a failed poll of a spin loop ([`gr_turn_wait`]), or its
//! end; then the next fiber runs. A finished fiber passes its stack to a fiber that has not started, and the
//! number of stacks equals the number of fibers in progress.
//!
//! A worker starts a further block if all of its started blocks wait; blocks start in order. A fiber that
//! waits for an earlier block waits for a block in progress or finished. A fiber that waits for a later
//! block waits until some worker starts the block.

use crate::cuda::fiber_stacks::{Stack, Stacks, switch};
use crate::kernel_faults;
use crate::loops::parallel_for::gr_for;
use crate::pool::backoff;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, Ordering};

/// Code of a thread: the ranks of block and thread (three each), the block's shared memory, and the launch's
/// values.
pub type FiberBody =
    unsafe extern "C" fn(ranks: *const i64, shared: *mut c_void, context: *mut c_void);

/// Threads per warp.
const WARP_SIZE: usize = 32;
/// Number of fruitless rounds after which a worker starts another block, if any is left.
const MAX_IDLE_ROUNDS: u32 = 64;
/// Alignment of a block's shared memory, in bytes.
const SHARED_ALIGN: usize = 64;

/// State shared by all blocks of a launch.
struct Launch {
    grid: [i64; 3],
    block: [i64; 3],
    shared_bytes: usize,
    body: FiberBody,
    context: *mut c_void,
    /// The next block to start.
    next: AtomicI64,
}

/// State of a fiber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FiberState {
    /// Runnable, or not started.
    Ready,
    /// The last poll failed; the fiber may poll again.
    Polling,
    /// Waits at a barrier of its block.
    AtBlockBarrier,
    /// Waits at a barrier of its warp.
    AtWarpBarrier,
    Ended,
}

struct Fiber {
    state: FiberState,
    /// The fiber's stack, once started.
    stack: Option<Stack>,
    ranks: [i64; 6],
}

/// Barrier state of a block or warp: number of live threads, and number of arrived threads.
#[derive(Clone, Copy, Default)]
struct BarrierGroup {
    live: usize,
    arrived: usize,
}

impl BarrierGroup {
    /// Returns whether all live threads have arrived; if so, resets the number of arrived threads.
    fn release_if_all_arrived(&mut self) -> bool {
        let met = self.live > 0 && self.arrived == self.live;
        if met {
            self.arrived = 0;
        }
        met
    }
}

/// A started block.
struct Block {
    threads: Vec<Fiber>,
    all: BarrierGroup,
    warps: Vec<BarrierGroup>,
    shared: *mut c_void,
}

/// Context of the running fiber.
struct FiberContext {
    launch: *const Launch,
    thread: *mut Fiber,
    shared: *mut c_void,
    /// Saved stack pointer of the worker that resumed the fiber.
    worker: *mut c_void,
}

thread_local! {
    static RUNNING: Cell<*mut FiberContext> = const { Cell::new(null_mut()) };
}

/// Runs `body` for each thread of a grid; `extents` holds the sizes of grid and block, three each. Returns
/// when all threads have ended.
///
/// # Safety
/// `extents` has six elements, all at least 1. `body` may be called for each thread with `context`, on any
/// thread of the system, interleaved, and does not unwind.
#[unsafe(no_mangle)]
unsafe extern "C" fn gr_turns(
    extents: *const i64,
    shared_bytes: i64,
    body: FiberBody,
    context: *mut c_void,
) {
    // SAFETY: promised by the caller.
    let extents = unsafe { std::slice::from_raw_parts(extents, 6) };
    let launch = Launch {
        grid: [extents[0], extents[1], extents[2]],
        block: [extents[3], extents[4], extents[5]],
        shared_bytes: usize::try_from(shared_bytes).unwrap_or(0),
        body,
        context,
        next: AtomicI64::new(0),
    };
    let workers = i64::from(crate::pool::gr_workers()).max(1);
    let launch: *const Launch = &raw const launch;
    // SAFETY: `work` accepts any range; the launch lives until all of its blocks have ended.
    unsafe { gr_for(0, workers, 1, run_blocks, launch.cast_mut().cast()) };
}

/// A worker's share: starts and runs blocks until none is left.
unsafe extern "C" fn run_blocks(_: i64, _: i64, launch: *mut c_void) {
    // SAFETY: `gr_turns` passed the launch.
    let launch = unsafe { &*launch.cast::<Launch>() };
    let count: i64 = launch.grid.iter().product();
    let mut stacks = Stacks::default();
    let mut blocks: Vec<Block> = Vec::new();
    let mut vain: u32 = 0;
    loop {
        let mut moved = false;
        blocks.retain_mut(|block| {
            moved |= block.run_round(launch, &mut stacks);
            let lives = block.all.live > 0;
            if !lives {
                // SAFETY: `begin` allocated the memory, and no thread of the block is left.
                unsafe { libc::free(block.shared) };
            }
            lives
        });
        vain = if moved { 0 } else { vain.saturating_add(1) };
        if blocks.is_empty() || vain > MAX_IDLE_ROUNDS {
            let number = launch.next.fetch_add(1, Ordering::Relaxed);
            if number < count {
                blocks.push(Block::begin(launch, number));
                vain = 0;
                continue;
            }
            launch.next.fetch_sub(1, Ordering::Relaxed);
            if blocks.is_empty() {
                return;
            }
        }
        if vain > 0 {
            backoff::backoff(vain);
        }
    }
}

impl Block {
    fn begin(launch: &Launch, number: i64) -> Block {
        let [gx, gy, _] = launch.grid;
        let [bx, by, bz] = launch.block;
        let ranks = |thread: i64| {
            let block = [number % gx, number / gx % gy, number / gx / gy];
            let own = [thread % bx, thread / bx % by, thread / bx / by];
            [block[0], block[1], block[2], own[0], own[1], own[2]]
        };
        let count = bx * by * bz;
        let thread = |number| Fiber {
            state: FiberState::Ready,
            stack: None,
            ranks: ranks(number),
        };
        let threads: Vec<Fiber> = (0..count).map(thread).collect();
        let warp = |threads: &[Fiber]| BarrierGroup {
            live: threads.len(),
            arrived: 0,
        };
        let bytes = launch.shared_bytes.max(1).next_multiple_of(SHARED_ALIGN);
        // SAFETY: the alignment is a power of two that divides the size.
        let shared = unsafe { libc::aligned_alloc(SHARED_ALIGN, bytes) };
        if shared.is_null() {
            crate::cuda::fiber_stacks::abort_with(
                "cannot allocate the shared memory of a CUDA block",
            );
        }
        Block {
            all: warp(&threads),
            warps: threads.chunks(WARP_SIZE).map(warp).collect(),
            threads,
            shared,
        }
    }

    /// Runs each runnable fiber once; returns whether any fiber made progress.
    fn run_round(&mut self, launch: &Launch, stacks: &mut Stacks) -> bool {
        let mut moved = false;
        let mut any = false;
        for number in 0..self.threads.len() {
            let before = self.threads[number].state;
            if !matches!(before, FiberState::Ready | FiberState::Polling) {
                continue;
            }
            any = true;
            self.resume(launch, number, stacks);
            let after = self.threads[number].state;
            moved |= before != FiberState::Polling || after != FiberState::Polling;
            match after {
                FiberState::AtBlockBarrier => self.all.arrived += 1,
                FiberState::AtWarpBarrier => self.warps[number / WARP_SIZE].arrived += 1,
                FiberState::Ended => {
                    self.all.live -= 1;
                    self.warps[number / WARP_SIZE].live -= 1;
                }
                FiberState::Ready | FiberState::Polling => continue,
            }
            if self.all.release_if_all_arrived() {
                self.make_ready(0..self.threads.len(), FiberState::AtBlockBarrier);
            }
            if self.warps[number / WARP_SIZE].release_if_all_arrived() {
                let first = number / WARP_SIZE * WARP_SIZE;
                let end = self.threads.len().min(first + WARP_SIZE);
                self.make_ready(first..end, FiberState::AtWarpBarrier);
            }
        }
        if !any {
            crate::cuda::fiber_stacks::abort_with(
                "deadlock: the threads of a CUDA block wait at different barriers",
            );
        }
        moved
    }

    fn make_ready(&mut self, threads: std::ops::Range<usize>, from: FiberState) {
        for thread in &mut self.threads[threads] {
            if thread.state == from {
                thread.state = FiberState::Ready;
            }
        }
    }

    /// Runs a fiber until the fiber waits or ends.
    fn resume(&mut self, launch: &Launch, number: usize, stacks: &mut Stacks) {
        let shared = self.shared;
        let thread = &mut self.threads[number];
        let stack = thread
            .stack
            .get_or_insert_with(|| stacks.prepare(run_thread));
        let to = stack.stack_pointer;
        let mut turn = FiberContext {
            launch,
            thread,
            shared,
            worker: null_mut(),
        };
        let before = RUNNING.replace(&raw mut turn);
        // A fault on the fiber's stack cannot continue on the worker's stack; the fiber runs outside the
        // kernel's guard.
        kernel_faults::without_recovery(|| {
            // SAFETY: the stack was prepared for a thread, or was saved when the fiber ran last.
            unsafe { switch(&raw mut turn.worker, to) }
        });
        RUNNING.set(before);
        let thread = &mut self.threads[number];
        if thread.state == FiberState::Ended {
            stacks.recycle(thread.stack.take());
        }
    }
}

/// Entry point of a fiber's stack: runs the thread from start to end.
extern "C" fn run_thread() -> ! {
    // SAFETY: the worker that resumes a fiber sets the context, which lives until the fiber yields.
    unsafe {
        let turn = RUNNING.get();
        let (launch, shared) = (&*(*turn).launch, (*turn).shared);
        (launch.body)((*(*turn).thread).ranks.as_ptr(), shared, launch.context);
        suspend(FiberState::Ended);
    }
    unreachable!("an ended fiber is never resumed")
}

/// Suspends the running fiber.
///
/// # Safety
/// A fiber is running.
unsafe fn suspend(state: FiberState) {
    // SAFETY: the context and the fiber live until the worker continues; the worker is suspended where it
    // resumed the fiber.
    unsafe {
        let turn = RUNNING.get();
        let thread = (*turn).thread;
        (*thread).state = state;
        let worker = (*turn).worker;
        match &mut (*thread).stack {
            Some(stack) => switch(&raw mut stack.stack_pointer, worker),
            None => unreachable!("a running fiber has a stack"),
        }
    }
}

/// Barrier of the block, or of the warp if `warp`.
#[unsafe(no_mangle)]
extern "C" fn gr_turn_meet(warp: bool) {
    let state = match warp {
        true => FiberState::AtWarpBarrier,
        false => FiberState::AtBlockBarrier,
    };
    if !RUNNING.get().is_null() {
        // SAFETY: a fiber is running.
        unsafe { suspend(state) }
    }
}

/// Yields after a failed poll in a spin loop.
#[unsafe(no_mangle)]
extern "C" fn gr_turn_wait() {
    match RUNNING.get().is_null() {
        true => std::thread::yield_now(),
        // SAFETY: a fiber is running.
        false => unsafe { suspend(FiberState::Polling) },
    }
}

#[cfg(test)]
#[path = "fiber_tests.rs"]
mod tests;
