//! Two-phase schedule: loops whose neighbouring iterations add to the same locations execute even chunks
//! first, then odd chunks.
//!
//! Neighbouring iterations of a stencil add to overlapping locations, but chunks at a distance do not. All
//! even chunks execute concurrently, then all odd ones, with plain adds.
//!
//! 1. The loop is independent, hence plain accesses do not alias adds of other iterations. The loop contains
//!    no other atomic adds and no calls that may add. Carried values are invariant or sums. Other carried
//!    values depend on the order: the seed of a maximum belongs to the last iteration that raised it, the
//!    adjoint of a product multiplies later factors.
//! 2. Each address is linear in the indices of the loop and of nested loops. The step of an index is the
//!    address difference between index 1 and index 0. With the loop-invariant trip counts of nested loops, the
//!    steps yield the byte range of an iteration and of the whole loop.
//! 3. For each pair of adds, including an add with itself, one of two conditions holds. The ranges over the
//!    whole loop are disjoint; or both adds have equal steps and the combined range of an iteration is at most
//!    the step of a chunk. Chunks of one phase are then disjoint. A run-time test checks the condition, with
//!    numbers small enough to exclude overflow; otherwise the atomic loop executes.
//! 4. A run-time test checks profitability: enough adds.
//!
//! Runs after differentiation, after [`crate::derivative::accumulation::privatize`].

use crate::derivative::accumulation::{
    OPS_MAX, all_in, carries_only_sums, compute_value, emit_ceil_div, emit_min_remaining,
    has_atomic_adds, injective_indices, is_atomic_add, may_observe_atomics, move_iterations,
    replace_loop, trip_count_i64, two_phase_indirect, value_slice,
};
use crate::loops::unswitch::version_loop;
use gradus_analysis::{Alias, PassContext, affine};
use gradus_edit::{ValueMap, emit_min_max, is_pure};
use gradus_ir::externals::ExternalFn;
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Flags, FloatKind, IntPredicate, LocId, Op, OpKind, Type, Unit,
    Value,
};

/// Maximum number of chunks of a loop, and minimum number of iterations of a chunk.
const CHUNKS_MAX: i64 = 64;
const CHUNK_TRIPS_MIN: i64 = 4;
/// Minimum number of executed adds to schedule a loop in phases.
pub const PHASES_ADDS_MIN: i64 = 1 << 13;
/// Maximum number of adds; the test compares all pairs.
const ADDS_MAX: usize = 12;
const DIMS_MAX: usize = 3;
/// Upper bounds: of steps and trip counts, and of the bytes that an iteration touches.
const STEP_MAX: i64 = 1 << 31;
const TOUCHED_BYTES_MAX: i64 = 1 << 40;

/// Schedules such loops of a body in phases; returns whether there were any.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    !schedule_in_phases(unit, body, facts, PHASES_ADDS_MIN).is_empty()
}

/// Runs the pass on loops that execute at least `least` adds. Returns the locations of the adds that now
/// have a plain version.
pub fn schedule_in_phases(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    least: i64,
) -> Vec<Option<LocId>> {
    if !has_atomic_adds(body) {
        return Vec::new();
    }
    let outermost = |op: &Op| {
        let mut around = body.ancestors(*op);
        body.is_independent(*op) && !around.any(|op| body.is_independent(op))
    };
    let loops: Vec<Op> = body.walk(body.root()).filter(outermost).collect();
    let (mut given, mut others) = (Vec::new(), Vec::new());
    for lp in loops {
        let sums = carries_only_sums(unit, body, lp)
            .then(|| linear_adds(unit, body, facts, lp))
            .flatten();
        match sums {
            Some(adds) => {
                given.extend(adds.iter().map(|add| body.ops[add.op].loc));
                version_in_phases(unit, body, lp, &adds, least);
            }
            None => others.push(lp),
        }
    }
    let (plain, others) = injective_indices::version_injective(unit, body, facts, others, least);
    given.extend(plain);
    let others = others
        .into_iter()
        .filter(|lp| carries_only_sums(unit, body, *lp));
    let others: Vec<Op> = others.collect();
    given.extend(two_phase_indirect::schedule_indirect(
        unit, body, facts, &others, least,
    ));
    given
}

