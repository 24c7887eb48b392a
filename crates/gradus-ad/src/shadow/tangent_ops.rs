//! Arithmetic on tangents and adjoints.
//!
//! A tangent or adjoint has the type of its primal value. Float parts carry derivatives; other parts are
//! zero. The adjoint of an integer that carries floats in bit ranges carries adjoints in equal bit ranges.

use crate::analysis::body_facts::BodyFacts;
use crate::analysis::body_facts::FloatBitRange;
use crate::emit::builder::DerivativeBuilder;
use gradus_ir::externals::ReduceFn;
use gradus_ir::{AttrSet, BinaryOp, CastOp, Flags, FloatKind, FloatPredicate, Type, TypeId, Value};

/// Emits the sum of two adjoints of `of`. The source prescribes no order of adjoint accumulation: the sum may
/// be reassociated.
pub fn accumulate(
    out: &mut DerivativeBuilder<'_>,
    facts: &BodyFacts<'_>,
    of: Value,
    a: Value,
    b: Value,
) -> Value {
    with_flags(out, Flags::REASSOC, |out| add(out, facts, of, a, b))
}

/// Emits the sum of the value in shadow memory and an adjoint of `of`. If the memory was just cleared, the
/// sum folds to the adjoint.
pub fn accumulate_in_memory(
    out: &mut DerivativeBuilder<'_>,
    facts: &BodyFacts<'_>,
    of: Value,
    old: Value,
    more: Value,
) -> Value {
    with_flags(out, MEMORY_SUM_FLAGS, |out| add(out, facts, of, old, more))
}

/// Emits the sum of [`accumulate_in_memory`] for floats or float vectors.
pub fn accumulate_floats(out: &mut DerivativeBuilder<'_>, old: Value, more: Value) -> Value {
    with_flags(out, MEMORY_SUM_FLAGS, |out| out.build().fadd(old, more))
}

/// Emits the sum of the lanes of a float vector, in any order.
pub fn sum_of_lanes(out: &mut DerivativeBuilder<'_>, vector: Value) -> Value {
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

fn with_flags(
    out: &mut DerivativeBuilder<'_>,
    flags: Flags,
    make: impl FnOnce(&mut DerivativeBuilder<'_>) -> Value,
) -> Value {
    let fast = out.fast;
    out.fast = fast.with(flags);
    let sum = make(out);
    out.fast = fast;
    sum
}

/// Fast-math flags of sums in shadow memory: reassociation, and an insignificant sign of zero. Sums of SSA
/// values carry no `nsz`, which would gain nothing: LLVM's compile time for long sums with both flags is
/// superlinear.
pub const MEMORY_SUM_FLAGS: Flags = Flags::REASSOC.with(Flags::NSZ);

/// Emits the sum of two adjoints of `of` without further flags.
fn add(
    out: &mut DerivativeBuilder<'_>,
    facts: &BodyFacts<'_>,
    of: Value,
    a: Value,
    b: Value,
) -> Value {
    let ty = out.body.ty(a);
    if let Some(lanes) = facts.float_bit_ranges(of).map(<[FloatBitRange]>::to_vec) {
        return add_bit_ranges(out, &lanes, a, b);
    }
    match facts.aggregate_floats(of).map(<[FloatBitRange]>::to_vec) {
        Some(lanes) => add_aggregates(out, &lanes, (ty, 0), a, b),
        None => add_typed(out, ty, a, b),
    }
}

/// Emits the member-wise sum of two adjoints of type `ty`, which begins at bit `start` of an aggregate with floats at
/// `lanes`. Floats in members of integer type count. The recursion depth is the nesting of types.
fn add_aggregates(
    out: &mut DerivativeBuilder<'_>,
    lanes: &[FloatBitRange],
    (ty, start): (TypeId, u32),
    a: Value,
    b: Value,
) -> Value {
    if is_zero(out, a) || is_zero(out, b) {
        return if is_zero(out, a) { b } else { a };
    }
    let count = match *out.unit.types.get(ty) {
        Type::Struct { ref fields, .. } => fields.len() as u64,
        Type::Array { len, .. } => len,
        Type::Int(bits) => {
            let own = lanes
                .iter()
                .filter(|lane| (start..start + bits).contains(&lane.start_bit));
            let own: Vec<FloatBitRange> = own
                .map(|lane| FloatBitRange {
                    start_bit: lane.start_bit - start,
                    kind: lane.kind,
                })
                .collect();
            return match own.is_empty() {
                true => a,
                false => add_bit_ranges(out, &own, a, b),
            };
        }
        _ => return add_typed(out, ty, a, b),
    };
    let mut sum = a;
    for part in 0..count {
        let offset = out.unit.layout.field_offset_bytes(out.unit, ty, part) as u32 * 8;
        let part = part as u32;
        let x = out.build().extract(a, &[part]);
        let y = out.build().extract(b, &[part]);
        let member = (out.body.ty(x), start + offset);
        let total = add_aggregates(out, lanes, member, x, y);
        sum = out.build().insert(sum, total, &[part]);
    }
    sum
}

/// Emits the member-wise sum of two adjoints of type `ty`.
pub fn add_typed(out: &mut DerivativeBuilder<'_>, ty: TypeId, a: Value, b: Value) -> Value {
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
            add_members(out, a, b, &parts)
        }
        Type::Array { len, .. } => {
            let parts: Vec<u32> = (0..len as u32).collect();
            add_members(out, a, b, &parts)
        }
        _ => a,
    }
}

