//! Loads of addresses from one of several places of a structure: before import each place has a load of its own.
//!
//! Going down a search tree reads what is below a node on the left or on the right. LLVM makes one load of that, from an
//! address that is chosen; to the points-to analysis, which knows of an address one place in its structure, all words
//! of the node would then be alike. A load for each way keeps them apart. It comes behind the early
//! passes, which would put them together again.

use crate::host::Host;
use llvm_sys::prelude::*;

unsafe extern "C" {
    fn gr_part_chosen_loads(function: LLVMValueRef);
}

impl Host {
    /// Parts such loads in the functions that are differentiated.
    pub(crate) fn part_chosen_loads(&self) {
        for f in self.reached_by_differentiated() {
            unsafe { gr_part_chosen_loads(f) };
        }
    }
}
