//! Folding of floating-point arithmetic: binary32 and binary64 constants, and identities valid for all values
//! including infinities, signed zeros and NaNs.
//!
//! Results that are NaN or subnormal are not folded: NaN payloads depend on the machine, and subnormals may
//! be flushed.

use crate::scalar::constants::{
    float_bits_splat, float_constant, float_splat, integer_constant, integer_splat,
};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    BinaryOp, Builder, CastOp, Flags, FloatKind, FloatPredicate, Op, OpKind, TypeId, Value,
};

/// Folds a binary floating-point op.
pub(crate) fn fold_binary(b: &mut Builder, op: Op, binary: BinaryOp) -> Option<Value> {
    use BinaryOp::*;
    let (x, y) = (b.body.operand(op, 0), b.body.operand(op, 1));
    let ty = b.body.ty(x);
    let flags = b.body.ops[op].flags;
    if let (Some(vx), Some(vy)) = (
        float_bits_splat(b.unit, b.body, x),
        float_bits_splat(b.unit, b.body, y),
    ) {
        return fold_constants(b, ty, binary, vx, vy);
    }
    let (nx, ny) = (
        float_splat(b.unit, b.body, x),
        float_splat(b.unit, b.body, y),
    );
    let is = |n: Option<f64>, v: f64| n.is_some_and(|n| n.to_bits() == v.to_bits());
    let no_sign = flags.has(Flags::NSZ);
    b.fast_math = flags;
    match binary {
        FAdd if is(ny, -0.0) || (is(ny, 0.0) && no_sign) => Some(x),
        FSub if is(ny, 0.0) || (is(ny, -0.0) && no_sign) => Some(x),
        FMul | FDiv if is(ny, 1.0) => Some(x),
        FMul | FDiv if is(ny, -1.0) => Some(b.fneg(x)),
        FSub if is(nx, -0.0) || (is(nx, 0.0) && no_sign) => Some(b.fneg(y)),
        FAdd => match (negated_operand(b, x), negated_operand(b, y)) {
            (_, Some(inner)) => Some(b.fsub(x, inner)),
            (Some(inner), None) => Some(b.fsub(y, inner)),
            (None, None) => None,
        },
        FSub => {
            let inner = negated_operand(b, y)?;
            Some(match is_planted(Mutant::DoubleMinus) {
                true => b.fsub(x, inner),
                false => b.fadd(x, inner),
            })
        }
        FMul | FDiv => {
            let (x, y) = (negated_operand(b, x)?, negated_operand(b, y)?);
            Some(b.binary(binary, x, y))
        }
        _ => None,
    }
}

/// Returns `v` if `value` is `-v`.
fn negated_operand(b: &Builder, value: Value) -> Option<Value> {
    let op = b.body.def_op(value)?;
    (*b.body.kind(op) == OpKind::FNeg).then(|| b.body.operand(op, 0))
}

fn fold_constants(
    b: &mut Builder,
    ty: TypeId,
    op: BinaryOp,
    (x, kind): (u128, FloatKind),
    (y, _): (u128, FloatKind),
) -> Option<Value> {
    use BinaryOp::*;
    let bits = match kind {
        FloatKind::F64 => {
            let (x, y) = (f64::from_bits(x as u64), f64::from_bits(y as u64));
            let r = match op {
                FAdd => x + y,
                FSub => x - y,
                FMul => x * y,
                FDiv => x / y,
                _ => return None,
            };
            portable_bits_f64(r)?
        }
        FloatKind::F32 => {
            let (x, y) = (f32::from_bits(x as u32), f32::from_bits(y as u32));
            let r = match op {
                FAdd => x + y,
                FSub => x - y,
                FMul => x * y,
                FDiv => x / y,
                _ => return None,
            };
            portable_bits_f32(r)?
        }
        _ => return None,
    };
    float_constant(b, ty, bits)
}

/// Returns the bits of a result that every machine computes equally.
fn portable_bits_f64(r: f64) -> Option<u128> {
    (!r.is_nan() && !r.is_subnormal()).then(|| u128::from(r.to_bits()))
}

