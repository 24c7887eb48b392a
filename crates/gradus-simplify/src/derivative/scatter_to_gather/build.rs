//! Emits the gathered loop: delayed adds, the remaining adds after the last iteration, and the run-time test.

use super::plan::{Chain, GatherPlan, SteppingPointer};
use gradus_edit::{ValueMap, clone_op_within};
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Flags, IntPredicate, Op, OpKind, TypeId, Unit, Value,
};
use std::collections::{HashMap, HashSet};

/// Versions the loop by the run-time test, or only reverses the loop if no add is delayed.
pub(super) fn apply_plan(unit: &mut Unit, body: &mut Body, plan: &GatherPlan) {
    let lp = plan.lp;
    if plan.chains.is_empty() {
        return reverse_loop(unit, body, lp);
    }
    let results = body.results(lp).to_vec();
    let types: Vec<TypeId> = results.iter().map(|v| body.ty(*v)).collect();
    let loc = body.ops[lp].loc;
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.set_insertion_before(lp);
    let condition = emit_test(&mut b, plan);
    let (choice, gathered, plain) = b.if_(condition, &types);
    let chosen = b.body.results(choice).to_vec();
    for (&old, &new) in results.iter().zip(&chosen) {
        b.body.replace_uses(old, new);
    }
    b.set_insertion_end(gathered);
    let values = emit_gathered_loop(&mut b, plan);
    b.yield_(&values);
    b.body.detach(lp);
    b.body.append(plain, lp);
    b.set_insertion_end(plain);
    b.yield_(&results);
}

/// Reverses the iteration order of a loop.
pub(super) fn reverse_loop(unit: &mut Unit, body: &mut Body, lp: Op) {
    let region = body.op_regions(lp)[0];
    let index = body.region_params(region)[0];
    let Some(first) = body.first(region) else {
        unreachable!("a verified region has a terminator");
    };
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(first);
    let last = last_index(&mut b, lp);
    let turned = b.sub(last, index);
    b.body.replace_uses(index, turned);
    if let Some(op) = b.body.def_op(turned) {
        b.body.set_operand(op, 1, index);
    }
}

/// Emits the run-time test: the trip count covers the longest delay, and other accesses are disjoint from
/// delayed adds.
fn emit_test(b: &mut Builder<'_>, plan: &GatherPlan) -> Value {
    let trips = b.body.operand(plan.lp, 0);
    let ty = b.body.ty(trips);
    let longest = plan.chains.iter().map(|c| c.delay_max).max().unwrap_or(0);
    let longest = b.int(ty, i128::from(longest));
    let enough = b.icmp(IntPredicate::Uge, trips, longest);
    if plan.tests.is_empty() {
        return enough;
    }
    let bit = b.unit.types.int(1);
    let (op, yes, no) = b.if_(enough, &[bit]);
    b.set_insertion_end(yes);
    let mut known: HashMap<(Value, u32), [Value; 2]> = HashMap::new();
    let mut all: Option<Value> = None;
    for (place, reach) in &plan.tests {
        let [low, high] = emit_extent(b, plan, place, 0, &mut known);
        let [from, to] = emit_extent(b, plan, &reach.pointer, reach.extra_steps, &mut known);
        let below = b.icmp(IntPredicate::Ule, high, from);
        let above = b.icmp(IntPredicate::Ule, to, low);
        let apart = b.binary(BinaryOp::Or, below, above);
        all = Some(match all {
            Some(before) => b.binary(BinaryOp::And, before, apart),
            None => apart,
        });
    }
    b.yield_(all.as_slice());
    b.set_insertion_end(no);
    let never = b.bool(false);
    b.yield_(&[never]);
    b.set_insertion_before(plan.lp);
    b.body.result(op)
}

/// Emits the first byte and the end of the accesses of a moving pointer, for a loop with at least one
/// iteration and `more` additional steps.
fn emit_extent(
    b: &mut Builder<'_>,
    plan: &GatherPlan,
    place: &SteppingPointer,
    more: u32,
    known: &mut HashMap<(Value, u32), [Value; 2]>,
) -> [Value; 2] {
    if let Some(ends) = known.get(&(place.ptr, more)) {
        return *ends;
    }
    let long = b.unit.types.int(64);
    let [start, end] = [IterationEnd::First, IterationEnd::Last].map(|end| {
        let ptr = pointer_at(b, plan, place, end);
        b.cast(CastOp::PtrToInt, ptr, long)
    });
    let beyond = b.i64(place.step.wrapping_mul(i64::from(more)));
    let end = b.add(end, beyond);
    let (low, high) = match place.step < 0 {
        true => (end, start),
        false => (start, end),
    };
    let bytes = b.i64(place.bytes);
    let ends = [low, b.add(high, bytes)];
    known.insert((place.ptr, more), ends);
    ends
}

