//! Multi-phase schedule for loops that add through index arrays, with chunk ranges measured by an inspector.
//!
//! If an index array determines the locations of an iteration (the corners of a mesh element), neighbouring
//! iterations are mostly neighbours in memory, but only the index array knows. An inspector pass finds the
//! first and last location of each chunk. Disjoint chunks execute concurrently, others in further phases.
//!
//! 1. The loop satisfies the conditions of [`super::two_phase`] except those on addresses and calls. Each
//!    address is an element of an outside array. Its index is computed from the loop's index by arithmetic and
//!    loads of memory that the loop does not clobber.
//! 2. The inspector reads the values that the loop reads: the loads lie in the loop's own region, which each
//!    iteration executes completely, or the inspector tests the conditions around them. The index of an
//!    unreached add is an arbitrary fixed value (`fold_freeze`), which at worst extends a chunk's range.
//! 3. Chunks of one phase are disjoint. For each pair of arrays, one of two conditions holds. All ranges of
//!    one are disjoint from all ranges of the other; or the ranges of both increase or decrease monotonically,
//!    and chunks as far apart as the number of phases are disjoint.
//! 4. The index range excludes address overflow; otherwise the chunk's range is the whole memory.
//! 5. Called functions do not access the updated locations.
//! 6. A run-time test checks profitability: enough adds.

use super::{all_in, emit_ceil_div, emit_min_remaining, index_like, trip_count_i64};
use crate::derivative::accumulation::injective_indices;
use crate::derivative::accumulation::two_phase::{
    atomic_adds_and_calls, chunk_adds_to_plain, emit_chunk_length, emit_phases,
};
use crate::derivative::index_array_copies::{INDEX_ABS_MAX, indirect_access};
use crate::loops::unswitch::version_loop;
use gradus_analysis::{Alias, Clobbers, ExitClobbers, MemoryAccess, PassContext};
use gradus_edit::{ValueMap, clone_op_within, emit_min_max, is_speculatable};
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Definition, Flags, IntPredicate, LocId, Op, OpKind, Unit,
    Value,
};
use std::collections::{BTreeSet, HashSet};

/// Maximum number of chunks of a loop.
const CHUNKS_MAX: i64 = 64;
/// Number of tried phase counts: 1, 2, 4 and 8.
const PHASE_TRIES: i64 = 4;
/// Maximum number of arrays; the test compares all pairs.
const ARRAYS_MAX: usize = 24;
/// Limits: conditions around a load, and ops from an index array load to an index.
const GUARDS_MAX: usize = 4;
const SLICE_OPS_MAX: usize = 64;

/// Planes of the inspector's table, per array and chunk: maximum end and minimum begin of all chunks up to
/// the chunk (prefix), minimum begin and maximum end from the chunk on (suffix).
const PREFIX_MAX_END: i64 = 0;
const PREFIX_MIN_BEGIN: i64 = 1;
const SUFFIX_MIN_BEGIN: i64 = 2;
const SUFFIX_MAX_END: i64 = 3;
const PLANE_BYTES: i64 = 8 * CHUNKS_MAX;
const ARRAY_BYTES: i64 = 4 * PLANE_BYTES;

/// Schedules loops in a measured number of phases if two phases cannot be proved sufficient beforehand.
/// Returns the locations of the adds that now have a plain version.
pub(super) fn schedule_indirect(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    loops: &[Op],
    least: i64,
) -> Vec<Option<LocId>> {
    let mut given = Vec::new();
    for lp in plannable_loops(unit, body, facts, loops) {
        if let Some(plan) = plan_loop(unit, body, lp) {
            given.extend(plan.sums.iter().map(|op| body.ops[*op].loc));
            version_in_phases(unit, body, lp, &plan, least);
        }
    }
    given
}

