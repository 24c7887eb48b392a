//! GPU functions: thread indices, barriers, warp functions and launches, under the names that the merge of
//! host and device modules assigns; and the prefixes of the merge's own symbols.

use super::{Effects, ExternalFn, Row};

/// Prefix of a kernel, an internal function of the merged module.
pub const KERNEL_PREFIX: &str = "__gr_kernel.";
/// Prefix of a shared-memory variable of a block.
pub const SHARED_PREFIX: &str = "__gr_shared.";
/// Prefix of dynamic shared memory of a block; the launch sets the size.
pub const SHARED_DYNAMIC_PREFIX: &str = "__gr_shared_dyn.";
/// Prefix of a device variable.
pub const VARIABLE_PREFIX: &str = "__gr_variable.";
/// Prefix of a device function that other translation units may call.
pub const DEVICE_PREFIX: &str = "__gr_device.";
/// Prefix of a variable for a device function that only kernels of its own translation unit can call. The
/// variable tells the linker driver the location of the function's definition.
pub const LOCAL_DEVICE_PREFIX: &str = "__gr_together.";
/// Prefix of a variable that states the location of a call to a device function of another translation unit.
pub const CALL_SITE_PREFIX: &str = "__gr_called.";
/// Prefix of a declared function whose call is a launch of the kernel named after the prefix. Parameters:
/// grid and block size (x, y, z each), the bytes of shared memory, and the kernel's arguments.
pub const LAUNCH_PREFIX: &str = "__gr_launch.";
/// Prefix of the function that runs a kernel with any sizes; parameters as for [`LAUNCH_PREFIX`].
pub const RUN_PREFIX: &str = "__gr_run.";
/// Prefix of the function that launches a kernel with the arguments behind pointers.
pub const ENTRY_PREFIX: &str = "__gr_entry.";

/// A GPU function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GpuFn {
    /// The thread index in the block, along x, y or z.
    Thread(u8),
    /// The block size.
    BlockSize(u8),
    /// The block index in the grid.
    Block(u8),
    /// The grid size.
    GridSize(u8),
    /// A barrier for all threads of the block.
    Barrier,
    /// A barrier for all threads of the grid.
    GridBarrier,
    /// A barrier for the block; returns the number of threads with a true predicate.
    BarrierCount,
    /// A barrier for the block; returns whether the predicate is true in all threads.
    BarrierAnd,
    /// A barrier for the block; returns whether the predicate is true in any thread.
    BarrierOr,
    /// A barrier for the threads of a warp in a mask.
    SyncWarp,
    /// The lane: the thread's index in the warp.
    Lane,
    /// The mask of converged threads of the warp.
    ActiveMask,
    /// Reads a value of another lane of the warp.
    Shuffle,
    /// A vote over a predicate in the warp.
    Vote,
    /// Returns the lanes of the warp with equal values.
    Match,
    /// Launches a kernel ([`LAUNCH_PREFIX`]).
    Launch,
    /// A call of the CUDA runtime without computation: capability queries, bookkeeping, waits, status
    /// queries.
    Service,
    /// Resets the device and frees all device memory.
    Reset,
    /// Prints; all values are in one structure.
    Print,
    /// Ends the program with a message.
    Assert,
    /// Reads a clock or sleeps.
    Clock,
}

impl GpuFn {
    /// Returns whether the result depends on the calling thread; such calls occur in kernels only.
    pub fn depends_on_thread(self) -> bool {
        !matches!(
            self,
            GpuFn::Launch
                | GpuFn::Service
                | GpuFn::Reset
                | GpuFn::Print
                | GpuFn::Assert
                | GpuFn::Clock
        )
    }
}

const INACTIVE_SERVICE: Effects = Effects::PURE.inaccessible().inactive();
const PURE_QUERY: Effects = Effects::PURE.inactive();

