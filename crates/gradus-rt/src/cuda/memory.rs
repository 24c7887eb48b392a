//! Device memory and pinned host memory: both are memory of this machine. Allocations are registered by
//! address, and a wrong pointer is an error.

use super::Status;
use super::error::{Error, api_call};
use super::types::{Extent, Pitched, PointerAttributes};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Owner of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Pinned memory: `cudaMallocHost`, `cudaHostAlloc`.
    Host = 1,
    /// Device memory.
    Device = 2,
    /// Managed memory, of both sides.
    Managed = 3,
    /// The program's own memory, registered by `cudaHostRegister`.
    Registered = 4,
}

struct Allocation {
    size: usize,
    /// Bytes between the start of the allocated block and the memory.
    page_offset: usize,
    owner: Owner,
    flags: c_uint,
}

type Allocations = BTreeMap<usize, Allocation>;

fn allocations() -> MutexGuard<'static, Allocations> {
    static ALL: Mutex<Allocations> = Mutex::new(BTreeMap::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The alignment that CUDA guarantees; also the alignment of pitched rows.
pub(super) const ALIGNMENT: usize = 256;
/// Minimum size for which large pages are requested.
const LARGE: usize = 4 << 20;
const LARGE_PAGE: usize = 2 << 20;
/// Large allocations start at different offsets in their pages, `STEP` bytes apart, in rotation. Otherwise
/// elements with equal index in several arrays would have equal page offsets, and conflict in caches and
/// store buffers.
const PAGE_OFFSETS: usize = 16;
const PAGE_OFFSET_BYTES: usize = 3 * ALIGNMENT;

/// Allocates memory of `owner`.
pub(super) fn allocate(size: usize, owner: Owner, flags: c_uint) -> Result<*mut c_void, Error> {
    static LARGE_ONES: AtomicUsize = AtomicUsize::new(0);
    let (alignment, before) = match size >= LARGE {
        true => {
            let number = LARGE_ONES.fetch_add(1, Ordering::Relaxed);
            (LARGE_PAGE, number % PAGE_OFFSETS * PAGE_OFFSET_BYTES)
        }
        false => (ALIGNMENT, 0),
    };
    let needed = size.max(1).checked_add(before);
    let rounded = needed.and_then(|bytes| bytes.checked_next_multiple_of(alignment));
    let rounded = rounded.ok_or(Error::MemoryAllocation)?;
    // SAFETY: the alignment is a power of two that divides the size.
    let block = unsafe { libc::aligned_alloc(alignment, rounded) };
    if block.is_null() {
        return Err(Error::MemoryAllocation);
    }
    #[cfg(target_os = "linux")]
    if size >= LARGE {
        // The part added by the page offset needs no large page.
        let advised = size.next_multiple_of(LARGE_PAGE);
        // SAFETY: the range was just allocated; the advice changes no contents.
        unsafe { libc::madvise(block, advised, libc::MADV_HUGEPAGE) };
    }
    let memory = block.wrapping_byte_add(before);
    let allocation = Allocation {
        size,
        page_offset: before,
        owner,
        flags,
    };
    allocations().insert(memory as usize, allocation);
    Ok(memory)
}

/// Frees memory of one of `owners`.
pub(super) fn free_owned(memory: *mut c_void, owners: &[Owner]) -> Result<(), Error> {
    if memory.is_null() {
        return Ok(());
    }
    let mut all = allocations();
    let known = all.get(&(memory as usize));
    if !known.is_some_and(|found| owners.contains(&found.owner)) {
        return Err(Error::InvalidValue);
    }
    let gone = all.remove(&(memory as usize));
    drop(all);
    let before = gone.map_or(0, |allocation| allocation.page_offset);
    // SAFETY: the memory came from `allocate`, and no other thread frees the memory.
    unsafe { libc::free(memory.wrapping_byte_sub(before)) };
    Ok(())
}

/// Owner of the allocation that contains an address, and the remaining bytes from there; `None` if unknown
/// to the runtime.
pub(super) fn owner(address: *const c_void) -> Option<(Owner, usize)> {
    let all = allocations();
    let (start, found) = all.range(..=address as usize).next_back()?;
    let offset = address as usize - start;
    (offset < found.size).then(|| (found.owner, found.size - offset))
}

/// Owner of the allocation that starts at an address.
pub(super) fn owner_at_start(address: *const c_void) -> Option<Owner> {
    allocations()
        .get(&(address as usize))
        .map(|found| found.owner)
}

/// Returns whether two addresses lie in distinct allocations. For null and another address: whether the
/// other address lies in any allocation of this runtime, and therefore in no variable of the program.
/// Addresses derived from distinct allocations never alias.
#[unsafe(no_mangle)]
extern "C" fn __gr_apart(p: *const c_void, q: *const c_void) -> c_int {
    let all = allocations();
    let place = |address: *const c_void| {
        let (start, found) = all.range(..=address as usize).next_back()?;
        let inside = address as usize - start < found.size;
        (inside && found.owner != Owner::Registered).then_some(*start)
    };
    let apart = match (p.is_null(), q.is_null()) {
        (false, false) => matches!((place(p), place(q)), (Some(a), Some(b)) if a != b),
        (false, true) => place(p).is_some(),
        (true, false) => place(q).is_some(),
        (true, true) => false,
    };
    c_int::from(apart)
}

/// Stores a result of a call.
///
/// # Safety
/// `to` is null or writable.
pub(super) unsafe fn store_result<T>(to: *mut T, value: T) -> Result<(), Error> {
    if to.is_null() {
        return Err(Error::InvalidValue);
    }
    // SAFETY: promised by the caller.
    unsafe { to.write(value) };
    Ok(())
}

/// Allocates memory and stores its address in `to`; a size of 0 yields null.
///
/// # Safety
/// `to` is null or writable.
pub(super) unsafe fn store_allocation(
    to: *mut *mut c_void,
    size: usize,
    owner: Owner,
    flags: c_uint,
) -> Result<(), Error> {
    if to.is_null() {
        return Err(Error::InvalidValue);
    }
    let memory = match size {
        0 => std::ptr::null_mut(),
        _ => allocate(size, owner, flags)?,
    };
    // SAFETY: promised by the caller.
    unsafe { store_result(to, memory) }
}

/// Frees all allocations, except registered memory.
pub(super) fn reset() {
    let mut all = allocations();
    let gone: Vec<(usize, usize)> = all
        .iter()
        .filter(|(_, a)| a.owner != Owner::Registered)
        .map(|(&at, a)| (at, a.page_offset))
        .collect();
    for (at, before) in gone {
        all.remove(&at);
        // SAFETY: the memory came from `allocate`; the program gave up all memory of the device.
        unsafe { libc::free((at - before) as *mut c_void) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMalloc(to: *mut *mut c_void, size: usize) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { store_allocation(to, size, Owner::Device, 0) })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaFree(memory: *mut c_void) -> Status {
    api_call(|| free_owned(memory, &[Owner::Device, Owner::Managed]))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMallocHost(to: *mut *mut c_void, size: usize) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { store_allocation(to, size, Owner::Host, 0) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaHostAlloc(to: *mut *mut c_void, size: usize, flags: c_uint) -> Status {
    api_call(|| {
        if flags > 7 {
            return Err(Error::InvalidValue);
        }
        // SAFETY: promised by the caller.
        unsafe { store_allocation(to, size, Owner::Host, flags) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaFreeHost(memory: *mut c_void) -> Status {
    api_call(|| free_owned(memory, &[Owner::Host]))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMallocManaged(to: *mut *mut c_void, size: usize, flags: c_uint) -> Status {
    api_call(|| {
        if size == 0 || !(1..=2).contains(&flags) {
            return Err(Error::InvalidValue);
        }
        // SAFETY: promised by the caller.
        unsafe { store_allocation(to, size, Owner::Managed, flags) }
    })
}

/// Allocates `height` rows of `width` bytes; returns the memory and the pitch.
fn allocate_pitched(width: usize, height: usize) -> Result<(*mut c_void, usize), Error> {
    let pitch = width.checked_next_multiple_of(ALIGNMENT);
    let pitch = pitch.ok_or(Error::MemoryAllocation)?;
    let size = pitch.checked_mul(height).ok_or(Error::MemoryAllocation)?;
    match size {
        0 => Ok((std::ptr::null_mut(), pitch)),
        _ => Ok((allocate(size, Owner::Device, 0)?, pitch)),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMallocPitch(
    to: *mut *mut c_void,
    to_pitch: *mut usize,
    width: usize,
    height: usize,
) -> Status {
    api_call(|| {
        if to.is_null() || to_pitch.is_null() {
            return Err(Error::InvalidValue);
        }
        let (memory, pitch) = allocate_pitched(width, height)?;
        // SAFETY: promised by the caller.
        unsafe {
            store_result(to, memory)?;
            store_result(to_pitch, pitch)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMalloc3D(to: *mut Pitched, extent: Extent) -> Status {
    api_call(|| {
        if to.is_null() {
            return Err(Error::InvalidValue);
        }
        let count = extent.height.checked_mul(extent.depth);
        let (ptr, pitch) = allocate_pitched(extent.width, count.ok_or(Error::MemoryAllocation)?)?;
        let (xsize, ysize) = (extent.width, extent.height);
        // SAFETY: promised by the caller.
        unsafe {
            store_result(
                to,
                Pitched {
                    ptr,
                    pitch,
                    xsize,
                    ysize,
                },
            )
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaHostRegister(memory: *mut c_void, size: usize, _flags: c_uint) -> Status {
    api_call(|| {
        if memory.is_null() || size == 0 {
            return Err(Error::InvalidValue);
        }
        if owner(memory).is_some() {
            return Err(Error::HostMemoryAlreadyRegistered);
        }
        let owner = Owner::Registered;
        let allocation = Allocation {
            size,
            page_offset: 0,
            owner,
            flags: 0,
        };
        allocations().insert(memory as usize, allocation);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaHostUnregister(memory: *mut c_void) -> Status {
    api_call(|| {
        let mut all = allocations();
        match all.get(&(memory as usize)).map(|found| found.owner) {
            Some(Owner::Registered) => {
                all.remove(&(memory as usize));
                Ok(())
            }
            _ => Err(Error::HostMemoryNotRegistered),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaHostGetDevicePointer(
    to: *mut *mut c_void,
    host: *mut c_void,
    _flags: c_uint,
) -> Status {
    api_call(|| {
        if !owner(host).is_some_and(|(owner, _)| owner != Owner::Device) {
            return Err(Error::InvalidValue);
        }
        // SAFETY: promised by the caller.
        unsafe { store_result(to, host) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaHostGetFlags(to: *mut c_uint, host: *mut c_void) -> Status {
    api_call(|| {
        let all = allocations();
        let known = all.get(&(host as usize)).filter(|a| a.owner == Owner::Host);
        let flags = known.ok_or(Error::InvalidValue)?.flags;
        // SAFETY: promised by the caller.
        unsafe { store_result(to, flags) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemGetInfo(free: *mut usize, total: *mut usize) -> Status {
    api_call(|| {
        let (available, all) = super::device::memory();
        // SAFETY: promised by the caller.
        unsafe {
            store_result(free, available)?;
            store_result(total, all)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo(free: *mut usize, total: *mut usize) -> Status {
    // SAFETY: promised by the caller.
    unsafe { cudaMemGetInfo(free, total) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaPointerGetAttributes(
    to: *mut PointerAttributes,
    pointer: *const c_void,
) -> Status {
    api_call(|| {
        let known = owner(pointer).map(|(owner, _)| owner);
        let (kind, device) = match known {
            None => (0, -2),
            Some(Owner::Host | Owner::Registered) => (1, 0),
            Some(Owner::Device) => (2, 0),
            Some(Owner::Managed) => (3, 0),
        };
        let pointer = pointer.cast_mut();
        let nothing = std::ptr::null_mut();
        let attributes = PointerAttributes {
            kind,
            device,
            device_pointer: if known.is_some() { pointer } else { nothing },
            host_pointer: if known == Some(Owner::Device) {
                nothing
            } else {
                pointer
            },
        };
        // SAFETY: promised by the caller.
        unsafe { store_result(to, attributes) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemPrefetchAsync(
    pointer: *const c_void,
    count: usize,
    device: c_int,
    _stream: *mut c_void,
) -> Status {
    api_call(|| {
        if !(-1..=0).contains(&device) {
            return Err(Error::InvalidDevice);
        }
        check_managed(pointer, count)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemAdvise(
    pointer: *const c_void,
    count: usize,
    advice: c_int,
    _device: c_int,
) -> Status {
    api_call(|| {
        if !(1..=6).contains(&advice) {
            return Err(Error::InvalidValue);
        }
        check_managed(pointer, count)
    })
}

/// Checks that a range is managed memory.
fn check_managed(pointer: *const c_void, count: usize) -> Result<(), Error> {
    match owner(pointer) {
        Some((Owner::Managed, size)) if count > 0 && count <= size => Ok(()),
        _ => Err(Error::InvalidValue),
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamAttachMemAsync(
    _stream: *mut c_void,
    pointer: *mut c_void,
    _length: usize,
    _flags: c_uint,
) -> Status {
    api_call(|| check_managed(pointer, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn allocations_are_known_and_aligned() {
        let mut memory = null_mut();
        for size in [1, 1000, 5 << 20] {
            assert_eq!(unsafe { cudaMalloc(&mut memory, size) }, 0);
            assert_eq!(memory as usize % ALIGNMENT, 0);
            assert_eq!(owner(memory), Some((Owner::Device, size)));
            let last = memory.wrapping_byte_add(size - 1);
            assert_eq!(owner(last), Some((Owner::Device, 1)));
            assert_ne!(
                owner(memory.wrapping_byte_add(size)),
                Some((Owner::Device, 0))
            );
            assert_eq!(cudaFreeHost(memory), Error::InvalidValue as Status);
            assert_eq!(cudaFree(memory), 0);
            assert_eq!(cudaFree(memory), Error::InvalidValue as Status);
        }
        assert_eq!(cudaFree(null_mut()), 0);
    }

    #[test]
    fn large_memory_rotates_page_offsets() {
        let memory: Vec<*mut c_void> = (0..3)
            .map(|_| allocate(LARGE, Owner::Device, 0).expect("there is memory"))
            .collect();
        let places: Vec<usize> = memory.iter().map(|m| *m as usize % 4096).collect();
        assert!(
            places[0] != places[1] && places[1] != places[2],
            "{places:?}"
        );
        for block in memory {
            // SAFETY: the last byte of the block.
            unsafe { block.cast::<u8>().add(LARGE - 1).write(1) };
            assert_eq!(cudaFree(block), 0);
        }
    }

    #[test]
    fn distinct_allocations_are_disjoint() {
        let (mut p, mut q) = (null_mut::<c_void>(), null_mut::<c_void>());
        assert_eq!(unsafe { cudaMalloc(&mut p, 100) }, 0);
        assert_eq!(unsafe { cudaMalloc(&mut q, 100) }, 0);
        assert_eq!(__gr_apart(p, q), 1);
        assert_eq!(__gr_apart(p.wrapping_byte_add(99), q), 1);
        assert_eq!(__gr_apart(p, p.wrapping_byte_add(8)), 0);
        // An address past the end may step back into the block, an address before the start may step
        // forward.
        assert_eq!(__gr_apart(p.wrapping_byte_add(100), q), 0);
        assert_eq!(__gr_apart(p.wrapping_byte_sub(8), q), 0);
        assert_eq!(
            (__gr_apart(p, null_mut()), __gr_apart(null_mut(), q)),
            (1, 1)
        );
        let own = [0_u8; 8];
        assert_eq!(__gr_apart(own.as_ptr().cast(), q), 0);
        assert_eq!(__gr_apart(own.as_ptr().cast(), null_mut()), 0);
        assert_eq!((cudaFree(p), cudaFree(q)), (0, 0));
    }

    #[test]
    fn wrong_requests_have_cudas_codes() {
        let mut memory = null_mut();
        assert_eq!(
            unsafe { cudaMalloc(null_mut(), 8) },
            Error::InvalidValue as Status
        );
        assert_eq!(
            unsafe { cudaMalloc(&mut memory, usize::MAX / 2) },
            Error::MemoryAllocation as Status
        );
        assert_eq!(
            unsafe { cudaMalloc(&mut memory, usize::MAX) },
            Error::MemoryAllocation as Status
        );
        assert_eq!(
            unsafe { cudaMallocManaged(&mut memory, 0, 1) },
            Error::InvalidValue as Status
        );
        let word = 0_u64;
        let place = (&raw const word).cast_mut().cast::<c_void>();
        assert_eq!(cudaFree(place), Error::InvalidValue as Status);
        assert_eq!(
            cudaHostUnregister(place),
            Error::HostMemoryNotRegistered as Status
        );
        assert_eq!(cudaHostRegister(place, 8, 0), 0);
        assert_eq!(
            cudaHostRegister(place, 8, 0),
            Error::HostMemoryAlreadyRegistered as Status
        );
        assert_eq!(cudaHostUnregister(place), 0);
    }

    #[test]
    fn rows_start_aligned() {
        let (mut memory, mut pitch) = (null_mut(), 0);
        assert_eq!(
            unsafe { cudaMallocPitch(&mut memory, &mut pitch, 100, 7) },
            0
        );
        assert_eq!(pitch, 256);
        assert_eq!(owner(memory), Some((Owner::Device, 7 * 256)));
        assert_eq!(cudaFree(memory), 0);
    }
}
