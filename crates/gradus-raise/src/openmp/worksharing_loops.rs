//! Worksharing loops become `to_share_for.for`.
//!
//! A static loop requests its thread's range once; a dynamic loop requests chunks repeatedly, at the top of
//! each trip ([`crate::openmp::unrotate`] normalises). Steps, on a clone of the body that is discarded if a step fails:
//! 1. remove the request, and thereby make the range the whole iteration space: a static loop then runs from
//!    lower to upper bound, a dynamic or chunked loop does so in its only trip;
//! 2. promote bounds to values (`promote_slots`), and convert the loop to a `for` (`loop_to_for_with`) whose
//!    index is the iteration number, not a count of the thread's trips;
//! 3. convert the `for` to a `to_share_for.for`. Carried values go to memory of the rank. Code of the last iteration
//!    (`lastprivate`) moves to its end.
//!
//! A loop of a different shape (optimised IR) keeps its code. The range of a static loop is then computed from
//! rank and size as in the runtime ([`crate::openmp::static_schedule`]). The chunks of a dynamic loop are shared
//! ([`crate::openmp::dynamic_chunks`]).

use crate::openmp::last_iteration::{last_branches, move_to_last_iteration};
use crate::openmp::{dynamic_chunks, loop_bounds, memory_mirrors, static_schedule, unrotate};
use crate::regions::{ops_between, run_once, settle};
use crate::report::{RaiseResult, Reason, reason};
use crate::runtime_calls::{RuntimeCalls, slot_value};
use gradus_edit::{is_speculatable, loop_to_for_with, promote_slots};
use gradus_ir::externals::OpenMpFn;
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Flags, Op, OpKind, Region, Schedule, Type, TypeId, Unit, Value,
};
use std::collections::HashSet;

/// The maximum number of restarts due to unrecognised loop shapes.
const ATTEMPTS: usize = 200;

/// The reason why a loop keeps the bounds of its range.
const NEEDS_RANGE_START: &str =
    "this loop depends on the start of each thread's range (after earlier optimisation)";

/// A loop to be raised.
struct WorksharingLoop {
    /// The request for the range.
    start: Op,
    /// The loop.
    body: Op,
    /// The carried values private to the thread.
    private_carried: Vec<usize>,
    /// The type of the iteration count.
    ty: TypeId,
    schedule: Schedule,
    chunk: Option<Value>,
    /// The branches taken by the thread of the last iteration.
    last_iteration_branches: Vec<Op>,
}

/// An unrecognised loop, and the reason to report if the fallback fails, too.
struct UnrecognizedLoop {
    start: Op,
    text: &'static str,
}

/// Raises all worksharing loops of a body.
pub(super) fn raise(unit: &mut Unit, body: &mut Body, calls: &RuntimeCalls) -> RaiseResult {
    let mut computed: HashSet<Op> = HashSet::new();
    promote_slots(unit, body);
    for _ in 0..ATTEMPTS {
        let mut copy = body.clone();
        match attempt(unit, &mut copy, calls, &computed)? {
            None => {
                *body = copy;
                return Ok(());
            }
            Some(unfit) => {
                if !computed.insert(unfit.start) {
                    return Err(reason(unit, body, unfit.start, unfit.text));
                }
            }
        }
    }
    Err(Reason {
        text: "the function contains too many unrecognised worksharing loops".into(),
        span: None,
    })
}