/// First or last iteration, in the new order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IterationEnd {
    First,
    Last,
}

pub(super) fn last_index(b: &mut Builder<'_>, lp: Op) -> Value {
    let trips = b.body.operand(lp, 0);
    let ty = b.body.ty(trips);
    let one = b.int(ty, 1);
    b.sub(trips, one)
}

/// Emits the value of a moving pointer in the first or last iteration.
fn pointer_at(
    b: &mut Builder<'_>,
    plan: &GatherPlan,
    place: &SteppingPointer,
    end: IterationEnd,
) -> Value {
    let ty = b.body.ty(b.body.operand(plan.lp, 0));
    let index = match (end == IterationEnd::First) != plan.reversed {
        true => b.int(ty, 0),
        false => last_index(b, plan.lp),
    };
    let region = b.body.op_regions(plan.lp)[0];
    let mut map = ValueMap::new();
    map.set(b.body.region_params(region)[0], index);
    for &op in &place.ops {
        clone_op_within(op, b, &mut map);
    }
    map.get_or_same(place.ptr)
}

/// Emits the loop with delayed adds and the remaining adds after the loop; returns the loop's results.
fn emit_gathered_loop(b: &mut Builder<'_>, plan: &GatherPlan) -> Vec<Value> {
    let lp = plan.lp;
    let old = b.body.op_regions(lp)[0];
    let trips = b.body.operand(lp, 0);
    let starts = emit_opaque_starts(b, plan);
    let mut initial: Vec<Value> = b.body.operands(lp).skip(1).collect();
    let own = initial.len();
    for chain in &plan.chains {
        let ty = b.body.ty(chain.adds[0].add.addend);
        // Identity element of the sum.
        let nothing = b.float(ty, -0.0);
        initial.extend(std::iter::repeat_n(nothing, chain.delay_max as usize));
    }
    let (new_loop, region) = b.for_(trips, &initial);
    let outside = b.set_insertion_end(region);
    let old_params = b.body.region_params(old).to_vec();
    let params = b.body.region_params(region).to_vec();
    let mut map = ValueMap::zip(&old_params, &params[..=own]);
    if plan.reversed {
        let last = last_index(b, lp);
        let index = b.sub(last, params[0]);
        map.set(old_params[0], index);
    }
    for (place, start) in plan.stored.iter().zip(starts) {
        let ptr = pointer_in_iteration(b, place, start, params[0]);
        map.set(place.ptr, ptr);
    }
    let put_off: HashSet<Op> = plan
        .chains
        .iter()
        .flat_map(|c| &c.adds)
        .flat_map(|d| [d.add.load, d.add.sum, d.add.store])
        .collect();
    let ops: Vec<Op> = b.body.ops_in(old).collect();
    let mut next: Vec<Value> = Vec::new();
    for op in ops {
        if *b.body.kind(op) == OpKind::Yield {
            let yielded: Vec<Value> = b.body.operands(op).collect();
            next.extend(yielded.into_iter().map(|v| map.get_or_same(v)));
        } else if !put_off.contains(&op) && !is_replaced_pointer(b.body, plan, op) {
            clone_op_within(op, b, &mut map);
        }
    }
    let mut waiting = &params[1 + own..];
    for chain in &plan.chains {
        next.extend(emit_due_add(b, chain, &mut waiting, &map));
    }
    b.yield_(&next);
    b.restore_insertion_point(outside);
    let results = b.body.results(new_loop).to_vec();
    let mut left = &results[own..];
    for chain in &plan.chains {
        emit_pending_adds(b, plan, chain, &mut left);
    }
    results[..own].to_vec()
}

/// Returns whether an op computes a pointer that the new loop recomputes.
fn is_replaced_pointer(body: &Body, plan: &GatherPlan, op: Op) -> bool {
    let results = body.results(op);
    plan.stored.iter().any(|place| results.contains(&place.ptr))
}

