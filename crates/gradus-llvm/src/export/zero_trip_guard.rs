//! Trip counts that are nonzero under a condition, so that the condition alone guards the loop.
//!
//! A `while (i < n)` is imported as a `for` over `i < n ? n - i : 0`. If the count cannot be zero under the
//! condition, the guard is the condition, without a comparison of the count with zero.

use gradus_ir::{BinaryOp, Body, CastOp, ConstKind, IntPredicate, Op, OpKind, Unit, Value};

/// The most ops between the count and the difference that defines it.
const DEPTH_MAX: usize = 3;

/// The trip count is `count`, at least one, if `when` equals `holds`; otherwise zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GuardedTripCount {
    pub(super) count: Value,
    pub(super) when: Value,
    pub(super) holds: bool,
}

/// Matches the trip count of a `for`. The select must be in the region of the `for`.
pub(super) fn match_guarded_trip_count(
    unit: &Unit,
    body: &Body,
    op: Op,
) -> Option<GuardedTripCount> {
    let select = body.def_op(body.operand(op, 0))?;
    if !matches!(body.kind(select), OpKind::Select) || body.parent(select) != body.parent(op) {
        return None;
    }
    let [when, yes, no] = [0, 1, 2].map(|i| body.operand(select, i));
    let is_zero = |value: Value| number(unit, body, value) == Some(0);
    let (count, holds) = match (is_zero(yes), is_zero(no)) {
        (false, true) => (yes, true),
        (true, false) => (no, false),
        _ => return None,
    };
    let found = GuardedTripCount { count, when, holds };
    is_nonzero(unit, body, count, &found).then_some(found)
}

fn number(unit: &Unit, body: &Body, value: Value) -> Option<u128> {
    match unit.constant(body.as_const(value)?).kind {
        ConstKind::Int(number) => Some(number),
        _ => None,
    }
}

/// Returns whether the count is nonzero under its condition.
fn is_nonzero(unit: &Unit, body: &Body, count: Value, runs: &GuardedTripCount) -> bool {
    let mut count = count;
    for _ in 0..DEPTH_MAX {
        let Some(op) = body.def_op(count) else {
            return number(unit, body, count).is_some_and(|number| number != 0);
        };
        count = match body.kind(op) {
            OpKind::Cast(CastOp::ZExt) => body.operand(op, 0),
            OpKind::Binary(BinaryOp::Sub) => {
                return implies_unequal(body, runs, [body.operand(op, 0), body.operand(op, 1)]);
            }
            OpKind::Binary(BinaryOp::Add) => {
                let one = number(unit, body, body.operand(op, 1)) == Some(1);
                return one && is_below_max(unit, body, body.operand(op, 0));
            }
            _ => return false,
        };
    }
    false
}

/// Returns whether the condition of the loop implies that two values differ.
fn implies_unequal(body: &Body, runs: &GuardedTripCount, pair: [Value; 2]) -> bool {
    use IntPredicate::*;
    let Some(test) = body.def_op(runs.when) else {
        return false;
    };
    let compared = [0, 1].map(|i| body.operands(test).nth(i));
    let same = compared == pair.map(Some) || compared == [Some(pair[1]), Some(pair[0])];
    let apart = match body.kind(test) {
        OpKind::ICmp(Slt | Sgt | Ult | Ugt | Ne) => runs.holds,
        OpKind::ICmp(_) => !runs.holds,
        _ => return false,
    };
    same && apart
}

/// Returns whether a value is provably below the maximum of its type, so that adding one does not yield
/// zero.
fn is_below_max(unit: &Unit, body: &Body, value: Value) -> bool {
    let Some(op) = body.def_op(value) else {
        return false;
    };
    let least = match body.kind(op) {
        OpKind::Cast(CastOp::ZExt) => return true,
        OpKind::Binary(BinaryOp::UDiv) => 2,
        OpKind::Binary(BinaryOp::LShr) => 1,
        _ => return false,
    };
    number(unit, body, body.operand(op, 1)).is_some_and(|by| by >= least)
}

#[cfg(test)]
mod tests {
    use super::match_guarded_trip_count;
    use gradus_ir::{OpKind, Symbol, parse};

    /// Returns whether the condition of the trip count guards the first `for` of a function with the given
    /// code.
    fn is_tested(code: &str) -> bool {
        let text = format!("func @f(%a: i64, %b: i64, %s: i32, %t: i32) {{ {code} return }}");
        let unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        let Some(Symbol::Func(f)) = unit.symbol("f") else {
            panic!("it is there");
        };
        let body = unit.functions[f].body.as_deref().expect("it has code");
        let is_for = |op: &gradus_ir::Op| matches!(body.kind(*op), OpKind::For { .. });
        let op = body.walk(body.root()).find(is_for).expect("the loop");
        match_guarded_trip_count(&unit, body, op).is_some()
    }

    #[test]
    fn compared_difference_is_nonzero() {
        for (test, difference) in [
            ("icmp slt %a, %b", "sub %b, %a"),
            ("icmp ugt %a, %b", "sub %b, %a"),
            ("icmp ne %a, %b", "sub %a, %b"),
        ] {
            let code = format!("%c = {test} %d = {difference} %n = select %c, %d, 0");
            assert!(
                is_tested(&format!("{code} for %i < %n {{ yield }}")),
                "{code}"
            );
        }
        let wide = "%c = icmp slt %s, %t %d = sub %t, %s %e = zext %d -> i64
            %n = select %c, %e, 0 for %i < %n { yield }";
        assert!(is_tested(wide));
        let without =
            "%c = icmp sge %a, %b %d = sub %b, %a %n = select %c, 0, %d for %i < %n { yield }";
        assert!(is_tested(without));
        let strided =
            "%c = icmp slt %a, %b %d = sub %b, %a %e = sub %d, 1 %q = udiv %e, 3 %r = add %q, 1
            %n = select %c, %r, 0 for %i < %n { yield }";
        assert!(is_tested(strided));
    }

    #[test]
    fn possibly_zero_count_is_compared() {
        for code in [
            "%c = icmp sle %a, %b %d = sub %b, %a %n = select %c, %d, 0",
            "%c = icmp slt %a, %b %d = sub %b, %a %n = select %c, 0, %d",
            "%c = icmp slt %a, 9 %d = sub %b, %a %n = select %c, %d, 0",
            "%c = icmp slt %a, %b %d = add %b, 1 %n = select %c, %d, 0",
            "%c = icmp slt %a, %b %d = udiv %b, 1 %e = add %d, 1 %n = select %c, %e, 0",
            "%c = icmp slt %a, %b %n = select %c, %b, %a",
        ] {
            assert!(
                !is_tested(&format!("{code} for %i < %n {{ yield }}")),
                "{code}"
            );
        }
    }

    #[test]
    fn count_of_other_region_is_compared() {
        let code = "%c = icmp slt %a, %b %d = sub %b, %a %n = select %c, %d, 0
            if %c { for %i < %n { yield } yield } else { yield }";
        assert!(!is_tested(code));
    }
}