/// Returns the loops with a plan whose inspector loads are not clobbered by the loop, and whose calls do not
/// alias the updated locations.
fn plannable_loops(unit: &Unit, body: &Body, facts: &PassContext, loops: &[Op]) -> Vec<Op> {
    let plans = loops
        .iter()
        .filter_map(|lp| Some((*lp, plan_loop(unit, body, *lp)?)));
    let plans: Vec<(Op, IndirectPlan)> = plans.collect();
    if plans.is_empty() {
        return Vec::new();
    }
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    let clobbers = Clobbers::of(&alias, facts.effects, ExitClobbers::default());
    let accesses = |ops: &[Op]| -> Vec<MemoryAccess> {
        let all = ops.iter().map(|op| facts.effects.of_op(unit, body, *op));
        all.flatten().collect()
    };
    let is_steady = |(lp, plan): &(Op, IndirectPlan)| {
        let (adds, others) = (accesses(&plan.sums), accesses(&plan.calls));
        let meets = |one| {
            adds.iter()
                .any(|add| alias.may_alias_any_iteration(one, add))
        };
        let mut reads = plan.loads.iter().flat_map(|op| clobbers.reads_of(*op));
        !clobbers.may_exit_in(*lp)
            && !others.iter().any(meets)
            && reads.all(|read| !clobbers.clobbered_in(read, *lp))
    };
    let steady = plans.into_iter().filter(is_steady);
    steady.map(|(lp, _)| lp).collect()
}

/// Conditions, each with its required truth value.
type GuardList = Vec<(Value, bool)>;

/// Indices computed under equal conditions.
#[derive(PartialEq)]
struct GuardedIndices {
    turns: GuardList,
    indices: BTreeSet<Value>,
}

/// Updated array with its indices.
struct IndexedArray {
    place: injective_indices::AccumulatedArray,
    guarded: GuardedIndices,
}

/// Adds of a loop to schedule in phases.
struct IndirectPlan {
    sums: Vec<Op>,
    /// Calls that may add as well, but not to the updated locations.
    calls: Vec<Op>,
    rows: Vec<IndexedArray>,
    /// Loads of the inspector.
    loads: Vec<Op>,
}

fn plan_loop(unit: &Unit, body: &Body, lp: Op) -> Option<IndirectPlan> {
    let (sums, calls) = atomic_adds_and_calls(unit, body, lp)?;
    let (mut rows, mut loads): (Vec<IndexedArray>, Vec<Op>) = (Vec::new(), Vec::new());
    let index = index_of(body, lp);
    for &op in &sums {
        let spot = indirect_access(
            unit,
            body,
            lp,
            body.operand(op, 0),
            body.ty(body.result(op)),
        )?;
        let own = body.op_regions(lp)[0];
        let ops = needed(unit, body, lp, spot.index, &index)?;
        let early = |op: &&Op| !is_load(body, **op) || body.parent(**op) == Some(own);
        let turns = match ops.iter().all(|op| early(&op)) {
            true => GuardList::new(),
            false => guards_of(body, lp, op)?,
        };
        loads.extend(ops.into_iter().filter(|op| is_load(body, *op)));
        for (condition, _) in &turns {
            let ops = needed(unit, body, lp, *condition, &index)?;
            loads.extend(ops.into_iter().filter(|op| is_load(body, *op)));
        }
        let (low, high) = (spot.offset, spot.offset + spot.bytes);
        let same = |row: &&mut IndexedArray| {
            let place = &row.place;
            place.base == spot.base && place.scale == spot.scale && row.guarded.turns == turns
        };
        match rows.iter_mut().find(same) {
            Some(row) => {
                row.guarded.indices.insert(spot.index);
                row.place.low = row.place.low.min(low);
                row.place.high = row.place.high.max(high);
            }
            None => rows.push(IndexedArray {
                place: injective_indices::AccumulatedArray {
                    base: spot.base,
                    scale: spot.scale,
                    low,
                    high,
                },
                guarded: GuardedIndices {
                    turns,
                    indices: BTreeSet::from([spot.index]),
                },
            }),
        }
    }
    (!loads.is_empty() && rows.len() <= ARRAYS_MAX).then_some(IndirectPlan {
        sums,
        calls,
        rows,
        loads,
    })
}

fn index_of(body: &Body, lp: Op) -> [Value; 1] {
    [body.region_params(body.op_regions(lp)[0])[0]]
}

fn is_load(body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Load(_))
}

