//! Arithmetic on tangents and adjoints.
//!
//! A tangent or adjoint has the type of its value. Its floating-point parts carry the number;
//! other parts are zero. An integer that carries floats in byte lanes has an adjoint that carries
//! theirs in the same lanes.

use crate::facts::Facts;
use crate::facts::FloatLane;
use crate::out::Out;
use gradus_ir::known::ReduceFn;
use gradus_ir::{AttrSet, BinaryOp, CastOp, Flags, FloatKind, FloatPredicate, Type, TypeId, Value};

/// The sum of two adjoints of `of`. Nobody wrote down in which order adjoints are added up: such sums may
/// be regrouped.
pub fn accumulate(out: &mut Out<'_>, facts: &Facts<'_>, of: Value, a: Value, b: Value) -> Value {
    with_flags(out, Flags::REASSOC, |out| add(out, facts, of, a, b))
}

/// The sum of what shadow memory holds and an adjoint of `of`. Where that memory was just cleared, the sum
/// is the adjoint.
pub fn accumulate_in_memory(
    out: &mut Out<'_>,
    facts: &Facts<'_>,
    of: Value,
    old: Value,
    more: Value,
) -> Value {
    with_flags(out, SUM_IN_MEMORY, |out| add(out, facts, of, old, more))
}

/// As [`accumulate_in_memory`], of floats or vectors of floats.
pub fn accumulate_floats(out: &mut Out<'_>, old: Value, more: Value) -> Value {
    with_flags(out, SUM_IN_MEMORY, |out| out.build().fadd(old, more))
}

/// The sum of the lanes of a vector of floats, in whatever order.
pub fn sum_of_lanes(out: &mut Out<'_>, vector: Value) -> Value {
    let ty = out.body.ty(vector);
    let elem = out.unit.types.scalar(ty);
    let name = ReduceFn::sum_symbol(out.unit, ty);
    let signature = out.unit.types.func(elem, vec![elem, ty]);
    let func = out.unit.declare(&name, signature, AttrSet::default());
    let flags = out.fast.with(Flags::REASSOC);
    let mut b = out.build();
    let nothing = b.float(elem, -0.0);
    let call = b.call(func, &[nothing, vector]);
    let sum = b.body.result(call);
    b.set_flags(sum, flags);
    sum
}

fn with_flags(out: &mut Out<'_>, flags: Flags, make: impl FnOnce(&mut Out<'_>) -> Value) -> Value {
    let fast = out.fast;
    out.fast = fast.with(flags);
    let sum = make(out);
    out.fast = fast;
    sum
}

/// What may be done to sums in shadow memory: the sign of one that is zero means nothing, either. Sums of
/// values say no such thing, as it adds nothing there, and LLVM's time for long sums that say both grows
/// faster than their length.
pub const SUM_IN_MEMORY: Flags = Flags::REASSOC.with(Flags::NSZ);

/// The sum of two adjoints of `of`, as it is written.
fn add(out: &mut Out<'_>, facts: &Facts<'_>, of: Value, a: Value, b: Value) -> Value {
    let ty = out.body.ty(a);
    if let Some(lanes) = facts.lanes(of).map(<[FloatLane]>::to_vec) {
        return add_lanes(out, &lanes, a, b);
    }
    add_typed(out, ty, a, b)
}

/// The sum of two adjoints of type `ty`, part by part.
pub fn add_typed(out: &mut Out<'_>, ty: TypeId, a: Value, b: Value) -> Value {
    if is_zero(out, a) {
        return b;
    }
    if is_zero(out, b) {
        return a;
    }
    match out.unit.types.get(ty).clone() {
        Type::Float(_) => out.build().fadd(a, b),
        Type::Vector { elem, .. } if matches!(out.unit.types.get(elem), Type::Float(_)) => {
            out.build().fadd(a, b)
        }
        Type::Struct { fields, .. } => {
            let parts: Vec<u32> = (0..fields.len() as u32).collect();
            add_parts(out, a, b, &parts)
        }
        Type::Array { len, .. } => {
            let parts: Vec<u32> = (0..len as u32).collect();
            add_parts(out, a, b, &parts)
        }
        _ => a,
    }
}

/// Sums of the members of aggregates; nesting is that of types and so bounded by the source.
fn add_parts(out: &mut Out<'_>, a: Value, b: Value, parts: &[u32]) -> Value {
    let mut sum = a;
    for &part in parts {
        let (x, y) = (
            out.build().extract(a, &[part]),
            out.build().extract(b, &[part]),
        );
        let ty = out.body.ty(x);
        let total = add_typed(out, ty, x, y);
        sum = out.build().insert(sum, total, &[part]);
    }
    sum
}

