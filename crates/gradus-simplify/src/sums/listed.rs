//! Rounds for loops that add through lists: which parts lie apart is measured before.
//!
//! Where a list says to which places an iteration adds (the corners of a mesh's elements), neighbours in the loop are
//! mostly neighbours in memory, too, but only the list knows. So a pass over it finds, for each part of the loop, the
//! first and the last place that it adds to; parts that lie apart run at once, and the others in further rounds.
//!
//! 1. The loop is as [`super::rounds`] asks, but for addresses and calls: each address is an element of an array from outside of
//!    the loop, and its index comes from the loop's index by arithmetic and loads of what the loop leaves as it is.
//! 2. What such loads read is read in the pass as in the loop: either they stand in the loop's own region, which each
//!    iteration runs to its end, or the pass asks the same conditions before them. An index that is computed although
//!    the add is not reached is some number (`freeze`), and makes a part's stretch longer at worst.
//! 3. Parts of one round do not meet: for each two arrays, either all stretches of one lie apart from all of the other,
//!    or the stretches of both go up, or down, so that parts as many as there are rounds from each other lie apart.
//! 4. No index is so large that an address wraps around: else the part's stretch is all of the memory.
//! 5. What is called touches none of the places that the loop adds to.
//! 6. It pays, by a test at run time: there are enough adds.

use super::once;
use super::rounds::{all_sums, make_plain, part_length, split};
use super::{all_in, at_most, free_function, narrow, owner, quotient, wide};
use crate::Facts;
use crate::lists::{FARTHEST, spot};
use crate::unswitch::second_form;
use gradus_analysis::{AfterEnd, Alias, Clobbers, MemoryAccess};
use gradus_edit::{ValueMap, clone_op_within, is_speculatable};
use gradus_ir::{
    AttrSet, BinaryOp, Body, Builder, CastOp, Definition, Flags, FuncId, IntPredicate, LocId, Op,
    OpKind, Unit, Value,
};
use std::collections::{BTreeSet, HashSet};

/// Into so many parts a loop comes apart at most.
const PARTS: i64 = 64;
/// There are 1, 2, 4 or 8 rounds.
const TRIES: i64 = 4;
/// Each array is held against each other.
const MOST_ROWS: usize = 24;
/// Conditions around a load, and ops from a list to an index.
const MOST_TURNS: usize = 4;
const MOST_STEPS: usize = 64;

/// What the table keeps of a part, for each array: the greatest end and the least begin of all parts up to it, and the
/// least begin and the greatest end of those from it on.
const END_SO_FAR: i64 = 0;
const BEGIN_SO_FAR: i64 = 1;
const BEGIN_AHEAD: i64 = 2;
const END_AHEAD: i64 = 3;
const PLANE_BYTES: i64 = 8 * PARTS;
const ROW_BYTES: i64 = 4 * PLANE_BYTES;

/// Has loops go in as many rounds as is measured, of those that cannot be told before to need two; gives where the
/// adds stand that have a plain form now.
pub(super) fn rounds(
    unit: &mut Unit,
    body: &mut Body,
    facts: &Facts,
    loops: &[Op],
    least: i64,
) -> Vec<Option<LocId>> {
    let mut given = Vec::new();
    for lp in steady_loops(unit, body, facts, loops) {
        if let Some(plan) = plan(unit, body, lp) {
            given.extend(plan.sums.iter().map(|op| body.ops[*op].loc));
            in_rounds(unit, body, lp, &plan, least);
        }
    }
    given
}

