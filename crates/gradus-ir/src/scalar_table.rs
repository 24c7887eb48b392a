//! The tables of binary operations and conversions: one row per operation.
//!
//! A row declares the variant. Printer, parser, verifier, effects, cost models, import and export read the
//! row. To add an operation: a row here, a row in `opcodes.rs` of gradus-llvm, and the semantics in
//! `values/arith.rs` (or `values/cast.rs`) of gradus-interp.

use crate::effect_class::EffectClass;
use crate::flags::Flags;
use crate::keywords::keywords;

/// The format of the numbers that an operation takes or yields; lanes of vectors have the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFormat {
    /// Integers.
    Int,
    /// Floating-point numbers.
    Float,
    /// Pointers.
    Ptr,
    /// Any first-class type that is not an aggregate.
    Bits,
}

/// The row of a binary operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinaryRow {
    /// The format of both operands and of the result.
    pub format: NumberFormat,
    /// The effects: [`EffectClass::Traps`] if some operands are undefined behaviour.
    pub effects: EffectClass,
    /// True if exchanged operands give the same result.
    pub commutative: bool,
    /// The latency, in units of one addition.
    pub latency: u64,
    /// The flags that the operation supports.
    pub flags: Flags,
}

/// The condition on the widths of a conversion's formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WidthChange {
    Narrower,
    Wider,
    Equal,
    Any,
}

/// The row of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastRow {
    /// The format of the operand.
    pub from: NumberFormat,
    /// The format of the result.
    pub to: NumberFormat,
    /// The width of the result against the width of the operand.
    pub(crate) width: WidthChange,
    /// The flags that the conversion supports.
    pub flags: Flags,
}

const NONE: Flags = Flags::NONE;
const WRAP: Flags = Flags::NUW.with(Flags::NSW);
const EXACT: Flags = Flags::EXACT;
const DISJOINT: Flags = Flags::DISJOINT;
const FAST: Flags = Flags::FAST;
const NNEG: Flags = Flags::NNEG;
const NNEG_FAST: Flags = Flags::NNEG.with(Flags::FAST);

const COMMUTES: bool = true;
const ORDERED: bool = false;

macro_rules! binary_ops {
    ($($op:ident = $keyword:literal, $format:ident, $effects:ident, $order:expr, $latency:literal, $flags:expr;)*) => {
        keywords! {
            /// Integer and floating-point arithmetic on two operands of one type; element-wise on vectors.
            #[allow(missing_docs)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub enum BinaryOp { $($op = $keyword),* }
        }

        impl BinaryOp {
            /// Returns the operation's row.
            // table
            pub fn row(self) -> &'static BinaryRow {
                match self { $(BinaryOp::$op => {
                    const ROW: BinaryRow = BinaryRow {
                        format: NumberFormat::$format,
                        effects: EffectClass::$effects,
                        commutative: $order,
                        latency: $latency,
                        flags: $flags,
                    };
                    &ROW
                })* }
            }
        }
    };
}

binary_ops! {
    //  keyword  format effects order   latency flags
    Add  = "add",  Int,   Pure,  COMMUTES, 1,  WRAP;
    Sub  = "sub",  Int,   Pure,  ORDERED,  1,  WRAP;
    Mul  = "mul",  Int,   Pure,  COMMUTES, 1,  WRAP;
    UDiv = "udiv", Int,   Traps, ORDERED,  24, EXACT;
    SDiv = "sdiv", Int,   Traps, ORDERED,  24, EXACT;
    URem = "urem", Int,   Traps, ORDERED,  24, NONE;
    SRem = "srem", Int,   Traps, ORDERED,  24, NONE;
    Shl  = "shl",  Int,   Pure,  ORDERED,  1,  WRAP;
    LShr = "lshr", Int,   Pure,  ORDERED,  1,  EXACT;
    AShr = "ashr", Int,   Pure,  ORDERED,  1,  EXACT;
    And  = "and",  Int,   Pure,  COMMUTES, 1,  NONE;
    Or   = "or",   Int,   Pure,  COMMUTES, 1,  DISJOINT;
    Xor  = "xor",  Int,   Pure,  COMMUTES, 1,  NONE;
    FAdd = "fadd", Float, Pure,  COMMUTES, 1,  FAST;
    FSub = "fsub", Float, Pure,  ORDERED,  1,  FAST;
    FMul = "fmul", Float, Pure,  COMMUTES, 1,  FAST;
    FDiv = "fdiv", Float, Pure,  ORDERED,  8,  FAST;
    FRem = "frem", Float, Pure,  ORDERED,  24, FAST;
}

macro_rules! casts {
    ($($op:ident = $keyword:literal, $from:ident => $to:ident, $width:ident, $flags:expr;)*) => {
        keywords! {
            /// LLVM's conversions.
            #[allow(missing_docs)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub enum CastOp { $($op = $keyword),* }
        }

        impl CastOp {
            /// Returns the conversion's row.
            // table
            pub fn row(self) -> &'static CastRow {
                match self { $(CastOp::$op => {
                    const ROW: CastRow = CastRow {
                        from: NumberFormat::$from,
                        to: NumberFormat::$to,
                        width: WidthChange::$width,
                        flags: $flags,
                    };
                    &ROW
                })* }
            }
        }
    };
}

casts! {
    //  keyword                      formats         width     flags
    Trunc         = "trunc",         Int => Int,     Narrower, WRAP;
    ZExt          = "zext",          Int => Int,     Wider,    NNEG;
    SExt          = "sext",          Int => Int,     Wider,    NONE;
    FPTrunc       = "fptrunc",       Float => Float, Narrower, FAST;
    FPExt         = "fpext",         Float => Float, Wider,    FAST;
    FPToUI        = "fptoui",        Float => Int,   Any,      NONE;
    FPToSI        = "fptosi",        Float => Int,   Any,      NONE;
    UIToFP        = "uitofp",        Int => Float,   Any,      NNEG_FAST;
    SIToFP        = "sitofp",        Int => Float,   Any,      FAST;
    PtrToInt      = "ptrtoint",      Ptr => Int,     Any,      NONE;
    PtrToAddr     = "ptrtoaddr",     Ptr => Int,     Any,      NONE;
    IntToPtr      = "inttoptr",      Int => Ptr,     Any,      NONE;
    BitCast       = "bitcast",       Bits => Bits,   Equal,    NONE;
    AddrSpaceCast = "addrspacecast", Ptr => Ptr,     Any,      NONE;
}

impl BinaryOp {
    /// Returns whether the operation is a floating-point operation.
    pub fn is_float(self) -> bool {
        self.row().format == NumberFormat::Float
    }
    /// Returns whether the operation is commutative.
    pub fn is_commutative(self) -> bool {
        self.row().commutative
    }
    /// Returns whether some operands are undefined behaviour.
    pub fn may_trap(self) -> bool {
        self.row().effects == EffectClass::Traps
    }
    /// Returns whether the operation is slower than a multiplication: a division or a remainder.
    pub fn is_slow(self) -> bool {
        self.row().latency > 1
    }
}
