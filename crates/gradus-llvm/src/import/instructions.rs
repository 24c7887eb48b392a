//! Translates an LLVM instruction to the kind, flags and operands of an op.
use super::Importer;
use crate::host::ffi::operands_of;
use crate::host::ffi::*;
use gradus_ir::{
    Access, AllocaInfo, AllocaStorage, Atomicity, BinaryOp, CallInfo, CastOp, Flags,
    FloatPredicate, IntPredicate, LandingPad, OpKind, RmwOp, TailKind,
};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{
    LLVMAtomicOrdering, LLVMAtomicRMWBinOp, LLVMIntPredicate, LLVMOpcode, LLVMRealPredicate,
    LLVMTailCallKind, LLVMTypeKind,
};
use smallvec::SmallVec;

/// The operands of an instruction, as LLVM values.
pub(super) type Operands = SmallVec<[LLVMValueRef; 4]>;

/// LLVM's fast-math bits are contiguous in the unit's flags, in LLVM's order.
pub(crate) const FAST_SHIFT: u32 = 8;
const FAST_BITS: u32 = 0x7f;

unsafe extern "C" {
    fn gr_alloca_flags(alloca: LLVMValueRef) -> u32;
}

impl Importer<'_> {
    /// Returns the op of an instruction. Terminators and phis are handled by the caller.
    pub(super) fn instruction(&mut self, inst: LLVMValueRef) -> (OpKind, Flags, Operands) {
        use LLVMOpcode::*;
        let opcode = unsafe { LLVMGetInstructionOpcode(inst) };
        if let Some(op) = binary(opcode) {
            return (
                OpKind::Binary(op),
                binary_flags(inst, opcode),
                operands_of(inst),
            );
        }
        if let Some(op) = cast(opcode) {
            return (
                OpKind::Cast(op),
                cast_flags(inst, opcode),
                operands_of(inst),
            );
        }
        let kind = match opcode {
            LLVMFNeg => OpKind::FNeg,
            LLVMICmp => return icmp(inst),
            LLVMFCmp => fcmp(inst),
            LLVMSelect => OpKind::Select,
            LLVMFreeze => OpKind::Freeze,
            LLVMExtractElement => OpKind::ExtractElement,
            LLVMInsertElement => OpKind::InsertElement,
            LLVMShuffleVector => OpKind::Shuffle(shuffle_mask(inst)),
            LLVMExtractValue => OpKind::ExtractValue(indices(inst)),
            LLVMInsertValue => OpKind::InsertValue(indices(inst)),
            LLVMAlloca => OpKind::Alloca(self.alloca(inst)),
            LLVMLoad => OpKind::Load(access(inst)),
            LLVMStore => OpKind::Store(access(inst)),
            LLVMGetElementPtr => return self.addr(inst),
            LLVMAtomicRMW => match rmw(unsafe { LLVMGetAtomicRMWBinOp(inst) }) {
                Some(op) => OpKind::AtomicRmw(op, access(inst)),
                None => self.foreign(inst),
            },
            LLVMAtomicCmpXchg => cmpxchg(inst),
            LLVMFence => OpKind::Fence {
                order: unsafe { order(LLVMGetOrdering(inst)) },
                sync_scope: unsafe { LLVMGetAtomicSyncScopeID(inst) },
            },
            LLVMCall => return self.call(inst),
            LLVMLandingPad => return (self.landing_pad(inst), Flags::NONE, Operands::new()),
            _ => self.foreign(inst),
        };
        (kind, fast_flags(inst), operands_of(inst))
    }

    fn foreign(&mut self, inst: LLVMValueRef) -> OpKind {
        OpKind::Foreign(self.host.tables.instructions.number(inst))
    }

    fn alloca(&mut self, inst: LLVMValueRef) -> AllocaInfo {
        unsafe {
            AllocaInfo {
                ty: self.ty(LLVMGetAllocatedType(inst)),
                align_bytes: LLVMGetAlignment(inst),
                storage: AllocaStorage::Frame,
                inalloca: gr_alloca_flags(inst) & 1 != 0,
            }
        }
    }

    fn addr(&mut self, inst: LLVMValueRef) -> (OpKind, Flags, Operands) {
        let source = self.ty(unsafe { LLVMGetGEPSourceElementType(inst) });
        let raw = unsafe { LLVMGEPGetNoWrapFlags(inst) };
        let table = [(1, Flags::INBOUNDS), (2, Flags::NUSW), (4, Flags::NUW)];
        let set = table.iter().filter(|(bit, _)| raw & bit != 0);
        let flags = set.fold(Flags::NONE, |all, (_, flag)| all.with(*flag));
        (OpKind::Addr { source }, flags, operands_of(inst))
    }

    fn landing_pad(&mut self, inst: LLVMValueRef) -> OpKind {
        let clauses = unsafe { LLVMGetNumClauses(inst) };
        let clauses = (0..clauses)
            .map(|i| unsafe {
                let clause = LLVMGetClause(inst, i);
                let filter = LLVMGetTypeKind(LLVMTypeOf(clause)) == LLVMTypeKind::LLVMArrayTypeKind;
                (filter, self.constant(clause))
            })
            .collect();
        OpKind::LandingPad(Box::new(LandingPad {
            cleanup: unsafe { LLVMIsCleanup(inst) } != 0,
            clauses,
        }))
    }

    /// Translates a call or an invoke: `callee, argument…, bundle operand…`.
    pub(super) fn call(&mut self, inst: LLVMValueRef) -> (OpKind, Flags, Operands) {
        unsafe {
            let is_invoke = LLVMGetInstructionOpcode(inst) == LLVMOpcode::LLVMInvoke;
            let count = LLVMGetNumArgOperands(inst);
            let mut values: Operands = Operands::new();
            values.push(LLVMGetCalledValue(inst));
            values.extend((0..count).map(|i| LLVMGetArgOperand(inst, i)));
            let mut bundles = Vec::new();
            for i in 0..LLVMGetNumOperandBundles(inst) {
                let bundle = LLVMGetOperandBundleAtIndex(inst, i);
                let mut len = 0;
                let tag = LLVMGetOperandBundleTag(bundle, &mut len);
                let tag = text_of(tag, len);
                let held = LLVMGetNumOperandBundleArgs(bundle);
                values.extend((0..held).map(|j| LLVMGetOperandBundleArgAtIndex(bundle, j)));
                bundles.push((tag, held));
                LLVMDisposeOperandBundle(bundle);
            }
            let info = Box::new(CallInfo {
                signature: self.ty(LLVMGetCalledFunctionType(inst)),
                convention: LLVMGetInstructionCallConv(inst),
                tail: if is_invoke {
                    TailKind::None
                } else {
                    tail(LLVMGetTailCallKind(inst))
                },
                attrs: self.call_attributes(inst),
                bundles,
            });
            let kind = if is_invoke {
                OpKind::Invoke(info)
            } else {
                OpKind::Call(info)
            };
            (kind, fast_flags(inst), values)
        }
    }
}

