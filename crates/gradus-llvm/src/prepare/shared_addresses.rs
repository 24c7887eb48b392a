//! Addresses in shared memory, with the 32-bit arithmetic of a GPU.
//!
//! Shared memory has 32-bit addresses on a GPU. An unsigned 32-bit index that wrapped around zero (`p[~k]`)
//! selects an element before `p`. On the host addresses have 64 bits, and the element would be far after
//! `p`. The shared memory of a block is much smaller than 2³¹ bytes. The distance between two of its
//! addresses is therefore the signed value of the index's lower half. An index without its highest bit set
//! stays unchanged: its distance is equal. Constant distances are wrapped as a whole, in bytes.
//!
//! The pass runs before any pass that uses distances of addresses for alias analysis. Such a pass would
//! conclude from the 64-bit distance that an access does not touch the element to which the index wraps.
//!
//! Note [Shared parameters]. A GPU compiler uses 32-bit addresses for every pointer that provably points to
//! shared memory, and inlines short device functions. Functions that stay calls are followed through the
//! module: a parameter counts as shared if each call passes shared memory. If only some calls pass shared
//! memory, the function is copied for these calls. Functions that are called through pointers or from
//! another source keep 64-bit addresses, as on a GPU, because an index that wraps leads out of all memory
//! and is an illegal access.

use crate::host::module::Host;
use llvm_sys::prelude::*;

unsafe extern "C" {
    fn gr_wrap_shared_addresses(module: LLVMModuleRef);
}

impl Host {
    /// Makes indices into shared memory wrap as on a GPU.
    pub(crate) fn wrap_shared_addresses(&self) {
        // SAFETY: the host owns the module, and no caller holds a value of it across the call.
        unsafe { gr_wrap_shared_addresses(self.module) };
    }
}
