//! Addresses in shared memory, with the 32-bit arithmetic of a GPU.
//!
//! Shared memory has 32-bit addresses on a GPU. An unsigned 32-bit index that wrapped round zero (`p[~k]`) selects
//! an element before `p`. On the host addresses have 64 bits, and the element would lie far after `p`. The shared
//! memory of a block is much smaller than 2³¹ bytes. The distance between two of its addresses is therefore the
//! signed value of the index's lower half. An index that cannot have its highest bit set stays as it is: its
//! distance is the same. Constant distances are wrapped as a whole, in bytes.
//!
//! The pass runs before any pass that asks whether two addresses differ. Such a pass would conclude from the 64-bit
//! distance that an access does not touch the element that it wraps to.
//!
//! Note [Shared parameters]. A compiler for GPUs uses 32-bit addresses wherever it can tell that a pointer leads to
//! shared memory, and short device functions are inlined. Functions that stay calls are followed through the module:
//! a parameter counts as shared if each call hands in shared memory. A function of which only some calls do is copied
//! for these calls. Functions that are called through pointers or from another source keep 64-bit addresses, as
//! they do on a GPU: an index that wraps leads out of all memory there, and is an illegal access.

use crate::host::Host;
use llvm_sys::prelude::*;

unsafe extern "C" {
    fn gr_wrap_shared_addresses(module: LLVMModuleRef);
}

impl Host {
    /// Makes indices into shared memory wrap as they do on a GPU.
    pub(crate) fn wrap_shared_addresses(&self) {
        // SAFETY: the host owns the module, and nobody holds one of its values here.
        unsafe { gr_wrap_shared_addresses(self.module) };
    }
}