/// Emits sums of aggregate members. The recursion depth is the nesting of types, which the source bounds.
fn add_members(out: &mut DerivativeBuilder<'_>, a: Value, b: Value, parts: &[u32]) -> Value {
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

fn add_bit_ranges(
    out: &mut DerivativeBuilder<'_>,
    lanes: &[FloatBitRange],
    a: Value,
    b: Value,
) -> Value {
    let ty = out.body.ty(a);
    if let (Type::Vector { elem, len, .. }, [first, ..]) = (out.unit.types.get(ty).clone(), lanes) {
        return add_as_floats(out, (elem, len), first.kind, a, b);
    }
    // Bits outside the float ranges remain those of the first operand, which may be a value in shadow memory.
    let bits: u32 = lanes.iter().map(|lane| lane.kind.bits()).sum();
    let whole = out.unit.types.int_bits(ty) == Some(bits);
    let mut sum = if whole { out.build().zero(ty) } else { a };
    for lane in lanes {
        let x = extract_bit_range(out, lane, a);
        let y = extract_bit_range(out, lane, b);
        let total = out.build().fadd(x, y);
        let placed = insert_bit_range(out, lane, total, ty);
        if !whole {
            let old = insert_bit_range(out, lane, x, ty);
            sum = out.build().binary(BinaryOp::Xor, sum, old);
        }
        sum = out.build().binary(BinaryOp::Or, sum, placed);
    }
    sum
}

/// Emits the sum of two integer vectors whose bit ranges are floats of one format at the elements of a float
/// vector. Other parts are zero, as floats too.
fn add_as_floats(
    out: &mut DerivativeBuilder<'_>,
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

/// Extracts the float in a bit range of an integer.
pub fn extract_bit_range(
    out: &mut DerivativeBuilder<'_>,
    lane: &FloatBitRange,
    value: Value,
) -> Value {
    let ty = out.body.ty(value);
    let shift = out.build().int(ty, i128::from(lane.start_bit));
    let moved = out.build().binary(BinaryOp::LShr, value, shift);
    let bits = out.unit.types.int(lane.kind.bits());
    let cut = out.build().cast(CastOp::Trunc, moved, bits);
    let float = out.unit.types.float(lane.kind);
    out.build().cast(CastOp::BitCast, cut, float)
}

/// Returns an integer of type `ty` with a float in one bit range and zeros elsewhere.
pub fn insert_bit_range(
    out: &mut DerivativeBuilder<'_>,
    lane: &FloatBitRange,
    float: Value,
    ty: TypeId,
) -> Value {
    let bits = out.unit.types.int(lane.kind.bits());
    let raw = out.build().cast(CastOp::BitCast, float, bits);
    let wide = out.build().cast(CastOp::ZExt, raw, ty);
    let shift = out.build().int(ty, i128::from(lane.start_bit));
    out.build().binary(BinaryOp::Shl, wide, shift)
}

/// Returns true if a value is the constant zero, of either sign or of any aggregate type.
pub fn is_zero(out: &DerivativeBuilder<'_>, value: Value) -> bool {
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

/// Emits a select of `part` if `guard` holds, else zero.
pub fn select_guarded(out: &mut DerivativeBuilder<'_>, guard: Option<Value>, part: Value) -> Value {
    let Some(guard) = guard else { return part };
    let ty = out.body.ty(part);
    let zero = out.build().zero(ty);
    out.build().select(guard, part, zero)
}

/// Returns one, in the type of a seed; `None` for types other than floats.
pub fn unit_seed(out: &mut DerivativeBuilder<'_>, seed: Value) -> Option<Value> {
    let ty = out.body.ty(seed);
    out.unit.types.float_kind(ty)?;
    Some(out.build().float(ty, 1.0))
}

/// Emits the strong-zero form: a select of `part` if `factor` (seed or partial derivative) is non-zero, else
/// zero.
pub fn strong_product(out: &mut DerivativeBuilder<'_>, factor: Value, part: Value) -> Value {
    let ty = out.body.ty(factor);
    if out.body.ty(part) != ty || out.unit.types.float_kind(ty).is_none() {
        return part;
    }
    let zero = out.build().zero(ty);
    let alive = out.build().fcmp(FloatPredicate::Une, factor, zero);
    out.build().select(alive, part, zero)
}
