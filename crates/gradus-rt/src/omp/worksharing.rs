//! OpenMP worksharing in teams of this library, for code compiled for the OpenMP library: a function of
//! another file or library, called from a region.
//!
//! The chunks equal those of lowered loops, and code that relies on the assignment of iterations to ranks
//! stays correct. Outside teams of this library, the OpenMP library does the work.

use crate::foreign_library;
use crate::foreign_library::{Function, call};
use crate::omp::critical::{Lock, gr_lock, gr_unlock};
use crate::pool::abort_with;
use crate::team::round_up_to_chunk;
use crate::team_state::{Dispatch, Member};
use crate::thread_context;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

/// The rank of the calling thread, directly in a team of this library.
fn current_rank() -> Option<&'static Member> {
    let here = thread_context::current();
    if here.member.is_null() || here.foreign_level != foreign_library::level() {
        return None;
    }
    // SAFETY: a member lives while any thread's context refers to it, thus longer than this call.
    Some(unsafe { &*here.member })
}

/// A source location record of the compiler.
type Place = *mut c_void;

/// Mask of the schedule kind, without modifiers.
const SCHEDULE: i32 = 0x1fff_ffff;
const STATIC_CHUNKED: i32 = 33;
const GUIDED: [i32; 3] = [36, 42, 46];
const RUNTIME: i32 = 37;
const RUNTIME_SIMD: i32 = 47;
/// First schedule kind with ordered iterations.
const ORDERED: i32 = 64;
/// First schedule kind that distributes between teams.
const DISTRIBUTE: i32 = 91;

/// Interpretation of a loop's index type.
#[derive(Clone, Copy)]
enum Index {
    /// Signed, with the maximum value.
    Signed(i64),
    /// Unsigned, with the maximum value.
    Unsigned(u64),
}

impl Index {
    /// Converts an index to its value.
    fn widen(self, index: i64) -> i128 {
        match self {
            Index::Unsigned(_) => i128::from(index.cast_unsigned()),
            Index::Signed(_) => i128::from(index),
        }
    }

    /// Returns whether a value is an index of the type.
    fn contains(self, value: i128) -> bool {
        match self {
            Index::Unsigned(greatest) => (0..=i128::from(greatest)).contains(&value),
            Index::Signed(greatest) => {
                (-i128::from(greatest) - 1..=i128::from(greatest)).contains(&value)
            }
        }
    }
}

/// Number of iterations from `lower` to `upper` in steps of `step`. A count that equals the number of
/// unsigned values means zero: a loop of `n` iterations has the last index `n - 1`, and flang does not test
/// for `n = 0`. Aborts for step 0: such a loop never ends.
fn trip_count(lower: i64, upper: i64, step: i64, index: Index) -> i64 {
    if step == 0 {
        abort_with(c"gradus: an OpenMP worksharing loop has step 0\n");
    }
    let (lower, upper) = (index.widen(lower), index.widen(upper));
    let distance = match step > 0 {
        true => upper - lower,
        false => lower - upper,
    };
    let trips = distance / i128::from(step.unsigned_abs()) + 1;
    match index {
        _ if distance < 0 => 0,
        Index::Unsigned(greatest) if trips > i128::from(greatest) => 0,
        _ => i64::try_from(trips).unwrap_or(i64::MAX),
    }
}

/// A rank's share of a static loop: first and last index, stride to the next chunk, and whether the share
/// contains the last iteration.
struct StaticShare {
    lower: i64,
    upper: i64,
    stride: i64,
    is_last: bool,
}