// table
pub(super) const ROWS: &[Row] = &[
    row(&["__gr_tid_x"], GpuFn::Thread(0), PURE_QUERY),
    row(&["__gr_tid_y"], GpuFn::Thread(1), PURE_QUERY),
    row(&["__gr_tid_z"], GpuFn::Thread(2), PURE_QUERY),
    row(&["__gr_ntid_x"], GpuFn::BlockSize(0), PURE_QUERY),
    row(&["__gr_ntid_y"], GpuFn::BlockSize(1), PURE_QUERY),
    row(&["__gr_ntid_z"], GpuFn::BlockSize(2), PURE_QUERY),
    row(&["__gr_ctaid_x"], GpuFn::Block(0), PURE_QUERY),
    row(&["__gr_ctaid_y"], GpuFn::Block(1), PURE_QUERY),
    row(&["__gr_ctaid_z"], GpuFn::Block(2), PURE_QUERY),
    row(&["__gr_nctaid_x"], GpuFn::GridSize(0), PURE_QUERY),
    row(&["__gr_nctaid_y"], GpuFn::GridSize(1), PURE_QUERY),
    row(&["__gr_nctaid_z"], GpuFn::GridSize(2), PURE_QUERY),
    row(&["__gr_laneid"], GpuFn::Lane, PURE_QUERY),
    row(&["__gr_barrier"], GpuFn::Barrier, Effects::UNKNOWN),
    row(&["__gr_grid_barrier"], GpuFn::GridBarrier, Effects::UNKNOWN),
    row(
        &["__gr_barrier_count"],
        GpuFn::BarrierCount,
        Effects::UNKNOWN,
    ),
    row(&["__gr_barrier_and"], GpuFn::BarrierAnd, Effects::UNKNOWN),
    row(&["__gr_barrier_or"], GpuFn::BarrierOr, Effects::UNKNOWN),
    row(&["__gr_syncwarp"], GpuFn::SyncWarp, Effects::UNKNOWN),
    row(&["__gr_activemask"], GpuFn::ActiveMask, Effects::UNKNOWN),
    row(
        &[
            "__gr_launch_begin",
            "__gr_launch_with",
            "__gr_apart",
            "__gr_activity_end",
            "__gr_device_status",
            "__gr_device_free_status",
            "__gr_copy_begin",
            "__gr_fill_begin",
            "__gr_elapsed",
            "__gr_elapsed_status",
            "cudaDeviceSynchronize",
            "cudaThreadSynchronize",
            "cudaGetLastError",
            "cudaPeekAtLastError",
            "cudaGetErrorString",
            "cudaGetErrorName",
            "cudaSetDevice",
            "cudaDeviceSetCacheConfig",
            "cudaDeviceSetSharedMemConfig",
            "cudaDeviceSetLimit",
            "cudaFuncSetCacheConfig",
            "cudaFuncSetSharedMemConfig",
            "cudaFuncSetAttribute",
            "cudaStreamDestroy",
            "cudaStreamSynchronize",
            "cudaStreamQuery",
            "cudaStreamWaitEvent",
            "cudaEventDestroy",
            "cudaEventRecord",
            "cudaEventRecordWithFlags",
            "cudaEventSynchronize",
            "cudaEventQuery",
            "cudaMemPrefetchAsync",
            "cudaMemAdvise",
            "cudaProfilerStart",
            "cudaProfilerStop",
        ],
        GpuFn::Service,
        INACTIVE_SERVICE,
    ),
    row(
        &[
            "cudaGetDevice",
            "cudaGetDeviceCount",
            "cudaGetDeviceProperties",
            "cudaDeviceGetAttribute",
            "cudaDeviceGetLimit",
            "cudaRuntimeGetVersion",
            "cudaDriverGetVersion",
            "cudaStreamCreate",
            "cudaStreamCreateWithFlags",
            "cudaEventCreate",
            "cudaEventCreateWithFlags",
            "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
        ],
        GpuFn::Service,
        INACTIVE_SERVICE.writing(&[0]),
    ),
    row(
        &["cudaMemGetInfo"],
        GpuFn::Service,
        INACTIVE_SERVICE.writing(&[0, 1]),
    ),
    row(
        &["cudaDeviceReset", "cudaThreadExit"],
        GpuFn::Reset,
        Effects::UNKNOWN,
    ),
    row(
        &["__gr_vprintf"],
        GpuFn::Print,
        INACTIVE_SERVICE.reading(&[0, 1]),
    ),
    row(
        &["__gr_assertfail"],
        GpuFn::Assert,
        INACTIVE_SERVICE.reading(&[0, 1, 3]).no_return(),
    ),
    row(
        &[
            "__gr_clock",
            "__gr_clock64",
            "__gr_globaltimer",
            "__gr_nanosleep",
        ],
        GpuFn::Clock,
        INACTIVE_SERVICE,
    ),
];

const fn row(names: &'static [&'static str], id: GpuFn, effects: Effects) -> Row {
    Row {
        names,
        known: ExternalFn::Kernel(id),
        effects,
    }
}

/// Families of functions recognised by prefix.
// table
pub(super) const PREFIXES: &[(&str, ExternalFn)] = &[
    (LAUNCH_PREFIX, ExternalFn::Kernel(GpuFn::Launch)),
    ("__gr_shfl_", ExternalFn::Kernel(GpuFn::Shuffle)),
    ("__gr_vote_", ExternalFn::Kernel(GpuFn::Vote)),
    ("__gr_match_", ExternalFn::Kernel(GpuFn::Match)),
];
