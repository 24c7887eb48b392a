//! What a `std::function` of libstdc++ does with what it holds, cut down to what a program asks of it.
//!
//! Each kind of callable has a manager, which copies and destroys it, but also gives its type and its address: that puts
//! the address of what a function holds, or of a type's name, where the callable itself lies, and so all that callables
//! lead to would be one piece of memory to analyses. The type and the address are asked for by `target` and `target_type`
//! alone, templates and inline. Where no call in the module does, managers leave it to copies of theirs, which are not
//! looked into: objects go to other files, which may ask.

use crate::ffi::{c_string, name_of};
use crate::host::Host;
use gradus_ir::known::QUESTION;
use llvm_sys::LLVMTypeKind::LLVMIntegerTypeKind;
use llvm_sys::LLVMValueKind::{LLVMConstantIntValueKind, LLVMFunctionValueKind};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::ffi::c_char;

unsafe extern "C" {
    fn gr_leave_to_copy(
        function: LLVMValueRef,
        name: *const c_char,
        number: u32,
        first: u64,
        second: u64,
    );
}

/// What the names of managers have in common: the member's, and the type of its first parameter.
const MANAGER: &str = "10_M_managerERSt9_Any_data";

/// The parameter that says what is to be done, and the numbers of the type and of the address.
const OPERATION: u32 = 2;
const TYPE: u64 = 0;
const ADDRESS: u64 = 1;

impl Host {
    /// Cuts them down.
    pub fn cut_managers(&mut self) {
        let is_manager = |f: &LLVMValueRef| unsafe {
            LLVMIsDeclaration(*f) == 0
                && is_like_one(LLVMGlobalGetValueType(*f))
                && name_of(*f).contains(MANAGER)
        };
        let functions = self.functions();
        let managers: Vec<LLVMValueRef> = functions.iter().copied().filter(is_manager).collect();
        let asks = |f: &LLVMValueRef| unsafe { asks_for_more(*f) };
        if managers.is_empty() || functions.iter().any(asks) {
            return;
        }
        for manager in managers {
            unsafe {
                let copy = c_string(&format!("{QUESTION}_{}", name_of(manager)));
                gr_leave_to_copy(manager, copy.as_ptr(), OPERATION, TYPE, ADDRESS);
            }
        }
    }
}

/// Whether a function's type is a manager's: two addresses, a number, and whether it worked.
unsafe fn is_like_one(ty: LLVMTypeRef) -> bool {
    unsafe {
        if LLVMCountParamTypes(ty) != OPERATION + 1 {
            return false;
        }
        let mut params = [std::ptr::null_mut(); OPERATION as usize + 1];
        LLVMGetParamTypes(ty, params.as_mut_ptr());
        LLVMGetTypeKind(params[OPERATION as usize]) == LLVMIntegerTypeKind
            && LLVMGetTypeKind(LLVMGetReturnType(ty)) == LLVMIntegerTypeKind
    }
}

/// Whether a function asks something like a manager for more than copies and destruction, or for what is not known;
/// that a manager hands on what it is asked is no such thing.
unsafe fn asks_for_more(function: LLVMValueRef) -> bool {
    unsafe {
        let mut block = LLVMGetFirstBasicBlock(function);
        while !block.is_null() {
            let mut at = LLVMGetFirstInstruction(block);
            while !at.is_null() {
                let is_call = !LLVMIsACallInst(at).is_null() || !LLVMIsAInvokeInst(at).is_null();
                if is_call && is_like_one(LLVMGetCalledFunctionType(at)) && may_ask(at) {
                    return true;
                }
                at = LLVMGetNextInstruction(at);
            }
            block = LLVMGetNextBasicBlock(block);
        }
    }
    false
}

unsafe fn may_ask(call: LLVMValueRef) -> bool {
    unsafe {
        let called = LLVMGetCalledValue(call);
        let is_direct = LLVMGetValueKind(called) == LLVMFunctionValueKind;
        let operation = LLVMGetOperand(call, OPERATION);
        if LLVMGetValueKind(operation) == LLVMConstantIntValueKind {
            let wanted = LLVMConstIntGetZExtValue(operation);
            let may_be_one = !is_direct || name_of(called).contains(MANAGER);
            return may_be_one && (wanted == TYPE || wanted == ADDRESS);
        }
        !is_direct
    }
}
