//! The op table: one row per op, read by printer, parser and verifier.
//!
//! To add an op: a variant of [`OpKind`] and a row here. An op with data besides operands also gets a syntax
//! in `text/print_kind.rs` and `text/parse_kind.rs`.

use crate::ops::{
    Access, AllocaInfo, AllocaStorage, Atomicity, BarrierScope, BinaryOp, CallInfo, CastOp,
    FloatPredicate, IntPredicate, OpKind, ReduceOp, RmwOp, Schedule, SpmdKind, TailKind,
};
use crate::{Entity, TypeId};

/// The permitted number of operands, results or regions of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Exactly this number.
    Exactly(u32),
    /// This number or more.
    AtLeast(u32),
}

impl Count {
    /// Returns whether `n` is permitted.
    pub fn admits(self, n: usize) -> bool {
        match self {
            Count::Exactly(count) => n == count as usize,
            Count::AtLeast(count) => n >= count as usize,
        }
    }
    /// Returns the number in words, for messages.
    pub fn describe(self) -> String {
        match self {
            Count::Exactly(n) => n.to_string(),
            Count::AtLeast(n) => format!("at least {n}"),
        }
    }
}

/// The effects of an op besides the results, without knowledge of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectClass {
    /// No effect: the op may be duplicated, speculated or removed.
    Pure,
    /// No effect, but some operands are undefined behaviour: the op must not be speculated.
    Traps,
    /// Allocates fresh memory.
    Allocates,
    /// Reads memory.
    Reads,
    /// Writes memory.
    Writes,
    /// Reads and writes memory.
    ReadsWrites,
    /// Orders memory accesses of threads.
    Orders,
    /// The callee's effects.
    Calls,
    /// The effects of the op's regions.
    Regions,
    /// Terminates a region.
    Terminates,
    /// The effects that the host states for the op; arbitrary effects if the host states none.
    Unknown,
}

/// A row of the op table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpRow {
    /// The keyword in the text form. `binary` and `cast` ops print the operation's own keyword instead.
    pub mnemonic: &'static str,
    /// The number of operands.
    pub operands: Count,
    /// The number of results.
    pub results: Count,
    /// The number of regions.
    pub regions: Count,
    /// The effects.
    pub effects: EffectClass,
}

macro_rules! ops {
    ($($pattern:pat => $mnemonic:literal, $operands:ident $n:literal, $results:ident $r:literal,
       $regions:ident $g:literal, $effects:ident, $prototype:expr;)*) => {
        impl OpKind {
            /// Returns the op's row.
            // table
            pub fn row(&self) -> &'static OpRow {
                use OpKind::*;
                match self { $($pattern => {
                    const ROW: OpRow = OpRow {
                        mnemonic: $mnemonic,
                        operands: Count::$operands($n),
                        results: Count::$results($r),
                        regions: Count::$regions($g),
                        effects: EffectClass::$effects,
                    };
                    &ROW
                })* }
            }
        }

        /// Returns each op by keyword, with neutral data in the op's payload.
        // table
        pub(crate) fn prototypes() -> Vec<(&'static str, OpKind)> {
            use OpKind::*;
            let mut list = vec![$(($mnemonic, $prototype)),*];
            list.retain(|(_, kind)| !matches!(kind, Binary(_) | Cast(_)));
            list.extend(BinaryOp::ALL.iter().map(|op| (op.name(), Binary(*op))));
            list.extend(CastOp::ALL.iter().map(|op| (op.name(), Cast(*op))));
            list
        }
    };
}

/// Placeholder for dimensions that the parser infers from the number of operands.
pub(crate) const INFERRED_DIMS: u32 = u32::MAX;

const NO_ACCESS: Access = Access {
    align_bytes: 0,
    volatile: false,
    order: Atomicity::NotAtomic,
    sync_scope: 1,
};

fn no_type() -> TypeId {
    TypeId::from_index(0)
}

fn no_call() -> Box<CallInfo> {
    Box::new(CallInfo::plain(no_type()))
}

