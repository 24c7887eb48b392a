//! Arithmetic and comparisons on scalars and vectors, with poison and undefined bits.
//!
//! A poison operand makes the result poison. Bitwise operations, and shifts by a known amount, propagate
//! undefined bits individually. Any other operation on undefined bits yields a fully undefined result.

use crate::trap::{Eval, TrapKind, fault};
use crate::values::float::{from_f64, to_f64};
use crate::values::value::Value;
use crate::values::value_layout::Num;
use gradus_ir::{BinaryOp, Flags, FloatKind, FloatPredicate, IntPredicate, ReduceOp, RmwOp};
use std::ops::{Add, Div, Mul, Rem, Sub};

/// Applies `f` lane by lane, or to the scalar if `lanes` is `None`.
pub(crate) fn zip_lanes(
    lanes: Option<usize>,
    a: &Value,
    b: &Value,
    mut f: impl FnMut(&Value, &Value) -> Eval<Value>,
) -> Eval<Value> {
    match lanes {
        None => f(a, b),
        Some(len) => {
            let lanes = (0..len).map(|i| f(&a.lane(i), &b.lane(i)));
            Ok(Value::Elements(lanes.collect::<Eval<_>>()?))
        }
    }
}

/// Applies `f` lane by lane, or to the scalar if `lanes` is `None`.
pub(crate) fn map_lanes(
    lanes: Option<usize>,
    a: &Value,
    f: impl Fn(&Value) -> Eval<Value>,
) -> Eval<Value> {
    zip_lanes(lanes, a, a, |a, _| f(a))
}

/// Evaluates `a op b` on operands of one type.
pub(crate) fn binary(op: BinaryOp, num: Num, flags: Flags, a: &Value, b: &Value) -> Eval<Value> {
    match (num, a, b) {
        (Num::Float(kind), Value::Bits(a), Value::Bits(b)) => float_binary(op, kind, flags, *a, *b),
        (Num::Int(bits), Value::Bits(a), Value::Bits(b)) => {
            int_binary(op, bits, flags, u128::from(*a), u128::from(*b))
        }
        (Num::Int(bits), ..) => match (a.wide(), b.wide()) {
            (Some(a), Some(b)) => int_binary(op, bits, flags, a, b),
            _ => undefined_binary(op, bits, a, b),
        },
        (Num::Float(_), Value::Poison, _) | (Num::Float(_), _, Value::Poison) => Ok(Value::Poison),
        (Num::Float(_), Value::Wide(_), _) | (Num::Float(_), _, Value::Wide(_)) => {
            fault(TrapKind::Unsupported, "arithmetic wider than binary64")
        }
        _ => Ok(Value::UNDEF),
    }
}

/// Sign-extends the lowest `bits` bits of `n`.
pub(crate) fn signed(bits: u32, n: u128) -> i128 {
    ((n << (128 - bits)) as i128) >> (128 - bits)
}

/// Returns the mask of the lowest `bits` bits.
pub(crate) fn mask(bits: u32) -> u128 {
    u128::MAX >> (128 - bits)
}

fn is_division(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, UDiv | SDiv | URem | SRem)
}

fn int_binary(op: BinaryOp, bits: u32, flags: Flags, a: u128, b: u128) -> Eval<Value> {
    use BinaryOp::*;
    let (sa, sb) = (signed(bits, a), signed(bits, b));
    if is_division(op) {
        if b == 0 {
            return fault(TrapKind::Division, "division by zero");
        }
        if matches!(op, SDiv | SRem) && sb == -1 && sa == signed(bits, 1 << (bits - 1)) {
            return fault(TrapKind::Division, "signed division overflow");
        }
    }
    let shift = b as u32;
    if matches!(op, Shl | LShr | AShr) && b >= u128::from(bits) {
        return Ok(Value::Poison);
    }
    let all = mask(bits);
    let result = match op {
        Add => a.wrapping_add(b),
        Sub => a.wrapping_sub(b),
        Mul => a.wrapping_mul(b),
        UDiv => a / b,
        URem => a % b,
        SDiv => (sa / sb) as u128,
        SRem => (sa % sb) as u128,
        Shl => a << shift,
        LShr => a >> shift,
        AShr => (sa >> shift) as u128,
        And => a & b,
        Or => a | b,
        Xor => a ^ b,
        FAdd | FSub | FMul | FDiv | FRem => {
            return fault(TrapKind::BadCall, "floating-point arithmetic on integers");
        }
    } & all;
    if flags != Flags::NONE && violates_flags(op, bits, flags, (a, b), result) {
        return Ok(Value::Poison);
    }
    Ok(Value::number(bits, result))
}

