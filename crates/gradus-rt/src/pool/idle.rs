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

use super::handed::{self, GLANCES, Head};
use super::{cores, gr_awake, help};
use crate::waiting::{AWAKE, LOOKS};
use std::cell::{Cell, OnceCell};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering, fence};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// The least that a worker stays awake.
const DOZE: Duration = Duration::from_micros(6);
/// So many other workers are asked whether they look for work, before it is left for any of them to find: looking
/// at what each of very many has would take longer.
const REACH: usize = 4;

/// What a hand holds that is not open. Only its worker opens it, by writing [`open`] there.
const SHUT: *mut Head = null_mut();

/// What an open hand holds.
fn open() -> *mut Head {
    without_provenance_mut(1)
}

/// The workers of one pool, as far as they sleep.
#[derive(Debug)]
pub(super) struct Idlers {
    /// The processor of the thread that made the pool, and worked on while the workers began.
    maker: i32,
    asleep: AtomicUsize,
    beds: Box<[Bed]>,
}

/// Where one worker takes work from another one's hands, and where it sleeps.
#[derive(Debug, Default)]
struct Bed {
    hand: Hand,
    /// The worker sleeps, or is about to.
    taken: AtomicBool,
    worker: OnceLock<Thread>,
    /// The processor of the thread that woke it last.
    caller: AtomicI32,
}

/// The worker's hand: [`SHUT`], [`open`], or a piece of work that it was given.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Hand(AtomicPtr<Head>);

impl Hand {
    /// Changes what the hand holds from `old` to `new`.
    fn change(&self, old: *mut Head, new: *mut Head) -> bool {
        self.0
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

/// A piece of work in another worker's hand.
pub(super) struct Given {
    hand: &'static Hand,
    piece: *mut Head,
}

impl Given {
    /// Takes the piece back, if its worker has not begun.
    pub(super) fn take_back(&self) -> bool {
        self.hand.change(self.piece, SHUT)
    }
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
        let bed = self.bed();
        // What was given to it in between stays there for who gave it.
        bed.hand.change(open(), SHUT);
        self.idlers.leave(bed);
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
            looks = looks.wrapping_add(1);
            if self.take_given() || looks % GLANCES == 0 && help() {
                self.idle_since.set(None);
                continue;
            }
            std::hint::spin_loop();
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

    /// Does what another worker has given to this one; whether there was anything.
    fn take_given(&self) -> bool {
        let hand = &self.bed().hand;
        let held = hand.0.load(Ordering::Relaxed);
        if held == SHUT {
            hand.0.store(open(), Ordering::Release);
        }
        let given = held != SHUT && held != open() && hand.change(held, SHUT);
        if given {
            self.rise();
            // SAFETY: a piece that left the hand is this worker's, and who gave it waits.
            unsafe { handed::perform(held) };
        }
        given
    }

    fn sleep(&self) {
        let (idlers, bed) = (self.idlers, self.bed());
        if !bed.hand.change(open(), SHUT) && bed.hand.0.load(Ordering::Relaxed) != SHUT {
            return;
        }
        idlers.enter(bed);
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

/// No processor that a worker would have to leave.
const NOWHERE: i32 = -1;

thread_local! {
    static POST: OnceCell<Post> = const { OnceCell::new() };
}

impl Idlers {
    /// For a pool of so many workers, which lives as long as the program; the thread that makes it may be one of
    /// them.
    pub(super) fn new(workers: usize, maker_works: bool) -> &'static Idlers {
        Box::leak(Box::new(Idlers {
            maker: if maker_works { cores::here() } else { NOWHERE },
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

    /// The worker of `bed` is about to sleep, and looks for work once more.
    fn enter(&self, bed: &Bed) {
        // Counted before the bed is taken: whoever wakes this worker counts it off, and another sleeper would be
        // missed by a call for all if that came first.
        self.asleep.fetch_add(1, Ordering::SeqCst);
        gr_awake.fetch_sub(1, Ordering::Relaxed);
        if bed.taken.swap(true, Ordering::AcqRel) {
            // It waits twice: for a piece of work, and within for another one.
            self.asleep.fetch_sub(1, Ordering::Relaxed);
            gr_awake.fetch_add(1, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
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
            // A thread that is no worker sleeps while the pool works: its processor is free.
            let works = rayon_core::current_thread_index().is_some();
            let caller = if works { cores::here() } else { NOWHERE };
            bed.caller.store(caller, Ordering::Relaxed);
            worker.unpark();
        }
        woken
    }

    /// Gives a piece of work to a worker that looks for some, if there is one near.
    ///
    /// # Safety
    /// The piece stays where it is until it was taken back or has ended.
    pub(super) unsafe fn give(&'static self, piece: *mut Head) -> Option<Given> {
        let own = rayon_core::current_thread_index()?;
        let others = (1..self.beds.len().min(REACH + 1)).map(|k| (own + k) % self.beds.len());
        let given = |other: usize| {
            let hand = &self.beds[other].hand;
            hand.change(open(), piece).then_some(Given { hand, piece })
        };
        others.into_iter().find_map(given)
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

/// Has a worker of `idlers` that waits for another one's work sleep until that is `done`, or there is more to do.
pub(super) fn sleep_until(idlers: &'static Idlers, done: impl Fn() -> bool) {
    let Some(bed) = rayon_core::current_thread_index().and_then(|k| idlers.beds.get(k)) else {
        return;
    };
    bed.worker.get_or_init(std::thread::current);
    idlers.enter(bed);
    if !help() {
        while bed.taken.load(Ordering::Acquire) && !done() {
            std::thread::park();
        }
    }
    idlers.leave(bed);
}

/// Called first by all work: its worker does not sleep, though it was about to.
pub(super) fn rise() {
    POST.with(|post| {
        if let Some(post) = post.get() {
            post.rise();
        }
    });
}
