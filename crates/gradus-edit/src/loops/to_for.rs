//! Converts counted loops to `for` ops.
//!
//! LLVM's optimiser rotates loops: `if (n > 0) { loop { …; i += 1; again = i < n } }`. The steps are:
//!
//! 1. Find inductions, and the comparison of an induction that decides on another iteration (`counted`).
//! 2. Emit the trip count before the loop (`trips`). If the trip count cannot be proved correct in modular
//!    arithmetic, the op stays a `loop`.
//! 3. Rebuild the loop as a `for`: inductions become `start + index · step`; results that are not final
//!    carried values are carried as well.
//! 4. Fold the enclosing guard into the trip count (`guard`); loop nests become `for{for{for`.
//! 5. Mark a loop with [`Flags::NO_RUNTIME_UNROLL`] if its trip count costs more than the original loop test. Analyses
//!    may use the trip count, but LLVM should not unroll the loop.
//!
//! `while_to_for.rs` converts loops with a test at the top (`loop { if c { …; again } else { exit } }`).

use crate::facts::effects::may_not_complete;
use crate::facts::integers;
use crate::loops::fold_guards::fold_guard;
use crate::loops::induction;
use crate::loops::induction::{ADDRESS_FLAGS, Amount, Induction, Scope};
use crate::loops::strided;
use crate::loops::trip_count_ops::{TestPosition, TripCount, emit_trip_count};
use crate::loops::while_to_for;
use crate::rewrite::trivial_dce::remove_dead_defs;
use gradus_ir::integers::{int_value, signed};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, Body, Builder, CastOp, Flags, Op, OpKind, Region, Type, Unit, Value};

/// Converts all counted loops of a body to `for` ops, inner loops first; returns their number.
pub fn loops_to_fors(unit: &mut Unit, body: &mut Body) -> usize {
    let mut ops: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::Loop { .. }))
        .collect();
    ops.reverse();
    let converted = ops
        .into_iter()
        .filter(|&op| loop_to_for(unit, body, op).is_some());
    converted.count()
}

/// Converts a counted `loop` to a `for` and folds the directly enclosing guard.
///
/// If only one of several exits is counted with constant bounds, sets `trip_max` of the loop.
pub fn loop_to_for(unit: &mut Unit, body: &mut Body, op: Op) -> Option<Op> {
    loop_to_for_with(unit, body, op, &[])
}

/// Like [`loop_to_for`], for a loop that steps by one of the values `positive`, known to be greater than
/// zero.
pub fn strided_to_for(unit: &mut Unit, body: &mut Body, op: Op, positive: &[Value]) -> Option<Op> {
    let made = convert_bottom_tested(unit, body, op, &[], positive)?;
    Some(finish_for(unit, body, &made))
}

/// Like [`loop_to_for`], but carried values at the positions `own` stay carried even if they are inductions.
/// A thread that does not execute all iterations counts its own.
pub fn loop_to_for_with(unit: &mut Unit, body: &mut Body, op: Op, own: &[usize]) -> Option<Op> {
    let OpKind::Loop { trip_max } = *body.kind(op) else {
        return None;
    };
    let made = convert_bottom_tested(unit, body, op, own, &[])
        .or_else(|| while_to_for::convert(unit, body, op, own));
    let Some(made) = made else {
        while_to_for::set_trip_max_by_extra_exit(unit, body, op);
        return None;
    };
    let trips = int_value(unit, body, made.trips.value);
    let exact = trips.and_then(|(n, _)| u64::try_from(n).ok());
    body.ops[made.op].kind = OpKind::For {
        trip_max: exact.or(trip_max),
    };
    Some(finish_for(unit, body, &made))
}

/// Marks a `for` whose trip count is a quotient and folds its guard.
fn finish_for(unit: &mut Unit, body: &mut Body, made: &ConvertedLoop) -> Op {
    if made.trips.is_quotient {
        body.ops[made.op].flags = body.ops[made.op].flags.with(Flags::NO_RUNTIME_UNROLL);
    }
    fold_guard(unit, body, made.op, made.trips.guard).unwrap_or(made.op)
}