/// Returns whether the operation violates one of the poison-generating flags.
fn violates_flags(op: BinaryOp, bits: u32, flags: Flags, ab: (u128, u128), result: u128) -> bool {
    use BinaryOp::*;
    let (a, b) = ab;
    let (sa, sb) = (signed(bits, a), signed(bits, b));
    let fits_signed =
        |n: Option<i128>| n.is_some_and(|n| n == signed(bits, n as u128 & mask(bits)));
    let fits = |n: Option<u128>| n.is_some_and(|n| n <= mask(bits));
    let nsw = flags.has(Flags::NSW)
        && !match op {
            Add => fits_signed(sa.checked_add(sb)),
            Sub => fits_signed(sa.checked_sub(sb)),
            Mul => fits_signed(sa.checked_mul(sb)),
            Shl => signed(bits, result) >> b as u32 == sa,
            _ => true,
        };
    let nuw = flags.has(Flags::NUW)
        && !match op {
            Add => fits(a.checked_add(b)),
            Sub => a >= b,
            Mul => fits(a.checked_mul(b)),
            Shl => result >> b as u32 == a,
            _ => true,
        };
    let exact = flags.has(Flags::EXACT)
        && !match op {
            UDiv => a % b == 0,
            SDiv => sa % sb == 0,
            LShr | AShr => result << b as u32 & mask(bits) == a,
            _ => true,
        };
    nsw || nuw || exact || (flags.has(Flags::DISJOINT) && a & b != 0)
}

/// Evaluates integer arithmetic with a partially or fully undefined operand.
fn undefined_binary(op: BinaryOp, bits: u32, a: &Value, b: &Value) -> Eval<Value> {
    use BinaryOp::*;
    if is_division(op) && b.wide().is_none() {
        return fault(TrapKind::Undefined, "division by an undefined value");
    }
    if matches!((a, b), (Value::Poison, _) | (_, Value::Poison)) {
        return Ok(Value::Poison);
    }
    if bits > 64 {
        return Ok(Value::UNDEF);
    }
    let (x, mx) = known_and_undefined_bits(bits, a);
    let (y, my) = known_and_undefined_bits(bits, b);
    let all = mask(bits) as u64;
    let shift = y as u32;
    let by_known = my == 0 && shift < bits;
    let (value, unknown) = match op {
        And => (x & y, (mx | my) & (x | mx) & (y | my)),
        Or => (x | y, (mx & !y) | (my & !x)),
        Xor => (x ^ y, mx | my),
        Shl if by_known => (x << shift, mx << shift),
        LShr if by_known => (x >> shift, mx >> shift),
        _ => (0, all),
    };
    Ok(with_undefined_bits(bits, value, unknown))
}

/// Returns the known bits and the mask of undefined bits.
pub(crate) fn known_and_undefined_bits(bits: u32, value: &Value) -> (u64, u64) {
    let all = mask(bits.min(64)) as u64;
    match value {
        Value::Bits(bits) => (*bits, 0),
        Value::Undef { bits, mask } => (*bits & all, *mask & all),
        _ => (0, all),
    }
}

/// Returns a number with undefined bits.
pub(crate) fn with_undefined_bits(bits: u32, value: u64, unknown: u64) -> Value {
    let all = mask(bits.min(64)) as u64;
    match unknown & all {
        0 => Value::Bits(value & all),
        unknown if unknown == all => Value::UNDEF,
        unknown => Value::Undef {
            bits: value & all & !unknown,
            mask: unknown,
        },
    }
}

// ---- floating point ------------------------------------------------------------------------

fn float_binary(op: BinaryOp, kind: FloatKind, flags: Flags, a: u64, b: u64) -> Eval<Value> {
    if kind == FloatKind::F64 {
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        let r = float_op(op, x, y)?;
        return Ok(apply_fast_math_flags(flags, &[x, y], r, r.to_bits()));
    }
    if kind == FloatKind::F32 {
        let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        let r = float_op(op, x, y)?;
        let bits = u64::from(r.to_bits());
        return Ok(apply_fast_math_flags(
            flags,
            &[f64::from(x), f64::from(y)],
            f64::from(r),
            bits,
        ));
    }
    // For 16-bit formats binary64 has more than 2p + 2 bits: rounding twice equals rounding once.
    let (x, y) = (to_f64(kind, a)?, to_f64(kind, b)?);
    let r = float_op(op, x, y)?;
    Ok(apply_fast_math_flags(flags, &[x, y], r, from_f64(kind, r)?))
}

fn float_op<T>(op: BinaryOp, x: T, y: T) -> Eval<T>
where
    T: Add<Output = T> + Sub<Output = T> + Mul<Output = T> + Div<Output = T> + Rem<Output = T>,
{
    match float_value(op, x, y) {
        Some(result) => Ok(result),
        None => fault(
            TrapKind::BadCall,
            "integer arithmetic on floating-point numbers",
        ),
    }
}

