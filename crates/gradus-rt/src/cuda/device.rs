//! The only device: this machine, described as a CUDA device. The compute capability is the one that the
//! program's kernels are compiled for, at least 7.0. The multiprocessors are the pool's workers.

use super::Status;
use super::error::{self, Error, api_call};
use super::kernels::capability;
use super::memory::{self, store_result};
use super::types::DeviceProperties;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Limits of the device.
pub(super) const MAX_THREADS: u32 = 1024;
pub(super) const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
pub(super) const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Shared memory per block, in bytes: by default, and with the kernel's opt-in.
pub(super) const SHARED: usize = 48 << 10;
pub(super) const SHARED_OPTIN: usize = 96 << 10;
pub(super) const THREADS_PER_PROCESSOR: u32 = 2048;
pub(super) const BLOCKS_PER_PROCESSOR: u32 = 32;
/// Kernel clocks count nanoseconds.
const CLOCK_KHZ: c_int = 1_000_000;
const VERSION: c_int = 12_020;
const PCI: &CStr = c"0000:00:00.0";

static FLAGS: AtomicU32 = AtomicU32::new(0);
static CACHE_CONFIG: AtomicU32 = AtomicU32::new(0);
static SHARED_MEM_CONFIG: AtomicU32 = AtomicU32::new(1);
/// Device limits by number, with CUDA's initial values.
static LIMITS: [AtomicUsize; 7] = [
    AtomicUsize::new(1024),
    AtomicUsize::new(1 << 20),
    AtomicUsize::new(8 << 20),
    AtomicUsize::new(2),
    AtomicUsize::new(2048),
    AtomicUsize::new(64),
    AtomicUsize::new(0),
];

/// Free and total memory, in bytes.
pub(super) fn memory() -> (usize, usize) {
    let pages = |name| {
        // SAFETY: the call only returns a number.
        usize::try_from(unsafe { libc::sysconf(name) }).unwrap_or(0)
    };
    let page = pages(libc::_SC_PAGESIZE);
    (
        page * pages(libc::_SC_AVPHYS_PAGES),
        page * pages(libc::_SC_PHYS_PAGES),
    )
}

/// Checks that a device exists: only number 0 does.
pub(super) fn check_device(device: c_int) -> Result<(), Error> {
    match device {
        0 => Ok(()),
        _ => Err(Error::InvalidDevice),
    }
}

fn multiprocessors() -> c_int {
    crate::pool::gr_workers()
}

fn properties() -> DeviceProperties {
    let mut name = [0; 256];
    for (to, from) in name.iter_mut().zip(b"Gradus: CUDA on the CPU") {
        *to = *from as c_char;
    }
    let (major, minor) = capability();
    let int = |n: usize| c_int::try_from(n).unwrap_or(c_int::MAX);
    let signed = |n: [u32; 3]| n.map(|n| int(n as usize));
    DeviceProperties {
        name,
        uuid: [0; 16],
        luid: [0; 8],
        luid_mask: 0,
        total_memory: memory().1,
        shared_per_block: SHARED,
        registers_per_block: 65_536,
        warp: 32,
        max_pitch: i32::MAX as usize,
        max_threads: int(MAX_THREADS as usize),
        max_block: signed(MAX_BLOCK),
        max_grid: signed(MAX_GRID),
        clock_khz: CLOCK_KHZ,
        constant_memory: 64 << 10,
        major,
        minor,
        texture_alignment: 512,
        texture_pitch_alignment: 32,
        overlap: 1,
        processors: multiprocessors(),
        timeout: 0,
        integrated: 0,
        maps_host: 1,
        compute_mode: 0,
        textures: TEXTURES,
        surfaces: SURFACES,
        surface_alignment: 512,
        concurrent_kernels: 1,
        ecc: 0,
        pci: [0; 3],
        tcc: 0,
        async_engines: 1,
        unified: 1,
        memory_clock_khz: 1_600_000,
        memory_bus_bits: 128,
        l2: 1 << 20,
        l2_persisting: 0,
        threads_per_processor: int(THREADS_PER_PROCESSOR as usize),
        priorities: 1,
        l1_global: 1,
        l1_local: 1,
        shared_per_processor: SHARED_OPTIN,
        registers_per_processor: 65_536,
        managed: 1,
        multi_board: 0,
        multi_board_group: 0,
        host_atomics: 1,
        double_ratio: 2,
        pageable: 1,
        concurrent_managed: 1,
        preemption: 1,
        registered_pointers: 1,
        cooperative: 0,
        cooperative_multi: 0,
        shared_per_block_optin: SHARED_OPTIN,
        host_page_tables: 1,
        direct_managed: 1,
        blocks_per_processor: int(BLOCKS_PER_PROCESSOR as usize),
        window: 0,
        shared_reserved: 0,
        host_register: 1,
        pools: 1,
    }
}