fn indices(inst: LLVMValueRef) -> Box<[u32]> {
    unsafe {
        std::slice::from_raw_parts(LLVMGetIndices(inst), LLVMGetNumIndices(inst) as usize).into()
    }
}

fn shuffle_mask(inst: LLVMValueRef) -> Box<[i32]> {
    unsafe {
        (0..LLVMGetNumMaskElements(inst))
            .map(|i| LLVMGetMaskValue(inst, i))
            .collect()
    }
}

/// Returns the fast-math flags of an instruction that may carry them.
pub(super) fn fast_flags(inst: LLVMValueRef) -> Flags {
    unsafe {
        match LLVMCanValueUseFastMathFlags(inst) {
            0 => Flags::NONE,
            _ => Flags((LLVMGetFastMathFlags(inst) & FAST_BITS) << FAST_SHIFT),
        }
    }
}

fn flag(set: i32, flag: Flags) -> Flags {
    if set != 0 { flag } else { Flags::NONE }
}

fn binary_flags(inst: LLVMValueRef, opcode: LLVMOpcode) -> Flags {
    use LLVMOpcode::*;
    unsafe {
        match opcode {
            LLVMAdd | LLVMSub | LLVMMul | LLVMShl => {
                flag(LLVMGetNUW(inst), Flags::NUW).with(flag(LLVMGetNSW(inst), Flags::NSW))
            }
            LLVMUDiv | LLVMSDiv | LLVMLShr | LLVMAShr => flag(LLVMGetExact(inst), Flags::EXACT),
            LLVMOr => flag(LLVMGetIsDisjoint(inst), Flags::DISJOINT),
            _ => fast_flags(inst),
        }
    }
}

