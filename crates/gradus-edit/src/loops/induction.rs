//! Induction variables and loop tests: the parts of a counted loop.
//!
//! An induction is a carried value that changes by an equal amount in every iteration. A counted test
//! compares an induction with an invariant bound and decides on another iteration.
//!
//! # Invariants
//!
//! Reads only ops directly in the loop's region or in one given arm of a branch. A value is invariant exactly
//! if neither region defines the value.

use gradus_ir::integers::{fold_cast, int_value, mask, signed};
use gradus_ir::{
    BinaryOp, Body, CastOp, Definition, Flags, IntPredicate, OpKind, Region, Type, TypeId, Unit,
    Value,
};

/// Maximum length of a chain of additions.
const CHAIN_LENGTH_MAX: usize = 8;
const ALL_FLAGS: Flags = Flags(u32::MAX);

/// Regions of a loop: the loop's region, and the continuing arm of a test at the top of the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub region: Region,
    pub arm: Option<Region>,
}

impl Scope {
    /// Returns whether `value`, used directly in either region, is loop-invariant.
    pub fn is_invariant(&self, body: &Body, value: Value) -> bool {
        let region = body.region_of(value);
        region.is_none() || (region != Some(self.region) && region != self.arm)
    }
    fn param(&self, body: &Body, value: Value) -> Option<usize> {
        match body.values[value].def {
            Definition::Param(region, index) if region == self.region => Some(index as usize),
            _ => None,
        }
    }
}

/// Step or offset: a constant (bytes, for a pointer) plus invariant values times constants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub constant: i64,
    pub terms: Vec<(Value, i64)>,
}

impl Amount {
    /// Returns the amount if constant.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }
}

/// Loop region parameter plus an amount.
#[derive(Clone, Debug)]
pub(crate) struct Affine {
    pub position: usize,
    pub amount: Amount,
    /// Wrap flags common to all additions of the chain.
    pub flags: Flags,
}

/// Decomposes `value` into a parameter plus an amount. Handles integers of at most 64 bits and pointers.
pub(crate) fn affine(unit: &Unit, body: &Body, scope: Scope, value: Value) -> Option<Affine> {
    let bits = match unit.types.get(body.ty(value)) {
        Type::Int(bits) if *bits <= 64 => *bits,
        Type::Ptr(space) if unit.layout.pointer_size_bytes(*space) == 8 => 64,
        _ => return None,
    };
    let mut at = value;
    let mut amount = Amount::default();
    let mut flags = ALL_FLAGS;
    for _ in 0..=CHAIN_LENGTH_MAX {
        if let Some(position) = scope.param(body, at) {
            amount.constant = signed(amount.constant as u128 & mask(bits), bits) as i64;
            return Some(Affine {
                position,
                amount,
                flags,
            });
        }
        let link = link(unit, body, scope, at)?;
        at = link.from;
        flags = flags.and(link.flags);
        amount.constant = amount.constant.wrapping_add(link.amount.constant);
        amount.terms.extend(link.amount.terms);
    }
    None
}

/// Addition of an invariant amount to `from`.
struct AddLink {
    from: Value,
    amount: Amount,
    flags: Flags,
}

fn link(unit: &Unit, body: &Body, scope: Scope, value: Value) -> Option<AddLink> {
    let op = body.def_op(value)?;
    let flags = body.ops[op].flags;
    match *body.kind(op) {
        OpKind::Binary(BinaryOp::Add) => {
            let (a, b) = (body.operand(op, 0), body.operand(op, 1));
            let (from, by) = if scope.is_invariant(body, b) {
                (a, b)
            } else {
                (b, a)
            };
            let amount = invariant_amount(unit, body, scope, by, 1)?;
            let flags = flags.and(Flags::NSW.with(Flags::NUW));
            Some(AddLink {
                from,
                amount,
                flags,
            })
        }
        OpKind::Binary(BinaryOp::Or) if flags.has(Flags::DISJOINT) => {
            let amount = invariant_amount(unit, body, scope, body.operand(op, 1), 1)?;
            let flags = Flags::NSW.with(Flags::NUW);
            Some(AddLink {
                from: body.operand(op, 0),
                amount,
                flags,
            })
        }
        OpKind::Binary(BinaryOp::Sub) => {
            let by = body.operand(op, 1);
            let amount = invariant_amount(unit, body, scope, by, -1)?;
            // `a - b` with NSW equals `a + -b` with NSW if `-b` does not overflow.
            let lowest = int_value(unit, body, by).is_none_or(|(c, bits)| c == 1 << (bits - 1));
            let flags = if lowest {
                Flags::NONE
            } else {
                flags.and(Flags::NSW)
            };
            Some(AddLink {
                from: body.operand(op, 0),
                amount,
                flags,
            })
        }
        OpKind::Addr { .. } => {
            let address = unit.layout.address(unit, body, op)?;
            let invariant = |&(v, _): &(Value, i64)| scope.is_invariant(body, v);
            address.terms.iter().all(invariant).then_some(AddLink {
                from: address.base,
                amount: Amount {
                    constant: address.offset,
                    terms: address.terms,
                },
                flags: flags.and(ADDRESS_FLAGS),
            })
        }
        _ => None,
    }
}

