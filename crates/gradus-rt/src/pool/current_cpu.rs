//! Processor of a thread, and migration off a processor.
//!
//! A worker should not start or wake on the processor of the calling thread, where both would alternate. The
//! system scheduler mostly avoids such placement, with exceptions: in virtual machines, two threads shared a
//! processor beside an idle processor for up to a third of a second. (Linux considers an idle virtual
//! processor preempted by the host: `vcpu_is_preempted`.)

/// Number of the current processor; negative if unknown.
#[cfg(target_os = "linux")]
pub(super) fn current() -> i32 {
    // SAFETY: the call only returns a number.
    unsafe { libc::sched_getcpu() }
}

/// Migrates the thread off processor `core` if the thread runs on `core` and may run on at least `workers`
/// processors. Returns the new processor. The affinity mask is unchanged.
#[cfg(target_os = "linux")]
pub(super) fn migrate_off(core: i32, workers: usize) -> Option<i32> {
    let taken = usize::try_from(core).ok().filter(|_| current() == core)?;
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: the sets have the stated length, and the processor number is below that length if the system
    // returned the mask.
    unsafe {
        let mut all: libc::cpu_set_t = std::mem::zeroed();
        let known = libc::sched_getaffinity(0, bytes, &raw mut all) == 0;
        let count = usize::try_from(libc::CPU_COUNT(&all)).unwrap_or(0);
        if !known || count < workers.max(2) {
            return None;
        }
        let mut others = all;
        libc::CPU_CLR(taken, &mut others);
        if libc::sched_setaffinity(0, bytes, &raw const others) != 0 {
            return None;
        }
        let now = current();
        libc::sched_setaffinity(0, bytes, &raw const all);
        Some(now)
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn here() -> i32 {
    -1
}

#[cfg(not(target_os = "linux"))]
pub(super) fn leave(_: i32, _: usize) -> Option<i32> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{current, migrate_off};

    fn allowed() -> Vec<usize> {
        // SAFETY: the set has the stated length.
        unsafe {
            let mut all: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut all);
            let numbers = 0..libc::CPU_SETSIZE as usize;
            numbers.filter(|cpu| libc::CPU_ISSET(*cpu, &all)).collect()
        }
    }

    #[test]
    fn a_thread_leaves_its_processor_and_may_come_back() {
        let before = allowed();
        // The system may migrate the thread between the two calls.
        let moved = (0..100).find_map(|_| {
            let core = current();
            migrate_off(core, before.len()).map(|now| (core, now))
        });
        match before.len() {
            1 => assert_eq!(moved, None),
            _ => assert!(moved.is_some_and(|(core, now)| core != now), "{moved:?}"),
        }
        assert_eq!(allowed(), before);
    }

    #[test]
    fn stays_if_oversubscribed() {
        assert_eq!(migrate_off(current(), allowed().len() + 1), None);
    }
}
