//! Non-escaping stack slots: all loads and stores of an alloca with their constant offsets.

use gradus_ir::{AllocaStorage, Body, Op, OpKind, TypeId, Unit};
use std::collections::HashSet;

/// Plain (not volatile, not atomic) load or store of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub op: Op,
    /// Type loaded or stored.
    pub ty: TypeId,
    /// Offset from the start of the slot in bytes.
    pub offset: i64,
}

/// Stack allocation whose address does not escape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    pub accesses: Vec<Access>,
    /// Address computations, each after the computation of its base.
    pub addresses: Vec<Op>,
    /// Calls of lifetime intrinsics.
    pub markers: Vec<Op>,
}

/// Collects all uses of an alloca of constant size. Returns `None` unless every use is a plain load or store
/// at a constant offset, an address computation or a lifetime intrinsic.
pub(crate) fn slot(unit: &Unit, body: &Body, alloca: Op) -> Option<Slot> {
    let OpKind::Alloca(info) = body.kind(alloca) else {
        return None;
    };
    let shared = info.storage == AllocaStorage::Shared;
    if shared || info.inalloca || body.as_int(unit, body.operand(alloca, 0)) != Some(1) {
        return None;
    }
    let mut slot = Slot::default();
    let mut open = vec![(body.result(alloca), 0i64)];
    while let Some((pointer, offset)) = open.pop() {
        for used in body.uses(pointer) {
            let op = used.op;
            match body.kind(op) {
                OpKind::Load(access) if access.is_plain() => {
                    let ty = body.ty(body.result(op));
                    slot.accesses.push(Access { op, ty, offset });
                }
                OpKind::Store(access) if access.is_plain() && used.index == 1 => {
                    let ty = body.ty(body.operand(op, 0));
                    slot.accesses.push(Access { op, ty, offset });
                }
                OpKind::Addr { .. } => {
                    let address = unit.layout.address(unit, body, op)?;
                    if address.base != pointer || !address.terms.is_empty() {
                        return None;
                    }
                    slot.addresses.push(op);
                    open.push((body.result(op), offset.checked_add(address.offset)?));
                }
                OpKind::Call(_) if unit.is_lifetime_marker(body, op) => slot.markers.push(op),
                _ => return None,
            }
        }
    }
    let size = unit.layout.size_bytes(unit, info.ty);
    let fits = slot.accesses.iter().all(|a| {
        let bytes = unit.layout.store_bytes(unit, a.ty);
        u64::try_from(a.offset).is_ok_and(|o| o.checked_add(bytes).is_some_and(|e| e <= size))
    });
    (fits && stores_are_in_same_task(body, alloca, &slot)).then_some(slot)
}

/// Returns whether no parallel op lies between the allocation and its stores. A slot that a parallel op only
/// loads is unchanged since the start of the parallel op; a concurrent store would be a race.
fn stores_are_in_same_task(body: &Body, alloca: Op, slot: &Slot) -> bool {
    let home = body.parent(alloca);
    let mut seen: HashSet<Op> = HashSet::new();
    let writes = slot.accesses.iter();
    for access in writes.filter(|a| matches!(body.kind(a.op), OpKind::Store(_))) {
        let mut at = body.parent(access.op);
        while at != home {
            let Some(owner) = at.and_then(|r| body.owner(r)) else {
                return false;
            };
            if body.kind(owner).is_parallel() {
                return false;
            }
            if !seen.insert(owner) {
                break;
            }
            at = body.parent(owner);
        }
    }
    true
}

/// Erases a slot without remaining accesses: lifetime intrinsics, address computations and the alloca.
pub(crate) fn erase(body: &mut Body, alloca: Op, slot: &Slot) {
    for &op in slot.markers.iter().chain(slot.addresses.iter().rev()) {
        body.erase(op);
    }
    body.erase(alloca);
}

/// Returns whether a bitcast, or no cast, converts a value of type `a` to type `b`.
pub(crate) fn is_bitcastable(unit: &Unit, a: TypeId, b: TypeId) -> bool {
    let plain = |ty| unit.types.int_bits(ty).is_some() || unit.types.float_kind(ty).is_some();
    let bits = |ty| unit.layout.store_bytes(unit, ty);
    let whole = |ty: TypeId| unit.types.int_bits(ty).is_none_or(|n| n % 8 == 0);
    a == b || (plain(a) && plain(b) && bits(a) == bits(b) && whole(a) && whole(b))
}

/// Returns all allocas of a body.
pub(crate) fn allocas(body: &Body) -> Vec<Op> {
    body.walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::Alloca(_)))
        .collect()
}
