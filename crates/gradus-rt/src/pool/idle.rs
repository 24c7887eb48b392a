//! Idle workers of the rayon pool: spinning for a limited time, then asleep until woken.
//!
//! Rayon puts a worker to sleep after some microseconds without work, and waking the worker takes longer
//! than many a parallel loop. Workers therefore never enter rayon's own waiting. From start to program end,
//! each worker searches for work ([`Idlers::attend`]), and a thread that publishes work wakes a sleeping
//! worker ([`Idlers::call`]).
//!
//! # Spin time
//! The spin time depends on the worker's history. If work mostly arrived soon, the worker spins for up to
//! [`AWAKE`], else for a few microseconds only; long serial phases then do not pay for a second thread. In
//! total, spinning is limited to a [`SHARE`]th of the worker's recent work. Otherwise small loops between
//! serial phases, each arriving soon enough, would keep the worker spinning through every serial phase. The
//! arrival time of work is the time of the wake-up call, not of the wake-up. A wake-up takes as long as the
//! spin time, and a worker that included the delay would sleep again after each piece of work.
//!
//! # Number of workers
//! At most as many workers are woken as there are processors ([`Idlers::abreast`]), however many the program
//! requested. A further worker would only displace another worker, and all threads wait for a worker that is
//! preempted in the middle of its share. Exception: all ranks of a team are woken, because ranks wait for
//! each other. (With `GRADUS_FORCE_FORK`, each worker counts as having its own processor.)
//!
//! # No lost wake-ups
//! A worker announces its sleep and then searches once more. A publisher looks for sleepers after
//! publishing. A fence separates the two steps on either side. A call that wakes no worker, because enough
//! are awake, leaves the work to the workers not seen asleep: each searches again, at the latest before
//! sleeping. The main thread, which may be busy elsewhere, is among these; the main thread and every other
//! caller run their own work while waiting. For work of a thread that cannot run the work itself, a sleeper
//! is always woken ([`Idlers::call_in`]).

use crate::backoff::{AWAKE, LOOKS};
use crate::pool::direct_handoff;
use crate::pool::direct_handoff::{GLANCES, Head};
use crate::pool::{current_cpu, gr_always_fork, gr_awake, help, processors, wish};
use std::cell::{Cell, OnceCell};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence,
};
use std::thread::Thread;
use std::time::Instant;

/// Minimum spin time of a worker.
const DOZE_NANOS: u64 = 6_000;
const AWAKE_NANOS: u64 = AWAKE.as_nanos() as u64;
/// Work time per unit of spin time.
const SHARE: u64 = 16;
/// Upper bound on accumulated spin time: earned by 16 ms of work.
const CREDIT_NANOS: u64 = 1_000_000;
/// Number of other workers whose mailbox is polled before work is published to all; polling very many
/// mailboxes would take longer.
const REACH: usize = 4;

/// A closed mailbox. Only the owner opens the mailbox, by writing [`open`].
const SHUT: *mut Head = null_mut();

/// An open, empty mailbox.
fn open() -> *mut Head {
    without_provenance_mut(1)
}

/// The sleep state of a pool's workers.
#[derive(Debug)]
pub(super) struct Idlers {
    /// Processor of the thread that created the pool, and that worked on while the workers started.
    maker: i32,
    begin: Instant,
    /// Upper bound on workers woken for loops and tasks.
    abreast: usize,
    asleep: AtomicUsize,
    beds: Box<[Bed]>,
}

/// Mailbox and park slot of a worker.
#[derive(Debug, Default)]
struct Bed {
    hand: Hand,
    /// The worker sleeps, or is about to.
    taken: AtomicBool,
    worker: OnceLock<Thread>,
    /// Processor of the last waker.
    caller: AtomicI32,
    /// Time of the last wake-up call, in nanoseconds since [`Idlers::begin`].
    called: AtomicU64,
}

/// A worker's mailbox: [`SHUT`], [`open`], or a piece of work.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Hand(AtomicPtr<Head>);

