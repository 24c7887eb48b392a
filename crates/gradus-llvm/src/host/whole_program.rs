//! A module that is a whole Rust program: symbols of other code, and targets of indirect calls.
//!
//! Rust symbols that no code outside of the module uses become internal. rustc does not optimise the module: a pipeline
//! of LLVM (`EarlyRust`) drops unused code and simplifies the rest before the passes.
//! Requests are in functions of their own; the functions that take addresses for indirect calls (virtual tables,
//! function pointers) may then be outside of the import. A private constant lists such targets during the import.
use crate::host::ffi::*;
use crate::host::module::Host;
use llvm_sys::LLVMLinkage;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// The beginnings of mangled Rust names.
const MANGLED: [&str; 2] = ["_R", "_ZN"];

impl Host {
    /// Makes the module a whole program: `used` are the Rust symbols that other code uses, and all others become
    /// internal. The pipeline `EarlyRust` then drops unused code.
    pub fn make_whole_program(&mut self, used: &[String]) {
        self.whole_program = true;
        self.close_definitions(used, |_, name| {
            MANGLED.iter().any(|start| name.starts_with(start))
        });
    }

    /// Adds a private constant with the addresses of `functions`; `None` without functions.
    pub(crate) fn add_address_table(&mut self, functions: &[LLVMValueRef]) -> Option<LLVMValueRef> {
        if functions.is_empty() {
            return None;
        }
        let mut entries = functions.to_vec();
        let count = entries.len() as u64;
        unsafe {
            let pointer = LLVMPointerTypeInContext(self.ctx, 0);
            let ty = LLVMArrayType2(pointer, count);
            let name = c_string("gradus.indirect_targets");
            let table = LLVMAddGlobal(self.module, ty, name.as_ptr());
            LLVMSetInitializer(table, LLVMConstArray2(pointer, entries.as_mut_ptr(), count));
            LLVMSetLinkage(table, LLVMLinkage::LLVMPrivateLinkage);
            LLVMSetGlobalConstant(table, 1);
            Some(table)
        }
    }
}