/// Returns whether the carried value at `position` of a `loop` is an induction.
pub fn is_induction(unit: &Unit, body: &Body, op: Op, position: usize) -> bool {
    let found = bottom_inductions(unit, body, op).map(|(found, _)| found);
    let is = |found: &[Option<Induction>]| found.get(position).is_some_and(Option::is_some);
    found.is_some_and(|found| is(&found))
        || while_to_for::inductions(unit, body, op).is_some_and(|found| is(&found))
}

/// Loop converted to a `for`.
pub(crate) struct ConvertedLoop {
    pub op: Op,
    pub trips: TripCount,
}

/// Origin of a loop result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultOrigin {
    /// Value defined outside the loop.
    Outside(Value),
    /// Final carried value at a position.
    FinalCarried(usize),
    /// Value of the induction at a position in the last iteration.
    InLastRun(usize),
    /// Value of the last iteration, carried as an extra value with the given number.
    ExtraCarried(usize),
}

/// Returns the inductions of a loop with its test at the bottom, and the carried values if the loop
/// continues.
fn bottom_inductions(
    unit: &Unit,
    body: &Body,
    op: Op,
) -> Option<(Vec<Option<Induction>>, Vec<Value>)> {
    let region = *body.op_regions(op).first()?;
    let repeat = body.last(region)?;
    if !matches!(body.kind(repeat), OpKind::Repeat) {
        return None;
    }
    let scope = Scope { region, arm: None };
    let initial: Vec<Value> = body.operands(op).collect();
    let next = body.operands(repeat).skip(1).take(initial.len());
    let again = body.operand(repeat, 0);
    let going: Vec<Value> = next
        .map(|v| induction::value_if_repeating(unit, body, again, v))
        .collect();
    let found = induction::inductions(unit, body, scope, &initial, &going);
    Some((found, going))
}

fn convert_bottom_tested(
    unit: &mut Unit,
    body: &mut Body,
    op: Op,
    own: &[usize],
    positive: &[Value],
) -> Option<ConvertedLoop> {
    let (mut found, going) = bottom_inductions(unit, body, op)?;
    own.iter().for_each(|&k| found[k] = None);
    let region = body.op_regions(op)[0];
    let repeat = body.last(region)?;
    let carried = body.operand_count(op);
    let next: Vec<Value> = body.operands(repeat).skip(1).take(carried).collect();
    let again = body.operand(repeat, 0);
    let scope = Scope { region, arm: None };
    let test = induction::counted_test(unit, body, scope, &found, again, true);
    let leaves = may_not_complete(unit, body, region);
    let outside = body.parent(op)?;
    let loc = body.ops[op].loc;
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.set_insertion_before(op);
    let trips = match test {
        Some(test) => emit_trip_count(&mut b, &test, TestPosition::Bottom, outside, leaves)?,
        None => {
            strided::emit_strided_trip_count(&mut b, (scope, &found), again, outside, positive)?
        }
    };
    let (outcomes, extras) = classify_results(&mut b, op, repeat, &found, (&next, &going));
    let shape = NewFor::new(&mut b, op, trips.value, &found, &extras);
    let made = shape.op;
    let inner = shape.region;
    b.body.move_ops(region, inner);
    shape.replace_params(&mut b, region, trips);
    let loose = repeat_to_yield(&mut b, inner, repeat, &shape, &extras);
    b.set_insertion_before(op);
    let after = AfterLoop {
        found: &found,
        trips,
    };
    for (index, outcome) in outcomes.into_iter().enumerate() {
        let old = b.body.results(op)[index];
        if !b.body.has_uses(old) {
            continue;
        }
        let new = match outcome {
            ResultOrigin::Outside(value) => value,
            ResultOrigin::FinalCarried(k) => match shape.carried_index[k] {
                Some(at) => b.body.results(made)[at],
                None => after.final_value(&mut b, k),
            },
            ResultOrigin::InLastRun(k) => after.value_in_last_iteration(&mut b, k),
            ResultOrigin::ExtraCarried(k) => b.body.results(made)[shape.carried_count + k],
        };
        b.body.replace_uses(old, new);
    }
    body.erase(op);
    // Not earlier: a result may be an outside value without other uses yet.
    remove_dead_defs(unit, body, loose);
    Some(ConvertedLoop { op: made, trips })
}