/// Maximum texture extents in field order, with the values of compute capability 7.0.
const TEXTURES: [c_int; 26] = [
    131_072,
    32_768,
    268_435_456,
    131_072,
    65_536,
    32_768,
    32_768,
    131_072,
    65_000,
    2_097_120,
    32_768,
    32_768,
    16_384,
    16_384,
    16_384,
    8192,
    8192,
    32_768,
    32_768,
    32_768,
    2048,
    32_768,
    32_768,
    2048,
    32_768,
    2046,
];
const SURFACES: [c_int; 14] = [
    32_768, 131_072, 65_536, 16_384, 16_384, 16_384, 32_768, 2048, 32_768, 32_768, 2048, 32_768,
    32_768, 2046,
];

/// The value of an attribute by number.
fn attribute(number: c_int) -> Option<c_int> {
    let p = properties();
    let int = |n: usize| c_int::try_from(n).unwrap_or(c_int::MAX);
    // table
    Some(match number {
        1 => p.max_threads,
        2..=4 => p.max_block[number as usize - 2],
        5..=7 => p.max_grid[number as usize - 5],
        8 => int(p.shared_per_block),
        9 => int(p.constant_memory),
        10 => p.warp,
        11 => int(p.max_pitch),
        12 => p.registers_per_block,
        13 => p.clock_khz,
        14 => int(p.texture_alignment),
        15 => p.overlap,
        16 => p.processors,
        17 | 18 | 20 | 32..=35 => 0,
        19 | 31 | 41 | 78..=80 | 83 | 86 | 88..=91 | 99..=101 | 115 => 1,
        21 => p.textures[0],
        22 | 23 => p.textures[number as usize - 22 + 3],
        24..=26 => p.textures[number as usize - 24 + 12],
        36 => p.memory_clock_khz,
        37 => p.memory_bus_bits,
        38 => p.l2,
        39 => p.threads_per_processor,
        40 => p.async_engines,
        75 => p.major,
        76 => p.minor,
        81 => int(p.shared_per_processor),
        82 => p.registers_per_processor,
        84 | 85 | 95 | 96 | 98 | 108 | 111 => 0,
        87 => p.double_ratio,
        97 => int(p.shared_per_block_optin),
        106 => p.blocks_per_processor,
        _ => return None,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetDeviceProperties(to: *mut DeviceProperties, device: c_int) -> Status {
    api_call(|| {
        check_device(device)?;
        // SAFETY: promised by the caller.
        unsafe { store_result(to, properties()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetAttribute(
    to: *mut c_int,
    number: c_int,
    device: c_int,
) -> Status {
    api_call(|| {
        check_device(device)?;
        let value = attribute(number).ok_or(Error::InvalidValue)?;
        // SAFETY: promised by the caller.
        unsafe { store_result(to, value) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetDeviceCount(to: *mut c_int) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { store_result(to, 1) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetDevice(to: *mut c_int) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { store_result(to, 0) })
}

#[unsafe(no_mangle)]
extern "C" fn cudaSetDevice(device: c_int) -> Status {
    api_call(|| check_device(device))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaSetValidDevices(devices: *const c_int, count: c_int) -> Status {
    api_call(|| {
        let count = usize::try_from(count).map_err(|_| Error::InvalidValue)?;
        for i in 0..count {
            // SAFETY: promised by the caller.
            check_device(unsafe { *devices.wrapping_add(i) })?;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaChooseDevice(to: *mut c_int, _like: *const DeviceProperties) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { store_result(to, 0) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetPCIBusId(
    to: *mut c_char,
    length: c_int,
    device: c_int,
) -> Status {
    api_call(|| {
        check_device(device)?;
        let bytes = PCI.to_bytes_with_nul();
        if to.is_null() || usize::try_from(length).unwrap_or(0) < bytes.len() {
            return Err(Error::InvalidValue);
        }
        // SAFETY: the buffer is large enough for the text.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetByPCIBusId(to: *mut c_int, id: *const c_char) -> Status {
    api_call(|| {
        // SAFETY: promised by the caller.
        if id.is_null() || unsafe { CStr::from_ptr(id) } != PCI {
            return Err(Error::InvalidValue);
        }
        // SAFETY: promised by the caller.
        unsafe { store_result(to, 0) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaSetDeviceFlags(flags: c_uint) -> Status {
    FLAGS.store(flags, Ordering::Relaxed);
    api_call(|| Ok(()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetDeviceFlags(to: *mut c_uint) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { store_result(to, FLAGS.load(Ordering::Relaxed)) })
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceSynchronize() -> Status {
    api_call(|| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaThreadSynchronize() -> Status {
    api_call(|| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceReset() -> Status {
    memory::reset();
    error::clear_errors();
    0
}

#[unsafe(no_mangle)]
extern "C" fn cudaThreadExit() -> Status {
    cudaDeviceReset()
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceSetCacheConfig(config: c_uint) -> Status {
    CACHE_CONFIG.store(config, Ordering::Relaxed);
    api_call(|| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaThreadSetCacheConfig(config: c_uint) -> Status {
    cudaDeviceSetCacheConfig(config)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetCacheConfig(to: *mut c_uint) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { store_result(to, CACHE_CONFIG.load(Ordering::Relaxed)) })
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceSetSharedMemConfig(config: c_uint) -> Status {
    SHARED_MEM_CONFIG.store(config, Ordering::Relaxed);
    api_call(|| Ok(()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetSharedMemConfig(to: *mut c_uint) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { store_result(to, SHARED_MEM_CONFIG.load(Ordering::Relaxed)) })
}

fn limit(number: c_int) -> Result<&'static AtomicUsize, Error> {
    let number = usize::try_from(number).ok();
    number
        .and_then(|n| LIMITS.get(n))
        .ok_or(Error::UnsupportedLimit)
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceSetLimit(number: c_int, value: usize) -> Status {
    api_call(|| {
        limit(number)?.store(value, Ordering::Relaxed);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetLimit(to: *mut usize, number: c_int) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { store_result(to, limit(number)?.load(Ordering::Relaxed)) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceCanAccessPeer(to: *mut c_int, device: c_int, peer: c_int) -> Status {
    api_call(|| {
        check_device(device)?;
        check_device(peer)?;
        // SAFETY: promised by the caller.
        unsafe { store_result(to, 0) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceEnablePeerAccess(_peer: c_int, _flags: c_uint) -> Status {
    api_call(|| Err(Error::InvalidDevice))
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceDisablePeerAccess(_peer: c_int) -> Status {
    api_call(|| Err(Error::InvalidDevice))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDriverGetVersion(to: *mut c_int) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { store_result(to, VERSION) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaRuntimeGetVersion(to: *mut c_int) -> Status {
    // SAFETY: promised by the caller.
    api_call(|| unsafe { store_result(to, VERSION) })
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(_flags: c_uint) -> Status {
    0
}

#[unsafe(no_mangle)]
extern "C" fn cudaProfilerStart() -> Status {
    api_call(|| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaProfilerStop() -> Status {
    api_call(|| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_the_properties() {
        let mut value = -1;
        unsafe {
            assert_eq!(cudaDeviceGetAttribute(&mut value, 4, 0), 0);
            assert_eq!(value, 64);
            assert_eq!(cudaDeviceGetAttribute(&mut value, 97, 0), 0);
            assert_eq!(value, 98_304);
            let wrong = Error::InvalidValue as Status;
            assert_eq!(cudaDeviceGetAttribute(&mut value, 9999, 0), wrong);
            let none = Error::InvalidDevice as Status;
            assert_eq!(cudaDeviceGetAttribute(&mut value, 4, 1), none);
        }
    }
}
