//! Dependency sets: tangents that are sets of inputs, in place of numbers.
//!
//! Forward mode with [`Tangents::Dependencies`](crate::variant::Tangents) propagates, for each float, the set of the
//! inputs on which the float depends. A set has the type of the float and travels like a tangent: through loads,
//! stores, calls, loops and copies. The sparsity pattern of a Jacobian is the sets of the outputs.
//!
//! The empty set is zero, like the tangent of an inactive value and fresh shadow memory. Any other set is a number from 1
//! to 2 with one bit of the fraction per input (Griewank and Walther, Evaluating Derivatives, 7.1). Such a number is
//! normal and positive: no move, no flushed subnormal, no fast-math flag and no test of a shadow word for an address
//! changes the bits. The union is the bitwise or, on integers of the float's width.
//!
//! | format | fraction bits in use |
//! |---|---|
//! | `float` | 0 to 21 |
//! | `double`, x87, binary128 | 0 to 43 |
//!
//! A conversion to `float` maps the inputs k and k + 22 to one bit, and a conversion back sets both bits: a superset. A NaN
//! is a float with unknown dependencies and remains a NaN in unions and conversions.

use crate::emit::builder::DerivativeBuilder;
use gradus_ir::{BinaryOp, CastOp, FloatKind, IntPredicate, Type, TypeId, Unit, Value};

/// The number of inputs in a set in `float`.
const SHORT_SET_BITS: u32 = 22;
/// The number of inputs in a set in a longer format.
const LONG_SET_BITS: u32 = 2 * SHORT_SET_BITS;

/// The bits of a float format that matter to sets.
#[derive(Clone, Copy, Debug)]
struct SetFormat {
    /// The width of the format.
    bits: u32,
    /// The number of inputs in a set.
    set_bits: u32,
    /// The bits of 1.0.
    one: u128,
    /// The bits of a quiet NaN.
    nan: u128,
}

/// Returns the format of sets in floats; `None` for formats with too short a fraction.
fn set_format(kind: FloatKind) -> Option<SetFormat> {
    let (set_bits, one, nan) = match kind {
        FloatKind::F16 | FloatKind::BF16 | FloatKind::PpcF128 => return None,
        FloatKind::F32 => (SHORT_SET_BITS, 0x7f << 23, 0x1ff << 22),
        FloatKind::F64 => (LONG_SET_BITS, 0x3ff << 52, 0xfff << 51),
        // The integer bit is explicit.
        FloatKind::X86F80 => (LONG_SET_BITS, 0x7fff << 63, 0x1_ffff << 62),
        FloatKind::F128 => (LONG_SET_BITS, 0x3fff << 112, 0xffff << 111),
    };
    Some(SetFormat {
        bits: kind.bits(),
        set_bits,
        one,
        nan,
    })
}

/// Returns true if sets exist in the floats of a type.
pub fn has_sets(unit: &Unit, ty: TypeId) -> bool {
    let scalable = matches!(unit.types.get(ty), Type::Vector { scalable: true, .. });
    !scalable && unit.types.float_kind(ty).and_then(set_format).is_some()
}

/// Returns the integer type, or the vector of integers, of the width of a float type.
fn bits_type(unit: &mut Unit, ty: TypeId, bits: u32) -> TypeId {
    let int = unit.types.int(bits);
    match *unit.types.get(ty) {
        Type::Vector { len, .. } => unit.types.vector(int, len),
        _ => int,
    }
}

/// Emits the bits of a set. An integer with floats holds bits already.
pub fn bits_of(out: &mut DerivativeBuilder<'_>, set: Value) -> Value {
    let ty = out.body.ty(set);
    let Some(bits) = out.unit.types.float_kind(ty).map(FloatKind::bits) else {
        // Not an error: integers are their own bits.
        return set;
    };
    let ty = bits_type(out.unit, ty, bits);
    out.build().cast(CastOp::BitCast, set, ty)
}

/// Emits the union of two sets of one type, for which [`has_sets`] holds.
pub fn union(out: &mut DerivativeBuilder<'_>, a: Value, b: Value) -> Value {
    if a == b || super::tangent_ops::is_zero(out, b) {
        return a;
    }
    if super::tangent_ops::is_zero(out, a) {
        return b;
    }
    let ty = out.body.ty(a);
    let (x, y) = (bits_of(out, a), bits_of(out, b));
    let both = out.build().binary(BinaryOp::Or, x, y);
    out.build().cast(CastOp::BitCast, both, ty)
}

/// Emits the union of the sets in the lanes of a vector.
pub fn union_of_lanes(out: &mut DerivativeBuilder<'_>, vector: Value) -> Value {
    let ty = out.body.ty(vector);
    let Type::Vector { elem, len, .. } = *out.unit.types.get(ty) else {
        // Not an error: a scalar is its only lane.
        return vector;
    };
    let mut all = out.build().zero(elem);
    for lane in 0..len {
        let index = out.build().i64(lane.into());
        let kind = gradus_ir::OpKind::ExtractElement;
        let one = out.build().value(kind, &[vector, index], elem);
        all = union(out, all, one);
    }
    all
}

/// Emits a set in another float format. Both types are scalars, or vectors of equal length, for which [`has_sets`] holds.
pub fn convert(out: &mut DerivativeBuilder<'_>, set: Value, ty: TypeId) -> Value {
    let from = out.body.ty(set);
    let format = |unit: &Unit, ty| unit.types.float_kind(ty).and_then(set_format);
    let (Some(old), Some(new)) = (format(out.unit, from), format(out.unit, ty)) else {
        unreachable!("the caller checks that both formats have sets");
    };
    if from == ty {
        return set;
    }
    let bits = bits_of(out, set);
    let (old_ty, new_ty) = (out.body.ty(bits), bits_type(out.unit, ty, new.bits));
    let wide_ty = bits_type(out.unit, ty, old.bits.max(new.bits));
    let mut b = out.build();
    let inputs = b.int(old_ty, (1i128 << old.set_bits) - 1);
    let inputs = b.binary(BinaryOp::And, bits, inputs);
    let mut inputs = b.cast(CastOp::ZExt, inputs, wide_ty);
    if old.set_bits != new.set_bits {
        let shift = b.int(wide_ty, SHORT_SET_BITS.into());
        let op = match old.set_bits < new.set_bits {
            true => BinaryOp::Shl,
            false => BinaryOp::LShr,
        };
        let other = b.binary(op, inputs, shift);
        inputs = b.binary(BinaryOp::Or, inputs, other);
        let mask = b.int(wide_ty, (1i128 << new.set_bits) - 1);
        inputs = b.binary(BinaryOp::And, inputs, mask);
    }
    let inputs = b.cast(CastOp::Trunc, inputs, new_ty);
    let one = b.int(new_ty, new.one as i128);
    let full = b.binary(BinaryOp::Or, inputs, one);
    let (empty, nan) = (b.zero(old_ty), b.int(old_ty, old.nan as i128));
    let (no_inputs, unknown) = (b.zero(new_ty), b.int(new_ty, new.nan as i128));
    let is_empty = b.icmp(IntPredicate::Eq, bits, empty);
    let is_known = b.icmp(IntPredicate::Ult, bits, nan);
    let known = b.select(is_empty, no_inputs, full);
    let result = b.select(is_known, known, unknown);
    b.cast(CastOp::BitCast, result, ty)
}
