//! Folds the guard of a `for` into its trip count: `if (n > 0) { for n }` becomes `for n`.
//!
//! The `if` may contain only the `for` and speculatable ops, and its other arm must be empty. The condition
//! and the trip count must share an operand. A `for` under an unrelated condition stays guarded, because its
//! trip count is then known without the condition. Floating-point ops with unbounded partial derivatives also
//! stay under the condition.

use crate::facts::effects::is_speculatable;
use crate::facts::implied_conditions::{Comparison, condition_implies_claim};
use crate::facts::integers;
use crate::loops::induction::strip_negations;
use crate::rewrite::trivial_dce::remove_dead_defs;
use gradus_ir::integers::int_value;
use gradus_ir::{BinaryOp, Body, Builder, IntPredicate, Op, OpKind, Region, Unit, Value};

/// Maximum number of values inspected to find the operands of an integer.
const VALUES_MAX: usize = 24;

/// Folds the `if`s directly enclosing the `for`s of a body, inner loops first; returns the number of folds.
pub fn fold_guards(unit: &mut Unit, body: &mut Body) -> usize {
    let mut loops: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::For { .. }))
        .collect();
    loops.reverse();
    let mut folded = 0;
    for op in loops {
        while fold_guard(unit, body, op, None).is_some() {
            folded += 1;
        }
    }
    folded
}

/// Folds the `if` directly enclosing the `for` `op` into its trip count. `guard` is the `if` already known as
/// the guard, if any. Returns the `for` if folded.
pub(crate) fn fold_guard(
    unit: &mut Unit,
    body: &mut Body,
    op: Op,
    guard: Option<Op>,
) -> Option<Op> {
    let arm = body.parent(op)?;
    let around = body.owner(arm)?;
    if !matches!(body.kind(around), OpKind::If) {
        return None;
    }
    let condition = body.operand(around, 0);
    let truth = body.op_regions(around)[0] == arm;
    let other = body.op_regions(around)[usize::from(truth)];
    let taken = body.yielded(arm)?;
    let skipped = body.yielded(other)?;
    let empty = body.first(other) == body.last(other);
    if is_loop_test(unit, body, around) {
        return None;
    }
    let related =
        guard == Some(around) || shares_operand(unit, body, condition, body.operand(op, 0));
    if !empty || !related || !may_move_out(unit, body, arm, op) {
        return None;
    }
    let none = {
        let ty = body.ty(body.operand(op, 0));
        let zero = Builder::new(unit, body).zero(ty);
        Comparison::new(IntPredicate::Eq, body.operand(op, 0), zero)
    };
    let zero_without = condition_implies_claim(unit, body, condition, !truth, none);
    while let Some(first) = body.first(arm).filter(|&o| !body.kind(o).is_terminator()) {
        body.detach(first);
        body.insert_before(around, first);
    }
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[op].loc;
    if !zero_without {
        b.set_insertion_before(op);
        let runs = b.body.operand(op, 0);
        let runs = emit_select(&mut b, condition, truth, runs, none.right);
        b.body.set_operand(op, 0, runs);
    }
    b.set_insertion_before(around);
    for (index, (&a, &e)) in taken.iter().zip(&skipped).enumerate() {
        let result = b.body.results(around)[index];
        if b.body.has_uses(result) {
            let value = merged_result(&mut b, op, condition, truth, a, e);
            b.body.replace_uses(result, value);
        }
    }
    body.erase(around);
    remove_dead_defs(unit, body, taken.into_iter().chain([condition]));
    Some(op)
}

/// Returns whether the `if` is the test of an enclosing loop; the conversion of the enclosing loop handles
/// the test.
fn is_loop_test(unit: &Unit, body: &Body, around: Op) -> bool {
    let Some(end) = body
        .next(around)
        .filter(|&o| matches!(body.kind(o), OpKind::Repeat))
    else {
        return false;
    };
    let (again, _) = strip_negations(unit, body, body.operand(end, 0), true);
    body.def_op(again) == Some(around)
}

/// Returns whether all ops of `arm` except `op` may execute without the condition.
fn may_move_out(unit: &Unit, body: &Body, arm: Region, op: Op) -> bool {
    body.ops_in(arm).all(|inner| {
        inner == op
            || matches!(body.kind(inner), OpKind::Yield)
            || (is_speculatable(unit, body, inner) && has_bounded_derivatives(unit, body, inner))
    })
}

/// Returns whether all partial derivatives of the op are bounded, hence a zero adjoint stays zero.
fn has_bounded_derivatives(unit: &Unit, body: &Body, op: Op) -> bool {
    use BinaryOp::{FAdd, FSub};
    let float = |v: Value| unit.types.float_kind(body.ty(v)).is_some();
    match body.kind(op) {
        OpKind::Binary(FAdd | FSub) | OpKind::FNeg | OpKind::Cast(_) | OpKind::Select => true,
        OpKind::Binary(_) | OpKind::Call(_) => !body.results(op).iter().any(|&v| float(v)),
        _ => true,
    }
}

/// Emits a result of the `if`: `taken` if the loop's condition held, otherwise `skipped`.
fn merged_result(
    b: &mut Builder,
    op: Op,
    condition: Value,
    truth: bool,
    taken: Value,
    skipped: Value,
) -> Value {
    if let Some(at) = b.body.results(op).iter().position(|&r| r == taken) {
        let initial = b.body.operand(op, 1 + at);
        let poison = b.body.is_poison(b.unit, initial);
        if poison {
            b.body.set_operand(op, 1 + at, skipped);
        }
        if poison || initial == skipped {
            return taken;
        }
    }
    emit_select(b, condition, truth, taken, skipped)
}

fn emit_select(b: &mut Builder, condition: Value, truth: bool, x: Value, y: Value) -> Value {
    if truth {
        integers::fold_or_select(b, condition, x, y)
    } else {
        integers::fold_or_select(b, condition, y, x)
    }
}

/// Returns whether `condition` and `number` depend on a common value.
fn shares_operand(unit: &Unit, body: &Body, condition: Value, number: Value) -> bool {
    let made_of = operand_closure(unit, body, number);
    let spoken_of = operand_closure(unit, body, condition);
    spoken_of.iter().any(|leaf| made_of.contains(leaf))
}

/// Returns all values that an integer is computed from, including `value`, up to [`VALUES_MAX`] values.
fn operand_closure(unit: &Unit, body: &Body, value: Value) -> Vec<Value> {
    let mut seen = vec![value];
    let mut next = 0;
    while next < seen.len() && seen.len() < VALUES_MAX {
        let op = body.def_op(seen[next]);
        next += 1;
        let Some(op) = op.filter(|&op| is_integer_op(body.kind(op))) else {
            continue;
        };
        for operand in body.operands(op) {
            if int_value(unit, body, operand).is_none() && !seen.contains(&operand) {
                seen.push(operand);
            }
        }
    }
    seen
}

fn is_integer_op(kind: &OpKind) -> bool {
    use OpKind::{Addr, Binary, Cast, ICmp, Select};
    matches!(kind, Binary(_) | Cast(_) | ICmp(_) | Select | Addr { .. })
}
