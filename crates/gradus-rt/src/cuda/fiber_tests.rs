//! Guarantees of cooperative threads: later threads progress while earlier threads wait, and barriers
//! synchronise.

use super::*;
use std::sync::atomic::AtomicI32;

fn launch(grid: i64, block: i64, body: FiberBody, context: &impl Sized) {
    let extents = [grid, 1, 1, block, 1, 1];
    let context: *const _ = context;
    // SAFETY: the bodies below accept any thread and this context.
    unsafe { gr_turns(extents.as_ptr(), 256, body, context.cast_mut().cast()) };
}

#[test]
fn spins_on_later_threads() {
    struct Flags([AtomicI32; 4 * 40]);
    unsafe extern "C" fn body(ranks: *const i64, _: *mut c_void, flags: *mut c_void) {
        // SAFETY: there are six ranks, and the context is the flags.
        let (number, flags) = unsafe { (*ranks * 40 + *ranks.add(3), &*flags.cast::<Flags>()) };
        let number = usize::try_from(number).unwrap();
        while flags
            .0
            .get(number + 1)
            .is_some_and(|next| next.load(Ordering::Acquire) == 0)
        {
            gr_turn_wait();
        }
        flags.0[number].store(1, Ordering::Release);
    }
    let flags = Flags(std::array::from_fn(|_| AtomicI32::new(0)));
    launch(4, 40, body, &flags);
    assert!(flags.0.iter().all(|flag| flag.load(Ordering::Relaxed) == 1));
}

#[test]
fn barriers_skip_exited_threads() {
    unsafe extern "C" fn body(ranks: *const i64, shared: *mut c_void, wrong: *mut c_void) {
        // SAFETY: there are six ranks, 256 bytes are shared, and the context is the counter.
        let (thread, shared, wrong) = unsafe {
            (
                *ranks.add(3),
                shared.cast::<i32>(),
                &*wrong.cast::<AtomicI32>(),
            )
        };
        let at = usize::try_from(thread).unwrap();
        // SAFETY: there are 50 threads.
        unsafe { shared.add(at).write(at as i32) };
        gr_turn_meet(true);
        // SAFETY: as above; the neighbouring lane has written.
        let beside = unsafe { *shared.add(at ^ 1) };
        gr_turn_meet(false);
        if thread % 3 == 0 {
            return;
        }
        gr_turn_meet(false);
        wrong.fetch_add(i32::from(beside != (at ^ 1) as i32), Ordering::Relaxed);
    }
    let wrong = AtomicI32::new(0);
    launch(7, 50, body, &wrong);
    assert_eq!(wrong.load(Ordering::Relaxed), 0);
}
