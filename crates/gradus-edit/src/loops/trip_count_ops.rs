//! Trip count of a counted loop, as ops.
//!
//! With `t(j) = first + j · step`, `count(first)` is the number of leading `t(0), t(1), …` that satisfy `t
//! predicate bound`. A test at the top executes `count(start + offset)` iterations, a test at the bottom `1 +
//! count(start + offset)`. If the bottom tests the next value and a guard implies `start predicate bound`,
//! the latter equals `count(start)`.
//!
//! `count` is a quotient of a difference. The quotient is correct in modular arithmetic if `t` reaches the
//! bound before `t` wraps. Sufficient conditions are:
//!
//! - a step of one with a strict bound or `ne`;
//! - a flag (NSW, NUW) whose violation would be undefined behaviour at the test;
//! - a bound far enough from the end of the type.
//!
//! Other loops are not counted.

use crate::facts::implied_conditions::{Comparison, ImpliedBy, implied_by};
use crate::facts::integers;
use crate::loops::induction::Test;
use gradus_ir::integers::{int_value, mask, signed};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Flags, IntPredicate, Op, OpKind, Region, TypeId, Unit, Value,
};

/// Position of the test in the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestPosition {
    Top,
    Bottom,
}

/// Trip count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TripCount {
    /// Trip count, an `i64` interpreted as unsigned.
    pub value: Value,
    /// Upper bound of the trip count.
    pub max: u128,
    /// True if the trip count is a quotient of a difference of two unknown numbers. LLVM's cost models
    /// consider such a division too expensive for short loops.
    pub is_quotient: bool,
    /// The `if` whose condition implies at least one iteration.
    pub guard: Option<Op>,
}

/// Emits the trip count at the builder's insertion point, which must precede the loop in `outside`. `leaves`
/// states whether an iteration may exit other than by the test.
pub(crate) fn emit_trip_count(
    b: &mut Builder,
    test: &Test,
    place: TestPosition,
    outside: Region,
    leaves: bool,
) -> Option<TripCount> {
    let shape = Approach::of(test)?;
    if !reaches_bound(b.unit, b.body, test, shape, leaves) {
        return None;
    }
    let start = cast_start(b, test);
    let at_next = place == TestPosition::Bottom && test.offset == test.step;
    let promised = test.predicate == IntPredicate::Ne && test.flags != Flags::NONE && !leaves;
    if at_next {
        let claim = Comparison::new(test.predicate, start, test.bound);
        let by = implied_by(b.unit, b.body, outside, claim);
        // Without a guard, the value would have to wrap before reaching the bound.
        if by.is_some() || promised {
            let count = emit_count(b, test, shape, start)?;
            let guard = match by {
                Some(ImpliedBy::If(op)) => Some(op),
                _ => None,
            };
            return Some(TripCount {
                value: count.value,
                max: count.max,
                is_quotient: count.is_quotient,
                guard,
            });
        }
    }
    let first = plus_offset(b, test, start);
    let claim = Comparison::new(test.predicate, first, test.bound);
    let by = implied_by(b.unit, b.body, outside, claim);
    let PartialCount {
        mut value,
        mut max,
        is_quotient,
    } = emit_count(b, test, shape, first)?;
    if by.is_none() && shape != Approach::Hit {
        let some = integers::fold_or_icmp(b, test.predicate, first, test.bound);
        let none = b.i64(0);
        value = integers::fold_or_select(b, some, value, none);
    }
    if place == TestPosition::Bottom {
        // A value without wrapping covers at most half of the number circle in any feasible time.
        if promised {
            max = max.min(i64::MAX as u128);
        }
        value = increment_saturating(b, value, max);
        max = (max + 1).min(u128::from(u64::MAX));
    }
    let guard = match by {
        Some(ImpliedBy::If(op)) => Some(op),
        _ => None,
    };
    Some(TripCount {
        value,
        max,
        is_quotient,
        guard,
    })
}

/// How the induction approaches the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Approach {
    /// Until the bound is reached.
    Strict,
    /// Until the bound is passed.
    Inclusive,
    /// Until the induction equals the bound.
    Hit,
}

impl Approach {
    fn of(test: &Test) -> Option<Approach> {
        use IntPredicate::*;
        match (test.predicate, test.step > 0) {
            (Ne, _) => Some(Approach::Hit),
            (Slt | Ult, true) | (Sgt | Ugt, false) => Some(Approach::Strict),
            (Sle | Ule, true) | (Sge | Uge, false) => Some(Approach::Inclusive),
            _ => None,
        }
    }
}