/// Add, with the nested loops whose indices determine the address.
struct LinearAdd {
    op: Op,
    loops: Vec<Op>,
    bytes: i64,
}

/// Returns the atomic adds of a loop and the calls that may add as well. `None` if the loop has no atomic
/// adds or other ops may observe them.
pub(super) fn atomic_adds_and_calls(
    unit: &Unit,
    body: &Body,
    lp: Op,
) -> Option<(Vec<Op>, Vec<Op>)> {
    let calls = |op: &Op| {
        let known = || unit.known_callee(body, *op);
        let quiet = || {
            is_pure(unit, body, *op)
                || matches!(known(), Some(ExternalFn::Memory(_) | ExternalFn::Marker(_)))
        };
        body.kind(*op).call_info().is_some() && !quiet()
    };
    let sharing = body.ops[lp].flags.has(Flags::ALLOWS_EQUAL_WRITES);
    let long = all_in(body, lp).nth(OPS_MAX).is_some();
    if sharing || long || all_in(body, lp).any(|op| may_observe_atomics(body, op)) {
        return None;
    }
    let sums: Vec<Op> = all_in(body, lp)
        .filter(|op| is_atomic_add(body, *op))
        .collect();
    let calls = all_in(body, lp).filter(calls).collect();
    (!sums.is_empty()).then_some((sums, calls))
}

/// Returns the adds of a loop, if all pairs can be compared.
fn linear_adds(unit: &Unit, body: &Body, facts: &PassContext, lp: Op) -> Option<Vec<LinearAdd>> {
    let (sums, calls) = atomic_adds_and_calls(unit, body, lp)?;
    if sums.len() > ADDS_MAX || !calls.is_empty() {
        return None;
    }
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    sums.into_iter()
        .map(|op| match_add(unit, body, &alias, lp, op))
        .collect()
}

fn match_add(unit: &Unit, body: &Body, alias: &Alias<'_>, lp: Op, op: Op) -> Option<LinearAdd> {
    let bytes = match unit.types.get(body.ty(body.result(op))) {
        Type::Float(FloatKind::F64) => 8,
        Type::Float(FloatKind::F32) => 4,
        _ => return None,
    };
    let pointer = body.operand(op, 0);
    let form = affine(alias, pointer, Some(lp))?;
    form.terms_of(lp).next()?;
    let mut dims = value_slice(unit, body, lp, pointer)?.loops;
    dims.retain(|at| *at != lp);
    let known = |at: &Op| {
        value_slice(unit, body, lp, body.operand(*at, 0))
            .is_some_and(|trips| trips.loops.is_empty())
    };
    (dims.len() <= DIMS_MAX && dims.iter().all(known)).then_some(LinearAdd {
        op,
        loops: dims,
        bytes,
    })
}

/// Byte range of an add, as addresses.
struct Reach {
    step: Value,
    /// First byte and end in the first iteration.
    low: Value,
    high: Value,
    /// First byte and end over all iterations.
    first: Value,
    end: Value,
}

/// Run-time test under construction: conditions that must all hold.
struct PhaseTest<'a, 'b> {
    b: &'a mut Builder<'b>,
    lp: Op,
    conditions: Vec<Value>,
}

impl PhaseTest<'_, '_> {
    fn require(&mut self, predicate: IntPredicate, a: Value, b: Value) {
        let one = self.b.icmp(predicate, a, b);
        self.conditions.push(one);
    }

    /// Requires a number to lie between `-limit` and `limit`.
    fn require_near(&mut self, value: Value, limit: i64) {
        let (half, all) = (self.b.i64(limit), self.b.i64(2 * limit));
        let moved = self.b.add(value, half);
        self.require(IntPredicate::Ult, moved, all);
    }

    /// Emits the address of an add with index 1 for loop `one` and index 0 for all other loops.
    fn address_at_unit_index(&mut self, add: &LinearAdd, one: Option<Op>) -> Value {
        let mut map = ValueMap::new();
        for at in add.loops.iter().copied().chain([self.lp]) {
            let index = self.b.body.region_params(self.b.body.op_regions(at)[0])[0];
            let ty = self.b.body.ty(index);
            let number = self.b.int(ty, i128::from(one == Some(at)));
            map.set(index, number);
        }
        let pointer = self.b.body.operand(add.op, 0);
        let place = compute_value(self.b, self.lp, pointer, &mut map);
        let long = self.b.unit.types.int(64);
        self.b.cast(CastOp::PtrToInt, place, long)
    }