/// Wrap flags of address computations.
pub(crate) const ADDRESS_FLAGS: Flags = Flags(Flags::INBOUNDS.0 | Flags::NUSW.0 | Flags::NUW.0);

fn invariant_amount(
    unit: &Unit,
    body: &Body,
    scope: Scope,
    value: Value,
    times: i64,
) -> Option<Amount> {
    if !scope.is_invariant(body, value) {
        return None;
    }
    Some(match body.as_int(unit, value) {
        Some(constant) => Amount {
            constant: constant.wrapping_mul(times),
            terms: Vec::new(),
        },
        None => Amount {
            constant: 0,
            terms: vec![(value, times)],
        },
    })
}

/// Induction variable: equals `start + iteration · step`.
#[derive(Clone, Debug)]
pub(crate) struct Induction {
    pub start: Value,
    pub step: Amount,
    /// Wrap flags of every step.
    pub flags: Flags,
}

/// Returns the induction at each position of the carried values, if any. `start` holds the initial values,
/// `next` the values for the next iteration.
pub(crate) fn inductions(
    unit: &Unit,
    body: &Body,
    scope: Scope,
    start: &[Value],
    next: &[Value],
) -> Vec<Option<Induction>> {
    let pairs = start.iter().zip(next).enumerate();
    pairs
        .map(|(position, (&start, &next))| {
            let found = affine(unit, body, scope, next)?;
            (found.position == position).then_some(Induction {
                start,
                step: found.amount,
                flags: found.flags,
            })
        })
        .collect()
}

/// Counted loop test. With `t = start + offset + iteration · step` in the comparison's type, another
/// iteration follows while `t predicate bound` holds.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub predicate: IntPredicate,
    /// Initial value, before `cast`.
    pub start: Value,
    /// Conversion between the carried value and the comparison.
    pub cast: Option<(CastOp, TypeId)>,
    pub offset: i64,
    pub step: i64,
    pub bound: Value,
    /// NSW and NUW guarantees for `t` while the loop iterates. For a pointer, NUW excludes wrapping in both
    /// directions.
    pub flags: Flags,
    /// Width of the comparison in bits.
    pub bits: u32,
    pub pointer: bool,
}

/// Decomposes `again` (another iteration follows if `again == truth`) into a counted test.
pub(crate) fn counted_test(
    unit: &Unit,
    body: &Body,
    scope: Scope,
    inductions: &[Option<Induction>],
    again: Value,
    truth: bool,
) -> Option<Test> {
    let (predicate, value, bound) = invariant_comparison(unit, body, scope, again, truth)?;
    test_from_comparison(unit, body, scope, inductions, predicate, value, bound)
}

/// Decomposes `again` (another iteration follows if `again == truth`) into a comparison. Returns predicate,
/// loop-variant operand and invariant operand, in the order of the predicate.
pub(crate) fn invariant_comparison(
    unit: &Unit,
    body: &Body,
    scope: Scope,
    again: Value,
    truth: bool,
) -> Option<(IntPredicate, Value, Value)> {
    let (again, truth) = strip_negations(unit, body, again, truth);
    let op = body.def_op(again)?;
    let OpKind::ICmp(predicate) = *body.kind(op) else {
        return None;
    };
    if scope.is_invariant(body, again) {
        return None;
    }
    let predicate = if truth {
        predicate
    } else {
        predicate.inverse()
    };
    let (a, b) = (body.operand(op, 0), body.operand(op, 1));
    if scope.is_invariant(body, b) {
        Some((predicate, a, b))
    } else if scope.is_invariant(body, a) {
        Some((predicate.swapped(), b, a))
    } else {
        None
    }
}

