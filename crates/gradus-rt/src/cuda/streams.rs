//! Streams and events. A stream's work runs immediately; a stream is therefore a handle with flags, and an
//! event the time of its recording.

use super::Status;
use super::error::{Error, api_call};
use super::memory::store_result;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// State of a stream.
#[derive(Clone, Copy)]
struct Stream {
    flags: c_uint,
    priority: c_int,
}

/// State of an event.
#[derive(Clone, Copy)]
struct Event {
    timed: bool,
    recorded: Option<Instant>,
}

/// Live handles: numbered from [`FIRST`] upwards, never reused.
struct Handles<T> {
    live: BTreeMap<usize, T>,
    made: usize,
}

/// Above the handles of the default streams.
const FIRST: usize = 16;
/// Highest of the default handles: 0, `cudaStreamLegacy`, `cudaStreamPerThread`.
const DEFAULTS: usize = 2;
/// `cudaEventDisableTiming`.
const DISABLE_TIMING: c_uint = 2;
/// Stream priorities, lowest first.
const PRIORITIES: (c_int, c_int) = (0, -5);

impl<T> Handles<T> {
    const fn new() -> Handles<T> {
        Handles {
            live: BTreeMap::new(),
            made: 0,
        }
    }

    fn add(&mut self, value: T) -> *mut c_void {
        let handle = FIRST + 16 * self.made;
        self.made += 1;
        self.live.insert(handle, value);
        handle as *mut c_void
    }

    fn get(&mut self, handle: *mut c_void) -> Result<&mut T, Error> {
        let found = self.live.get_mut(&(handle as usize));
        found.ok_or(Error::InvalidResourceHandle)
    }

    fn remove(&mut self, handle: *mut c_void) -> Result<(), Error> {
        let found = self.live.remove(&(handle as usize));
        found.map(|_| ()).ok_or(Error::InvalidResourceHandle)
    }
}

