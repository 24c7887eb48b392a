//! What a kernel asks of the machine that runs it, under the names that the merge of host and device gives
//! it, and how the merge's own names begin.

use super::{Effects, Known, Row};

/// Before the name of a kernel, an internal function of the merged module.
pub const KERNEL: &str = "__gr_kernel.";
/// Before the name of a variable that the threads of a block share.
pub const SHARED: &str = "__gr_shared.";
/// Before the name of memory that the threads of a block share and whose size the launch gives.
pub const SHARED_DYNAMIC: &str = "__gr_shared_dyn.";
/// Before the name of a variable of the device.
pub const VARIABLE: &str = "__gr_variable.";
/// Before the name of a device function that other translation units may call.
pub const DEVICE: &str = "__gr_device.";
/// The prefix of a variable for a device function that only kernels of its own translation unit can call. The
/// variable tells a link where the function is defined.
pub const TOGETHER: &str = "__gr_together.";
/// The prefix of a variable that states where a device function of another translation unit is called.
pub const CALLED: &str = "__gr_called.";
/// Before a kernel's name: the declared function whose call is a launch. It takes the sizes of grid and
/// block (x, y, z each), the bytes of shared memory, and the kernel's arguments.
pub const LAUNCH: &str = "__gr_launch.";
/// Before a kernel's name: the function that runs it whatever its sizes are, with [`LAUNCH`]'s parameters.
pub const RUN: &str = "__gr_run.";
/// Before a kernel's name: the function that launches it with arguments behind pointers.
pub const ENTRY: &str = "__gr_entry.";

/// A function of a kernel's surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GpuFn {
    /// The thread's number in its block, along x, y or z.
    Thread(u8),
    /// The block's size.
    BlockSize(u8),
    /// The block's number in the grid.
    Block(u8),
    /// The grid's size.
    GridSize(u8),
    /// All threads of the block meet.
    Barrier,
    /// All threads of the grid meet.
    GridBarrier,
    /// All threads of the block meet, and learn for how many of them something holds.
    BarrierCount,
    /// They meet, and learn whether it holds for all.
    BarrierAnd,
    /// They meet, and learn whether it holds for one.
    BarrierOr,
    /// The threads of a warp that a mask names meet.
    SyncWarp,
    /// The thread's number in its warp.
    Lane,
    /// The threads of the warp that are at the same place.
    ActiveMask,
    /// A value of another thread of the warp.
    Shuffle,
    /// What holds for the threads of the warp.
    Vote,
    /// Which threads of the warp have the same value.
    Match,
    /// Runs a kernel ([`LAUNCH`]).
    Launch,
    /// A call of the run time that computes nothing: it tests whether something can be, notes that it is done,
    /// waits, or says how things stand.
    Service,
    /// Takes all memory of the device away.
    Reset,
    /// Prints, from one structure with all values.
    Print,
    /// Ends the program with a message.
    Assert,
    /// Reads a clock, or waits.
    Clock,
}

impl GpuFn {
    /// Whether the answer depends on which thread asks, so that the call belongs into a kernel.
    pub fn is_of_thread(self) -> bool {
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

const TALK: Effects = Effects::PURE.hidden().inactive();
const ASK: Effects = Effects::PURE.inactive();

// table
pub(super) const ROWS: &[Row] = &[
    row(&["__gr_tid_x"], GpuFn::Thread(0), ASK),
    row(&["__gr_tid_y"], GpuFn::Thread(1), ASK),
    row(&["__gr_tid_z"], GpuFn::Thread(2), ASK),
    row(&["__gr_ntid_x"], GpuFn::BlockSize(0), ASK),
    row(&["__gr_ntid_y"], GpuFn::BlockSize(1), ASK),
    row(&["__gr_ntid_z"], GpuFn::BlockSize(2), ASK),
    row(&["__gr_ctaid_x"], GpuFn::Block(0), ASK),
    row(&["__gr_ctaid_y"], GpuFn::Block(1), ASK),
    row(&["__gr_ctaid_z"], GpuFn::Block(2), ASK),
    row(&["__gr_nctaid_x"], GpuFn::GridSize(0), ASK),
    row(&["__gr_nctaid_y"], GpuFn::GridSize(1), ASK),
    row(&["__gr_nctaid_z"], GpuFn::GridSize(2), ASK),
    row(&["__gr_laneid"], GpuFn::Lane, ASK),
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
        TALK,
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
        TALK.writing(&[0]),
    ),
    row(&["cudaMemGetInfo"], GpuFn::Service, TALK.writing(&[0, 1])),
    row(
        &["cudaDeviceReset", "cudaThreadExit"],
        GpuFn::Reset,
        Effects::UNKNOWN,
    ),
    row(&["__gr_vprintf"], GpuFn::Print, TALK.reading(&[0, 1])),
    row(
        &["__gr_assertfail"],
        GpuFn::Assert,
        TALK.reading(&[0, 1, 3]).leaving(),
    ),
    row(
        &[
            "__gr_clock",
            "__gr_clock64",
            "__gr_globaltimer",
            "__gr_nanosleep",
        ],
        GpuFn::Clock,
        TALK,
    ),
];

const fn row(names: &'static [&'static str], id: GpuFn, effects: Effects) -> Row {
    Row {
        names,
        known: Known::Kernel(id),
        effects,
    }
}

/// The families that are known by how their names begin.
// table
pub(super) const PREFIXES: &[(&str, Known)] = &[
    (LAUNCH, Known::Kernel(GpuFn::Launch)),
    ("__gr_shfl_", Known::Kernel(GpuFn::Shuffle)),
    ("__gr_vote_", Known::Kernel(GpuFn::Vote)),
    ("__gr_match_", Known::Kernel(GpuFn::Match)),
];
