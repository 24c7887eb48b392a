//! Guarded bounds: refines the range of a value that is used only under a condition.
//!
//! Periodic neighbours are written `i > 0 ? i − 1 : n − 1`. Without the condition, the first operand would
//! reach −1.

use crate::loops::affine::index_of;
use crate::memory::alias::Alias;
use crate::memory::distance::is_nonnegative_by_op;
use crate::scev::poly::Poly;
use gradus_ir::{IntPredicate, OpKind, Value};

/// A bound of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardedBound {
    /// The integer is at least this number.
    AtLeast(i64),
    /// The integer is at most this value, sign-extended, plus the constant.
    AtMost(Value, i64),
}

/// Returns the bound on `value` implied by `condition` with truth value `holds`. `value` and an operand of
/// the comparison must be one 64-bit loop index plus constants.
pub(crate) fn of(
    alias: &Alias,
    condition: Value,
    holds: bool,
    value: Value,
) -> Option<GuardedBound> {
    let body = alias.body;
    let op = body.def_op(condition)?;
    let OpKind::ICmp(predicate) = *body.kind(op) else {
        return None;
    };
    let (left, right) = (body.operand(op, 0), body.operand(op, 1));
    let (predicate, left, right) = match index_plus(alias, left) {
        Some(_) => (predicate, left, right),
        None => (predicate.swapped(), right, left),
    };
    let (index, before) = index_plus(alias, left)?;
    let (same, after) = index_plus(alias, value)?;
    let lp = index_of(alias, index)?.0;
    let wide = alias.unit.types.int_bits(body.ty(index)) == Some(64);
    let small = |n: i64| n.unsigned_abs() < 1 << 32;
    if !small(before)
        || !small(after)
        || index != same
        || !wide
        || !alias
            .nest
            .is_invariant_in(body, right, alias.nest.enclosing_loop(lp))
    {
        return None;
    }
    let predicate = if holds {
        predicate
    } else {
        predicate.inverse()
    };
    let constant = body.as_int(alias.unit, right);
    let limited = constant.is_some_and(|n| n >= 0) || is_nonnegative_by_op(alias, right);
    let moved = |n: i64| after.checked_sub(before)?.checked_add(n);
    use IntPredicate::{Eq, Ne, Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
    match predicate {
        Ult | Ule if !limited => None,
        Ugt | Uge if before < 0 => None,
        Slt | Ult => Some(GuardedBound::AtMost(right, moved(-1)?)),
        Sle | Ule | Eq => Some(GuardedBound::AtMost(right, moved(0)?)),
        Sgt | Ugt => Some(GuardedBound::AtLeast(moved(constant?.checked_add(1)?)?)),
        Sge | Uge => Some(GuardedBound::AtLeast(moved(constant?)?)),
        Ne if constant == Some(before) => Some(GuardedBound::AtLeast(after.checked_add(1)?)),
        Ne => bound_by_excluded_last(alias, lp, right, before, after),
    }
}

/// Handles `index + before ≠ limit` with `limit` as the last value: remaining values are below the limit.
fn bound_by_excluded_last(
    alias: &Alias,
    lp: gradus_ir::Op,
    limit: Value,
    before: i64,
    after: i64,
) -> Option<GuardedBound> {
    let (unit, body) = (alias.unit, alias.body);
    let count = body.operand(lp, 0);
    (unit.types.int_bits(body.ty(count)) == Some(64)).then_some(())?;
    let trips = alias.forms.of_integer(unit, body, count);
    let last = trips.plus(&Poly::constant(before.checked_sub(1)?))?;
    let limit_form = alias.forms.of_integer(unit, body, limit);
    (last.terms == limit_form.terms && last.constant == limit_form.constant).then_some(
        GuardedBound::AtMost(limit, after.checked_sub(before)?.checked_sub(1)?),
    )
}

/// Decomposes a value into a loop index plus a constant.
fn index_plus(alias: &Alias, value: Value) -> Option<(Value, i64)> {
    let form = alias.forms.of_integer(alias.unit, alias.body, value);
    let [(product, 1)] = form.terms.as_slice() else {
        return None;
    };
    let [index] = product.as_slice() else {
        return None;
    };
    index_of(alias, *index)?;
    Some((*index, form.constant))
}