fn cast_flags(inst: LLVMValueRef, opcode: LLVMOpcode) -> Flags {
    use LLVMOpcode::*;
    unsafe {
        match opcode {
            LLVMZExt => flag(LLVMGetNNeg(inst), Flags::NNEG),
            LLVMUIToFP => flag(LLVMGetNNeg(inst), Flags::NNEG).with(fast_flags(inst)),
            LLVMTrunc => {
                flag(LLVMGetNUW(inst), Flags::NUW).with(flag(LLVMGetNSW(inst), Flags::NSW))
            }
            _ => fast_flags(inst),
        }
    }
}

fn icmp(inst: LLVMValueRef) -> (OpKind, Flags, Operands) {
    use LLVMIntPredicate::*;
    let predicate = match unsafe { LLVMGetICmpPredicate(inst) } {
        LLVMIntEQ => IntPredicate::Eq,
        LLVMIntNE => IntPredicate::Ne,
        LLVMIntUGT => IntPredicate::Ugt,
        LLVMIntUGE => IntPredicate::Uge,
        LLVMIntULT => IntPredicate::Ult,
        LLVMIntULE => IntPredicate::Ule,
        LLVMIntSGT => IntPredicate::Sgt,
        LLVMIntSGE => IntPredicate::Sge,
        LLVMIntSLT => IntPredicate::Slt,
        LLVMIntSLE => IntPredicate::Sle,
    };
    let flags = flag(unsafe { LLVMGetICmpSameSign(inst) }, Flags::SAMESIGN);
    (OpKind::ICmp(predicate), flags, operands_of(inst))
}

fn fcmp(inst: LLVMValueRef) -> OpKind {
    use LLVMRealPredicate::*;
    OpKind::FCmp(match unsafe { LLVMGetFCmpPredicate(inst) } {
        LLVMRealPredicateFalse => FloatPredicate::False,
        LLVMRealOEQ => FloatPredicate::Oeq,
        LLVMRealOGT => FloatPredicate::Ogt,
        LLVMRealOGE => FloatPredicate::Oge,
        LLVMRealOLT => FloatPredicate::Olt,
        LLVMRealOLE => FloatPredicate::Ole,
        LLVMRealONE => FloatPredicate::One,
        LLVMRealORD => FloatPredicate::Ord,
        LLVMRealUNO => FloatPredicate::Uno,
        LLVMRealUEQ => FloatPredicate::Ueq,
        LLVMRealUGT => FloatPredicate::Ugt,
        LLVMRealUGE => FloatPredicate::Uge,
        LLVMRealULT => FloatPredicate::Ult,
        LLVMRealULE => FloatPredicate::Ule,
        LLVMRealUNE => FloatPredicate::Une,
        LLVMRealPredicateTrue => FloatPredicate::True,
    })
}

/// Returns the alignment, volatility and atomicity of a memory access.
fn access(inst: LLVMValueRef) -> Access {
    unsafe {
        let atomic = LLVMIsAtomic(inst) != 0;
        Access {
            align_bytes: LLVMGetAlignment(inst),
            volatile: LLVMGetVolatile(inst) != 0,
            order: if atomic && LLVMIsAAtomicCmpXchgInst(inst).is_null() {
                order(LLVMGetOrdering(inst))
            } else {
                Atomicity::NotAtomic
            },
            sync_scope: if atomic {
                LLVMGetAtomicSyncScopeID(inst)
            } else {
                1
            },
        }
    }
}

fn cmpxchg(inst: LLVMValueRef) -> OpKind {
    unsafe {
        OpKind::CmpXchg {
            access: Access {
                order: order(LLVMGetCmpXchgSuccessOrdering(inst)),
                ..access(inst)
            },
            failure: order(LLVMGetCmpXchgFailureOrdering(inst)),
            weak: LLVMGetWeak(inst) != 0,
        }
    }
}

fn order(o: LLVMAtomicOrdering) -> Atomicity {
    use LLVMAtomicOrdering::*;
    match o {
        LLVMAtomicOrderingNotAtomic => Atomicity::NotAtomic,
        LLVMAtomicOrderingUnordered => Atomicity::Unordered,
        LLVMAtomicOrderingMonotonic => Atomicity::Monotonic,
        LLVMAtomicOrderingAcquire => Atomicity::Acquire,
        LLVMAtomicOrderingRelease => Atomicity::Release,
        LLVMAtomicOrderingAcquireRelease => Atomicity::AcquireRelease,
        LLVMAtomicOrderingSequentiallyConsistent => Atomicity::SequentiallyConsistent,
    }
}