/// Returns the conditions under which an iteration reaches an op; `None` if other ops than branches enclose
/// the op.
fn guards_of(body: &Body, lp: Op, op: Op) -> Option<GuardList> {
    let (mut turns, mut at) = (GuardList::new(), op);
    while body.parent_op(at)? != lp {
        let around = body.parent_op(at)?;
        let taken = body.parent(at) == body.op_regions(around).first().copied();
        let fits = matches!(body.kind(around), OpKind::If) && turns.len() < GUARDS_MAX;
        fits.then(|| turns.push((body.operand(around, 0), taken)))?;
        at = around;
    }
    turns.reverse();
    Some(turns)
}

/// Returns the ops of a loop that compute a value of an iteration from indices, in order: speculatable ops
/// and loads.
pub(super) fn needed(
    unit: &Unit,
    body: &Body,
    lp: Op,
    value: Value,
    indices: &[Value],
) -> Option<Vec<Op>> {
    let inside = body.op_regions(lp)[0];
    let (mut order, mut seen) = (Vec::new(), HashSet::new());
    let mut work = vec![(value, false)];
    while let Some((value, done)) = work.pop() {
        if indices.contains(&value) || !body.is_defined_in(value, inside) {
            continue;
        }
        let Definition::Result(op, _) = body.values[value].def else {
            return None;
        };
        if done {
            order.push(op);
        } else if seen.insert(op) {
            let free = match body.kind(op) {
                OpKind::Load(access) => access.is_plain(),
                OpKind::Alloca(_) => false,
                _ => body.op_regions(op).is_empty() && is_speculatable(unit, body, op),
            };
            (free && seen.len() <= SLICE_OPS_MAX).then_some(())?;
            work.push((value, true));
            work.extend(body.operands(op).map(|v| (v, false)));
        }
    }
    Some(order)
}

/// Versions the loop: the multi-phase loop executes if profitable.
fn version_in_phases(unit: &mut Unit, body: &mut Body, lp: Op, plan: &IndirectPlan, least: i64) {
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[lp].loc;
    b.set_insertion_before(lp);
    let trips = trip_count_i64(&mut b, lp);
    let length = emit_chunk_length(&mut b, trips, CHUNKS_MAX);
    let parts = emit_ceil_div(&mut b, trips, length);
    let sums = i64::try_from(plan.sums.len()).unwrap_or(least);
    let least = b.i64(least / sums.min(least));
    let enough = b.icmp(IntPredicate::Uge, trips, least);
    let bit = b.unit.types.int(1);
    let enough = b.value(OpKind::Freeze, &[enough], bit);
    let long = b.unit.types.int(64);
    let (choice, yes, no) = b.if_(enough, &[long]);
    let place = b.set_insertion_end(no);
    let none = b.i64(0);
    b.yield_(&[none]);
    b.set_insertion_end(yes);
    let found = emit_phase_count(&mut b, lp, plan, [trips, length, parts]);
    b.yield_(&[found]);
    b.restore_insertion_point(place);
    let rounds = b.body.result(choice);
    let pays = b.icmp(IntPredicate::Ne, rounds, none);
    let old: Vec<Op> = all_in(b.body, lp).collect();
    let whole = version_loop(&mut b, lp, pays);
    let new: Vec<Op> = all_in(b.body, whole).collect();
    let at = |op: &Op| old.iter().position(|other| other == op);
    let sums: Vec<Op> = plan
        .sums
        .iter()
        .filter_map(|op| Some(new[at(op)?]))
        .collect();
    b.set_insertion_before(whole);
    let inner = emit_phases(&mut b, whole, length, rounds);
    chunk_adds_to_plain(&mut b, inner, sums);
}

/// Emits the number of phases; 0 if more phases than the maximum are necessary.
fn emit_phase_count(b: &mut Builder<'_>, lp: Op, plan: &IndirectPlan, sizes: [Value; 3]) -> Value {
    let count = i64::try_from(plan.rows.len()).unwrap_or(i64::MAX);
    let (bytes, rows) = (b.i64(count.saturating_mul(ARRAY_BYTES)), b.i64(count));
    let malloc = gradus_edit::declare_malloc(b.unit);
    let call = b.call(malloc, &[bytes]);
    let table = b.body.result(call);
    emit_inspector(b, lp, plan, table, sizes);
    emit_prefix_extrema(b, table, rows, sizes[2]);
    let found = emit_min_phases(b, table, rows, sizes[2]);
    let free = gradus_edit::declare_free(b.unit);
    b.call(free, &[table]);
    found
}

