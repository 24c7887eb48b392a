//! Addresses in shared memory, with the 32-bit arithmetic of a GPU.
//!
//! Shared memory has 32-bit addresses on a GPU. An unsigned 32-bit index that wrapped round zero (`p[~k]`) selects
//! an element before `p`. On the host addresses have 64 bits, and the element would lie far after `p`. The shared
//! memory of a block is much smaller than 2³¹ bytes. The distance between two of its addresses is therefore the
//! signed value of the index's lower half. An index that cannot have its highest bit set stays as it is: its
//! distance is the same.

use crate::host::Host;
use gradus_ir::known::{SHARED, SHARED_DYNAMIC};
use llvm_sys::prelude::*;

unsafe extern "C" {
    fn gr_wrap_shared_addresses(function: LLVMValueRef);
}

impl Host {
    /// Makes indices into shared memory wrap as they do on a GPU.
    pub(crate) fn wrap_shared_addresses(&self) {
        let is_shared = |name: &str| name.starts_with(SHARED) || name.starts_with(SHARED_DYNAMIC);
        for name in self.functions_that_use(&is_shared) {
            if let Some(f) = self.function(&name) {
                unsafe { gr_wrap_shared_addresses(f) };
            }
        }
    }
}