/// Returns the value of `value` if `again` holds: the arm of a select on the loop condition, otherwise
/// `value`.
pub(crate) fn value_if_repeating(unit: &Unit, body: &Body, again: Value, value: Value) -> Value {
    let (condition, holds) = strip_negations(unit, body, again, true);
    let Some(op) = body
        .def_op(value)
        .filter(|&op| *body.kind(op) == OpKind::Select)
    else {
        return value;
    };
    let (chosen_by, truth) = strip_negations(unit, body, body.operand(op, 0), true);
    if chosen_by != condition {
        return value;
    }
    body.operand(op, if holds == truth { 1 } else { 2 })
}

/// Strips negations from a truth value.
pub(crate) fn strip_negations(
    unit: &Unit,
    body: &Body,
    mut value: Value,
    mut truth: bool,
) -> (Value, bool) {
    for _ in 0..CHAIN_LENGTH_MAX {
        let Some(op) = body.def_op(value) else { break };
        let is = |i: usize, n: u128| int_value(unit, body, body.operand(op, i)) == Some((n, 1));
        let inner = match body.kind(op) {
            OpKind::Binary(BinaryOp::Xor) if is(1, 1) => 0,
            OpKind::Binary(BinaryOp::Xor) if is(0, 1) => 1,
            OpKind::ICmp(IntPredicate::Eq) if is(1, 0) => 0,
            OpKind::Select if is(1, 0) && is(2, 1) => 0,
            _ => break,
        };
        value = body.operand(op, inner);
        truth = !truth;
    }
    (value, truth)
}

fn test_from_comparison(
    unit: &Unit,
    body: &Body,
    scope: Scope,
    inductions: &[Option<Induction>],
    predicate: IntPredicate,
    tested: Value,
    bound: Value,
) -> Option<Test> {
    let (inner, cast) = strip_cast(body, tested);
    let value = affine(unit, body, scope, inner)?;
    let induction = inductions.get(value.position)?.as_ref()?;
    let (bits, pointer) = match unit.types.get(body.ty(tested)) {
        Type::Int(bits) if *bits <= 64 => (*bits, false),
        Type::Ptr(_) => (64, true),
        _ => return None,
    };
    // If the carried value or the offset sum wraps, the comparison is poison.
    let promised = value.flags.and(induction.flags);
    let flags = match cast.map(|c| c.0) {
        None if pointer => pointer_flags(promised),
        None => promised.and(Flags::NSW.with(Flags::NUW)),
        Some(CastOp::SExt) if promised.has(Flags::NSW) => Flags::NSW,
        Some(CastOp::ZExt) if promised.has(Flags::NUW) => Flags::NUW.with(Flags::NSW),
        // The truncation's own flags exclude a loss of bits.
        Some(CastOp::Trunc) => {
            let cut = body
                .def_op(tested)
                .map_or(Flags::NONE, |op| body.ops[op].flags);
            promised.and(cut).and(Flags::NSW.with(Flags::NUW))
        }
        Some(_) => return None,
    };
    let short = |n: i64| match cast.map(|c| c.0) {
        Some(CastOp::Trunc) => signed(n as u128 & mask(bits), bits) as i64,
        _ => n,
    };
    let (mut offset, mut step) = (
        short(value.amount.as_constant()?),
        short(induction.step.as_constant()?),
    );
    if let Some((CastOp::ZExt, _)) = cast {
        let from = unit.types.int_bits(body.ty(inner))?;
        let widen = |n: i64| {
            let wide = fold_cast(CastOp::ZExt, from, 64, n as u128 & mask(from));
            wide.and_then(|n| i64::try_from(n).ok())
        };
        (offset, step) = (widen(offset)?, widen(step)?);
    }
    (step != 0).then_some(Test {
        predicate,
        start: induction.start,
        cast,
        offset,
        step,
        bound,
        flags: if step < 0 && !pointer {
            flags.without(Flags::NUW)
        } else {
            flags
        },
        bits,
        pointer,
    })
}

/// An address within an object passes neither end of the address space.
fn pointer_flags(promised: Flags) -> Flags {
    if promised.has(Flags::INBOUNDS) || promised.has(Flags::NUSW) {
        Flags::NUW
    } else {
        Flags::NONE
    }
}

fn strip_cast(body: &Body, value: Value) -> (Value, Option<(CastOp, TypeId)>) {
    if let Some(op) = body.def_op(value)
        && let OpKind::Cast(cast @ (CastOp::Trunc | CastOp::SExt | CastOp::ZExt)) = *body.kind(op)
    {
        return (body.operand(op, 0), Some((cast, body.ty(value))));
    }
    (value, None)
}