/// Raises the loops, loops in `computed` by the fallback; returns the first unrecognised loop.
fn attempt(
    unit: &mut Unit,
    body: &mut Body,
    calls: &RuntimeCalls,
    computed: &HashSet<Op>,
) -> RaiseResult<Option<UnrecognizedLoop>> {
    let mut found = Vec::new();
    for (op, id) in calls.list(unit, body) {
        if id == OpenMpFn::DispatchInit {
            unrotate::unrotate(unit, body, calls, op);
        }
        let shared = match id {
            OpenMpFn::StaticInit if computed.contains(&op) => {
                static_schedule::compute_bounds(unit, body, op)?;
                continue;
            }
            OpenMpFn::DispatchInit if computed.contains(&op) => {
                dynamic_chunks::raise(unit, body, calls, op)
                    .map_err(|text| reason(unit, body, op, text))?;
                continue;
            }
            OpenMpFn::StaticInit => static_loop(unit, body, calls, op),
            OpenMpFn::DispatchInit => dispatch_loop(unit, body, calls, op),
            _ => continue,
        };
        match shared {
            Ok(shared) => found.push(shared),
            Err(text) => return Ok(Some(UnrecognizedLoop { start: op, text })),
        }
    }
    for (op, id) in calls.list(unit, body) {
        if matches!(id, OpenMpFn::StaticFini | OpenMpFn::DispatchFini) {
            body.erase(op);
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    promote_slots(unit, body);
    for shared in &found {
        if let Err(text) = to_share_for(unit, body, shared) {
            let start = shared.start;
            return Ok(Some(UnrecognizedLoop { start, text }));
        }
    }
    Ok(None)
}

/// Decodes a schedule number; `None` for an unsupported schedule.
pub(super) fn decode_schedule(number: i64) -> Option<(Schedule, bool)> {
    // Bits 29 and 30 are the monotonicity modifiers.
    match number & 0x1fff_ffff {
        33 => Some((Schedule::Static, true)),
        34 | 38 | 45 => Some((Schedule::Static, false)),
        35 => Some((Schedule::Dynamic, true)),
        36 | 46 => Some((Schedule::Guided, true)),
        37 | 47 => Some((Schedule::Dynamic, false)),
        _ => None,
    }
}

fn static_loop(
    unit: &mut Unit,
    body: &mut Body,
    calls: &RuntimeCalls,
    start: Op,
) -> Result<WorksharingLoop, &'static str> {
    let args = unit.call_args(body, start);
    let number = args.get(2).and_then(|v| body.as_int(unit, *v));
    let (schedule, chunked) = number
        .and_then(decode_schedule)
        .ok_or("the schedule of this loop is not supported")?;
    let end = end_call(unit, body, calls, start, OpenMpFn::StaticFini)
        .ok_or("the end of this loop is not found")?;
    let inside = ops_between(body, start, end).unwrap_or_default();
    let last = last_branches(unit, body, bound_slot(body, &args, 3)?, start)?;
    let bounds = [bound_slot(body, &args, 4)?, bound_slot(body, &args, 5)?];
    let stride = bound_slot(body, &args, 6)?;
    if chunked {
        let round = chunk_loop(body, &inside, bounds[0], stride)
            .ok_or("the loop over chunks is not found")?;
        if !run_once(body, round) {
            return Err("the loop over chunks is not recognised");
        }
    }
    let inside = ops_between(body, start, end).unwrap_or_default();
    let body_op = only_loop(body, &inside).ok_or("the loop over iterations is not found")?;
    let own = loop_bounds::thread_private_carried(unit, body, &bounds, body_op)
        .ok_or(NEEDS_RANGE_START)?;
    let chunk = chunked.then(|| args[8]);
    let ty = body.ty(args[7]);
    body.erase(end);
    body.erase(start);
    Ok(WorksharingLoop {
        start,
        body: body_op,
        private_carried: own,
        ty,
        schedule,
        chunk,
        last_iteration_branches: last,
    })
}

/// Returns the loop over a thread's chunks among `inside`. An optimiser guards the loop by a test for a first
/// chunk; such a loop is recognised by its stride.
fn chunk_loop(body: &Body, inside: &[Op], lower: Op, stride: Op) -> Option<Op> {
    let plain = inside.iter().find(|&&op| is_loop(body, op));
    let below = inside.iter().flat_map(|&op| loops_in_arms(body, op));
    let mut below = below.filter(|&op| advances_by_stride(body, op, lower, stride));
    plain.copied().or_else(|| below.next())
}

/// Returns the loops directly in the arms of a branch.
fn loops_in_arms(body: &Body, branch: Op) -> Vec<Op> {
    if !matches!(body.kind(branch), OpKind::If) {
        return Vec::new();
    }
    let arms = body.op_regions(branch).iter();
    let ops = arms.flat_map(|arm| body.ops_in(*arm));
    ops.filter(|op| is_loop(body, *op)).collect()
}

/// Returns true if a carried value is advanced by the content of `stride`, from its previous value or the
/// content of `lower`.
fn advances_by_stride(body: &Body, lp: Op, lower: Op, stride: Op) -> bool {
    let region = body.op_regions(lp)[0];
    let repeats = |end: &Op| matches!(body.kind(*end), OpKind::Repeat);
    let Some(end) = body.last(region).filter(repeats) else {
        return false;
    };
    let is_read = |value: Value, slot: Op| {
        let op = body.def_op(value);
        let cast = op.filter(|op| matches!(body.kind(*op), OpKind::Cast(_)));
        let read = body.def_op(cast.map_or(value, |cast| body.operand(cast, 0)));
        let read = read.filter(|op| matches!(body.kind(*op), OpKind::Load(_)));
        read.is_some_and(|read| body.operand(read, 0) == body.result(slot))
    };
    let params = body.region_params(region).iter().enumerate();
    params.into_iter().any(|(at, param)| {
        let next = body.def_op(body.operand(end, 1 + at));
        let sum = next.filter(|op| matches!(body.kind(*op), OpKind::Binary(BinaryOp::Add)));
        sum.is_some_and(|sum| {
            let [a, b] = [body.operand(sum, 0), body.operand(sum, 1)];
            let was = |value: Value| value == *param || is_read(value, lower);
            was(a) && is_read(b, stride) || was(b) && is_read(a, stride)
        })
    })
}

fn dispatch_loop(
    unit: &mut Unit,
    body: &mut Body,
    calls: &RuntimeCalls,
    start: Op,
) -> Result<WorksharingLoop, &'static str> {
    let args = unit.call_args(body, start);
    let number = args.get(2).and_then(|v| body.as_int(unit, *v));
    let (schedule, chunked) = number
        .and_then(decode_schedule)
        .ok_or("the schedule of this loop is not supported (`ordered`?)")?;
    let (round, next) =
        dispatch_trip(unit, body, calls, start).ok_or("the loop over chunks is not recognised")?;
    let asked = unit.call_args(body, next);
    let slots = [2, 3, 4, 5].map(|i| bound_slot(body, &asked, i));
    let [last_slot, lower, upper, stride] = slots;
    let last = last_branches(unit, body, last_slot?, next)?;
    let arm: Vec<Op> = body.walk(body.op_regions(round)[0]).collect();
    let inner = outermost_loops(body, &arm);
    let [inner] = inner[..] else {
        return Err("the loop over iterations is not found");
    };
    let own = loop_bounds::thread_private_carried(unit, body, &[lower?, upper?], inner)
        .ok_or(NEEDS_RANGE_START)?;
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(next);
    for (value, slot) in [(3, lower?), (4, upper?), (5, stride?)] {
        let address = b.body.result(slot);
        b.store(args[value], address);
    }
    let answer = body.result(next);
    settle(unit, body, answer, 1);
    body.erase(next);
    if !run_once(body, round) {
        return Err("the loop over chunks is not recognised");
    }
    let ty = body.ty(args[3]);
    if let Some(end) = end_call(unit, body, calls, start, OpenMpFn::DispatchFini) {
        body.erase(end);
    }
    body.erase(start);
    Ok(WorksharingLoop {
        start,
        body: inner,
        private_carried: own,
        ty,
        schedule,
        chunk: chunked.then(|| args[6]),
        last_iteration_branches: last,
    })
}

