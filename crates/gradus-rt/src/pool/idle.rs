//! Idle workers of the rayon pool: spinning for a limited time, then asleep until woken.
//!
//! Rayon puts a worker to sleep after some microseconds without work, and waking the worker takes longer
//! than many a parallel loop. Workers therefore never enter rayon's own waiting. From start to program end,
//! each worker searches for work ([`IdleWorkers::worker_loop`]), and a thread that publishes work wakes a sleeping
//! worker ([`IdleWorkers::wake_if_allowed`]).
//!
//! # Spin time
//! The spin time depends on the worker's history. If work mostly arrived soon, the worker spins for up to
//! [`MAX_SPIN`], else for a few microseconds only; long serial phases then do not pay for a second thread. In
//! total, spinning is limited to a [`WORK_PER_SPIN`]th of the worker's recent work. Otherwise small loops between
//! serial phases, each arriving soon enough, would keep the worker spinning through every serial phase. The
//! arrival time of work is the time of the wake-up call, not of the wake-up. A wake-up takes as long as the
//! spin time, and a worker that included the delay would sleep again after each piece of work.
//!
//! # Number of workers
//! At most as many workers are woken as there are processors ([`IdleWorkers::max_active`]), however many the program
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
//! is always woken ([`IdleWorkers::wake_one_always`]).

use crate::pool::backoff::{MAX_SPIN, POLLS_PER_CLOCK};
use crate::pool::direct_handoff;
use crate::pool::direct_handoff::{Head, POLLS_PER_STEAL};
use crate::pool::{
    current_cpu, gr_always_fork, gr_awake, processors, request_extra_tasks, run_one_task,
};
use std::cell::{Cell, OnceCell};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence,
};
use std::thread::Thread;
use std::time::Instant;

/// Minimum spin time of a worker.
const MIN_SPIN_NANOS: u64 = 6_000;
const MAX_SPIN_NANOS: u64 = MAX_SPIN.as_nanos() as u64;
/// Work time per unit of spin time.
const WORK_PER_SPIN: u64 = 16;
/// Upper bound on accumulated spin time: earned by 16 ms of work.
const MAX_CREDIT_NANOS: u64 = 1_000_000;
/// Number of other workers whose mailbox is polled before work is published to all; polling very many
/// mailboxes would take longer.
const MAX_POLLED_MAILBOXES: usize = 4;

/// A closed mailbox. Only the owner opens the mailbox, by writing [`open`].
const CLOSED: *mut Head = null_mut();

/// An open, empty mailbox.
fn open() -> *mut Head {
    without_provenance_mut(1)
}

/// The sleep state of a pool's workers.
#[derive(Debug)]
pub(super) struct IdleWorkers {
    /// Processor of the thread that created the pool, and that worked on while the workers started.
    maker: i32,
    begin: Instant,
    /// Upper bound on workers woken for loops and tasks.
    max_active: usize,
    asleep: AtomicUsize,
    slots: Box<[ParkSlot]>,
}

/// Mailbox and park slot of a worker.
#[derive(Debug, Default)]
struct ParkSlot {
    mailbox: Mailbox,
    /// The worker sleeps, or is about to.
    parked: AtomicBool,
    worker: OnceLock<Thread>,
    /// Processor of the last waker.
    waker_cpu: AtomicI32,
    /// Time of the last wake-up call, in nanoseconds since `begin`.
    woken_at: AtomicU64,
}

/// A worker's mailbox: [`CLOSED`], [`open`], or a piece of work.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Mailbox(AtomicPtr<Head>);

