//! Small arrays of the stack that loops with few runs index: before differentiation these loops are unrolled,
//! so that the arrays become values.
//!
//! What an iteration keeps in an array of its own is overwritten by the next one, so that each element would
//! be kept on the tape; a value can be computed again. LLVM unrolls by the size of the result alone, and leaves
//! bodies of a hundred instructions as loops. Here loops are unrolled further, up to limits of their own, where
//! every place that is read or written in an array is known then: only so it vanishes. What LLVM cannot do is
//! not asked for again.

use crate::host::Host;
use llvm_sys::prelude::*;

/// The most runs of a loop, the most instructions of all copies, and the most bytes of an array.
const RUNS: u64 = 8;
const INSTRUCTIONS: u64 = 2048;
const BYTES: u64 = 1024;

unsafe extern "C" {
    fn gr_ask_for_unrolling(function: LLVMValueRef, runs: u64, instructions: u64, bytes: u64);
    fn gr_stop_asking(function: LLVMValueRef);
}

impl Host {
    /// Whether the loops are unrolled before differentiation; they are unless this says no.
    pub fn unroll_local_loops(&mut self, yes: bool) {
        self.local_loops = yes;
    }
    /// Asks LLVM to unroll the loops that keep arrays of differentiated functions from being values.
    pub(crate) fn ask_for_unrolling(&self) {
        for f in self.reached_by_differentiated() {
            unsafe { gr_ask_for_unrolling(f, RUNS, INSTRUCTIONS, BYTES) };
        }
    }

    /// Takes back what was asked for and not done.
    pub(crate) fn stop_asking_for_unrolling(&self) {
        for f in self.functions() {
            unsafe { gr_stop_asking(f) };
        }
    }
}
