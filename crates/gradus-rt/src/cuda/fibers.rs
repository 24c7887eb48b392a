//! Cooperative threads: the threads of a kernel with spin loops run as fibers, each on its own stack.
//!
//! A fiber runs until a barrier ([`gr_turn_meet`]), a failed poll of a spin loop ([`gr_turn_wait`]), or its
//! end; then the next fiber runs. A finished fiber passes its stack to a fiber that has not started, and the
//! number of stacks equals the number of fibers in progress.
//!
//! A worker starts a further block if all of its started blocks wait; blocks start in order. A fiber that
//! waits for an earlier block waits for a block in progress or finished. A fiber that waits for a later
//! block waits until some worker starts the block.

use super::faults;
use crate::backoff;
use crate::cuda::fiber_stacks::{Stack, Stacks, switch};
use crate::loops::parallel_for::gr_for;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, Ordering};

/// Code of a thread: the ranks of block and thread (three each), the block's shared memory, and the launch's
/// values.
pub type TurnBody =
    unsafe extern "C" fn(ranks: *const i64, shared: *mut c_void, context: *mut c_void);

/// Threads per warp.
const WARP: usize = 32;
/// Number of fruitless rounds after which a worker starts another block, if any is left.
const PATIENCE: u32 = 64;
/// Alignment of a block's shared memory, in bytes.
const SHARED_ALIGN: usize = 64;

/// State shared by all blocks of a launch.
struct Launch {
    grid: [i64; 3],
    block: [i64; 3],
    shared_bytes: usize,
    body: TurnBody,
    context: *mut c_void,
    /// The next block to start.
    next: AtomicI64,
}

/// State of a fiber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Runnable, or not started.
    Ready,
    /// The last poll failed; the fiber may poll again.
    Looks,
    /// Waits at a barrier of its block.
    MeetsBlock,
    /// Waits at a barrier of its warp.
    MeetsWarp,
    Ended,
}

struct Thread {
    state: State,
    /// The fiber's stack, once started.
    stack: Option<Stack>,
    ranks: [i64; 6],
}

/// Barrier state of a block or warp: number of live threads, and number of arrived threads.
#[derive(Clone, Copy, Default)]
struct Group {
    here: usize,
    come: usize,
}

impl Group {
    /// Returns whether all live threads have arrived; if so, resets the number of arrived threads.
    fn is_met(&mut self) -> bool {
        let met = self.here > 0 && self.come == self.here;
        if met {
            self.come = 0;
        }
        met
    }
}

/// A started block.
struct Block {
    threads: Vec<Thread>,
    all: Group,
    warps: Vec<Group>,
    shared: *mut c_void,
}

/// Context of the running fiber.
struct Turn {
    launch: *const Launch,
    thread: *mut Thread,
    shared: *mut c_void,
    /// Saved stack pointer of the worker that resumed the fiber.
    worker: *mut c_void,
}

thread_local! {
    static TURN: Cell<*mut Turn> = const { Cell::new(null_mut()) };
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
    body: TurnBody,
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
    unsafe { gr_for(0, workers, 1, work, launch.cast_mut().cast()) };
}