/// Emits the initial values of the stored pointers, hidden behind an opaque intrinsic.
///
/// LLVM's vectoriser would otherwise hoist its alias checks to the outer loop and compare the ranges of all
/// outer iterations, which do overlap. LLVM does so only if the dependence of the initial pointer on the
/// outer index is known.
fn emit_opaque_starts(b: &mut Builder<'_>, plan: &GatherPlan) -> Vec<Value> {
    let ptr = b.unit.types.ptr();
    let signature = b.unit.types.func(ptr, vec![ptr]);
    let strip = b
        .unit
        .declare(OPAQUE_INTRINSIC, signature, gradus_ir::AttrSet::default());
    let mut starts = Vec::new();
    for place in &plan.stored {
        let start = pointer_at(b, plan, place, IterationEnd::First);
        let call = b.call(strip, &[start]);
        starts.push(b.body.result(call));
    }
    starts
}

/// LLVM intrinsic that returns its argument.
const OPAQUE_INTRINSIC: &str = "llvm.strip.invariant.group.p0";

/// Emits the value of a pointer in iteration `index`.
fn pointer_in_iteration(
    b: &mut Builder<'_>,
    place: &SteppingPointer,
    start: Value,
    index: Value,
) -> Value {
    let step = b.i64(place.step);
    let bytes = b.mul(index, step);
    b.byte_addr(start, bytes)
}

/// Splits the first `count` values off a list.
fn split_off<'v>(list: &mut &'v [Value], count: u32) -> &'v [Value] {
    let (taken, rest) = list.split_at(count as usize);
    *list = rest;
    taken
}

/// Emits the add that is due in the iteration; returns the pending sums for the next iteration, the earliest
/// first.
fn emit_due_add(
    b: &mut Builder<'_>,
    chain: &Chain,
    waiting: &mut &[Value],
    map: &ValueMap,
) -> Vec<Value> {
    let line = split_off(waiting, chain.delay_max);
    let sum = |b: &mut Builder<'_>, by: u32| {
        let parts = chain.adds.iter().filter(|d| d.delay == by);
        let parts = parts.map(|d| map.get_or_same(d.add.addend));
        let terms = parts.chain(line.get(by as usize).copied());
        terms.fold(None, |sum, term| Some(add_term(b, chain, sum, term)))
    };
    // Pending sums come first: LLVM recognises a recurrence if the new value precedes the last use of the old
    // one.
    let next = (1..=chain.delay_max).filter_map(|by| sum(b, by)).collect();
    if let Some(due) = sum(b, 0) {
        let ptr = map.get_or_same(chain.pointer.ptr);
        add_to_memory(b, chain, ptr, due);
    }
    next
}

/// Emits the adds to the locations that only some of the adds have reached. `left` holds the pending sums
/// after the loop.
fn emit_pending_adds(b: &mut Builder<'_>, plan: &GatherPlan, chain: &Chain, left: &mut &[Value]) {
    let base = pointer_at(b, plan, &chain.pointer, IterationEnd::Last);
    for (steps, &due) in (1..).zip(split_off(left, chain.delay_max)) {
        let bytes = b.i64(chain.pointer.step.wrapping_mul(steps));
        let ptr = b.byte_addr(base, bytes);
        add_to_memory(b, chain, ptr, due);
    }
}

fn add_term(b: &mut Builder<'_>, chain: &Chain, sum: Option<Value>, part: Value) -> Value {
    let Some(sum) = sum else { return part };
    let total = b.fadd(sum, part);
    b.set_flags(total, common_flags(b.body, chain));
    total
}

/// Returns the fast-math flags common to all adds of a chain.
fn common_flags(body: &Body, chain: &Chain) -> Flags {
    let all = chain.adds.iter().map(|d| body.ops[d.add.sum].flags);
    all.reduce(Flags::and).unwrap_or(Flags::NONE)
}

/// Emits `*ptr += part` with the access attributes of the chain's first add.
fn add_to_memory(b: &mut Builder<'_>, chain: &Chain, ptr: Value, part: Value) {
    let first = chain.adds[0].add;
    let ty = b.body.ty(part);
    let (load_kind, load_meta) = access_kind(b.body, first.load);
    let (store_kind, store_meta) = access_kind(b.body, first.store);
    let load = b.op(load_kind, &[ptr], &[ty], 0);
    b.set_meta(load, load_meta);
    let old = b.body.result(load);
    let total = b.fadd(old, part);
    b.set_flags(total, common_flags(b.body, chain));
    let store = b.op(store_kind, &[total, ptr], &[], 0);
    b.set_meta(store, store_meta);
}

fn access_kind(body: &Body, op: Op) -> (OpKind, Option<gradus_ir::MetaId>) {
    (body.kind(op).clone(), body.ops[op].meta)
}