fn static_share(
    (rank, size): (i64, i64),
    schedule: i32,
    (lower, upper): (i64, i64),
    step: i64,
    chunk: i64,
    index: Index,
) -> StaticShare {
    let trips = trip_count(lower, upper, step, index);
    let is_chunked = schedule & SCHEDULE == STATIC_CHUNKED;
    let share = match is_chunked {
        // A larger chunk has no further iterations, and its stride may exceed the index type.
        true => chunk.min(trips).max(1),
        false => trips / size + i64::from(trips % size != 0),
    };
    let start = rank.saturating_mul(share).min(trips);
    let end = start.saturating_add(share).min(trips);
    let at = |index: i64| lower.wrapping_add(index.wrapping_mul(step));
    let (first, last) = match start < end {
        true => (at(start), at(end - 1)),
        false => empty_share(upper, step, index),
    };
    let (stride, is_last) = match is_chunked {
        true => (
            size.saturating_mul(share),
            (trips - 1) / share % size == rank,
        ),
        false => (trips.max(1), end == trips),
    };
    StaticShare {
        lower: first,
        upper: last,
        stride: stride.wrapping_mul(step),
        is_last: start < end && is_last,
    }
}

/// Bounds without an iteration: the index after the last, and the last. If the index type has no index after
/// the last, both bounds move back by a step.
fn empty_share(upper: i64, step: i64, index: Index) -> (i64, i64) {
    match index.contains(index.widen(upper) + i128::from(step)) {
        true => (upper.wrapping_add(step), upper),
        false => (upper, upper.wrapping_sub(step)),
    }
}

fn begin_dispatch(
    member: &Member,
    schedule: i32,
    (lower, upper): (i64, i64),
    step: i64,
    chunk: i64,
    index: Index,
) {
    let schedule = schedule & SCHEDULE;
    let trips = trip_count(lower, upper, step, index);
    let ordered = (ORDERED..DISTRIBUTE).contains(&schedule);
    let share = (trips / (8 * i64::from(member.team().size()))).max(1);
    member.begin_shared_loop();
    member.dispatch.set(Dispatch {
        lower,
        step,
        // Ordered loops: the first rank runs all iterations.
        trips: if ordered && member.rank > 0 { 0 } else { trips },
        chunk: match schedule {
            _ if ordered => trips,
            35 | 36 | 42 | 46 => chunk.max(1),
            RUNTIME => 0,
            // The given number is the vector width; chunks are multiples of it.
            RUNTIME_SIMD => round_up_to_chunk(share, chunk),
            _ => share,
        },
        guided: GUIDED.contains(&schedule),
    });
}

/// The next chunk: first and last index, step, and whether the chunk contains the last iteration.
fn next_dispatch_chunk(member: &Member) -> Option<(i64, i64, i64, bool)> {
    let this = member.dispatch.get();
    let (first, after) = member.fetch_scheduled_chunk(this.trips, this.chunk, this.guided);
    let at = |index: i64| this.lower.wrapping_add(index.wrapping_mul(this.step));
    (first < after).then(|| (at(first), at(after - 1), this.step, after == this.trips))
}

