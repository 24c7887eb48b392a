//! Dynamic loops of unrecognised shape: a `to_share_for.for` over chunks of fixed length.
//!
//! An optimiser may renumber iterations, or hoist code before the first iteration of a chunk. Every chunk runs
//! the same code; chunks of fixed length with unchanged code are therefore a legal execution of the loop:
//! 1. values carried from chunk to chunk go to memory of the rank;
//! 2. a clone of the final trip, in which no chunk is left, follows the loop and computes the live-out values;
//! 3. the trip with a chunk becomes the region of a `to_share_for.for` over the chunks. Code run by the thread of the
//!    last iteration (`lastprivate`) runs in the last chunk.

use crate::openmp::last_iteration::{check_movable_to_last, clone_under, last_branches};
use crate::openmp::worksharing_loops::{bound_slot, decode_schedule, dispatch_trip, resized};
use crate::regions::{move_region_before, ops_between, run_once, settle};
use crate::runtime_calls::RuntimeCalls;
use gradus_edit::{ValueMap, clone_op_within, is_pure};
use gradus_ir::{BinaryOp, Body, Builder, IntPredicate, Op, OpKind, Region, TypeId, Unit, Value};
use std::collections::HashSet;

const ROUNDS: &str = "the loop over chunks is not recognised";
const FAR: &str = "code of the last chunk cannot move into the loop";

/// Raises the dynamic loop that `start` begins.
pub(super) fn raise(
    unit: &mut Unit,
    body: &mut Body,
    calls: &RuntimeCalls,
    start: Op,
) -> Result<(), &'static str> {
    let args = unit.call_args(body, start);
    let number = args.get(2).and_then(|v| body.as_int(unit, *v));
    let (schedule, chunked) = number
        .and_then(decode_schedule)
        .ok_or("the schedule of this loop is not supported (`ordered`?)")?;
    let (round, next) = dispatch_trip(unit, body, calls, start).ok_or(ROUNDS)?;
    if args.get(5).and_then(|v| body.as_int(unit, *v)) != Some(1) {
        return Err("the step of this loop is not 1");
    }
    let asked = unit.call_args(body, next);
    let last = last_branches(unit, body, bound_slot(body, &asked, 2)?, next)?;
    let slots = [
        bound_slot(body, &asked, 3)?,
        bound_slot(body, &asked, 4)?,
        bound_slot(body, &asked, 5)?,
    ];
    let slots = slots.map(|slot| body.result(slot));
    let chunk = chunked.then(|| args[6]);
    let mut loop_ = ChunkLoop {
        unit,
        body,
        round,
        next,
        memory: Vec::new(),
    };
    loop_.demote_carried_values();
    let kept = loop_.clone_final_trip()?;
    let kind = OpKind::ShareFor {
        schedule,
        chunked: false,
        nowait: true,
    };
    let (shared, is_last) = loop_.to_share_for(kind, &args, slots, chunk)?;
    for branch in last {
        let memory = &kept;
        move_to_last_chunk(unit, body, shared, is_last, branch, memory)?;
    }
    body.erase(start);
    Ok(())
}

/// A loop that requests a chunk per trip.
struct ChunkLoop<'a> {
    unit: &'a mut Unit,
    body: &'a mut Body,
    round: Op,
    next: Op,
    /// For each carried value: its slot and type.
    memory: Vec<(Value, TypeId)>,
}