/// Values of an iteration computed so far.
#[derive(Clone, Default)]
struct ComputedValues {
    map: ValueMap,
    done: HashSet<Op>,
}

impl ComputedValues {
    /// Computes a value of the iteration at the builder's insertion point.
    fn value(&mut self, b: &mut Builder<'_>, lp: Op, value: Value) -> Value {
        let index = index_of(b.body, lp);
        let Some(ops) = needed(b.unit, b.body, lp, value, &index) else {
            unreachable!("the plan has only values that can be computed before the loop");
        };
        for op in ops {
            if self.done.insert(op) {
                let made = clone_op_within(op, b, &mut self.map);
                b.body.ops[made].flags = Flags::NONE;
            }
        }
        self.map.get_or_same(value)
    }
}

/// Emits the pass over all iterations by chunk; stores begin and end of each chunk's range to the table.
fn emit_inspector(
    b: &mut Builder<'_>,
    lp: Op,
    plan: &IndirectPlan,
    table: Value,
    [trips, length, parts]: [Value; 3],
) {
    let mut sets: Vec<&GuardedIndices> = Vec::new();
    for row in &plan.rows {
        if !sets.contains(&&row.guarded) {
            sets.push(&row.guarded);
        }
    }
    let (outer, region) = b.for_(parts, &[]);
    b.body.ops[outer].flags = b.body.ops[lp].flags;
    let place = b.set_insertion_end(region);
    let part = b.body.region_params(region)[0];
    let first = b.mul(part, length);
    let count = emit_min_remaining(b, trips, first, length);
    let (least, most) = (b.i64(i64::MAX), b.i64(i64::MIN));
    let initial: Vec<Value> = sets.iter().flat_map(|_| [least, most]).collect();
    let (pass, inner) = b.for_(count, &initial);
    let back = b.set_insertion_end(inner);
    let params = b.body.region_params(inner).to_vec();
    let index = b.add(first, params[0]);
    let old = b.body.region_params(b.body.op_regions(lp)[0])[0];
    let index = index_like(b, index, old);
    let mut known = ComputedValues::default();
    known.map.set(old, index);
    let mut next = Vec::new();
    for (set, ends) in sets.iter().zip(params[1..].chunks(2)) {
        next.extend(emit_index_range(b, lp, set, &mut known, [ends[0], ends[1]]));
    }
    b.yield_(&next);
    b.restore_insertion_point(back);
    let ends = b.body.results(pass).to_vec();
    for (number, row) in (0..).zip(&plan.rows) {
        let set = sets
            .iter()
            .position(|set| **set == row.guarded)
            .unwrap_or(0);
        let (begin, end) = emit_touched_range(b, &row.place, [ends[2 * set], ends[2 * set + 1]]);
        let number = b.i64(number);
        let planes = [
            PREFIX_MAX_END,
            PREFIX_MIN_BEGIN,
            SUFFIX_MIN_BEGIN,
            SUFFIX_MAX_END,
        ];
        for (plane, value) in planes.into_iter().zip([end, begin, begin, end]) {
            let at = table_entry(b, table, number, plane, part);
            b.store(value, at);
        }
    }
    b.yield_(&[]);
    b.restore_insertion_point(place);
}

/// Emits the minimum and maximum index including an additional iteration.
fn emit_index_range(
    b: &mut Builder<'_>,
    lp: Op,
    set: &GuardedIndices,
    known: &mut ComputedValues,
    mut ends: [Value; 2],
) -> [Value; 2] {
    let long = b.unit.types.int(64);
    let mut own = None;
    let known = match set.turns.is_empty() {
        true => known,
        false => own.insert(known.clone()),
    };
    let mut open = Vec::new();
    for &(condition, taken) in &set.turns {
        let condition = known.value(b, lp, condition);
        let (turn, yes, no) = b.if_(condition, &[long, long]);
        let (into, other) = if taken { (yes, no) } else { (no, yes) };
        let place = b.set_insertion_end(other);
        b.yield_(&ends);
        b.set_insertion_end(into);
        open.push((turn, place));
    }
    for &index in &set.indices {
        let value = known.value(b, lp, index);
        let value = b.cast(CastOp::SExt, value, long);
        let value = b.value(OpKind::Freeze, &[value], long);
        ends = [
            emit_min_max(b, IntPredicate::Slt, value, ends[0]),
            emit_min_max(b, IntPredicate::Sgt, value, ends[1]),
        ];
    }
    for (turn, place) in open.into_iter().rev() {
        b.yield_(&ends);
        b.restore_insertion_point(place);
        ends = [0, 1].map(|number| b.body.results(turn)[number]);
    }
    ends
}

