//! Critical sections: mutual exclusion between all threads of the program.
//!
//! A thread that reacquires the lock right after the release leaves waiting threads almost no chance. A
//! thread that has waited long therefore registers as impatient, and newly arrived threads wait equally long
//! before acquiring the lock. A thread that polls in successive critical sections may occupy a processor
//! that another thread needs: each thread yields to the system periodically.

use crate::pool::backoff;
use crate::tsan;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of polls before a waiting thread yields to the system, where another thread may hold the lock.
const SPIN_POLLS: u32 = 64;
/// Number of polls after which the wait counts as long.
const LONG_WAIT_POLLS: u32 = 128;

/// Number of critical sections after which a thread yields to the system.
const SECTIONS_PER_YIELD: u32 = 128;

thread_local! {
    /// Number of critical sections entered by the thread.
    static SECTIONS_ENTERED: Cell<u32> = const { Cell::new(0) };
}

/// Number of threads that have ever entered a critical section.
static THREADS: AtomicU32 = AtomicU32::new(0);

/// Counts a critical section entered by the thread.
fn count_section() {
    let entered = SECTIONS_ENTERED.get();
    if entered == 0 {
        THREADS.fetch_add(1, Ordering::Relaxed);
    }
    // After an overflow the count continues at 1: a thread is counted only once.
    SECTIONS_ENTERED.set(entered.wrapping_add(1).max(1));
    if entered.is_multiple_of(SECTIONS_PER_YIELD) && THREADS.load(Ordering::Relaxed) > 1 {
        std::thread::yield_now();
    }
}

/// The lock of a critical section, initialised with zeros. OpenMP compilers reserve 32 bytes.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Lock {
    locked: AtomicU32,
    /// Number of threads that have waited long.
    long_waiters: AtomicU32,
}

impl Lock {
    pub(crate) const fn new() -> Lock {
        Lock {
            locked: AtomicU32::new(0),
            long_waiters: AtomicU32::new(0),
        }
    }

    fn acquire(&self) {
        let mut times = 0;
        while !(self.may_try(times) && self.try_acquire()) {
            times += 1;
            if times == LONG_WAIT_POLLS {
                self.long_waiters.fetch_add(1, Ordering::Relaxed);
            }
            match times <= SPIN_POLLS {
                true => std::hint::spin_loop(),
                false => backoff::backoff_yielding(times),
            }
        }
        if times >= LONG_WAIT_POLLS {
            self.long_waiters.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn may_try(&self, times: u32) -> bool {
        times >= LONG_WAIT_POLLS || self.long_waiters.load(Ordering::Relaxed) == 0
    }

    fn try_acquire(&self) -> bool {
        let taken = self
            .locked
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
    count_section();
    // SAFETY: promised by the caller.
    unsafe { &*lock }.acquire();
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
    unsafe { &*lock }.locked.store(0, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// Number of times a thread reacquires the lock while another thread waits.
    fn reacquired_before_waiter() -> u32 {
        let (lock, waits, had) = (
            Lock::default(),
            AtomicBool::new(false),
            AtomicBool::new(false),
        );
        let mut times = 0;
        std::thread::scope(|scope| {
            lock.acquire();
            scope.spawn(|| {
                waits.store(true, Ordering::Relaxed);
                lock.acquire();
                had.store(true, Ordering::Relaxed);
                lock.locked.store(0, Ordering::Release);
            });
            while !waits.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            lock.locked.store(0, Ordering::Release);
            while !had.load(Ordering::Relaxed) {
                lock.acquire();
                times += 1;
                lock.locked.store(0, Ordering::Release);
            }
        });
        times
    }

    #[test]
    fn waiting_threads_acquire() {
        let least = (0..20).map(|_| reacquired_before_waiter()).min();
        assert!(least.is_some_and(|times| times < 200_000), "{least:?}");
    }
}
