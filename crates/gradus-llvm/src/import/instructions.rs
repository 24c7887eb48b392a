//! Translates an LLVM instruction to the kind, flags and operands of an op.
use super::Importer;
use super::constants::strip_ptrtoint;
use crate::host::ffi::operands_of;
use crate::host::ffi::*;
use crate::opcodes::{
    INTEGER_FLAGS, binary_of_llvm, cast_of_llvm, float_predicate_of_llvm, int_predicate_of_llvm,
    order_of_llvm, rmw_of_llvm, tail_of_llvm,
};
use gradus_ir::{
    Access, AllocaInfo, AllocaStorage, Atomicity, CallInfo, Flags, LandingPad, OpKind, TailKind,
};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMOpcode, LLVMTypeKind};
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
        if let Some(op) = binary_of_llvm(opcode) {
            let flags = flags_of(inst, op.row().flags);
            return (OpKind::Binary(op), flags, operands_of(inst));
        }
        if let Some(op) = cast_of_llvm(opcode) {
            let flags = flags_of(inst, op.row().flags);
            return (OpKind::Cast(op), flags, operands_of(inst));
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
            LLVMStore => return self.store(inst),
            LLVMGetElementPtr => return self.addr(inst),
            LLVMAtomicRMW => {
                let op = rmw_of_llvm(unsafe { LLVMGetAtomicRMWBinOp(inst) });
                OpKind::AtomicRmw(op, access(inst))
            }
            LLVMAtomicCmpXchg => cmpxchg(inst),
            LLVMFence => OpKind::Fence {
                order: unsafe { order_of_llvm(LLVMGetOrdering(inst)) },
                sync_scope: unsafe { LLVMGetAtomicSyncScopeID(inst) },
            },
            LLVMCall => return self.call(inst),
            LLVMLandingPad => return (self.landing_pad(inst), Flags::NONE, Operands::new()),
            _ => self.foreign(inst),
        };
        (kind, fast_flags(inst), operands_of(inst))
    }

    /// Translates a store. The address of a function, stored as an integer (a pointer to a member function in C++), is
    /// stored as an address.
    fn store(&mut self, inst: LLVMValueRef) -> (OpKind, Flags, Operands) {
        let access = access(inst);
        let mut operands: Operands = operands_of(inst);
        if access.is_plain() {
            operands[0] = strip_ptrtoint(self.data_layout, operands[0]);
        }
        (OpKind::Store(access), Flags::NONE, operands)
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
                    tail_of_llvm(LLVMGetTailCallKind(inst))
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

/// Returns the flags of an instruction that supports the flags `supported`.
fn flags_of(inst: LLVMValueRef, supported: Flags) -> Flags {
    let rows = INTEGER_FLAGS.iter().filter(|row| supported.has(row.flag));
    let set = rows.filter(|row| unsafe { (row.get)(inst) } != 0);
    set.fold(fast_flags(inst), |all, row| all.with(row.flag))
}

fn icmp(inst: LLVMValueRef) -> (OpKind, Flags, Operands) {
    let predicate = int_predicate_of_llvm(unsafe { LLVMGetICmpPredicate(inst) });
    let flags = flags_of(inst, Flags::SAMESIGN);
    (OpKind::ICmp(predicate), flags, operands_of(inst))
}

fn fcmp(inst: LLVMValueRef) -> OpKind {
    OpKind::FCmp(float_predicate_of_llvm(unsafe {
        LLVMGetFCmpPredicate(inst)
    }))
}

/// Returns the alignment, volatility and atomicity of a memory access.
fn access(inst: LLVMValueRef) -> Access {
    unsafe {
        let atomic = LLVMIsAtomic(inst) != 0;
        Access {
            align_bytes: LLVMGetAlignment(inst),
            volatile: LLVMGetVolatile(inst) != 0,
            order: if atomic && LLVMIsAAtomicCmpXchgInst(inst).is_null() {
                order_of_llvm(LLVMGetOrdering(inst))
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
                order: order_of_llvm(LLVMGetCmpXchgSuccessOrdering(inst)),
                ..access(inst)
            },
            failure: order_of_llvm(LLVMGetCmpXchgFailureOrdering(inst)),
            weak: LLVMGetWeak(inst) != 0,
        }
    }
}
