//! LLVM's enumerations and GIR's counterparts: one row per pair. Import reads a table from left to right, export
//! from right to left.

use gradus_ir::{
    Atomicity, BinaryOp, CastOp, Flags, FloatPredicate, IntPredicate, RmwOp, TailKind,
};
use llvm_sys::core::*;
use llvm_sys::prelude::{LLVMBool, LLVMValueRef};
use llvm_sys::{
    LLVMAtomicOrdering, LLVMAtomicRMWBinOp, LLVMIntPredicate, LLVMOpcode, LLVMRealPredicate,
    LLVMTailCallKind,
};

/// Declares a table and its two directions. `total`: every value of LLVM's enumeration has a row.
macro_rules! table {
    (total $llvm:ident, $gir:ident, $import:ident, $export:ident: $($from:ident = $to:ident,)*) => {
        pub(crate) fn $import(value: $llvm) -> $gir {
            match value { $($llvm::$from => $gir::$to),* }
        }
        table!(export $llvm, $gir, $export: $($from = $to,)*);
    };
    (partial $llvm:ident, $gir:ident, $import:ident, $export:ident: $($from:ident = $to:ident,)*) => {
        pub(crate) fn $import(value: $llvm) -> Option<$gir> {
            match value { $($llvm::$from => Some($gir::$to),)* _ => None }
        }
        table!(export $llvm, $gir, $export: $($from = $to,)*);
    };
    (export $llvm:ident, $gir:ident, $export:ident: $($from:ident = $to:ident,)*) => {
        pub(crate) fn $export(value: $gir) -> $llvm {
            match value { $($gir::$to => $llvm::$from),* }
        }
    };
}

table! { partial LLVMOpcode, BinaryOp, binary_of_llvm, binary_to_llvm:
    LLVMAdd = Add,
    LLVMSub = Sub,
    LLVMMul = Mul,
    LLVMUDiv = UDiv,
    LLVMSDiv = SDiv,
    LLVMURem = URem,
    LLVMSRem = SRem,
    LLVMShl = Shl,
    LLVMLShr = LShr,
    LLVMAShr = AShr,
    LLVMAnd = And,
    LLVMOr = Or,
    LLVMXor = Xor,
    LLVMFAdd = FAdd,
    LLVMFSub = FSub,
    LLVMFMul = FMul,
    LLVMFDiv = FDiv,
    LLVMFRem = FRem,
}

table! { partial LLVMOpcode, CastOp, cast_of_llvm, cast_to_llvm:
    LLVMTrunc = Trunc,
    LLVMZExt = ZExt,
    LLVMSExt = SExt,
    LLVMFPTrunc = FPTrunc,
    LLVMFPExt = FPExt,
    LLVMFPToUI = FPToUI,
    LLVMFPToSI = FPToSI,
    LLVMUIToFP = UIToFP,
    LLVMSIToFP = SIToFP,
    LLVMPtrToInt = PtrToInt,
    LLVMPtrToAddr = PtrToAddr,
    LLVMIntToPtr = IntToPtr,
    LLVMBitCast = BitCast,
    LLVMAddrSpaceCast = AddrSpaceCast,
}

table! { total LLVMIntPredicate, IntPredicate, int_predicate_of_llvm, int_predicate_to_llvm:
    LLVMIntEQ = Eq,
    LLVMIntNE = Ne,
    LLVMIntUGT = Ugt,
    LLVMIntUGE = Uge,
    LLVMIntULT = Ult,
    LLVMIntULE = Ule,
    LLVMIntSGT = Sgt,
    LLVMIntSGE = Sge,
    LLVMIntSLT = Slt,
    LLVMIntSLE = Sle,
}