/// A worker's share: starts and runs blocks until none is left.
unsafe extern "C" fn work(_: i64, _: i64, launch: *mut c_void) {
    // SAFETY: `gr_turns` passed the launch.
    let launch = unsafe { &*launch.cast::<Launch>() };
    let count: i64 = launch.grid.iter().product();
    let mut stacks = Stacks::default();
    let mut blocks: Vec<Block> = Vec::new();
    let mut vain: u32 = 0;
    loop {
        let mut moved = false;
        blocks.retain_mut(|block| {
            moved |= block.round(launch, &mut stacks);
            let lives = block.all.here > 0;
            if !lives {
                // SAFETY: `begin` allocated the memory, and no thread of the block is left.
                unsafe { libc::free(block.shared) };
            }
            lives
        });
        vain = if moved { 0 } else { vain.saturating_add(1) };
        if blocks.is_empty() || vain > PATIENCE {
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
            backoff::pause(vain);
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
        let thread = |number| Thread {
            state: State::Ready,
            stack: None,
            ranks: ranks(number),
        };
        let threads: Vec<Thread> = (0..count).map(thread).collect();
        let warp = |threads: &[Thread]| Group {
            here: threads.len(),
            come: 0,
        };
        let bytes = launch.shared_bytes.max(1).next_multiple_of(SHARED_ALIGN);
        // SAFETY: the alignment is a power of two that divides the size.
        let shared = unsafe { libc::aligned_alloc(SHARED_ALIGN, bytes) };
        if shared.is_null() {
            crate::cuda::fiber_stacks::give_up("no memory for what the threads of a block share");
        }
        Block {
            all: warp(&threads),
            warps: threads.chunks(WARP).map(warp).collect(),
            threads,
            shared,
        }
    }

    /// Runs each runnable fiber once; returns whether any fiber made progress.
    fn round(&mut self, launch: &Launch, stacks: &mut Stacks) -> bool {
        let mut moved = false;
        let mut any = false;
        for number in 0..self.threads.len() {
            let before = self.threads[number].state;
            if !matches!(before, State::Ready | State::Looks) {
                continue;
            }
            any = true;
            self.turn(launch, number, stacks);
            let after = self.threads[number].state;
            moved |= before != State::Looks || after != State::Looks;
            match after {
                State::MeetsBlock => self.all.come += 1,
                State::MeetsWarp => self.warps[number / WARP].come += 1,
                State::Ended => {
                    self.all.here -= 1;
                    self.warps[number / WARP].here -= 1;
                }
                State::Ready | State::Looks => continue,
            }
            if self.all.is_met() {
                self.go_on(0..self.threads.len(), State::MeetsBlock);
            }
            if self.warps[number / WARP].is_met() {
                let first = number / WARP * WARP;
                let end = self.threads.len().min(first + WARP);
                self.go_on(first..end, State::MeetsWarp);
            }
        }
        if !any {
            crate::cuda::fiber_stacks::give_up(
                "the threads of a block wait at different barriers, and would for ever",
            );
        }
        moved
    }

    fn go_on(&mut self, threads: std::ops::Range<usize>, from: State) {
        for thread in &mut self.threads[threads] {
            if thread.state == from {
                thread.state = State::Ready;
            }
        }
    }

    /// Runs a fiber until the fiber waits or ends.
    fn turn(&mut self, launch: &Launch, number: usize, stacks: &mut Stacks) {
        let shared = self.shared;
        let thread = &mut self.threads[number];
        let stack = thread.stack.get_or_insert_with(|| stacks.take(run_thread));
        let to = stack.at;
        let mut turn = Turn {
            launch,
            thread,
            shared,
            worker: null_mut(),
        };
        let before = TURN.replace(&raw mut turn);
        // A fault on the fiber's stack cannot continue on the worker's stack; the fiber runs outside the
        // kernel's guard.
        faults::aside(|| {
            // SAFETY: the stack was prepared for a thread, or was saved when the fiber ran last.
            unsafe { switch(&raw mut turn.worker, to) }
        });
        TURN.set(before);
        let thread = &mut self.threads[number];
        if thread.state == State::Ended {
            stacks.give(thread.stack.take());
        }
    }
}

/// Entry point of a fiber's stack: runs the thread from start to end.
extern "C" fn run_thread() -> ! {
    // SAFETY: the worker that resumes a fiber sets the context, which lives until the fiber yields.
    unsafe {
        let turn = TURN.get();
        let (launch, shared) = (&*(*turn).launch, (*turn).shared);
        (launch.body)((*(*turn).thread).ranks.as_ptr(), shared, launch.context);
        leave(State::Ended);
    }
    unreachable!("a thread that has ended has no more turns")
}

/// Suspends the running fiber.
///
/// # Safety
/// A fiber is running.
unsafe fn leave(state: State) {
    // SAFETY: the context and the fiber live until the worker continues; the worker is suspended where it
    // resumed the fiber.
    unsafe {
        let turn = TURN.get();
        let thread = (*turn).thread;
        (*thread).state = state;
        let worker = (*turn).worker;
        match &mut (*thread).stack {
            Some(stack) => switch(&raw mut stack.at, worker),
            None => unreachable!("a thread that has its turn has a stack"),
        }
    }
}

/// Barrier of the block, or of the warp if `warp`.
#[unsafe(no_mangle)]
extern "C" fn gr_turn_meet(warp: bool) {
    let state = match warp {
        true => State::MeetsWarp,
        false => State::MeetsBlock,
    };
    if !TURN.get().is_null() {
        // SAFETY: a fiber is running.
        unsafe { leave(state) }
    }
}

/// Yields after a failed poll in a spin loop.
#[unsafe(no_mangle)]
extern "C" fn gr_turn_wait() {
    match TURN.get().is_null() {
        true => std::thread::yield_now(),
        // SAFETY: a fiber is running.
        false => unsafe { leave(State::Looks) },
    }
}

#[cfg(test)]
#[path = "fiber_tests.rs"]
mod tests;
