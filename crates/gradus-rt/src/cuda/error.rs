//! CUDA error model: every call returns a code. Each thread stores its last error; an error of a kernel
//! persists for the whole process until the device is reset.

use super::Status;
use crate::kernel_faults;
use std::cell::Cell;
use std::ffi::{CStr, c_char};

/// Defines the errors: the name after `cudaError`, the number, the text.
macro_rules! errors {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        /// An error of the runtime.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(dead_code, reason = "the table is CUDA's and includes errors that no CPU raises")]
        pub(super) enum Error { $($name = $code,)* }

        const TABLE: &[(Status, &CStr, &CStr)] = &[
            (0, c"cudaSuccess", c"no error"),
            $(($code, c_text(concat!("cudaError", stringify!($name), "\0")), c_text(concat!($text, "\0"))),)*
        ];
    };
}

const fn c_text(text: &str) -> &CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    }
}

// table
errors! {
    InvalidValue = 1, "invalid argument";
    MemoryAllocation = 2, "out of memory";
    InitializationError = 3, "initialization error";
    CudartUnloading = 4, "driver shutting down";
    ProfilerDisabled = 5, "profiler disabled while using external profiling tool";
    ProfilerNotInitialized = 6, "profiler not initialized: call cudaProfilerInitialize()";
    ProfilerAlreadyStarted = 7, "profiler already started";
    ProfilerAlreadyStopped = 8, "profiler already stopped";
    InvalidConfiguration = 9, "invalid configuration argument";
    InvalidPitchValue = 12, "invalid pitch argument";
    InvalidSymbol = 13, "invalid device symbol";
    InvalidHostPointer = 16, "invalid host pointer";
    InvalidDevicePointer = 17, "invalid device pointer";
    InvalidTexture = 18, "invalid texture reference";
    InvalidTextureBinding = 19, "texture is not bound to a pointer";
    InvalidChannelDescriptor = 20, "invalid channel descriptor";
    InvalidMemcpyDirection = 21, "invalid copy direction for memcpy";
    AddressOfConstant = 22, "cannot take address of constant";
    TextureFetchFailed = 23, "fetch from texture failed";
    TextureNotBound = 24, "cannot fetch from a texture that is not bound";
    SynchronizationError = 25, "incorrect use of __syncthreads()";
    InvalidFilterSetting = 26, "linear filtering not supported for non-float type";
    InvalidNormSetting = 27, "read as normalized float not supported for 32-bit non float type";
    MixedDeviceExecution = 28, "device emulation mode and device execution mode cannot be mixed";
    NotYetImplemented = 31, "feature not yet implemented";
    MemoryValueTooLarge = 32, "memory size or pointer value too large to fit in 32 bit";
    StubLibrary = 34, "CUDA driver is a stub library";
    InsufficientDriver = 35, "CUDA driver version is insufficient for CUDA runtime version";
    CallRequiresNewerDriver = 36, "API call is not supported in the installed CUDA driver";
    InvalidSurface = 37, "invalid surface reference";
    DuplicateVariableName = 43, "duplicate global variable looked up by string name";
    DuplicateTextureName = 44, "duplicate texture looked up by string name";
    DuplicateSurfaceName = 45, "duplicate surface looked up by string name";
    DevicesUnavailable = 46, "all CUDA-capable devices are busy or unavailable";
    IncompatibleDriverContext = 49, "incompatible driver context";
    MissingConfiguration = 52, "__global__ function call is not configured";
    PriorLaunchFailure = 53, "unspecified launch failure in prior launch";
    LaunchMaxDepthExceeded = 65, "launch would exceed maximum depth of nested launches";
    LaunchFileScopedTex = 66, "launch failed because kernel uses unsupported, file-scoped textures (texture objects are supported)";
    LaunchFileScopedSurf = 67, "launch failed because kernel uses unsupported, file-scoped surfaces (surface objects are supported)";
    SyncDepthExceeded = 68, "cudaDeviceSynchronize failed because caller's grid depth exceeds cudaLimitDevRuntimeSyncDepth";
    LaunchPendingCountExceeded = 69, "launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount";
    InvalidDeviceFunction = 98, "invalid device function";
    NoDevice = 100, "no CUDA-capable device is detected";
    InvalidDevice = 101, "invalid device ordinal";
    DeviceNotLicensed = 102, "device doesn't have valid Grid license";
    SoftwareValidityNotEstablished = 103, "integrity checks failed";
    StartupFailure = 127, "startup failure in cuda runtime";
    InvalidKernelImage = 200, "device kernel image is invalid";
    DeviceUninitialized = 201, "invalid device context";
    MapBufferObjectFailed = 205, "mapping of buffer object failed";
    UnmapBufferObjectFailed = 206, "unmapping of buffer object failed";
    ArrayIsMapped = 207, "array is mapped";
    AlreadyMapped = 208, "resource already mapped";
    NoKernelImageForDevice = 209, "no kernel image is available for execution on the device";
    AlreadyAcquired = 210, "resource already acquired";
    NotMapped = 211, "resource not mapped";
    NotMappedAsArray = 212, "resource not mapped as array";
    NotMappedAsPointer = 213, "resource not mapped as pointer";
    ECCUncorrectable = 214, "uncorrectable ECC error encountered";
    UnsupportedLimit = 215, "limit is not supported on this architecture";
    DeviceAlreadyInUse = 216, "exclusive-thread device already in use by a different thread";
    PeerAccessUnsupported = 217, "peer access is not supported between these two devices";
    InvalidPtx = 218, "a PTX JIT compilation failed";
    InvalidGraphicsContext = 219, "invalid OpenGL or DirectX context";
    NvlinkUncorrectable = 220, "uncorrectable NVLink error detected during the execution";
    JitCompilerNotFound = 221, "PTX JIT compiler library not found";
    UnsupportedPtxVersion = 222, "the provided PTX was compiled with an unsupported toolchain.";
    JitCompilationDisabled = 223, "PTX JIT compilation was disabled";
    UnsupportedExecAffinity = 224, "the provided execution affinity is not supported";
    UnsupportedDevSideSync = 225, "the provided PTX contains unsupported call to cudaDeviceSynchronize";
    InvalidSource = 300, "device kernel image is invalid";
    FileNotFound = 301, "file not found";
    SharedObjectSymbolNotFound = 302, "shared object symbol not found";
    SharedObjectInitFailed = 303, "shared object initialization failed";
    OperatingSystem = 304, "OS call failed or operation not supported on this OS";
    InvalidResourceHandle = 400, "invalid resource handle";
    IllegalState = 401, "the operation cannot be performed in the present state";
    SymbolNotFound = 500, "named symbol not found";
    NotReady = 600, "device not ready";
    IllegalAddress = 700, "an illegal memory access was encountered";
    LaunchOutOfResources = 701, "too many resources requested for launch";
    LaunchTimeout = 702, "the launch timed out and was terminated";
    LaunchIncompatibleTexturing = 703, "launch uses incompatible texturing mode";
    PeerAccessAlreadyEnabled = 704, "peer access is already enabled";
    PeerAccessNotEnabled = 705, "peer access has not been enabled";
    SetOnActiveProcess = 708, "cannot set while device is active in this process";
    ContextIsDestroyed = 709, "context is destroyed";
    Assert = 710, "device-side assert triggered";
    TooManyPeers = 711, "peer mapping resources exhausted";
    HostMemoryAlreadyRegistered = 712, "part or all of the requested memory range is already mapped";
    HostMemoryNotRegistered = 713, "pointer does not correspond to a registered memory region";
    HardwareStackError = 714, "hardware stack error";
    IllegalInstruction = 715, "an illegal instruction was encountered";
    MisalignedAddress = 716, "misaligned address";
    InvalidAddressSpace = 717, "operation not supported on global/shared address space";
    InvalidPc = 718, "invalid program counter";
    LaunchFailure = 719, "unspecified launch failure";
    CooperativeLaunchTooLarge = 720, "too many blocks in cooperative launch";
    NotPermitted = 800, "operation not permitted";
    NotSupported = 801, "operation not supported";
    SystemNotReady = 802, "system not yet initialized";
    SystemDriverMismatch = 803, "system has unsupported display driver / cuda driver combination";
    CompatNotSupportedOnDevice = 804, "forward compatibility was attempted on non supported HW";
    MpsConnectionFailed = 805, "MPS client failed to connect to the MPS control daemon or the MPS server";
    MpsRpcFailure = 806, "the remote procedural call between the MPS server and the MPS client failed";
    MpsServerNotReady = 807, "MPS server is not ready to accept new MPS client requests";
    MpsMaxClientsReached = 808, "the hardware resources required to create MPS client have been exhausted";
    MpsMaxConnectionsReached = 809, "the hardware resources required to support device connections have been exhausted";
    MpsClientTerminated = 810, "the MPS client has been terminated by the server";
    CdpNotSupported = 811, "is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it";
    CdpVersionMismatch = 812, "unsupported interaction between different versions of CUDA Dynamic Parallelism";
    StreamCaptureUnsupported = 900, "operation not permitted when stream is capturing";
    StreamCaptureInvalidated = 901, "operation failed due to a previous error during capture";
    StreamCaptureMerge = 902, "operation would result in a merge of separate capture sequences";
    StreamCaptureUnmatched = 903, "capture was not ended in the same stream as it began";
    StreamCaptureUnjoined = 904, "capturing stream has unjoined work";
    StreamCaptureIsolation = 905, "dependency created on uncaptured work in another stream";
    StreamCaptureImplicit = 906, "operation would make the legacy stream depend on a capturing blocking stream";
    CapturedEvent = 907, "operation not permitted on an event last recorded in a capturing stream";
    StreamCaptureWrongThread = 908, "attempt to terminate a thread-local capture sequence from another thread";
    Timeout = 909, "wait operation timed out";
    GraphExecUpdateFailure = 910, "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update";
    ExternalDevice = 911, "an async error has occured in external entity outside of CUDA";
    InvalidClusterSize = 912, "a kernel launch error has occurred due to cluster misconfiguration";
    Unknown = 999, "unknown error";
    ApiFailureBase = 10000, "api failure base";
}

