//! Kernel registry: each file's constructor registers its kernels, by the address of the host stub.

use super::Status;
use super::device::{
    BLOCKS_PER_PROCESSOR, MAX_THREADS, SHARED, SHARED_OPTIN, THREADS_PER_PROCESSOR,
};
use super::error::{Error, api_call};
use super::memory::store_result;
use super::types::FunctionAttributes;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{PoisonError, RwLock};

/// Runs a whole grid: addresses of the arguments, sizes of grid and block, bytes of dynamic shared memory.
pub(super) type Entry = unsafe extern "C" fn(*mut *mut c_void, u64, u64, u64, u64, u64, u64, u64);

/// A registered kernel.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) entry: Entry,
    pub(super) name: &'static CStr,
    /// The bound of `__launch_bounds__`, else the device's limit.
    pub(super) max_threads: u32,
    /// Static shared memory, in bytes.
    pub(super) shared: usize,
    /// Architecture of the compiled code: ten times the compute capability.
    architecture: c_int,
    /// Maximum dynamic shared memory of a launch, in bytes.
    dynamic: AtomicI32,
}

impl Kernel {
    /// Returns whether a launch may request `dynamic` bytes of dynamic shared memory.
    pub(super) fn allows_dynamic_shared(&self, dynamic: usize) -> bool {
        usize::try_from(self.dynamic.load(Ordering::Relaxed)).is_ok_and(|most| dynamic <= most)
    }
}

static KERNELS: RwLock<BTreeMap<usize, &'static Kernel>> = RwLock::new(BTreeMap::new());

/// The highest architecture of all registered kernels.
static ARCHITECTURE: AtomicI32 = AtomicI32::new(70);

/// The compute capability of the device, major and minor: the highest that the program was compiled for.
pub(super) fn capability() -> (c_int, c_int) {
    let architecture = ARCHITECTURE.load(Ordering::Relaxed);
    (architecture / 10, architecture % 10)
}

thread_local! {
    /// The kernel found last.
    static RECENT: Cell<(usize, Option<&'static Kernel>)> = const { Cell::new((0, None)) };
}

/// The kernel of a stub.
pub(super) fn find(stub: *const c_void) -> Result<&'static Kernel, Error> {
    if let (at, Some(kernel)) = RECENT.get()
        && at == stub as usize
    {
        return Ok(kernel);
    }
    let all = KERNELS.read().unwrap_or_else(PoisonError::into_inner);
    let kernel = *all
        .get(&(stub as usize))
        .ok_or(Error::InvalidDeviceFunction)?;
    RECENT.set((stub as usize, Some(kernel)));
    Ok(kernel)
}

/// Registers a kernel for `stub`; `max_threads` of 0 means the device's limit.
///
/// # Safety
/// `entry` is the kernel's entry and `name` a C string; both live until program end.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn __gr_kernel_register(
    stub: *const c_void,
    entry: Entry,
    name: *const c_char,
    max_threads: i32,
    shared: i64,
    architecture: i32,
) {
    let max_threads = match u32::try_from(max_threads) {
        Ok(given @ 1..=MAX_THREADS) => given,
        _ => MAX_THREADS,
    };
    let shared = usize::try_from(shared).unwrap_or(0);
    let dynamic = c_int::try_from(SHARED.saturating_sub(shared)).unwrap_or(0);
    let kernel = Kernel {
        entry,
        // SAFETY: promised by the caller.
        name: unsafe { CStr::from_ptr(name) },
        max_threads,
        shared,
        architecture,
        dynamic: AtomicI32::new(dynamic),
    };
    ARCHITECTURE.fetch_max(architecture, Ordering::Relaxed);
    let mut all = KERNELS.write().unwrap_or_else(PoisonError::into_inner);
    all.insert(stub as usize, Box::leak(Box::new(kernel)));
}

