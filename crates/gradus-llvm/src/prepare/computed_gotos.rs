//! Replaces computed gotos by switches. The address of a label becomes its number in the function, a jump becomes a switch
//! on the number. A program can use the address of a label for jumps of the same function and for comparisons only, so
//! that tables of labels, also tables of distances between labels, keep their meaning.
//!
//! A body and the tables that it jumps through must change together: the rewrite comes before bodies are saved.

use crate::host::module::Host;
use llvm_sys::prelude::*;

unsafe extern "C" {
    fn gr_expand_computed_gotos(module: LLVMModuleRef);
}

impl Host {
    /// Replaces the computed gotos of all functions: differentiated functions may call any of them through pointers.
    pub fn expand_computed_gotos(&mut self) {
        // SAFETY: the module is live.
        unsafe { gr_expand_computed_gotos(self.module) };
    }
}