thread_local! {
    static LAST_ERROR: Cell<Status> = const { Cell::new(0) };
}

const _: () = assert!(Error::IllegalAddress as Status == kernel_faults::ILLEGAL_ADDRESS);

/// Runs a call of the interface and returns its status; after a kernel failure `work` does not run.
pub(super) fn api_call(work: impl FnOnce() -> Result<(), Error>) -> Status {
    let sticky = kernel_faults::kernel_failure();
    if sticky != 0 {
        return sticky;
    }
    match work() {
        Ok(()) => 0,
        Err(error) => set_last(error),
    }
}

/// Stores `error` as the thread's last error, and returns its code.
#[cold]
pub(super) fn set_last(error: Error) -> Status {
    LAST_ERROR.set(error as Status);
    error as Status
}

/// Clears all errors, as after a device reset.
pub(super) fn clear_errors() {
    kernel_faults::clear_kernel_failure();
    LAST_ERROR.set(0);
}

/// The last error of the calling thread, or the kernel failure.
pub(super) fn last_error() -> Status {
    match kernel_faults::kernel_failure() {
        0 => LAST_ERROR.get(),
        sticky => sticky,
    }
}

fn table_row(error: Status) -> Option<&'static (Status, &'static CStr, &'static CStr)> {
    TABLE.iter().find(|row| row.0 == error)
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> Status {
    let error = last_error();
    LAST_ERROR.set(0);
    error
}

#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> Status {
    last_error()
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(error: Status) -> *const c_char {
    table_row(error)
        .map_or(c"unrecognized error code", |row| row.1)
        .as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(error: Status) -> *const c_char {
    table_row(error)
        .map_or(c"unrecognized error code", |row| row.2)
        .as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header and the table list equal errors.
    #[test]
    fn the_header_has_the_same_errors() {
        let header = include_str!("../../../../include/cuda/gradus/errors.h");
        let listed = header.lines().filter_map(|line| {
            let (name, code) = line.trim().trim_end_matches(',').split_once(" = ")?;
            Some((code.parse::<Status>().ok()?, name.to_owned()))
        });
        let own = TABLE
            .iter()
            .map(|row| (row.0, row.1.to_str().unwrap().to_owned()));
        assert_eq!(listed.collect::<Vec<_>>(), own.collect::<Vec<_>>());
    }

    #[test]
    fn get_last_error_resets() {
        assert_eq!(api_call(|| Err(Error::InvalidValue)), 1);
        assert_eq!(api_call(|| Ok(())), 0);
        assert_eq!(cudaPeekAtLastError(), 1);
        assert_eq!(cudaGetLastError(), 1);
        assert_eq!(cudaGetLastError(), 0);
    }
}
