//! Rewrites aligned addresses: manual rounding through integers, such as `(address + 63) & ~63` in Eigen's
//! allocator, becomes an offset from the original address before differentiation. Points-to analysis then
//! knows the target object.
//!
//! An integer keeps the provenance of its address while low bits are cleared, and while integers are added
//! that no address is part of ("the element at `(long)matrix + offset`"). After any other operation the
//! provenance is unknown, and the code stays unchanged.

use crate::host::ffi::{NO_NAME, instructions_in};
use crate::host::module::Host;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMOpcode, LLVMTypeKind};
use std::collections::HashSet;

/// The most operations between an address and the integer derived from it.
const STEPS_MAX: usize = 8;

/// The most values in the computation of an integer.
const VALUES_MAX: usize = 64;

impl Host {
    /// Rewrites rounded addresses in differentiated functions as offsets from their original addresses.
    pub(crate) fn offset_rounded_addresses(&self) {
        for f in self.reached_by_differentiated() {
            unsafe {
                for cast in inttoptr_casts(f) {
                    self.rewrite_cast(cast);
                }
            }
        }
    }

    /// Replaces an `inttoptr` of a rounded or displaced address.
    unsafe fn rewrite_cast(&self, cast: LLVMValueRef) {
        unsafe {
            let moved = LLVMGetOperand(cast, 0);
            let Some(start) = original_address(moved, STEPS_MAX) else {
                // Not an error: the integer is not derived from an address.
                return;
            };
            if opcode_of(moved) == Some(LLVMOpcode::LLVMPtrToInt)
                || LLVMTypeOf(start) != LLVMTypeOf(cast)
            {
                return;
            }
            let b = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(b, cast);
            let mut offset = emit_offset(b, moved);
            let byte = LLVMInt8TypeInContext(self.ctx);
            let rounded = LLVMBuildGEP2(b, byte, start, &mut offset, 1, NO_NAME);
            LLVMDisposeBuilder(b);
            LLVMReplaceAllUsesWith(cast, rounded);
            LLVMInstructionEraseFromParent(cast);
        }
    }
}

/// An operation on the integer of an address.
enum Step {
    /// Adds an integer without address provenance.
    Plus(LLVMValueRef),
    Minus(LLVMValueRef),
    Cleared(LLVMValueRef),
    /// Selects between two integers derived from one address.
    Either(LLVMValueRef),
    /// Forwards the integer, such as an LCSSA phi.
    Same,
}

/// Returns the address that an integer is derived from by at most `steps` operations.
unsafe fn original_address(value: LLVMValueRef, steps: usize) -> Option<LLVMValueRef> {
    unsafe {
        if opcode_of(value) == Some(LLVMOpcode::LLVMPtrToInt) {
            return Some(LLVMGetOperand(value, 0));
        }
        let (from, step) = address_step(value)?;
        let left = steps.checked_sub(1)?;
        let start = original_address(from, left)?;
        match step {
            Step::Either(other) if original_address(other, left) != Some(start) => None,
            _ => Some(start),
        }
    }
}

/// Emits the offset of an integer from its original address, at the builder's position.
unsafe fn emit_offset(b: LLVMBuilderRef, value: LLVMValueRef) -> LLVMValueRef {
    unsafe {
        let Some((from, step)) = address_step(value) else {
            return LLVMConstNull(LLVMTypeOf(value));
        };
        let offset = emit_offset(b, from);
        match step {
            Step::Same => offset,
            Step::Plus(more) => LLVMBuildAdd(b, offset, more, NO_NAME),
            Step::Minus(less) => LLVMBuildSub(b, offset, less, NO_NAME),
            Step::Cleared(mask) => {
                let rest = LLVMBuildAnd(b, from, LLVMConstNot(mask), NO_NAME);
                LLVMBuildSub(b, offset, rest, NO_NAME)
            }
            Step::Either(other) => {
                let other = emit_offset(b, other);
                LLVMBuildSelect(b, LLVMGetOperand(value, 0), offset, other, NO_NAME)
            }
        }
    }
}

