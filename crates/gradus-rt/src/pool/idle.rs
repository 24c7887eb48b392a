//! Workers of our own pool that have nothing to do: awake for a while, then asleep until called.
//!
//! Rayon puts a worker to sleep after some microseconds without work, and calling it back takes longer than
//! many a parallel loop. So our workers never come to rayon's own waiting: from its start to the end of the
//! program each of them looks for work ([`Idlers::attend`]), and whoever leaves work for others to take calls
//! one of those that sleep ([`Idlers::call`]).
//!
//! No call is lost: who goes to sleep says so and then looks once more, who leaves work looks for sleepers
//! after it is there, and fences stand between the two steps of either.

use super::gr_awake;
use crate::waiting;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::thread::Thread;

/// The workers of one pool, as far as they sleep.
#[derive(Debug)]
pub(super) struct Idlers {
    asleep: AtomicUsize,
    beds: Box<[Bed]>,
}

/// Where one worker sleeps.
#[derive(Debug, Default)]
struct Bed {
    /// The worker sleeps, or is about to.
    taken: AtomicBool,
    worker: OnceLock<Thread>,
}

/// This thread's pool and its number there, where it is one that attends.
type Post = (&'static Idlers, usize);

thread_local! {
    static POST: Cell<Option<Post>> = const { Cell::new(None) };
}

impl Idlers {
    /// For a pool of so many workers, which lives as long as the program.
    pub(super) fn new(workers: usize) -> &'static Idlers {
        Box::leak(Box::new(Idlers {
            asleep: AtomicUsize::new(0),
            beds: (0..workers).map(|_| Bed::default()).collect(),
        }))
    }

    /// What worker `index` does from its start on.
    pub(super) fn attend(&'static self, index: usize) -> ! {
        POST.set(Some((self, index)));
        let bed = &self.beds[index];
        bed.worker.get_or_init(std::thread::current);
        gr_awake.fetch_add(1, Ordering::Relaxed);
        loop {
            waiting::look(|| false);
            self.sleep(bed);
        }
    }

    fn sleep(&self, bed: &Bed) {
        gr_awake.fetch_sub(1, Ordering::Relaxed);
        bed.taken.store(true, Ordering::Relaxed);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        // What is found begins with `rise`.
        super::help();
        while bed.taken.load(Ordering::Acquire) {
            std::thread::park();
        }
    }

    /// Wakes the worker of `bed`, unless it is awake or somebody else does.
    fn leave(&self, bed: &Bed) -> bool {
        let leaves = bed.taken.load(Ordering::Relaxed) && bed.taken.swap(false, Ordering::AcqRel);
        if leaves {
            self.asleep.fetch_sub(1, Ordering::Relaxed);
            gr_awake.fetch_add(1, Ordering::Relaxed);
        }
        leaves
    }

    fn wake(&self, bed: &Bed) -> bool {
        let woken = self.leave(bed);
        if let Some(worker) = bed.worker.get().filter(|_| woken) {
            worker.unpark();
        }
        woken
    }

    fn has_sleepers(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed) > 0
    }

    /// There is work for one more: called when it can be taken.
    pub(super) fn call(&self) {
        if self.has_sleepers() {
            self.call_one();
        }
    }

    #[cold]
    fn call_one(&self) {
        let _ = self.beds.iter().any(|bed| self.wake(bed));
    }

    /// There is work for each of them.
    pub(super) fn call_all(&self) {
        if self.has_sleepers() {
            for bed in &self.beds {
                self.wake(bed);
            }
        }
    }
}

/// The pool that this thread attends to.
pub(super) fn here() -> Option<&'static Idlers> {
    POST.get().map(|(idlers, _)| idlers)
}

/// Called first by all work: its worker does not sleep, though it was about to.
pub(super) fn rise() {
    if let Some((idlers, index)) = POST.get() {
        idlers.leave(&idlers.beds[index]);
    }
}
