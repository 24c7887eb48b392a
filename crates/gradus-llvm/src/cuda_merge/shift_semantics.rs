//! Shift semantics of the GPU: a shift by the width or more yields 0 (or copies of the sign). Programs rely
//! on `x << (32 - n)` for `n` = 0. In LLVM such a shift is poison, and CPUs reduce the amount modulo the
//! width.

use crate::host::ffi::functions_of;
use crate::host::ffi::*;
use crate::host::module::Host;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMIntPredicate, LLVMOpcode, LLVMTypeKind};

impl Host {
    /// Gives all shifts of the device module by variable amounts the GPU's semantics.
    pub(super) fn bound_shifts(&self, module: LLVMModuleRef) {
        unsafe {
            let b = LLVMCreateBuilderInContext(self.ctx);
            for shift in variable_shifts(module) {
                bound_shift(b, shift);
            }
            LLVMDisposeBuilder(b);
        }
    }
}

/// Returns the shifts by a non-constant amount.
unsafe fn variable_shifts(module: LLVMModuleRef) -> Vec<LLVMValueRef> {
    let mut found = Vec::new();
    unsafe {
        for f in functions_of(module) {
            found.extend(instructions_in(f).filter(|inst| {
                let is_shift = matches!(
                    LLVMGetInstructionOpcode(*inst),
                    LLVMOpcode::LLVMShl | LLVMOpcode::LLVMLShr | LLVMOpcode::LLVMAShr
                );
                is_shift && LLVMIsConstant(LLVMGetOperand(*inst, 1)) == 0
            }));
        }
    }
    found
}

/// Returns an integer constant, or a vector with the constant in each element.
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

/// Selects 0 instead of the shift for a large amount; an arithmetic shift uses the largest valid amount.
unsafe fn bound_shift(b: LLVMBuilderRef, shift: LLVMValueRef) {
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
        // Replacing all uses also changed the operand of the select.
        LLVMSetOperand(result, 1, shift);
    }
}

/// Returns the element type of a vector type, otherwise the type.
unsafe fn scalar(ty: LLVMTypeRef) -> LLVMTypeRef {
    unsafe {
        match LLVMGetTypeKind(ty) {
            LLVMTypeKind::LLVMVectorTypeKind => LLVMGetElementType(ty),
            _ => ty,
        }
    }
}
