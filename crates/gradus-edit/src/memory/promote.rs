//! Promotes stack slots to SSA values (mem2reg on structured regions).
//!
//! A slot qualifies if its address does not escape and every load and store covers the whole slot. A region
//! tree needs no dominance frontiers. A structured op with nested stores of a slot gets an additional result
//! for the slot; a loop also gets an additional carried value. One walk in program order then knows each
//! slot's value everywhere. Dead-code elimination removes unused results.

use crate::memory::slots;
use crate::memory::slots::{Slot, is_bitcastable};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Body, Builder, CastOp, ConstKind, Op, OpKind, Region, TypeId, Unit, Value};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Promotes all qualifying slots of a body; returns their number.
pub fn promote_slots(unit: &mut Unit, body: &mut Body) -> usize {
    let mut found = Vec::new();
    for alloca in slots::allocas(body) {
        if let Some(slot) = slots::slot(unit, body, alloca)
            && let Some(ty) = whole_type(unit, &slot)
        {
            found.push(PromotedSlot { alloca, slot, ty });
        }
    }
    if found.is_empty() {
        return 0;
    }
    let mut walk = Walk::new(body, &found);
    let mut b = Builder::new(unit, body);
    walk.run(&mut b, &found);
    for promoted in &found {
        slots::erase(body, promoted.alloca, &promoted.slot);
    }
    found.len()
}

struct PromotedSlot {
    alloca: Op,
    slot: Slot,
    ty: TypeId,
}

/// Returns the type of a slot whose loads and stores all cover the whole slot.
fn whole_type(unit: &Unit, slot: &Slot) -> Option<TypeId> {
    let ty = slot.accesses.first().map(|a| a.ty)?;
    let whole = slot
        .accesses
        .iter()
        .all(|a| a.offset == 0 && is_bitcastable(unit, a.ty, ty));
    whole.then_some(ty)
}

/// Effect of an op on a slot.
#[derive(Clone, Copy)]
enum SlotAccess {
    Alloca(usize),
    Load(usize),
    Store(usize),
}

/// Region on the walk's stack.
struct OpenRegion {
    next: Option<Op>,
    region: Region,
    /// Values of the slots at the start of the enclosing op, for its sibling regions.
    before: SmallVec<[(usize, Value); 4]>,
}

struct Walk {
    roles: HashMap<Op, SlotAccess>,
    /// Slots stored inside each structured op, in ascending order.
    stored_slots: HashMap<Op, Vec<usize>>,
    current: Vec<Option<Value>>,
}

impl Walk {
    fn new(body: &Body, found: &[PromotedSlot]) -> Self {
        let mut roles = HashMap::new();
        let mut stored_slots: HashMap<Op, Vec<usize>> = HashMap::new();
        for (n, promoted) in found.iter().enumerate() {
            roles.insert(promoted.alloca, SlotAccess::Alloca(n));
            let home = body.parent(promoted.alloca);
            for access in &promoted.slot.accesses {
                let store = matches!(body.kind(access.op), OpKind::Store(_));
                let role = if store {
                    SlotAccess::Store(n)
                } else {
                    SlotAccess::Load(n)
                };
                roles.insert(access.op, role);
                let mut at = body.parent(access.op);
                while store && at != home {
                    let Some(owner) = at.and_then(|r| body.owner(r)) else {
                        unreachable!("an access is inside the region of its allocation");
                    };
                    let list = stored_slots.entry(owner).or_default();
                    // Slots are processed in order, hence a present slot is the last entry.
                    if list.last() == Some(&n) {
                        break;
                    }
                    list.push(n);
                    at = body.parent(owner);
                }
            }
        }
        Walk {
            roles,
            stored_slots,
            current: vec![None; found.len()],
        }
    }

