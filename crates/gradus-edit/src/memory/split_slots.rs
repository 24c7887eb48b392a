//! Scalar replacement: splits an alloca into one alloca for each accessed byte range.
//!
//! The ranges are those that single loads and stores touch. An alloca with partially overlapping ranges is
//! not split.

use crate::memory::slots;
use crate::memory::slots::{Access, Slot};
use gradus_ir::{AllocaInfo, Body, Builder, Op, OpKind, Unit};
use std::collections::BTreeMap;

/// Splits all splittable allocas of a body; returns their number.
pub fn split_allocas(unit: &mut Unit, body: &mut Body) -> usize {
    let mut split = 0;
    for alloca in slots::allocas(body) {
        let Some(slot) = slots::slot(unit, body, alloca) else {
            continue;
        };
        let Some(pieces) = disjoint_fragments(unit, &slot) else {
            continue;
        };
        if slot.addresses.is_empty() {
            continue;
        }
        replace_by_fragments(unit, body, alloca, &slot, pieces);
        split += 1;
    }
    split
}

/// Groups the accesses by their first byte; `None` if two ranges overlap partially.
fn disjoint_fragments(unit: &Unit, slot: &Slot) -> Option<BTreeMap<i64, Vec<Access>>> {
    let mut pieces: BTreeMap<i64, Vec<Access>> = BTreeMap::new();
    for &access in &slot.accesses {
        pieces.entry(access.offset).or_default().push(access);
    }
    let mut end = 0;
    for (&start, accesses) in &pieces {
        let bytes = unit.layout.store_bytes(unit, accesses[0].ty);
        let same = accesses
            .iter()
            .all(|a| unit.layout.store_bytes(unit, a.ty) == bytes);
        if start < end || !same {
            return None;
        }
        end = start.checked_add(i64::try_from(bytes).ok()?)?;
    }
    Some(pieces)
}

fn replace_by_fragments(
    unit: &mut Unit,
    body: &mut Body,
    alloca: Op,
    slot: &Slot,
    pieces: BTreeMap<i64, Vec<Access>>,
) {
    let OpKind::Alloca(whole) = *body.kind(alloca) else {
        unreachable!("only allocations have slots");
    };
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[alloca].loc;
    b.set_insertion_before(alloca);
    let (one, ptr) = (b.body.operand(alloca, 0), b.body.ty(b.body.result(alloca)));
    for (offset, accesses) in pieces {
        let ty = accesses[0].ty;
        // A fragment inherits the alignment of its offset in the whole alloca.
        let inside = (offset as u64 | u64::from(whole.align_bytes))
            .trailing_zeros()
            .min(31);
        let natural = b.unit.layout.align_bytes(b.unit, ty) as u32;
        let info = AllocaInfo {
            ty,
            align_bytes: natural.max(1 << inside),
            ..whole
        };
        let piece = b.value(OpKind::Alloca(info), &[one], ptr);
        for access in accesses {
            let at = match b.body.kind(access.op) {
                OpKind::Load(_) => 0,
                _ => 1,
            };
            b.body.set_operand(access.op, at, piece);
        }
    }
    slots::erase(body, alloca, slot);
}
