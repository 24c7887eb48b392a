//! Work put into the hands of a worker that is awake and has nothing to do.
//!
//! What goes through a queue is some half a dozen cache lines that two processors write in turn, each of which
//! takes about 80 ns to cross: as much as a microsecond for a loop of ten. A worker that looks for work has one
//! line of its own, where it finds the [`Piece`] that another one hands it ([`super::idle`]). Who handed it over
//! takes it back where it was not begun, and else waits for its end.

use super::help;
use super::idle::{self, Idlers};
use crate::waiting::{AWAKE, LOOKS};
use std::cell::UnsafeCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::Thread;
use std::time::Instant;

/// Looks at a hand, or at a piece, for one at the pool's queues.
pub(super) const GLANCES: u32 = 4;

/// Handed over, or begun.
const OPEN: u8 = 0;
/// Who waits for its end is asleep, or about to be.
const AWAITED: u8 = 1;
const ENDED: u8 = 2;

/// What is known of a piece of any work.
#[derive(Debug)]
pub(super) struct Head {
    run: unsafe fn(*const Head),
    state: AtomicU8,
    waiter: OnceLock<Thread>,
}

/// A piece of work on the stack of who hands it over.
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

    /// The work, of a piece that nobody has.
    pub(super) fn into_work(self) -> Option<F> {
        self.work.into_inner()
    }

    /// Who handed it over is asleep at its end; said before it is handed over.
    pub(super) fn will_be_awaited(&self) {
        self.head.waiter.get_or_init(std::thread::current);
        self.head.state.store(AWAITED, Ordering::Relaxed);
    }

    /// Whether its work has been done.
    pub(super) fn has_ended(&self) -> bool {
        self.head.state.load(Ordering::Acquire) == ENDED
    }

    /// Does other work of the pool until the piece that another worker has begun has ended; asleep if that takes
    /// long, until there is more to do.
    pub(super) fn wait(&self, idlers: &'static Idlers) {
        let ended = || self.has_ended();
        let mut since: Option<Instant> = None;
        let mut looks = 0_u32;
        while !ended() {
            looks = looks.wrapping_add(1);
            if looks % GLANCES == 0 && help() {
                since = None;
                continue;
            }
            std::hint::spin_loop();
            if looks % LOOKS == 0 && since.get_or_insert_with(Instant::now).elapsed() > AWAKE {
                self.head.waiter.get_or_init(std::thread::current);
                let state = &self.head.state;
                // It may have ended: then its state stays.
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
/// `head` is that of a `Piece<F>` whose work nobody else takes.
unsafe fn run<F: FnOnce()>(head: *const Head) {
    // SAFETY: a piece begins with its head, and lives until it has ended.
    let work = unsafe { (*(*head.cast::<Piece<F>>()).work.get()).take() };
    if let Some(work) = work {
        work();
    }
}

/// Does a piece that was handed to this thread.
///
/// # Safety
/// Nobody else does, and who handed it over waits.
pub(super) unsafe fn perform(head: *const Head) {
    // SAFETY: the piece is there until its state says that it has ended; who sleeps goes on only then.
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
    use super::{Idlers, Piece, perform};
    use crate::Carried;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    /// However long a piece takes, who waits for it goes on when it has ended, and not before.
    #[test]
    fn a_piece_is_waited_for_awake_and_asleep() {
        let idlers = Idlers::new(2, false);
        for micros in [0, 20, 2_000] {
            let done = AtomicU32::new(0);
            let piece = Piece::new(|| {
                std::thread::sleep(Duration::from_micros(micros));
                done.fetch_add(1, Ordering::Relaxed);
            });
            let head = Carried(piece.head().cast());
            std::thread::scope(|threads| {
                // SAFETY: nobody else has it, and it is waited for below.
                threads.spawn(move || unsafe { perform(head.get().cast()) });
                piece.wait(idlers);
                assert_eq!(done.load(Ordering::Relaxed), 1);
            });
            assert!(piece.into_work().is_none());
        }
    }

    /// A worker that does not look is given nothing.
    #[test]
    fn nothing_is_given_to_who_does_not_look() {
        let piece = Piece::new(|| ());
        // SAFETY: nobody takes it.
        let given = unsafe { Idlers::new(2, false).give(piece.head()) };
        assert!(given.is_none() && piece.into_work().is_some());
    }
}
