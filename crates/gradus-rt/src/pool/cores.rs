//! The processor that a thread runs on.
//!
//! A worker that begins or wakes up should not do so on the processor of the thread that called it: they would
//! take turns there. The system's scheduler mostly sees to it, but not always: in virtual machines two threads
//! were seen to share one processor, beside an idle one, for up to a third of a second. (Linux takes an idle
//! processor of a virtual machine for one that the host keeps away: `vcpu_is_preempted`.)

/// The number of the processor that runs this thread; negative if it is not known.
#[cfg(target_os = "linux")]
pub(super) fn here() -> i32 {
    // SAFETY: it only gives a number.
    unsafe { libc::sched_getcpu() }
}

/// Where this thread runs on processor `core`, it goes to another one of those that it may run on, if they are at
/// least `workers`; gives that one's number. Where it may run stays as it was.
#[cfg(target_os = "linux")]
pub(super) fn leave(core: i32, workers: usize) -> Option<i32> {
    let taken = usize::try_from(core).ok().filter(|_| here() == core)?;
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: the sets are as long as is said, and a processor that runs threads has a number below their length
    // where the system could tell which these are.
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
        let now = here();
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
    use super::{here, leave};

    fn allowed() -> Vec<usize> {
        // SAFETY: the set is as long as is said.
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
        // It may be moved by others between the two calls.
        let moved = (0..100).find_map(|_| {
            let core = here();
            leave(core, before.len()).map(|now| (core, now))
        });
        match before.len() {
            1 => assert_eq!(moved, None),
            _ => assert!(moved.is_some_and(|(core, now)| core != now), "{moved:?}"),
        }
        assert_eq!(allowed(), before);
    }

    #[test]
    fn a_thread_stays_where_workers_outnumber_processors() {
        assert_eq!(leave(here(), allowed().len() + 1), None);
    }
}
