//! Injective index arrays: plain adds if an index array contains each index at most once.
//!
//! If each iteration sums elements named by a section of an index array (a node sums over its element
//! corners), the adjoint adds to these locations. Distinct indices across iterations are a property of the
//! program's data, which a run-time inspector checks. The first pass over the index array finds the minimum
//! and maximum index, the second pass marks each index.
//!
//! 1. All adds of the loop lie in one region or in branches nested in the region. Only loops and branches
//!    enclose the region within the loop. All adds share one index, computable at the start of the region. The
//!    passes execute the same loops and branches and read the values that the iteration would read.
//! 2. The values read are unchanged before the loop: no op of an iteration clobbers them before the read, and
//!    a write by another iteration would be a race.
//! 3. Each updated array is disjoint from the other arrays, and its elements do not overlap.
//! 4. The index range is small enough to exclude address overflow, and the marks take only a few bytes per
//!    add.

use super::all_in;
use crate::derivative::accumulation::two_phase::{atomic_adds_and_calls, chunk_adds_to_plain};
use crate::derivative::accumulation::two_phase_indirect::{emit_touched_range, needed};
use crate::derivative::index_array_copies::{INDEX_ABS_MAX, indirect_access};
use crate::loops::unswitch::version_loop;
use gradus_analysis::{Alias, Clobbers, ExitClobbers, PassContext};
use gradus_edit::{ValueMap, clone_op_within};
use gradus_ir::{
    AttrSet, BinaryOp, Body, Builder, CastOp, Flags, IntPredicate, LocId, Op, OpKind, Unit, Value,
};
use std::collections::HashSet;

/// Assumed number of executions of each add per iteration.
const ADDS_PER_ITERATION: i64 = 4;
/// Maximum ratio of marks to adds.
const MARKS_PER_ADD_MAX: i64 = 16;
/// Maximum number of arrays; the test compares all pairs.
const ARRAYS_MAX: usize = 8;

/// Offsets into the inspector's counters: minimum index, maximum index, number of adds, and whether an index
/// occurs twice.
const MIN_INDEX: i64 = 0;
const MAX_INDEX: i64 = 8;
const ADD_COUNT: i64 = 16;
const DUPLICATE: i64 = 24;
const COUNTERS_BYTES: i64 = 32;

/// Updated array: base, element stride, and the byte range from an index's address to the first touched byte
/// and the end.
pub(super) struct AccumulatedArray {
    pub(super) base: Value,
    pub(super) scale: i64,
    pub(super) low: i64,
    pub(super) high: i64,
}

/// Op that encloses the adds within the loop: a loop, or a branch with its taken arm.
#[derive(Clone, Copy)]
enum EnclosingOp {
    For(Op),
    If(Op, bool),
}

struct InjectivePlan {
    sums: Vec<Op>,
    /// Enclosing ops, the outermost first.
    enclosing: Vec<EnclosingOp>,
    /// Indices of the loop and of its nested loops.
    indices: Vec<Value>,
    index: Value,
    rows: Vec<AccumulatedArray>,
}

/// Versions loops to add plainly if their index arrays are injective. Returns the locations of these adds,
/// and the remaining loops.
pub(super) fn version_injective(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    loops: Vec<Op>,
    least: i64,
) -> (Vec<Option<LocId>>, Vec<Op>) {
    let planned = |lp: &Op| plan_loop(unit, body, *lp).is_some();
    let (mut fit, mut left): (Vec<Op>, Vec<Op>) = loops.into_iter().partition(planned);
    if !fit.is_empty() {
        let (steady, others) = partition_by_clobbers(unit, body, facts, fit);
        left.extend(others);
        fit = steady;
    }
    let mut given = Vec::new();
    for lp in fit {
        if let Some(plan) = plan_loop(unit, body, lp) {
            given.extend(plan.sums.iter().map(|op| body.ops[*op].loc));
            version_by_inspector(unit, body, lp, &plan, least);
        }
    }
    (given, left)
}

