//! Private memory of a rank that iterations may reach indirectly.
//!
//! Iterations of one rank that become iterations of a parallel loop share the rank's memory. Slots accessed by
//! name are handled in [`crate::private_memory`]. Handled here are other paths: heap blocks allocated by every rank, and
//! memory behind addresses stored in a rank's slots.

use crate::reach::Reach;
use gradus_ir::externals::ExternalFn;
use gradus_ir::{Body, Op, OpKind, Region, Unit, Use, Value};
use std::collections::HashSet;

/// Returns the ops of a team's region that every rank executes: outside of worksharing loops, `single` regions
/// and other strands.
pub(crate) fn rank_ops(body: &Body, team: Region) -> Vec<Op> {
    let mut found = Vec::new();
    let mut open = vec![team];
    while let Some(region) = open.pop() {
        for op in body.ops_in(region) {
            found.push(op);
            let other = matches!(
                body.kind(op),
                OpKind::Single { .. } | OpKind::ShareFor { .. }
            );
            if !other && !body.kind(op).is_strand_op() {
                open.extend(body.op_regions(op));
            }
        }
    }
    found
}

/// A rank and the iterations of one of its worksharing loops.
pub(crate) struct RankAndLoop<'a> {
    pub unit: &'a Unit,
    pub body: &'a Body,
    /// The ops that the rank executes.
    pub level: HashSet<Op>,
    /// The allocations in `level` that are not privatised to iterations.
    pub slots: HashSet<Op>,
    /// The ops of an iteration.
    pub inside: HashSet<Op>,
}

/// The uses of an address.
#[derive(Default)]
struct AddressUses {
    /// Iterations may modify the memory at the address.
    changed: bool,
    /// The address is stored in the rank's private memory, or may be captured by a callee of the rank.
    stored_privately: bool,
    /// The address escapes from the analysis.
    escapes: bool,
}

impl RankAndLoop<'_> {
    /// Returns true if iterations may modify private memory of the rank without naming a slot.
    pub fn may_modify_private_memory(&self, reach: &Reach) -> bool {
        let mut kept = false;
        for &op in &self.level {
            let block = self.is_allocating_call(op, reach);
            if !block && !self.slots.contains(&op) {
                continue;
            }
            let Some(&address) = self.body.results(op).first() else {
                kept |= block;
                continue;
            };
            let ways = self.uses_of_address(address);
            if ways.escapes || block && ways.changed {
                return true;
            }
            kept |= ways.stored_privately;
        }
        kept && self.inside.iter().any(|op| self.modifies_through_slot(*op))
    }

    /// Returns true if an op of the rank allocates fresh memory.
    fn is_allocating_call(&self, op: Op, reach: &Reach) -> bool {
        if self.body.kind(op).call_info().is_none() {
            return false;
        }
        let Some(callee) = self.unit.callee(self.body, op) else {
            return false;
        };
        is_allocation(self.unit, self.body, op) || reach.allocating.contains(&callee)
    }

    fn uses_of_address(&self, address: Value) -> AddressUses {
        let mut ways = AddressUses::default();
        let mut open = vec![address];
        let mut known = HashSet::from([address]);
        while let Some(value) = open.pop() {
            for used in self.body.uses(value) {
                if let Some(further) = self.record_use(used, &mut ways)
                    && known.insert(further)
                {
                    open.push(further);
                }
            }
        }
        ways
    }

    /// Records one use of an address; returns the derived address, if any.
    fn record_use(&self, used: Use, ways: &mut AddressUses) -> Option<Value> {
        let (body, op) = (self.body, used.op);
        let inside = self.inside.contains(&op);
        match body.kind(op) {
            OpKind::Addr { .. } if used.index == 0 => return Some(body.result(op)),
            OpKind::Load(_) | OpKind::ICmp(_) => {}
            OpKind::Store(_) if used.index == 1 => ways.changed |= inside,
            OpKind::Store(_) => match self.is_slot(body.operand(op, 1)) {
                true => ways.stored_privately = true,
                false => ways.escapes = true,
            },
            OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => ways.changed |= inside,
            OpKind::Call(_) | OpKind::Invoke(_) => {
                let known = self.unit.known_callee(body, op);
                let plain = match known {
                    Some(ExternalFn::Marker(_)) => return None,
                    Some(ExternalFn::Memory(m)) => m.allocation().is_none(),
                    _ => false,
                };
                ways.changed |= inside;
                ways.stored_privately |= !plain && self.level.contains(&op);
            }
            // A use in another strand concerns that strand's own rank.
            _ if !inside && !self.level.contains(&op) => {}
            _ => ways.escapes = true,
        }
        None
    }

    /// Returns true if the address is within a slot.
    fn is_slot(&self, address: Value) -> bool {
        let base = self.body.def_op(self.body.address_base(address));
        base.is_some_and(|op| self.slots.contains(&op))
    }

    /// Returns true if an op of an iteration may modify memory behind an address stored in a slot.
    fn modifies_through_slot(&self, op: Op) -> bool {
        let body = self.body;
        match body.kind(op) {
            OpKind::Store(_) => self.may_be_loaded_from_slot(body.operand(op, 1)),
            OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => {
                self.may_be_loaded_from_slot(body.operand(op, 0))
            }
            OpKind::Call(_) | OpKind::Invoke(_) => {
                let args = self.unit.call_args(body, op);
                let mut pointers = args
                    .into_iter()
                    .filter(|a| self.unit.types.is_ptr(body.ty(*a)));
                pointers.any(|a| self.may_be_loaded_from_slot(a))
            }
            _ => false,
        }
    }

    fn may_be_loaded_from_slot(&self, address: Value) -> bool {
        let mut at = address;
        while let Some(op) = self.body.def_op(at) {
            match self.body.kind(op) {
                OpKind::Addr { .. } => at = self.body.operand(op, 0),
                OpKind::Load(_) if self.is_slot(self.body.operand(op, 0)) => return true,
                OpKind::Load(_) => at = self.body.operand(op, 0),
                OpKind::Alloca(_) => return false,
                _ => return true,
            }
        }
        // A parameter of a loop or branch inside of the team may be any address.
        self.body.as_const(at).is_none()
            && self
                .body
                .region_of(at)
                .is_some_and(|home| home != self.body.root())
    }
}

/// Returns true if `op` allocates heap memory.
pub(crate) fn is_allocation(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = unit.known_callee(body, op);
    matches!(known, Some(ExternalFn::Memory(id)) if id.allocation().is_some())
}
