//! Lazy shadows: shadows of blocks that only the reverse pass requires.
//!
//! The reverse pass allocates a lazy shadow, zeroed, when it enters the region of the block's allocation, and
//! frees the shadow at the reversal of the allocation. Steps of a program therefore hold no shadow memory
//! between forward pass and reverse pass.
//!
//! The forward pass requires a shadow if addresses are written to the shadow, read from it, or escape. A
//! shadow is lazy if all uses of its block are accesses to non-pointers, copies of non-pointers, comparisons
//! and frees.

use super::BodyFacts;
use crate::analysis::body_facts::build::FactsBuilder;
use crate::emit::libc;
use crate::variant::Mode;
use gradus_analysis::CopyKind;
use gradus_ir::externals::{AllocationSize, ExternalFn, MemoryFn};
use gradus_ir::{Body, Op, OpKind, Unit, Use, Value};
use std::collections::HashSet;

impl FactsBuilder<'_> {
    /// Collects the blocks with lazy shadows and the addresses within them.
    pub(super) fn find_lazy_shadows(&self, facts: &mut BodyFacts<'_>) {
        if self.variant.mode == Mode::Forward {
            return;
        }
        let body = facts.body;
        for op in body.walk(body.root()) {
            let Some(block) = self.local_sized_block(facts, op) else {
                continue;
            };
            if let Some(addresses) = self.addresses_in(facts, block) {
                facts.lazy_shadow_addresses.extend(addresses);
            }
        }
    }

    /// Returns the block of an allocation of known size, if the block has a shadow and does not outlive the
    /// call.
    fn local_sized_block(&self, facts: &BodyFacts<'_>, op: Op) -> Option<Value> {
        let Some(ExternalFn::Memory(function)) = self.known(facts.body, op) else {
            return None;
        };
        if !matches!(facts.body.kind(op), OpKind::Call(_)) {
            return None;
        }
        let allocation = function.allocation()?;
        let sized = allocation.replaces.is_none() && allocation.size != AllocationSize::Unknown;
        let block = facts.call_result(op)?;
        let own = function != MemoryFn::TapePush && !facts.outlives_call(op);
        (sized && own && facts.has_shadow(block)).then_some(block)
    }

    /// Returns a block and all addresses within; `None` if the forward pass requires a shadow of such an
    /// address.
    pub(super) fn addresses_in(
        &self,
        facts: &BodyFacts<'_>,
        block: Value,
    ) -> Option<HashSet<Value>> {
        let body = facts.body;
        let mut found = HashSet::from([block]);
        let mut work = vec![block];
        while let Some(address) = work.pop() {
            for at in body.uses(address) {
                match body.kind(at.op) {
                    OpKind::Addr { .. } if at.index == 0 => {
                        let result = body.result(at.op);
                        if found.insert(result) {
                            work.push(result);
                        }
                    }
                    _ if self.needs_no_forward_shadow(facts, at) => {}
                    _ => return None,
                }
            }
        }
        Some(found)
    }

    /// Returns true if a use of an address does not require the shadow in the forward pass.
    fn needs_no_forward_shadow(&self, facts: &BodyFacts<'_>, at: Use) -> bool {
        let body: &Body = facts.body;
        let holds_pointer = |value: Value| facts.holds_pointer(self.unit, value);
        match body.kind(at.op) {
            OpKind::Load(access) => access.is_plain() && !holds_pointer(body.result(at.op)),
            OpKind::Store(access) => {
                access.is_plain()
                    && at.index == 1
                    && !holds_pointer(body.operand(at.op, 0))
                    && !facts.is_integer_in_words(at.op)
            }
            OpKind::ICmp(_) => true,
            OpKind::Call(_) => match self.known(body, at.op) {
                Some(ExternalFn::Memory(
                    MemoryFn::Free | MemoryFn::Delete | MemoryFn::RustDealloc,
                )) => at.index == 1,
                Some(ExternalFn::Memory(MemoryFn::MemsetIntrinsic)) => {
                    !facts.may_fill_pointers(at.op)
                        && !matches!(facts.copy_kind(at.op), CopyKind::Unknown)
                }
                Some(ExternalFn::Memory(
                    MemoryFn::MemcpyIntrinsic | MemoryFn::MemmoveIntrinsic,
                )) => {
                    matches!(
                        facts.copy_kind(at.op),
                        CopyKind::Floats(_) | CopyKind::Nothing
                    )
                }
                _ => false,
            },
            _ => false,
        }
    }
}

impl BodyFacts<'_> {
    /// Returns true if the shadow of an address exists in the reverse pass only.
    pub fn is_lazy_shadow(&self, address: Value) -> bool {
        self.lazy_shadow_addresses.contains(&address)
    }
    /// Returns the factors of the size of a block with a lazy shadow.
    pub fn lazy_shadow_size(&self, unit: &Unit, block: Value) -> Option<Vec<Value>> {
        let op = self.body.def_op(block)?;
        if !self.is_lazy_shadow(block) || !matches!(self.body.kind(op), OpKind::Call(_)) {
            return None;
        }
        let callee = unit.known_callee(self.body, op);
        let Some(ExternalFn::Memory(function)) = callee else {
            return None;
        };
        let args = unit.call_args(self.body, op);
        libc::size_factors(function.allocation()?.size, &args)
    }
}