/// Classifies each result; also returns the operands of `repeat` to carry as extra values.
fn classify_results(
    b: &mut Builder,
    op: Op,
    repeat: Op,
    found: &[Option<Induction>],
    (next, going): (&[Value], &[Value]),
) -> (Vec<ResultOrigin>, Vec<usize>) {
    let region = b.body.op_regions(op)[0];
    // An induction may have a different value at the loop exit.
    let carried = |value: Value| {
        let mut all = next.iter().zip(going).zip(found);
        all.position(|((&v, &g), f)| v == value && (v == g || f.is_none()))
    };
    let mut extras: Vec<usize> = Vec::new();
    let mut outcomes = Vec::new();
    for index in 0..b.body.results(op).len() {
        let at = 1 + next.len() + index;
        let value = b.body.operand(repeat, at);
        let param = b
            .body
            .region_params(region)
            .iter()
            .position(|&p| p == value);
        let outcome = if b.body.region_of(value) != Some(region) {
            ResultOrigin::Outside(value)
        } else if let Some(k) = carried(value) {
            ResultOrigin::FinalCarried(k)
        } else if let Some(k) = param.filter(|&k| found[k].is_some()) {
            ResultOrigin::InLastRun(k)
        } else if let Some(k) = extras
            .iter()
            .position(|&e| b.body.operand(repeat, e) == value)
        {
            ResultOrigin::ExtraCarried(k)
        } else {
            if b.body.has_uses(b.body.results(op)[index]) {
                extras.push(at);
            }
            ResultOrigin::ExtraCarried(extras.len().saturating_sub(1))
        };
        outcomes.push(outcome);
    }
    (outcomes, extras)
}

/// Replaces `repeat` in the moved body by a `yield` of the carried values; returns the operands of `repeat`.
fn repeat_to_yield(
    b: &mut Builder,
    inner: Region,
    repeat: Op,
    shape: &NewFor,
    extras: &[usize],
) -> Vec<Value> {
    let old: Vec<Value> = b.body.operands(repeat).collect();
    let carried = shape.carried_index.iter().enumerate();
    let mut yields: Vec<Value> = carried
        .filter(|(_, kept)| kept.is_some())
        .map(|(k, _)| old[1 + k])
        .collect();
    yields.extend(extras.iter().map(|&at| old[at]));
    b.body.erase(repeat);
    b.set_insertion_end(inner);
    b.yield_(&yields);
    old
}

/// New `for` before the old loop, with its region.
pub(crate) struct NewFor {
    pub op: Op,
    pub region: Region,
    /// For each carried value of the loop, its number among the carried values of the `for`; `None` for an
    /// induction.
    pub carried_index: Vec<Option<usize>>,
    pub carried_count: usize,
    found: Vec<Option<Induction>>,
}

impl NewFor {
    /// Emits the `for` at the builder's insertion point. `extras` are operands of the loop's terminator that
    /// the `for` carries additionally, initially poison.
    pub fn new(
        b: &mut Builder,
        old: Op,
        trips: Value,
        found: &[Option<Induction>],
        extras: &[usize],
    ) -> Self {
        let old_region = b.body.op_regions(old)[0];
        let mut carried_index = Vec::new();
        let mut initial = Vec::new();
        for (k, induction) in found.iter().enumerate() {
            carried_index.push(induction.is_none().then_some(initial.len()));
            if induction.is_none() {
                initial.push(b.body.operand(old, k));
            }
        }
        let carried_count = initial.len();
        for &at in extras {
            let last = b.body.last(old_region).map(|r| b.body.operand(r, at));
            let ty = last.map(|v| b.body.ty(v));
            initial.extend(ty.map(|ty| b.poison(ty)));
        }
        let (op, region) = b.for_(trips, &initial);
        let data = &b.body.ops[old];
        let (loc, meta, name) = (data.loc, data.meta, data.name.clone());
        let new = &mut b.body.ops[op];
        (new.loc, new.meta, new.name) = (loc, meta, name);
        NewFor {
            op,
            region,
            carried_index,
            carried_count,
            found: found.to_vec(),
        }
    }