fn add_lanes(out: &mut Out<'_>, lanes: &[FloatLane], a: Value, b: Value) -> Value {
    let ty = out.body.ty(a);
    if let (Type::Vector { elem, len, .. }, [first, ..]) = (out.unit.types.get(ty).clone(), lanes) {
        return add_as_floats(out, (elem, len), first.kind, a, b);
    }
    // Beside the lanes stay the bits of the first, which may be those of shadow memory.
    let bits: u32 = lanes.iter().map(|lane| lane.kind.bits()).sum();
    let whole = out.unit.types.int_bits(ty) == Some(bits);
    let mut sum = if whole { out.build().zero(ty) } else { a };
    for lane in lanes {
        let x = lane_float(out, lane, a);
        let y = lane_float(out, lane, b);
        let total = out.build().fadd(x, y);
        let placed = float_lane(out, lane, total, ty);
        if !whole {
            let old = float_lane(out, lane, x, ty);
            sum = out.build().binary(BinaryOp::Xor, sum, old);
        }
        sum = out.build().binary(BinaryOp::Or, sum, placed);
    }
    sum
}

/// The sum of two vectors of integers whose floats are all of one format and where such a vector's elements
/// are; other parts are zero, as floats too.
fn add_as_floats(
    out: &mut Out<'_>,
    (elem, len): (TypeId, u32),
    kind: FloatKind,
    a: Value,
    b: Value,
) -> Value {
    if is_zero(out, a) || is_zero(out, b) {
        return if is_zero(out, a) { b } else { a };
    }
    let bits = out.unit.types.int_bits(elem).unwrap_or(kind.bits());
    let (ty, float) = (out.body.ty(a), out.unit.types.float(kind));
    let floats = out.unit.types.vector(float, len * bits / kind.bits());
    let x = out.build().cast(CastOp::BitCast, a, floats);
    let y = out.build().cast(CastOp::BitCast, b, floats);
    let sum = out.build().fadd(x, y);
    out.build().cast(CastOp::BitCast, sum, ty)
}

/// The float in a byte lane of an integer.
pub fn lane_float(out: &mut Out<'_>, lane: &FloatLane, value: Value) -> Value {
    let ty = out.body.ty(value);
    let shift = out.build().int(ty, i128::from(lane.bit));
    let moved = out.build().binary(BinaryOp::LShr, value, shift);
    let bits = out.unit.types.int(lane.kind.bits());
    let cut = out.build().cast(CastOp::Trunc, moved, bits);
    let float = out.unit.types.float(lane.kind);
    out.build().cast(CastOp::BitCast, cut, float)
}

/// An integer of type `ty` with a float in a byte lane and zeros elsewhere.
pub fn float_lane(out: &mut Out<'_>, lane: &FloatLane, float: Value, ty: TypeId) -> Value {
    let bits = out.unit.types.int(lane.kind.bits());
    let raw = out.build().cast(CastOp::BitCast, float, bits);
    let wide = out.build().cast(CastOp::ZExt, raw, ty);
    let shift = out.build().int(ty, i128::from(lane.bit));
    out.build().binary(BinaryOp::Shl, wide, shift)
}

/// Whether a value is the constant zero, of either sign or of any aggregate.
pub fn is_zero(out: &Out<'_>, value: Value) -> bool {
    use gradus_ir::ConstKind;
    let Some(id) = out.body.as_const(value) else {
        return false;
    };
    let mut work = vec![id];
    while let Some(id) = work.pop() {
        match &out.unit.constant(id).kind {
            ConstKind::Zero | ConstKind::Float(0) | ConstKind::Int(0) => {}
            ConstKind::Aggregate(parts) => work.extend(parts),
            _ => return false,
        }
    }
    true
}

/// `part` where `guard` holds, else zero.
pub fn guarded(out: &mut Out<'_>, guard: Option<Value>, part: Value) -> Value {
    let Some(guard) = guard else { return part };
    let ty = out.body.ty(part);
    let zero = out.build().zero(ty);
    out.build().select(guard, part, zero)
}

/// One, of the type of a seed; `None` where that is no float.
pub fn unit_seed(out: &mut Out<'_>, seed: Value) -> Option<Value> {
    let ty = out.body.ty(seed);
    out.unit.types.float_kind(ty)?;
    Some(out.build().float(ty, 1.0))
}

/// `part` where a factor of it (its seed, or its slope) is not zero, else zero.
pub fn strong(out: &mut Out<'_>, factor: Value, part: Value) -> Value {
    let ty = out.body.ty(factor);
    if out.body.ty(part) != ty || out.unit.types.float_kind(ty).is_none() {
        return part;
    }
    let zero = out.build().zero(ty);
    let alive = out.build().fcmp(FloatPredicate::Une, factor, zero);
    out.build().select(alive, part, zero)
}