fn tail(t: LLVMTailCallKind) -> TailKind {
    use LLVMTailCallKind::*;
    match t {
        LLVMTailCallKindNone => TailKind::None,
        LLVMTailCallKindTail => TailKind::Tail,
        LLVMTailCallKindMustTail => TailKind::MustTail,
        LLVMTailCallKindNoTail => TailKind::NoTail,
    }
}

fn binary(opcode: LLVMOpcode) -> Option<BinaryOp> {
    use LLVMOpcode::*;
    Some(match opcode {
        LLVMAdd => BinaryOp::Add,
        LLVMSub => BinaryOp::Sub,
        LLVMMul => BinaryOp::Mul,
        LLVMUDiv => BinaryOp::UDiv,
        LLVMSDiv => BinaryOp::SDiv,
        LLVMURem => BinaryOp::URem,
        LLVMSRem => BinaryOp::SRem,
        LLVMShl => BinaryOp::Shl,
        LLVMLShr => BinaryOp::LShr,
        LLVMAShr => BinaryOp::AShr,
        LLVMAnd => BinaryOp::And,
        LLVMOr => BinaryOp::Or,
        LLVMXor => BinaryOp::Xor,
        LLVMFAdd => BinaryOp::FAdd,
        LLVMFSub => BinaryOp::FSub,
        LLVMFMul => BinaryOp::FMul,
        LLVMFDiv => BinaryOp::FDiv,
        LLVMFRem => BinaryOp::FRem,
        _ => return None,
    })
}

fn cast(opcode: LLVMOpcode) -> Option<CastOp> {
    use LLVMOpcode::*;
    Some(match opcode {
        LLVMTrunc => CastOp::Trunc,
        LLVMZExt => CastOp::ZExt,
        LLVMSExt => CastOp::SExt,
        LLVMFPTrunc => CastOp::FPTrunc,
        LLVMFPExt => CastOp::FPExt,
        LLVMFPToUI => CastOp::FPToUI,
        LLVMFPToSI => CastOp::FPToSI,
        LLVMUIToFP => CastOp::UIToFP,
        LLVMSIToFP => CastOp::SIToFP,
        LLVMPtrToInt => CastOp::PtrToInt,
        LLVMPtrToAddr => CastOp::PtrToAddr,
        LLVMIntToPtr => CastOp::IntToPtr,
        LLVMBitCast => CastOp::BitCast,
        LLVMAddrSpaceCast => CastOp::AddrSpaceCast,
        _ => return None,
    })
}

fn rmw(op: LLVMAtomicRMWBinOp) -> Option<RmwOp> {
    use LLVMAtomicRMWBinOp::*;
    Some(match op {
        LLVMAtomicRMWBinOpXchg => RmwOp::Xchg,
        LLVMAtomicRMWBinOpAdd => RmwOp::Add,
        LLVMAtomicRMWBinOpSub => RmwOp::Sub,
        LLVMAtomicRMWBinOpAnd => RmwOp::And,
        LLVMAtomicRMWBinOpNand => RmwOp::Nand,
        LLVMAtomicRMWBinOpOr => RmwOp::Or,
        LLVMAtomicRMWBinOpXor => RmwOp::Xor,
        LLVMAtomicRMWBinOpMax => RmwOp::Max,
        LLVMAtomicRMWBinOpMin => RmwOp::Min,
        LLVMAtomicRMWBinOpUMax => RmwOp::UMax,
        LLVMAtomicRMWBinOpUMin => RmwOp::UMin,
        LLVMAtomicRMWBinOpFAdd => RmwOp::FAdd,
        LLVMAtomicRMWBinOpFSub => RmwOp::FSub,
        LLVMAtomicRMWBinOpFMax => RmwOp::FMax,
        LLVMAtomicRMWBinOpFMin => RmwOp::FMin,
        LLVMAtomicRMWBinOpFMaximum => RmwOp::FMaximum,
        LLVMAtomicRMWBinOpFMinimum => RmwOp::FMinimum,
        LLVMAtomicRMWBinOpUIncWrap => RmwOp::UIncWrap,
        LLVMAtomicRMWBinOpUDecWrap => RmwOp::UDecWrap,
        LLVMAtomicRMWBinOpUSubCond => RmwOp::USubCond,
        LLVMAtomicRMWBinOpUSubSat => RmwOp::USubSat,
    })
}
