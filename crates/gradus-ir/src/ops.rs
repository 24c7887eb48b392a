//! The ops: a closed enumeration. What an op takes, gives and owns stands with its variant.

use crate::{AttrsId, ConstId, TypeId};

/// Integer and floating-point arithmetic on two operands of one type, element-wise on vectors.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    Shl,
    LShr,
    AShr,
    And,
    Or,
    Xor,
    FAdd,
    FSub,
    FMul,
    FDiv,
    FRem,
}

impl BinaryOp {
    /// Whether it works on floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(
            self,
            BinaryOp::FAdd | BinaryOp::FSub | BinaryOp::FMul | BinaryOp::FDiv | BinaryOp::FRem
        )
    }
    /// Whether the operands may be exchanged.
    pub fn is_commutative(self) -> bool {
        use BinaryOp::*;
        matches!(self, Add | Mul | And | Or | Xor | FAdd | FMul)
    }
}

/// Conversions; LLVM's.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CastOp {
    Trunc,
    ZExt,
    SExt,
    FPTrunc,
    FPExt,
    FPToUI,
    FPToSI,
    UIToFP,
    SIToFP,
    PtrToInt,
    PtrToAddr,
    IntToPtr,
    BitCast,
    AddrSpaceCast,
}

/// Comparisons of integers and pointers.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IntPredicate {
    Eq,
    Ne,
    Ugt,
    Uge,
    Ult,
    Ule,
    Sgt,
    Sge,
    Slt,
    Sle,
}

/// Comparisons of floating-point numbers: `O…` is false and `U…` true where one is not a number.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FloatPredicate {
    False,
    Oeq,
    Ogt,
    Oge,
    Olt,
    Ole,
    One,
    Ord,
    Uno,
    Ueq,
    Ugt,
    Uge,
    Ult,
    Ule,
    Une,
    True,
}

/// How an atomic read-modify-write or a reduction combines; LLVM's.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RmwOp {
    Xchg,
    Add,
    Sub,
    And,
    Nand,
    Or,
    Xor,
    Max,
    Min,
    UMax,
    UMin,
    FAdd,
    FSub,
    FMax,
    FMin,
    FMaximum,
    FMinimum,
    UIncWrap,
    UDecWrap,
    USubCond,
    USubSat,
}

/// The order that an access imposes on others.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atomicity {
    #[default]
    NotAtomic,
    Unordered,
    Monotonic,
    Acquire,
    Release,
    AcquireRelease,
    SequentiallyConsistent,
}

/// How memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// The alignment in bytes, a power of two.
    pub align_bytes: u32,
    /// Whether the access is volatile.
    pub volatile: bool,
    /// Its order.
    pub order: Atomicity,
    /// The synchronisation scope, by the host's number; 1 is the whole system.
    pub sync_scope: u32,
}

impl Access {
    /// A plain access with an alignment in bytes.
    pub fn plain(align_bytes: u32) -> Self {
        Access {
            align_bytes,
            volatile: false,
            order: Atomicity::NotAtomic,
            sync_scope: 1,
        }
    }
    /// Whether it acquires or releases: what other threads wrote is seen behind it.
    pub fn orders(&self) -> bool {
        self.order >= Atomicity::Acquire
    }
    /// Whether it is neither volatile nor atomic.
    pub fn is_plain(&self) -> bool {
        !self.volatile && self.order == Atomicity::NotAtomic
    }
}

/// Whose memory an allocation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AllocaPlace {
    /// The frame's.
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
    /// Whose memory it is.
    pub place: AllocaPlace,
    /// Whether it is an argument-passing area of the host (`inalloca`); such are never touched.
    pub inalloca: bool,
}

/// Tail-call markers.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TailKind {
    #[default]
    None,
    Tail,
    MustTail,
    NoTail,
}

/// What a call needs beside its operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallInfo {
    /// The function type called.
    pub signature: TypeId,
    /// LLVM's number of the calling convention; 0 is C's.
    pub convention: u32,
    /// The tail-call marker.
    pub tail: TailKind,
    /// The attributes of the call, `None` for no attribute.
    pub attrs: Option<AttrsId>,
    /// Operand bundles: tag and number of operands, which follow the arguments.
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

/// What an exception handler takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LandingPad {
    /// Whether it is entered for every exception.
    pub cleanup: bool,
    /// The clauses in order: `true` for a filter, with its constant.
    pub clauses: Vec<(bool, ConstId)>,
}