/// The loops with a plan of which all that it loads stays as it is while the loop runs, and in which nobody else adds to
/// the same places.
fn steady_loops(unit: &Unit, body: &Body, facts: &Facts, loops: &[Op]) -> Vec<Op> {
    let plans = loops
        .iter()
        .filter_map(|lp| Some((*lp, plan(unit, body, *lp)?)));
    let plans: Vec<(Op, Plan)> = plans.collect();
    if plans.is_empty() {
        return Vec::new();
    }
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    let clobbers = Clobbers::of(&alias, facts.effects, AfterEnd::default());
    let accesses = |ops: &[Op]| -> Vec<MemoryAccess> {
        let all = ops.iter().map(|op| facts.effects.of_op(unit, body, *op));
        all.flatten().collect()
    };
    let is_steady = |(lp, plan): &(Op, Plan)| {
        let (adds, others) = (accesses(&plan.sums), accesses(&plan.calls));
        let meets = |one| {
            adds.iter()
                .any(|add| alias.may_alias_any_iteration(one, add))
        };
        let mut reads = plan.loads.iter().flat_map(|op| clobbers.reads_of(*op));
        !clobbers.may_stop_in(*lp)
            && !others.iter().any(meets)
            && reads.all(|read| !clobbers.destroyed_in(read, *lp))
    };
    let steady = plans.into_iter().filter(is_steady);
    steady.map(|(lp, _)| lp).collect()
}

/// Conditions, each with whether it holds.
type Turns = Vec<(Value, bool)>;

/// Indices that are computed under the same conditions.
#[derive(PartialEq)]
struct Set {
    turns: Turns,
    indices: BTreeSet<Value>,
}

/// An array that is added to, and by which indices.
struct Row {
    place: once::Row,
    set: Set,
}

/// The adds of a loop that may go in rounds.
struct Plan {
    sums: Vec<Op>,
    /// Calls of functions that may add as well, if not to the same places.
    calls: Vec<Op>,
    rows: Vec<Row>,
    /// What the pass over the lists reads.
    loads: Vec<Op>,
}