/// Partitions loops into those whose inspector reads the same values as the iterations, and the others.
fn partition_by_clobbers(
    unit: &Unit,
    body: &Body,
    facts: &PassContext,
    loops: Vec<Op>,
) -> (Vec<Op>, Vec<Op>) {
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    let clobbers = Clobbers::of(&alias, facts.effects, ExitClobbers::default());
    loops.into_iter().partition(|lp| {
        let ops = plan_loop(unit, body, *lp).and_then(|plan| inspector_ops(unit, body, *lp, &plan));
        let loads = |op: &Op| matches!(body.kind(*op), OpKind::Load(_));
        let intact = |ops: Vec<Op>| {
            let mut loads = ops.into_iter().filter(loads);
            loads.all(|op| clobbers.unmodified_in_all_runs(op, *lp))
        };
        !clobbers.may_exit_in(*lp) && ops.is_some_and(intact)
    })
}

fn plan_loop(unit: &Unit, body: &Body, lp: Op) -> Option<InjectivePlan> {
    let (sums, calls) = atomic_adds_and_calls(unit, body, lp)?;
    if !calls.is_empty() {
        return None;
    }
    let index_of = |lp: Op| body.region_params(body.op_regions(lp)[0])[0];
    let (mut levels, mut indices) = (Vec::new(), vec![index_of(lp)]);
    let mut at = common_region_op(body, &sums)?;
    while body.parent_op(at)? != lp {
        let around = body.parent_op(at)?;
        levels.push(match body.kind(around) {
            OpKind::For { .. } => EnclosingOp::For(around),
            OpKind::If => EnclosingOp::If(
                around,
                body.parent(at) == body.op_regions(around).first().copied(),
            ),
            _ => return None,
        });
        at = around;
    }
    levels.reverse();
    let inner = levels.iter().filter_map(|level| match level {
        EnclosingOp::For(at) => Some(index_of(*at)),
        EnclosingOp::If(..) => None,
    });
    indices.extend(inner);
    if indices.len() < 2 {
        return None;
    }
    let (mut rows, mut index): (Vec<AccumulatedArray>, Option<Value>) = (Vec::new(), None);
    for &op in &sums {
        let ty = body.ty(body.result(op));
        let spot = indirect_access(unit, body, lp, body.operand(op, 0), ty)?;
        if *index.get_or_insert(spot.index) != spot.index {
            return None;
        }
        let (low, high) = (spot.offset, spot.offset + spot.bytes);
        let same = |row: &&mut AccumulatedArray| row.base == spot.base && row.scale == spot.scale;
        match rows.iter_mut().find(same) {
            Some(row) => (row.low, row.high) = (row.low.min(low), row.high.max(high)),
            None => rows.push(AccumulatedArray {
                base: spot.base,
                scale: spot.scale,
                low,
                high,
            }),
        }
    }
    let apart = rows.iter().all(|row| row.high - row.low <= row.scale);
    let plan = InjectivePlan {
        sums,
        enclosing: levels,
        indices,
        index: index?,
        rows,
    };
    (apart && plan.rows.len() <= ARRAYS_MAX && inspector_ops(unit, body, lp, &plan).is_some())
        .then_some(plan)
}

/// Returns the first op of `ops`, or its outermost enclosing branch in the region that contains all ops or
/// their enclosing branches.
fn common_region_op(body: &Body, ops: &[Op]) -> Option<Op> {
    let up = |at: &Op| {
        body.parent_op(*at)
            .filter(|around| matches!(body.kind(*around), OpKind::If))
    };
    let mut all = std::iter::successors(Some(*ops.first()?), up);
    all.find(|first| {
        let home = body.parent(*first);
        let stands_there = |op: &Op| {
            std::iter::successors(Some(*op), up).any(|around| body.parent(around) == home)
        };
        ops.iter().all(stands_there)
    })
}

/// Returns the ops that the passes execute to compute trip counts, conditions and the index.
fn inspector_ops(unit: &Unit, body: &Body, lp: Op, plan: &InjectivePlan) -> Option<Vec<Op>> {
    let asked = plan.enclosing.iter().map(|level| match level {
        EnclosingOp::For(op) | EnclosingOp::If(op, _) => body.operand(*op, 0),
    });
    let mut all = Vec::new();
    for value in asked.chain([plan.index]) {
        all.extend(needed(unit, body, lp, value, &plan.indices)?);
    }
    Some(all)
}