ops! {
    Binary(BinaryOp::UDiv | BinaryOp::SDiv | BinaryOp::URem | BinaryOp::SRem)
        => "binary", Exactly 2, Exactly 1, Exactly 0, Traps, Binary(BinaryOp::UDiv);
    Binary(_) => "binary", Exactly 2, Exactly 1, Exactly 0, Pure, Binary(BinaryOp::Add);
    FNeg => "fneg", Exactly 1, Exactly 1, Exactly 0, Pure, FNeg;
    Cast(_) => "cast", Exactly 1, Exactly 1, Exactly 0, Pure, Cast(CastOp::Trunc);
    ICmp(_) => "icmp", Exactly 2, Exactly 1, Exactly 0, Pure, ICmp(IntPredicate::Eq);
    FCmp(_) => "fcmp", Exactly 2, Exactly 1, Exactly 0, Pure, FCmp(FloatPredicate::False);
    Select => "select", Exactly 3, Exactly 1, Exactly 0, Pure, Select;
    Freeze => "freeze", Exactly 1, Exactly 1, Exactly 0, Pure, Freeze;
    ExtractElement => "extractelement", Exactly 2, Exactly 1, Exactly 0, Pure,
        ExtractElement;
    InsertElement => "insertelement", Exactly 3, Exactly 1, Exactly 0, Pure,
        InsertElement;
    Shuffle(_) => "shuffle", Exactly 2, Exactly 1, Exactly 0, Pure,
        Shuffle(Box::default());
    ExtractValue(_) => "extractvalue", Exactly 1, Exactly 1, Exactly 0, Pure,
        ExtractValue(Box::default());
    InsertValue(_) => "insertvalue", Exactly 2, Exactly 1, Exactly 0, Pure,
        InsertValue(Box::default());
    Alloca(_) => "alloca", Exactly 1, Exactly 1, Exactly 0, Allocates, Alloca(AllocaInfo {
        ty: no_type(), align_bytes: 0, storage: AllocaStorage::Frame, inalloca: false,
    });
    Load(_) => "load", Exactly 1, Exactly 1, Exactly 0, Reads, Load(NO_ACCESS);
    Store(_) => "store", Exactly 2, Exactly 0, Exactly 0, Writes, Store(NO_ACCESS);
    Addr { .. } => "addr", AtLeast 1, Exactly 1, Exactly 0, Pure, Addr { source: no_type() };
    AtomicRmw(..) => "atomicrmw", Exactly 2, Exactly 1, Exactly 0, ReadsWrites,
        AtomicRmw(RmwOp::Xchg, NO_ACCESS);
    CmpXchg { .. } => "cmpxchg", Exactly 3, Exactly 1, Exactly 0, ReadsWrites,
        CmpXchg { access: NO_ACCESS, failure: Atomicity::NotAtomic, weak: false };
    Fence { .. } => "fence", Exactly 0, Exactly 0, Exactly 0, Orders,
        Fence { order: Atomicity::NotAtomic, sync_scope: 1 };
    Call(_) => "call", AtLeast 1, AtLeast 0, Exactly 0, Calls, Call(no_call());
    If => "if", Exactly 1, AtLeast 0, Exactly 2, Regions, If;
    Switch(_) => "switch", Exactly 1, AtLeast 0, AtLeast 1, Regions,
        Switch(Box::default());
    Loop { .. } => "loop", AtLeast 0, AtLeast 0, Exactly 1, Regions,
        Loop { trip_max: None };
    For { .. } => "for", AtLeast 1, AtLeast 0, Exactly 1, Regions, For { trip_max: None };
    Invoke(_) => "invoke", AtLeast 1, AtLeast 0, Exactly 2, Calls,
        Invoke(no_call());
    LandingPad(_) => "landingpad", Exactly 0, Exactly 1, Exactly 0, Reads,
        LandingPad(Box::new(crate::LandingPad { cleanup: false, clauses: Vec::new() }));
    Scope => "scope", Exactly 0, AtLeast 0, Exactly 1, Regions, Scope;
    Spawn { .. } => "spawn", AtLeast 0, Exactly 0, Exactly 1, Regions,
        Spawn { has_condition: false, has_final: false };
    Sync => "sync", Exactly 0, Exactly 0, Exactly 0, Orders, Sync;
    ParFor { .. } => "par.for", AtLeast 1, AtLeast 0, AtLeast 1, Regions,
        ParFor { dims: INFERRED_DIMS, reductions: Box::default(), grain: None };
    Spmd { .. } => "spmd", AtLeast 1, Exactly 0, Exactly 1, Regions,
        Spmd { kind: SpmdKind::Team, dims: INFERRED_DIMS };
    Barrier(_) => "barrier", Exactly 0, Exactly 0, Exactly 0, Orders,
        Barrier(BarrierScope::Team);
    ShareFor { .. } => "share.for", AtLeast 1, Exactly 0, Exactly 1, Regions,
        ShareFor { schedule: Schedule::Static, chunked: false, nowait: false };
    Single { .. } => "single", AtLeast 0, AtLeast 0, Exactly 1, Regions,
        Single { nowait: false, copy: false };
    Critical(_) => "critical", Exactly 0, AtLeast 0, Exactly 1, Regions,
        Critical(Box::default());
    Yield => "yield", AtLeast 0, Exactly 0, Exactly 0, Terminates, Yield;
    Repeat => "repeat", AtLeast 1, Exactly 0, Exactly 0, Terminates, Repeat;
    Return => "return", AtLeast 0, Exactly 0, Exactly 0, Terminates, Return;
    Unreachable => "unreachable", Exactly 0, Exactly 0, Exactly 0, Terminates, Unreachable;
    Resume => "resume", Exactly 1, Exactly 0, Exactly 0, Terminates, Resume;
    Foreign(_) => "foreign", AtLeast 0, AtLeast 0, AtLeast 0, Unknown, Foreign(0);
}

