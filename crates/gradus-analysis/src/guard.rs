//! What a condition says about a value that is used only where it holds.
//!
//! Periodic neighbours are written `i > 0 ? i − 1 : n − 1`: without the condition the first choice would
//! reach down to −1.

use crate::affine::index_of;
use crate::alias::Alias;
use crate::bounds::nonnegative_by_op;
use crate::linear::Linear;
use gradus_ir::{IntPredicate, OpKind, Value};

/// A bound of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// It is at least this number.
    AtLeast(i64),
    /// It is at most this value, sign-extended, plus this number.
    AtMost(Value, i64),
}

/// What `condition`, being `holds`, says about `value`, both stepping with one loop index of 64 bits:
/// they are the index plus constants.
pub(crate) fn of(alias: &Alias, condition: Value, holds: bool, value: Value) -> Option<Guard> {
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
            .fixed_in(body, right, alias.nest.enclosing_loop(lp))
    {
        return None;
    }
    let predicate = if holds {
        predicate
    } else {
        predicate.inverse()
    };
    let constant = body.as_int(alias.unit, right);
    let limited = constant.is_some_and(|n| n >= 0) || nonnegative_by_op(alias, right);
    let moved = |n: i64| after.checked_sub(before)?.checked_add(n);
    use IntPredicate::{Eq, Ne, Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
    match predicate {
        Ult | Ule if !limited => None,
        Ugt | Uge if before < 0 => None,
        Slt | Ult => Some(Guard::AtMost(right, moved(-1)?)),
        Sle | Ule | Eq => Some(Guard::AtMost(right, moved(0)?)),
        Sgt | Ugt => Some(Guard::AtLeast(moved(constant?.checked_add(1)?)?)),
        Sge | Uge => Some(Guard::AtLeast(moved(constant?)?)),
        Ne if constant == Some(before) => Some(Guard::AtLeast(after.checked_add(1)?)),
        Ne => last_excluded(alias, lp, right, before, after),
    }
}

/// `index + before ≠ limit` where the limit is the last value: what is left stays below it.
fn last_excluded(
    alias: &Alias,
    lp: gradus_ir::Op,
    limit: Value,
    before: i64,
    after: i64,
) -> Option<Guard> {
    let (unit, body) = (alias.unit, alias.body);
    let count = body.operand(lp, 0);
    (unit.types.int_bits(body.ty(count)) == Some(64)).then_some(())?;
    let trips = alias.forms.of_integer(unit, body, count);
    let last = trips.plus(&Linear::constant(before.checked_sub(1)?))?;
    let limit_form = alias.forms.of_integer(unit, body, limit);
    (last.terms == limit_form.terms && last.constant == limit_form.constant).then_some(
        Guard::AtMost(limit, after.checked_sub(before)?.checked_sub(1)?),
    )
}

/// The index and the constant whose sum a value is.
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
