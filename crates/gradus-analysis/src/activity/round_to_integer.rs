//! Rounding to integer by a large constant: recognises `(x + 0x1.8p52) - 0x1.8p52`.
//!
//! The idiom rounds x to an integer; the sum may be a fused multiply-add. Differentiated as arithmetic, the
//! result would have the derivative of x. The result is a step function, and the remainder `x - round(x)`
//! would lose its derivative. No derivative therefore flows through the second operation. The constant is
//! 2^k or 3 · 2^k and leaves fewer than half of the significand bits for the fraction. No program adds and
//! subtracts such a constant for another purpose.

use gradus_ir::externals::{ExternalFn, MathFn};
use gradus_ir::{BinaryOp, Body, ConstKind, FloatKind, Op, OpKind, Type, Unit, Value};

/// Returns true if an op subtracts the rounding constant that an earlier op added.
pub(crate) fn undoes_rounding_shift(unit: &Unit, body: &Body, op: Op) -> bool {
    let Some((sum, away)) = added_constant(unit, body, op) else {
        return false;
    };
    let added = body
        .def_op(sum)
        .and_then(|sum| added_constant(unit, body, sum));
    added.is_some_and(|(_, by)| by == -away && is_rounding_constant(unit, body, sum, by))
}

/// Returns true if a value is the sum of a number and a rounding constant. The value's last bits are the
/// bits of an integer.
pub(crate) fn has_rounding_shift(unit: &Unit, body: &Body, value: Value) -> bool {
    let added = body
        .def_op(value)
        .and_then(|sum| added_constant(unit, body, sum));
    added.is_some_and(|(_, by)| is_rounding_constant(unit, body, value, by))
}

/// Returns the value to which an op adds a constant, and the constant. For a fused multiply-add, the value
/// is one of the factors.
fn added_constant(unit: &Unit, body: &Body, op: Op) -> Option<(Value, f64)> {
    if let OpKind::Call(_) = body.kind(op) {
        let fused = unit.known_callee(body, op);
        let Some(ExternalFn::Math(MathFn::Fma | MathFn::Fmuladd)) = fused else {
            return None;
        };
        let args = unit.call_args(body, op);
        return Some((*args.first()?, number(unit, body, *args.get(2)?)?));
    }
    let OpKind::Binary(binary @ (BinaryOp::FAdd | BinaryOp::FSub)) = *body.kind(op) else {
        return None;
    };
    let (x, y) = (body.operand(op, 0), body.operand(op, 1));
    match (number(unit, body, x), number(unit, body, y), binary) {
        (None, Some(by), BinaryOp::FAdd) => Some((x, by)),
        (None, Some(by), _) => Some((x, -by)),
        (Some(by), None, BinaryOp::FAdd) => Some((y, by)),
        _ => None,
    }
}

/// Returns true if adding a number rounds to integer: the number is 2^k or 3 · 2^k with k at least half the
/// format's significand bits plus 6.
fn is_rounding_constant(unit: &Unit, body: &Body, sum: Value, by: f64) -> bool {
    let digits = match unit.types.float_kind(body.ty(sum)) {
        Some(FloatKind::F64) => 52,
        Some(FloatKind::F32) => 23,
        _ => return false,
    };
    let (size, bits) = (by.abs(), by.abs().to_bits());
    let first_two = bits & ((1 << 51) - 1) == 0;
    first_two && size.is_finite() && size >= 2f64.powi(digits / 2 + 6)
}

/// Returns the value of a binary32 or binary64 constant, or of a splat vector constant.
fn number(unit: &Unit, body: &Body, value: Value) -> Option<f64> {
    let mut id = body.as_const(value)?;
    if let (ConstKind::Aggregate(lanes), Type::Vector { .. }) =
        (&unit.constant(id).kind, unit.types.get(body.ty(value)))
    {
        let first = *lanes.first()?;
        if lanes.iter().any(|lane| *lane != first) {
            return None;
        }
        id = first;
    }
    match (
        &unit.constant(id).kind,
        unit.types.float_kind(body.ty(value))?,
    ) {
        (ConstKind::Float(bits), FloatKind::F64) => Some(f64::from_bits(*bits as u64)),
        (ConstKind::Float(bits), FloatKind::F32) => Some(f64::from(f32::from_bits(*bits as u32))),
        _ => None,
    }
}