/// Emits begin and end of a range; an empty index set yields an empty range.
pub(super) fn emit_touched_range(
    b: &mut Builder<'_>,
    row: &injective_indices::AccumulatedArray,
    [least, most]: [Value; 2],
) -> (Value, Value) {
    let long = b.unit.types.int(64);
    let base = b.cast(CastOp::PtrToInt, row.base, long);
    let scale = b.i64(row.scale);
    let mut place = |index: Value, offset: i64| {
        let offset = b.i64(offset);
        let far = b.mul(index, scale);
        let far = b.add(far, offset);
        b.add(base, far)
    };
    let (begin, end) = (place(least, row.low), place(most, row.high));
    let (nowhere, everywhere) = (b.i64(0), b.i64(-1));
    let (from, to) = (b.i64(-INDEX_ABS_MAX), b.i64(INDEX_ABS_MAX));
    let conditions = [
        b.icmp(IntPredicate::Sge, least, from),
        b.icmp(IntPredicate::Sle, most, to),
        b.icmp(IntPredicate::Ult, begin, end),
    ];
    let near = b.binary(BinaryOp::And, conditions[0], conditions[1]);
    let near = b.binary(BinaryOp::And, near, conditions[2]);
    let begin = b.select(near, begin, nowhere);
    let end = b.select(near, end, everywhere);
    let none = b.icmp(IntPredicate::Sgt, least, most);
    let begin = b.select(none, everywhere, begin);
    (begin, b.select(none, nowhere, end))
}

/// Emits the address of a chunk's entry in a plane of the table.
fn table_entry(b: &mut Builder<'_>, table: Value, row: Value, plane: i64, part: Value) -> Value {
    let (row_bytes, plane, eight) = (b.i64(ARRAY_BYTES), b.i64(plane * PLANE_BYTES), b.i64(8));
    let far = b.mul(row, row_bytes);
    let far = b.add(far, plane);
    let within = b.mul(part, eight);
    let far = b.add(far, within);
    b.byte_addr(table, far)
}

fn load_entry(b: &mut Builder<'_>, table: Value, row: Value, plane: i64, part: Value) -> Value {
    let at = table_entry(b, table, row, plane, part);
    let long = b.unit.types.int(64);
    b.load(long, at)
}

/// Computes the prefix and suffix extrema in the table's planes.
fn emit_prefix_extrema(b: &mut Builder<'_>, table: Value, rows: Value, parts: Value) {
    let (_, region) = b.for_(rows, &[]);
    let place = b.set_insertion_end(region);
    let row = b.body.region_params(region)[0];
    let (least, most) = (b.i64(0), b.i64(-1));
    for (forward, ends, begins) in [
        (true, PREFIX_MAX_END, PREFIX_MIN_BEGIN),
        (false, SUFFIX_MAX_END, SUFFIX_MIN_BEGIN),
    ] {
        let (_, region) = b.for_(parts, &[least, most]);
        let back = b.set_insertion_end(region);
        let params = b.body.region_params(region).to_vec();
        let one = b.i64(1);
        let last = b.sub(parts, one);
        let part = match forward {
            true => params[0],
            false => b.sub(last, params[0]),
        };
        let mut next = Vec::new();
        for (plane, predicate, so_far) in [
            (ends, IntPredicate::Ugt, params[1]),
            (begins, IntPredicate::Ult, params[2]),
        ] {
            let at = table_entry(b, table, row, plane, part);
            let value = load_entry(b, table, row, plane, part);
            let value = emit_min_max(b, predicate, value, so_far);
            b.store(value, at);
            next.push(value);
        }
        b.yield_(&next);
        b.restore_insertion_point(back);
    }
    b.yield_(&[]);
    b.restore_insertion_point(place);
}

