//! Conversion of a worksharing loop to a parallel loop: schedule, chunks and reductions.
//!
//! Place: before the team is inlined, see [`crate::team_to_parallel_loop`].

use crate::reach::{Reach, reaches_unknown, waits};
use crate::reductions::Reduction;
use gradus_ir::{
    BinaryOp, Body, Builder, Flags, IntPredicate, Op, OpKind, ReduceOp, Schedule, Type, Unit, Value,
};
use std::collections::HashSet;

/// Returns true for `sections` that may wait for each other: each iteration runs separate code selected by its
/// number. Sections must run concurrently however short.
fn is_waiting_sections(unit: &Unit, body: &Body, op: Op, reach: &Reach) -> bool {
    let region = body.op_regions(op)[0];
    let number = body.region_params(region)[0];
    let chosen_by = |op: Op| {
        let value = body.operand(op, 0);
        let cast = body.def_op(value);
        let cast = cast.filter(|cast| matches!(body.kind(*cast), OpKind::Cast(_)));
        cast.map_or(value, |cast| body.operand(cast, 0))
    };
    let chooses = |op| matches!(body.kind(op), OpKind::Switch(_)) && chosen_by(op) == number;
    let waits = |op: Op| waits(unit, body, op, reach) || reaches_unknown(unit, body, op, reach);
    body.ops_in(region).any(chooses) && body.walk(region).any(waits)
}

/// Replaces a worksharing loop by a parallel loop.
pub(super) fn par_for(
    unit: &mut Unit,
    body: &mut Body,
    op: Op,
    reductions: &[Reduction],
    reach: &Reach,
) {
    let OpKind::ShareFor {
        schedule, chunked, ..
    } = *body.kind(op)
    else {
        unreachable!("only worksharing loops become parallel loops");
    };
    let chunk = chunked.then(|| stated_chunk(body, op));
    let stated = chunk.and_then(|chunk| body.as_int(unit, chunk));
    let grain = match schedule {
        Schedule::Guided => stated,
        Schedule::Static | Schedule::Dynamic => None,
    };
    let are_tasks = is_waiting_sections(unit, body, op, reach);
    let mut b = Builder::new(unit, body);
    let begin = |r: &Reduction| (r.op, r.initial(&mut b, op));
    let begun: Vec<_> = reductions.iter().map(begin).collect();
    b.set_insertion_before(op);
    b.loc = b.body.ops[op].loc;
    let trips = b.body.operand(op, 0);
    let grain = grain.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 1);
    let grain = if are_tasks { Some(1) } else { grain };
    let from = b.body.op_regions(op)[0];
    let old = b.body.region_params(from)[0];
    let stay_together = schedule != Schedule::Guided && stated.is_none_or(|n| n > 1);
    let made = match chunk {
        Some(_) if stay_together => par_for_over_chunks(&mut b, op, trips, &begun, stated),
        _ => {
            let (made, into) = b.par_for(trips, &begun, grain);
            let index = b.body.region_params(into)[0];
            b.body.replace_uses(old, index);
            b.body.move_ops(from, into);
            made
        }
    };
    let stay = reductions.iter().filter(|r| r.keeps_critical_code(&mut b));
    let stay: HashSet<Op> = stay.map(|r| r.critical).collect();
    for (number, reduction) in reductions.iter().enumerate() {
        reduction.contribute(&mut b, made);
        reduction.finish(&mut b, made, number, stay.contains(&reduction.critical));
    }
    body.erase(op);
    let done: HashSet<Op> = reductions.iter().map(|r| r.critical).collect();
    for &critical in done.difference(&stay) {
        if body.parent(critical).is_some() {
            body.erase(critical);
        }
    }
}

/// Emits a parallel loop over chunks: the iterations of a chunk belong to one thread, in order, and may
/// conflict in memory. Chunks of shrinking size (`guided`) have unpredictable bounds and are not preserved.
fn par_for_over_chunks(
    b: &mut Builder,
    op: Op,
    trips: Value,
    begun: &[(ReduceOp, Value)],
    stated: Option<i64>,
) -> Op {
    let ty = b.body.ty(trips);
    // No 64-bit loop runs 2⁶³ times.
    let fits = match b.unit.types.get(ty) {
        Type::Int(64) => Flags::NUW.with(Flags::NSW),
        _ => Flags::NUW,
    };
    let (zero, one) = (b.int(ty, 0), b.int(ty, 1));
    let given = b.body.operand(op, 1);
    let positive = b.icmp(IntPredicate::Sgt, given, zero);
    let chunk = match stated {
        Some(_) => given,
        None => b.select(positive, given, one),
    };
    let last = b.sub(trips, one);
    let further = b.binary(BinaryOp::UDiv, last, chunk);
    let chunks = b.add(further, one);
    let none = b.icmp(IntPredicate::Eq, trips, zero);
    let chunks = b.select(none, zero, chunks);
    let (made, into) = b.par_for(chunks, begun, None);
    b.set_insertion_end(into);
    let number = b.body.region_params(into)[0];
    let start = b.mul(number, chunk);
    set_def_flags(b, start, fits);
    let left = b.sub(last, start);
    let whole = b.sub(chunk, one);
    let is_whole = b.icmp(IntPredicate::Ult, whole, left);
    let reach = b.select(is_whole, whole, left);
    let length = b.add(reach, one);
    set_def_flags(b, length, fits);
    let (inner, rounds) = b.for_(length, &[]);
    if let OpKind::For { trip_max } = &mut b.body.ops[inner].kind {
        *trip_max = stated.and_then(|n| u64::try_from(n).ok());
    }
    b.yield_(&[]);
    b.set_insertion_end(rounds);
    let step = b.body.region_params(rounds)[0];
    let index = b.add(start, step);
    set_def_flags(b, index, fits);
    let from = b.body.op_regions(op)[0];
    let old = b.body.region_params(from)[0];
    b.body.replace_uses(old, index);
    // An array whose length an iteration computes stays in the iteration.
    let own = |&op: &Op| {
        let length = matches!(b.body.kind(op), OpKind::Alloca(_)).then(|| b.body.operand(op, 0));
        let made = length.map(|length| b.body.region_of(length));
        made.is_some_and(|made| made.is_none_or(|made| !b.body.is_inside(made, from)))
    };
    let own: Vec<Op> = b.body.ops_in(from).filter(own).collect();
    for alloca in own {
        b.body.detach(alloca);
        b.body.insert_before(inner, alloca);
    }
    b.body.move_ops(from, rounds);
    made
}

fn set_def_flags(b: &mut Builder, value: Value, flags: Flags) {
    if let Some(op) = b.body.def_op(value) {
        b.body.ops[op].flags = flags;
    }
}

fn stated_chunk(body: &Body, op: Op) -> Value {
    let value = body.operand(op, 1);
    match body.def_op(value) {
        Some(cast) if matches!(body.kind(cast), OpKind::Cast(_)) => body.operand(cast, 0),
        _ => value,
    }
}
