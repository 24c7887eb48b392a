//! What each thread has of its own, in programs whose code may be another thread's later.
//!
//! LLVM takes the address of a thread's variable, and what functions give that a library calls constant (`errno`'s
//! address), to be one and the same all over a function. Code of a task or of a parallel loop leaves its function when
//! it is lowered: until then such an address is what a function gives of which nothing is stated.

use crate::ffi::{c_string, name_of};
use crate::host::Host;
use crate::merge::set_callee;
use crate::pipeline::attribute_kind;
use gradus_ir::known::OWN_ADDRESS;
use llvm_sys::LLVMAttributeFunctionIndex;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

const INTRINSIC: &str = "llvm.threadlocal.address.p0";
/// `memory(inaccessiblemem: readwrite)`.
const HIDDEN: u64 = 0b1100;

impl Host {
    /// Takes away what is stated of the memory of functions that `is_own` names and of those that take nothing, and of
    /// calls of them: what they give may be the calling thread's, and constant for no other one.
    pub fn forget_constancy(&mut self, is_own: &dyn Fn(&str) -> bool) {
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
                for call in calls(f) {
                    LLVMRemoveCallSiteEnumAttribute(call, index, memory);
                }
            }
        }
    }

    /// Has addresses of threads' variables come from a function of which nothing is stated.
    pub fn hide_own_addresses(&mut self) {
        unsafe {
            let found = LLVMGetNamedFunction(self.module, c_string(INTRINSIC).as_ptr());
            if !found.is_null() {
                let ty = LLVMGlobalGetValueType(found);
                let name = c_string(OWN_ADDRESS);
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
                call_instead(found, hidden);
            }
        }
    }

    /// What [`Host::hide_own_addresses`] hid is LLVM's own again.
    pub fn show_own_addresses(&mut self) {
        unsafe {
            let hidden = LLVMGetNamedFunction(self.module, c_string(OWN_ADDRESS).as_ptr());
            if hidden.is_null() {
                return;
            }
            let id = LLVMLookupIntrinsicID(INTRINSIC.as_ptr().cast(), INTRINSIC.len());
            let mut pointer = LLVMPointerTypeInContext(self.ctx, 0);
            let shown = LLVMGetIntrinsicDeclaration(self.module, id, &mut pointer, 1);
            call_instead(hidden, shown);
            LLVMDeleteFunction(hidden);
        }
    }
}

/// Has who calls one function call another one.
///
/// # Safety
/// Two functions of one type and module.
unsafe fn call_instead(before: LLVMValueRef, after: LLVMValueRef) {
    for call in unsafe { calls(before) } {
        unsafe { set_callee(call, after) };
    }
}

/// The calls of a function.
///
/// # Safety
/// A function.
unsafe fn calls(f: LLVMValueRef) -> Vec<LLVMValueRef> {
    let mut found = Vec::new();
    unsafe {
        let mut at = LLVMGetFirstUse(f);
        while !at.is_null() {
            let user = LLVMGetUser(at);
            let is_call = !LLVMIsACallInst(user).is_null() || !LLVMIsAInvokeInst(user).is_null();
            if is_call && LLVMGetCalledValue(user) == f {
                found.push(user);
            }
            at = LLVMGetNextUse(at);
        }
    }
    found
}
