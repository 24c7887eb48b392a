//! Folding of integer arithmetic, comparisons and conversions.

use crate::scalar::constants::{integer_constant, integer_splat};
use crate::scalar::fold::{has_one_use, negated_operand};
use gradus_ir::externals::{ExternalFn, IntFn};
use gradus_ir::integers::{self, fold_icmp, mask};
use gradus_ir::{BinaryOp, Builder, CastOp, Flags, IntPredicate, Op, OpKind, Type, Value};

/// Folds a binary integer op.
pub(crate) fn fold_binary(b: &mut Builder, op: Op, binary: BinaryOp) -> Option<Value> {
    use BinaryOp::*;
    let (x, y) = (b.body.operand(op, 0), b.body.operand(op, 1));
    let ty = b.body.ty(x);
    let (cx, cy) = (
        integer_splat(b.unit, b.body, x),
        integer_splat(b.unit, b.body, y),
    );
    if let (Some((vx, bits)), Some((vy, _))) = (cx, cy) {
        let value = integers::fold_binary(binary, bits, vx, vy)?;
        return integer_constant(b, ty, value);
    }
    let bits = b.unit.types.int_bits(ty)?;
    let is = |n: u128| cy.is_some_and(|c| c.0 == n);
    match binary {
        Add | Sub | Or | Xor | Shl | LShr | AShr if is(0) => Some(x),
        Mul | UDiv | SDiv if is(1) => Some(x),
        And if is(mask(bits)) => Some(x),
        And | Mul if is(0) => Some(y),
        Or if is(mask(bits)) => Some(y),
        URem | SRem if is(1) => integer_constant(b, ty, 0),
        Add => cancel_constants(b, x, cy?),
        Sub | Xor if x == y => integer_constant(b, ty, 0),
        And | Or if x == y => Some(x),
        Xor if is(1) && bits == 1 => fold_not(b, x),
        Shl | LShr | AShr if cx.is_some_and(|c| c.0 == 0) => Some(x),
        _ => None,
    }
}

/// Returns `n` if `sum` is `n + c` and the added constant equals `-c`.
fn cancel_constants(b: &Builder, sum: Value, (constant, bits): (u128, u32)) -> Option<Value> {
    let op = b.body.def_op(sum)?;
    let before = match b.body.kind(op) {
        OpKind::Binary(BinaryOp::Add) => integer_splat(b.unit, b.body, b.body.operand(op, 1))?,
        _ => return None,
    };
    let nothing = constant.wrapping_add(before.0) & mask(bits) == 0;
    nothing.then(|| b.body.operand(op, 0))
}

/// Rewrites `n < 0 ? 0 : runs`, with `runs` equal to `n + 1` in another form, to use `n + 1`. A loop's trip
/// count has such a form: `(n > 0 ? n : 0) + 1`, or `n + (n != -1)`.
pub(crate) fn normalize_trip_count(
    b: &mut Builder,
    [below, none, runs]: [Value; 3],
) -> Option<Value> {
    use IntPredicate::{Ne, Sgt, Slt};
    let compared = |b: &Builder, truth: Value, predicate: IntPredicate| {
        let op = b.body.def_op(truth)?;
        let number = integer_splat(b.unit, b.body, b.body.operands(op).nth(1)?)?;
        (*b.body.kind(op) == OpKind::ICmp(predicate)).then(|| (b.body.operand(op, 0), number))
    };
    let (last, (zero, bits)) = compared(b, below, Slt)?;
    let sum = b.body.def_op(runs)?;
    let is_sum = *b.body.kind(sum) == OpKind::Binary(BinaryOp::Add);
    if zero != 0 || integer_splat(b.unit, b.body, none) != Some((0, bits)) || !is_sum {
        return None;
    }
    let (x, y) = (b.body.operand(sum, 0), b.body.operand(sum, 1));
    let is_last_or_zero = |b: &Builder, value: Value| {
        let op = b.body.def_op(value)?;
        let parts: Vec<Value> = b.body.operands(op).collect();
        let [above, one, other] = parts[..] else {
            return None;
        };
        let of_last = compared(b, above, Sgt)? == (last, (0, bits)) && one == last;
        let zero = integer_splat(b.unit, b.body, other) == Some((0, bits));
        (*b.body.kind(op) == OpKind::Select && of_last && zero).then_some(())
    };
    let clamped =
        integer_splat(b.unit, b.body, y) == Some((1, bits)) && is_last_or_zero(b, x).is_some();
    let truth = if x == last {
        zero_extended_bool(b, y)
    } else {
        None
    };
    let unless_all = truth.and_then(|t| compared(b, t, Ne)) == Some((last, (mask(bits), bits)));
    if !clamped && !unless_all {
        return None;
    }
    let ty = b.body.ty(last);
    let one = integer_constant(b, ty, 1)?;
    let next = b.binary(BinaryOp::Add, last, one);
    Some(b.select(below, none, next))
}

