//! Stack lifetime: allocas whose memory must outlive their frame, or their iteration.
//!
//! The reverse pass accesses memory of the forward pass. In split mode the reverse pass is another function,
//! and all allocas move to the heap. In combined mode, allocas in loops move to the heap if the body contains
//! `stackrestore`: an iteration frees such memory at its end, and a long loop would overflow the stack.

use super::Facts;
use crate::analysis::body_facts::build::MakeFacts;
use crate::variant::Mode;
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn};
use gradus_ir::{Body, Op, OpKind};

impl MakeFacts<'_> {
    /// Collects the allocas that the derivative allocates on the heap.
    pub(super) fn on_heap(&self, facts: &mut Facts<'_>) {
        let body = facts.body;
        let gives_back = |op: Op| {
            self.known(body, op) == Some(ExternalFn::Marker(CompilerIntrinsic::StackRestore))
        };
        let all = match self.variant.mode {
            Mode::Forward => return,
            Mode::Augmented | Mode::Return => true,
            Mode::Combined => false,
        };
        if all || body.walk(body.root()).any(gives_back) {
            let allocas = body.walk(body.root());
            let allocas = allocas.filter(|op| matches!(body.kind(*op), OpKind::Alloca(_)));
            facts.on_heap = allocas.filter(|op| all || is_in_loop(body, *op)).collect();
        }
    }
}

fn is_in_loop(body: &Body, op: Op) -> bool {
    let around = |op: &Op| body.parent(*op).and_then(|region| body.owner(region));
    std::iter::successors(around(&op), around)
        .any(|at| matches!(body.kind(at), OpKind::For { .. } | OpKind::Loop { .. }))
}

impl Facts<'_> {
    /// Returns true if the derivative allocates an alloca on the heap, and frees the block at the reversal of
    /// the alloca.
    pub fn is_on_heap(&self, alloca: Op) -> bool {
        self.on_heap.contains(&alloca)
    }
}