/// Returns the input of an operation that rounds or displaces an integer, and the operation.
unsafe fn address_step(value: LLVMValueRef) -> Option<(LLVMValueRef, Step)> {
    unsafe {
        let opcode = opcode_of(value)?;
        if LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMTypeKind::LLVMIntegerTypeKind
            || LLVMGetIntTypeWidth(LLVMTypeOf(value)) != 64
        {
            return None;
        }
        let operand = |index| LLVMGetOperand(value, index);
        match opcode {
            LLVMOpcode::LLVMAdd if has_no_provenance(operand(1)) => {
                Some((operand(0), Step::Plus(operand(1))))
            }
            LLVMOpcode::LLVMAdd if has_no_provenance(operand(0)) => {
                Some((operand(1), Step::Plus(operand(0))))
            }
            LLVMOpcode::LLVMSub if has_no_provenance(operand(1)) => {
                Some((operand(0), Step::Minus(operand(1))))
            }
            LLVMOpcode::LLVMAnd if !LLVMIsAConstantInt(operand(1)).is_null() => {
                let low = !LLVMConstIntGetZExtValue(operand(1));
                let is_mask = low & low.wrapping_add(1) == 0 && low < 1 << 32;
                is_mask.then(|| (operand(0), Step::Cleared(operand(1))))
            }
            LLVMOpcode::LLVMSelect => Some((operand(1), Step::Either(operand(2)))),
            LLVMOpcode::LLVMPHI if LLVMCountIncoming(value) == 1 => {
                Some((LLVMGetIncomingValue(value, 0), Step::Same))
            }
            _ => None,
        }
    }
}

/// Returns whether an integer is computed from constants, and from loads, calls and arguments of at most 32
/// bits. Such values are too short for an address, so the distance of two objects is excluded.
unsafe fn has_no_provenance(value: LLVMValueRef) -> bool {
    let (mut open, mut seen) = (vec![value], HashSet::from([value]));
    while let Some(value) = open.pop() {
        unsafe {
            if !LLVMIsAConstantInt(value).is_null() {
                continue;
            }
            let ty = LLVMTypeOf(value);
            let is_integer = LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMIntegerTypeKind;
            let made = opcode_of(value).is_some_and(is_integer_computation);
            if !is_integer || seen.len() > VALUES_MAX {
                return false;
            }
            if !made {
                let is_short = LLVMGetIntTypeWidth(ty) <= 32;
                let other = opcode_of(value).is_none_or(is_load_or_call);
                if is_short && other {
                    continue;
                }
                return false;
            }
            let first = u32::from(opcode_of(value) == Some(LLVMOpcode::LLVMSelect));
            let count = u32::try_from(LLVMGetNumOperands(value)).unwrap_or(0);
            let operands = (first..count).map(|index| LLVMGetOperand(value, index));
            open.extend(operands.filter(|operand| seen.insert(*operand)));
        }
    }
    true
}

/// Returns whether an instruction computes an integer from its integer operands.
fn is_integer_computation(opcode: LLVMOpcode) -> bool {
    use LLVMOpcode::*;
    let sums = matches!(opcode, LLVMAdd | LLVMSub | LLVMMul | LLVMShl | LLVMLShr);
    let bits = matches!(opcode, LLVMAShr | LLVMAnd | LLVMOr | LLVMXor);
    let parts = matches!(opcode, LLVMUDiv | LLVMSDiv | LLVMURem | LLVMSRem);
    let others = matches!(
        opcode,
        LLVMZExt | LLVMSExt | LLVMTrunc | LLVMPHI | LLVMSelect | LLVMFreeze
    );
    sums || bits || parts || others
}

/// Returns whether an instruction's result is a source: a load or a call.
fn is_load_or_call(opcode: LLVMOpcode) -> bool {
    matches!(opcode, LLVMOpcode::LLVMLoad | LLVMOpcode::LLVMCall)
}

/// Returns the opcode of an instruction; `None` for other values.
unsafe fn opcode_of(value: LLVMValueRef) -> Option<LLVMOpcode> {
    unsafe {
        let is_instruction = !LLVMIsAInstruction(value).is_null();
        is_instruction.then(|| LLVMGetInstructionOpcode(value))
    }
}

/// Returns the `inttoptr` casts of a function.
unsafe fn inttoptr_casts(f: LLVMValueRef) -> Vec<LLVMValueRef> {
    let becomes_one = |inst: &LLVMValueRef| unsafe {
        let alone = LLVMGetTypeKind(LLVMTypeOf(*inst)) == LLVMTypeKind::LLVMPointerTypeKind;
        LLVMGetInstructionOpcode(*inst) == LLVMOpcode::LLVMIntToPtr && alone
    };
    instructions_in(f).filter(becomes_one).collect()
}
