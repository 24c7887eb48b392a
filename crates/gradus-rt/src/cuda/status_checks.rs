//! CUDA calls split into status checks and plain memory operations, for programs that are differentiated.
//! The memory operation (copy, fill, allocation) is then visible in the program; this file contains the
//! checks for CUDA's errors, and the profile.

use super::Status;
use super::copies::{self, Direction};
use super::error::{self, Error, api_call};
use super::memory::{self, Owner};
use super::profile::{self, Activity};
use std::ffi::{c_int, c_void};

fn owner(number: c_int) -> Option<Owner> {
    [Owner::Host, Owner::Device, Owner::Managed]
        .into_iter()
        .find(|owner| *owner as c_int == number)
}

/// Allocates memory of the given owner; null on failure, and for a size of 0.
#[unsafe(no_mangle)]
extern "C" fn __gr_device_malloc(size: usize, number: c_int) -> *mut c_void {
    let mut made = std::ptr::null_mut();
    api_call(|| match (size, owner(number)) {
        (_, None) | (0, Some(Owner::Managed)) => Err(Error::InvalidValue),
        (0, _) => Ok(()),
        (_, Some(owner)) => {
            // Managed memory is attached globally (flag 1).
            let flags = c_int::from(owner == Owner::Managed) as u32;
            made = memory::allocate(size, owner, flags)?;
            Ok(())
        }
    });
    made
}

/// The status of `cudaMalloc`, for the result of [`__gr_device_malloc`].
#[unsafe(no_mangle)]
extern "C" fn __gr_device_status(made: *const c_void, size: usize, number: c_int) -> Status {
    let none = size == 0 && owner(number) != Some(Owner::Managed);
    match api_call(|| Ok(())) {
        0 if made.is_null() && !none => error::last_error(),
        status => status,
    }
}

/// The status of `cudaFree` or `cudaFreeHost`: 0 if the memory has the given owner, or is null. Host memory
/// and device memory are distinguished.
#[unsafe(no_mangle)]
extern "C" fn __gr_device_free_status(memory: *const c_void, number: c_int) -> Status {
    api_call(|| {
        let of_host = owner(number) == Some(Owner::Host);
        match memory::owner_at_start(memory) {
            _ if memory.is_null() => Ok(()),
            Some(Owner::Host) if of_host => Ok(()),
            Some(Owner::Device | Owner::Managed) if !of_host => Ok(()),
            _ => Err(Error::InvalidValue),
        }
    })
}

/// Frees memory, if allocated by this runtime.
#[unsafe(no_mangle)]
extern "C" fn __gr_device_free(memory: *mut c_void) {
    // The status has reported memory that cannot be freed.
    let _ = memory::free_owned(memory, &[Owner::Host, Owner::Device, Owner::Managed]);
}

/// Begins a copy; 0 if valid.
#[unsafe(no_mangle)]
extern "C" fn __gr_copy_begin(
    to: *const c_void,
    from: *const c_void,
    count: usize,
    kind: c_int,
) -> Status {
    api_call(|| {
        let direction = Direction::new(kind)?;
        if count > 0 {
            copies::check_ends(to, from, count, direction)?;
        }
        profile::begin(direction.activity().name());
        Ok(())
    })
}

/// Begins a fill; 0 if valid.
#[unsafe(no_mangle)]
extern "C" fn __gr_fill_begin(to: *const c_void, count: usize) -> Status {
    api_call(|| {
        if count > 0 {
            copies::check_end(to, count, None)?;
        }
        profile::begin(Activity::Fill.name());
        Ok(())
    })
}

/// Milliseconds between two events; 0 if invalid.
#[unsafe(no_mangle)]
extern "C" fn __gr_elapsed(start: *mut c_void, end: *mut c_void) -> f32 {
    super::streams::elapsed(start, end).unwrap_or(0.0)
}

/// The status of `cudaEventElapsedTime`.
#[unsafe(no_mangle)]
extern "C" fn __gr_elapsed_status(start: *mut c_void, end: *mut c_void) -> Status {
    api_call(|| super::streams::elapsed(start, end).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null;

    #[test]
    fn split_calls_match_cuda() {
        let memory = __gr_device_malloc(64, Owner::Device as c_int);
        assert!(!memory.is_null());
        assert_eq!(__gr_device_status(memory, 64, 2), 0);
        assert_eq!(__gr_device_status(null(), 0, 2), 0);
        let wrong = Error::InvalidValue as Status;
        assert!(__gr_device_malloc(0, Owner::Managed as c_int).is_null());
        assert_eq!(__gr_device_status(null(), 0, 3), wrong);
        let host = [0_u8; 64];
        let at: *const c_void = host.as_ptr().cast();
        assert_eq!(__gr_copy_begin(memory, at, 64, 1), 0);
        profile::end();
        assert_eq!(__gr_copy_begin(memory, at, 65, 1), wrong);
        assert_eq!(
            __gr_copy_begin(memory, at, 64, 9),
            Error::InvalidMemcpyDirection as Status
        );
        assert_eq!(__gr_fill_begin(memory, 65), wrong);
        assert_eq!(__gr_fill_begin(null(), 0), 0);
        assert_eq!(__gr_device_free_status(memory, 1), wrong);
        assert_eq!(__gr_device_free_status(memory, 2), 0);
        __gr_device_free(memory);
        assert_eq!(__gr_device_free_status(memory, 2), wrong);
        __gr_device_free(memory);
    }
}
