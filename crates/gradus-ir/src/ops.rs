//! The ops: a closed enumeration. Each variant documents operands, results and regions.

use crate::keywords::keywords;
use crate::scalar_table::{BinaryOp, CastOp};
use crate::{AttrsId, ConstId, TypeId};

keywords! {
    /// Integer and pointer comparison predicates.
    #[allow(missing_docs)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum IntPredicate {
        Eq = "eq",
        Ne = "ne",
        Ugt = "ugt",
        Uge = "uge",
        Ult = "ult",
        Ule = "ule",
        Sgt = "sgt",
        Sge = "sge",
        Slt = "slt",
        Sle = "sle",
    }
}

keywords! {
    /// Floating-point comparison predicates. With a NaN operand `O…` (ordered) is false and `U…` (unordered) is
    /// true.
    #[allow(missing_docs)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum FloatPredicate {
        False = "false",
        Oeq = "oeq",
        Ogt = "ogt",
        Oge = "oge",
        Olt = "olt",
        Ole = "ole",
        One = "one",
        Ord = "ord",
        Uno = "uno",
        Ueq = "ueq",
        Ugt = "ugt",
        Uge = "uge",
        Ult = "ult",
        Ule = "ule",
        Une = "une",
        True = "true",
    }
}

keywords! {
    /// LLVM's operators of atomic read-modify-write ops.
    #[allow(missing_docs)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum RmwOp {
        Xchg = "xchg",
        Add = "add",
        Sub = "sub",
        And = "and",
        Nand = "nand",
        Or = "or",
        Xor = "xor",
        Max = "max",
        Min = "min",
        UMax = "umax",
        UMin = "umin",
        FAdd = "fadd",
        FSub = "fsub",
        FMax = "fmax",
        FMin = "fmin",
        FMaximum = "fmaximum",
        FMinimum = "fminimum",
        UIncWrap = "uinc_wrap",
        UDecWrap = "udec_wrap",
        USubCond = "usub_cond",
        USubSat = "usub_sat",
    }
}

keywords! {
    /// Atomic orderings, weakest first.
    #[allow(missing_docs)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Atomicity {
        #[default]
        NotAtomic = "not_atomic",
        Unordered = "unordered",
        Monotonic = "monotonic",
        Acquire = "acquire",
        Release = "release",
        AcquireRelease = "acq_rel",
        SequentiallyConsistent = "seq_cst",
    }
}

/// Properties of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// The alignment in bytes, a power of two.
    pub align_bytes: u32,
    /// True if the access is volatile.
    pub volatile: bool,
    /// The atomic ordering.
    pub order: Atomicity,
    /// The synchronisation scope, as numbered by the host; 1 is the whole system.
    pub sync_scope: u32,
}

impl Access {
    /// A plain access with an alignment of `align_bytes`.
    pub fn plain(align_bytes: u32) -> Self {
        Access {
            align_bytes,
            volatile: false,
            order: Atomicity::NotAtomic,
            sync_scope: 1,
        }
    }
    /// Returns whether the access acquires or releases. Later accesses then see writes of other threads.
    pub fn is_ordering(&self) -> bool {
        self.order >= Atomicity::Acquire
    }
    /// Returns whether the access is neither volatile nor atomic.
    pub fn is_plain(&self) -> bool {
        !self.volatile && self.order == Atomicity::NotAtomic
    }
}

/// The storage of an alloca.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AllocaStorage {
    /// The function's frame; the memory lives until the function returns.
    #[default]
    Frame,
    /// One copy for each rank or iteration.
    Private,
    /// One copy for all ranks of the enclosing `spmd`.
    Shared,
}

/// A stack allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllocaInfo {
    /// The type of one element.
    pub ty: TypeId,
    /// The alignment in bytes, a power of two.
    pub align_bytes: u32,
    /// The storage.
    pub storage: AllocaStorage,
    /// True if the memory is an argument-passing area (`inalloca`). Gradus never changes such an alloca.
    pub inalloca: bool,
}

keywords! {
    /// LLVM's tail-call markers.
    #[allow(missing_docs)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum TailKind {
        #[default]
        None = "no_tail_mark",
        Tail = "tail",
        MustTail = "musttail",
        NoTail = "notail",
    }
}

