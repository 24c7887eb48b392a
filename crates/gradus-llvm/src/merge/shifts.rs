//! Shifts by as many bits as a value has, or more: a GPU gives 0 (or copies of the sign), and programs count on
//! `x << (32 - n)` with an `n` of 0. LLVM leaves them open, and processors take the amount modulo the width.

use crate::ffi::*;
use crate::host::Host;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMIntPredicate, LLVMOpcode, LLVMTypeKind};

impl Host {
    /// Gives all shifts of the device's module, by amounts that are not known, the GPU's meaning.
    pub(super) fn bound_shifts(&self, module: LLVMModuleRef) {
        unsafe {
            let b = LLVMCreateBuilderInContext(self.ctx);
            for shift in shifts(module) {
                bound(b, shift);
            }
            LLVMDisposeBuilder(b);
        }
    }
}

/// The shifts by something that is no constant.
unsafe fn shifts(module: LLVMModuleRef) -> Vec<LLVMValueRef> {
    let mut found = Vec::new();
    unsafe {
        let mut f = LLVMGetFirstFunction(module);
        while !f.is_null() {
            found.extend(instructions_in(f).filter(|inst| {
                let is_shift = matches!(
                    LLVMGetInstructionOpcode(*inst),
                    LLVMOpcode::LLVMShl | LLVMOpcode::LLVMLShr | LLVMOpcode::LLVMAShr
                );
                is_shift && LLVMIsConstant(LLVMGetOperand(*inst, 1)) == 0
            }));
            f = LLVMGetNextFunction(f);
        }
    }
    found
}

/// The same number in each element of an integer or vector type.
unsafe fn splat(ty: LLVMTypeRef, value: u64) -> LLVMValueRef {
    unsafe {
        if LLVMGetTypeKind(ty) != LLVMTypeKind::LLVMVectorTypeKind {
            return LLVMConstInt(ty, value, 0);
        }
        let element = LLVMConstInt(LLVMGetElementType(ty), value, 0);
        let mut all = vec![element; LLVMGetVectorSize(ty) as usize];
        LLVMConstVector(all.as_mut_ptr(), all.len() as u32)
    }
}

/// Chooses 0 instead of the shift where the amount is too large; of an arithmetic one, the largest amount.
unsafe fn bound(b: LLVMBuilderRef, shift: LLVMValueRef) {
    unsafe {
        let (ty, amount) = (LLVMTypeOf(shift), LLVMGetOperand(shift, 1));
        let width = u64::from(LLVMGetIntTypeWidth(scalar(ty)));
        LLVMPositionBuilderBefore(b, shift);
        let (limit, less) = (splat(ty, width), LLVMIntPredicate::LLVMIntULT);
        let fits = LLVMBuildICmp(b, less, amount, limit, NO_NAME);
        if LLVMGetInstructionOpcode(shift) == LLVMOpcode::LLVMAShr {
            let most = splat(ty, width - 1);
            LLVMSetOperand(shift, 1, LLVMBuildSelect(b, fits, amount, most, NO_NAME));
            return;
        }
        LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(shift));
        let result = LLVMBuildSelect(b, fits, shift, LLVMConstNull(ty), NO_NAME);
        LLVMReplaceAllUsesWith(shift, result);
        // The choice used the shift too.
        LLVMSetOperand(result, 1, shift);
    }
}

/// The element of a vector type, else the type.
unsafe fn scalar(ty: LLVMTypeRef) -> LLVMTypeRef {
    unsafe {
        match LLVMGetTypeKind(ty) {
            LLVMTypeKind::LLVMVectorTypeKind => LLVMGetElementType(ty),
            _ => ty,
        }
    }
}
