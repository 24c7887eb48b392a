//! What each rank of a team has to itself: its slots, and what it comes to by them.
//!
//! Iterations that become those of a parallel loop share what was one rank's. Slots that they name are
//! [`privates`]' matter. Here it is what they may come to by other ways: blocks of the heap that every rank
//! allocates for itself, and whatever stands behind addresses that a rank keeps in its slots.
//!
//! [`privates`]: crate::privates

use crate::fold::Reach;
use gradus_ir::known::Known;
use gradus_ir::{Body, Op, OpKind, Region, Unit, Use, Value};
use std::collections::HashSet;

/// The ops of a team's region that every rank runs by itself: outside of shared loops, of regions for one
/// and of other strands.
pub(crate) fn level(body: &Body, team: Region) -> Vec<Op> {
    let mut found = Vec::new();
    let mut open = vec![team];
    while let Some(region) = open.pop() {
        for op in body.ops_in(region) {
            found.push(op);
            let other = matches!(
                body.kind(op),
                OpKind::Single { .. } | OpKind::ShareFor { .. }
            );
            if !other && !body.kind(op).begins_strands() {
                open.extend(body.op_regions(op));
            }
        }
    }
    found
}

/// A rank, and the iterations of one of its shared loops.
pub(crate) struct Rank<'a> {
    pub unit: &'a Unit,
    pub body: &'a Body,
    /// What it runs by itself.
    pub level: HashSet<Op>,
    /// The allocations among that which iterations do not get for themselves.
    pub slots: HashSet<Op>,
    /// What an iteration runs.
    pub inside: HashSet<Op>,
}

/// Where an address goes.
#[derive(Default)]
struct Ways {
    /// Iterations do more with what lies there than read it.
    changed: bool,
    /// It is kept in memory of the rank's own, or by what the rank calls.
    kept: bool,
    /// It goes on where it is not followed.
    lost: bool,
}

impl Rank<'_> {
    /// Whether iterations may change what the rank has to itself without naming its slots.
    pub fn may_be_changed(&self, reach: &Reach) -> bool {
        let mut kept = false;
        for &op in &self.level {
            let block = self.allocates(op, reach);
            if !block && !self.slots.contains(&op) {
                continue;
            }
            let Some(&address) = self.body.results(op).first() else {
                kept |= block;
                continue;
            };
            let ways = self.ways(address);
            if ways.lost || block && ways.changed {
                return true;
            }
            kept |= ways.kept;
        }
        kept && self.inside.iter().any(|op| self.goes_by_slots(*op))
    }

    /// Whether an op of the rank gives it memory that nobody else has.
    fn allocates(&self, op: Op, reach: &Reach) -> bool {
        if self.body.kind(op).call_info().is_none() {
            return false;
        }
        let Some(callee) = self.unit.callee(self.body, op) else {
            return false;
        };
        is_allocation(self.unit, self.body, op) || reach.allocating.contains(&callee)
    }

    fn ways(&self, address: Value) -> Ways {
        let mut ways = Ways::default();
        let mut open = vec![address];
        let mut known = HashSet::from([address]);
        while let Some(value) = open.pop() {
            for used in self.body.uses(value) {
                if let Some(further) = self.way(used, &mut ways)
                    && known.insert(further)
                {
                    open.push(further);
                }
            }
        }
        ways
    }

    /// What one use of an address means; gives the address that it makes of it.
    fn way(&self, used: Use, ways: &mut Ways) -> Option<Value> {
        let (body, op) = (self.body, used.op);
        let inside = self.inside.contains(&op);
        match body.kind(op) {
            OpKind::Addr { .. } if used.index == 0 => return Some(body.result(op)),
            OpKind::Load(_) | OpKind::ICmp(_) => {}
            OpKind::Store(_) if used.index == 1 => ways.changed |= inside,
            OpKind::Store(_) => match self.is_slot(body.operand(op, 1)) {
                true => ways.kept = true,
                false => ways.lost = true,
            },
            OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => ways.changed |= inside,
            OpKind::Call(_) | OpKind::Invoke(_) => {
                let known = self.unit.callee(body, op).and_then(|f| self.unit.known(f));
                let plain = match known {
                    Some(Known::Marker(_)) => return None,
                    Some(Known::Memory(m)) => m.allocation().is_none(),
                    _ => false,
                };
                ways.changed |= inside;
                ways.kept |= !plain && self.level.contains(&op);
            }
            // What another strand does with it, it does with its own rank's.
            _ if !inside && !self.level.contains(&op) => {}
            _ => ways.lost = true,
        }
        None
    }

    /// Whether an address is that of a slot, or of a part of it.
    fn is_slot(&self, address: Value) -> bool {
        let mut at = address;
        while let Some(op) = self.body.def_op(at) {
            match self.body.kind(op) {
                OpKind::Addr { .. } => at = self.body.operand(op, 0),
                _ => return self.slots.contains(&op),
            }
        }
        false
    }

    /// Whether an op of an iteration may change what lies behind an address that stands in a slot.
    fn goes_by_slots(&self, op: Op) -> bool {
        let body = self.body;
        match body.kind(op) {
            OpKind::Store(_) => self.comes_from_slots(body.operand(op, 1)),
            OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => {
                self.comes_from_slots(body.operand(op, 0))
            }
            OpKind::Call(_) | OpKind::Invoke(_) => {
                let args = self.unit.call_args(body, op);
                let mut pointers = args
                    .into_iter()
                    .filter(|a| self.unit.types.is_ptr(body.ty(*a)));
                pointers.any(|a| self.comes_from_slots(a))
            }
            _ => false,
        }
    }

    fn comes_from_slots(&self, address: Value) -> bool {
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

/// Whether an op is a call that allocates on the heap.
pub(crate) fn is_allocation(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = unit.callee(body, op).and_then(|func| unit.known(func));
    matches!(known, Some(Known::Memory(id)) if id.allocation().is_some())
}