/// Returns whether `t` reaches the bound before wrapping, or else the program has undefined behaviour.
fn reaches_bound(unit: &Unit, body: &Body, test: &Test, shape: Approach, leaves: bool) -> bool {
    let distance = i128::from(test.step.unsigned_abs());
    let reads_signed = test.predicate.is_signed();
    if test.pointer && reads_signed {
        return false;
    }
    let needed = if reads_signed { Flags::NSW } else { Flags::NUW };
    let beyond = match shape {
        Approach::Hit if distance == 1 => return true,
        Approach::Hit => {
            let promised = test.flags != Flags::NONE && !leaves;
            return promised
                || step_divides_distance(unit, body, test)
                || step_divides_modulo(unit, body, test);
        }
        Approach::Strict => distance - 1,
        Approach::Inclusive => distance,
    };
    if beyond == 0 || test.flags.has(needed) {
        return true;
    }
    if test.pointer {
        return false;
    }
    let (low, high) = value_range(unit, body, test.bound, reads_signed);
    let (lowest, highest) = type_limits(test.bits, reads_signed);
    if test.step > 0 {
        high <= highest - beyond
    } else {
        low >= lowest + beyond
    }
}

/// Returns whether the distance between two constants is a multiple of the step.
fn step_divides_distance(unit: &Unit, body: &Body, test: &Test) -> bool {
    let (Some((start, _)), Some((bound, _))) = (
        int_value(unit, body, test.start),
        int_value(unit, body, test.bound),
    ) else {
        return false;
    };
    let first = signed(start, test.bits) + i128::from(test.offset);
    let gap = signed(bound, test.bits) - first;
    let (lowest, highest) = type_limits(test.bits, true);
    test.cast.is_none()
        && (lowest..=highest).contains(&first)
        && gap % i128::from(test.step) == 0
        && gap / i128::from(test.step) >= 0
}

/// Returns whether a power-of-two step divides both start and bound. The induction then hits the bound in the
/// first round of modular arithmetic, after the modular distance divided by the step.
fn step_divides_modulo(unit: &Unit, body: &Body, test: &Test) -> bool {
    let step = test.step.unsigned_abs();
    let needed = step.trailing_zeros();
    step.is_power_of_two()
        && !test.pointer
        && test.cast.is_none()
        && test.offset.trailing_zeros() >= needed
        && trailing_zeros_min(unit, body, test.start) >= needed
        && trailing_zeros_min(unit, body, test.bound) >= needed
}

/// Returns a lower bound of the number of trailing zero bits of an integer.
fn trailing_zeros_min(unit: &Unit, body: &Body, value: Value) -> u32 {
    let mut at = value;
    for _ in 0..CHAIN {
        if let Some((n, bits)) = int_value(unit, body, at) {
            return n.trailing_zeros().min(bits);
        }
        let Some(op) = body.def_op(at) else {
            return 0;
        };
        let operands: Vec<Value> = body.operands(op).collect();
        let number = operands.get(1).and_then(|&v| int_value(unit, body, v));
        match (body.kind(op), number) {
            (OpKind::Binary(BinaryOp::And | BinaryOp::Mul), Some((n, _))) => {
                return n.trailing_zeros();
            }
            (OpKind::Binary(BinaryOp::Shl), Some((n, _))) => return n as u32,
            // `x - x mod 2^k`, with the remainder as `and` or `urem`.
            (OpKind::Binary(BinaryOp::Sub), None) => {
                return log2_of_remainder(unit, body, operands[1], operands[0]).unwrap_or(0);
            }
            (OpKind::Cast(CastOp::ZExt | CastOp::SExt), _) => at = operands[0],
            _ => return 0,
        }
    }
    0
}

/// Returns `k` if `value` is `of mod 2^k`.
fn log2_of_remainder(unit: &Unit, body: &Body, value: Value, of: Value) -> Option<u32> {
    let op = body.def_op(value)?;
    let (number, _) = int_value(unit, body, *body.operands(op).collect::<Vec<_>>().get(1)?)?;
    let divided = match body.kind(op) {
        OpKind::Binary(BinaryOp::And) => number.checked_add(1)?,
        OpKind::Binary(BinaryOp::URem) => number,
        _ => return None,
    };
    (body.operand(op, 0) == of && divided.is_power_of_two()).then(|| divided.trailing_zeros())
}

/// Returns the minimum and maximum of a type.
fn type_limits(bits: u32, reads_signed: bool) -> (i128, i128) {
    if reads_signed {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, mask(bits) as i128)
    }
}

