//! Stack lifetime: allocas whose memory must outlive their frame, or their iteration.
//!
//! The reverse pass accesses memory of the forward pass. In split mode the reverse pass is another function,
//! and all allocas move to the heap. In combined mode, allocas in loops move to the heap if the body contains
//! `stackrestore`: an iteration frees such memory at its end, and a long loop would overflow the stack.

use super::BodyFacts;
use crate::analysis::body_facts::build::FactsBuilder;
use crate::variant::Mode;
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn};
use gradus_ir::{Body, Op, OpKind};

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
            facts.heap_allocas = allocas.filter(|op| all || is_in_loop(body, *op)).collect();
        }
    }
}

fn is_in_loop(body: &Body, op: Op) -> bool {
    let around = |op: &Op| body.parent(*op).and_then(|region| body.owner(region));
    std::iter::successors(around(&op), around)
        .any(|at| matches!(body.kind(at), OpKind::For { .. } | OpKind::Loop { .. }))
}

impl BodyFacts<'_> {
    /// Returns true if the derivative allocates an alloca on the heap, and frees the block at the reversal of
    /// the alloca.
    pub fn is_on_heap(&self, alloca: Op) -> bool {
        self.heap_allocas.contains(&alloca)
    }
}
