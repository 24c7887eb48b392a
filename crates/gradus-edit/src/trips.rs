//! The number of runs of a counted loop, as ops.
//!
//! With `t(j) = first + j · step`, let `count(first)` be how many `t(0), t(1), …` satisfy
//! `t predicate bound` before one does not. A test at the top gives `count(start + offset)` runs, a
//! test at the bottom `1 + count(start + offset)`; where the bottom tests the next value and
//! `start predicate bound` is known from a guard, that is `count(start)`.
//!
//! `count` is a quotient of a difference. It is right in modular arithmetic where `t` meets the
//! bound before it wraps: a step of one towards a strict bound or `ne`, a promise (NSW, NUW) whose
//! breach would be undefined behaviour at the test, or a bound that keeps away from the end of the
//! type. All else is not a counted loop.

use crate::counted::Test;
use crate::imply::{Claim, Voucher, voucher};
use crate::integers;
use gradus_ir::integers::{int_value, mask, signed};
use gradus_ir::mutant::{Mutant, planted};
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Flags, IntPredicate, Op, OpKind, Region, TypeId, Unit, Value,
};

/// Where the test stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Top,
    Bottom,
}

/// A number of runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trips {
    /// The number, an `i64` read as unsigned.
    pub value: Value,
    /// It is at most so much.
    pub max: u128,
    /// It is a quotient of the difference of two numbers, neither of which is known. Optimisers hold that to be too
    /// much for a loop that runs a few times.
    pub is_quotient: bool,
    /// The `if` whose condition says that there is a run at all.
    pub guard: Option<Op>,
}

/// Builds the number of runs at the builder's place, which must lie before the loop in `outside`.
/// `leaves` says that a run may end otherwise than by the test.
pub(crate) fn trips(
    b: &mut Builder,
    test: &Test,
    place: Place,
    outside: Region,
    leaves: bool,
) -> Option<Trips> {
    let shape = Shape::of(test)?;
    if !meets_bound(b.unit, b.body, test, shape, leaves) {
        return None;
    }
    let start = cast_start(b, test);
    let at_next = place == Place::Bottom && test.offset == test.step;
    let promised = test.predicate == IntPredicate::Ne && test.flags != Flags::NONE && !leaves;
    if at_next {
        let claim = Claim::new(test.predicate, start, test.bound);
        let by = voucher(b.unit, b.body, outside, claim);
        // Without a guard the value would have to wrap before it met the bound.
        if by.is_some() || promised {
            let count = count(b, test, shape, start)?;
            let guard = match by {
                Some(Voucher::If(op)) => Some(op),
                _ => None,
            };
            return Some(Trips {
                value: count.value,
                max: count.max,
                is_quotient: count.is_quotient,
                guard,
            });
        }
    }
    let first = plus_offset(b, test, start);
    let claim = Claim::new(test.predicate, first, test.bound);
    let by = voucher(b.unit, b.body, outside, claim);
    let Count {
        mut value,
        mut max,
        is_quotient,
    } = count(b, test, shape, first)?;
    if by.is_none() && shape != Shape::Hit {
        let some = integers::icmp(b, test.predicate, first, test.bound);
        let none = b.i64(0);
        value = integers::select(b, some, value, none);
    }
    if place == Place::Bottom {
        // What must not wrap comes no further than half round the circle in any time there is.
        if promised {
            max = max.min(i64::MAX as u128);
        }
        value = plus_one(b, value, max);
        max = (max + 1).min(u128::from(u64::MAX));
    }
    let guard = match by {
        Some(Voucher::If(op)) => Some(op),
        _ => None,
    };
    Some(Trips {
        value,
        max,
        is_quotient,
        guard,
    })
}

/// How the bound is approached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Until it is reached.
    Strict,
    /// Until it is passed.
    Inclusive,
    /// Until it is hit.
    Hit,
}

impl Shape {
    fn of(test: &Test) -> Option<Shape> {
        use IntPredicate::*;
        match (test.predicate, test.step > 0) {
            (Ne, _) => Some(Shape::Hit),
            (Slt | Ult, true) | (Sgt | Ugt, false) => Some(Shape::Strict),
            (Sle | Ule, true) | (Sge | Uge, false) => Some(Shape::Inclusive),
            _ => None,
        }
    }
}

