//! Memory pools and stream-ordered allocation: a stream's work runs immediately, and both reduce to
//! `cudaMalloc`. A pool consists of its attributes.

use super::Status;
use super::error::{Error, api_call};
use super::memory::{self, Owner, store_result};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// The attribute that programs set: the amount of memory that a pool retains.
const RELEASE_THRESHOLD: c_int = 4;

/// A pool. Its other attributes are 1 (reuse is always valid) or 0 (nothing is retained).
struct Pool {
    threshold: AtomicU64,
}

static DEFAULT: Pool = Pool {
    threshold: AtomicU64::new(0),
};

fn default_pool() -> *mut c_void {
    (&raw const DEFAULT).cast_mut().cast()
}

/// # Safety
/// `pool` is null or a pool.
unsafe fn pool_at<'a>(pool: *mut c_void) -> Result<&'a Pool, Error> {
    // SAFETY: promised by the caller.
    unsafe { pool.cast::<Pool>().as_ref() }.ok_or(Error::InvalidValue)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMallocAsync(
    to: *mut *mut c_void,
    size: usize,
    _stream: *mut c_void,
) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { memory::store_allocation(to, size, Owner::Device, 0) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMallocFromPoolAsync(
    to: *mut *mut c_void,
    size: usize,
    pool: *mut c_void,
    _stream: *mut c_void,
) -> Status {
    api_call(|| {
        // SAFETY: promised by the caller.
        unsafe {
            pool_at(pool)?;
            memory::store_allocation(to, size, Owner::Device, 0)
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaFreeAsync(memory: *mut c_void, _stream: *mut c_void) -> Status {
    memory::cudaFree(memory)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetDefaultMemPool(to: *mut *mut c_void, device: c_int) -> Status {
    api_call(|| {
        super::device::check_device(device)?;
        // SAFETY: promised by the caller.
        unsafe { store_result(to, default_pool()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetMemPool(to: *mut *mut c_void, device: c_int) -> Status {
    // SAFETY: promised by the caller.
    unsafe { cudaDeviceGetDefaultMemPool(to, device) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceSetMemPool(device: c_int, pool: *mut c_void) -> Status {
    api_call(|| {
        super::device::check_device(device)?;
        // SAFETY: promised by the caller.
        unsafe { pool_at(pool) }.map(|_| ())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemPoolCreate(to: *mut *mut c_void, properties: *const c_void) -> Status {
    api_call(|| {
        if to.is_null() || properties.is_null() {
            return Err(Error::InvalidValue);
        }
        let pool = Box::new(Pool {
            threshold: AtomicU64::new(0),
        });
        // SAFETY: promised by the caller.
        unsafe { store_result(to, Box::into_raw(pool).cast()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemPoolDestroy(pool: *mut c_void) -> Status {
    api_call(|| {
        if pool.is_null() || pool == default_pool() {
            return Err(Error::InvalidValue);
        }
        // SAFETY: the pool came from `cudaMemPoolCreate` and is freed once.
        drop(unsafe { Box::from_raw(pool.cast::<Pool>()) });
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemPoolSetAttribute(
    pool: *mut c_void,
    attribute: c_int,
    value: *mut c_void,
) -> Status {
    api_call(|| {
        // SAFETY: promised by the caller.
        let pool = unsafe { pool_at(pool)? };
        if value.is_null() || !(1..=8).contains(&attribute) {
            return Err(Error::InvalidValue);
        }
        if attribute == RELEASE_THRESHOLD {
            // SAFETY: the attribute's value has 64 bits.
            pool.threshold
                .store(unsafe { *value.cast() }, Ordering::Relaxed);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemPoolGetAttribute(
    pool: *mut c_void,
    attribute: c_int,
    value: *mut c_void,
) -> Status {
    api_call(|| {
        // SAFETY: promised by the caller.
        let pool = unsafe { pool_at(pool)? };
        // SAFETY: the first three attributes are ints, the others have 64 bits.
        unsafe {
            match attribute {
                1..=3 => store_result(value.cast::<c_int>(), 1),
                RELEASE_THRESHOLD => {
                    store_result(value.cast(), pool.threshold.load(Ordering::Relaxed))
                }
                5..=8 => store_result(value.cast::<u64>(), 0),
                _ => Err(Error::InvalidValue),
            }
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemPoolTrimTo(pool: *mut c_void, _keep: usize) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { pool_at(pool) }.map(|_| ()))
}