/// Returns the range of an integer of at most 64 bits, derived from extensions, masks and shifts.
fn value_range(unit: &Unit, body: &Body, value: Value, reads_signed: bool) -> (i128, i128) {
    if let Some((n, bits)) = int_value(unit, body, value) {
        let n = if reads_signed {
            signed(n, bits)
        } else {
            n as i128
        };
        return (n, n);
    }
    let bits = unit.types.int_bits(body.ty(value)).unwrap_or(64).min(64);
    let all = type_limits(bits, reads_signed);
    let Some(op) = body.def_op(value) else {
        return all;
    };
    let inner_bits = |i: usize| unit.types.int_bits(body.ty(body.operand(op, i)));
    match body.kind(op) {
        OpKind::Cast(CastOp::ZExt) => match inner_bits(0) {
            Some(inner) => (0, mask(inner) as i128),
            None => all,
        },
        OpKind::Cast(CastOp::SExt) if reads_signed => match inner_bits(0) {
            Some(inner) => type_limits(inner, true),
            None => all,
        },
        OpKind::Binary(BinaryOp::And) => match int_value(unit, body, body.operand(op, 1)) {
            Some((n, _)) if signed(n, bits) >= 0 => (0, n as i128),
            _ => all,
        },
        OpKind::Binary(BinaryOp::LShr) => match int_value(unit, body, body.operand(op, 1)) {
            Some((n, _)) if (1..u128::from(bits)).contains(&n) => (0, (mask(bits) >> n) as i128),
            _ => all,
        },
        _ => all,
    }
}

fn cast_start(b: &mut Builder, test: &Test) -> Value {
    match test.cast {
        Some((op, ty)) => integers::fold_or_cast(b, op, test.start, ty),
        None => test.start,
    }
}

/// Emits `start + offset` in the type of the comparison.
fn plus_offset(b: &mut Builder, test: &Test, start: Value) -> Value {
    if test.offset == 0 {
        return start;
    }
    if test.pointer {
        let bytes = b.i64(test.offset);
        let byte = b.unit.types.int(8);
        let ty = b.body.ty(start);
        return b.value(OpKind::Addr { source: byte }, &[start, bytes], ty);
    }
    let ty = b.body.ty(start);
    let offset = b.int(ty, i128::from(test.offset));
    integers::fold_or_binary(b, BinaryOp::Add, start, offset)
}

/// Trip count from a start that satisfies the test, with an upper bound.
struct PartialCount {
    value: Value,
    max: u128,
    is_quotient: bool,
}

/// Emits `count(first)` if the test holds for `first`.
fn emit_count(b: &mut Builder, test: &Test, shape: Approach, first: Value) -> Option<PartialCount> {
    let (from, to) = match test.step > 0 {
        true => (first, test.bound),
        false => (test.bound, first),
    };
    let distance = test.step.unsigned_abs();
    if test.pointer {
        let max = max_distance(test) / u128::from(distance);
        if let Some(steps) = exact_pointer_steps(b, from, to, distance) {
            let value = match shape {
                Approach::Inclusive => increment_saturating(b, steps, max),
                Approach::Strict | Approach::Hit => steps,
            };
            return Some(PartialCount {
                value,
                max,
                is_quotient: false,
            });
        }
    }
    let is_known = |end: Value| b.body.as_const(end).is_some();
    let is_quotient = distance > 1 && !is_known(from) && !is_known(to);
    let (gap, gap_max) = emit_difference(b, test, shape, from, to);
    let i64_ty = b.unit.types.int(64);
    let gap = integers::fold_or_cast(b, CastOp::ZExt, gap, i64_ty);
    let by = b.int(i64_ty, i128::from(distance));
    let max = gap_max / u128::from(distance) + 1;
    let (value, max) = match shape {
        Approach::Hit => {
            let steps = integers::fold_or_binary(b, BinaryOp::UDiv, gap, by);
            (steps, gap_max / u128::from(distance))
        }
        Approach::Strict if distance == 1 && is_planted(Mutant::TripCountOffByOne) => {
            let one = b.i64(1);
            (
                integers::fold_or_binary(b, BinaryOp::Sub, gap, one),
                gap_max,
            )
        }
        Approach::Strict if distance == 1 => (gap, gap_max),
        Approach::Strict => {
            let one = b.i64(1);
            let less = integers::fold_or_binary(b, BinaryOp::Sub, gap, one);
            let steps = integers::fold_or_binary(b, BinaryOp::UDiv, less, by);
            (integers::fold_or_binary(b, BinaryOp::Add, steps, one), max)
        }
        Approach::Inclusive => {
            let steps = integers::fold_or_binary(b, BinaryOp::UDiv, gap, by);
            (
                increment_saturating(b, steps, max - 1),
                max.min(u128::from(u64::MAX)),
            )
        }
    };
    Some(PartialCount {
        value,
        max,
        is_quotient,
    })
}

