//! Late shadows: blocks whose shadows the forward sweep has no use for. The return sweep makes them, zeroed, when
//! it comes to the region that the block was allocated in, and frees them where it undoes the allocation: so
//! that they are not memory that every step of a program holds from one sweep to the other.
//!
//! The forward sweep uses a shadow where addresses are written to it, read from it or handed on: it goes without
//! where all uses of a block are accesses to numbers, copies of numbers, comparisons and frees.

use super::Facts;
use super::make::MakeFacts;
use crate::alloc;
use crate::variant::Mode;
use gradus_analysis::CopyKind;
use gradus_ir::known::{AllocationSize, Known, MemoryFn};
use gradus_ir::{Body, Op, OpKind, Unit, Use, Value};
use std::collections::HashSet;

impl MakeFacts<'_> {
    /// Fills in the blocks whose shadows are made late, and the addresses in them.
    pub(super) fn late_shadows(&self, facts: &mut Facts<'_>) {
        if self.variant.mode == Mode::Forward {
            return;
        }
        let body = facts.body;
        for op in body.walk(body.root()) {
            let Some(block) = self.sized_block(facts, op) else {
                continue;
            };
            if let Some(addresses) = self.addresses_in(facts, block) {
                facts.late.extend(addresses);
            }
        }
    }

    /// The block with a shadow that an allocation of known size gives, where nobody else is handed it.
    fn sized_block(&self, facts: &Facts<'_>, op: Op) -> Option<Value> {
        let Some(Known::Memory(function)) = self.known(facts.body, op) else {
            return None;
        };
        if !matches!(facts.body.kind(op), OpKind::Call(_)) {
            return None;
        }
        let allocation = function.allocation()?;
        let sized = allocation.replaces.is_none() && allocation.size != AllocationSize::Unknown;
        let block = facts.given(op)?;
        let own = function != MemoryFn::TapePush && !facts.is_left(op);
        (sized && own && facts.has_shadow(block)).then_some(block)
    }

    /// A block and all addresses in it; `None` where the forward sweep needs one of their shadows.
    pub(super) fn addresses_in(&self, facts: &Facts<'_>, block: Value) -> Option<HashSet<Value>> {
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
                    _ if self.is_of_numbers(facts, at) => {}
                    _ => return None,
                }
            }
        }
        Some(found)
    }

    /// Whether a use of an address is none of its shadow in the forward sweep.
    fn is_of_numbers(&self, facts: &Facts<'_>, at: Use) -> bool {
        let body: &Body = facts.body;
        let holds_pointer = |value: Value| facts.holds_pointer(self.unit, value);
        match body.kind(at.op) {
            OpKind::Load(access) => access.is_plain() && !holds_pointer(body.result(at.op)),
            OpKind::Store(access) => {
                access.is_plain() && at.index == 1 && !holds_pointer(body.operand(at.op, 0))
            }
            OpKind::ICmp(_) => true,
            OpKind::Call(_) => match self.known(body, at.op) {
                Some(Known::Memory(MemoryFn::Free | MemoryFn::Delete | MemoryFn::RustDealloc)) => {
                    at.index == 1
                }
                Some(Known::Memory(MemoryFn::MemsetIntrinsic)) => {
                    !facts.fills_pointers(at.op)
                        && !matches!(facts.copy_kind(at.op), CopyKind::Unknown)
                }
                Some(Known::Memory(MemoryFn::MemcpyIntrinsic | MemoryFn::MemmoveIntrinsic)) => {
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

impl Facts<'_> {
    /// Whether the shadow of an address is there in the return sweep only.
    pub fn is_shadow_late(&self, address: Value) -> bool {
        self.late.contains(&address)
    }
    /// Of a block whose shadow is made late, the numbers whose product is its size.
    pub fn late_size(&self, unit: &Unit, block: Value) -> Option<Vec<Value>> {
        let op = self.body.def_op(block)?;
        if !self.is_shadow_late(block) || !matches!(self.body.kind(op), OpKind::Call(_)) {
            return None;
        }
        let callee = unit.callee(self.body, op).and_then(|f| unit.known(f));
        let Some(Known::Memory(function)) = callee else {
            return None;
        };
        let args = unit.call_args(self.body, op);
        alloc::size_factors(function.allocation()?.size, &args)
    }
}