fn streams() -> MutexGuard<'static, Handles<Stream>> {
    static ALL: Mutex<Handles<Stream>> = Mutex::new(Handles::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn events() -> MutexGuard<'static, Handles<Event>> {
    static ALL: Mutex<Handles<Event>> = Mutex::new(Handles::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The stream of a handle.
fn stream(handle: *mut c_void) -> Result<Stream, Error> {
    match handle as usize {
        0..=DEFAULTS => Ok(Stream {
            flags: 0,
            priority: PRIORITIES.0,
        }),
        _ => streams().get(handle).copied(),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamCreateWithPriority(
    to: *mut *mut c_void,
    flags: c_uint,
    priority: c_int,
) -> Status {
    api_call(|| {
        if to.is_null() || flags > 1 {
            return Err(Error::InvalidValue);
        }
        let priority = priority.clamp(PRIORITIES.1, PRIORITIES.0);
        let handle = streams().add(Stream { flags, priority });
        // SAFETY: promised by the caller.
        unsafe { store_result(to, handle) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamCreateWithFlags(to: *mut *mut c_void, flags: c_uint) -> Status {
    // SAFETY: promised by the caller.
    unsafe { cudaStreamCreateWithPriority(to, flags, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamCreate(to: *mut *mut c_void) -> Status {
    // SAFETY: promised by the caller.
    unsafe { cudaStreamCreateWithPriority(to, 0, 0) }
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamDestroy(handle: *mut c_void) -> Status {
    api_call(|| streams().remove(handle))
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamSynchronize(handle: *mut c_void) -> Status {
    api_call(|| stream(handle).map(|_| ()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamQuery(handle: *mut c_void) -> Status {
    api_call(|| stream(handle).map(|_| ()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamGetFlags(handle: *mut c_void, to: *mut c_uint) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { store_result(to, stream(handle)?.flags) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamGetPriority(handle: *mut c_void, to: *mut c_int) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { store_result(to, stream(handle)?.priority) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetStreamPriorityRange(
    least: *mut c_int,
    greatest: *mut c_int,
) -> Status {
    api_call(|| {
        // Each pointer may be null, if the caller ignores the value.
        unsafe {
            let _ = store_result(least, PRIORITIES.0);
            let _ = store_result(greatest, PRIORITIES.1);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamWaitEvent(
    handle: *mut c_void,
    event: *mut c_void,
    _flags: c_uint,
) -> Status {
    api_call(|| {
        stream(handle)?;
        events().get(event).map(|_| ())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaStreamAddCallback(
    handle: *mut c_void,
    callback: Option<unsafe extern "C" fn(*mut c_void, Status, *mut c_void)>,
    data: *mut c_void,
    flags: c_uint,
) -> Status {
    api_call(|| {
        stream(handle)?;
        let callback = callback.filter(|_| flags == 0).ok_or(Error::InvalidValue)?;
        // SAFETY: promised by the caller.
        unsafe { callback(handle, 0, data) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaLaunchHostFunc(
    handle: *mut c_void,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> Status {
    api_call(|| {
        stream(handle)?;
        // SAFETY: promised by the caller.
        unsafe { function.ok_or(Error::InvalidValue)?(data) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaEventCreateWithFlags(to: *mut *mut c_void, flags: c_uint) -> Status {
    api_call(|| {
        if to.is_null() || flags > 7 {
            return Err(Error::InvalidValue);
        }
        let timed = flags & DISABLE_TIMING == 0;
        let handle = events().add(Event {
            timed,
            recorded: None,
        });
        // SAFETY: promised by the caller.
        unsafe { store_result(to, handle) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaEventCreate(to: *mut *mut c_void) -> Status {
    // SAFETY: promised by the caller.
    unsafe { cudaEventCreateWithFlags(to, 0) }
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventDestroy(event: *mut c_void) -> Status {
    api_call(|| events().remove(event))
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventRecord(event: *mut c_void, handle: *mut c_void) -> Status {
    api_call(|| {
        stream(handle)?;
        events().get(event)?.recorded = Some(Instant::now());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventRecordWithFlags(
    event: *mut c_void,
    handle: *mut c_void,
    _flags: c_uint,
) -> Status {
    cudaEventRecord(event, handle)
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventSynchronize(event: *mut c_void) -> Status {
    api_call(|| events().get(event).map(|_| ()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventQuery(event: *mut c_void) -> Status {
    api_call(|| events().get(event).map(|_| ()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaEventElapsedTime(
    to: *mut f32,
    start: *mut c_void,
    end: *mut c_void,
) -> Status {
    api_call(|| {
        let passed = elapsed(start, end)?;
        // SAFETY: promised by the caller.
        unsafe { store_result(to, passed) }
    })
}

/// Milliseconds between two events.
pub(super) fn elapsed(start: *mut c_void, end: *mut c_void) -> Result<f32, Error> {
    let mut all = events();
    let mut time = |event| {
        let event = all.get(event)?;
        let recorded = event.recorded.filter(|_| event.timed);
        recorded.ok_or(Error::InvalidResourceHandle)
    };
    let (start, end) = (time(start)?, time(end)?);
    let seconds = match end.checked_duration_since(start) {
        Some(passed) => passed.as_secs_f64(),
        None => -(start - end).as_secs_f64(),
    };
    Ok((seconds * 1e3) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn elapsed_time_between_events() {
        let (mut a, mut b, mut silent, mut time) = (null_mut(), null_mut(), null_mut(), -1.0);
        unsafe {
            assert_eq!(cudaEventCreate(&mut a), 0);
            assert_eq!(cudaEventCreate(&mut b), 0);
            assert_eq!(cudaEventCreateWithFlags(&mut silent, DISABLE_TIMING), 0);
            let wrong = Error::InvalidResourceHandle as Status;
            assert_eq!(cudaEventElapsedTime(&mut time, a, b), wrong);
            for event in [a, b, silent] {
                assert_eq!(cudaEventRecord(event, null_mut()), 0);
            }
            assert_eq!(cudaEventElapsedTime(&mut time, a, b), 0);
            assert!(time >= 0.0);
            let forward = time;
            assert_eq!(cudaEventElapsedTime(&mut time, b, a), 0);
            assert_eq!(time, -forward);
            assert_eq!(cudaEventElapsedTime(&mut time, a, silent), wrong);
            assert_eq!(cudaEventDestroy(a), 0);
            assert_eq!(cudaEventDestroy(a), wrong);
            assert_eq!(cudaEventRecord(a, null_mut()), wrong);
        }
    }

    #[test]
    fn destroyed_streams_are_invalid() {
        let (mut made, mut priority) = (null_mut(), 9);
        unsafe {
            assert_eq!(cudaStreamCreateWithPriority(&mut made, 1, -99), 0);
            assert_eq!(cudaStreamGetPriority(made, &mut priority), 0);
            assert_eq!(priority, PRIORITIES.1);
        }
        assert_eq!(cudaStreamSynchronize(made), 0);
        assert_eq!(cudaStreamSynchronize(null_mut()), 0);
        assert_eq!(cudaStreamDestroy(made), 0);
        assert_eq!(
            cudaStreamQuery(made),
            Error::InvalidResourceHandle as Status
        );
    }
}