#[unsafe(no_mangle)]
extern "C" fn cudaFuncSetCacheConfig(stub: *const c_void, _config: c_uint) -> Status {
    api_call(|| find(stub).map(|_| ()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaFuncSetSharedMemConfig(stub: *const c_void, _config: c_uint) -> Status {
    api_call(|| find(stub).map(|_| ()))
}

/// `cudaFuncAttributeMaxDynamicSharedMemorySize`, `cudaFuncAttributePreferredSharedMemoryCarveout`.
const MAX_DYNAMIC: c_int = 8;
const CARVEOUT: c_int = 9;

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaFuncSetAttribute(
    stub: *const c_void,
    attribute: c_int,
    value: c_int,
) -> Status {
    api_call(|| {
        let kernel = find(stub)?;
        match attribute {
            MAX_DYNAMIC => {
                let wanted = usize::try_from(value).map_err(|_| Error::InvalidValue)?;
                if wanted + kernel.shared > SHARED_OPTIN {
                    return Err(Error::InvalidValue);
                }
                kernel.dynamic.store(value, Ordering::Relaxed);
                Ok(())
            }
            CARVEOUT if (-1..=100).contains(&value) => Ok(()),
            _ => Err(Error::InvalidValue),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaFuncGetAttributes(
    to: *mut FunctionAttributes,
    stub: *const c_void,
) -> Status {
    api_call(|| {
        let kernel = find(stub)?;
        let attributes = FunctionAttributes {
            shared: kernel.shared,
            constant: 0,
            local: 0,
            max_threads: c_int::try_from(kernel.max_threads).unwrap_or(c_int::MAX),
            registers: 32,
            ptx: kernel.architecture,
            binary: kernel.architecture,
            cache_mode: 0,
            max_dynamic_shared: kernel.dynamic.load(Ordering::Relaxed),
            carveout: -1,
        };
        // SAFETY: promised by the caller.
        unsafe { store_result(to, attributes) }
    })
}

/// Number of the kernel's blocks that a multiprocessor holds at once.
fn occupancy(kernel: &Kernel, threads: c_int, dynamic: usize) -> Result<c_int, Error> {
    let threads = u32::try_from(threads).ok().filter(|n| *n > 0);
    let threads = threads.ok_or(Error::InvalidValue)?;
    if threads > kernel.max_threads {
        return Ok(0);
    }
    let by_threads = THREADS_PER_PROCESSOR / threads.next_multiple_of(32);
    let shared = kernel.shared + dynamic;
    let by_shared = match shared {
        0 => BLOCKS_PER_PROCESSOR,
        _ => u32::try_from(SHARED_OPTIN / shared).unwrap_or(0),
    };
    let blocks = by_threads.min(by_shared).min(BLOCKS_PER_PROCESSOR);
    Ok(c_int::try_from(blocks).unwrap_or(0))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    to: *mut c_int,
    stub: *const c_void,
    threads: c_int,
    dynamic: usize,
) -> Status {
    api_call(|| {
        let blocks = occupancy(find(stub)?, threads, dynamic)?;
        // SAFETY: promised by the caller.
        unsafe { store_result(to, blocks) }
    })
}

/// Maximum dynamic shared memory per block, if a multiprocessor holds `blocks` blocks.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudaOccupancyAvailableDynamicSMemPerBlock(
    to: *mut usize,
    stub: *const c_void,
    blocks: c_int,
    threads: c_int,
) -> Status {
    api_call(|| {
        let kernel = find(stub)?;
        let most = occupancy(kernel, threads, 0)?;
        let wanted = usize::try_from(blocks).ok();
        let wanted = wanted.filter(|n| *n > 0 && blocks <= most);
        let each = SHARED_OPTIN / wanted.ok_or(Error::InvalidValue)?;
        // SAFETY: promised by the caller.
        unsafe { store_result(to, each.saturating_sub(kernel.shared)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    to: *mut c_int,
    stub: *const c_void,
    threads: c_int,
    dynamic: usize,
    _flags: c_uint,
) -> Status {
    // SAFETY: promised by the caller.
    unsafe { cudaOccupancyMaxActiveBlocksPerMultiprocessor(to, stub, threads, dynamic) }
}