/// Returns the loop after `start` that requests a chunk at its top, and the request.
pub(super) fn dispatch_trip(
    unit: &Unit,
    body: &Body,
    calls: &RuntimeCalls,
    start: Op,
) -> Option<(Op, Op)> {
    let mut at = body.next(start);
    while let Some(op) = at {
        if is_loop(body, op) {
            let region = body.op_regions(op)[0];
            let asks = |op: &Op| calls.id(unit, body, *op) == Some(OpenMpFn::DispatchNext);
            let all: Vec<Op> = body.walk(region).filter(asks).collect();
            return match all[..] {
                [next] if body.parent(next) == Some(region) => Some((op, next)),
                _ => None,
            };
        }
        at = body.next(op);
    }
    None
}

/// Returns the loops among `ops` without an enclosing loop in `ops`.
fn outermost_loops(body: &Body, ops: &[Op]) -> Vec<Op> {
    let loops: HashSet<Op> = ops.iter().copied().filter(|&o| is_loop(body, o)).collect();
    let is_outermost = |op: &Op| !body.ancestors(*op).any(|at| loops.contains(&at));
    let found = ops.iter().copied().filter(|op| loops.contains(op));
    found.filter(is_outermost).collect()
}

/// Returns the call that ends the construct begun by `start`, in one region.
fn end_call(unit: &Unit, body: &Body, calls: &RuntimeCalls, start: Op, id: OpenMpFn) -> Option<Op> {
    let mut at = body.next(start);
    while let Some(op) = at {
        match calls.id(unit, body, op) {
            Some(found) if found == id => return Some(op),
            Some(OpenMpFn::StaticInit | OpenMpFn::DispatchInit) => return None,
            _ => at = body.next(op),
        }
    }
    None
}

