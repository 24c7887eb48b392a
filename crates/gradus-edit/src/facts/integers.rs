//! Builders for integer ops that fold constant and identity operands.

use gradus_ir::integers::{fold_binary, fold_cast, fold_icmp, int_value};
use gradus_ir::{BinaryOp, Builder, CastOp, IntPredicate, TypeId, Value};

fn int_constant(b: &mut Builder, ty: TypeId, value: u128) -> Value {
    b.int(ty, value as i128)
}

/// Emits `x op y` on scalar integers; folds two constants and an identity element.
pub(crate) fn fold_or_binary(b: &mut Builder, op: BinaryOp, x: Value, y: Value) -> Value {
    use BinaryOp::{Add, Mul, Sub, UDiv};
    let ty = b.body.ty(x);
    let (cx, cy) = (int_value(b.unit, b.body, x), int_value(b.unit, b.body, y));
    if let (Some((vx, bits)), Some((vy, _))) = (cx, cy)
        && let Some(result) = fold_binary(op, bits, vx, vy)
    {
        return int_constant(b, ty, result);
    }
    let zero = |c: Option<(u128, u32)>| c.is_some_and(|c| c.0 == 0);
    let one = |c: Option<(u128, u32)>| c.is_some_and(|c| c.0 == 1);
    match op {
        Add | Sub if zero(cy) => x,
        Add if zero(cx) => y,
        Sub if x == y => b.int(ty, 0),
        Mul | UDiv if one(cy) => x,
        Mul if one(cx) => y,
        Mul if zero(cx) || zero(cy) => b.int(ty, 0),
        _ => b.binary(op, x, y),
    }
}

/// Emits `x predicate y` on scalar integers or pointers; folds if both operands are constant.
pub(crate) fn fold_or_icmp(b: &mut Builder, predicate: IntPredicate, x: Value, y: Value) -> Value {
    let (cx, cy) = (int_value(b.unit, b.body, x), int_value(b.unit, b.body, y));
    if let (Some((vx, bits)), Some((vy, _))) = (cx, cy) {
        return b.bool(fold_icmp(predicate, bits, vx, vy));
    }
    b.icmp(predicate, x, y)
}

/// Emits a conversion of a scalar integer; folds a constant.
pub(crate) fn fold_or_cast(b: &mut Builder, op: CastOp, x: Value, ty: TypeId) -> Value {
    let to = b.unit.types.int_bits(ty);
    if let (Some((value, from)), Some(to)) = (int_value(b.unit, b.body, x), to)
        && let Some(result) = fold_cast(op, from, to, value)
    {
        return int_constant(b, ty, result);
    }
    b.cast(op, x, ty)
}

/// Emits `c ? x : y`; folds a constant `c` and equal arms.
pub(crate) fn fold_or_select(b: &mut Builder, c: Value, x: Value, y: Value) -> Value {
    match int_value(b.unit, b.body, c) {
        _ if x == y => x,
        Some((0, _)) => y,
        Some(_) => x,
        None => b.select(c, x, y),
    }
}