/// Returns `x op y` in the format `T`; `None` for an operation on integers.
pub fn float_value<T>(op: BinaryOp, x: T, y: T) -> Option<T>
where
    T: Add<Output = T> + Sub<Output = T> + Mul<Output = T> + Div<Output = T> + Rem<Output = T>,
{
    use BinaryOp::*;
    Some(match op {
        FAdd => x + y,
        FSub => x - y,
        FMul => x * y,
        FDiv => x / y,
        FRem => x % y,
        Add | Sub | Mul | UDiv | SDiv | URem | SRem | Shl | LShr | AShr | And | Or | Xor => {
            return None;
        }
    })
}

/// Returns a result, or poison if the result or an operand violates `nnan` or `ninf`.
pub(crate) fn apply_fast_math_flags(
    flags: Flags,
    operands: &[f64],
    result: f64,
    bits: u64,
) -> Value {
    if flags == Flags::NONE {
        return Value::Bits(bits);
    }
    let any = |test: fn(f64) -> bool| test(result) || operands.iter().any(|x| test(*x));
    if (flags.has(Flags::NNAN) && any(f64::is_nan))
        || (flags.has(Flags::NINF) && any(f64::is_infinite))
    {
        return Value::Poison;
    }
    Value::Bits(bits)
}

/// Evaluates `−a`: flips the sign bit of any number, NaN included.
pub(crate) fn negate(num: Num, flags: Flags, a: &Value) -> Eval<Value> {
    let sign = num.bits() - 1;
    match (num, a) {
        (Num::Float(kind), Value::Bits(bits)) => {
            let result = bits ^ 1 << sign;
            match flags {
                Flags::NONE => Ok(Value::Bits(result)),
                _ => Ok(apply_fast_math_flags(
                    flags,
                    &[],
                    to_f64(kind, result)?,
                    result,
                )),
            }
        }
        (_, Value::Wide(bits)) => Ok(Value::Wide(Box::new(**bits ^ 1 << sign))),
        (_, other) => Ok(other.clone()),
    }
}

// ---- comparisons ---------------------------------------------------------------------------

/// Compares integers or addresses.
pub(crate) fn int_compare(
    predicate: IntPredicate,
    bits: u32,
    same_sign: bool,
    a: &Value,
    b: &Value,
) -> Value {
    use IntPredicate::*;
    let (Some(x), Some(y)) = (a.wide(), b.wide()) else {
        return match (a, b) {
            (Value::Poison, _) | (_, Value::Poison) => Value::Poison,
            _ => Value::UNDEF,
        };
    };
    let (sx, sy) = (signed(bits, x), signed(bits, y));
    if same_sign && (sx < 0) != (sy < 0) {
        return Value::Poison;
    }
    Value::bool(match predicate {
        Eq => x == y,
        Ne => x != y,
        Ugt => x > y,
        Uge => x >= y,
        Ult => x < y,
        Ule => x <= y,
        Sgt => sx > sy,
        Sge => sx >= sy,
        Slt => sx < sy,
        Sle => sx <= sy,
    })
}

/// Compares floating-point numbers.
pub(crate) fn float_compare(
    predicate: FloatPredicate,
    kind: FloatKind,
    flags: Flags,
    a: &Value,
    b: &Value,
) -> Eval<Value> {
    use FloatPredicate::*;
    let (Value::Bits(a), Value::Bits(b)) = (a, b) else {
        return match (a, b) {
            (Value::Poison, _) | (_, Value::Poison) => Ok(Value::Poison),
            (Value::Wide(_), _) | (_, Value::Wide(_)) => {
                fault(TrapKind::Unsupported, "arithmetic wider than binary64")
            }
            _ => Ok(Value::UNDEF),
        };
    };
    let (x, y) = (to_f64(kind, *a)?, to_f64(kind, *b)?);
    let unordered = x.is_nan() || y.is_nan();
    let holds = match predicate {
        False => false,
        True => true,
        Ord => !unordered,
        Uno => unordered,
        Oeq => x == y,
        Ogt => x > y,
        Oge => x >= y,
        Olt => x < y,
        Ole => x <= y,
        One => !unordered && x != y,
        Ueq => unordered || x == y,
        Ugt => unordered || x > y,
        Uge => unordered || x >= y,
        Ult => unordered || x < y,
        Ule => unordered || x <= y,
        Une => unordered || x != y,
    };
    Ok(apply_fast_math_flags(flags, &[x, y], 0.0, u64::from(holds)))
}