/// Whether `t` certainly meets the bound before it wraps, or else the program is undefined.
fn meets_bound(unit: &Unit, body: &Body, test: &Test, shape: Shape, leaves: bool) -> bool {
    let distance = i128::from(test.step.unsigned_abs());
    let reads_signed = test.predicate.is_signed();
    if test.pointer && reads_signed {
        return false;
    }
    let needed = if reads_signed { Flags::NSW } else { Flags::NUW };
    let beyond = match shape {
        Shape::Hit if distance == 1 => return true,
        Shape::Hit => {
            let promised = test.flags != Flags::NONE && !leaves;
            return promised || divides(unit, body, test) || divides_the_circle(unit, body, test);
        }
        Shape::Strict => distance - 1,
        Shape::Inclusive => distance,
    };
    if beyond == 0 || test.flags.has(needed) {
        return true;
    }
    if test.pointer {
        return false;
    }
    let (low, high) = range(unit, body, test.bound, reads_signed);
    let (lowest, highest) = limits(test.bits, reads_signed);
    if test.step > 0 {
        high <= highest - beyond
    } else {
        low >= lowest + beyond
    }
}

/// Whether the distance between two constants is a multiple of the step.
fn divides(unit: &Unit, body: &Body, test: &Test) -> bool {
    let (Some((start, _)), Some((bound, _))) = (
        int_value(unit, body, test.start),
        int_value(unit, body, test.bound),
    ) else {
        return false;
    };
    let first = signed(start, test.bits) + i128::from(test.offset);
    let gap = signed(bound, test.bits) - first;
    let (lowest, highest) = limits(test.bits, true);
    test.cast.is_none()
        && (lowest..=highest).contains(&first)
        && gap % i128::from(test.step) == 0
        && gap / i128::from(test.step) >= 0
}

/// Whether a step that is a power of two divides both ends: then the bound is hit on the first way
/// round the circle of the type's numbers, as often as the distance on the circle says.
fn divides_the_circle(unit: &Unit, body: &Body, test: &Test) -> bool {
    let step = test.step.unsigned_abs();
    let needed = step.trailing_zeros();
    step.is_power_of_two()
        && !test.pointer
        && test.cast.is_none()
        && test.offset.trailing_zeros() >= needed
        && low_zeros(unit, body, test.start) >= needed
        && low_zeros(unit, body, test.bound) >= needed
}

/// How many of the lowest bits of an integer are zero, at least.
fn low_zeros(unit: &Unit, body: &Body, value: Value) -> u32 {
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
            // x - x mod 2^k, in either way of writing it.
            (OpKind::Binary(BinaryOp::Sub), None) => {
                return rest_of(unit, body, operands[1], operands[0]).unwrap_or(0);
            }
            (OpKind::Cast(CastOp::ZExt | CastOp::SExt), _) => at = operands[0],
            _ => return 0,
        }
    }
    0
}

/// `k` where `value` is `of mod 2^k`.
fn rest_of(unit: &Unit, body: &Body, value: Value, of: Value) -> Option<u32> {
    let op = body.def_op(value)?;
    let (number, _) = int_value(unit, body, *body.operands(op).collect::<Vec<_>>().get(1)?)?;
    let divided = match body.kind(op) {
        OpKind::Binary(BinaryOp::And) => number.checked_add(1)?,
        OpKind::Binary(BinaryOp::URem) => number,
        _ => return None,
    };
    (body.operand(op, 0) == of && divided.is_power_of_two()).then(|| divided.trailing_zeros())
}

/// The smallest and the largest number of a type.
fn limits(bits: u32, reads_signed: bool) -> (i128, i128) {
    if reads_signed {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, mask(bits) as i128)
    }
}

/// Bounds of an integer of at most 64 bits, from what it is extended or cut from.
fn range(unit: &Unit, body: &Body, value: Value, reads_signed: bool) -> (i128, i128) {
    if let Some((n, bits)) = int_value(unit, body, value) {
        let n = if reads_signed {
            signed(n, bits)
        } else {
            n as i128
        };
        return (n, n);
    }
    let bits = unit.types.int_bits(body.ty(value)).unwrap_or(64).min(64);
    let all = limits(bits, reads_signed);
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
            Some(inner) => limits(inner, true),
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
        Some((op, ty)) => integers::cast(b, op, test.start, ty),
        None => test.start,
    }
}

/// `start + offset`, as the comparison reads it.
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
    integers::binary(b, BinaryOp::Add, start, offset)
}

/// A number of runs from a start at which the test holds, and a bound of it.
struct Count {
    value: Value,
    max: u128,
    is_quotient: bool,
}

