//! Pristine copies of the program's functions, taken before the early pipeline.
//!
//! The early pipeline changes every function of the module for the sake of differentiation. A function that
//! is neither a derivative nor calls one should be compiled as the user's compiler would: it is copied
//! first ([`Host::save_originals`]), and restored after all derivatives are built
//! ([`Host::restore_originals`]).
//!
//! # Invariants
//! - Copies are outside the module and refer to nothing in it, so passes are not affected by them.
//! - Functions that derivatives reach stay as the early pipeline left them. Derivatives were built from
//!   that code, and operations that the pipeline removed (an unused load) may be invalid by then.

use crate::host::ffi::*;
use crate::host::module::Host;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::collections::HashSet;
use std::ffi::c_void;
use std::ptr::NonNull;

unsafe extern "C" {
    fn gr_copy_apart(
        module: LLVMModuleRef,
        functions: *const LLVMValueRef,
        count: usize,
    ) -> *mut c_void;
    fn gr_leave_copy(copies: *mut c_void, number: usize);
    fn gr_put_copies_back(module: LLVMModuleRef, copies: *mut c_void);
    fn gr_delete_copies(copies: *mut c_void);
    fn gr_has_block_address(block: LLVMBasicBlockRef) -> i32;
}

/// The functions that a module defined when the copies were made, and the copies.
#[derive(Default)]
pub(crate) struct Originals {
    /// Owned; must be deleted before the module's context.
    copies: Option<NonNull<c_void>>,
    /// Names of the copied functions, in the order of the copies.
    copied: Vec<String>,
    defined: HashSet<String>,
}

impl Originals {
    /// Excludes the functions accepted by `stays` from restoration.
    fn exclude(&mut self, stays: impl Fn(&str) -> bool) {
        let Some(copies) = self.copies else {
            // Not an error: no functions were copied.
            return;
        };
        for (number, name) in self.copied.iter().enumerate() {
            if stays(name) {
                unsafe { gr_leave_copy(copies.as_ptr(), number) };
            }
        }
    }
}

impl Drop for Originals {
    fn drop(&mut self) {
        if let Some(copies) = self.copies.take() {
            unsafe { gr_delete_copies(copies.as_ptr()) };
        }
    }
}

impl Host {
    /// Copies every function that the module defines; the functions in `but` are not restored.
    pub fn save_originals(&mut self, but: &[String]) {
        let functions = self.functions().into_iter();
        let defined = functions.filter(|f| unsafe { LLVMIsDeclaration(*f) } == 0);
        let defined: Vec<LLVMValueRef> = defined.collect();
        let name = |f: &LLVMValueRef| unsafe { name_of(*f) };
        let copied = defined.iter().copied().filter(|f| !has_block_addresses(*f));
        let copied: Vec<LLVMValueRef> = copied.filter(|f| !name(f).is_empty()).collect();
        let copies = unsafe { gr_copy_apart(self.module, copied.as_ptr(), copied.len()) };
        self.originals = Originals {
            copies: NonNull::new(copies),
            copied: copied.iter().map(name).collect(),
            defined: defined.iter().map(name).collect(),
        };
        self.originals.exclude(|name| but.iter().any(|b| b == name));
    }

    /// Restores the copied functions, except the functions in `but`, functions reachable from definitions
    /// that were added since, and functions that refer to deleted symbols. Earlier units are outdated
    /// afterwards.
    pub fn restore_originals(&mut self, but: &[&str]) {
        self.invalidate_units();
        let mut originals = std::mem::take(&mut self.originals);
        if originals.copies.is_none() {
            return;
        }
        let mut new = self.defined_functions();
        new.retain(|name| !originals.defined.contains(name));
        let new: Vec<&str> = new.iter().map(String::as_str).collect();
        let reached: HashSet<String> = self.closure(&new).into_iter().collect();
        originals.exclude(|name| reached.contains(name) || but.contains(&name));
        if let Some(copies) = originals.copies.take() {
            unsafe { gr_put_copies_back(self.module, copies.as_ptr()) };
        }
    }
}

/// Returns whether the address of a block of the function is taken: a block address cannot be copied.
fn has_block_addresses(function: LLVMValueRef) -> bool {
    let mut block = unsafe { LLVMGetFirstBasicBlock(function) };
    while !block.is_null() {
        if unsafe { gr_has_block_address(block) } != 0 {
            return true;
        }
        block = unsafe { LLVMGetNextBasicBlock(block) };
    }
    false
}