impl Mailbox {
    /// Replaces the contents `old` by `new`; returns whether the mailbox held `old`.
    fn change(&self, old: *mut Head, new: *mut Head) -> bool {
        self.0
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

/// A piece of work in another worker's mailbox.
pub(super) struct PendingHandoff {
    hand: &'static Mailbox,
    piece: *mut Head,
}

impl PendingHandoff {
    /// Withdraws the piece, if the receiver has not started it.
    pub(super) fn withdraw(&self) -> bool {
        self.hand.change(self.piece, CLOSED)
    }
}

/// A thread that serves a pool.
struct PoolMember {
    idlers: &'static IdleWorkers,
    index: usize,
    /// Start of the idle phase, in nanoseconds since `begin`.
    idle_since: Cell<Option<u64>>,
    /// Spin time, in nanoseconds.
    spin_nanos: Cell<u64>,
    /// Start of the busy phase, in nanoseconds since `begin`.
    busy_since: Cell<u64>,
    /// Remaining spin time earned by work, in nanoseconds.
    credit: Cell<u64>,
}

impl PoolMember {
    fn slot(&self) -> &'static ParkSlot {
        &self.idlers.slots[self.index]
    }

    /// Records the arrival of work: doubles the spin time if the work arrived soon, else halves it.
    fn rise(&self) {
        let bed = self.slot();
        // A piece delivered in between stays for its sender.
        bed.mailbox.change(open(), CLOSED);
        self.idlers.mark_awake(bed);
        if let Some(since) = self.idle_since.take() {
            // The waker stored the time before the wake-up; earlier calls do not belong to this idle phase.
            let called = bed.woken_at.load(Ordering::Relaxed);
            let now = self.idlers.now();
            let waited = if called > since { called } else { now } - since;
            let patience = self.spin_nanos.get();
            self.spin_nanos.set(match waited <= MAX_SPIN_NANOS {
                true => MAX_SPIN_NANOS.min(patience * 2),
                false => MIN_SPIN_NANOS.max(patience / 2),
            });
            let awake = waited.min(MAX_SPIN_NANOS);
            self.credit.set(self.credit.get().saturating_sub(awake));
            self.busy_since.set(now);
        }
    }

    /// Records the start of an idle phase: work done earns further spin time.
    fn idle(&self) {
        let now = self.idlers.now();
        self.idle_since.set(Some(now));
        let earned = (now - self.busy_since.replace(now)) / WORK_PER_SPIN;
        self.credit
            .set(MAX_CREDIT_NANOS.min(self.credit.get() + earned));
    }

    /// Returns whether the spin time since `since` is used up.
    fn is_spin_time_over(&self, since: u64) -> bool {
        let allowed = self
            .spin_nanos
            .get()
            .min(self.credit.get())
            .max(MIN_SPIN_NANOS);
        self.idlers.now() - since > allowed
    }

    /// Runs the pool's work until none arrived for the spin time.
    fn run_until_idle(&self) {
        let mut looks = 0_u32;
        loop {
            looks = looks.wrapping_add(1);
            if self.run_from_mailbox() || looks % POLLS_PER_STEAL == 0 && run_one_task() {
                self.idle_since.set(None);
                continue;
            }
            std::hint::spin_loop();
            let since = self.idle_since.get();
            if since.is_none() {
                self.idle();
            } else if looks % POLLS_PER_CLOCK == 0
                && (self.idlers.has_too_many_awake()
                    || since.is_some_and(|since| self.is_spin_time_over(since)))
            {
                return;
            }
        }
    }

    /// Runs a piece from the mailbox; returns whether there was a piece.
    fn run_from_mailbox(&self) -> bool {
        let hand = &self.slot().mailbox;
        let held = hand.0.load(Ordering::Relaxed);
        if held == CLOSED {
            hand.0.store(open(), Ordering::Release);
        }
        let given = held != CLOSED && held != open() && hand.change(held, CLOSED);
        if given {
            self.rise();
            // SAFETY: a piece taken from the mailbox belongs to the calling worker, and its sender waits.
            unsafe { direct_handoff::run_piece(held) };
        }
        given
    }

    fn sleep(&self) {
        let (idlers, bed) = (self.idlers, self.slot());
        if !bed.mailbox.change(open(), CLOSED) && bed.mailbox.0.load(Ordering::Relaxed) != CLOSED {
            return;
        }
        idlers.mark_asleep(bed);
        request_extra_tasks(idlers.max_active);
        // Any work found calls `rise` first.
        run_one_task();
        let mut slept = false;
        while bed.parked.load(Ordering::Acquire) {
            std::thread::park();
            slept = true;
        }
        if slept {
            current_cpu::migrate_off(bed.waker_cpu.load(Ordering::Relaxed), idlers.max_active);
        }
    }
}

/// No processor to leave.
const NO_PROCESSOR: i32 = -1;

thread_local! {
    static POST: OnceCell<PoolMember> = const { OnceCell::new() };
}

impl IdleWorkers {
    /// Creates the state for a pool of `workers` workers, which lives until program end. With `maker_works`,
    /// the calling thread is one of the workers.
    pub(super) fn new(workers: usize, maker_works: bool) -> &'static IdleWorkers {
        Box::leak(Box::new(IdleWorkers {
            maker: if maker_works {
                current_cpu::current()
            } else {
                NO_PROCESSOR
            },
            begin: Instant::now(),
            max_active: match gr_always_fork.load(Ordering::Relaxed) {
                0 => workers.min(processors()),
                _ => workers,
            },
            asleep: AtomicUsize::new(0),
            slots: (0..workers).map(|_| ParkSlot::default()).collect(),
        }))
    }

    /// Nanoseconds since `begin`.
    fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// The number of concurrently active workers.
    pub(super) fn max_active_workers(&self) -> usize {
        self.max_active
    }

    /// The main loop of worker `index`.
    pub(super) fn worker_loop(&'static self, index: usize) -> ! {
        POST.with(|post| {
            let post = post.get_or_init(|| PoolMember {
                idlers: self,
                index,
                idle_since: Cell::new(None),
                spin_nanos: Cell::new(MAX_SPIN_NANOS),
                busy_since: Cell::new(self.now()),
                credit: Cell::new(MAX_CREDIT_NANOS),
            });
            post.slot().worker.get_or_init(std::thread::current);
            current_cpu::migrate_off(self.maker, self.max_active);
            gr_awake.fetch_add(1, Ordering::Relaxed);
            loop {
                post.run_until_idle();
                post.sleep();
            }
        })
    }