/// Defines the loop entries of an index type.
macro_rules! loops {
    ($index:ty, $signed:ty, $read:expr, $init:ident $Init:ident, $begin:ident $Begin:ident,
     $next:ident $Next:ident) => {
        /// Returns the rank's share of a static loop.
        ///
        /// # Safety
        /// The contract of the OpenMP library's function applies.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "the interface of the OpenMP library")]
        pub unsafe extern "C" fn $init(
            place: Place,
            thread: i32,
            schedule: i32,
            last: *mut i32,
            lower: *mut $index,
            upper: *mut $index,
            stride: *mut $signed,
            step: $signed,
            chunk: $signed,
        ) {
            let Some(member) = current_rank().filter(|_| schedule & SCHEDULE < DISTRIBUTE) else {
                let f = Function::$Init.find_or_abort();
                return call!(
                    f,
                    (Place, i32, i32, *mut i32, *mut $index, *mut $index, *mut $signed, $signed, $signed),
                    place, thread, schedule, last, lower, upper, stride, step, chunk
                );
            };
            // SAFETY: promised by the caller.
            unsafe {
                let bounds = (*lower as i64, *upper as i64);
                let rank = (i64::from(member.rank), i64::from(member.team().size()));
                let part = static_share(rank, schedule, bounds, step.into(), chunk.into(), $read);
                *lower = part.lower as $index;
                *upper = part.upper as $index;
                *stride = part.stride as $signed;
                if !last.is_null() {
                    *last = part.is_last.into();
                }
            }
        }

        /// Begins a dynamically scheduled loop.
        ///
        /// # Safety
        /// The contract of the OpenMP library's function applies.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $begin(
            place: Place,
            thread: i32,
            schedule: i32,
            lower: $index,
            upper: $index,
            step: $signed,
            chunk: $signed,
        ) {
            match current_rank() {
                Some(member) => {
                    let bounds = (lower as i64, upper as i64);
                    begin_dispatch(member, schedule, bounds, step.into(), chunk.into(), $read);
                }
                None => call!(
                    Function::$Begin.find_or_abort(),
                    (Place, i32, i32, $index, $index, $signed, $signed),
                    place, thread, schedule, lower, upper, step, chunk
                ),
            }
        }

        /// Fetches the next chunk; returns 0 if none is left.
        ///
        /// # Safety
        /// The contract of the OpenMP library's function applies.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $next(
            place: Place,
            thread: i32,
            last: *mut i32,
            lower: *mut $index,
            upper: *mut $index,
            stride: *mut $signed,
        ) -> i32 {
            let Some(member) = current_rank() else {
                return call!(
                    Function::$Next.find_or_abort(),
                    (Place, i32, *mut i32, *mut $index, *mut $index, *mut $signed) -> i32,
                    place, thread, last, lower, upper, stride
                );
            };
            let Some((first, end, step, is_last)) = next_dispatch_chunk(member) else {
                return 0;
            };
            // SAFETY: promised by the caller.
            unsafe {
                *lower = first as $index;
                *upper = end as $index;
                *stride = step as $signed;
                if !last.is_null() {
                    *last = is_last.into();
                }
            }
            1
        }
    };
}

loops!(i32, i32, Index::Signed(i32::MAX as i64), __wrap___kmpc_for_static_init_4 Static4,
    __wrap___kmpc_dispatch_init_4 Dispatch4, __wrap___kmpc_dispatch_next_4 Next4);
loops!(u32, i32, Index::Unsigned(u32::MAX as u64), __wrap___kmpc_for_static_init_4u Static4u,
    __wrap___kmpc_dispatch_init_4u Dispatch4u, __wrap___kmpc_dispatch_next_4u Next4u);
loops!(i64, i64, Index::Signed(i64::MAX), __wrap___kmpc_for_static_init_8 Static8,
    __wrap___kmpc_dispatch_init_8 Dispatch8, __wrap___kmpc_dispatch_next_8 Next8);
loops!(u64, i64, Index::Unsigned(u64::MAX), __wrap___kmpc_for_static_init_8u Static8u,
    __wrap___kmpc_dispatch_init_8u Dispatch8u, __wrap___kmpc_dispatch_next_8u Next8u);

/// Defines entries that act in a team of this library, and else forward their arguments to the OpenMP
/// library; a single argument may be replaced.
macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident $Name:ident ($($arg:ident: $ty:ty),*) $(-> $result:ty)?,
       $member:pat => $ours:expr $(, elsewhere $other:ident = $with:expr)?;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The contract of the OpenMP library's function applies.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(place: Place, thread: i32, $($arg: $ty),*) $(-> $result)? {
            match current_rank() {
                Some($member) => $ours,
                None => {
                    $(let $other = $with;)?
                    call!(
                        Function::$Name.find_or_abort(),
                        (Place, i32, $($ty),*) $(-> $result)?,
                        place, thread, $($arg),*
                    )
                }
            }
        }
    )*};
}