    fn emit_touched_bytes(&mut self, add: &LinearAdd, trips: Value) -> Reach {
        let start = self.address_at_unit_index(add, None);
        let zero = self.b.i64(0);
        let (mut low, mut high) = (zero, self.b.i64(add.bytes));
        for &at in &add.loops {
            let ahead = self.address_at_unit_index(add, Some(at));
            let step = self.b.sub(ahead, start);
            let count = self.b.body.operand(at, 0);
            let count = compute_value(self.b, self.lp, count, &mut ValueMap::new());
            let count = gradus_edit::to_i64(self.b, count);
            let (less, more) = self.emit_distance(step, count);
            self.require_near(less, TOUCHED_BYTES_MAX);
            self.require_near(more, TOUCHED_BYTES_MAX);
            low = self.b.add(low, less);
            high = self.b.add(high, more);
        }
        let (low, high) = (self.b.add(start, low), self.b.add(start, high));
        let ahead = self.address_at_unit_index(add, Some(self.lp));
        let step = self.b.sub(ahead, start);
        let (less, more) = self.emit_distance(step, trips);
        let (first, end) = (self.b.add(low, less), self.b.add(high, more));
        self.require(IntPredicate::Ult, first, end);
        self.require(IntPredicate::Ule, first, low);
        self.require(IntPredicate::Ule, high, end);
        Reach {
            step,
            low,
            high,
            first,
            end,
        }
    }

    /// Emits the negative and positive distance that `count` iterations of a given step cover.
    fn emit_distance(&mut self, step: Value, count: Value) -> (Value, Value) {
        let (zero, one, near) = (self.b.i64(0), self.b.i64(1), self.b.i64(STEP_MAX));
        self.require_near(step, STEP_MAX);
        self.require(IntPredicate::Ult, count, near);
        let none = self.b.icmp(IntPredicate::Eq, count, zero);
        let last = self.b.sub(count, one);
        let last = self.b.select(none, zero, last);
        let far = self.b.mul(step, last);
        let less = emit_min_max(self.b, IntPredicate::Slt, far, zero);
        let more = emit_min_max(self.b, IntPredicate::Sgt, far, zero);
        (less, more)
    }

    /// Requires that two adds do not conflict between chunks of `length` iterations with another chunk in
    /// between.
    fn require_disjoint_chunks(&mut self, one: &Reach, other: &Reach, length: Value) {
        let low = emit_min_max(self.b, IntPredicate::Ult, one.low, other.low);
        let high = emit_min_max(self.b, IntPredicate::Ugt, one.high, other.high);
        let touched = self.b.sub(high, low);
        let zero = self.b.i64(0);
        let back = self.b.sub(zero, one.step);
        let size = emit_min_max(self.b, IntPredicate::Sgt, one.step, back);
        let room = self.b.mul(size, length);
        let same = self.b.icmp(IntPredicate::Eq, one.step, other.step);
        let fits = self.b.icmp(IntPredicate::Ule, touched, room);
        let beside = self.b.binary(BinaryOp::And, same, fits);
        let below = self.b.icmp(IntPredicate::Ule, one.end, other.first);
        let above = self.b.icmp(IntPredicate::Ule, other.end, one.first);
        let away = self.b.binary(BinaryOp::Or, below, above);
        let apart = self.b.binary(BinaryOp::Or, beside, away);
        self.conditions.push(apart);
    }
}

/// Versions the loop: the two-phase loop executes if the test holds.
fn version_in_phases(unit: &mut Unit, body: &mut Body, lp: Op, adds: &[LinearAdd], least: i64) {
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[lp].loc;
    b.set_insertion_before(lp);
    let trips = trip_count_i64(&mut b, lp);
    let length = emit_chunk_length(&mut b, trips, CHUNKS_MAX);
    let pays = emit_test(&mut b, lp, adds, [trips, length], least);
    let old: Vec<Op> = all_in(b.body, lp).collect();
    let whole = version_loop(&mut b, lp, pays);
    let new: Vec<Op> = all_in(b.body, whole).collect();
    let copies = adds.iter().filter_map(|add| {
        let at = old.iter().position(|op| *op == add.op)?;
        new.get(at).copied()
    });
    let sums: Vec<Op> = copies.collect();
    b.set_insertion_before(whole);
    let two = b.i64(2);
    let inner = emit_phases(&mut b, whole, length, two);
    chunk_adds_to_plain(&mut b, inner, sums);
}