impl ChunkLoop<'_> {
    fn region(&self) -> Region {
        self.body.op_regions(self.round)[0]
    }

    /// Allocates slots for the carried values and stores the initial values.
    fn demote_carried_values(&mut self) {
        let initial: Vec<Value> = self.body.operands(self.round).collect();
        let home = self.body.enclosing_strand(self.round);
        let mut b = Builder::new(self.unit, self.body);
        for value in initial {
            if let Some(first) = b.body.first(home) {
                b.set_insertion_before(first);
            }
            let ty = b.body.ty(value);
            let slot = b.alloca(ty);
            b.set_insertion_before(self.round);
            b.store(value, slot);
            self.memory.push((slot, ty));
        }
    }

    /// Emits loads of the carried values at the builder's position.
    fn load_carried_values(b: &mut Builder, memory: &[(Value, TypeId)]) -> Vec<Value> {
        memory.iter().map(|(slot, ty)| b.load(*ty, *slot)).collect()
    }

    /// Emits a clone of the trip without a chunk after the loop, for the live-out values; returns the loads in
    /// the clone.
    fn clone_final_trip(&mut self) -> Result<HashSet<Op>, &'static str> {
        let after = self.body.next(self.round).ok_or(ROUNDS)?;
        let mut map = ValueMap::new();
        let mut b = Builder::new(self.unit, self.body);
        b.set_insertion_before(after);
        let now = Self::load_carried_values(&mut b, &self.memory);
        let copy = clone_op_within(self.round, &mut b, &mut map);
        let answer = map.get(self.body.result(self.next)).ok_or(ROUNDS)?;
        let asks = self.body.def_op(answer).ok_or(ROUNDS)?;
        for (index, value) in now.iter().enumerate() {
            self.body.set_operand(copy, index, *value);
        }
        let given = self.body.results(self.round).to_vec();
        let ends = self.body.results(copy).to_vec();
        for (result, end) in std::iter::zip(given, ends) {
            self.body.replace_uses(result, end);
        }
        settle(self.unit, self.body, answer, 0);
        self.body.erase(asks);
        if !run_once(self.body, copy) {
            return Err(ROUNDS);
        }
        let reads = now.into_iter().filter_map(|value| self.body.def_op(value));
        Ok(reads.collect())
    }

    /// Moves the trip with a chunk into a `to_share_for.for` over chunks; returns the op and the test for the last
    /// chunk.
    fn to_share_for(
        self,
        kind: OpKind,
        args: &[Value],
        slots: [Value; 3],
        chunk: Option<Value>,
    ) -> Result<(Op, Value), &'static str> {
        let region = self.region();
        let answer = self.body.result(self.next);
        settle(self.unit, self.body, answer, 1);
        self.body.erase(self.next);
        let end = self.body.last(region).ok_or(ROUNDS)?;
        let again = self.body.operand(end, 0);
        let repeats = matches!(self.body.kind(end), OpKind::Repeat);
        let surely = self.body.as_int(self.unit, again).is_some_and(|n| n != 0);
        if !repeats || !surely {
            return Err(ROUNDS);
        }
        let [lower, upper, step] = [args[3], args[4], args[5]];
        let ty = self.body.ty(lower);
        let mut b = Builder::new(self.unit, self.body);
        b.set_insertion_before(self.round);
        b.loc = b.body.ops[self.round].loc;
        let (zero, one) = (b.int(ty, 0), b.int(ty, 1));
        let length = match chunk {
            Some(chunk) => {
                let chunk = resized(&mut b, chunk, ty);
                let positive = b.icmp(IntPredicate::Sgt, chunk, zero);
                b.select(positive, chunk, one)
            }
            None => one,
        };
        let span = b.sub(upper, lower);
        let following = b.add(upper, one);
        let none = b.icmp(IntPredicate::Eq, following, lower);
        let further = b.binary(BinaryOp::UDiv, span, length);
        let parts = b.add(further, one);
        let parts = b.select(none, zero, parts);
        let op = b.op(kind, &[parts], &[], 1);
        let into = b.body.op_regions(op)[0];
        let index = b.body.add_param(into, ty);
        b.set_insertion_end(into);
        let skipped = b.mul(index, length);
        let first = b.add(lower, skipped);
        let rest = b.sub(upper, first);
        let whole = b.sub(length, one);
        let is_last = b.icmp(IntPredicate::Ule, rest, whole);
        let reach = b.select(is_last, rest, whole);
        let final_ = b.add(first, reach);
        for (value, slot) in std::iter::zip([first, final_, step], slots) {
            b.store(value, slot);
        }
        let done = b.yield_(&[]);
        fold_empty_chunk_tests(
            b.unit,
            b.body,
            region,
            [slots[0], slots[1]],
            [first, final_],
        );
        b.set_insertion_before(done);
        let params = b.body.region_params(region).to_vec();
        for (param, (slot, ty)) in std::iter::zip(params, &self.memory) {
            if b.body.has_uses(param) {
                let now = b.load(*ty, *slot);
                b.body.replace_uses(param, now);
            }
        }
        let handed = move_region_before(b.body, region, done);
        b.set_insertion_before(done);
        for (value, (slot, _)) in handed.into_iter().skip(1).zip(&self.memory) {
            b.store(value, *slot);
        }
        b.body.erase(self.round);
        Ok((op, is_last))
    }
}

