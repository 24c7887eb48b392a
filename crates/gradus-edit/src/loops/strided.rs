//! Trip count of a loop with an unknown but positive step: `for (i = start; i < n; i += threads)`.
//!
//! The loop is counted only if the caller knows the step to be positive, because the sign determines the
//! direction. The test must compare the next value, whose flags exclude wrapping, and a guard must imply a
//! first iteration. The trip count is then `(bound - start - 1) / step + 1`.

use crate::facts::implied_conditions::{Comparison, ImpliedBy, implied_by};
use crate::facts::integers;
use crate::loops::induction::{Affine, Induction, Scope, affine, invariant_comparison};
use crate::loops::trip_count_ops::TripCount;
use gradus_ir::integers::mask;
use gradus_ir::{BinaryOp, Body, Builder, CastOp, Flags, IntPredicate, Region, Unit, Value};

/// Loop test: another iteration follows while `start + iteration · step < bound`.
struct Test {
    predicate: IntPredicate,
    start: Value,
    step: Value,
    bound: Value,
}

/// Emits the trip count at the builder's insertion point, before a loop in `outside` with the test `again` at
/// its bottom. The step of the loop must be in `positive`.
pub(crate) fn emit_strided_trip_count(
    b: &mut Builder,
    (scope, found): (Scope, &[Option<Induction>]),
    again: Value,
    outside: Region,
    positive: &[Value],
) -> Option<TripCount> {
    let test = strided_test(b.unit, b.body, scope, found, again)?;
    if !positive.contains(&test.step) {
        return None;
    }
    let claim = Comparison::new(test.predicate, test.start, test.bound);
    let guard = match implied_by(b.unit, b.body, outside, claim)? {
        ImpliedBy::If(op) => Some(op),
        _ => None,
    };
    let (ty, long) = (b.body.ty(test.bound), b.unit.types.int(64));
    let bits = b.unit.types.int_bits(ty)?;
    let gap = integers::fold_or_binary(b, BinaryOp::Sub, test.bound, test.start);
    let one = b.int(ty, 1);
    let less = integers::fold_or_binary(b, BinaryOp::Sub, gap, one);
    let less = integers::fold_or_cast(b, CastOp::ZExt, less, long);
    let step = integers::fold_or_cast(b, CastOp::ZExt, test.step, long);
    let more = integers::fold_or_binary(b, BinaryOp::UDiv, less, step);
    let one = b.i64(1);
    Some(TripCount {
        value: integers::fold_or_binary(b, BinaryOp::Add, more, one),
        max: mask(bits),
        is_quotient: true,
        guard,
    })
}

fn strided_test(
    unit: &Unit,
    body: &Body,
    scope: Scope,
    found: &[Option<Induction>],
    again: Value,
) -> Option<Test> {
    let (predicate, next, bound) = invariant_comparison(unit, body, scope, again, true)?;
    let needed = match predicate {
        IntPredicate::Slt => Flags::NSW,
        IntPredicate::Ult => Flags::NUW,
        _ => return None,
    };
    let is_int = unit.types.int_bits(body.ty(next)).is_some();
    if !is_int {
        return None;
    }
    let Affine {
        position,
        amount,
        flags,
    } = affine(unit, body, scope, next)?;
    let induction = found.get(position)?.as_ref()?;
    let &[(step, 1)] = &amount.terms[..] else {
        return None;
    };
    let tests_next = amount == induction.step && amount.constant == 0;
    (tests_next && flags.and(induction.flags).has(needed)).then_some(Test {
        predicate,
        start: induction.start,
        step,
        bound,
    })
}
