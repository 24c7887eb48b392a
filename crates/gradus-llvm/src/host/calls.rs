//! Call instructions of an LLVM function: the calls in its body, a call's callee, the text of called inline
//! assembly.
//!
//! Read and changed by [`crate::prepare`] and by the merge of CUDA modules.
use crate::host::ffi::{instructions_in, text_of, users_of};
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// Returns the calls in a function, in order.
///
/// # Safety
/// `f` is a live function.
pub(crate) unsafe fn calls_in(f: LLVMValueRef) -> Vec<LLVMValueRef> {
    let is_call = |inst: &LLVMValueRef| unsafe { !LLVMIsACallInst(*inst).is_null() };
    instructions_in(f).filter(is_call).collect()
}

/// Returns whether an instruction is a `call` or `invoke`.
///
/// # Safety
/// `inst` is a live value.
pub(crate) unsafe fn is_call(inst: LLVMValueRef) -> bool {
    unsafe { !LLVMIsACallInst(inst).is_null() || !LLVMIsAInvokeInst(inst).is_null() }
}

/// Returns the direct calls of a function.
///
/// # Safety
/// `f` is a live function.
pub(crate) unsafe fn calls_to(f: LLVMValueRef) -> Vec<LLVMValueRef> {
    let is_direct =
        |user: &LLVMValueRef| unsafe { is_call(*user) && LLVMGetCalledValue(*user) == f };
    users_of(f).into_iter().filter(is_direct).collect()
}

/// Sets the callee of a call to a function of the same type.
///
/// # Safety
/// `call` is a live call, and `f` a live function of its module.
pub(crate) unsafe fn set_callee(call: LLVMValueRef, f: LLVMValueRef) {
    unsafe { LLVMSetOperand(call, LLVMGetNumOperands(call) as u32 - 1, f) };
}

/// Returns the text of inline assembly.
///
/// # Safety
/// `value` is live inline assembly.
pub(crate) unsafe fn assembly(value: LLVMValueRef) -> String {
    unsafe {
        let mut len = 0;
        let start = LLVMGetInlineAsmAsmString(value, &mut len);
        text_of(start, len)
    }
}
