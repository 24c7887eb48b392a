//! Direct handoff of work to an awake worker without work.
//!
//! Work in a queue costs about six cache lines that two processors write alternately. Each transfer takes
//! about 80 ns: in total as much as a microsecond for a loop of ten. A spinning worker has a mailbox of one
//! cache line, and polls the mailbox for a [`Piece`] from another worker ([`super::idle`]). The sender
//! withdraws the piece if the receiver has not started it, and else waits for its end.

use super::idle::{self, IdleWorkers};
use super::run_one_task;
use crate::pool::backoff::{MAX_SPIN, POLLS_PER_CLOCK};
use std::cell::UnsafeCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::Thread;
use std::time::Instant;

/// Polls of a mailbox or piece per poll of the pool's queues.
pub(super) const POLLS_PER_STEAL: u32 = 4;

/// Handed over, or started.
const OPEN: u8 = 0;
/// The waiting thread sleeps, or is about to.
const AWAITED: u8 = 1;
const ENDED: u8 = 2;

/// Type-independent part of a piece of work.
#[derive(Debug)]
pub(super) struct Head {
    run: unsafe fn(*const Head),
    state: AtomicU8,
    waiter: OnceLock<Thread>,
}

/// A piece of work on the stack of the sender.
#[repr(C)]
pub(super) struct Piece<F> {
    head: Head,
    work: UnsafeCell<Option<F>>,
}

impl<F: FnOnce() + Send> Piece<F> {
    pub(super) fn new(work: F) -> Piece<F> {
        Piece {
            head: Head {
                run: run::<F>,
                state: AtomicU8::new(OPEN),
                waiter: OnceLock::new(),
            },
            work: UnsafeCell::new(Some(work)),
        }
    }

    pub(super) fn head(&self) -> *mut Head {
        (&raw const self.head).cast_mut()
    }

    /// The work of a piece that no thread has taken.
    pub(super) fn into_work(self) -> Option<F> {
        self.work.into_inner()
    }

    /// Marks the piece as awaited by the calling thread, asleep. Called before the handoff.
    pub(super) fn mark_awaited(&self) {
        self.head.waiter.get_or_init(std::thread::current);
        self.head.state.store(AWAITED, Ordering::Relaxed);
    }

    /// Returns whether the work has completed.
    pub(super) fn has_ended(&self) -> bool {
        self.head.state.load(Ordering::Acquire) == ENDED
    }

    /// Runs other work of the pool until the piece, started by another worker, has ended. After the spin
    /// time the thread sleeps until the piece ends or more work arrives.
    pub(super) fn wait(&self, idlers: &'static IdleWorkers) {
        let ended = || self.has_ended();
        let mut since: Option<Instant> = None;
        let mut looks = 0_u32;
        while !ended() {
            looks = looks.wrapping_add(1);
            if looks % POLLS_PER_STEAL == 0 && run_one_task() {
                since = None;
                continue;
            }
            std::hint::spin_loop();
            if looks % POLLS_PER_CLOCK == 0
                && since.get_or_insert_with(Instant::now).elapsed() > MAX_SPIN
            {
                self.head.waiter.get_or_init(std::thread::current);
                let state = &self.head.state;
                // The exchange fails if the piece has ended; the state then stays.
                let _ = state.compare_exchange(OPEN, AWAITED, Ordering::AcqRel, Ordering::Acquire);
                idle::sleep_until(idlers, &ended);
                since = None;
            }
        }
    }
}

/// Runs the work of a piece.
///
/// # Safety
/// `head` belongs to a `Piece<F>` whose work no other thread takes.
unsafe fn run<F: FnOnce()>(head: *const Head) {
    // SAFETY: a piece starts with its head, and lives until it has ended.
    let work = unsafe { (*(*head.cast::<Piece<F>>()).work.get()).take() };
    if let Some(work) = work {
        work();
    }
}

/// Runs a piece handed to the calling thread.
///
/// # Safety
/// No other thread runs the piece, and the sender waits.
pub(super) unsafe fn run_piece(head: *const Head) {
    // SAFETY: the piece lives until its state is `ENDED`; a sleeping sender continues only then.
    unsafe {
        ((*head).run)(head);
        let state = &(*head).state;
        let alone = state.compare_exchange(OPEN, ENDED, Ordering::Release, Ordering::Acquire);
        if alone.is_err() {
            let waiter = (*head).waiter.get().cloned();
            state.store(ENDED, Ordering::Release);
            if let Some(waiter) = waiter {
                waiter.unpark();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IdleWorkers, Piece, run_piece};
    use crate::SendPtr;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    /// The waiting thread continues exactly when the piece has ended, for short and long pieces.
    #[test]
    fn waits_spinning_and_asleep() {
        let idlers = IdleWorkers::new(2, false);
        for micros in [0, 20, 2_000] {
            let done = AtomicU32::new(0);
            let piece = Piece::new(|| {
                std::thread::sleep(Duration::from_micros(micros));
                done.fetch_add(1, Ordering::Relaxed);
            });
            let head = SendPtr(piece.head().cast());
            std::thread::scope(|threads| {
                // SAFETY: no other thread has the piece, and `wait` below awaits it.
                threads.spawn(move || unsafe { run_piece(head.get().cast()) });
                piece.wait(idlers);
                assert_eq!(done.load(Ordering::Relaxed), 1);
            });
            assert!(piece.into_work().is_none());
        }
    }

    /// A worker that does not poll receives nothing.
    #[test]
    fn no_delivery_to_closed_mailbox() {
        let piece = Piece::new(|| ());
        // SAFETY: no thread takes the piece.
        let given = unsafe { IdleWorkers::new(2, false).deliver(piece.head()) };
        assert!(given.is_none() && piece.into_work().is_some());
    }
}