/// Replaces loads of a non-empty chunk's bounds in `region` by `bounds`, and folds tests for an empty chunk.
fn fold_empty_chunk_tests(
    unit: &mut Unit,
    body: &mut Body,
    region: Region,
    slots: [Value; 2],
    bounds: [Value; 2],
) {
    let inside: HashSet<Op> = body.walk(region).collect();
    for (slot, bound) in std::iter::zip(slots, bounds) {
        let users: Vec<Op> = body.uses(slot).map(|at| at.op).collect();
        let own = |op: &Op| inside.contains(op);
        if !users
            .iter()
            .filter(|op| own(op))
            .all(|op| is_read(body, *op))
        {
            return;
        }
        for read in users.into_iter().filter(own) {
            let value = body.result(read);
            body.replace_uses(value, bound);
        }
    }
    let [first, final_] = bounds;
    let tests: Vec<(Op, i64)> = body
        .uses(first)
        .filter_map(|at| {
            let pair = [body.operands(at.op).next()?, body.operands(at.op).nth(1)?];
            let holds = match (body.kind(at.op), pair == bounds) {
                (OpKind::ICmp(IntPredicate::Sle | IntPredicate::Ule), true) => 1,
                (OpKind::ICmp(IntPredicate::Sgt | IntPredicate::Ugt), true) => 0,
                (OpKind::ICmp(IntPredicate::Sge | IntPredicate::Uge), false) => 1,
                (OpKind::ICmp(IntPredicate::Slt | IntPredicate::Ult), false) => 0,
                _ => return None,
            };
            let both = pair == bounds || pair == [final_, first];
            (both && inside.contains(&at.op)).then_some((at.op, holds))
        })
        .collect();
    for (test, holds) in tests {
        let result = body.result(test);
        settle(unit, body, result, holds);
    }
}

fn is_read(body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Load(access) if access.is_plain())
}

/// Moves the code of `branch` after the loop to the end of the last chunk; `reads` are the loads of live-out
/// values.
fn move_to_last_chunk(
    unit: &mut Unit,
    body: &mut Body,
    shared: Op,
    is_last: Value,
    branch: Op,
    reads: &HashSet<Op>,
) -> Result<(), &'static str> {
    check_movable_to_last(unit, body, branch)?;
    let between = ops_between(body, shared, branch).ok_or(FAR)?;
    let arm = body.op_regions(branch)[0];
    let mut wanted: HashSet<Value> = body
        .walk(arm)
        .flat_map(|op| body.operands(op).collect::<Vec<_>>())
        .collect();
    let mut needed = Vec::new();
    for &op in between.iter().rev() {
        if body.results(op).iter().any(|r| wanted.contains(r)) {
            if !reads.contains(&op) && !is_pure(unit, body, op) {
                return Err(FAR);
            }
            wanted.extend(body.operands(op));
            needed.push(op);
        }
    }
    let region = body.op_regions(shared)[0];
    let end = body.last(region).ok_or(FAR)?;
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(end);
    b.loc = b.body.ops[branch].loc;
    let arm: Vec<Op> = b.body.ops_in(arm).collect();
    let ops = needed.into_iter().rev().chain(arm).collect();
    clone_under(&mut b, is_last, ops, &mut ValueMap::new());
    body.erase(branch);
    Ok(())
}