table! { total LLVMRealPredicate, FloatPredicate, float_predicate_of_llvm, float_predicate_to_llvm:
    LLVMRealPredicateFalse = False,
    LLVMRealOEQ = Oeq,
    LLVMRealOGT = Ogt,
    LLVMRealOGE = Oge,
    LLVMRealOLT = Olt,
    LLVMRealOLE = Ole,
    LLVMRealONE = One,
    LLVMRealORD = Ord,
    LLVMRealUNO = Uno,
    LLVMRealUEQ = Ueq,
    LLVMRealUGT = Ugt,
    LLVMRealUGE = Uge,
    LLVMRealULT = Ult,
    LLVMRealULE = Ule,
    LLVMRealUNE = Une,
    LLVMRealPredicateTrue = True,
}

table! { total LLVMAtomicRMWBinOp, RmwOp, rmw_of_llvm, rmw_to_llvm:
    LLVMAtomicRMWBinOpXchg = Xchg,
    LLVMAtomicRMWBinOpAdd = Add,
    LLVMAtomicRMWBinOpSub = Sub,
    LLVMAtomicRMWBinOpAnd = And,
    LLVMAtomicRMWBinOpNand = Nand,
    LLVMAtomicRMWBinOpOr = Or,
    LLVMAtomicRMWBinOpXor = Xor,
    LLVMAtomicRMWBinOpMax = Max,
    LLVMAtomicRMWBinOpMin = Min,
    LLVMAtomicRMWBinOpUMax = UMax,
    LLVMAtomicRMWBinOpUMin = UMin,
    LLVMAtomicRMWBinOpFAdd = FAdd,
    LLVMAtomicRMWBinOpFSub = FSub,
    LLVMAtomicRMWBinOpFMax = FMax,
    LLVMAtomicRMWBinOpFMin = FMin,
    LLVMAtomicRMWBinOpFMaximum = FMaximum,
    LLVMAtomicRMWBinOpFMinimum = FMinimum,
    LLVMAtomicRMWBinOpUIncWrap = UIncWrap,
    LLVMAtomicRMWBinOpUDecWrap = UDecWrap,
    LLVMAtomicRMWBinOpUSubCond = USubCond,
    LLVMAtomicRMWBinOpUSubSat = USubSat,
}

table! { total LLVMAtomicOrdering, Atomicity, order_of_llvm, order_to_llvm:
    LLVMAtomicOrderingNotAtomic = NotAtomic,
    LLVMAtomicOrderingUnordered = Unordered,
    LLVMAtomicOrderingMonotonic = Monotonic,
    LLVMAtomicOrderingAcquire = Acquire,
    LLVMAtomicOrderingRelease = Release,
    LLVMAtomicOrderingAcquireRelease = AcquireRelease,
    LLVMAtomicOrderingSequentiallyConsistent = SequentiallyConsistent,
}

table! { total LLVMTailCallKind, TailKind, tail_of_llvm, tail_to_llvm:
    LLVMTailCallKindNone = None,
    LLVMTailCallKindTail = Tail,
    LLVMTailCallKindMustTail = MustTail,
    LLVMTailCallKindNoTail = NoTail,
}

/// A flag of integer operations, with LLVM's query and LLVM's setter.
pub(crate) struct FlagAccess {
    pub flag: Flags,
    pub get: unsafe extern "C" fn(LLVMValueRef) -> LLVMBool,
    pub set: unsafe extern "C" fn(LLVMValueRef, LLVMBool),
}

macro_rules! flags {
    ($($flag:ident = $get:ident, $set:ident;)*) => {
        /// The flags of integer operations. LLVM has one query for all fast-math flags.
        pub(crate) const INTEGER_FLAGS: &[FlagAccess] = &[$(FlagAccess {
            flag: Flags::$flag,
            get: $get,
            set: $set,
        }),*];
    };
}

flags! {
    NUW = LLVMGetNUW, LLVMSetNUW;
    NSW = LLVMGetNSW, LLVMSetNSW;
    EXACT = LLVMGetExact, LLVMSetExact;
    DISJOINT = LLVMGetIsDisjoint, LLVMSetIsDisjoint;
    NNEG = LLVMGetNNeg, LLVMSetNNeg;
    SAMESIGN = LLVMGetICmpSameSign, LLVMSetICmpSameSign;
}
