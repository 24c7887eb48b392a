//! Hides thread-local addresses from LLVM in programs whose code may move to another thread.
//!
//! LLVM assumes that the address of a thread-local variable, and the result of a `memory(none)` library
//! function (`errno`'s address), is invariant within a function. The code of a task or a parallel loop
//! leaves its function when it is lowered. Until then such an address is the result of a function without
//! attributes that permit merging.

use crate::host::attributes::attribute_kind;
use crate::host::calls::{calls_to, set_callee};
use crate::host::ffi::{c_string, name_of};
use crate::host::module::Host;
use gradus_ir::externals::THREAD_LOCAL_ADDRESS;
use llvm_sys::LLVMAttributeFunctionIndex;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

const INTRINSIC: &str = "llvm.threadlocal.address.p0";
/// `memory(inaccessiblemem: readwrite)`.
const HIDDEN: u64 = 0b1100;

impl Host {
    /// Drops the `memory` attributes of functions that `is_own` accepts, of functions without parameters,
    /// and of calls of both: the result may depend on the calling thread.
    pub fn drop_memory_attributes(&mut self, is_own: &dyn Fn(&str) -> bool) {
        let memory = attribute_kind("memory");
        let own = |f: &LLVMValueRef| unsafe {
            let name = name_of(*f);
            let takes_nothing = LLVMCountParams(*f) == 0 && !name.starts_with("llvm.");
            takes_nothing || is_own(&name)
        };
        for f in self.functions().into_iter().filter(own) {
            let index = LLVMAttributeFunctionIndex;
            unsafe {
                LLVMRemoveEnumAttributeAtIndex(f, index, memory);
                for call in calls_to(f) {
                    LLVMRemoveCallSiteEnumAttribute(call, index, memory);
                }
            }
        }
    }

    /// Replaces the thread-local address intrinsic by an opaque function.
    pub fn hide_own_addresses(&mut self) {
        unsafe {
            let found = LLVMGetNamedFunction(self.module, c_string(INTRINSIC).as_ptr());
            if !found.is_null() {
                let ty = LLVMGlobalGetValueType(found);
                let name = c_string(THREAD_LOCAL_ADDRESS);
                let there = LLVMGetNamedFunction(self.module, name.as_ptr());
                let hidden = match there.is_null() {
                    true => LLVMAddFunction(self.module, name.as_ptr(), ty),
                    false => there,
                };
                for (name, value) in [("memory", HIDDEN), ("nounwind", 0), ("willreturn", 0)] {
                    let kind = attribute_kind(name);
                    let attribute = LLVMCreateEnumAttribute(self.ctx, kind, value);
                    LLVMAddAttributeAtIndex(hidden, LLVMAttributeFunctionIndex, attribute);
                }
                redirect_calls(found, hidden);
            }
        }
    }

    /// Undoes [`Host::hide_own_addresses`].
    pub fn expose_thread_local_addresses(&mut self) {
        unsafe {
            let hidden = LLVMGetNamedFunction(self.module, c_string(THREAD_LOCAL_ADDRESS).as_ptr());
            if hidden.is_null() {
                return;
            }
            let id = LLVMLookupIntrinsicID(INTRINSIC.as_ptr().cast(), INTRINSIC.len());
            let mut pointer = LLVMPointerTypeInContext(self.ctx, 0);
            let shown = LLVMGetIntrinsicDeclaration(self.module, id, &mut pointer, 1);
            redirect_calls(hidden, shown);
            LLVMDeleteFunction(hidden);
        }
    }
}

/// Replaces the callee of all calls of `before`.
///
/// # Safety
/// Two functions of one type and module.
unsafe fn redirect_calls(before: LLVMValueRef, after: LLVMValueRef) {
    for call in unsafe { calls_to(before) } {
        unsafe { set_callee(call, after) };
    }
}
