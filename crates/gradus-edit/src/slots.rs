//! Stack memory of which every use is seen: who reads and writes it, and at which offset.

use gradus_ir::known::{Known, MarkerFn};
use gradus_ir::{AllocaPlace, Body, Op, OpKind, TypeId, Unit};
use std::collections::HashSet;

/// A plain load or store of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub op: Op,
    /// The type read or written.
    pub ty: TypeId,
    /// Bytes from the slot's start.
    pub offset: i64,
}

/// A stack allocation whose address goes nowhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    pub accesses: Vec<Access>,
    /// Address computations, in an order in which each comes after what it starts from.
    pub addresses: Vec<Op>,
    /// Lifetime markers.
    pub markers: Vec<Op>,
}

/// All uses of one allocation of constant size, if none lets its address escape: plain loads and
/// stores at constant offsets, and lifetime markers.
pub(crate) fn slot(unit: &Unit, body: &Body, alloca: Op) -> Option<Slot> {
    let OpKind::Alloca(info) = body.kind(alloca) else {
        return None;
    };
    let shared = info.place == AllocaPlace::Shared;
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
                OpKind::Call(_) if is_lifetime(unit, body, op) => slot.markers.push(op),
                _ => return None,
            }
        }
    }
    let size = unit.layout.size_bytes(unit, info.ty);
    let fits = slot.accesses.iter().all(|a| {
        let bytes = unit.layout.store_bytes(unit, a.ty);
        u64::try_from(a.offset).is_ok_and(|o| o.checked_add(bytes).is_some_and(|e| e <= size))
    });
    (fits && stays_in_task(body, alloca, &slot)).then_some(slot)
}

pub(crate) fn is_lifetime(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = unit.callee(body, op).and_then(|func| unit.known(func));
    matches!(
        known,
        Some(Known::Marker(
            MarkerFn::LifetimeStart | MarkerFn::LifetimeEnd
        ))
    )
}

/// Whether no parallel op stands between the allocation and what writes it. Who only reads in a parallel
/// op reads what was there when it began: anything else would be a race.
fn stays_in_task(body: &Body, alloca: Op, slot: &Slot) -> bool {
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

/// Takes a slot out of the body once nothing reads it any more.
pub(crate) fn erase(body: &mut Body, alloca: Op, slot: &Slot) {
    for &op in slot.markers.iter().chain(slot.addresses.iter().rev()) {
        body.erase(op);
    }
    body.erase(alloca);
}

/// Whether a value of type `a` may be taken as one of type `b` by a cast of its bits, or as it is.
pub(crate) fn same_bits(unit: &Unit, a: TypeId, b: TypeId) -> bool {
    let plain = |ty| unit.types.int_bits(ty).is_some() || unit.types.float_kind(ty).is_some();
    let bits = |ty| unit.layout.store_bytes(unit, ty);
    let whole = |ty: TypeId| unit.types.int_bits(ty).is_none_or(|n| n % 8 == 0);
    a == b || (plain(a) && plain(b) && bits(a) == bits(b) && whole(a) && whole(b))
}

/// All allocations of a body.
pub(crate) fn allocas(body: &Body) -> Vec<Op> {
    body.walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::Alloca(_)))
        .collect()
}