fn portable_bits_f32(r: f32) -> Option<u128> {
    (!r.is_nan() && !r.is_subnormal()).then(|| u128::from(r.to_bits()))
}

/// Folds a negation.
pub(crate) fn fold_negation(b: &mut Builder, op: Op) -> Option<Value> {
    let x = b.body.operand(op, 0);
    let ty = b.body.ty(x);
    if let Some((bits, kind)) = float_bits_splat(b.unit, b.body, x) {
        let sign = match kind {
            FloatKind::F64 => 1 << 63,
            FloatKind::F32 => 1 << 31,
            _ => return None,
        };
        return float_constant(b, ty, bits ^ sign);
    }
    if let Some(inner) = negated_operand(b, x) {
        return Some(inner);
    }
    // `-(a - b)` equals `b - a` only without signed zeros.
    let maker = b.body.def_op(x)?;
    let flags = b.body.ops[op].flags;
    if *b.body.kind(maker) == OpKind::Binary(BinaryOp::FSub)
        && flags.has(Flags::NSZ)
        && crate::scalar::fold::has_one_use(b, x)
    {
        let (p, q) = (b.body.operand(maker, 0), b.body.operand(maker, 1));
        b.fast_math = flags.and(b.body.ops[maker].flags);
        return Some(b.fsub(q, p));
    }
    None
}

/// Folds a comparison.
pub(crate) fn fold_comparison(b: &mut Builder, op: Op, predicate: FloatPredicate) -> Option<Value> {
    use FloatPredicate::*;
    let truth_type = b.body.ty(b.body.result(op));
    let (x, y) = (b.body.operand(op, 0), b.body.operand(op, 1));
    let truth = match (
        predicate,
        float_splat(b.unit, b.body, x),
        float_splat(b.unit, b.body, y),
    ) {
        (False, ..) => false,
        (True, ..) => true,
        (_, Some(x), Some(y)) => evaluate_comparison(predicate, x, y),
        _ => return None,
    };
    integer_constant(b, truth_type, u128::from(truth))
}

/// Returns whether a comparison of two constants holds.
fn evaluate_comparison(predicate: FloatPredicate, x: f64, y: f64) -> bool {
    use FloatPredicate::*;
    let unordered = x.is_nan() || y.is_nan();
    match predicate {
        False => false,
        True => true,
        Oeq => x == y,
        Ogt => x > y,
        Oge => x >= y,
        Olt => x < y,
        Ole => x <= y,
        One => !unordered && x != y,
        Ord => !unordered,
        Uno => unordered,
        Ueq => unordered || x == y,
        Ugt => unordered || x > y,
        Uge => unordered || x >= y,
        Ult => unordered || x < y,
        Ule => unordered || x <= y,
        Une => x != y,
    }
}

/// Folds a conversion to a floating-point type.
pub(crate) fn fold_cast(b: &mut Builder, op: Op) -> Option<Value> {
    let OpKind::Cast(cast) = *b.body.kind(op) else {
        return None;
    };
    let (x, to) = (b.body.operand(op, 0), b.body.ty(b.body.result(op)));
    let kind = b.unit.types.float_kind(to)?;
    let value = match cast {
        CastOp::FPExt | CastOp::FPTrunc => float_splat(b.unit, b.body, x)?,
        CastOp::SIToFP | CastOp::UIToFP => {
            let (n, bits) = integer_splat(b.unit, b.body, x).filter(|c| c.1 <= 64)?;
            let n = match cast {
                CastOp::UIToFP => n as i128,
                _ => (n << (128 - bits)) as i128 >> (128 - bits),
            };
            // Rounds once if binary64 represents the integer exactly.
            let exact = n as f64;
            if exact as i128 != n {
                return None;
            }
            exact
        }
        _ => return None,
    };
    let bits = match kind {
        FloatKind::F64 => portable_bits_f64(value)?,
        FloatKind::F32 => portable_bits_f32(value as f32)?,
        _ => return None,
    };
    float_constant(b, to, bits)
}