/// Emits the number of iterations per chunk, for at most `parts` chunks.
pub(super) fn emit_chunk_length(b: &mut Builder<'_>, trips: Value, parts: i64) -> Value {
    let (most, least) = (b.i64(parts), b.i64(CHUNK_TRIPS_MIN));
    let length = emit_ceil_div(b, trips, most);
    let short = b.icmp(IntPredicate::Ult, length, least);
    b.select(short, least, length)
}

/// Turns the adds of a chunk's iterations into plain adds; loops between add and chunk are no longer
/// independent.
pub(super) fn chunk_adds_to_plain(b: &mut Builder<'_>, part: Op, sums: Vec<Op>) {
    for op in sums {
        let around = b.body.ancestors(op);
        let loops: Vec<Op> = around.take_while(|at| *at != part).collect();
        for at in loops {
            let flags = &mut b.body.ops[at].flags;
            *flags = flags.without(Flags::INDEPENDENT);
        }
        gradus_edit::atomic_to_plain(b, op);
    }
}

/// Emits the run-time test: chunks may execute in phases, and the schedule is profitable.
fn emit_test(
    b: &mut Builder<'_>,
    lp: Op,
    adds: &[LinearAdd],
    [trips, length]: [Value; 2],
    least: i64,
) -> Value {
    let mut asked = PhaseTest {
        b,
        lp,
        conditions: Vec::new(),
    };
    let reaches: Vec<Reach> = adds
        .iter()
        .map(|add| asked.emit_touched_bytes(add, trips))
        .collect();
    for (number, one) in reaches.iter().enumerate() {
        for other in &reaches[number..] {
            asked.require_disjoint_chunks(one, other, length);
        }
    }
    let all = asked.conditions;
    let mut count = trips;
    if let Some(add) = adds.first() {
        for &at in &add.loops {
            let times = b.body.operand(at, 0);
            let times = compute_value(b, lp, times, &mut ValueMap::new());
            let times = gradus_edit::to_i64(b, times);
            let most = b.i64(least);
            let less = b.icmp(IntPredicate::Ult, times, most);
            let times = b.select(less, times, most);
            count = b.mul(count, times);
        }
    }
    let least = b.i64(least);
    let mut yes = b.icmp(IntPredicate::Uge, count, least);
    let bit = b.unit.types.int(1);
    for one in all {
        let settled = b.value(OpKind::Freeze, &[one], bit);
        yes = b.binary(BinaryOp::And, yes, settled);
    }
    yes
}

/// Replaces a loop by `rounds` phases of chunks; returns the loop over a chunk's iterations.
pub(super) fn emit_phases(b: &mut Builder<'_>, lp: Op, length: Value, rounds: Value) -> Op {
    let (flags, trips) = (b.body.ops[lp].flags, trip_count_i64(b, lp));
    let operands: Vec<Value> = b.body.operands(lp).collect();
    let parts = emit_ceil_div(b, trips, length);
    let (all, round) = b.for_(rounds, &operands[1..]);
    b.set_insertion_end(round);
    let carried = b.body.region_params(round).to_vec();
    let one = b.i64(1);
    let more = b.add(parts, rounds);
    let more = b.sub(more, one);
    let more = b.sub(more, carried[0]);
    let count = b.binary(BinaryOp::UDiv, more, rounds);
    let (outer, region) = b.for_(count, &carried[1..]);
    b.body.ops[outer].flags = flags;
    let results = b.body.results(outer).to_vec();
    b.yield_(&results);
    b.set_insertion_end(region);
    let params = b.body.region_params(region).to_vec();
    let before = b.mul(params[0], rounds);
    let number = b.add(before, carried[0]);
    let first = b.mul(number, length);
    let count = emit_min_remaining(b, trips, first, length);
    let inner = move_iterations(b, lp, [first, count], &params[1..]);
    let results = b.body.results(inner).to_vec();
    b.yield_(&results);
    replace_loop(b, lp, all);
    inner
}
