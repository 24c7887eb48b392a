//! The program's own functions as they were before the early pipeline.
//!
//! The early pipeline changes every function of the module, for the sake of derivatives. Code that is
//! no derivative and holds no call for one is to come out as the user's compiler would have made it:
//! such functions are copied first ([`Host::keep_originals`]), and put back when all derivatives are
//! there ([`Host::put_originals_back`]).
//!
//! Invariants: copies lie outside of the module and mention nothing in it, so that passes see what they
//! would see without them. What derivatives reach stays as the early pipeline left it: they were made of
//! that code, and what it does not do (a read whose result nobody uses) may not be there to be done any
//! more.

use crate::ffi::*;
use crate::host::Host;
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

/// The functions that a module defined at some time, and copies of them.
#[derive(Default)]
pub(crate) struct Originals {
    /// Owned; must go before the module's context does.
    copies: Option<NonNull<c_void>>,
    /// Those that are copied, in the order of the copies.
    copied: Vec<String>,
    defined: HashSet<String>,
}

impl Originals {
    /// The functions that `stays` accepts by name are not put back.
    fn leave(&mut self, stays: impl Fn(&str) -> bool) {
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
    /// Keeps a copy of every function that the module defines; those named are not put back.
    pub fn keep_originals(&mut self, but: &[String]) {
        let functions = self.functions().into_iter();
        let defined = functions.filter(|f| unsafe { LLVMIsDeclaration(*f) } == 0);
        let defined: Vec<LLVMValueRef> = defined.collect();
        let name = |f: &LLVMValueRef| unsafe { name_of(*f) };
        let copied = defined.iter().copied().filter(|f| !has_addresses(*f));
        let copied: Vec<LLVMValueRef> = copied.filter(|f| !name(f).is_empty()).collect();
        let copies = unsafe { gr_copy_apart(self.module, copied.as_ptr(), copied.len()) };
        self.originals = Originals {
            copies: NonNull::new(copies),
            copied: copied.iter().map(name).collect(),
            defined: defined.iter().map(name).collect(),
        };
        self.originals.leave(|name| but.iter().any(|b| b == name));
    }

    /// Puts the kept functions back, but for those named, those that functions reach which the module did
    /// not define then, and those that call what is gone. What was imported before is out of date
    /// afterwards.
    pub fn put_originals_back(&mut self, but: &[&str]) {
        self.touch();
        let mut originals = std::mem::take(&mut self.originals);
        if originals.copies.is_none() {
            return;
        }
        let mut new = self.defined_functions();
        new.retain(|name| !originals.defined.contains(name));
        let new: Vec<&str> = new.iter().map(String::as_str).collect();
        let reached: HashSet<String> = self.closure(&new).into_iter().collect();
        originals.leave(|name| reached.contains(name) || but.contains(&name));
        if let Some(copies) = originals.copies.take() {
            unsafe { gr_put_copies_back(self.module, copies.as_ptr()) };
        }
    }
}

/// Whether the address of one of a function's blocks is taken: such an address is of one function.
fn has_addresses(function: LLVMValueRef) -> bool {
    let mut block = unsafe { LLVMGetFirstBasicBlock(function) };
    while !block.is_null() {
        if unsafe { gr_has_block_address(block) } != 0 {
            return true;
        }
        block = unsafe { LLVMGetNextBasicBlock(block) };
    }
    false
}