entries! {
    /// Ends a static loop.
    __wrap___kmpc_for_static_fini StaticEnd(), _ => {};
    /// Ends a dynamically scheduled loop.
    __wrap___kmpc_dispatch_deinit DispatchEnd(), _ => {};
    /// Ends a chunk with ordered iterations (signed 4-byte index); a single rank runs all ordered
    /// iterations.
    __wrap___kmpc_dispatch_fini_4 DispatchFini4(), _ => {};
    /// Ends a chunk with ordered iterations (unsigned 4-byte index).
    __wrap___kmpc_dispatch_fini_4u DispatchFini4u(), _ => {};
    /// Ends a chunk with ordered iterations (signed 8-byte index).
    __wrap___kmpc_dispatch_fini_8 DispatchFini8(), _ => {};
    /// Ends a chunk with ordered iterations (unsigned 8-byte index).
    __wrap___kmpc_dispatch_fini_8u DispatchFini8u(), _ => {};
    /// Begins an ordered region; a single rank runs all iterations.
    __wrap___kmpc_ordered Ordered(), _ => {};
    /// Ends an ordered region.
    __wrap___kmpc_end_ordered EndOrdered(), _ => {};
    /// Team barrier.
    __wrap___kmpc_barrier Barrier(), member => member.team().barrier();
    /// Team barrier with a cancellation point; cancellation never occurs.
    __wrap___kmpc_cancel_barrier CancelBarrier() -> i32, member => {
        member.team().barrier();
        0
    };
    /// Non-zero if this rank executes the single region.
    __wrap___kmpc_single Single() -> i32, member => member.claim_single().into();
    /// Ends a single region.
    __wrap___kmpc_end_single EndSingle(), _ => {};
    /// Non-zero for rank 0.
    __wrap___kmpc_master Master() -> i32, member => (member.rank == 0).into();
    /// Ends a master region.
    __wrap___kmpc_end_master EndMaster(), _ => {};
    /// Non-zero for the given rank.
    __wrap___kmpc_masked Masked(wanted: i32) -> i32,
        member => (i64::from(member.rank) == i64::from(wanted)).into();
    /// Ends a masked region.
    __wrap___kmpc_end_masked EndMasked(), _ => {};
    /// Enters the critical section in which a rank combines its part of a reduction.
    __wrap___kmpc_reduce Reduce(count: i32, bytes: usize, data: *mut c_void, combine: *mut c_void,
        lock: *const Lock) -> i32, _ => enter_critical(lock),
        elsewhere lock = reduction_lock();
    /// Enters the critical section of a reduction without a barrier at the end.
    __wrap___kmpc_reduce_nowait ReduceNowait(count: i32, bytes: usize, data: *mut c_void,
        combine: *mut c_void, lock: *const Lock) -> i32, _ => enter_critical(lock),
        elsewhere lock = reduction_lock();
    /// Leaves the critical section of a reduction; team barrier.
    __wrap___kmpc_end_reduce EndReduce(lock: *const Lock), member => {
        // SAFETY: promised by the caller.
        unsafe { gr_unlock(lock) };
        member.team().barrier();
    }, elsewhere lock = reduction_lock();
    /// Leaves the critical section of a reduction.
    __wrap___kmpc_end_reduce_nowait EndReduceNowait(lock: *const Lock), _ => {
        // SAFETY: promised by the caller.
        unsafe { gr_unlock(lock) }
    }, elsewhere lock = reduction_lock();
    /// Broadcasts the values of the rank that executed a single region.
    __wrap___kmpc_copyprivate CopyPrivate(bytes: usize, data: *mut c_void,
        copy: unsafe extern "C" fn(*mut c_void, *mut c_void), did_it: i32), member => {
        let team = member.team();
        if did_it != 0 {
            team.broadcast.store(data, Ordering::Release);
        }
        team.barrier();
        if did_it == 0 {
            // SAFETY: promised by the caller; the broadcasting rank waits until all ranks have copied.
            unsafe { copy(data, team.broadcast.load(Ordering::Acquire)) };
        }
        team.barrier();
    };
}

/// The lock for reductions in regions of the OpenMP library. All reductions of a program share a lock
/// variable, in which the OpenMP library stores a pointer; a lock of this library there would never be free
/// again.
fn reduction_lock() -> *const Lock {
    static LOCK: Lock = Lock::new();
    &raw const LOCK
}

fn enter_critical(lock: *const Lock) -> i32 {
    // SAFETY: promised by the caller of the entry.
    unsafe { gr_lock(lock) };
    1
}

/// Enters a critical section. A lock excludes all threads of the program, in regions of either library.
///
/// # Safety
/// The contract of the OpenMP library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap___kmpc_critical(_: Place, _: i32, lock: *const Lock) {
    // SAFETY: promised by the caller.
    unsafe { gr_lock(lock) }
}

