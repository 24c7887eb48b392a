//! CUDA arrays: memory with a format and extents, laid out row by row.

use super::Status;
use super::error::{Error, api_call};
use super::memory::{self, Owner};
use super::types::{Array, Extent, Format};
use std::ffi::{c_int, c_uint, c_void};

/// Creates an array of `extent` elements; a height or depth of 0 means an absent dimension.
///
/// # Errors
/// An invalid format, a width of 0, or no memory.
pub(super) fn new_array(
    format: Format,
    extent: Extent,
    flags: c_uint,
) -> Result<Box<Array>, Error> {
    let element = format.bytes().ok_or(Error::InvalidChannelDescriptor)?;
    let Extent {
        width,
        height,
        depth,
    } = extent;
    if width == 0 {
        return Err(Error::InvalidValue);
    }
    let pitch = width.checked_mul(element).ok_or(Error::MemoryAllocation)?;
    let slice = pitch
        .checked_mul(height.max(1))
        .ok_or(Error::MemoryAllocation)?;
    let size = slice
        .checked_mul(depth.max(1))
        .ok_or(Error::MemoryAllocation)?;
    let data = memory::allocate(size, Owner::Managed, 0)?.cast();
    Ok(Box::new(Array {
        data,
        format,
        width,
        height,
        depth,
        element,
        pitch,
        slice,
        flags,
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMallocArray(
    to: *mut *mut Array,
    format: *const Format,
    width: usize,
    height: usize,
    flags: c_uint,
) -> Status {
    // SAFETY: promised by the caller.
    unsafe {
        cudaMalloc3DArray(
            to,
            format,
            Extent {
                width,
                height,
                depth: 0,
            },
            flags,
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMalloc3DArray(
    to: *mut *mut Array,
    format: *const Format,
    extent: Extent,
    flags: c_uint,
) -> Status {
    api_call(|| {
        // SAFETY: promised by the caller.
        let format = unsafe { format.as_ref() }.ok_or(Error::InvalidValue)?;
        if to.is_null() {
            return Err(Error::InvalidValue);
        }
        let array = new_array(*format, extent, flags)?;
        // SAFETY: promised by the caller.
        unsafe { memory::store_result(to, Box::into_raw(array)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaFreeArray(array: *mut Array) -> Status {
    if array.is_null() {
        return api_call(|| Ok(()));
    }
    // SAFETY: the array came from `cudaMalloc3DArray` and is freed once.
    let array = unsafe { Box::from_raw(array) };
    memory::cudaFree(array.data.cast())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetChannelDesc(to: *mut Format, array: *const Array) -> Status {
    api_call(|| {
        // SAFETY: promised by the caller.
        let array = unsafe { array.as_ref() }.ok_or(Error::InvalidResourceHandle)?;
        // SAFETY: promised by the caller.
        unsafe { memory::store_result(to, array.format) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaArrayGetInfo(
    format: *mut Format,
    extent: *mut Extent,
    flags: *mut c_uint,
    array: *const Array,
) -> Status {
    api_call(|| {
        // SAFETY: promised by the caller.
        let array = unsafe { array.as_ref() }.ok_or(Error::InvalidResourceHandle)?;
        let Array {
            width,
            height,
            depth,
            ..
        } = *array;
        // Each of the three pointers may be null, if the caller ignores the value.
        unsafe {
            let _ = memory::store_result(format, array.format);
            let _ = memory::store_result(
                extent,
                Extent {
                    width,
                    height,
                    depth,
                },
            );
            let _ = memory::store_result(flags, array.flags);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaCreateChannelDesc(x: c_int, y: c_int, z: c_int, w: c_int, f: c_int) -> Format {
    Format { x, y, z, w, f }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaCreateSurfaceObject(
    to: *mut u64,
    resource: *const super::types::Resource,
) -> Status {
    api_call(|| {
        // SAFETY: promised by the caller.
        let resource = unsafe { resource.as_ref() }.ok_or(Error::InvalidValue)?;
        if resource.kind != 0 || resource.pointer.is_null() {
            return Err(Error::InvalidValue);
        }
        // SAFETY: promised by the caller.
        unsafe { memory::store_result(to, resource.pointer as u64) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaDestroySurfaceObject(_surface: u64) -> Status {
    api_call(|| Ok(()))
}

/// The array that a resource points to.
///
/// # Safety
/// `pointer` is null or an array.
pub(super) unsafe fn array_at<'a>(pointer: *const c_void) -> Result<&'a Array, Error> {
    // SAFETY: promised by the caller.
    unsafe { pointer.cast::<Array>().as_ref() }.ok_or(Error::InvalidResourceHandle)
}