/// Emits the inspector before a loop and versions the loop.
fn version_by_inspector(
    unit: &mut Unit,
    body: &mut Body,
    lp: Op,
    plan: &InjectivePlan,
    least: i64,
) {
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[lp].loc;
    b.set_insertion_before(lp);
    let trips = super::trip_count_i64(&mut b, lp);
    let sums = i64::try_from(plan.sums.len()).unwrap_or(least);
    let least = b.i64((least / ADDS_PER_ITERATION / sums.max(1)).max(1));
    let enough = b.icmp(IntPredicate::Uge, trips, least);
    let bit = b.unit.types.int(1);
    let enough = b.value(OpKind::Freeze, &[enough], bit);
    let found = emit_if_else_false(&mut b, enough, |b| emit_injectivity_test(b, lp, plan));
    let old: Vec<Op> = all_in(b.body, lp).collect();
    let plain = version_loop(&mut b, lp, found);
    let new: Vec<Op> = all_in(b.body, plain).collect();
    let at = |op: &Op| old.iter().position(|other| other == op);
    let sums: Vec<Op> = plan
        .sums
        .iter()
        .filter_map(|op| Some(new[at(op)?]))
        .collect();
    chunk_adds_to_plain(&mut b, plain, sums);
}

/// Emits `condition ? then : false`.
fn emit_if_else_false(
    b: &mut Builder<'_>,
    condition: Value,
    then: impl FnOnce(&mut Builder<'_>) -> Value,
) -> Value {
    let bit = b.unit.types.int(1);
    let (choice, yes, no) = b.if_(condition, &[bit]);
    let place = b.set_insertion_end(no);
    let never = b.bool(false);
    b.yield_(&[never]);
    b.set_insertion_end(yes);
    let said = then(b);
    b.yield_(&[said]);
    b.restore_insertion_point(place);
    b.body.result(choice)
}

/// Emits the inspector: whether no index occurs twice.
fn emit_injectivity_test(b: &mut Builder<'_>, lp: Op, plan: &InjectivePlan) -> Value {
    let long = b.unit.types.int(64);
    let bytes = b.i64(COUNTERS_BYTES);
    let cell = call_allocator(b, "malloc", &[bytes]);
    for (at, value) in [
        (MIN_INDEX, i64::MAX),
        (MAX_INDEX, i64::MIN),
        (ADD_COUNT, 0),
        (DUPLICATE, 0),
    ] {
        let (place, value) = (counter_address(b, cell, at), b.i64(value));
        b.store(value, place);
    }
    emit_nest(b, lp, plan, |b, index| {
        for (at, predicate) in [
            (MIN_INDEX, IntPredicate::Slt),
            (MAX_INDEX, IntPredicate::Sgt),
        ] {
            let place = counter_address(b, cell, at);
            let so_far = b.load(long, place);
            let beyond = b.icmp(predicate, index, so_far);
            let next = b.select(beyond, index, so_far);
            b.store(next, place);
        }
        let place = counter_address(b, cell, ADD_COUNT);
        let (so_far, one) = (b.load(long, place), b.i64(1));
        let next = b.add(so_far, one);
        b.store(next, place);
    });
    let [least, greatest, adds] = [MIN_INDEX, MAX_INDEX, ADD_COUNT].map(|at| {
        let place = counter_address(b, cell, at);
        b.load(long, place)
    });
    let fits = emit_range_test(b, plan, [least, greatest, adds]);
    let found = emit_if_else_false(b, fits, |b| {
        let (span, one) = (b.sub(greatest, least), b.i64(1));
        let count = b.add(span, one);
        let marks = call_allocator(b, "calloc", &[count, one]);
        emit_nest(b, lp, plan, |b, index| {
            let byte = b.unit.types.int(8);
            let far = b.sub(index, least);
            let place = b.byte_addr(marks, far);
            let before = b.load(byte, place);
            let mark = b.int(byte, 1);
            b.store(mark, place);
            let before = b.cast(CastOp::ZExt, before, long);
            let place = counter_address(b, cell, DUPLICATE);
            let so_far = b.load(long, place);
            let next = b.binary(BinaryOp::Or, so_far, before);
            b.store(next, place);
        });
        let free = gradus_edit::declare_free(b.unit);
        b.call(free, &[marks]);
        let place = counter_address(b, cell, DUPLICATE);
        let (twice, none) = (b.load(long, place), b.i64(0));
        b.icmp(IntPredicate::Eq, twice, none)
    });
    let free = gradus_edit::declare_free(b.unit);
    b.call(free, &[cell]);
    found
}

/// Emits whether the index range permits marks and the arrays are disjoint.
fn emit_range_test(
    b: &mut Builder<'_>,
    plan: &InjectivePlan,
    [least, greatest, adds]: [Value; 3],
) -> Value {
    let (from, to, times) = (
        b.i64(-INDEX_ABS_MAX),
        b.i64(INDEX_ABS_MAX),
        b.i64(MARKS_PER_ADD_MAX),
    );
    let (span, most) = (b.sub(greatest, least), b.mul(adds, times));
    let mut all = vec![
        b.icmp(IntPredicate::Sge, least, from),
        b.icmp(IntPredicate::Sle, greatest, to),
        b.icmp(IntPredicate::Ult, span, most),
    ];
    let ends = plan
        .rows
        .iter()
        .map(|row| emit_touched_range(b, row, [least, greatest]));
    let ends: Vec<(Value, Value)> = ends.collect();
    for (number, one) in ends.iter().enumerate() {
        for other in &ends[number + 1..] {
            let before = b.icmp(IntPredicate::Ule, one.1, other.0);
            let behind = b.icmp(IntPredicate::Ule, other.1, one.0);
            all.push(b.binary(BinaryOp::Or, before, behind));
        }
    }
    let first = all[0];
    all[1..]
        .iter()
        .fold(first, |a, c| b.binary(BinaryOp::And, a, *c))
}

/// Emits a loop nest over all iterations and applies `with` to each index.
fn emit_nest(
    b: &mut Builder<'_>,
    lp: Op,
    plan: &InjectivePlan,
    with: impl FnOnce(&mut Builder<'_>, Value),
) {
    let (mut map, mut done) = (ValueMap::new(), HashSet::new());
    let mut value = |b: &mut Builder<'_>, map: &mut ValueMap, value: Value| {
        let Some(ops) = needed(b.unit, b.body, lp, value, &plan.indices) else {
            unreachable!("the plan has only values that can be computed before the loop");
        };
        for op in ops {
            if done.insert(op) {
                let made = clone_op_within(op, b, map);
                b.body.ops[made].flags = Flags::NONE;
            }
        }
        map.get_or_same(value)
    };
    let mut indices = plan.indices.iter();
    let mut places = Vec::new();
    for level in std::iter::once(EnclosingOp::For(lp)).chain(plan.enclosing.iter().copied()) {
        match level {
            EnclosingOp::For(at) => {
                let old = b.body.operand(at, 0);
                let trips = value(b, &mut map, old);
                let (_, inside) = b.for_(trips, &[]);
                places.push(b.set_insertion_end(inside));
                if let Some(&index) = indices.next() {
                    map.set(index, b.body.region_params(inside)[0]);
                }
            }
            EnclosingOp::If(at, taken) => {
                let old = b.body.operand(at, 0);
                let condition = value(b, &mut map, old);
                let (_, yes, no) = b.if_(condition, &[]);
                let (into, other) = if taken { (yes, no) } else { (no, yes) };
                let place = b.set_insertion_end(other);
                b.yield_(&[]);
                b.set_insertion_end(into);
                places.push(place);
            }
        }
    }
    let index = value(b, &mut map, plan.index);
    let long = b.unit.types.int(64);
    let index = match b.body.ty(index) == long {
        true => index,
        false => b.cast(CastOp::SExt, index, long),
    };
    with(b, index);
    for place in places.into_iter().rev() {
        b.yield_(&[]);
        b.restore_insertion_point(place);
    }
}

fn counter_address(b: &mut Builder<'_>, cell: Value, at: i64) -> Value {
    let at = b.i64(at);
    b.byte_addr(cell, at)
}

fn call_allocator(b: &mut Builder<'_>, name: &str, sizes: &[Value]) -> Value {
    let (ptr, long) = (b.unit.types.ptr(), b.unit.types.int(64));
    let ty = b.unit.types.func(ptr, vec![long; sizes.len()]);
    let function = b.unit.declare(name, ty, AttrSet::default());
    let call = b.call(function, sizes);
    b.body.result(call)
}