impl Hand {
    /// Replaces the contents `old` by `new`; returns whether the mailbox held `old`.
    fn change(&self, old: *mut Head, new: *mut Head) -> bool {
        self.0
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

/// A piece of work in another worker's mailbox.
pub(super) struct Given {
    hand: &'static Hand,
    piece: *mut Head,
}

impl Given {
    /// Withdraws the piece, if the receiver has not started it.
    pub(super) fn take_back(&self) -> bool {
        self.hand.change(self.piece, SHUT)
    }
}

/// A thread that serves a pool.
struct Post {
    idlers: &'static Idlers,
    index: usize,
    /// Start of the idle phase, in nanoseconds since [`Idlers::begin`].
    idle_since: Cell<Option<u64>>,
    /// Spin time, in nanoseconds.
    patience: Cell<u64>,
    /// Start of the busy phase, in nanoseconds since [`Idlers::begin`].
    risen: Cell<u64>,
    /// Remaining spin time earned by work, in nanoseconds.
    credit: Cell<u64>,
}

impl Post {
    fn bed(&self) -> &'static Bed {
        &self.idlers.beds[self.index]
    }

    /// Records the arrival of work: doubles the spin time if the work arrived soon, else halves it.
    fn rise(&self) {
        let bed = self.bed();
        // A piece delivered in between stays for its sender.
        bed.hand.change(open(), SHUT);
        self.idlers.leave(bed);
        if let Some(since) = self.idle_since.take() {
            // The waker stored the time before the wake-up; earlier calls do not belong to this idle phase.
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

    /// Records the start of an idle phase: work done earns further spin time.
    fn idle(&self) {
        let now = self.idlers.now();
        self.idle_since.set(Some(now));
        let earned = (now - self.risen.replace(now)) / SHARE;
        self.credit
            .set(CREDIT_NANOS.min(self.credit.get() + earned));
    }

    /// Returns whether the spin time since `since` is used up.
    fn has_waited(&self, since: u64) -> bool {
        let allowed = self.patience.get().min(self.credit.get()).max(DOZE_NANOS);
        self.idlers.now() - since > allowed
    }

    /// Runs the pool's work until none arrived for the spin time.
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

    /// Runs a piece from the mailbox; returns whether there was a piece.
    fn take_given(&self) -> bool {
        let hand = &self.bed().hand;
        let held = hand.0.load(Ordering::Relaxed);
        if held == SHUT {
            hand.0.store(open(), Ordering::Release);
        }
        let given = held != SHUT && held != open() && hand.change(held, SHUT);
        if given {
            self.rise();
            // SAFETY: a piece taken from the mailbox belongs to the calling worker, and its sender waits.
            unsafe { direct_handoff::perform(held) };
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
        // Any work found calls `rise` first.
        help();
        let mut slept = false;
        while bed.taken.load(Ordering::Acquire) {
            std::thread::park();
            slept = true;
        }
        if slept {
            current_cpu::leave(bed.caller.load(Ordering::Relaxed), idlers.abreast);
        }
    }
}

/// No processor to leave.
const NOWHERE: i32 = -1;

thread_local! {
    static POST: OnceCell<Post> = const { OnceCell::new() };
}

impl Idlers {
    /// Creates the state for a pool of `workers` workers, which lives until program end. With `maker_works`,
    /// the calling thread is one of the workers.
    pub(super) fn new(workers: usize, maker_works: bool) -> &'static Idlers {
        Box::leak(Box::new(Idlers {
            maker: if maker_works {
                current_cpu::here()
            } else {
                NOWHERE
            },
            begin: Instant::now(),
            abreast: match gr_always_fork.load(Ordering::Relaxed) {
                0 => workers.min(processors()),
                _ => workers,
            },
            asleep: AtomicUsize::new(0),
            beds: (0..workers).map(|_| Bed::default()).collect(),
        }))
    }

    /// Nanoseconds since [`Idlers::begin`].
    fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// The number of concurrently active workers.
    pub(super) fn abreast(&self) -> usize {
        self.abreast
    }

    /// The main loop of worker `index`.
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
            current_cpu::leave(self.maker, self.abreast);
            gr_awake.fetch_add(1, Ordering::Relaxed);
            loop {
                post.look();
                post.sleep();
            }
        })
    }

