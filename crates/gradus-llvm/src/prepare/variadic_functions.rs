//! Replaces variadic functions that read their arguments (`va_arg`) by functions that take the address of the arguments.
//!
//! Each direct call writes its variadic arguments to an area in the caller's frame, in slots of eight bytes, and passes
//! the address of the area. The function starts its lists without arguments in registers, so that each `va_arg` reads
//! the next slot (System V ABI for x86-64, 3.5.7). Differentiation then follows the arguments through memory. Functions
//! that pass a list to a function outside the module (`vprintf`), that read arguments with more than eight bytes of
//! alignment, or whose body may be replaced at the link stay variadic, like functions for other targets and calls by
//! address.

use crate::host::module::Host;
use llvm_sys::prelude::*;

unsafe extern "C" {
    fn gr_expand_variadic_functions(module: LLVMModuleRef);
}

impl Host {
    /// Replaces the variadic functions and their direct calls.
    pub fn expand_variadic_functions(&mut self) {
        // SAFETY: the module is live.
        unsafe { gr_expand_variadic_functions(self.module) };
    }
}
