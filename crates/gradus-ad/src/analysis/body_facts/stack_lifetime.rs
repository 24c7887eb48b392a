//! Stack lifetime: allocas whose memory must outlive their frame, or their iteration.
//!
//! The reverse pass accesses memory of the forward pass. In split mode the reverse pass is another function,
//! and all allocas move to the heap. In combined mode, allocas in loops move to the heap if the body contains
//! `stackrestore`: an iteration frees such memory at its end, and a long loop would overflow the stack.

use super::BodyFacts;
use crate::analysis::body_facts::build::FactsBuilder;
use crate::variant::Mode;
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn};
use gradus_ir::{Op, OpKind};

impl FactsBuilder<'_> {
    /// Collects the allocas that the derivative allocates on the heap.
    pub(super) fn find_heap_allocas(&self, facts: &mut BodyFacts<'_>) {
        let body = facts.body;
        let gives_back = |op: Op| {
            self.known(body, op) == Some(ExternalFn::Marker(CompilerIntrinsic::StackRestore))
        };
        let all = match self.variant.mode {
            Mode::Forward => return,
            Mode::Augmented | Mode::Reverse => true,
            Mode::Combined => false,
        };
        if all || body.walk(body.root()).any(gives_back) {
            let allocas = body.walk(body.root());
            let allocas = allocas.filter(|op| matches!(body.kind(*op), OpKind::Alloca(_)));
            facts.heap_allocas = allocas.filter(|op| all || body.is_in_loop(*op)).collect();
        }
    }
}

impl BodyFacts<'_> {
    /// Returns true if the derivative allocates an alloca on the heap, and frees the block at the reversal of
    /// the alloca.
    pub fn is_on_heap(&self, alloca: Op) -> bool {
        self.heap_allocas.contains(&alloca)
    }
}
