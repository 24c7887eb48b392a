//! Folding of integer arithmetic, comparisons and conversions.

use crate::fold::{negated, used_once};
use crate::literals::{integer, integer_of};
use gradus_ir::integers::{fold_binary, fold_cast, fold_icmp, mask};
use gradus_ir::{BinaryOp, Builder, CastOp, Flags, IntPredicate, Op, OpKind, Type, Value};

/// What a binary integer op gives.
pub(crate) fn binary(b: &mut Builder, op: Op, binary: BinaryOp) -> Option<Value> {
    use BinaryOp::*;
    let (x, y) = (b.body.operand(op, 0), b.body.operand(op, 1));
    let ty = b.body.ty(x);
    let (cx, cy) = (integer(b.unit, b.body, x), integer(b.unit, b.body, y));
    if let (Some((vx, bits)), Some((vy, _))) = (cx, cy) {
        let value = fold_binary(binary, bits, vx, vy)?;
        return integer_of(b, ty, value);
    }
    let bits = b.unit.types.int_bits(ty)?;
    let is = |n: u128| cy.is_some_and(|c| c.0 == n);
    match binary {
        Add | Sub | Or | Xor | Shl | LShr | AShr if is(0) => Some(x),
        Mul | UDiv | SDiv if is(1) => Some(x),
        And if is(mask(bits)) => Some(x),
        And | Mul if is(0) => Some(y),
        Or if is(mask(bits)) => Some(y),
        URem | SRem if is(1) => integer_of(b, ty, 0),
        Sub | Xor if x == y => integer_of(b, ty, 0),
        And | Or if x == y => Some(x),
        Xor if is(1) && bits == 1 => not(b, x),
        Shl | LShr | AShr if cx.is_some_and(|c| c.0 == 0) => Some(x),
        _ => None,
    }
}

/// The negation of a truth value, where that needs no further op.
fn not(b: &mut Builder, value: Value) -> Option<Value> {
    if let Some(inner) = negated(b, value) {
        return Some(inner);
    }
    if !used_once(b, value) {
        return None;
    }
    let op = b.body.def_op(value)?;
    let (kind, flags) = (b.body.kind(op).clone(), b.body.ops[op].flags);
    let (x, y) = (b.body.operands(op).next()?, b.body.operands(op).nth(1)?);
    let turned = match kind {
        OpKind::ICmp(p) => b.icmp(p.inverse(), x, y),
        OpKind::FCmp(p) => b.fcmp(p.inverse(), x, y),
        _ => return None,
    };
    b.set_flags(turned, flags);
    Some(turned)
}

/// What a comparison of integers or pointers gives.
pub(crate) fn comparison(b: &mut Builder, op: Op, predicate: IntPredicate) -> Option<Value> {
    use IntPredicate::*;
    let (x, y) = (b.body.operand(op, 0), b.body.operand(op, 1));
    let truth_type = b.body.ty(b.body.result(op));
    if x == y {
        let truth = matches!(predicate, Eq | Uge | Ule | Sge | Sle);
        return integer_of(b, truth_type, u128::from(truth));
    }
    let (cx, cy) = (integer(b.unit, b.body, x), integer(b.unit, b.body, y));
    if let (Some((vx, bits)), Some((vy, _))) = (cx, cy) {
        let truth = fold_icmp(predicate, bits, vx, vy);
        return integer_of(b, truth_type, u128::from(truth));
    }
    let (n, bits) = cy?;
    let always = match predicate {
        Uge if n == 0 => Some(true),
        Ult if n == 0 => Some(false),
        Ule if n == mask(bits) => Some(true),
        Ugt if n == mask(bits) => Some(false),
        _ => None,
    };
    if let Some(truth) = always {
        return integer_of(b, truth_type, u128::from(truth));
    }
    // A truth value compared with zero, or with one, is itself or its negation.
    let truth = match extended_truth(b, x) {
        Some(inner) => inner,
        None if bits == 1 => x,
        None => return None,
    };
    match (predicate, n) {
        (Ne, 0) | (Eq, 1) => Some(truth),
        (Eq, 0) | (Ne, 1) => {
            let ty = b.body.ty(truth);
            let one = integer_of(b, ty, 1)?;
            Some(b.binary(BinaryOp::Xor, truth, one))
        }
        _ => None,
    }
}

/// The truth value of which `value` is the zero-extension.
fn extended_truth(b: &Builder, value: Value) -> Option<Value> {
    let op = b.body.def_op(value)?;
    let inner = b.body.operands(op).next()?;
    let bit = b.unit.types.int_bits(b.body.ty(inner)) == Some(1);
    (*b.body.kind(op) == OpKind::Cast(CastOp::ZExt) && bit).then_some(inner)
}

/// What a conversion between integers, or between bits, gives.
pub(crate) fn cast(b: &mut Builder, op: Op) -> Option<Value> {
    let OpKind::Cast(outer) = *b.body.kind(op) else {
        return None;
    };
    let (x, to) = (b.body.operand(op, 0), b.body.ty(b.body.result(op)));
    let bits = b.unit.types.int_bits(to);
    if let (Some((n, from)), Some(bits)) = (integer(b.unit, b.body, x), bits)
        && let Some(value) = fold_cast(outer, from, bits, n)
        && same_lanes(b, x, op)
    {
        return integer_of(b, to, value);
    }
    let maker = b.body.def_op(x)?;
    let OpKind::Cast(inner) = *b.body.kind(maker) else {
        return None;
    };
    let source = b.body.operand(maker, 0);
    let flags = b.body.ops[maker].flags;
    let back = b.body.ty(source) == to;
    match (outer, inner) {
        (CastOp::BitCast, CastOp::BitCast) if back => Some(source),
        (CastOp::Trunc, CastOp::ZExt | CastOp::SExt) if back => Some(source),
        (CastOp::SExt, CastOp::Trunc) if back && flags.has(Flags::NSW) => Some(source),
        (CastOp::ZExt, CastOp::Trunc) if back && flags.has(Flags::NUW) => Some(source),
        (CastOp::ZExt, CastOp::ZExt) | (CastOp::SExt, CastOp::SExt | CastOp::ZExt) => {
            Some(b.cast(inner, source, to))
        }
        _ => None,
    }
}

/// Whether operand and result of a conversion have the same number of lanes.
fn same_lanes(b: &Builder, x: Value, op: Op) -> bool {
    let lanes = |v: Value| match b.unit.types.get(b.body.ty(v)) {
        Type::Vector { len, .. } => *len,
        _ => 1,
    };
    lanes(x) == lanes(b.body.result(op))
}