    /// Marks the worker of `bed` as about to sleep; the worker then searches once more.
    fn mark_asleep(&self, bed: &ParkSlot) {
        // The count is incremented before the slot is marked. A waker decrements the count, and with the
        // reverse order a call for all workers would miss another sleeper.
        self.asleep.fetch_add(1, Ordering::SeqCst);
        gr_awake.fetch_sub(1, Ordering::Relaxed);
        if bed.parked.swap(true, Ordering::AcqRel) {
            // The slot is marked already: the worker waits for a piece, and inside for another piece.
            self.asleep.fetch_sub(1, Ordering::Relaxed);
            gr_awake.fetch_add(1, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
    }

    /// Marks the worker of `bed` as awake; returns whether the mark changed.
    fn mark_awake(&self, bed: &ParkSlot) -> bool {
        let leaves = bed.parked.load(Ordering::Relaxed) && bed.parked.swap(false, Ordering::AcqRel);
        if leaves {
            self.asleep.fetch_sub(1, Ordering::Relaxed);
            gr_awake.fetch_add(1, Ordering::Relaxed);
        }
        leaves
    }

    fn wake(&self, bed: &ParkSlot) -> bool {
        if bed.parked.load(Ordering::Relaxed) {
            // Stored before the wake-up, because the woken worker reads the time.
            bed.woken_at.store(self.now(), Ordering::Relaxed);
        }
        let woken = self.mark_awake(bed);
        if let Some(worker) = bed.worker.get().filter(|_| woken) {
            // A thread outside the pool sleeps while the pool works: its processor is free.
            let works = rayon_core::current_thread_index().is_some();
            let caller = if works {
                current_cpu::current()
            } else {
                NO_PROCESSOR
            };
            bed.waker_cpu.store(caller, Ordering::Relaxed);
            worker.unpark();
        }
        woken
    }

    /// Delivers a piece to a spinning worker nearby, if any.
    ///
    /// # Safety
    /// The piece stays in place until withdrawn or ended.
    pub(super) unsafe fn deliver(&'static self, piece: *mut Head) -> Option<PendingHandoff> {
        let own = rayon_core::current_thread_index()?;
        let others = (1..self.slots.len().min(MAX_POLLED_MAILBOXES + 1))
            .map(|k| (own + k) % self.slots.len());
        let given = |other: usize| {
            let hand = &self.slots[other].mailbox;
            hand.change(open(), piece)
                .then_some(PendingHandoff { hand, piece })
        };
        others.into_iter().find_map(given)
    }

    /// The number of workers asleep or about to sleep, as seen after publishing work.
    fn sleepers(&self) -> usize {
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed)
    }

    /// Returns whether fewer workers are awake than allowed.
    fn may_wake_another(&self, sleepers: usize) -> bool {
        sleepers + self.max_active > self.slots.len()
    }

    /// Returns whether more workers are awake than allowed, as with the ranks of a team.
    fn has_too_many_awake(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) + self.max_active < self.slots.len()
    }

    /// Announces published work for one more worker. The caller is a worker and runs the work itself if no
    /// other worker arrives.
    pub(super) fn wake_if_allowed(&self) {
        let sleepers = self.sleepers();
        if sleepers > 0 && self.may_wake_another(sleepers) {
            self.wake_one();
        }
    }

    /// Announces published work that the caller cannot run itself.
    pub(super) fn wake_one_always(&self) {
        if self.sleepers() > 0 {
            self.wake_one();
        }
    }

    #[cold]
    fn wake_one(&self) {
        let _ = self.slots.iter().any(|bed| self.wake(bed));
    }

    /// Announces published work for every worker.
    pub(super) fn wake_all(&self) {
        if self.sleepers() > 0 {
            for bed in &self.slots {
                self.wake(bed);
            }
        }
    }
}

/// The pool that the calling thread serves.
pub(super) fn current_pool() -> Option<&'static IdleWorkers> {
    POST.with(|post| post.get().map(|post| post.idlers))
}

/// Sleeps on a worker of `idlers`, which waits for another worker, until `done` holds or more work arrives.
pub(super) fn sleep_until(idlers: &'static IdleWorkers, done: impl Fn() -> bool) {
    let Some(bed) = rayon_core::current_thread_index().and_then(|k| idlers.slots.get(k)) else {
        // Not an error: a thread outside the pool's workers polls.
        return;
    };
    bed.worker.get_or_init(std::thread::current);
    idlers.mark_asleep(bed);
    if !run_one_task() {
        while bed.parked.load(Ordering::Acquire) && !done() {
            std::thread::park();
        }
    }
    idlers.mark_awake(bed);
}

/// Called first by every piece of work: the worker stays awake, although about to sleep.
pub(super) fn rise() {
    POST.with(|post| {
        if let Some(post) = post.get() {
            post.rise();
        }
    });
}