    /// Emits the inductions at the start of the region, which already holds the body, and replaces the
    /// parameters of the old loop.
    pub fn replace_params(&self, b: &mut Builder, old: Region, trips: TripCount) {
        let index = b.body.region_params(self.region)[0];
        if let Some(first) = b.body.first(self.region) {
            b.set_insertion_before(first);
        }
        for (k, param) in b.body.region_params(old).to_vec().into_iter().enumerate() {
            if !b.body.has_uses(param) {
                continue;
            }
            let new = match (&self.found[k], self.carried_index[k]) {
                (Some(induction), _) => value_in_iteration(b, induction, index, trips.max),
                (None, Some(at)) => b.body.region_params(self.region)[1 + at],
                (None, None) => continue,
            };
            b.body.replace_uses(param, new);
        }
    }
}

/// Values of the inductions after the loop.
pub(crate) struct AfterLoop<'a> {
    pub found: &'a [Option<Induction>],
    pub trips: TripCount,
}

impl AfterLoop<'_> {
    /// Emits the induction at position `k` after the last iteration.
    pub fn final_value(&self, b: &mut Builder, k: usize) -> Value {
        self.value_after(b, k, self.trips.value, self.trips.max)
    }
    /// Emits the induction at position `k` in the last iteration.
    fn value_in_last_iteration(&self, b: &mut Builder, k: usize) -> Value {
        let one = b.i64(1);
        let runs = integers::fold_or_binary(b, BinaryOp::Sub, self.trips.value, one);
        self.value_after(b, k, runs, self.trips.max)
    }
    fn value_after(&self, b: &mut Builder, k: usize, runs: Value, max: u128) -> Value {
        match &self.found[k] {
            Some(induction) => {
                let plain = Induction {
                    flags: Flags::NONE,
                    ..induction.clone()
                };
                value_in_iteration(b, &plain, runs, max.saturating_add(1))
            }
            None => runs,
        }
    }
}

/// Emits the value of an induction in iteration `run`, an `i64` below `max`.
fn value_in_iteration(b: &mut Builder, induction: &Induction, run: Value, max: u128) -> Value {
    let ty = b.body.ty(induction.start);
    match *b.unit.types.get(ty) {
        Type::Ptr(_) => address_at(b, induction, run),
        Type::Int(bits) if is_computed_wide(b, induction, bits) => {
            let long = b.unit.types.int(64);
            let flags = Flags::NSW;
            let start = integers::fold_or_cast(b, CastOp::SExt, induction.start, long);
            let moved = times(b, run, &induction.step, 64, flags);
            let whole = match is_planted(Mutant::InductionFromZero) {
                true => moved,
                false => sum_with_flags(b, start, moved, flags),
            };
            let value = integers::fold_or_cast(b, CastOp::Trunc, whole, ty);
            b.set_flags(value, flags);
            value
        }
        Type::Int(bits) => {
            let flags = wrap_flags(b, induction, bits, max);
            let run = truncated_iteration(b, run, bits, max);
            let moved = times(b, run, &induction.step, bits, flags);
            match is_planted(Mutant::InductionFromZero) {
                true => moved,
                false => sum_with_flags(b, induction.start, moved, flags),
            }
        }
        _ => induction.start,
    }
}

/// Returns whether an induction is computed in 64 bits and truncated to its type.
///
/// A later extension for an address is then a 64-bit sum, which LLVM turns into an induction. If no step
/// leaves the narrow type, neither does the sum, hence NSW holds. From a constant start the narrow form can
/// carry NSW, too.
fn is_computed_wide(b: &Builder, induction: &Induction, bits: u32) -> bool {
    bits < 64
        && induction.flags.has(Flags::NSW)
        && !induction.flags.has(Flags::NUW)
        && induction.step.as_constant().is_some()
        && int_value(b.unit, b.body, induction.start).is_none()
}

