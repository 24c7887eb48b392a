//! The op table: one row per op, read by printer, parser and verifier.
//!
//! To add an op: a variant of [`OpKind`] and a row here. An op with data besides operands also gets a syntax
//! in `text/print_kind.rs` and `text/parse_kind.rs`. Binary operations and conversions have tables of their
//! own (`scalar_table.rs`).

use crate::effect_class::EffectClass;
use crate::ops::{
    Access, AllocaInfo, AllocaStorage, Atomicity, BarrierScope, CallInfo, FloatPredicate,
    IntPredicate, OpKind, RmwOp, Schedule, SpmdKind,
};
use crate::scalar_table::{BinaryOp, CastOp};
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

/// The types of an op's results. The text form omits implied types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultType {
    /// The op has no result.
    Nothing,
    /// The type of an operand.
    Operand(usize),
    /// A function of operand types and data, in `result_types.rs`.
    Computed,
    /// Operands do not determine the types; the text form states them.
    Stated,
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
    /// The effects. A binary operation states its effects in [`crate::BinaryRow`].
    pub effects: EffectClass,
    /// The types of the results.
    pub(crate) result_type: ResultType,
}

macro_rules! ops {
    ($($pattern:pat => $mnemonic:literal, $operands:ident $n:literal, $results:ident $r:literal,
       $regions:ident $g:literal, $effects:ident, $result:expr, $prototype:expr;)*) => {
        impl OpKind {
            /// Returns the op's row.
            // table
            pub fn row(&self) -> &'static OpRow {
                use OpKind::*;
                use ResultType::*;
                match self { $($pattern => {
                    const ROW: OpRow = OpRow {
                        mnemonic: $mnemonic,
                        operands: Count::$operands($n),
                        results: Count::$results($r),
                        regions: Count::$regions($g),
                        effects: EffectClass::$effects,
                        result_type: $result,
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
    Binary(_) => "binary", Exactly 2, Exactly 1, Exactly 0, Pure, Operand(0), Binary(BinaryOp::Add);
    FNeg => "fneg", Exactly 1, Exactly 1, Exactly 0, Pure, Operand(0), FNeg;
    Cast(_) => "cast", Exactly 1, Exactly 1, Exactly 0, Pure, Stated, Cast(CastOp::Trunc);
    ICmp(_) => "icmp", Exactly 2, Exactly 1, Exactly 0, Pure, Computed, ICmp(IntPredicate::Eq);
    FCmp(_) => "fcmp", Exactly 2, Exactly 1, Exactly 0, Pure, Computed, FCmp(FloatPredicate::False);
    Select => "select", Exactly 3, Exactly 1, Exactly 0, Pure, Operand(1), Select;
    Freeze => "freeze", Exactly 1, Exactly 1, Exactly 0, Pure, Operand(0), Freeze;
    ExtractElement => "extractelement", Exactly 2, Exactly 1, Exactly 0, Pure, Computed,
        ExtractElement;
    InsertElement => "insertelement", Exactly 3, Exactly 1, Exactly 0, Pure, Operand(0),
        InsertElement;
    Shuffle(_) => "shuffle", Exactly 2, Exactly 1, Exactly 0, Pure, Computed,
        Shuffle(Box::default());
    ExtractValue(_) => "extractvalue", Exactly 1, Exactly 1, Exactly 0, Pure, Computed,
        ExtractValue(Box::default());
    InsertValue(_) => "insertvalue", Exactly 2, Exactly 1, Exactly 0, Pure, Operand(0),
        InsertValue(Box::default());
    Alloca(_) => "alloca", Exactly 1, Exactly 1, Exactly 0, Allocates, Computed, Alloca(AllocaInfo {
        ty: no_type(), align_bytes: 0, storage: AllocaStorage::Frame, inalloca: false,
    });
    Load(_) => "load", Exactly 1, Exactly 1, Exactly 0, Reads, Stated, Load(NO_ACCESS);
    Store(_) => "store", Exactly 2, Exactly 0, Exactly 0, Writes, Nothing, Store(NO_ACCESS);
    Addr { .. } => "addr", AtLeast 1, Exactly 1, Exactly 0, Pure, Computed, Addr { source: no_type() };
    AtomicRmw(..) => "atomicrmw", Exactly 2, Exactly 1, Exactly 0, ReadsWrites, Operand(1),
        AtomicRmw(RmwOp::Xchg, NO_ACCESS);
    CmpXchg { .. } => "cmpxchg", Exactly 3, Exactly 1, Exactly 0, ReadsWrites, Computed,
        CmpXchg { access: NO_ACCESS, failure: Atomicity::NotAtomic, weak: false };
    Fence { .. } => "fence", Exactly 0, Exactly 0, Exactly 0, Orders, Nothing,
        Fence { order: Atomicity::NotAtomic, sync_scope: 1 };
    Call(_) => "call", AtLeast 1, AtLeast 0, Exactly 0, Calls, Computed, Call(no_call());
    If => "if", Exactly 1, AtLeast 0, Exactly 2, Regions, Stated, If;
    Switch(_) => "switch", Exactly 1, AtLeast 0, AtLeast 1, Regions, Stated,
        Switch(Box::default());
    Loop { .. } => "loop", AtLeast 0, AtLeast 0, Exactly 1, Regions, Stated,
        Loop { trip_max: None };
    For { .. } => "for", AtLeast 1, AtLeast 0, Exactly 1, Regions, Computed, For { trip_max: None };
    Invoke(_) => "invoke", AtLeast 1, AtLeast 0, Exactly 2, Calls, Stated,
        Invoke(no_call());
    LandingPad(_) => "landingpad", Exactly 0, Exactly 1, Exactly 0, Reads, Stated,
        LandingPad(Box::new(crate::LandingPad { cleanup: false, clauses: Vec::new() }));
    Scope => "scope", Exactly 0, AtLeast 0, Exactly 1, Regions, Stated, Scope;
    Spawn { .. } => "spawn", AtLeast 0, Exactly 0, Exactly 1, Regions, Nothing,
        Spawn { has_condition: false, has_final: false };
    Sync => "sync", Exactly 0, Exactly 0, Exactly 0, Orders, Nothing, Sync;
    ParFor { .. } => "par.for", AtLeast 1, AtLeast 0, AtLeast 1, Regions, Computed,
        ParFor { dims: INFERRED_DIMS, reductions: Box::default(), grain: None };
    Spmd { .. } => "spmd", AtLeast 1, Exactly 0, Exactly 1, Regions, Nothing,
        Spmd { kind: SpmdKind::Team, dims: INFERRED_DIMS };
    Barrier(_) => "barrier", Exactly 0, Exactly 0, Exactly 0, Orders, Nothing,
        Barrier(BarrierScope::Team);
    ShareFor { .. } => "share.for", AtLeast 1, Exactly 0, Exactly 1, Regions, Nothing,
        ShareFor { schedule: Schedule::Static, chunked: false, nowait: false };
    Single { .. } => "single", AtLeast 0, AtLeast 0, Exactly 1, Regions, Stated,
        Single { nowait: false, copy: false };
    Critical(_) => "critical", Exactly 0, AtLeast 0, Exactly 1, Regions, Stated,
        Critical(Box::default());
    Yield => "yield", AtLeast 0, Exactly 0, Exactly 0, Terminates, Nothing, Yield;
    Repeat => "repeat", AtLeast 1, Exactly 0, Exactly 0, Terminates, Nothing, Repeat;
    Return => "return", AtLeast 0, Exactly 0, Exactly 0, Terminates, Nothing, Return;
    Unreachable => "unreachable", Exactly 0, Exactly 0, Exactly 0, Terminates, Nothing, Unreachable;
    Resume => "resume", Exactly 1, Exactly 0, Exactly 0, Terminates, Nothing, Resume;
    Foreign(_) => "foreign", AtLeast 0, AtLeast 0, AtLeast 0, Unknown, Stated, Foreign(0);
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
        match self {
            OpKind::Binary(op) => op.row().effects,
            _ => self.row().effects,
        }
    }
}
