//! Splits loads of pointers through a selected field address into one load per field.
//!
//! A descent in a search tree loads the left or the right child of a node. LLVM combines both into one load
//! from a selected address. Points-to analysis knows one offset per address, so the selected address would
//! merge all fields of the node. A load on each path keeps the fields apart. The split runs after the early
//! passes, which would combine the loads again.

use crate::host::module::Host;
use llvm_sys::prelude::*;

unsafe extern "C" {
    fn gr_part_chosen_loads(function: LLVMValueRef);
}

impl Host {
    /// Splits the selected pointer loads of all functions that will be differentiated.
    pub(crate) fn split_select_loads(&self) {
        for f in self.reached_by_differentiated() {
            unsafe { gr_part_chosen_loads(f) };
        }
    }
}