/// Returns the wrap flags of `start + run · step`, computed at once.
///
/// NUW holds for a sum of non-negative numbers if NUW holds for every step. NSW additionally requires the
/// product to stay in range. Sufficient conditions are start and step of equal sign with an unsigned
/// iteration number, or too few iterations to overflow (no loop executes 2⁶³ iterations).
fn wrap_flags(b: &Builder, induction: &Induction, bits: u32, max: u128) -> Flags {
    let start = int_value(b.unit, b.body, induction.start).map(|(n, _)| signed(n, bits));
    let step = induction.step.as_constant();
    let one_way = match (start, step) {
        (Some(start), Some(step)) if step >= 0 => start >= 0,
        (Some(start), Some(_)) => start <= 0 && max <= 1 << (bits - 1),
        _ => false,
    };
    let few = step.is_some_and(|step| {
        let by = u128::from(step.unsigned_abs());
        by == 1 && bits == 64 || max.saturating_mul(by) <= 1 << (bits - 1)
    });
    let whole = if step.is_some_and(|s| s >= 0) {
        induction.flags.and(Flags::NUW)
    } else {
        Flags::NONE
    };
    if one_way || few {
        whole.with(induction.flags.and(Flags::NSW))
    } else {
        whole
    }
}

/// Emits the iteration number as an integer of `bits` bits.
fn truncated_iteration(b: &mut Builder, run: Value, bits: u32, max: u128) -> Value {
    if bits >= 64 {
        return run;
    }
    let ty = b.unit.types.int(bits);
    let value = integers::fold_or_cast(b, CastOp::Trunc, run, ty);
    let mut flags = Flags::NONE;
    if max <= 1 << bits {
        flags = flags.with(Flags::NUW);
    }
    if max <= 1 << (bits - 1) {
        flags = flags.with(Flags::NSW);
    }
    if value != run {
        b.set_flags(value, flags);
    }
    value
}

/// Emits `run · amount`.
fn times(b: &mut Builder, run: Value, amount: &Amount, bits: u32, flags: Flags) -> Value {
    let ty = b.unit.types.int(bits);
    let constant = b.int(ty, i128::from(amount.constant));
    let mut total = binary_with_flags(b, BinaryOp::Mul, run, constant, flags);
    for &(value, factor) in &amount.terms {
        let factor = b.int(ty, i128::from(factor));
        let by = integers::fold_or_binary(b, BinaryOp::Mul, value, factor);
        let product = integers::fold_or_binary(b, BinaryOp::Mul, run, by);
        total = integers::fold_or_binary(b, BinaryOp::Add, total, product);
    }
    total
}

fn sum_with_flags(b: &mut Builder, start: Value, moved: Value, flags: Flags) -> Value {
    binary_with_flags(b, BinaryOp::Add, start, moved, flags)
}

/// Emits `x op y` with flags unless folded.
fn binary_with_flags(b: &mut Builder, op: BinaryOp, x: Value, y: Value, flags: Flags) -> Value {
    let value = integers::fold_or_binary(b, op, x, y);
    if value != x && value != y {
        b.set_flags(value, flags);
    }
    value
}

/// Emits the address of a pointer induction in iteration `run`.
fn address_at(b: &mut Builder, induction: &Induction, run: Value) -> Value {
    let flags = induction.flags.and(ADDRESS_FLAGS);
    let mut at = induction.start;
    if induction.step.constant != 0 {
        at = strided_address(b, at, run, induction.step.constant, flags);
    }
    let long = b.unit.types.int(64);
    for &(value, bytes) in &induction.step.terms {
        let wide = integers::fold_or_cast(b, CastOp::SExt, value, long);
        let index = integers::fold_or_binary(b, BinaryOp::Mul, run, wide);
        at = strided_address(b, at, index, bytes, Flags::NONE);
    }
    at
}

/// Emits `base + index · bytes` as an array element address.
fn strided_address(b: &mut Builder, base: Value, index: Value, bytes: i64, flags: Flags) -> Value {
    let (index, flags) = match bytes < 0 {
        true => {
            let zero = b.i64(0);
            let negated = integers::fold_or_binary(b, BinaryOp::Sub, zero, index);
            (negated, flags.without(Flags::NUW))
        }
        false => (index, flags),
    };
    let source = match bytes.unsigned_abs() {
        1 => b.unit.types.int(8),
        size => {
            let byte = b.unit.types.int(8);
            b.unit.types.array(byte, size)
        }
    };
    let ty = b.body.ty(base);
    let value = b.value(OpKind::Addr { source }, &[base, index], ty);
    b.set_flags(value, flags);
    value
}
