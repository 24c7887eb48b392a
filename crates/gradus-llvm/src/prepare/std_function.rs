//! Specialises the managers of libstdc++'s `std::function` to the operations that a program uses.
//!
//! Each kind of callable has a manager function, which copies and destroys the callable and also returns
//! its type and address. The latter two store the address of the callable, or of type info, to the location
//! of a callable; points-to analysis would therefore merge the memory of all callables. Only the inline
//! templates `target` and `target_type` request type and address. If no call in the module does, each
//! manager delegates both requests to an opaque copy of itself: objects may be passed to other files, which
//! may request them.

use crate::host::calls::is_call;
use crate::host::ffi::{c_string, name_of};
use crate::host::module::Host;
use gradus_ir::externals::QUERY_SYMBOL;
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

/// Common part of the names of managers: the member function, and the type of its first parameter.
const MANAGER: &str = "10_M_managerERSt9_Any_data";

/// The operation parameter, and the operation codes of the type and address requests.
const OPERATION: u32 = 2;
const TYPE: u64 = 0;
const ADDRESS: u64 = 1;

impl Host {
    /// Specialises all managers, unless the module may request a type or an address.
    pub fn specialize_std_function(&mut self) {
        let is_manager = |f: &LLVMValueRef| unsafe {
            LLVMIsDeclaration(*f) == 0
                && has_manager_type(LLVMGlobalGetValueType(*f))
                && name_of(*f).contains(MANAGER)
        };
        let functions = self.functions();
        let managers: Vec<LLVMValueRef> = functions.iter().copied().filter(is_manager).collect();
        let asks = |f: &LLVMValueRef| unsafe { may_request_target(*f) };
        if managers.is_empty() || functions.iter().any(asks) {
            return;
        }
        for manager in managers {
            unsafe {
                let copy = c_string(&format!("{QUERY_SYMBOL}_{}", name_of(manager)));
                gr_leave_to_copy(manager, copy.as_ptr(), OPERATION, TYPE, ADDRESS);
            }
        }
    }
}

/// Returns whether a function type is a manager's: two addresses, an integer operation, and a boolean
/// result.
unsafe fn has_manager_type(ty: LLVMTypeRef) -> bool {
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

/// Returns whether a function may request a type or an address from a manager, or makes an indirect manager
/// call with an unknown operation. A direct call with an unknown operation does not count, because managers
/// forward operations.
unsafe fn may_request_target(function: LLVMValueRef) -> bool {
    unsafe {
        let mut block = LLVMGetFirstBasicBlock(function);
        while !block.is_null() {
            let mut at = LLVMGetFirstInstruction(block);
            while !at.is_null() {
                let is_call = is_call(at);
                if is_call
                    && has_manager_type(LLVMGetCalledFunctionType(at))
                    && is_target_request(at)
                {
                    return true;
                }
                at = LLVMGetNextInstruction(at);
            }
            block = LLVMGetNextBasicBlock(block);
        }
    }
    false
}

unsafe fn is_target_request(call: LLVMValueRef) -> bool {
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