/// `count(first)` where the test holds for `first`.
fn count(b: &mut Builder, test: &Test, shape: Shape, first: Value) -> Option<Count> {
    let (from, to) = match test.step > 0 {
        true => (first, test.bound),
        false => (test.bound, first),
    };
    let distance = test.step.unsigned_abs();
    if test.pointer {
        let max = address_space(test) / u128::from(distance);
        if let Some(steps) = pointer_steps(b, from, to, distance) {
            let value = match shape {
                Shape::Inclusive => plus_one(b, steps, max),
                Shape::Strict | Shape::Hit => steps,
            };
            return Some(Count {
                value,
                max,
                is_quotient: false,
            });
        }
    }
    let is_known = |end: Value| b.body.as_const(end).is_some();
    let is_quotient = distance > 1 && !is_known(from) && !is_known(to);
    let (gap, gap_max) = difference(b, test, shape, from, to);
    let i64_ty = b.unit.types.int(64);
    let gap = integers::cast(b, CastOp::ZExt, gap, i64_ty);
    let by = b.int(i64_ty, i128::from(distance));
    let max = gap_max / u128::from(distance) + 1;
    let (value, max) = match shape {
        Shape::Hit => {
            let steps = integers::binary(b, BinaryOp::UDiv, gap, by);
            (steps, gap_max / u128::from(distance))
        }
        Shape::Strict if distance == 1 && planted(Mutant::CountedOnceLess) => {
            let one = b.i64(1);
            (integers::binary(b, BinaryOp::Sub, gap, one), gap_max)
        }
        Shape::Strict if distance == 1 => (gap, gap_max),
        Shape::Strict => {
            let one = b.i64(1);
            let less = integers::binary(b, BinaryOp::Sub, gap, one);
            let steps = integers::binary(b, BinaryOp::UDiv, less, by);
            (integers::binary(b, BinaryOp::Add, steps, one), max)
        }
        Shape::Inclusive => {
            let steps = integers::binary(b, BinaryOp::UDiv, gap, by);
            (plus_one(b, steps, max - 1), max.min(u128::from(u64::MAX)))
        }
    };
    Some(Count {
        value,
        max,
        is_quotient,
    })
}

/// `to − from` in the comparison's type, and a bound of it read as unsigned.
fn difference(b: &mut Builder, test: &Test, shape: Shape, from: Value, to: Value) -> (Value, u128) {
    if test.pointer {
        let ty = b.unit.types.int(64);
        let (from, to) = (address(b, from, ty), address(b, to, ty));
        let gap = integers::binary(b, BinaryOp::Sub, to, from);
        return (gap, address_space(test));
    }
    let gap = integers::binary(b, BinaryOp::Sub, to, from);
    let all = mask(test.bits);
    let reads_signed = match shape {
        Shape::Hit => false,
        Shape::Strict | Shape::Inclusive => test.predicate.is_signed(),
    };
    let (low, _) = range(b.unit, b.body, from, reads_signed);
    let (_, high) = range(b.unit, b.body, to, reads_signed);
    let max = match shape {
        Shape::Hit if low != 0 || int_value(b.unit, b.body, from).is_none() => all,
        _ => (high - low).clamp(0, all as i128) as u128,
    };
    (gap, max)
}

/// How far two addresses may be apart: within one object, half the address space.
fn address_space(test: &Test) -> u128 {
    if test.flags.has(Flags::NUW) {
        i64::MAX as u128
    } else {
        u128::from(u64::MAX)
    }
}

fn address(b: &mut Builder, pointer: Value, ty: TypeId) -> Value {
    b.cast(CastOp::PtrToInt, pointer, ty)
}

/// `value + 1`, kept at the largest number where it might wrap: so many runs never end.
fn plus_one(b: &mut Builder, value: Value, max: u128) -> Value {
    let one = b.i64(1);
    if let Some((n, _)) = int_value(b.unit, b.body, value) {
        let ty = b.unit.types.int(64);
        return b.int(ty, (n + 1).min(u128::from(u64::MAX)) as i128);
    }
    if max < u128::from(u64::MAX) {
        return integers::binary(b, BinaryOp::Add, value, one);
    }
    let last = b.i64(-1);
    let more = integers::icmp(b, IntPredicate::Ne, value, last);
    let ty = b.unit.types.int(64);
    let step = integers::cast(b, CastOp::ZExt, more, ty);
    integers::binary(b, BinaryOp::Add, value, step)
}

/// How many addresses a chain of address computations may have.
const CHAIN: usize = 8;

/// A pointer as base + Σ value·bytes + bytes.
struct Position {
    base: Value,
    terms: Vec<(Value, i64)>,
    offset: i64,
}

fn position(unit: &Unit, body: &Body, pointer: Value) -> Position {
    let mut at = Position {
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

/// `(to − from) / distance` of two positions in one object, where it is seen to be exact.
fn pointer_steps(b: &mut Builder, from: Value, to: Value, distance: u64) -> Option<Value> {
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
        let wide = integers::cast(b, CastOp::SExt, value, ty);
        let times = b.i64(bytes / distance);
        let product = integers::binary(b, BinaryOp::Mul, wide, times);
        sum = integers::binary(b, BinaryOp::Add, sum, product);
    }
    Some(sum)
}