/// Enters a critical section, ignoring the hint.
///
/// # Safety
/// The contract of the OpenMP library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap___kmpc_critical_with_hint(
    _: Place,
    _: i32,
    lock: *const Lock,
    _: u32,
) {
    // SAFETY: promised by the caller.
    unsafe { gr_lock(lock) }
}

/// Leaves a critical section.
///
/// # Safety
/// The contract of the OpenMP library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap___kmpc_end_critical(_: Place, _: i32, lock: *const Lock) {
    // SAFETY: promised by the caller.
    unsafe { gr_unlock(lock) }
}

#[cfg(test)]
mod tests {
    use super::{Index, STATIC_CHUNKED, static_share, trip_count};
    use std::os::unix::process::ExitStatusExt;

    /// Schedule kind of a static loop without a chunk size.
    const STATIC: i32 = 34;

    /// Checks that the first shares of five ranks hold the iterations of a loop, each of them once, in an
    /// index type.
    fn check_first_shares(lower: i64, upper: i64, step: i64, index: Index) {
        for schedule in [STATIC, STATIC_CHUNKED] {
            let mut seen = Vec::new();
            for rank in 0..5 {
                let share = static_share((rank, 5), schedule, (lower, upper), step, 1, index);
                let mut at = index.widen(share.lower);
                let last = index.widen(share.upper);
                assert!(index.contains(at) && index.contains(last));
                while if step > 0 { at <= last } else { at >= last } {
                    seen.push(at);
                    at += i128::from(step);
                }
            }
            let all = (0..trip_count(lower, upper, step, index))
                .map(|i| index.widen(lower) + i128::from(i) * i128::from(step));
            assert_eq!(seen, all.collect::<Vec<_>>(), "{lower} {upper} {step}");
        }
    }

    #[test]
    fn shares_at_the_ends_of_the_index_type() {
        let (int, long) = (Index::Signed(i32::MAX.into()), Index::Signed(i64::MAX));
        let (max, min) = (i64::from(i32::MAX), i64::from(i32::MIN));
        for (lower, upper, step) in [(0, 4, 1), (0, 2, 1), (9, 3, -2)] {
            check_first_shares(lower, upper, step, int);
        }
        check_first_shares(max - 2, max, 1, int);
        check_first_shares(max - 7, max, 4, int);
        check_first_shares(min + 2, min, -1, int);
        check_first_shares(i64::MAX - 2, i64::MAX, 1, long);
        check_first_shares(i64::MIN + 2, i64::MIN, -1, long);
        check_first_shares(-3, -1, 1, Index::Unsigned(u64::MAX));
    }

    /// The compiled program adds the stride to both bounds. With a chunk larger than the loop the sum is an
    /// index behind the loop.
    #[test]
    fn strides_of_huge_chunks_leave_the_loop() {
        let index = Index::Signed(i32::MAX.into());
        for (size, chunk) in [(2, 1 << 30), (4, 1 << 30), (3, i32::MAX.into())] {
            for rank in 0..size {
                let share = static_share((rank, size), STATIC_CHUNKED, (0, 9), 1, chunk, index);
                let next = (share.lower + share.stride) as i32;
                assert!(next > 9, "rank {rank} of {size}: {next}");
                assert_eq!((rank == 0, share.is_last), (share.lower <= 9, rank == 0));
            }
        }
    }

    #[test]
    fn step_zero_aborts() {
        const CHILD: &str = "GRADUS_TEST_STEP_ZERO";
        if std::env::var_os(CHILD).is_some() {
            trip_count(0, 9, 0, Index::Signed(i64::MAX));
            return;
        }
        let program = std::env::current_exe().expect("a program");
        let mut child = std::process::Command::new(program);
        child.args([
            "--exact",
            "omp::worksharing::tests::step_zero_aborts",
            "--nocapture",
        ]);
        let output = child.env(CHILD, "1").output().expect("the test runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{said}");
        assert!(said.contains("has step 0"), "{said}");
    }
}