/// Who meets at a barrier.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierScope {
    Warp,
    Block,
    Grid,
    Team,
}

/// The most threads of a GPU block whose size is not constant.
pub const MOST_THREADS: u32 = 1024;

/// What the ranks of an `spmd` are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpmdKind {
    /// Threads of a team: the extent is a request, one rank is a legal run.
    Team,
    /// Threads of a GPU block: the extent is part of the meaning. An extent that is not constant is at
    /// most [`MOST_THREADS`], and so is the product of all, if one is not.
    Block,
    /// Blocks of a GPU grid: the extent is part of the meaning.
    Grid,
}

/// How a shared loop is dealt out to ranks. The chunk, where one is stated, is an operand.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// In equal contiguous parts, or round robin in chunks: two such loops of equal trip count and
    /// chunk give the same iterations to the same ranks.
    Static,
    /// In chunks, to whoever asks.
    Dynamic,
    /// In shrinking parts of at least a chunk, to whoever asks.
    Guided,
}

/// How the contributions to a reduction combine.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceOp {
    Add,
    Mul,
    And,
    Or,
    Xor,
    Max,
    Min,
    UMax,
    UMin,
    FAdd,
    FMul,
    FMax,
    FMin,
    FMaximum,
    FMinimum,
    /// As a further region of its own says, which takes two values and yields one. It combines in
    /// any order and grouping, and has no neutral value.
    Custom,
}

/// An op. Regions are counted from 0; "yields" means the operands of a region's terminator.
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
    /// `c, a, b → a or b`; `c` may be a vector.
    Select,
    /// `a → a`, an arbitrary but fixed value where `a` is undef or poison.
    Freeze,
    /// `vector, index → element`.
    ExtractElement,
    /// `vector, element, index → vector`.
    InsertElement,
    /// `a, b → vector` of the lanes named; −1 is poison.
    Shuffle(Box<[i32]>),
    /// `aggregate → member` at a path of indices.
    ExtractValue(Box<[u32]>),
    /// `aggregate, member → aggregate` with the member at a path of indices.
    InsertValue(Box<[u32]>),
    /// `count → ptr` to fresh memory that lives as long as the function.
    Alloca(AllocaInfo),
    /// `ptr → value`.
    Load(Access),
    /// `value, ptr →`.
    Store(Access),
    /// `base, index… → ptr`: LLVM's address computation over `source`; [`crate::Layout::address`]
    /// reads it as base + Σ index·stride + constant.
    Addr {
        /// The type that the first index steps over.
        source: TypeId,
    },
    /// `ptr, value → old value`.
    AtomicRmw(RmwOp, Access),
    /// `ptr, expected, new → {old value, i1}`.
    CmpXchg {
        /// The access, with the order on success.
        access: Access,
        /// The order on failure.
        failure: Atomicity,
        /// Whether it may fail for no reason.
        weak: bool,
    },
    /// Orders memory accesses.
    Fence {
        /// The order.
        order: Atomicity,
        /// The synchronisation scope, by the host's number.
        sync_scope: u32,
    },
    /// `callee, argument…, bundle operand… → result` (none for `void`).
    Call(Box<CallInfo>),
    /// `condition → results`: region 0 if true, region 1 if false; both yield the results.
    If,
    /// `value → results`: region `i` for case `i`, the last region for all others.
    Switch(Box<[u128]>),
    /// `initial carried… → results`: region 0 takes the carried values and ends in
    /// [`OpKind::Repeat`]. Runs at least once; leaves at its bottom only.
    Loop {
        /// A bound of the number of runs, where one is known.
        trip_max: Option<u64>,
    },
    /// `trip count, initial carried… → last carried…`: region 0 takes the index, of the trip
    /// count's type, from 0 in steps of 1, and the carried values, and yields the next carried
    /// values. May run zero times; the trip count is unsigned.
    For {
        /// A bound of the trip count, where one is known.
        trip_max: Option<u64>,
    },
    /// `callee, argument…, bundle operand… → results`: region 0 takes the call's result (nothing
    /// for `void`), region 1 runs when it throws and begins with [`OpKind::LandingPad`]; both
    /// yield the results.
    Invoke(Box<CallInfo>),
    /// `→ exception`, the first op of an invoke's region 1.
    LandingPad(Box<LandingPad>),
    /// `→ results`: region 0, which yields the results; tasks spawned inside have ended when it
    /// ends.
    Scope,
    /// `now?, serial? →`: region 0 as a task of the enclosing scope. No results: it speaks through
    /// memory.
    Spawn {
        /// Whether the first operand, a truth value, says where false that the task runs here and
        /// at once.
        when: bool,
        /// Whether the last operand, a truth value, says where true that all tasks spawned inside
        /// run where they stand and at once.
        serial: bool,
    },
    /// Waits for the tasks spawned so far in the enclosing scope.
    Sync,
    /// `extent…, initial… → reduced…`: region 0 takes `dims` indices from 0, in any order or at
    /// once, and yields one contribution to each reduction; a further region for each
    /// [`ReduceOp::Custom`], in their order.
    ParFor {
        /// The number of extents and indices.
        dims: u32,
        /// How contributions combine.
        reductions: Box<[ReduceOp]>,
        /// The least number of iterations that are worth a task, where the program says one.
        grain: Option<u64>,
    },
    /// `extent…`: region 0 takes `dims` ranks and `dims` sizes and runs once for every rank. Of a
    /// team an extent of 0 asks for as many as the run time sees fit.
    Spmd {
        /// What the ranks are.
        kind: SpmdKind,
        /// The number of extents.
        dims: u32,
    },
    /// Every rank of the enclosing `spmd` comes here before any goes on.
    Barrier(BarrierScope),
    /// `trip count, chunk?`: region 0 takes the index; the iterations are dealt out to the ranks.
    ShareFor {
        /// How they are dealt out.
        schedule: Schedule,
        /// Whether a number of iterations that stay together is given.
        chunked: bool,
        /// Whether ranks go on without waiting for each other.
        nowait: bool,
    },
    /// `otherwise… → results`: region 0, by the rank that comes first, yields the results there; the
    /// other ranks have the operands as results, or with `copy` the same results.
    Single {
        /// Whether the others go on without waiting.
        nowait: bool,
        /// Whether all ranks get what the region yields; it takes no operands then.
        copy: bool,
    },
    /// `→ results`: region 0, by one rank at a time among all regions of one name.
    Critical(Box<str>),
    /// Ends a region: its values.
    Yield,
    /// Ends a loop's region: `again, next carried…, result…`; leaves where `again` is false.
    Repeat,
    /// Ends the root region: the result, if any. In a nested region only after a must-tail call.
    Return,
    /// Ends a region that control never leaves here.
    Unreachable,
    /// `exception`: ends a region by continuing to unwind.
    Resume,
    /// An instruction that only the host understands, by its number in the host's table.
    Foreign(u32),
}