fn plan(unit: &Unit, body: &Body, lp: Op) -> Option<Plan> {
    let (sums, calls) = all_sums(unit, body, lp)?;
    let (mut rows, mut loads): (Vec<Row>, Vec<Op>) = (Vec::new(), Vec::new());
    let index = index_of(body, lp);
    for &op in &sums {
        let spot = spot(
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
            true => Turns::new(),
            false => turns(body, lp, op)?,
        };
        loads.extend(ops.into_iter().filter(|op| is_load(body, *op)));
        for (condition, _) in &turns {
            let ops = needed(unit, body, lp, *condition, &index)?;
            loads.extend(ops.into_iter().filter(|op| is_load(body, *op)));
        }
        let (low, high) = (spot.offset, spot.offset + spot.bytes);
        let same = |row: &&mut Row| {
            let place = &row.place;
            place.base == spot.base && place.scale == spot.scale && row.set.turns == turns
        };
        match rows.iter_mut().find(same) {
            Some(row) => {
                row.set.indices.insert(spot.index);
                row.place.low = row.place.low.min(low);
                row.place.high = row.place.high.max(high);
            }
            None => rows.push(Row {
                place: once::Row {
                    base: spot.base,
                    scale: spot.scale,
                    low,
                    high,
                },
                set: Set {
                    turns,
                    indices: BTreeSet::from([spot.index]),
                },
            }),
        }
    }
    (!loads.is_empty() && rows.len() <= MOST_ROWS).then_some(Plan {
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

/// The conditions under which a loop's iteration comes to an op; `None` where there is more around it.
fn turns(body: &Body, lp: Op, op: Op) -> Option<Turns> {
    let (mut turns, mut at) = (Turns::new(), op);
    while owner(body, at)? != lp {
        let around = owner(body, at)?;
        let taken = body.parent(at) == body.op_regions(around).first().copied();
        let fits = matches!(body.kind(around), OpKind::If) && turns.len() < MOST_TURNS;
        fits.then(|| turns.push((body.operand(around, 0), taken)))?;
        at = around;
    }
    turns.reverse();
    Some(turns)
}

/// The ops of a loop that compute a value of an iteration from indices, in order: what can be done anywhere, and loads.
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
        let at = body.region_of(value);
        if indices.contains(&value) || !at.is_some_and(|region| body.is_inside(region, inside)) {
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
            (free && seen.len() <= MOST_STEPS).then_some(())?;
            work.push((value, true));
            work.extend(body.operands(op).map(|v| (v, false)));
        }
    }
    Some(order)
}

/// Puts the loop of rounds beside the one that stands there.
fn in_rounds(unit: &mut Unit, body: &mut Body, lp: Op, plan: &Plan, least: i64) {
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[lp].loc;
    b.at_op(lp);
    let trips = wide(&mut b, lp);
    let length = part_length(&mut b, trips, PARTS);
    let parts = quotient(&mut b, trips, length);
    let sums = i64::try_from(plan.sums.len()).unwrap_or(least);
    let least = b.i64(least / sums.min(least));
    let enough = b.icmp(IntPredicate::Uge, trips, least);
    let bit = b.unit.types.int(1);
    let enough = b.value(OpKind::Freeze, &[enough], bit);
    let long = b.unit.types.int(64);
    let (choice, yes, no) = b.if_(enough, &[long]);
    let place = b.at_end(no);
    let none = b.i64(0);
    b.yield_(&[none]);
    b.at_end(yes);
    let found = measured(&mut b, lp, plan, [trips, length, parts]);
    b.yield_(&[found]);
    b.restore(place);
    let rounds = b.body.result(choice);
    let pays = b.icmp(IntPredicate::Ne, rounds, none);
    let old: Vec<Op> = all_in(b.body, lp).collect();
    let whole = second_form(&mut b, lp, pays);
    let new: Vec<Op> = all_in(b.body, whole).collect();
    let at = |op: &Op| old.iter().position(|other| other == op);
    let sums: Vec<Op> = plan
        .sums
        .iter()
        .filter_map(|op| Some(new[at(op)?]))
        .collect();
    b.at_op(whole);
    let inner = split(&mut b, whole, length, rounds);
    make_plain(&mut b, inner, sums);
}

/// How many rounds it takes; 0 where more than there may be.
fn measured(b: &mut Builder<'_>, lp: Op, plan: &Plan, sizes: [Value; 3]) -> Value {
    let count = i64::try_from(plan.rows.len()).unwrap_or(i64::MAX);
    let (bytes, rows) = (b.i64(count.saturating_mul(ROW_BYTES)), b.i64(count));
    let malloc = allocate(b.unit);
    let call = b.call(malloc, &[bytes]);
    let table = b.body.result(call);
    pass_over(b, lp, plan, table, sizes);
    gather(b, table, rows, sizes[2]);
    let found = tried(b, table, rows, sizes[2]);
    let free = free_function(b.unit);
    b.call(free, &[table]);
    found
}

fn allocate(unit: &mut Unit) -> FuncId {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    let ty = unit.types.func(ptr, vec![long]);
    unit.declare("malloc", ty, AttrSet::default())
}

/// What of an iteration has been computed.
#[derive(Clone, Default)]
struct Known {
    map: ValueMap,
    done: HashSet<Op>,
}

impl Known {
    /// A value of the iteration, where the builder stands.
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

/// Goes over all iterations, part by part, and puts into the table where each part's stretches begin and end.
fn pass_over(
    b: &mut Builder<'_>,
    lp: Op,
    plan: &Plan,
    table: Value,
    [trips, length, parts]: [Value; 3],
) {
    let mut sets: Vec<&Set> = Vec::new();
    for row in &plan.rows {
        if !sets.contains(&&row.set) {
            sets.push(&row.set);
        }
    }
    let (outer, region) = b.for_(parts, &[]);
    b.body.ops[outer].flags = b.body.ops[lp].flags;
    let place = b.at_end(region);
    let part = b.body.region_params(region)[0];
    let first = b.mul(part, length);
    let count = at_most(b, trips, first, length);
    let (least, most) = (b.i64(i64::MAX), b.i64(i64::MIN));
    let initial: Vec<Value> = sets.iter().flat_map(|_| [least, most]).collect();
    let (pass, inner) = b.for_(count, &initial);
    let back = b.at_end(inner);
    let params = b.body.region_params(inner).to_vec();
    let index = b.add(first, params[0]);
    let old = b.body.region_params(b.body.op_regions(lp)[0])[0];
    let index = narrow(b, index, old);
    let mut known = Known::default();
    known.map.set(old, index);
    let mut next = Vec::new();
    for (set, ends) in sets.iter().zip(params[1..].chunks(2)) {
        next.extend(reached(b, lp, set, &mut known, [ends[0], ends[1]]));
    }
    b.yield_(&next);
    b.restore(back);
    let ends = b.body.results(pass).to_vec();
    for (number, row) in (0..).zip(&plan.rows) {
        let set = sets.iter().position(|set| **set == row.set).unwrap_or(0);
        let (begin, end) = stretch(b, &row.place, [ends[2 * set], ends[2 * set + 1]]);
        let number = b.i64(number);
        let planes = [END_SO_FAR, BEGIN_SO_FAR, BEGIN_AHEAD, END_AHEAD];
        for (plane, value) in planes.into_iter().zip([end, begin, begin, end]) {
            let at = entry(b, table, number, plane, part);
            b.store(value, at);
        }
    }
    b.yield_(&[]);
    b.restore(place);
}

/// The least and the greatest index so far, with those of one more iteration.
fn reached(
    b: &mut Builder<'_>,
    lp: Op,
    set: &Set,
    known: &mut Known,
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
        let place = b.at_end(other);
        b.yield_(&ends);
        b.at_end(into);
        open.push((turn, place));
    }
    for &index in &set.indices {
        let value = known.value(b, lp, index);
        let value = b.cast(CastOp::SExt, value, long);
        let value = b.value(OpKind::Freeze, &[value], long);
        ends = [
            choose(b, IntPredicate::Slt, value, ends[0]),
            choose(b, IntPredicate::Sgt, value, ends[1]),
        ];
    }
    for (turn, place) in open.into_iter().rev() {
        b.yield_(&ends);
        b.restore(place);
        ends = [0, 1].map(|number| b.body.results(turn)[number]);
    }
    ends
}

/// Where a stretch begins and ends: nowhere, if there are no indices.
pub(super) fn stretch(
    b: &mut Builder<'_>,
    row: &once::Row,
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
    let (from, to) = (b.i64(-FARTHEST), b.i64(FARTHEST));
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

/// The place of a part in a plane of the table.
fn entry(b: &mut Builder<'_>, table: Value, row: Value, plane: i64, part: Value) -> Value {
    let (row_bytes, plane, eight) = (b.i64(ROW_BYTES), b.i64(plane * PLANE_BYTES), b.i64(8));
    let far = b.mul(row, row_bytes);
    let far = b.add(far, plane);
    let within = b.mul(part, eight);
    let far = b.add(far, within);
    b.byte_addr(table, far)
}

fn read(b: &mut Builder<'_>, table: Value, row: Value, plane: i64, part: Value) -> Value {
    let at = entry(b, table, row, plane, part);
    let long = b.unit.types.int(64);
    b.load(long, at)
}

fn choose(b: &mut Builder<'_>, predicate: IntPredicate, one: Value, other: Value) -> Value {
    let first = b.icmp(predicate, one, other);
    b.select(first, one, other)
}

/// Has the table's planes say what holds of all parts up to each, and from each on.
fn gather(b: &mut Builder<'_>, table: Value, rows: Value, parts: Value) {
    let (_, region) = b.for_(rows, &[]);
    let place = b.at_end(region);
    let row = b.body.region_params(region)[0];
    let (least, most) = (b.i64(0), b.i64(-1));
    for (forward, ends, begins) in [
        (true, END_SO_FAR, BEGIN_SO_FAR),
        (false, END_AHEAD, BEGIN_AHEAD),
    ] {
        let (_, region) = b.for_(parts, &[least, most]);
        let back = b.at_end(region);
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
            let at = entry(b, table, row, plane, part);
            let value = read(b, table, row, plane, part);
            let value = choose(b, predicate, value, so_far);
            b.store(value, at);
            next.push(value);
        }
        b.yield_(&next);
        b.restore(back);
    }
    b.yield_(&[]);
    b.restore(place);
}

/// The least number of rounds in which no two parts of one meet; 0 where it is more than there may be.
fn tried(b: &mut Builder<'_>, table: Value, rows: Value, parts: Value) -> Value {
    let (tries, none) = (b.i64(TRIES), b.i64(0));
    let (all, region) = b.for_(tries, &[none]);
    let place = b.at_end(region);
    let params = b.body.region_params(region).to_vec();
    let (one, yes) = (b.i64(1), b.bool(true));
    let rounds = b.binary(BinaryOp::Shl, one, params[0]);
    let (each, into) = b.for_(rows, &[yes]);
    let back = b.at_end(into);
    let outer = b.body.region_params(into).to_vec();
    let up_to = b.add(outer[0], one);
    let (pairs, within) = b.for_(up_to, &[outer[1]]);
    let before = b.at_end(within);
    let inner = b.body.region_params(within).to_vec();
    let apart = lie_apart(b, table, [outer[0], inner[0]], [parts, rounds]);
    let so_far = b.binary(BinaryOp::And, inner[1], apart);
    b.yield_(&[so_far]);
    b.restore(before);
    let so_far = b.body.result(pairs);
    b.yield_(&[so_far]);
    b.restore(back);
    let fits = b.body.result(each);
    let first = b.icmp(IntPredicate::Eq, params[1], none);
    let fits = b.binary(BinaryOp::And, fits, first);
    let found = b.select(fits, rounds, params[1]);
    b.yield_(&[found]);
    b.restore(place);
    b.body.result(all)
}

/// Whether parts so many from each other do not meet by adds to two arrays, or to one that is given twice.
fn lie_apart(
    b: &mut Builder<'_>,
    table: Value,
    [one, other]: [Value; 2],
    [parts, rounds]: [Value; 2],
) -> Value {
    let (zero, unit, yes) = (b.i64(0), b.i64(1), b.bool(true));
    let last = b.sub(parts, unit);
    let away = [(one, other), (other, one)].map(|(lower, upper)| {
        let end = read(b, table, lower, END_SO_FAR, last);
        let begin = read(b, table, upper, BEGIN_AHEAD, zero);
        b.icmp(IntPredicate::Ule, end, begin)
    });
    let away = b.binary(BinaryOp::Or, away[0], away[1]);
    let more = b.icmp(IntPredicate::Ugt, parts, rounds);
    let count = b.sub(parts, rounds);
    let count = b.select(more, count, zero);
    let count = b.select(away, zero, count);
    let (all, region) = b.for_(count, &[yes, yes]);
    let place = b.at_end(region);
    let params = b.body.region_params(region).to_vec();
    let ahead = b.add(params[0], rounds);
    let mut farthest = |plane: i64, part: Value, predicate: IntPredicate| {
        let values = [one, other].map(|row| read(b, table, row, plane, part));
        choose(b, predicate, values[0], values[1])
    };
    let ends = [
        farthest(END_SO_FAR, params[0], IntPredicate::Ugt),
        farthest(END_AHEAD, ahead, IntPredicate::Ugt),
    ];
    let begins = [
        farthest(BEGIN_AHEAD, ahead, IntPredicate::Ult),
        farthest(BEGIN_SO_FAR, params[0], IntPredicate::Ult),
    ];
    let next = [0, 1].map(|way| {
        let apart = b.icmp(IntPredicate::Ule, ends[way], begins[way]);
        b.binary(BinaryOp::And, params[1 + way], apart)
    });
    b.yield_(&next);
    b.restore(place);
    let ways = b.body.results(all).to_vec();
    let way = b.binary(BinaryOp::Or, ways[0], ways[1]);
    b.binary(BinaryOp::Or, away, way)
}
