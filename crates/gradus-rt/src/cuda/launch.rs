//! Kernel launches: `k<<<grid, block, shared, stream>>>(…)` pushes its configuration; the kernel's stub pops
//! the configuration and launches by the stub's address. Launches that CUDA refuses return CUDA's code,
//! before anything runs.

use super::Status;
use super::device::{MAX_BLOCK, MAX_GRID, MAX_THREADS, SHARED_OPTIN};
use super::error::{self, Error, api_call};
use super::kernels::{self, Kernel};
use super::profile;
use super::types::Dim3;
use crate::kernel_faults::{self, SavedState};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};

/// The configuration in a launch's angle brackets.
#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: *mut c_void,
}

thread_local! {
    static PUSHED: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

#[unsafe(no_mangle)]
extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: *mut c_void,
) -> c_int {
    let configuration = Configuration {
        grid,
        block,
        shared,
        stream,
    };
    PUSHED.with_borrow_mut(|pushed| pushed.push(configuration));
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaPopCallConfiguration(
    grid: *mut Dim3,
    block: *mut Dim3,
    shared: *mut usize,
    stream: *mut *mut c_void,
) -> Status {
    match PUSHED.with_borrow_mut(Vec::pop) {
        Some(configuration) => {
            // SAFETY: a stub passes its own variables.
            unsafe {
                grid.write(configuration.grid);
                block.write(configuration.block);
                shared.write(configuration.shared);
                stream.write(configuration.stream);
            }
            0
        }
        None => error::set_last(Error::MissingConfiguration),
    }
}

/// Checks grid, block and shared memory against the device limits.
fn check_device_limits(grid: Dim3, block: Dim3, shared: usize) -> Result<(), Error> {
    let within = |size: Dim3, most: [u32; 3]| {
        let each = [(size.x, most[0]), (size.y, most[1]), (size.z, most[2])];
        each.iter().all(|(n, most)| (1..=*most).contains(n))
    };
    if !within(grid, MAX_GRID) || !within(block, MAX_BLOCK) || threads(block) > MAX_THREADS {
        return Err(Error::InvalidConfiguration);
    }
    match shared <= SHARED_OPTIN {
        true => Ok(()),
        false => Err(Error::InvalidValue),
    }
}

fn threads(block: Dim3) -> u32 {
    block.x.saturating_mul(block.y).saturating_mul(block.z)
}

/// Checks grid, block and shared memory against the limits of device and kernel.
fn check_kernel_limits(
    kernel: &Kernel,
    grid: Dim3,
    block: Dim3,
    shared: usize,
) -> Result<(), Error> {
    check_device_limits(grid, block, shared)?;
    if threads(block) > kernel.max_threads {
        return Err(Error::LaunchOutOfResources);
    }
    match kernel.allows_dynamic_shared(shared) {
        true => Ok(()),
        false => Err(Error::InvalidValue),
    }
}

/// Begins a launch inlined in the program. Returns 0 if the launch is valid, else the error, which becomes
/// the last error. Returns a second time, with the error, if the kernel makes an invalid access
/// ([`kernel_faults`]).
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[unsafe(no_mangle)]
#[unsafe(naked)]
extern "C" fn __gr_launch_begin(
    stub: *const c_void,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    shared: usize,
) -> Status {
    std::arch::naked_asm!(
        "lea r10, [rsp + 8]",
        "mov r11, [rsp]",
        // A `Place`, from its last field to its first.
        "push r15",
        "push r14",
        "push r13",
        "push r12",
        "push rbp",
        "push rbx",
        "push r11",
        "push r10",
        "mov r11, rsp",
        // The arguments on the stack, and the place.
        "push r11",
        "push qword ptr [r11 + 80]",
        "push qword ptr [r11 + 72]",
        "call {begun}",
        "add rsp, 88",
        "ret",
        begun = sym begin_launch,
    )
}

/// The version for other machines, which returns once.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[unsafe(no_mangle)]
extern "C" fn __gr_launch_begin(
    stub: *const c_void,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    shared: usize,
) -> Status {
    begin_launch(stub, gx, gy, gz, bx, by, bz, shared, &SavedState::default())
}

extern "C" fn begin_launch(
    stub: *const c_void,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    shared: usize,
    place: &SavedState,
) -> Status {
    let size = |x, y, z| Dim3 { x, y, z };
    api_call(|| {
        let kernel = kernels::find(stub)?;
        check_kernel_limits(kernel, size(gx, gy, gz), size(bx, by, bz), shared)?;
        profile::begin(kernel.name);
        kernel_faults::begin(*place);
        Ok(())
    })
}

/// Maximum number of threads per dimension, over all blocks, of fused launches. Launch fusion relies on the
/// bound: 32-bit indices computed from ranks do not wrap.
const MAX_FUSED_DIM_THREADS: u64 = 1 << 27;

/// Returns whether a launch can be fused with the launch already begun, of equal size. Profiling prevents
/// fusion, because each kernel's time is measured.
#[unsafe(no_mangle)]
extern "C" fn __gr_launch_with(
    stub: *const c_void,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    shared: usize,
) -> c_int {
    let size = |x, y, z| Dim3 { x, y, z };
    let each = [(gx, bx), (gy, by), (gz, bz)];
    let few = |(blocks, threads): &(u32, u32)| {
        u64::from(*blocks) * u64::from(*threads) <= MAX_FUSED_DIM_THREADS
    };
    let can = kernels::find(stub)
        .and_then(|kernel| check_kernel_limits(kernel, size(gx, gy, gz), size(bx, by, bz), shared));
    c_int::from(can.is_ok() && each.iter().all(few) && !profile::is_on())
}

/// Ends a launch, copy or fill inlined in the program.
#[unsafe(no_mangle)]
extern "C" fn __gr_activity_end() {
    kernel_faults::end();
    profile::end();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaLaunchKernel(
    stub: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *mut *mut c_void,
    shared: usize,
    _stream: *mut c_void,
) -> Status {
    api_call(|| {
        let kernel = kernels::find(stub)?;
        check_kernel_limits(kernel, grid, block, shared)?;
        profile::run_timed_kernel(kernel.name, || {
            let mut by_address = AddressLaunch {
                kernel,
                arguments,
                sizes: [sizes(grid), sizes(block)],
                shared: shared as u64,
            };
            kernel_faults::machine::install_handlers();
            // SAFETY: `run_entry` receives the launch, which lives until the call returns.
            unsafe { kernel_faults::run(run_entry, 0, 0, (&raw mut by_address).cast()) };
        });
        match kernel_faults::has_kernel_failure() {
            true => Err(Error::IllegalAddress),
            false => Ok(()),
        }
    })
}

/// A launch by the kernel's address.
struct AddressLaunch {
    kernel: &'static Kernel,
    arguments: *mut *mut c_void,
    sizes: [[u64; 3]; 2],
    shared: u64,
}

unsafe extern "C" fn run_entry(_lo: i64, _hi: i64, launch: *mut c_void) {
    // SAFETY: `cudaLaunchKernel` passes its launch, whose arguments match the kernel by the caller's
    // promise.
    unsafe {
        let launch = &*launch.cast::<AddressLaunch>();
        let [[gx, gy, gz], [bx, by, bz]] = launch.sizes;
        (launch.kernel.entry)(launch.arguments, gx, gy, gz, bx, by, bz, launch.shared);
    }
}

fn sizes(size: Dim3) -> [u64; 3] {
    [size.x, size.y, size.z].map(u64::from)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaLaunchCooperativeKernel(
    stub: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *mut *mut c_void,
    shared: usize,
    stream: *mut c_void,
) -> Status {
    // Grid-wide barriers are refused when the kernel is compiled.
    unsafe { cudaLaunchKernel(stub, grid, block, arguments, shared, stream) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::kernels::__gr_kernel_register;
    use crate::cuda::kernels::cudaFuncSetAttribute;
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicU64, Ordering};

    static RUN: AtomicU64 = AtomicU64::new(0);

    unsafe extern "C" fn count(
        arguments: *mut *mut c_void,
        gx: u64,
        gy: u64,
        gz: u64,
        bx: u64,
        by: u64,
        bz: u64,
        shared: u64,
    ) {
        let factor = unsafe { *(*arguments).cast::<u64>() };
        let all = gx * gy * gz * bx * by * bz + shared;
        RUN.fetch_add(factor * all, Ordering::Relaxed);
    }

    fn size(x: u32, y: u32, z: u32) -> Dim3 {
        Dim3 { x, y, z }
    }

    #[test]
    fn stub_launch_and_refusals() {
        let stub: *const c_void = c"a stub".as_ptr().cast();
        unsafe { __gr_kernel_register(stub, count, c"count".as_ptr(), 128, 1 << 10, 70) };
        let mut factor = 3_u64;
        let mut arguments = [(&raw mut factor).cast::<c_void>()];
        let mut launch = |grid, block, shared| unsafe {
            let (mut g, mut b, mut s, mut at) = (size(0, 0, 0), size(0, 0, 0), 0, null_mut());
            assert_eq!(
                __cudaPushCallConfiguration(grid, block, shared, null_mut()),
                0
            );
            assert_eq!(
                __cudaPopCallConfiguration(&mut g, &mut b, &mut s, &mut at),
                0
            );
            cudaLaunchKernel(stub, g, b, arguments.as_mut_ptr(), s, at)
        };
        assert_eq!(launch(size(2, 3, 1), size(4, 5, 2), 100), 0);
        assert_eq!(RUN.load(Ordering::Relaxed), 3 * (240 + 100));
        let refused = [
            (
                size(1, 1, 1),
                size(2000, 1, 1),
                0,
                Error::InvalidConfiguration,
            ),
            (size(0, 1, 1), size(1, 1, 1), 0, Error::InvalidConfiguration),
            (
                size(1, 65_536, 1),
                size(1, 1, 1),
                0,
                Error::InvalidConfiguration,
            ),
            (
                size(1, 1, 1),
                size(1, 1, 65),
                0,
                Error::InvalidConfiguration,
            ),
            (
                size(1, 1, 1),
                size(129, 1, 1),
                0,
                Error::LaunchOutOfResources,
            ),
            (
                size(1, 1, 1),
                size(1, 1, 1),
                47 << 10 | 1,
                Error::InvalidValue,
            ),
        ];
        for (grid, block, shared, error) in refused {
            assert_eq!(launch(grid, block, shared), error as Status);
        }
        assert_eq!(RUN.load(Ordering::Relaxed), 3 * (240 + 100));
        assert_eq!(cudaFuncSetAttribute(stub, 8, 64 << 10), 0);
        assert_eq!(launch(size(1, 1, 1), size(1, 1, 1), 64 << 10), 0);
        let unknown = c"no stub".as_ptr().cast();
        let (one, none) = (size(1, 1, 1), null_mut());
        let error = unsafe { cudaLaunchKernel(unknown, one, one, none, 0, null_mut()) };
        assert_eq!(error, Error::InvalidDeviceFunction as Status);
    }

    #[test]
    fn inlined_launch_and_refusals() {
        let stub: *const c_void = c"another stub".as_ptr().cast();
        unsafe { __gr_kernel_register(stub, count, c"count".as_ptr(), 128, 0, 70) };
        assert_eq!(__gr_launch_begin(stub, 2, 1, 1, 128, 1, 1, 0), 0);
        __gr_activity_end();
        let many = Error::LaunchOutOfResources as Status;
        assert_eq!(__gr_launch_begin(stub, 2, 1, 1, 129, 1, 1, 0), many);
        let none = Error::InvalidConfiguration as Status;
        assert_eq!(__gr_launch_begin(stub, 0, 1, 1, 1, 1, 1, 0), none);
    }

    #[test]
    fn fusable_only_if_both_are_valid() {
        let stub: *const c_void = c"a third stub".as_ptr().cast();
        unsafe { __gr_kernel_register(stub, count, c"count".as_ptr(), 128, 0, 70) };
        assert_eq!(__gr_launch_with(stub, 1 << 20, 1, 1, 128, 1, 1, 0), 1);
        assert_eq!(__gr_launch_with(stub, (1 << 20) + 1, 1, 1, 128, 1, 1, 0), 0);
        assert_eq!(__gr_launch_with(stub, 2, 1, 1, 129, 1, 1, 0), 0);
        assert_eq!(
            __gr_launch_with(c"none".as_ptr().cast(), 1, 1, 1, 1, 1, 1, 0),
            0
        );
    }

    #[test]
    fn missing_configuration() {
        let (mut g, mut b, mut s, mut at) = (size(0, 0, 0), size(0, 0, 0), 0, null_mut());
        let error = unsafe { __cudaPopCallConfiguration(&mut g, &mut b, &mut s, &mut at) };
        assert_eq!(error, Error::MissingConfiguration as Status);
    }
}
