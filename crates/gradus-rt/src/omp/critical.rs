//! Critical sections: mutual exclusion between all threads of the program.
//!
//! A thread that reacquires the lock right after the release leaves waiting threads almost no chance. A
//! thread that has waited long therefore registers as impatient, and newly arrived threads wait equally long
//! before acquiring the lock. A thread that polls in successive critical sections may occupy a processor
//! that another thread needs: each thread yields to the system periodically.

use crate::{backoff, tsan};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of polls before a waiting thread yields to the system, where another thread may hold the lock.
const AWAKE: u32 = 64;
/// Number of polls after which the wait counts as long.
const PATIENCE: u32 = 128;

/// Number of critical sections after which a thread yields to the system.
const ROUND: u32 = 128;

thread_local! {
    /// Number of critical sections entered by the thread.
    static ENTERED: Cell<u32> = const { Cell::new(0) };
}

/// Number of threads that have ever entered a critical section.
static THREADS: AtomicU32 = AtomicU32::new(0);

/// Counts a critical section entered by the thread.
fn enter() {
    let entered = ENTERED.get();
    if entered == 0 {
        THREADS.fetch_add(1, Ordering::Relaxed);
    }
    // After an overflow the count continues at 1: a thread is counted only once.
    ENTERED.set(entered.wrapping_add(1).max(1));
    if entered.is_multiple_of(ROUND) && THREADS.load(Ordering::Relaxed) > 1 {
        std::thread::yield_now();
    }
}

/// The lock of a critical section, initialised with zeros. OpenMP compilers reserve 32 bytes.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Lock {
    taken: AtomicU32,
    /// Number of threads that have waited long.
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
                false => backoff::pause_for_others(times),
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
/// `lock` is a lock that the thread does not hold.
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

    /// Number of times a thread reacquires the lock while another thread waits.
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