/// Emits the minimum number of phases without conflicts; 0 if the maximum is exceeded.
fn emit_min_phases(b: &mut Builder<'_>, table: Value, rows: Value, parts: Value) -> Value {
    let (tries, none) = (b.i64(PHASE_TRIES), b.i64(0));
    let (all, region) = b.for_(tries, &[none]);
    let place = b.set_insertion_end(region);
    let params = b.body.region_params(region).to_vec();
    let (one, yes) = (b.i64(1), b.bool(true));
    let rounds = b.binary(BinaryOp::Shl, one, params[0]);
    let (each, into) = b.for_(rows, &[yes]);
    let back = b.set_insertion_end(into);
    let outer = b.body.region_params(into).to_vec();
    let up_to = b.add(outer[0], one);
    let (pairs, within) = b.for_(up_to, &[outer[1]]);
    let before = b.set_insertion_end(within);
    let inner = b.body.region_params(within).to_vec();
    let apart = emit_chunks_disjoint(b, table, [outer[0], inner[0]], [parts, rounds]);
    let so_far = b.binary(BinaryOp::And, inner[1], apart);
    b.yield_(&[so_far]);
    b.restore_insertion_point(before);
    let so_far = b.body.result(pairs);
    b.yield_(&[so_far]);
    b.restore_insertion_point(back);
    let fits = b.body.result(each);
    let first = b.icmp(IntPredicate::Eq, params[1], none);
    let fits = b.binary(BinaryOp::And, fits, first);
    let found = b.select(fits, rounds, params[1]);
    b.yield_(&[found]);
    b.restore_insertion_point(place);
    b.body.result(all)
}

/// Emits whether chunks `rounds` apart do not conflict through adds to two arrays, or to one array given
/// twice.
fn emit_chunks_disjoint(
    b: &mut Builder<'_>,
    table: Value,
    [one, other]: [Value; 2],
    [parts, rounds]: [Value; 2],
) -> Value {
    let (zero, unit, yes) = (b.i64(0), b.i64(1), b.bool(true));
    let last = b.sub(parts, unit);
    let away = [(one, other), (other, one)].map(|(lower, upper)| {
        let end = load_entry(b, table, lower, PREFIX_MAX_END, last);
        let begin = load_entry(b, table, upper, SUFFIX_MIN_BEGIN, zero);
        b.icmp(IntPredicate::Ule, end, begin)
    });
    let away = b.binary(BinaryOp::Or, away[0], away[1]);
    let more = b.icmp(IntPredicate::Ugt, parts, rounds);
    let count = b.sub(parts, rounds);
    let count = b.select(more, count, zero);
    let count = b.select(away, zero, count);
    let (all, region) = b.for_(count, &[yes, yes]);
    let place = b.set_insertion_end(region);
    let params = b.body.region_params(region).to_vec();
    let ahead = b.add(params[0], rounds);
    let mut farthest = |plane: i64, part: Value, predicate: IntPredicate| {
        let values = [one, other].map(|row| load_entry(b, table, row, plane, part));
        emit_min_max(b, predicate, values[0], values[1])
    };
    let ends = [
        farthest(PREFIX_MAX_END, params[0], IntPredicate::Ugt),
        farthest(SUFFIX_MAX_END, ahead, IntPredicate::Ugt),
    ];
    let begins = [
        farthest(SUFFIX_MIN_BEGIN, ahead, IntPredicate::Ult),
        farthest(PREFIX_MIN_BEGIN, params[0], IntPredicate::Ult),
    ];
    let next = [0, 1].map(|way| {
        let apart = b.icmp(IntPredicate::Ule, ends[way], begins[way]);
        b.binary(BinaryOp::And, params[1 + way], apart)
    });
    b.yield_(&next);
    b.restore_insertion_point(place);
    let ways = b.body.results(all).to_vec();
    let way = b.binary(BinaryOp::Or, ways[0], ways[1]);
    b.binary(BinaryOp::Or, away, way)
}
