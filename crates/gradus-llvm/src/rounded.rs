//! Addresses that are rounded to a boundary, as allocators of aligned memory do by hand (Eigen's, for one):
//! `(address + 63) & ~63` through integers is, before differentiation, the address and an offset from it. So it
//! is seen in which memory it stays.
//!
//! An integer is an address's own as long as constants are added to it and low bits are cleared; whatever else
//! is done with it may lead elsewhere, and is left as it is.

use crate::ffi::NO_NAME;
use crate::host::Host;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMOpcode, LLVMTypeKind};

/// The most steps from an address to what is made of it.
const STEPS: usize = 8;

impl Host {
    /// Makes rounded addresses of differentiated functions offsets from the addresses that were rounded.
    pub(crate) fn offset_rounded_addresses(&self) {
        for f in self.reached_by_differentiated() {
            unsafe {
                for cast in casts_in(f) {
                    self.offset(cast);
                }
            }
        }
    }

    /// Replaces an integer that becomes an address, where that is another one's, rounded.
    unsafe fn offset(&self, cast: LLVMValueRef) {
        unsafe {
            let mut steps = Vec::new();
            let mut at = LLVMGetOperand(cast, 0);
            while let Some((from, step)) = step_of(at) {
                steps.push((at, step));
                at = from;
                if steps.len() > STEPS {
                    return;
                }
            }
            let is_address = opcode_of(at) == Some(LLVMOpcode::LLVMPtrToInt);
            let ty = LLVMTypeOf(cast);
            if !is_address || steps.is_empty() || LLVMTypeOf(LLVMGetOperand(at, 0)) != ty {
                return;
            }
            let b = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(b, cast);
            let int = LLVMTypeOf(at);
            let mut offset = LLVMConstNull(int);
            let mut before = at;
            for (value, step) in steps.into_iter().rev() {
                offset = match step {
                    Step::Plus(more) => LLVMBuildAdd(b, offset, more, NO_NAME),
                    Step::Cleared(mask) => {
                        let rest = LLVMBuildAnd(b, before, LLVMConstNot(mask), NO_NAME);
                        LLVMBuildSub(b, offset, rest, NO_NAME)
                    }
                };
                before = value;
            }
            let byte = LLVMInt8TypeInContext(self.ctx);
            let start = LLVMGetOperand(at, 0);
            let rounded = LLVMBuildGEP2(b, byte, start, &mut offset, 1, NO_NAME);
            LLVMDisposeBuilder(b);
            LLVMReplaceAllUsesWith(cast, rounded);
            LLVMInstructionEraseFromParent(cast);
        }
    }
}

/// What is done to an integer.
enum Step {
    Plus(LLVMValueRef),
    Cleared(LLVMValueRef),
}

/// The integer to which an instruction adds a constant, or of which it clears low bits.
unsafe fn step_of(value: LLVMValueRef) -> Option<(LLVMValueRef, Step)> {
    unsafe {
        let opcode = opcode_of(value)?;
        if !matches!(opcode, LLVMOpcode::LLVMAdd | LLVMOpcode::LLVMAnd) {
            return None;
        }
        let (from, by) = (LLVMGetOperand(value, 0), LLVMGetOperand(value, 1));
        if LLVMIsAConstantInt(by).is_null() || LLVMGetIntTypeWidth(LLVMTypeOf(by)) != 64 {
            return None;
        }
        let low = !LLVMConstIntGetZExtValue(by);
        match opcode {
            LLVMOpcode::LLVMAdd => Some((from, Step::Plus(by))),
            _ => (low & low.wrapping_add(1) == 0 && low < 1 << 32)
                .then_some((from, Step::Cleared(by))),
        }
    }
}

/// The opcode of an instruction; `None` for other values.
unsafe fn opcode_of(value: LLVMValueRef) -> Option<LLVMOpcode> {
    unsafe {
        let is_instruction = !LLVMIsAInstruction(value).is_null();
        is_instruction.then(|| LLVMGetInstructionOpcode(value))
    }
}

/// The integers of a function that become addresses.
unsafe fn casts_in(f: LLVMValueRef) -> Vec<LLVMValueRef> {
    let mut found = Vec::new();
    unsafe {
        let mut block = LLVMGetFirstBasicBlock(f);
        while !block.is_null() {
            let mut inst = LLVMGetFirstInstruction(block);
            while !inst.is_null() {
                let is_cast = LLVMGetInstructionOpcode(inst) == LLVMOpcode::LLVMIntToPtr;
                let alone = LLVMGetTypeKind(LLVMTypeOf(inst)) == LLVMTypeKind::LLVMPointerTypeKind;
                if is_cast && alone {
                    found.push(inst);
                }
                inst = LLVMGetNextInstruction(inst);
            }
            block = LLVMGetNextBasicBlock(block);
        }
    }
    found
}
