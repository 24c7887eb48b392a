//! Atomic and volatile accesses to active values (GRD0031).

use crate::checks::address_parts::is_in_address;
use crate::checks::finding::Finding;
use crate::checks::variant::VariantFacts;
use crate::points_to::alias_sets::CellRef;
use gradus_ir::{Body, Code, FloatKind, Op, OpKind, RmwOp, Type, Unit, Value};

/// Refuses atomic and volatile accesses to active values or to parts of pointers.
pub(super) fn accesses(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_ops(|op| {
        is_refused(variant, op).then(|| {
            let message =
                "an atomic or volatile access works on active values or on a part of a pointer";
            variant.error(op, Code::AtomicAccess, message).help(
                "use an ordinary access, use an atomic add and ignore the old value, or mark the memory as const",
            )
        })
    })
}

fn is_refused(variant: &VariantFacts<'_>, op: Op) -> bool {
    let body = variant.body;
    let is_plain_access =
        |ptr, value| variant.activity.active(value) || moves_part_of_pointer(variant, ptr, value);
    match body.kind(op) {
        OpKind::Load(access) => {
            !access.is_plain() && is_plain_access(body.operand(op, 0), body.result(op))
        }
        OpKind::Store(access) => {
            !access.is_plain() && is_plain_access(body.operand(op, 1), body.operand(op, 0))
        }
        OpKind::AtomicRmw(..) => {
            is_float_update(variant, op, 1) && !is_float_accumulation(variant.facts.unit, body, op)
                || updates_address(variant, op)
        }
        OpKind::CmpXchg { .. } => is_float_update(variant, op, 2),
        _ => false,
    }
}

/// Returns true if an access moves an integer that is a part of a pointer to floats. No analysis follows the part:
/// whether the floats are active is not known.
fn moves_part_of_pointer(variant: &VariantFacts<'_>, ptr: Value, value: Value) -> bool {
    let (unit, memory) = (variant.facts.unit, variant.facts.memory);
    let word = unit.layout.pointer_bytes as i64;
    let bits = unit.types.int_bits(variant.body.ty(value));
    let leads = |place: &CellRef| {
        let inside = place.offset_bytes.rem_euclid(word);
        let start = CellRef {
            offset_bytes: place.offset_bytes - inside,
            ..*place
        };
        let mut targets = memory.pointee(start).iter();
        targets.any(|target| variant.facts.words.types_of_set(target.class).has_float())
    };
    bits.is_some_and(|bits| i64::from(bits) < word * 8)
        && memory.targets(variant.func, ptr).iter().any(leads)
}

/// Returns true if an atomic op changes an address of active memory that an integer holds.
fn updates_address(variant: &VariantFacts<'_>, op: Op) -> bool {
    let body = variant.body;
    let is_integer = variant
        .facts
        .unit
        .types
        .int_bits(body.ty(body.operand(op, 1)))
        .is_some();
    let mut places = variant
        .facts
        .memory
        .targets(variant.func, body.operand(op, 0))
        .iter();
    is_integer && places.any(|place| is_in_address(variant, *place))
}

/// Returns true if an op updates active floats. `value` is the position of the new value among the operands.
fn is_float_update(variant: &VariantFacts<'_>, op: Op, value: usize) -> bool {
    let body = variant.body;
    let words = variant.facts.words;
    words.carries_float(variant.func, body.operand(op, value))
        && variant.points_to_active(body.operand(op, 0))
}

/// Returns true if an atomic access adds to or subtracts from a scalar float and its old value is unused.
fn is_float_accumulation(unit: &Unit, body: &Body, op: Op) -> bool {
    let OpKind::AtomicRmw(RmwOp::FAdd | RmwOp::FSub, access) = body.kind(op) else {
        return false;
    };
    let number = matches!(
        unit.types.get(body.ty(body.operand(op, 1))),
        Type::Float(FloatKind::F64 | FloatKind::F32)
    );
    number && !access.volatile && !body.has_uses(body.result(op))
}
