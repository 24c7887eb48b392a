//! Addresses of globals as integers: `ptrtoint (ptr @g to i64)` is a constant expression, also inside sums of constants. The
//! import has no constants of this kind; instructions with the same value replace the expressions in differentiated functions.

use crate::host::ffi::{NO_NAME, instructions_in};
use crate::host::module::Host;
use llvm_sys::LLVMOpcode;
use llvm_sys::LLVMTypeKind;
use llvm_sys::LLVMValueKind;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

impl Host {
    /// Replaces integer operands with addresses of globals by instructions, before the operand's instruction. For a phi, the
    /// instructions stand at the end of the predecessor.
    pub(crate) fn expand_integer_addresses(&self) {
        for f in self.reached_by_differentiated() {
            unsafe {
                for inst in instructions_in(f) {
                    self.expand_operands(inst);
                }
            }
        }
    }

    unsafe fn expand_operands(&self, inst: LLVMValueRef) {
        unsafe {
            let is_phi = LLVMGetInstructionOpcode(inst) == LLVMOpcode::LLVMPHI;
            for index in 0..LLVMGetNumOperands(inst) as u32 {
                let operand = LLVMGetOperand(inst, index);
                if !is_integer_expression(operand) {
                    continue;
                }
                if let Some(same) = is_phi.then(|| same_edge(inst, index)).flatten() {
                    LLVMSetOperand(inst, index, LLVMGetOperand(inst, same));
                    continue;
                }
                let before = match is_phi {
                    true => LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(inst, index)),
                    false => inst,
                };
                let b = LLVMCreateBuilderInContext(self.ctx);
                LLVMPositionBuilderBefore(b, before);
                let value = emit(b, operand);
                LLVMDisposeBuilder(b);
                LLVMSetOperand(inst, index, value);
            }
        }
    }
}

/// Returns an earlier operand of a phi from the same predecessor: a switch may have several edges to one block.
unsafe fn same_edge(phi: LLVMValueRef, index: u32) -> Option<u32> {
    unsafe {
        let block = LLVMGetIncomingBlock(phi, index);
        (0..index).find(|&earlier| LLVMGetIncomingBlock(phi, earlier) == block)
    }
}

/// Returns true for a constant expression of integer type that the import cannot read.
unsafe fn is_integer_expression(value: LLVMValueRef) -> bool {
    unsafe {
        LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMTypeKind::LLVMIntegerTypeKind
            && LLVMGetValueKind(value) == LLVMValueKind::LLVMConstantExprValueKind
            && matches!(
                LLVMGetConstOpcode(value),
                LLVMOpcode::LLVMPtrToInt
                    | LLVMOpcode::LLVMAdd
                    | LLVMOpcode::LLVMSub
                    | LLVMOpcode::LLVMXor
                    | LLVMOpcode::LLVMTrunc
            )
    }
}

/// Emits an integer expression as instructions. The builder folds instructions on constants: an instruction is built on a
/// placeholder, which the operands then replace.
unsafe fn emit(b: LLVMBuilderRef, value: LLVMValueRef) -> LLVMValueRef {
    unsafe {
        if !is_integer_expression(value) {
            return value;
        }
        let opcode = LLVMGetConstOpcode(value);
        let operands =
            (0..LLVMGetNumOperands(value) as u32).map(|index| LLVMGetOperand(value, index));
        let operands: Vec<LLVMValueRef> = operands.map(|operand| emit(b, operand)).collect();
        let placeholders: Vec<LLVMValueRef> = operands
            .iter()
            .map(|operand| {
                let ty = LLVMTypeOf(*operand);
                LLVMBuildFreeze(b, LLVMGetPoison(ty), NO_NAME)
            })
            .collect();
        let inst = match placeholders.as_slice() {
            [from] => LLVMBuildCast(b, opcode, *from, LLVMTypeOf(value), NO_NAME),
            [x, y] => LLVMBuildBinOp(b, opcode, *x, *y, NO_NAME),
            _ => unreachable!("a cast has one operand, and arithmetic has two"),
        };
        for (index, operand) in operands.into_iter().enumerate() {
            LLVMSetOperand(inst, index as u32, operand);
        }
        for placeholder in placeholders {
            LLVMInstructionEraseFromParent(placeholder);
        }
        inst
    }
}
