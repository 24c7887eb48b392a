//! Workers of our own pool that have nothing to do: awake for a while, then asleep until called.
//!
//! Rayon puts a worker to sleep after some microseconds without work, and calling it back takes longer than
//! many a parallel loop. So our workers never come to rayon's own waiting: from its start to the end of the
//! program each of them looks for work ([`Idlers::attend`]), and whoever leaves work for others to take calls
//! one of those that sleep ([`Idlers::call`]).
//!
//! How long a worker stays awake depends on what it had of it: where work came soon, most often, it looks for
//! up to [`AWAKE`], else for a few microseconds only, so that a program with long stretches of serial code
//! does not pay for a second thread in each of them. All that it waits awake, however soon work came each time, is at most
//! a [`SHARE`]th of the work that it did lately: small loops between stretches of serial code, each of which comes soon
//! enough, would keep it awake through all of these and have little for it. Work comes when the worker is called, not when it has woken up: that
//! takes as long as it might have stayed awake, and a worker that reckoned it in would sleep again after each piece of
//! work.
//!
//! No more workers are called than there are processors ([`Idlers::abreast`]), however many the program asked for: what
//! one more does in loops and tasks, another one does not do meanwhile, and who is taken off its processor in the middle
//! of its part is waited for by all. Only a team's ranks, which wait for each other, are called all. (Where everything
//! forks, to be tested, workers come as if each had a processor.)
//!
//! No call is lost: who goes to sleep says so and then looks once more, who leaves work looks for sleepers
//! after it is there, and fences stand between the two steps of either. So a call that wakes nobody, as enough are awake,
//! leaves the work to those whom it has not seen asleep: each of them comes to look for work again, at the latest
//! before it sleeps. The main thread, which may be awake elsewhere, is one of them; it and whoever else calls waits for
//! its own work by doing it. For work of a thread that cannot do that itself, a sleeper is woken in any case
//! ([`Idlers::call_in`]).

use super::handed::{self, GLANCES, Head};
use super::{cores, gr_always_fork, gr_awake, help, processors, wish};
use crate::waiting::{AWAKE, LOOKS};
use std::cell::{Cell, OnceCell};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence,
};
use std::thread::Thread;
use std::time::Instant;

/// The least that a worker stays awake.
const DOZE_NANOS: u64 = 6_000;
const AWAKE_NANOS: u64 = AWAKE.as_nanos() as u64;
/// For so many nanoseconds of work a worker may wait awake for one.
const SHARE: u64 = 16;
/// As long as a worker may wait awake for work that it did before, at most: for what it did in 16 ms.
const CREDIT_NANOS: u64 = 1_000_000;
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
    begin: Instant,
    /// So many are called at most for loops and tasks.
    abreast: usize,
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
    /// When it was called last, in nanoseconds since [`Idlers::begin`].
    called: AtomicU64,
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
    /// Since when it has nothing to do, in nanoseconds since [`Idlers::begin`].
    idle_since: Cell<Option<u64>>,
    /// How long it stays awake, in nanoseconds.
    patience: Cell<u64>,
    /// Since when it has had work, in nanoseconds since [`Idlers::begin`].
    risen: Cell<u64>,
    /// How long it may still wait awake for the work that it did, in nanoseconds.
    credit: Cell<u64>,
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
            // Who woke it wrote when before it was called; older calls tell nothing of this time.
            let called = bed.called.load(Ordering::Relaxed);
            let now = self.idlers.now();
            let waited = if called > since { called } else { now } - since;
            let patience = self.patience.get();
            self.patience.set(match waited <= AWAKE_NANOS {
                true => AWAKE_NANOS.min(patience * 2),
                false => DOZE_NANOS.max(patience / 2),
            });
            let awake = waited.min(AWAKE_NANOS);
            self.credit.set(self.credit.get().saturating_sub(awake));
            self.risen.set(now);
        }
    }

    /// There is no work from now on: what it did lets it wait for more.
    fn idle(&self) {
        let now = self.idlers.now();
        self.idle_since.set(Some(now));
        let earned = (now - self.risen.replace(now)) / SHARE;
        self.credit
            .set(CREDIT_NANOS.min(self.credit.get() + earned));
    }

    /// Whether it has waited for as long as it may since then.
    fn has_waited(&self, since: u64) -> bool {
        let allowed = self.patience.get().min(self.credit.get()).max(DOZE_NANOS);
        self.idlers.now() - since > allowed
    }

    /// Does the pool's work until there was none for as long as this worker waits.
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
                self.idle();
            } else if looks % LOOKS == 0
                && (self.idlers.is_too_many() || since.is_some_and(|since| self.has_waited(since)))
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
        wish(idlers.abreast);
        // What is found begins with `rise`.
        help();
        let mut slept = false;
        while bed.taken.load(Ordering::Acquire) {
            std::thread::park();
            slept = true;
        }
        if slept {
            cores::leave(bed.caller.load(Ordering::Relaxed), idlers.abreast);
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
            begin: Instant::now(),
            abreast: match gr_always_fork.load(Ordering::Relaxed) {
                0 => workers.min(processors()),
                _ => workers,
            },
            asleep: AtomicUsize::new(0),
            beds: (0..workers).map(|_| Bed::default()).collect(),
        }))
    }

    /// Nanoseconds since its begin.
    fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// So many workers are at work at once.
    pub(super) fn abreast(&self) -> usize {
        self.abreast
    }

    /// What worker `index` does from its start on.
    pub(super) fn attend(&'static self, index: usize) -> ! {
        POST.with(|post| {
            let post = post.get_or_init(|| Post {
                idlers: self,
                index,
                idle_since: Cell::new(None),
                patience: Cell::new(AWAKE_NANOS),
                risen: Cell::new(self.now()),
                credit: Cell::new(CREDIT_NANOS),
            });
            post.bed().worker.get_or_init(std::thread::current);
            cores::leave(self.maker, self.abreast);
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
        if bed.taken.load(Ordering::Relaxed) {
            // Before the bed is left: who finds itself called reads it.
            bed.called.store(self.now(), Ordering::Relaxed);
        }
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

    /// Those that sleep, and others that are about to, as who leaves work sees them.
    fn sleepers(&self) -> usize {
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed)
    }

    /// Whether fewer are awake than may be.
    fn has_room(&self, sleepers: usize) -> bool {
        sleepers + self.abreast > self.beds.len()
    }

    /// Whether more are awake than should be, as the ranks of a team are.
    fn is_too_many(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) + self.abreast < self.beds.len()
    }

    /// There is work for one more: called when it can be taken, by a worker who does it itself if nobody comes.
    pub(super) fn call(&self) {
        let sleepers = self.sleepers();
        if sleepers > 0 && self.has_room(sleepers) {
            self.call_one();
        }
    }

    /// There is work for one: called when it can be taken.
    pub(super) fn call_in(&self) {
        if self.sleepers() > 0 {
            self.call_one();
        }
    }

    #[cold]
    fn call_one(&self) {
        let _ = self.beds.iter().any(|bed| self.wake(bed));
    }

    /// There is work for each of them.
    pub(super) fn call_all(&self) {
        if self.sleepers() > 0 {
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
        // Not an error: a thread that is none of the pool's workers polls.
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
