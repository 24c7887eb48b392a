//! Workers of our own pool that have nothing to do: awake for a while, then asleep until called.
//!
//! Rayon puts a worker to sleep after some microseconds without work, and calling it back takes longer than
//! many a parallel loop. So our workers never come to rayon's own waiting: from its start to the end of the
//! program each of them looks for work ([`Idlers::attend`]), and whoever leaves work for others to take calls
//! one of those that sleep ([`Idlers::call`]).
//!
//! How long a worker stays awake depends on what it had of it: where work came soon, most often, it looks for
//! up to [`AWAKE`], else for a few microseconds only, so that a program with long stretches of serial code
//! does not pay for a second thread in each of them.
//!
//! No call is lost: who goes to sleep says so and then looks once more, who leaves work looks for sleepers
//! after it is there, and fences stand between the two steps of either.

use super::{cores, gr_awake, help};
use crate::waiting::{AWAKE, LOOKS};
use std::cell::{Cell, OnceCell};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering, fence};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// The least that a worker stays awake.
const DOZE: Duration = Duration::from_micros(6);

/// The workers of one pool, as far as they sleep.
#[derive(Debug)]
pub(super) struct Idlers {
    /// The processor of the thread that made the pool, and worked on while the workers began.
    maker: i32,
    asleep: AtomicUsize,
    beds: Box<[Bed]>,
}

/// Where one worker sleeps.
#[derive(Debug, Default)]
struct Bed {
    /// The worker sleeps, or is about to.
    taken: AtomicBool,
    worker: OnceLock<Thread>,
    /// The processor of the thread that woke it last.
    caller: AtomicI32,
}

/// A thread that attends to a pool.
struct Post {
    idlers: &'static Idlers,
    index: usize,
    /// Since when it has nothing to do.
    idle_since: Cell<Option<Instant>>,
    /// How long it stays awake.
    patience: Cell<Duration>,
}

impl Post {
    fn bed(&self) -> &'static Bed {
        &self.idlers.beds[self.index]
    }

    /// There is work: twice as long awake from now on if it came soon, half as long if it did not.
    fn rise(&self) {
        self.idlers.leave(self.bed());
        if let Some(since) = self.idle_since.take() {
            let patience = self.patience.get();
            self.patience.set(match since.elapsed() <= AWAKE {
                true => AWAKE.min(patience * 2),
                false => DOZE.max(patience / 2),
            });
        }
    }

    /// Does the pool's work until there was none for as long as this worker's patience.
    fn look(&self) {
        let mut looks = 0_u32;
        loop {
            if help() {
                self.idle_since.set(None);
                continue;
            }
            std::hint::spin_loop();
            looks = looks.wrapping_add(1);
            let since = self.idle_since.get();
            if since.is_none() {
                self.idle_since.set(Some(Instant::now()));
            } else if looks % LOOKS == 0
                && since.is_some_and(|since| since.elapsed() > self.patience.get())
            {
                return;
            }
        }
    }

    fn sleep(&self) {
        let (idlers, bed) = (self.idlers, self.bed());
        gr_awake.fetch_sub(1, Ordering::Relaxed);
        // Counted before the bed is taken: whoever wakes this worker counts it off, and another sleeper would be
        // missed by a call for all if that came first.
        idlers.asleep.fetch_add(1, Ordering::SeqCst);
        bed.taken.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        // What is found begins with `rise`.
        help();
        let mut slept = false;
        while bed.taken.load(Ordering::Acquire) {
            std::thread::park();
            slept = true;
        }
        if slept {
            cores::leave(bed.caller.load(Ordering::Relaxed), idlers.beds.len());
        }
    }
}

thread_local! {
    static POST: OnceCell<Post> = const { OnceCell::new() };
}

impl Idlers {
    /// For a pool of so many workers, which lives as long as the program.
    pub(super) fn new(workers: usize) -> &'static Idlers {
        Box::leak(Box::new(Idlers {
            maker: cores::here(),
            asleep: AtomicUsize::new(0),
            beds: (0..workers).map(|_| Bed::default()).collect(),
        }))
    }

    /// What worker `index` does from its start on.
    pub(super) fn attend(&'static self, index: usize) -> ! {
        POST.with(|post| {
            let post = post.get_or_init(|| Post {
                idlers: self,
                index,
                idle_since: Cell::new(None),
                patience: Cell::new(AWAKE),
            });
            post.bed().worker.get_or_init(std::thread::current);
            cores::leave(self.maker, self.beds.len());
            gr_awake.fetch_add(1, Ordering::Relaxed);
            loop {
                post.look();
                post.sleep();
            }
        })
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
            bed.caller.store(cores::here(), Ordering::Relaxed);
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
    POST.with(|post| post.get().map(|post| post.idlers))
}

/// Called first by all work: its worker does not sleep, though it was about to.
pub(super) fn rise() {
    POST.with(|post| {
        if let Some(post) = post.get() {
            post.rise();
        }
    });
}
