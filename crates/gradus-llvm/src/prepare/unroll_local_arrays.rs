//! Unrolls loops of small trip counts that index small stack arrays, before differentiation, so that SROA
//! promotes the arrays to values.
//!
//! The next iteration overwrites an iteration's elements of a private array, so each element would be saved
//! on the tape; a promoted value can be recomputed. LLVM limits unrolling by code size only, and leaves
//! loops with bodies of a hundred instructions. The pass unrolls further, up to separate limits, but only
//! if all accesses to an array become constant; otherwise SROA could not promote it. A request that LLVM
//! does not satisfy is removed and not repeated.

use crate::host::module::Host;
use llvm_sys::prelude::*;

/// The largest trip count of a loop, the most instructions of all copies, and the most bytes of an array.
const TRIP_MAX: u64 = 8;
const INSTRUCTIONS_MAX: u64 = 2048;
const ARRAY_BYTES_MAX: u64 = 1024;

unsafe extern "C" {
    fn gr_ask_for_unrolling(function: LLVMValueRef, runs: u64, instructions: u64, bytes: u64);
    fn gr_stop_asking(function: LLVMValueRef);
}

impl Host {
    /// Enables or disables the unrolling; enabled by default.
    pub fn unroll_local_loops(&mut self, yes: bool) {
        self.local_loops = yes;
    }
    /// Requests unrolling of the loops that prevent promotion of arrays in differentiated functions.
    pub(crate) fn request_unrolling(&self) {
        for f in self.reached_by_differentiated() {
            unsafe { gr_ask_for_unrolling(f, TRIP_MAX, INSTRUCTIONS_MAX, ARRAY_BYTES_MAX) };
        }
    }

    /// Removes the requests that LLVM did not satisfy.
    pub(crate) fn remove_unroll_requests(&self) {
        for f in self.functions() {
            unsafe { gr_stop_asking(f) };
        }
    }
}
