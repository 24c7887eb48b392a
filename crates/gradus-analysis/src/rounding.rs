//! Rounding by a large constant: `(x + 0x1.8p52) - 0x1.8p52` is x rounded to a whole number, as libraries
//! write it; the sum may be fused with a product.
//!
//! Read as arithmetic its derivative is that of x; it is a step, and what is left of x after it
//! (`x - round(x)`) would lose its derivative. So no derivative flows through the second operation.
//! The constant is a power of two, or three times one, so large that the first operation leaves fewer than
//! half of the bits behind the point: nobody adds such a number and takes it away again for another reason.

use gradus_ir::known::{Known, MathFn};
use gradus_ir::{BinaryOp, Body, ConstKind, FloatKind, Op, OpKind, Type, Unit, Value};

/// Whether an op takes away the constant that another one added in order to round.
pub(crate) fn rounds(unit: &Unit, body: &Body, op: Op) -> bool {
    let Some((sum, away)) = shifted(unit, body, op) else {
        return false;
    };
    let added = body.def_op(sum).and_then(|sum| shifted(unit, body, sum));
    added.is_some_and(|(_, by)| by == -away && is_rounder(unit, body, sum, by))
}

/// Returns true if a value is a number plus such a constant. Its last bits are those of a whole number.
pub(crate) fn is_shifted(unit: &Unit, body: &Body, value: Value) -> bool {
    let added = body.def_op(value).and_then(|sum| shifted(unit, body, sum));
    added.is_some_and(|(_, by)| is_rounder(unit, body, value, by))
}

/// Returns the value to which an op adds a constant, and that constant. For a fused multiply-add, the value is one
/// of the factors.
fn shifted(unit: &Unit, body: &Body, op: Op) -> Option<(Value, f64)> {
    if let OpKind::Call(_) = body.kind(op) {
        let fused = unit.callee(body, op).and_then(|f| unit.known(f));
        let Some(Known::Math(MathFn::Fma | MathFn::Fmuladd)) = fused else {
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

/// Whether adding a number rounds: it is 2^k or 3 · 2^k, and k at least half of the format's digits.
fn is_rounder(unit: &Unit, body: &Body, sum: Value, by: f64) -> bool {
    let digits = match unit.types.float_kind(body.ty(sum)) {
        Some(FloatKind::F64) => 52,
        Some(FloatKind::F32) => 23,
        _ => return false,
    };
    let (size, bits) = (by.abs(), by.abs().to_bits());
    let first_two = bits & ((1 << 51) - 1) == 0;
    first_two && size.is_finite() && size >= 2f64.powi(digits / 2 + 6)
}

/// The number that a constant of binary32 or binary64 holds in every lane.
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