impl OpKind {
    /// Whether it ends a region.
    pub fn is_terminator(&self) -> bool {
        use OpKind::*;
        matches!(self, Yield | Repeat | Return | Unreachable | Resume)
    }
    /// Whether it gives a value of its operands alone, the same each time, and reads and writes no
    /// memory. A division may still be undefined.
    pub fn is_arithmetic(&self) -> bool {
        use OpKind::*;
        matches!(
            self,
            Binary(_)
                | FNeg
                | Cast(_)
                | ICmp(_)
                | FCmp(_)
                | Select
                | ExtractElement
                | InsertElement
                | Shuffle(_)
                | ExtractValue(_)
                | InsertValue(_)
                | Addr { .. }
        )
    }
    /// Whether it is the code of a strand: a task, an iteration or a rank.
    pub fn begins_strands(&self) -> bool {
        use OpKind::*;
        matches!(
            self,
            Spawn { .. } | ParFor { .. } | Spmd { .. } | ShareFor { .. }
        )
    }
    /// Whether it is one of the parallel ops.
    pub fn is_parallel(&self) -> bool {
        use OpKind::*;
        matches!(
            self,
            Scope
                | Spawn { .. }
                | Sync
                | ParFor { .. }
                | Spmd { .. }
                | Barrier(_)
                | ShareFor { .. }
                | Single { .. }
                | Critical(_)
        )
    }
    /// The call's details, for `call` and `invoke`.
    pub fn call_info(&self) -> Option<&CallInfo> {
        match self {
            OpKind::Call(info) | OpKind::Invoke(info) => Some(info),
            _ => None,
        }
    }
}

/// What is promised or allowed about one op: LLVM's flags, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u32);