// ---- combinations --------------------------------------------------------------------------

/// Evaluates `old op new` of a reduction.
pub(crate) fn apply_reduction(op: ReduceOp, num: Num, old: &Value, new: &Value) -> Eval<Value> {
    let arith = |op| binary(op, num, Flags::NONE, old, new);
    let both = |op| apply_rmw(op, num, old, new);
    match op {
        ReduceOp::Add => arith(BinaryOp::Add),
        ReduceOp::Mul => arith(BinaryOp::Mul),
        ReduceOp::And => arith(BinaryOp::And),
        ReduceOp::Or => arith(BinaryOp::Or),
        ReduceOp::Xor => arith(BinaryOp::Xor),
        ReduceOp::FAdd => arith(BinaryOp::FAdd),
        ReduceOp::FMul => arith(BinaryOp::FMul),
        ReduceOp::Max => both(RmwOp::Max),
        ReduceOp::Min => both(RmwOp::Min),
        ReduceOp::UMax => both(RmwOp::UMax),
        ReduceOp::UMin => both(RmwOp::UMin),
        ReduceOp::FMax => both(RmwOp::FMax),
        ReduceOp::FMin => both(RmwOp::FMin),
        ReduceOp::FMaximum => both(RmwOp::FMaximum),
        ReduceOp::FMinimum => both(RmwOp::FMinimum),
        // The op's combiner region has already combined.
        ReduceOp::Custom => Ok(new.clone()),
    }
}

/// Evaluates `old op new` of an atomic read-modify-write.
pub(crate) fn apply_rmw(op: RmwOp, num: Num, old: &Value, new: &Value) -> Eval<Value> {
    use RmwOp::*;
    let arith = |op| binary(op, num, Flags::NONE, old, new);
    let bits = num.bits();
    let choose = |predicate| match int_compare(predicate, bits, false, old, new) {
        Value::Bits(1) => old.clone(),
        Value::Bits(_) => new.clone(),
        other => other,
    };
    match op {
        Xchg => Ok(new.clone()),
        Add => arith(BinaryOp::Add),
        Sub => arith(BinaryOp::Sub),
        And => arith(BinaryOp::And),
        Or => arith(BinaryOp::Or),
        Xor => arith(BinaryOp::Xor),
        FAdd => arith(BinaryOp::FAdd),
        FSub => arith(BinaryOp::FSub),
        Nand => {
            let both = arith(BinaryOp::And)?;
            let ones = Value::number(bits, mask(bits));
            binary(BinaryOp::Xor, num, Flags::NONE, &both, &ones)
        }
        Max => Ok(choose(IntPredicate::Sgt)),
        Min => Ok(choose(IntPredicate::Slt)),
        UMax => Ok(choose(IntPredicate::Ugt)),
        UMin => Ok(choose(IntPredicate::Ult)),
        FMax | FMin | FMaximum | FMinimum => float_min_max(op, num, old, new),
        UIncWrap | UDecWrap | USubCond | USubSat => match (old.wide(), new.wide()) {
            (Some(a), Some(b)) => Ok(Value::number(bits, wrapping_step(op, a, b))),
            _ => Ok(Value::UNDEF),
        },
    }
}

fn wrapping_step(op: RmwOp, a: u128, b: u128) -> u128 {
    match op {
        RmwOp::UIncWrap => {
            if a >= b {
                0
            } else {
                a + 1
            }
        }
        RmwOp::UDecWrap => {
            if a == 0 || a > b {
                b
            } else {
                a - 1
            }
        }
        RmwOp::USubCond => {
            if a >= b {
                a - b
            } else {
                a
            }
        }
        _ => a.saturating_sub(b),
    }
}

fn float_min_max(op: RmwOp, num: Num, a: &Value, b: &Value) -> Eval<Value> {
    let (Num::Float(kind), Value::Bits(x), Value::Bits(y)) = (num, a, b) else {
        return match (a, b) {
            (Value::Poison, _) | (_, Value::Poison) => Ok(Value::Poison),
            _ => Ok(Value::UNDEF),
        };
    };
    let (x, y) = (to_f64(kind, *x)?, to_f64(kind, *y)?);
    let r = match op {
        RmwOp::FMax => x.max(y),
        RmwOp::FMin => x.min(y),
        RmwOp::FMaximum => maximum(x, y),
        _ => -maximum(-x, -y),
    };
    Ok(Value::Bits(from_f64(kind, r)?))
}

/// Returns the maximum with +0 > −0; NaN if an operand is NaN.
pub(crate) fn maximum(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        f64::NAN
    } else if x == y {
        if x.is_sign_negative() { y } else { x }
    } else if x > y {
        x
    } else {
        y
    }
}
