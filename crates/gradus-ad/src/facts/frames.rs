//! Stack memory that must outlive its frame, or its iteration.
//!
//! A return sweep works on the memory of the forward sweep. Where it is another function, that lies on the
//! heap. Where both are one, arrays of a loop's iterations do, whose length is found at run time and whose
//! memory the iteration gives back at its end; on the stack a long loop would leave no room.

use super::Facts;
use super::make::MakeFacts;
use crate::variant::Mode;
use gradus_ir::known::{Known, MarkerFn};
use gradus_ir::{Body, Op, OpKind};

impl MakeFacts<'_> {
    /// Fills in the stack allocations whose memory lies on the heap in the derivative.
    pub(super) fn on_heap(&self, facts: &mut Facts<'_>) {
        let body = facts.body;
        let gives_back =
            |op: Op| self.known(body, op) == Some(Known::Marker(MarkerFn::StackRestore));
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
    /// Whether the memory of a stack allocation lies on the heap in the derivative, and is freed where the
    /// allocation is undone.
    pub fn is_on_heap(&self, alloca: Op) -> bool {
        self.on_heap.contains(&alloca)
    }
}
