//! Simplifies carried values and loop results: constant or duplicate carried values, and results defined
//! outside the loop.
//!
//! A carried value is constant if, assuming no change so far, the next value equals the initial value. The
//! analysis looks through branches, selects and inner loops.
//!
//! The initial value of a sum of squares changes from 0 to −0. A square is never −0, hence the first sum is
//! unchanged. LLVM removes an addition of −0 after unrolling, but not an addition of 0.

use crate::scalar::constants::{float_constant, float_splat, integer_splat};
use gradus_analysis::PassContext;
use gradus_edit::is_always_one_of;
use gradus_ir::externals::{ExternalFn, MathFn};
use gradus_ir::{BinaryOp, Body, Builder, FloatKind, Op, OpKind, Region, Unit, Value};
use std::collections::HashMap;

/// Simplifies the carried values of all loops of a body.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    let mut ops: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| body.kind(op).is_loop())
        .collect();
    ops.reverse();
    let mut changed = false;
    for op in ops {
        let Some(parts) = CarriedLayout::of(body, op) else {
            continue;
        };
        changed |= replace_constant_carried(body, op, &parts);
        changed |= merge_twins(unit, body, op, &parts);
        changed |= replace_outside_results(body, op, &parts);
        changed |= negate_zero_of_square_sums(unit, body, op, &parts);
    }
    changed
}

/// Changes the initial value of sums of squares to −0 in loops with at least one iteration.
fn negate_zero_of_square_sums(
    unit: &mut Unit,
    body: &mut Body,
    op: Op,
    parts: &CarriedLayout,
) -> bool {
    let runs = parts.results_are_carried
        && integer_splat(unit, body, body.operand(op, 0)).is_some_and(|(trips, _)| trips > 0);
    let mut changed = false;
    for k in 0..parts.count {
        let initial = parts.initial(body, op, k);
        let is_zero = float_splat(unit, body, initial).is_some_and(|n| n.to_bits() == 0);
        if !runs
            || !is_zero
            || !adds_square_to(unit, body, parts.param(body, k), parts.next(body, k))
        {
            continue;
        }
        let ty = body.ty(initial);
        let sign = match unit.types.float_kind(ty) {
            Some(FloatKind::F64) => 1 << 63,
            Some(FloatKind::F32) => 1 << 31,
            _ => continue,
        };
        let b = &mut Builder::new(unit, body);
        b.set_insertion_before(op);
        if let Some(begin) = float_constant(b, ty, sign) {
            b.body.set_operand(op, parts.first_operand + k, begin);
            changed = true;
        }
    }
    changed
}

/// Returns whether `next` adds a square to `sum`, and `sum` has no other use.
fn adds_square_to(unit: &Unit, body: &Body, sum: Value, next: Value) -> bool {
    let Some(op) = body.def_op(next) else {
        return false;
    };
    let is_square = |value: Value| {
        body.def_op(value).is_some_and(|op| {
            *body.kind(op) == OpKind::Binary(BinaryOp::FMul)
                && body.operand(op, 0) == body.operand(op, 1)
        })
    };
    let known = unit.known_callee(body, op);
    let adds = match *body.kind(op) {
        OpKind::Binary(BinaryOp::FAdd) => {
            let (a, b) = (body.operand(op, 0), body.operand(op, 1));
            a == sum && is_square(b) || b == sum && is_square(a)
        }
        OpKind::Call(_)
            if matches!(known, Some(ExternalFn::Math(MathFn::Fma | MathFn::Fmuladd))) =>
        {
            matches!(unit.call_args(body, op)[..], [x, y, to] if x == y && x != sum && to == sum)
        }
        _ => false,
    };
    adds && body.uses(sum).all(|u| u.op == op)
}

/// Positions of a loop's carried values among its operands, region parameters and terminator operands.
struct CarriedLayout {
    region: Region,
    end: Op,
    count: usize,
    first_operand: usize,
    first_param: usize,
    first_next: usize,
    /// True if the loop's results are the final carried values.
    results_are_carried: bool,
}