#[allow(missing_docs)]
impl Flags {
    pub const NONE: Flags = Flags(0);
    pub const NUW: Flags = Flags(1);
    pub const NSW: Flags = Flags(1 << 1);
    pub const EXACT: Flags = Flags(1 << 2);
    pub const DISJOINT: Flags = Flags(1 << 3);
    pub const NNEG: Flags = Flags(1 << 4);
    pub const SAMESIGN: Flags = Flags(1 << 5);
    pub const INBOUNDS: Flags = Flags(1 << 6);
    pub const NUSW: Flags = Flags(1 << 7);
    pub const REASSOC: Flags = Flags(1 << 8);
    pub const NNAN: Flags = Flags(1 << 9);
    pub const NINF: Flags = Flags(1 << 10);
    pub const NSZ: Flags = Flags(1 << 11);
    pub const ARCP: Flags = Flags(1 << 12);
    pub const CONTRACT: Flags = Flags(1 << 13);
    pub const AFN: Flags = Flags(1 << 14);
    /// Of a `for`: no plain access of one iteration meets a plain write of another. An edit may not
    /// put an access into such a loop of which that is not true.
    pub const INDEPENDENT: Flags = Flags(1 << 15);
    /// Of a parallel loop, or a `for` that is [`Flags::INDEPENDENT`] otherwise: several iterations may write to
    /// one place, if what they write is the same. So do a GPU's threads.
    pub const SHARING: Flags = Flags(1 << 16);
    /// Of a `for`: it is not to be vectorised.
    pub const SCALAR: Flags = Flags(1 << 17);
    /// Of an atomic read-modify-write: all that it may meet are the other iterations of the parallel loops
    /// around it. Where these do not run at the same time it may be plain.
    pub const BETWEEN: Flags = Flags(1 << 18);
    /// Of a grid: its threads wait for each other in loops, and take turns, each on a stack of its own.
    pub const TURNS: Flags = Flags(1 << 19);
    /// Of a `for`: where its number of runs is unknown, its body is written out once. The program's own loop does
    /// not say how often it runs but by a quotient.
    pub const ROLLED: Flags = Flags(1 << 20);
    /// Of a loop: it is the one that a marker for loops stands before, and not one inside of that.
    pub const MARKED: Flags = Flags(1 << 21);
    /// Of a task: no parallel region stands around it in its function, and where none runs the function either, the
    /// thread that makes the task runs it.
    pub const ORPHAN: Flags = Flags(1 << 22);
    /// The fast-math flags that adjoint arithmetic inherits (see `inherit.rs` of gradus-ad).
    pub const FAST_ALGEBRA: Flags =
        Flags(Flags::REASSOC.0 | Flags::ARCP.0 | Flags::CONTRACT.0 | Flags::AFN.0);
    /// All fast-math flags.
    pub const FAST: Flags =
        Flags(Flags::FAST_ALGEBRA.0 | Flags::NNAN.0 | Flags::NINF.0 | Flags::NSZ.0);
    /// Each single flag with LLVM's name, in the order of printing.
    pub const NAMES: &[(Flags, &str)] = &[
        (Flags::NUW, "nuw"),
        (Flags::NSW, "nsw"),
        (Flags::EXACT, "exact"),
        (Flags::DISJOINT, "disjoint"),
        (Flags::NNEG, "nneg"),
        (Flags::SAMESIGN, "samesign"),
        (Flags::INBOUNDS, "inbounds"),
        (Flags::NUSW, "nusw"),
        (Flags::REASSOC, "reassoc"),
        (Flags::NNAN, "nnan"),
        (Flags::NINF, "ninf"),
        (Flags::NSZ, "nsz"),
        (Flags::ARCP, "arcp"),
        (Flags::CONTRACT, "contract"),
        (Flags::AFN, "afn"),
        (Flags::INDEPENDENT, "independent"),
        (Flags::SHARING, "sharing"),
        (Flags::SCALAR, "scalar"),
        (Flags::BETWEEN, "between"),
        (Flags::TURNS, "turns"),
        (Flags::ROLLED, "rolled"),
        (Flags::MARKED, "marked"),
        (Flags::ORPHAN, "orphan"),
    ];

    /// Whether all flags of `other` are set.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// The flags of both.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
    /// The flags common to both.
    #[must_use]
    pub fn and(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }
    /// These flags without those of `other`.
    #[must_use]
    pub fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}
