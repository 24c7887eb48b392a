//! Places in memory of the block as a GPU finds them.
//!
//! Addresses of shared memory have 32 bits there: `p[i]` with an unsigned `i` of 32 bits that has wrapped round
//! zero (`p[~k]`) is an element before `p`. Here addresses have 64 bits, and the place would be far behind it.
//! The block's memory is much smaller than 2³¹ bytes, so that the distance from one place in it to another is the
//! signed number that the lower half of the index is. An index that cannot have its highest bit set stays as it is:
//! its distance is the same.

use crate::host::Host;
use gradus_ir::known::{SHARED, SHARED_DYNAMIC};
use llvm_sys::prelude::*;

unsafe extern "C" {
    fn gr_wrap_shared_addresses(function: LLVMValueRef);
}

impl Host {
    /// Has indices into memory of the block wrap as they do on a GPU.
    pub(crate) fn wrap_shared_addresses(&self) {
        let is_shared = |name: &str| name.starts_with(SHARED) || name.starts_with(SHARED_DYNAMIC);
        for name in self.functions_that_use(&is_shared) {
            if let Some(f) = self.function(&name) {
                unsafe { gr_wrap_shared_addresses(f) };
            }
        }
    }
}
