//! Critical sections: one thread of the program at a time.
//!
//! A thread that takes the lock again as soon as it has given it back leaves no moment for who waits: between the two
//! the others hardly see it free. So a thread that has waited long says so, and others, who have just come, then wait
//! as long themselves before they take it. And who looks, in one section after the other, whether another thread has
//! done something keeps a processor that this one may need: now and then a thread lets others of the machine go on.

use crate::{tsan, waiting};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// So often a thread looks before it lets others of the machine go on, one of whom may have the lock.
const AWAKE: u32 = 64;
/// So often a thread looks before it has waited long.
const PATIENCE: u32 = 128;

/// After so many sections a thread lets others of the machine go on.
const ROUND: u32 = 128;

thread_local! {
    /// The sections that a thread has entered.
    static ENTERED: Cell<u32> = const { Cell::new(0) };
}

/// The threads that have ever entered one.
static THREADS: AtomicU32 = AtomicU32::new(0);

/// Counts a section that the thread enters.
fn enter() {
    let entered = ENTERED.get();
    if entered == 0 {
        THREADS.fetch_add(1, Ordering::Relaxed);
    }
    // The first one is counted once.
    ENTERED.set(entered.wrapping_add(1).max(1));
    if entered.is_multiple_of(ROUND) && THREADS.load(Ordering::Relaxed) > 1 {
        std::thread::yield_now();
    }
}

/// The lock of a critical section; begins as zeros. OpenMP's compilers make 32 bytes for one.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Lock {
    taken: AtomicU32,
    /// The threads that have waited long.
    impatient: AtomicU32,
}

impl Lock {
    pub(crate) const fn new() -> Lock {
        Lock {
            taken: AtomicU32::new(0),
            impatient: AtomicU32::new(0),
        }
    }

    fn take(&self) {
        let mut times = 0;
        while !(self.is_my_turn(times) && self.try_take()) {
            times += 1;
            if times == PATIENCE {
                self.impatient.fetch_add(1, Ordering::Relaxed);
            }
            match times <= AWAKE {
                true => std::hint::spin_loop(),
                false => waiting::pause_for_others(times),
            }
        }
        if times >= PATIENCE {
            self.impatient.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn is_my_turn(&self, times: u32) -> bool {
        times >= PATIENCE || self.impatient.load(Ordering::Relaxed) == 0
    }

    fn try_take(&self) -> bool {
        let taken = self
            .taken
            .compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }
}

/// Enters a critical section.
///
/// # Safety
/// `lock` is a lock, and the thread does not hold it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_lock(lock: *const Lock) {
    enter();
    // SAFETY: promised by the caller.
    unsafe { &*lock }.take();
    tsan::acquire(lock.cast_mut().cast());
}

/// Leaves a critical section.
///
/// # Safety
/// The thread holds `lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gr_unlock(lock: *const Lock) {
    tsan::release(lock.cast_mut().cast());
    // SAFETY: promised by the caller.
    unsafe { &*lock }.taken.store(0, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// How often a thread takes the lock again while another one waits for it.
    fn taken_before_another() -> u32 {
        let (lock, waits, had) = (
            Lock::default(),
            AtomicBool::new(false),
            AtomicBool::new(false),
        );
        let mut times = 0;
        std::thread::scope(|scope| {
            lock.take();
            scope.spawn(|| {
                waits.store(true, Ordering::Relaxed);
                lock.take();
                had.store(true, Ordering::Relaxed);
                lock.taken.store(0, Ordering::Release);
            });
            while !waits.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            lock.taken.store(0, Ordering::Release);
            while !had.load(Ordering::Relaxed) {
                lock.take();
                times += 1;
                lock.taken.store(0, Ordering::Release);
            }
        });
        times
    }

    #[test]
    fn who_waits_comes_in() {
        let least = (0..20).map(|_| taken_before_another()).min();
        assert!(least.is_some_and(|times| times < 200_000), "{least:?}");
    }
}
