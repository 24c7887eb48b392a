//! Atomic adds in independent loops become plain adds.
//!
//! - Privatisation per chunk ([`privatize`]), if all iterations add to the same locations.
//! - A two-phase schedule of disjoint chunks ([`two_phase`]), if neighbouring iterations add to the same
//!   locations, also through index arrays ([`two_phase_indirect`]).
//! - Injective index arrays ([`injective_indices`]), if each iteration adds to distinct locations.

mod injective_indices;
mod privatize;
mod two_phase;
mod two_phase_indirect;

pub(crate) use crate::derivative::accumulation::privatize::run as run_privatize_adds;
pub use crate::derivative::accumulation::privatize::{PRIVATIZE_ADDS_MIN, privatize_adds};
pub(crate) use crate::derivative::accumulation::two_phase::run as run_two_phase_adds;
pub use crate::derivative::accumulation::two_phase::{PHASES_ADDS_MIN, schedule_in_phases};

use gradus_edit::{
    CarriedValue, ReductionKind, ValueMap, carried_value, clone_op_within, is_speculatable,
};
use gradus_ir::{
    BinaryOp, Body, Builder, Definition, Flags, IntPredicate, Op, OpKind, ReduceOp, RmwOp, Unit,
    Value,
};
use std::collections::HashSet;

/// Maximum number of ops in the loop.
const OPS_MAX: usize = 4000;

/// Returns whether a body has atomic adds in independent loops.
pub fn has_atomic_adds(body: &Body) -> bool {
    let mut loops = body.walk(body.root());
    loops.any(|lp| body.is_independent(lp) && all_in(body, lp).any(|op| is_atomic_add(body, op)))
}

/// Returns whether each carried value of a loop is invariant or a sum that no other op reads. Chunks may then
/// run in any order.
fn carries_only_sums(unit: &Unit, body: &Body, lp: Op) -> bool {
    let mut carried = 0..body.operand_count(lp) - 1;
    carried.all(|index| {
        let sum = CarriedValue::Reduced(ReductionKind::By(ReduceOp::FAdd));
        let change = carried_value(unit, body, lp, index);
        change == Some(CarriedValue::Constant) || change == Some(sum)
    })
}

fn all_in(body: &Body, lp: Op) -> impl Iterator<Item = Op> {
    body.walk(body.op_regions(lp)[0])
}

/// Returns whether an op is an atomic add whose location only other iterations add to concurrently, and whose
/// result is unused.
fn is_atomic_add(body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::AtomicRmw(RmwOp::FAdd, _))
        && body.ops[op].flags.has(Flags::ATOMIC_ACROSS_ITERATIONS)
        && !body.has_uses(body.result(op))
}

/// Returns whether an op may observe other threads atomically, or is parallel itself.
fn may_observe_atomics(body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Load(access) | OpKind::Store(access) => !access.is_plain(),
        OpKind::AtomicRmw(..) => !is_atomic_add(body, op),
        kind => matches!(kind, OpKind::CmpXchg { .. } | OpKind::Fence { .. }) || kind.is_parallel(),
    }
}

/// Ops of a loop that compute a value, in order, and the loops whose indices the ops use (the loop itself or
/// nested loops).
struct ValueSlice {
    ops: Vec<Op>,
    loops: Vec<Op>,
}

/// Decomposes a value into ops on outside values, the loop's index and indices of nested loops; `None` if
/// other inputs are necessary.
fn value_slice(unit: &Unit, body: &Body, lp: Op, value: Value) -> Option<ValueSlice> {
    let inside = body.op_regions(lp)[0];
    let mut found = ValueSlice {
        ops: Vec::new(),
        loops: Vec::new(),
    };
    let (mut work, mut seen) = (vec![(value, false)], HashSet::new());
    while let Some((value, done)) = work.pop() {
        if !body.is_defined_in(value, inside) {
            continue;
        }
        let op = match body.values[value].def {
            Definition::Param(region, 0) => {
                let at = body.owner(region)?;
                matches!(body.kind(at), OpKind::For { .. }).then_some(())?;
                if !found.loops.contains(&at) {
                    found.loops.push(at);
                }
                continue;
            }
            Definition::Result(op, _) => op,
            _ => return None,
        };
        if done {
            found.ops.push(op);
        } else if seen.insert(op) {
            let free = body.op_regions(op).is_empty() && is_speculatable(unit, body, op);
            (free && !matches!(body.kind(op), OpKind::Alloca(_))).then_some(())?;
            work.push((value, true));
            work.extend(body.operands(op).map(|v| (v, false)));
        }
    }
    Some(found)
}

/// Computes a value of the loop at the builder's insertion point, with the indices in `map`.
fn compute_value(b: &mut Builder<'_>, lp: Op, value: Value, map: &mut ValueMap) -> Value {
    let Some(slice) = value_slice(b.unit, b.body, lp, value) else {
        unreachable!("the plan has only values that can be computed before the loop");
    };
    for op in slice.ops {
        let made = clone_op_within(op, b, map);
        b.body.ops[made].flags = Flags::NONE;
    }
    map.get_or_same(value)
}

/// Emits `⌈all / by⌉`.
fn emit_ceil_div(b: &mut Builder<'_>, all: Value, by: Value) -> Value {
    let one = b.i64(1);
    let less = b.sub(by, one);
    let sum = b.add(all, less);
    b.binary(BinaryOp::UDiv, sum, by)
}

/// Returns the trip count of a loop in 64 bits.
fn trip_count_i64(b: &mut Builder<'_>, lp: Op) -> Value {
    let trips = b.body.operand(lp, 0);
    gradus_edit::to_i64(b, trips)
}

/// Moves the iterations of `lp` from `first` on into a serial loop of `count` iterations at the builder's
/// insertion point, with the initial carried values `carried`.
fn move_iterations(
    b: &mut Builder<'_>,
    lp: Op,
    [first, count]: [Value; 2],
    carried: &[Value],
) -> Op {
    let flags = b.body.ops[lp].flags.without(Flags::INDEPENDENT);
    let (inner, into) = b.for_(count, carried);
    b.body.ops[inner].flags = flags;
    let back = b.set_insertion_end(into);
    let inside = b.body.region_params(into).to_vec();
    let index = b.add(first, inside[0]);
    let from = b.body.op_regions(lp)[0];
    let old = b.body.region_params(from).to_vec();
    let index = index_like(b, index, old[0]);
    b.body.replace_uses(old[0], index);
    for (&old, &new) in old[1..].iter().zip(&inside[1..]) {
        b.body.replace_uses(old, new);
    }
    b.body.move_ops(from, into);
    b.restore_insertion_point(back);
    inner
}

/// Emits the minimum of `all - first` and `length`.
fn emit_min_remaining(b: &mut Builder<'_>, all: Value, first: Value, length: Value) -> Value {
    let rest = b.sub(all, first);
    let less = b.icmp(IntPredicate::Ult, rest, length);
    b.select(less, rest, length)
}

/// Converts a 64-bit index to the type of `like`.
fn index_like(b: &mut Builder<'_>, index: Value, like: Value) -> Value {
    let ty = b.body.ty(like);
    gradus_edit::to_index_type(b, index, ty)
}

/// Replaces the results of a loop by those of `by` and erases the loop.
fn replace_loop(b: &mut Builder<'_>, lp: Op, by: Op) {
    let results = b.body.results(lp).to_vec();
    for (at, result) in results.into_iter().enumerate() {
        let value = b.body.results(by)[at];
        b.body.replace_uses(result, value);
    }
    b.body.erase(lp);
}