fn is_loop(body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Loop { .. })
}

/// Returns the only loop among `ops` and in branches among `ops`.
fn only_loop(body: &Body, ops: &[Op]) -> Option<Op> {
    let mut found = None;
    let mut open = ops.to_vec();
    while let Some(op) = open.pop() {
        match body.kind(op) {
            OpKind::Loop { .. } if found.is_some() => return None,
            OpKind::Loop { .. } => found = Some(op),
            OpKind::If => {
                let arms = body.op_regions(op).iter();
                open.extend(arms.flat_map(|r| body.ops_in(*r)));
            }
            _ => {}
        }
    }
    found
}

pub(super) fn bound_slot(body: &Body, args: &[Value], index: usize) -> Result<Op, &'static str> {
    let found = args.get(index).and_then(|v| slot_value(body, *v));
    found.ok_or("the loop bounds are not in thread-private memory")
}

fn to_share_for(
    unit: &mut Unit,
    body: &mut Body,
    shared: &WorksharingLoop,
) -> Result<(), &'static str> {
    hoist_invariants(unit, body, shared.body);
    set_nuw_on_counts(unit, body, shared);
    let counted = loop_to_for_with(unit, body, shared.body, &shared.private_carried)
        .ok_or("this loop is not a counted loop")?;
    for &branch in &shared.last_iteration_branches {
        move_to_last_iteration(unit, body, counted, branch)?;
    }
    memory_mirrors::replace_mirrored_values(unit, body, counted);
    let carried = body.operand_count(counted) - 1;
    for index in (0..carried).rev() {
        demote_carried_value(unit, body, counted, index);
    }
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(counted);
    b.loc = b.body.ops[counted].loc;
    let trips = b.body.operand(counted, 0);
    let ty = b.body.ty(trips);
    let mut operands = vec![trips];
    operands.extend(shared.chunk.map(|chunk| resized(&mut b, chunk, ty)));
    let kind = OpKind::ShareFor {
        schedule: shared.schedule,
        chunked: operands.len() > 1,
        nowait: true,
    };
    let op = b.op(kind, &operands, &[], 1);
    let into = b.body.op_regions(op)[0];
    let index = b.body.add_param(into, ty);
    let from = b.body.op_regions(counted)[0];
    let old = b.body.region_params(from)[0];
    b.body.replace_uses(old, index);
    b.body.move_ops(from, into);
    if let Some(end) = b.body.last(into) {
        b.body.truncate_operands(end, 0);
    }
    b.body.erase(counted);
    Ok(())
}

/// Sets NUW on the increment of an iteration count from zero by one: iteration numbers fit their type, unsigned
/// for a downward loop.
fn set_nuw_on_counts(unit: &Unit, body: &mut Body, shared: &WorksharingLoop) {
    let region = body.op_regions(shared.body)[0];
    let mut steps = Vec::new();
    for (at, &param) in body.region_params(region).iter().enumerate() {
        let from_zero = body.as_int(unit, body.operand(shared.body, at)) == Some(0);
        if from_zero && body.ty(param) == shared.ty && !shared.private_carried.contains(&at) {
            steps.extend(next_value_ops(body, region, at).filter(|op| {
                let is_sum = matches!(body.kind(*op), OpKind::Binary(BinaryOp::Add));
                let by_one = || body.as_int(unit, body.operand(*op, 1)) == Some(1);
                is_sum && body.operand(*op, 0) == param && by_one()
            }));
        }
    }
    for step in steps {
        let flags = &mut body.ops[step].flags;
        *flags = flags.with(Flags::NUW);
    }
}

/// Returns the ops that compute the next value of carried value `at`, directly or in an arm of the top test.
fn next_value_ops(body: &Body, region: Region, at: usize) -> impl Iterator<Item = Op> {
    let next = body
        .last(region)
        .and_then(|end| body.operands(end).nth(1 + at));
    let made = next.and_then(|next| body.def_op(next));
    let test = made.filter(|op| matches!(body.kind(*op), OpKind::If));
    let arms = test.map_or(&[][..], |test| body.op_regions(test));
    let position = test.and_then(|test| body.results(test).iter().position(|r| Some(*r) == next));
    let ends = arms.iter().filter_map(|arm| body.last(*arm));
    let yields = ends.filter_map(move |end| body.def_op(body.operands(end).nth(position?)?));
    made.into_iter().chain(yields)
}