/// Rewrites `n - 1 == -1 ? 0 : zext(n - 1) + 1` to `zext n`, the trip count form of loops with an unsigned
/// index.
pub(crate) fn normalize_wide_trip_count(
    b: &mut Builder,
    [none_left, none, runs]: [Value; 3],
) -> Option<Value> {
    let parts = |b: &Builder, value: Value, kind: OpKind| {
        let op = b
            .body
            .def_op(value)
            .filter(|op| *b.body.kind(*op) == kind)?;
        let second = b.body.operands(op).nth(1);
        let number = second.and_then(|value| integer_splat(b.unit, b.body, value));
        Some((b.body.operand(op, 0), number))
    };
    let all_ones = |number: Option<(u128, u32)>| number.is_some_and(|(n, bits)| n == mask(bits));
    let (last, end) = parts(b, none_left, OpKind::ICmp(IntPredicate::Eq))?;
    let (count, step) = parts(b, last, OpKind::Binary(BinaryOp::Add))?;
    let (wide, one) = parts(b, runs, OpKind::Binary(BinaryOp::Add))?;
    let (extended, _) = parts(b, wide, OpKind::Cast(CastOp::ZExt))?;
    let zero = integer_splat(b.unit, b.body, none).is_some_and(|(n, _)| n == 0);
    let is_so = zero && all_ones(end) && all_ones(step) && one.is_some_and(|(n, _)| n == 1);
    let ty = b.body.ty(none);
    (is_so && extended == last).then(|| b.cast(CastOp::ZExt, count, ty))
}

/// Returns the negation of a boolean, if the negation replaces the comparison or a previous negation.
fn fold_not(b: &mut Builder, value: Value) -> Option<Value> {
    if let Some(inner) = negated_operand(b, value) {
        return Some(inner);
    }
    if !has_one_use(b, value) {
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

/// Folds a comparison of integers or pointers.
pub(crate) fn fold_comparison(b: &mut Builder, op: Op, predicate: IntPredicate) -> Option<Value> {
    use IntPredicate::*;
    let (x, y) = (b.body.operand(op, 0), b.body.operand(op, 1));
    let truth_type = b.body.ty(b.body.result(op));
    if x == y {
        let truth = matches!(predicate, Eq | Uge | Ule | Sge | Sle);
        return integer_constant(b, truth_type, u128::from(truth));
    }
    let (cx, cy) = (
        integer_splat(b.unit, b.body, x),
        integer_splat(b.unit, b.body, y),
    );
    if let (Some((vx, bits)), Some((vy, _))) = (cx, cy) {
        let truth = fold_icmp(predicate, bits, vx, vy);
        return integer_constant(b, truth_type, u128::from(truth));
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
        return integer_constant(b, truth_type, u128::from(truth));
    }
    // A boolean compared with zero or one is the boolean or its negation.
    let truth = match zero_extended_bool(b, x) {
        Some(inner) => inner,
        None if bits == 1 => x,
        None => return None,
    };
    match (predicate, n) {
        (Ne, 0) | (Eq, 1) => Some(truth),
        (Eq, 0) | (Ne, 1) => {
            let ty = b.body.ty(truth);
            let one = integer_constant(b, ty, 1)?;
            Some(b.binary(BinaryOp::Xor, truth, one))
        }
        _ => None,
    }
}

/// Folds a call of an integer intrinsic: minimum or maximum of equal operands.
pub(crate) fn fold_call(b: &Builder, op: Op) -> Option<Value> {
    let known = b.unit.known_callee(b.body, op);
    let Some(ExternalFn::Integer(IntFn::Smin | IntFn::Smax | IntFn::Umin | IntFn::Umax)) = known
    else {
        return None;
    };
    match b.unit.call_args(b.body, op)[..] {
        [x, y] if x == y => Some(x),
        _ => None,
    }
}

/// Returns the boolean whose zero extension is `value`.
fn zero_extended_bool(b: &Builder, value: Value) -> Option<Value> {
    let op = b.body.def_op(value)?;
    let inner = b.body.operands(op).next()?;
    let bit = b.unit.types.int_bits(b.body.ty(inner)) == Some(1);
    (*b.body.kind(op) == OpKind::Cast(CastOp::ZExt) && bit).then_some(inner)
}

/// Folds a conversion between integers, or a bitcast.
pub(crate) fn fold_cast(b: &mut Builder, op: Op) -> Option<Value> {
    let OpKind::Cast(outer) = *b.body.kind(op) else {
        return None;
    };
    let (x, to) = (b.body.operand(op, 0), b.body.ty(b.body.result(op)));
    let bits = b.unit.types.int_bits(to);
    if let (Some((n, from)), Some(bits)) = (integer_splat(b.unit, b.body, x), bits)
        && let Some(value) = integers::fold_cast(outer, from, bits, n)
        && has_same_lane_count(b, x, op)
    {
        return integer_constant(b, to, value);
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

/// Returns whether operand and result of a conversion have equal numbers of lanes.
fn has_same_lane_count(b: &Builder, x: Value, op: Op) -> bool {
    let lanes = |v: Value| match b.unit.types.get(b.body.ty(v)) {
        Type::Vector { len, .. } => *len,
        _ => 1,
    };
    lanes(x) == lanes(b.body.result(op))
}