    /// Marks the worker of `bed` as about to sleep; the worker then searches once more.
    fn enter(&self, bed: &Bed) {
        // The count is incremented before the slot is marked. A waker decrements the count, and with the
        // reverse order a call for all workers would miss another sleeper.
        self.asleep.fetch_add(1, Ordering::SeqCst);
        gr_awake.fetch_sub(1, Ordering::Relaxed);
        if bed.taken.swap(true, Ordering::AcqRel) {
            // The slot is marked already: the worker waits for a piece, and inside for another piece.
            self.asleep.fetch_sub(1, Ordering::Relaxed);
            gr_awake.fetch_add(1, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
    }

    /// Marks the worker of `bed` as awake; returns whether the mark changed.
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
            // Stored before the wake-up, because the woken worker reads the time.
            bed.called.store(self.now(), Ordering::Relaxed);
        }
        let woken = self.leave(bed);
        if let Some(worker) = bed.worker.get().filter(|_| woken) {
            // A thread outside the pool sleeps while the pool works: its processor is free.
            let works = rayon_core::current_thread_index().is_some();
            let caller = if works { current_cpu::here() } else { NOWHERE };
            bed.caller.store(caller, Ordering::Relaxed);
            worker.unpark();
        }
        woken
    }

    /// Delivers a piece to a spinning worker nearby, if any.
    ///
    /// # Safety
    /// The piece stays in place until withdrawn or ended.
    pub(super) unsafe fn give(&'static self, piece: *mut Head) -> Option<Given> {
        let own = rayon_core::current_thread_index()?;
        let others = (1..self.beds.len().min(REACH + 1)).map(|k| (own + k) % self.beds.len());
        let given = |other: usize| {
            let hand = &self.beds[other].hand;
            hand.change(open(), piece).then_some(Given { hand, piece })
        };
        others.into_iter().find_map(given)
    }

    /// The number of workers asleep or about to sleep, as seen after publishing work.
    fn sleepers(&self) -> usize {
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed)
    }

    /// Returns whether fewer workers are awake than allowed.
    fn has_room(&self, sleepers: usize) -> bool {
        sleepers + self.abreast > self.beds.len()
    }

    /// Returns whether more workers are awake than allowed, as with the ranks of a team.
    fn is_too_many(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) + self.abreast < self.beds.len()
    }

    /// Announces published work for one more worker. The caller is a worker and runs the work itself if no
    /// other worker arrives.
    pub(super) fn call(&self) {
        let sleepers = self.sleepers();
        if sleepers > 0 && self.has_room(sleepers) {
            self.call_one();
        }
    }

    /// Announces published work that the caller cannot run itself.
    pub(super) fn call_in(&self) {
        if self.sleepers() > 0 {
            self.call_one();
        }
    }

    #[cold]
    fn call_one(&self) {
        let _ = self.beds.iter().any(|bed| self.wake(bed));
    }

    /// Announces published work for every worker.
    pub(super) fn call_all(&self) {
        if self.sleepers() > 0 {
            for bed in &self.beds {
                self.wake(bed);
            }
        }
    }
}

/// The pool that the calling thread serves.
pub(super) fn here() -> Option<&'static Idlers> {
    POST.with(|post| post.get().map(|post| post.idlers))
}

/// Sleeps on a worker of `idlers`, which waits for another worker, until `done` holds or more work arrives.
pub(super) fn sleep_until(idlers: &'static Idlers, done: impl Fn() -> bool) {
    let Some(bed) = rayon_core::current_thread_index().and_then(|k| idlers.beds.get(k)) else {
        // Not an error: a thread outside the pool's workers polls.
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

/// Called first by every piece of work: the worker stays awake, although about to sleep.
pub(super) fn rise() {
    POST.with(|post| {
        if let Some(post) = post.get() {
            post.rise();
        }
    });
}