/// Hoists speculatable invariant ops, i.e. the bound, out of a loop.
fn hoist_invariants(unit: &Unit, body: &mut Body, op: Op) {
    let region = body.op_regions(op)[0];
    let ops: Vec<Op> = body.ops_in(region).collect();
    for inner in ops {
        let fixed = is_speculatable(unit, body, inner)
            && body
                .operands(inner)
                .all(|v| body.region_of(v) != Some(region));
        if fixed {
            body.detach(inner);
            body.insert_before(op, inner);
        }
    }
}

/// Converts an integer to type `ty`; converted values are small and positive.
pub(super) fn resized(b: &mut Builder, value: Value, ty: gradus_ir::TypeId) -> Value {
    let (from, to) = (b.body.ty(value), ty);
    let bits = |ty| match b.unit.types.get(ty) {
        Type::Int(bits) => *bits,
        _ => 0,
    };
    match (bits(from), bits(to)) {
        (a, b_) if a < b_ => b.cast(CastOp::ZExt, value, ty),
        (a, b_) if a > b_ => b.cast(CastOp::Trunc, value, ty),
        _ => value,
    }
}

/// Moves carried value `index` to memory of the rank, unless no iteration uses another iteration's value.
fn demote_carried_value(unit: &mut Unit, body: &mut Body, op: Op, index: usize) {
    let region = body.op_regions(op)[0];
    let (result, param) = (
        body.results(op)[index],
        body.region_params(region)[1 + index],
    );
    let (initial, Some(end)) = (body.operand(op, 1 + index), body.last(region)) else {
        unreachable!("a verified region has a terminator");
    };
    let next = body.operand(end, index);
    if next == param {
        body.replace_uses(param, initial);
        body.replace_uses(result, initial);
        return;
    }
    if !body.has_uses(param) && !body.has_uses(result) {
        return;
    }
    let home = body.enclosing_strand(op);
    let ty = body.ty(param);
    let mut b = Builder::new(unit, body);
    if let Some(first) = b.body.first(home) {
        b.set_insertion_before(first);
    }
    let slot = b.alloca(ty);
    b.set_insertion_before(op);
    let first_write = b.store(initial, slot);
    if let Some(first) = b.body.first(region) {
        b.set_insertion_before(first);
    }
    let now = b.load(ty, slot);
    b.body.replace_uses(param, now);
    // The yielded value may be the parameter.
    let next = b.body.operand(end, index);
    b.set_insertion_before(end);
    b.store(next, slot);
    if b.body.has_uses(result) {
        if let Some(after) = b.body.next(op) {
            b.set_insertion_before(after);
        }
        let last = b.load(ty, slot);
        b.body.replace_uses(result, last);
        lift_out_of_branches(unit, body, (first_write, slot), last);
    }
}

/// Moves the initial store before, and the final load after, branches around the loop whose other arm yields
/// the initial value.
fn lift_out_of_branches(
    unit: &mut Unit,
    body: &mut Body,
    (write, slot): (Op, Value),
    mut last: Value,
) {
    loop {
        let initial = body.operand(write, 0);
        let uses: Vec<_> = body.uses(last).take(2).collect();
        let [at] = uses[..] else {
            // Not an error: the use is in the loop's region.
            return;
        };
        let region = body.parent(at.op);
        let Some((region, branch)) = region.and_then(|r| Some((r, body.owner(r)?))) else {
            // Not an error: the use is in the root region.
            return;
        };
        let is_end = matches!(body.kind(at.op), OpKind::Yield)
            && matches!(body.kind(branch), OpKind::If)
            && body.parent(write) == Some(region)
            && body.region_of(initial) != Some(region);
        let other = body.op_regions(branch).iter().find(|r| **r != region);
        let end = other.and_then(|r| body.last(*r));
        let gives_initial = |end| {
            matches!(body.kind(end), OpKind::Yield)
                && body.operand(end, at.index as usize) == initial
        };
        if !is_end || !end.is_some_and(gives_initial) {
            return;
        }
        let result = body.results(branch)[at.index as usize];
        let ty = body.ty(result);
        body.detach(write);
        body.insert_before(branch, write);
        let mut b = Builder::new(unit, body);
        if let Some(after) = b.body.next(branch) {
            b.set_insertion_before(after);
        }
        let read = b.load(ty, slot);
        b.body.replace_uses(result, read);
        body.set_operand(at.op, at.index as usize, initial);
        if let Some(old) = body.def_op(last) {
            body.erase(old);
        }
        last = read;
    }
}