/// The properties of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallInfo {
    /// The callee's function type.
    pub signature: TypeId,
    /// LLVM's calling-convention number; 0 is C.
    pub convention: u32,
    /// The tail-call marker.
    pub tail: TailKind,
    /// The call-site attributes; `None` for no attribute.
    pub attrs: Option<AttrsId>,
    /// Operand bundles: tag and number of operands. Bundle operands follow the arguments.
    pub bundles: Vec<(String, u32)>,
}

impl CallInfo {
    /// A plain call of a function of type `signature`.
    pub fn plain(signature: TypeId) -> Self {
        CallInfo {
            signature,
            convention: 0,
            tail: TailKind::None,
            attrs: None,
            bundles: Vec::new(),
        }
    }
}

/// The exceptions that a landing pad handles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LandingPad {
    /// True if the landing pad is a cleanup, entered for every exception.
    pub cleanup: bool,
    /// The clauses in order: `true` for a filter, `false` for a catch, with the clause's constant.
    pub clauses: Vec<(bool, ConstId)>,
}

keywords! {
    /// The threads that a barrier synchronises.
    #[allow(missing_docs)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum BarrierScope {
        Warp = "warp",
        Block = "block",
        Grid = "grid",
        Team = "team",
    }
}

/// The maximum number of threads of a GPU block with a non-constant size.
pub const MAX_BLOCK_THREADS: u32 = 1024;

keywords! {
    /// The kind of ranks of an `spmd`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum SpmdKind {
        /// Threads of a team. The extent is a request; a run with one rank is legal.
        Team = "team",
        /// Threads of a GPU block. The extent is part of the semantics. A non-constant extent is at most
        /// [`MAX_BLOCK_THREADS`], and so is the product of all extents if any extent is not constant.
        Block = "block",
        /// Blocks of a GPU grid. The extent is part of the semantics.
        Grid = "grid",
    }
}

keywords! {
    /// The schedule of a worksharing loop. The chunk size, if stated, is an operand.
    #[allow(missing_docs)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Schedule {
        /// Equal contiguous chunks, or round robin with a chunk size. Two static loops with equal trip count and
        /// chunk size assign equal iterations to equal ranks.
        Static = "static",
        /// Chunks on request.
        Dynamic = "dynamic",
        /// Chunks of decreasing size on request, at least the chunk size.
        Guided = "guided",
    }
}

keywords! {
    /// The operator of a reduction.
    #[allow(missing_docs)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum ReduceOp {
        Add = "add",
        Mul = "mul",
        And = "and",
        Or = "or",
        Xor = "xor",
        Max = "max",
        Min = "min",
        UMax = "umax",
        UMin = "umin",
        FAdd = "fadd",
        FMul = "fmul",
        FMax = "fmax",
        FMin = "fmin",
        FMaximum = "fmaximum",
        FMinimum = "fminimum",
        /// A combiner region of the op: two values in, one value out. The combiner runs in any order and grouping
        /// and has no neutral value.
        Custom = "custom",
    }
}