impl OpKind {
    /// Returns one op per keyword, with neutral data.
    pub fn prototypes() -> Vec<OpKind> {
        prototypes().into_iter().map(|(_, kind)| kind).collect()
    }
    /// Returns the op's keyword in the text form.
    pub fn mnemonic(&self) -> &'static str {
        match self {
            OpKind::Binary(op) => op.name(),
            OpKind::Cast(op) => op.name(),
            _ => self.row().mnemonic,
        }
    }
    /// Returns the op's effects, without knowledge of the operands.
    pub fn effects(&self) -> EffectClass {
        self.row().effects
    }
}

macro_rules! names {
    ($ty:ident { $($variant:ident = $name:literal),* $(,)? }) => {
        impl $ty {
            /// All variants, in order.
            pub const ALL: &[$ty] = &[$($ty::$variant),*];
            /// Returns the keyword in the text form.
            pub fn name(self) -> &'static str {
                match self { $($ty::$variant => $name),* }
            }
            /// Returns the variant with the given keyword.
            pub fn from_name(name: &str) -> Option<$ty> {
                match name { $($name => Some($ty::$variant),)* _ => None }
            }
        }
    };
}

names!(BinaryOp {
    Add = "add", Sub = "sub", Mul = "mul", UDiv = "udiv", SDiv = "sdiv", URem = "urem",
    SRem = "srem", Shl = "shl", LShr = "lshr", AShr = "ashr", And = "and", Or = "or", Xor = "xor",
    FAdd = "fadd", FSub = "fsub", FMul = "fmul", FDiv = "fdiv", FRem = "frem",
});
names!(CastOp {
    Trunc = "trunc", ZExt = "zext", SExt = "sext", FPTrunc = "fptrunc", FPExt = "fpext",
    FPToUI = "fptoui", FPToSI = "fptosi", UIToFP = "uitofp", SIToFP = "sitofp",
    PtrToInt = "ptrtoint", PtrToAddr = "ptrtoaddr", IntToPtr = "inttoptr", BitCast = "bitcast",
    AddrSpaceCast = "addrspacecast",
});
names!(IntPredicate {
    Eq = "eq", Ne = "ne", Ugt = "ugt", Uge = "uge", Ult = "ult", Ule = "ule", Sgt = "sgt",
    Sge = "sge", Slt = "slt", Sle = "sle",
});
names!(FloatPredicate {
    False = "false", Oeq = "oeq", Ogt = "ogt", Oge = "oge", Olt = "olt", Ole = "ole", One = "one",
    Ord = "ord", Uno = "uno", Ueq = "ueq", Ugt = "ugt", Uge = "uge", Ult = "ult", Ule = "ule",
    Une = "une", True = "true",
});
names!(RmwOp {
    Xchg = "xchg", Add = "add", Sub = "sub", And = "and", Nand = "nand", Or = "or", Xor = "xor",
    Max = "max", Min = "min", UMax = "umax", UMin = "umin", FAdd = "fadd", FSub = "fsub",
    FMax = "fmax", FMin = "fmin", FMaximum = "fmaximum", FMinimum = "fminimum",
    UIncWrap = "uinc_wrap", UDecWrap = "udec_wrap", USubCond = "usub_cond", USubSat = "usub_sat",
});
names!(Atomicity {
    NotAtomic = "not_atomic", Unordered = "unordered", Monotonic = "monotonic",
    Acquire = "acquire", Release = "release", AcquireRelease = "acq_rel",
    SequentiallyConsistent = "seq_cst",
});
names!(TailKind { None = "no_tail_mark", Tail = "tail", MustTail = "musttail", NoTail = "notail" });
names!(BarrierScope { Warp = "warp", Block = "block", Grid = "grid", Team = "team" });
names!(SpmdKind { Team = "team", Block = "block", Grid = "grid" });
names!(Schedule { Static = "static", Dynamic = "dynamic", Guided = "guided" });
names!(ReduceOp {
    Add = "add", Mul = "mul", And = "and", Or = "or", Xor = "xor", Max = "max", Min = "min",
    UMax = "umax", UMin = "umin", FAdd = "fadd", FMul = "fmul", FMax = "fmax", FMin = "fmin",
    FMaximum = "fmaximum", FMinimum = "fminimum", Custom = "custom",
});
