//! Kernels whose threads wait for each other in loops: each thread has a stack of its own, and threads take turns.
//!
//! A thread runs until it meets others ([`gr_turn_meet`]), looks in vain for what another one will write
//! ([`gr_turn_wait`]), or ends; then the next one has its turn. A thread that ends leaves its stack to one that has
//! not begun, so that as many stacks are in use as there are threads under way. A worker begins a block when those
//! that it has begun all wait, in the blocks' order: who waits for an earlier block waits for one that is under way
//! or has ended, and who waits for a later one comes to see it begun.

use super::faults;
use super::stacks::{Stack, Stacks, switch};
use crate::ranges::gr_for;
use crate::waiting;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, Ordering};

/// The code of one thread: its block's ranks and its own, three each, its block's memory, and the launch's values.
pub type TurnBody =
    unsafe extern "C" fn(ranks: *const i64, shared: *mut c_void, context: *mut c_void);

/// The threads of a warp.
const WARP: usize = 32;
/// Rounds in vain after which a worker that could begin another block does.
const PATIENCE: u32 = 64;
/// The alignment of a block's memory, in bytes.
const SHARED_ALIGN: usize = 64;

/// What all blocks of a launch have in common.
struct Launch {
    grid: [i64; 3],
    block: [i64; 3],
    shared_bytes: usize,
    body: TurnBody,
    context: *mut c_void,
    /// The block to begin next.
    next: AtomicI64,
}

/// What a thread is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It can go on, or begin.
    Ready,
    /// It looked in vain, and may look again.
    Looks,
    /// It has come to where all threads of its block meet.
    MeetsBlock,
    /// It has come to where all threads of its warp meet.
    MeetsWarp,
    Ended,
}

struct Thread {
    state: State,
    /// Where it stands, once it has begun.
    stack: Option<Stack>,
    ranks: [i64; 6],
}

/// Those who meet: how many there are, and how many have come.
#[derive(Clone, Copy, Default)]
struct Group {
    here: usize,
    come: usize,
}

impl Group {
    /// Whether all have come, who then go on.
    fn is_met(&mut self) -> bool {
        let met = self.here > 0 && self.come == self.here;
        if met {
            self.come = 0;
        }
        met
    }
}

/// A block that has begun.
struct Block {
    threads: Vec<Thread>,
    all: Group,
    warps: Vec<Group>,
    shared: *mut c_void,
}

/// What the thread that has its turn needs to know.
struct Turn {
    launch: *const Launch,
    thread: *mut Thread,
    shared: *mut c_void,
    /// Where the worker stands that gave it its turn.
    worker: *mut c_void,
}

thread_local! {
    static TURN: Cell<*mut Turn> = const { Cell::new(null_mut()) };
}

/// Runs `body` for each thread of a grid; `extents` are the sizes of grid and block, three each. Returns when all
/// have ended.
///
/// # Safety
/// There are six extents, none below 1. `body` may be called for each thread with `context`, on any thread of the
/// system, in turns, and does not unwind.
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
    // SAFETY: `work` takes any range; the launch is there until all of its blocks have ended.
    unsafe { gr_for(0, workers, 1, work, launch.cast_mut().cast()) };
}

/// One worker's part: blocks, until none is left to begin and its own have ended.
unsafe extern "C" fn work(_: i64, _: i64, launch: *mut c_void) {
    // SAFETY: `gr_turns` gave it.
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
                // SAFETY: `begin` took it, and no thread of the block is left.
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
            waiting::pause(vain);
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
            super::stacks::give_up("no memory for what the threads of a block share");
        }
        Block {
            all: warp(&threads),
            warps: threads.chunks(WARP).map(warp).collect(),
            threads,
            shared,
        }
    }

    /// Gives each thread that can go on its turn; whether any came further.
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
            super::stacks::give_up(
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

    /// Runs a thread until it waits or ends.
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
        // SAFETY: the stack was made for a thread, or is where it stood when it had its last turn.
        // A fault on the thread's own stack cannot continue on this one.
        faults::aside(|| {
            // SAFETY: the stack was made for a thread, or is as its last turn left it.
            unsafe { switch(&raw mut turn.worker, to) }
        });
        TURN.set(before);
        let thread = &mut self.threads[number];
        if thread.state == State::Ended {
            stacks.give(thread.stack.take());
        }
    }
}

/// What runs on a thread's stack: the thread from its beginning to its end.
extern "C" fn run_thread() -> ! {
    // SAFETY: whoever gives a thread its turn sets it, and it is there until the turn ends.
    unsafe {
        let turn = TURN.get();
        let (launch, shared) = (&*(*turn).launch, (*turn).shared);
        (launch.body)((*(*turn).thread).ranks.as_ptr(), shared, launch.context);
        leave(State::Ended);
    }
    unreachable!("a thread that has ended has no more turns")
}

/// Ends the turn of the thread that has it.
///
/// # Safety
/// Some thread has its turn.
unsafe fn leave(state: State) {
    // SAFETY: the turn is there until the worker goes on, and so is its thread; the worker stands where it gave
    // the turn.
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

/// A thread comes to where all of its block meet, or all of its warp.
#[unsafe(no_mangle)]
extern "C" fn gr_turn_meet(warp: bool) {
    let state = match warp {
        true => State::MeetsWarp,
        false => State::MeetsBlock,
    };
    if !TURN.get().is_null() {
        // SAFETY: a thread has its turn.
        unsafe { leave(state) }
    }
}

/// A thread has looked in vain for what another one will write, and is about to look again.
#[unsafe(no_mangle)]
extern "C" fn gr_turn_wait() {
    match TURN.get().is_null() {
        true => std::thread::yield_now(),
        // SAFETY: a thread has its turn.
        false => unsafe { leave(State::Looks) },
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