    fn run(&mut self, b: &mut Builder, found: &[PromotedSlot]) {
        let root = b.body.root();
        let mut open = vec![OpenRegion {
            next: b.body.first(root),
            region: root,
            before: SmallVec::new(),
        }];
        while let Some(top) = open.last_mut() {
            let Some(op) = top.next else {
                let Some(done) = open.pop() else {
                    unreachable!("the list has a last entry");
                };
                self.leave_region(b, found, &done);
                continue;
            };
            top.next = b.body.next(op);
            if b.body.kind(op).is_terminator() {
                self.end_region(b, found, op);
            } else if let Some(&role) = self.roles.get(&op) {
                self.rewrite_access(b, found, op, role);
            } else if !b.body.op_regions(op).is_empty() {
                let before = self.enter_op(b, found, op);
                for &region in b.body.op_regions(op).iter().rev() {
                    open.push(OpenRegion {
                        next: b.body.first(region),
                        region,
                        before: before.clone(),
                    });
                }
            }
        }
    }

    fn rewrite_access(
        &mut self,
        b: &mut Builder,
        found: &[PromotedSlot],
        op: Op,
        role: SlotAccess,
    ) {
        b.set_insertion_before(op);
        match role {
            SlotAccess::Alloca(n) => {
                let undef = b.unit.consts.intern(found[n].ty, ConstKind::Undef);
                self.current[n] = Some(b.constant(undef));
            }
            SlotAccess::Store(n) => {
                let value = b.body.operand(op, 0);
                self.current[n] = Some(b.cast(CastOp::BitCast, value, found[n].ty));
                b.body.erase(op);
            }
            SlotAccess::Load(n) => {
                let result = b.body.result(op);
                let ty = b.body.ty(result);
                let value = b.cast(CastOp::BitCast, self.current_value(n), ty);
                b.body.replace_uses(result, value);
                b.body.erase(op);
            }
        }
    }

    /// Returns the current value of a slot.
    fn current_value(&self, n: usize) -> Value {
        match self.current[n] {
            Some(value) => value,
            None => unreachable!("an allocation dominates its accesses"),
        }
    }

    /// Enters a structured op; a loop carries the slots stored inside.
    fn enter_op(
        &mut self,
        b: &mut Builder,
        found: &[PromotedSlot],
        op: Op,
    ) -> SmallVec<[(usize, Value); 4]> {
        let slots = self.stored_slots.get(&op).cloned().unwrap_or_default();
        let mut before = SmallVec::new();
        for n in slots {
            let mut value = self.current_value(n);
            if b.body.kind(op).is_loop() {
                b.body.add_operand(op, value);
                let region = b.body.op_regions(op)[0];
                value = b.body.add_param(region, found[n].ty);
            }
            self.current[n] = Some(value);
            before.push((n, value));
        }
        // The first region starts with these values; sibling regions restore them on entry.
        before
    }

    /// Ends a region: its terminator also yields the slots' values.
    fn end_region(&self, b: &mut Builder, found: &[PromotedSlot], end: Op) {
        let Some(owner) = b.body.parent_op(end) else {
            // Not an error: the root region yields no slot value.
            return;
        };
        let Some(slots) = self.stored_slots.get(&owner) else {
            // Not an error: the op contains no store of a slot.
            return;
        };
        let values: Vec<Value> = slots.iter().map(|&n| self.current_value(n)).collect();
        debug_assert!(values.len() <= found.len());
        match b.body.kind(end) {
            OpKind::Yield => {
                for value in values {
                    b.body.add_operand(end, value);
                }
            }
            OpKind::Repeat => {
                // Operand order: again, carried values (new ones last), results (new ones last).
                let mut all: Vec<Value> = b.body.operands(end).collect();
                let carried = 1 + b.body.operand_count(owner) - values.len();
                all.splice(carried..carried, values.iter().copied());
                all.extend(values);
                b.body.set_operands(end, &all);
            }
            _ => {}
        }
    }

    /// Leaves a region. The op's next region starts with the values before the op; after the last region, the
    /// op's results are the slots' values.
    fn leave_region(&mut self, b: &mut Builder, found: &[PromotedSlot], done: &OpenRegion) {
        let Some(owner) = b.body.owner(done.region) else {
            // Not an error: no value is live after the root region.
            return;
        };
        let last = b.body.op_regions(owner).last() == Some(&done.region);
        for &(n, value) in &done.before {
            self.current[n] = Some(match last {
                true => b.body.add_result(owner, found[n].ty),
                false if is_planted(Mutant::PromotedArmLeaks) => self.current[n].unwrap_or(value),
                false => value,
            });
        }
    }
}