/// The kind of an op. Regions are numbered from 0; "yields" refers to the operands of a region's terminator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// `a, b → r`, all of one type.
    Binary(BinaryOp),
    /// `a → −a`.
    FNeg,
    /// `a → r`.
    Cast(CastOp),
    /// `a, b → i1`, or a vector of `i1`.
    ICmp(IntPredicate),
    /// `a, b → i1`, or a vector of `i1`.
    FCmp(FloatPredicate),
    /// `c, a, b → a or b`; `c` may be a vector of `i1`.
    Select,
    /// `a → a`; an arbitrary but fixed value if `a` is undef or poison.
    Freeze,
    /// `vector, index → element`.
    ExtractElement,
    /// `vector, element, index → vector`.
    InsertElement,
    /// `a, b → vector` of the selected lanes; lane −1 is poison.
    Shuffle(Box<[i32]>),
    /// `aggregate → member` at an index path.
    ExtractValue(Box<[u32]>),
    /// `aggregate, member → aggregate` with the member at an index path replaced.
    InsertValue(Box<[u32]>),
    /// `count → ptr` to fresh memory in the frame or in private or shared storage ([`AllocaStorage`]).
    Alloca(AllocaInfo),
    /// `ptr → value`.
    Load(Access),
    /// `value, ptr →`.
    Store(Access),
    /// `base, index… → ptr`: LLVM's `getelementptr` over `source`. [`crate::Layout::address`] decomposes the
    /// address into base + Σ index·stride + offset.
    Addr {
        /// The element type of the first index.
        source: TypeId,
    },
    /// `ptr, value → old value`.
    AtomicRmw(RmwOp, Access),
    /// `ptr, expected, new → {old value, i1}`.
    CmpXchg {
        /// The access, with the ordering on success.
        access: Access,
        /// The ordering on failure.
        failure: Atomicity,
        /// True if the exchange may fail spuriously.
        weak: bool,
    },
    /// Orders memory accesses.
    Fence {
        /// The ordering.
        order: Atomicity,
        /// The synchronisation scope, as numbered by the host.
        sync_scope: u32,
    },
    /// `callee, argument…, bundle operand… → result` (none for `void`).
    Call(Box<CallInfo>),
    /// `condition → results`: region 0 if true, region 1 if false; both regions yield the results.
    If,
    /// `value → results`: region `i` for case `i`, the last region by default.
    Switch(Box<[u128]>),
    /// `initial carried… → results`: region 0 has the carried values as parameters and ends in
    /// [`OpKind::Repeat`]. The body runs at least once; the only exit is at the bottom.
    Loop {
        /// An upper bound of the trip count, if known.
        trip_max: Option<u64>,
    },
    /// `trip count, initial carried… → final carried…`: region 0 has as parameters the index (of the trip
    /// count's type, from 0 in steps of 1) and the carried values, and yields the next carried values. The
    /// trip count is unsigned and may be 0.
    For {
        /// An upper bound of the trip count, if known.
        trip_max: Option<u64>,
    },
    /// `callee, argument…, bundle operand… → results`: region 0 is the normal path, with the call's result as
    /// parameter (none for `void`). Region 1 is the unwind path and begins with [`OpKind::LandingPad`]. Both
    /// regions yield the results.
    Invoke(Box<CallInfo>),
    /// `→ exception`; the first op of an invoke's region 1.
    LandingPad(Box<LandingPad>),
    /// `→ results`: region 0 yields the results. All tasks spawned inside have finished at the region's end.
    Scope,
    /// `condition?, serial? →`: region 0 runs as a task of the enclosing scope. The op has no results; the
    /// task communicates through memory.
    Spawn {
        /// True if the first operand is an `i1` condition. If the condition is false, the task runs
        /// undeferred, here.
        has_condition: bool,
        /// True if the last operand is an `i1`. If the value is true, all tasks spawned inside run undeferred
        /// (OpenMP's `final`).
        has_final: bool,
    },
    /// Waits for the tasks spawned so far in the enclosing scope.
    Sync,
    /// `extent…, initial… → reduced…`: region 0 has `dims` indices from 0 as parameters; iterations run in
    /// any order or concurrently. Each iteration yields one contribution to each reduction. One combiner
    /// region follows per [`ReduceOp::Custom`], in order.
    ParFor {
        /// The number of extents and indices.
        dims: u32,
        /// The reduction operators.
        reductions: Box<[ReduceOp]>,
        /// The minimum number of iterations per task, if the program states a grain size.
        grain: Option<u64>,
    },
    /// `extent…`: region 0 has `dims` ranks and `dims` sizes as parameters and runs once per rank. For a
    /// team, an extent of 0 lets the runtime choose the number of ranks.
    Spmd {
        /// The kind of ranks.
        kind: SpmdKind,
        /// The number of extents.
        dims: u32,
    },
    /// A barrier: no rank of the scope continues before all ranks have arrived.
    Barrier(BarrierScope),
    /// A worksharing loop, `trip count, chunk?`: region 0 has the index as parameter; iterations are
    /// distributed over the ranks.
    ShareFor {
        /// The schedule.
        schedule: Schedule,
        /// True if a chunk size is an operand.
        chunked: bool,
        /// True if ranks continue without a barrier at the end.
        nowait: bool,
    },
    /// `otherwise… → results`: the first rank to arrive runs region 0, and the region's yielded values are
    /// the results in this rank. In the other ranks the results are the operands, or with `copy` the yielded
    /// values.
    Single {
        /// True if the other ranks continue without a barrier at the end.
        nowait: bool,
        /// True if the yielded values are broadcast to all ranks (`copyprivate`); the op then has no
        /// operands.
        copy: bool,
    },
    /// `→ results`: region 0 runs under mutual exclusion among all `critical` ops with the name.
    Critical(Box<str>),
    /// Terminates a region with the yielded values.
    Yield,
    /// Terminates a loop's region: `continue, next carried…, result…`; the loop exits if `continue` is false.
    Repeat,
    /// Terminates the root region: the result, if any. In a nested region only after a `musttail` call.
    Return,
    /// Terminates a region whose end is unreachable.
    Unreachable,
    /// `exception`: terminates a region and continues unwinding.
    Resume,
    /// An instruction opaque to Gradus: index into the host's table.
    Foreign(u32),
}