impl CarriedLayout {
    fn of(body: &Body, op: Op) -> Option<CarriedLayout> {
        let region = body.op_regions(op)[0];
        let end = body.last(region)?;
        let operands = body.operand_count(op);
        match (body.kind(op), body.kind(end)) {
            (OpKind::For { .. }, OpKind::Yield) => Some(CarriedLayout {
                region,
                end,
                count: operands - 1,
                first_operand: 1,
                first_param: 1,
                first_next: 0,
                results_are_carried: true,
            }),
            (OpKind::Loop { .. }, OpKind::Repeat) => Some(CarriedLayout {
                region,
                end,
                count: operands,
                first_operand: 0,
                first_param: 0,
                first_next: 1,
                results_are_carried: false,
            }),
            _ => None,
        }
    }
    fn initial(&self, body: &Body, op: Op, k: usize) -> Value {
        body.operand(op, self.first_operand + k)
    }
    fn param(&self, body: &Body, k: usize) -> Value {
        body.region_params(self.region)[self.first_param + k]
    }
    fn next(&self, body: &Body, k: usize) -> Value {
        body.operand(self.end, self.first_next + k)
    }
}

fn replace_constant_carried(body: &mut Body, op: Op, parts: &CarriedLayout) -> bool {
    let mut changed = false;
    for k in 0..parts.count {
        let (initial, param) = (parts.initial(body, op, k), parts.param(body, k));
        let used = body.has_uses(param)
            || (parts.results_are_carried && body.has_uses(body.results(op)[k]));
        let next = parts.next(body, k);
        let trivial = next == param && !used;
        if trivial || !used || !is_always_one_of(body, next, vec![initial, param]) {
            continue;
        }
        body.replace_uses(param, initial);
        if parts.results_are_carried {
            let result = body.results(op)[k];
            body.replace_uses(result, initial);
        }
        changed = true;
    }
    changed
}

/// Merges carried values with equal next values and equal initial values; a poison initial value matches any.
fn merge_twins(unit: &Unit, body: &mut Body, op: Op, parts: &CarriedLayout) -> bool {
    let mut seen: HashMap<Value, Vec<usize>> = HashMap::new();
    let mut changed = false;
    for k in 0..parts.count {
        let (next, initial) = (parts.next(body, k), parts.initial(body, op, k));
        let others = seen.entry(next).or_default();
        let twin = others.iter().copied().find(|&o| {
            let other = parts.initial(body, op, o);
            other == initial || body.is_poison(unit, other) || body.is_poison(unit, initial)
        });
        let Some(twin) = twin else {
            others.push(k);
            continue;
        };
        let (gone, kept) = match body.is_poison(unit, parts.initial(body, op, twin)) {
            true => {
                others.retain(|o| *o != twin);
                others.push(k);
                (twin, k)
            }
            false => (k, twin),
        };
        let (old, new) = (parts.param(body, gone), parts.param(body, kept));
        changed |= body.has_uses(old);
        body.replace_uses(old, new);
        if parts.results_are_carried {
            let (old, new) = (body.results(op)[gone], body.results(op)[kept]);
            changed |= body.has_uses(old);
            body.replace_uses(old, new);
        }
    }
    changed
}

/// Replaces results of a `loop` that are outside values or duplicates.
fn replace_outside_results(body: &mut Body, op: Op, parts: &CarriedLayout) -> bool {
    if parts.results_are_carried {
        return false;
    }
    let mut seen: HashMap<Value, Value> = HashMap::new();
    let mut changed = false;
    for (index, result) in body.results(op).to_vec().into_iter().enumerate() {
        let value = body.operand(parts.end, 1 + parts.count + index);
        let outside = body.region_of(value) != Some(parts.region);
        let new = if outside {
            value
        } else {
            *seen.entry(value).or_insert(result)
        };
        if new != result && body.has_uses(result) {
            body.replace_uses(result, new);
            changed = true;
        }
    }
    changed
}
