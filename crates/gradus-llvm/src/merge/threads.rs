//! Device functions that ask which thread they are, wait for others or use the block's memory stand in
//! their kernel: there the answers are.

use super::add_attribute;
use crate::ffi::*;
use crate::host::Host;
use crate::pipeline::attribute_kind;
use gradus_ir::known::{DEVICE, KERNEL, Known, SHARED, SHARED_DYNAMIC, lookup};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMLinkage};
use std::collections::HashSet;

/// The instructions of a function that every kernel takes in, before anything made them fewer.
const SHORT: usize = 300;

impl Host {
    /// Marks short functions of a device module to be inlined, as compilers for GPUs do: what a loop
    /// over threads calls keeps it from being vectorised.
    pub(super) unsafe fn take_in_short(&self, module: LLVMModuleRef) {
        unsafe {
            let mut f = LLVMGetFirstFunction(module);
            while !f.is_null() {
                let never = LLVMGetEnumAttributeAtIndex(
                    f,
                    LLVMAttributeFunctionIndex,
                    attribute_kind("noinline"),
                );
                let is_kernel = name_of(f).starts_with(KERNEL);
                if LLVMIsDeclaration(f) == 0 && never.is_null() && !is_kernel && is_short(f) {
                    add_attribute(self, f, "alwaysinline");
                }
                f = LLVMGetNextFunction(f);
            }
        }
    }

    /// Marks the functions that belong into their kernel to be inlined.
    pub(super) fn mark_thread_functions(&mut self) {
        let asks = |name: &str| matches!(lookup(name), Some(Known::Kernel(f)) if f.is_of_thread());
        let functions = self.functions().into_iter();
        let asked = functions.filter(|f| asks(&unsafe { name_of(*f) }));
        let shared = self.variables().into_iter().filter(|v| {
            let name = unsafe { name_of(*v) };
            name.starts_with(SHARED) || name.starts_with(SHARED_DYNAMIC)
        });
        let mut open: Vec<LLVMValueRef> = asked.chain(shared).collect();
        let mut seen: HashSet<LLVMValueRef> = open.iter().copied().collect();
        while let Some(value) = open.pop() {
            for f in unsafe { users(value) } {
                if !seen.insert(f) || unsafe { name_of(f) }.starts_with(KERNEL) {
                    continue;
                }
                unsafe {
                    let kind = attribute_kind("noinline");
                    LLVMRemoveEnumAttributeAtIndex(f, LLVMAttributeFunctionIndex, kind);
                    add_attribute(self, f, "alwaysinline");
                    if name_of(f).starts_with(DEVICE) {
                        // Nobody else can take it in.
                        LLVMSetLinkage(f, LLVMLinkage::LLVMInternalLinkage);
                    }
                }
                open.push(f);
            }
        }
    }
}

/// Whether a function has few instructions.
unsafe fn is_short(f: LLVMValueRef) -> bool {
    let mut count = 0;
    unsafe {
        let mut block = LLVMGetFirstBasicBlock(f);
        while !block.is_null() && count <= SHORT {
            let mut inst = LLVMGetFirstInstruction(block);
            while !inst.is_null() {
                count += 1;
                inst = LLVMGetNextInstruction(inst);
            }
            block = LLVMGetNextBasicBlock(block);
        }
    }
    count <= SHORT
}

/// The functions with code that mentions a value, also inside of constants.
pub(super) unsafe fn users(value: LLVMValueRef) -> Vec<LLVMValueRef> {
    let mut found = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        unsafe {
            let mut at = LLVMGetFirstUse(value);
            while !at.is_null() {
                let user = LLVMGetUser(at);
                if !LLVMIsAInstruction(user).is_null() {
                    found.push(LLVMGetBasicBlockParent(LLVMGetInstructionParent(user)));
                } else {
                    open.push(user);
                }
                at = LLVMGetNextUse(at);
            }
        }
    }
    found
}