/// Emits `to − from` in the comparison's type; returns the difference and its upper bound as unsigned.
fn emit_difference(
    b: &mut Builder,
    test: &Test,
    shape: Approach,
    from: Value,
    to: Value,
) -> (Value, u128) {
    if test.pointer {
        let ty = b.unit.types.int(64);
        let (from, to) = (address_to_int(b, from, ty), address_to_int(b, to, ty));
        let gap = integers::fold_or_binary(b, BinaryOp::Sub, to, from);
        return (gap, max_distance(test));
    }
    let gap = integers::fold_or_binary(b, BinaryOp::Sub, to, from);
    let all = mask(test.bits);
    let reads_signed = match shape {
        Approach::Hit => false,
        Approach::Strict | Approach::Inclusive => test.predicate.is_signed(),
    };
    let (low, _) = value_range(b.unit, b.body, from, reads_signed);
    let (_, high) = value_range(b.unit, b.body, to, reads_signed);
    let max = match shape {
        Approach::Hit if low != 0 || int_value(b.unit, b.body, from).is_none() => all,
        _ => (high - low).clamp(0, all as i128) as u128,
    };
    (gap, max)
}

/// Returns the maximum distance of two addresses: half the address space within one object.
fn max_distance(test: &Test) -> u128 {
    if test.flags.has(Flags::NUW) {
        i64::MAX as u128
    } else {
        u128::from(u64::MAX)
    }
}

fn address_to_int(b: &mut Builder, pointer: Value, ty: TypeId) -> Value {
    b.cast(CastOp::PtrToInt, pointer, ty)
}

/// Emits `value + 1`, saturating if the increment might wrap: a loop with a saturated trip count never ends.
fn increment_saturating(b: &mut Builder, value: Value, max: u128) -> Value {
    let one = b.i64(1);
    if let Some((n, _)) = int_value(b.unit, b.body, value) {
        let ty = b.unit.types.int(64);
        return b.int(ty, (n + 1).min(u128::from(u64::MAX)) as i128);
    }
    if max < u128::from(u64::MAX) {
        return integers::fold_or_binary(b, BinaryOp::Add, value, one);
    }
    let last = b.i64(-1);
    let more = integers::fold_or_icmp(b, IntPredicate::Ne, value, last);
    let ty = b.unit.types.int(64);
    let step = integers::fold_or_cast(b, CastOp::ZExt, more, ty);
    integers::fold_or_binary(b, BinaryOp::Add, value, step)
}

/// Maximum length of a chain of address computations.
const CHAIN: usize = 8;

/// Pointer as base + Σ value·bytes + bytes.
struct PointerPosition {
    base: Value,
    terms: Vec<(Value, i64)>,
    offset: i64,
}

fn position(unit: &Unit, body: &Body, pointer: Value) -> PointerPosition {
    let mut at = PointerPosition {
        base: pointer,
        terms: Vec::new(),
        offset: 0,
    };
    for _ in 0..CHAIN {
        let Some(address) = body
            .def_op(at.base)
            .and_then(|op| unit.layout.address(unit, body, op))
        else {
            break;
        };
        at.base = address.base;
        at.offset = at.offset.wrapping_add(address.offset);
        at.terms.extend(address.terms);
    }
    at
}

/// Emits `(to − from) / distance` of two positions in one object, if the division is provably exact.
fn exact_pointer_steps(b: &mut Builder, from: Value, to: Value, distance: u64) -> Option<Value> {
    let (low, high) = (position(b.unit, b.body, from), position(b.unit, b.body, to));
    let distance = i64::try_from(distance).ok()?;
    if low.base != high.base {
        return None;
    }
    let mut terms = high.terms;
    for (value, bytes) in low.terms {
        match terms.iter().position(|t| *t == (value, bytes)) {
            Some(at) => {
                terms.swap_remove(at);
            }
            None => terms.push((value, bytes.checked_neg()?)),
        }
    }
    let offset = high.offset.checked_sub(low.offset)?;
    if offset % distance != 0 || terms.iter().any(|t| t.1 % distance != 0) {
        return None;
    }
    let ty = b.unit.types.int(64);
    let mut sum = b.i64(offset / distance);
    for (value, bytes) in terms {
        let wide = integers::fold_or_cast(b, CastOp::SExt, value, ty);
        let times = b.i64(bytes / distance);
        let product = integers::fold_or_binary(b, BinaryOp::Mul, wide, times);
        sum = integers::fold_or_binary(b, BinaryOp::Add, sum, product);
    }
    Some(sum)
}