/// Pattern of all scalar ops: ops on operands alone, without data that refer to memory, without regions and effects.
/// A match that treats all scalar ops alike names the pattern, and a new scalar op joins this list only.
#[macro_export]
macro_rules! scalar_ops {
    () => {
        $crate::OpKind::Binary(_)
            | $crate::OpKind::FNeg
            | $crate::OpKind::Cast(_)
            | $crate::OpKind::ICmp(_)
            | $crate::OpKind::FCmp(_)
            | $crate::OpKind::Select
            | $crate::OpKind::ExtractElement
            | $crate::OpKind::InsertElement
            | $crate::OpKind::Shuffle(_)
            | $crate::OpKind::ExtractValue(_)
            | $crate::OpKind::InsertValue(_)
    };
}

/// Pattern of all parallel ops.
#[macro_export]
macro_rules! parallel_ops {
    () => {
        $crate::OpKind::Scope
            | $crate::OpKind::Spawn { .. }
            | $crate::OpKind::Sync
            | $crate::OpKind::ParFor { .. }
            | $crate::OpKind::Spmd { .. }
            | $crate::OpKind::Barrier(_)
            | $crate::OpKind::ShareFor { .. }
            | $crate::OpKind::Single { .. }
            | $crate::OpKind::Critical(_)
    };
}

/// Pattern of the ops without data besides the operands.
macro_rules! ops_without_data {
    () => {
        OpKind::Binary(_)
            | OpKind::FNeg
            | OpKind::Cast(_)
            | OpKind::Select
            | OpKind::Freeze
            | OpKind::ExtractElement
            | OpKind::InsertElement
            | OpKind::Call(_)
            | OpKind::Invoke(_)
            | OpKind::If
            | OpKind::Switch(_)
            | OpKind::Scope
            | OpKind::Sync
            | OpKind::Yield
            | OpKind::Repeat
            | OpKind::Return
            | OpKind::Unreachable
            | OpKind::Resume
    };
}
pub(crate) use ops_without_data;

impl OpKind {
    /// Returns whether the op terminates a region.
    pub fn is_terminator(&self) -> bool {
        use OpKind::*;
        matches!(self, Yield | Repeat | Return | Unreachable | Resume)
    }
    /// Returns whether the op computes a deterministic function of the operands without memory access. A
    /// division may still be undefined.
    pub fn is_arithmetic(&self) -> bool {
        matches!(self, scalar_ops!() | OpKind::Addr { .. })
    }
    /// Returns whether the op is a sequential loop: `for` or `loop`.
    pub fn is_loop(&self) -> bool {
        matches!(self, OpKind::For { .. } | OpKind::Loop { .. })
    }
    /// Returns whether the op's region is the code of a strand: a task, an iteration or a rank.
    pub fn is_strand_op(&self) -> bool {
        use OpKind::*;
        matches!(
            self,
            Spawn { .. } | ParFor { .. } | Spmd { .. } | ShareFor { .. }
        )
    }
    /// Returns whether the op is a parallel op.
    pub fn is_parallel(&self) -> bool {
        matches!(self, parallel_ops!())
    }
    /// Returns the call properties of a `call` or `invoke`.
    pub fn call_info(&self) -> Option<&CallInfo> {
        match self {
            OpKind::Call(info) | OpKind::Invoke(info) => Some(info),
            _ => None,
        }
    }
}
