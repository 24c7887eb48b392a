//! Lowering of teams, worksharing and critical regions.
//!
//! The region of a team becomes `f.gr_team(member, rank, size, context)`, which the runtime calls for every
//! rank. The runtime returns a rank's part of a static loop. Chunks of a stated size are distributed by
//! arithmetic. Dynamic and guided chunks are fetched from the team. A `single` region runs on the first rank to
//! arrive.

use crate::emit::abi;
use crate::emit::abi::Entry;
use crate::emit::reduction_combine::copied_value;
use crate::emit::serial;
use crate::emit::share_for_chunks::{at_least, emit_range, round_robin_chunks};
use crate::lower::Lowering;
use gradus_edit::{
    ValueMap, block_type, captured_values, clone_ops, entry_alloca, inline_region, load_fields,
    store_fields, to_i64, to_index_type,
};
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, FuncId, IntPredicate, Op, OpKind, Region, Schedule, SpmdKind,
    TypeId, Unit, Value,
};

/// The rank state of the code to emit.
#[derive(Clone, Copy)]
struct RankState {
    member: Value,
    rank: Value,
    size: Value,
    /// The slot for the end of a part, written by the runtime.
    end: Value,
}

impl Lowering<'_> {
    /// Lowers an `spmd`.
    pub(crate) fn lower_team(&mut self, body: &mut Body, op: Op) {
        let OpKind::Spmd { kind, dims } = *body.kind(op) else {
            unreachable!("only `spmd` ops are lowered to teams");
        };
        if kind != SpmdKind::Team || dims != 1 {
            return self.ranks_as_loops(body, op);
        }
        let slots = self.copyprivate_slots(body, op);
        let region = body.op_regions(op)[0];
        let mut outside = captured_values(body, region);
        outside.extend(&slots);
        let entry = self.team_function(body, region, &outside, &slots);
        let b = &mut Builder::new(self.unit, body);
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        let block = block_type(b.unit, b.body, &outside);
        let context = entry_alloca(b, block);
        store_fields(b, block, context, &outside);
        let wanted = b.body.operand(op, 0);
        let wanted = to_i64(b, wanted);
        let int = b.unit.types.int(32);
        let wanted = b.cast(CastOp::Trunc, wanted, int);
        let (entry, run) = (b.func(entry), Entry::Team.declare(b.unit));
        b.call(run, &[wanted, entry, context]);
        b.body.erase(op);
    }

    /// Lowers the ranks of a block or grid without barriers to loop iterations.
    fn ranks_as_loops(&mut self, body: &mut Body, op: Op) {
        serial::lower(self.unit, body, op);
    }

    /// Allocates a slot per copyprivate `single` region of the team, in order. The slot passes the yielded values to
    /// all ranks.
    fn copyprivate_slots(&mut self, body: &mut Body, op: Op) -> Vec<Value> {
        let region = body.op_regions(op)[0];
        let copies = |op: &Op| matches!(body.kind(*op), OpKind::Single { copy: true, .. });
        let singles: Vec<Op> = shared_ops(body, region)
            .into_iter()
            .filter(copies)
            .collect();
        let mut slots = Vec::new();
        for single in singles {
            let results = body.results(single).to_vec();
            let block = block_type(self.unit, body, &results);
            let b = &mut Builder::new(self.unit, body);
            slots.push(entry_alloca(b, block));
        }
        slots
    }

    fn team_function(
        &mut self,
        source: &Body,
        region: Region,
        outside: &[Value],
        slots: &[Value],
    ) -> FuncId {
        let (ptr, int) = (self.unit.types.ptr(), self.unit.types.int(32));
        let block = block_type(self.unit, source, outside);
        self.outline("team", None, &[ptr, int, int, ptr], |b| {
            let given = b.body.params().to_vec();
            let values = load_fields(b, block, given[3]);
            let mut map = ValueMap::zip(outside, &values);
            let params = source.region_params(region).to_vec();
            for (param, value) in params.into_iter().zip([given[1], given[2]]) {
                let wide = to_i64(b, value);
                let value = to_index_type(b, wide, source.ty(param));
                map.set(param, value);
            }
            clone_ops(source, region, b, &mut map);
            if source
                .last(region)
                .is_some_and(|end| matches!(source.kind(end), OpKind::Unreachable))
            {
                b.op(OpKind::Unreachable, &[], &[], 0);
            } else {
                b.return_(None);
            }
            // The clone keeps the order of ops, hence the n-th copyprivate single stays the n-th.
            let places: Vec<Value> = slots
                .iter()
                .map(|slot| copied_value(b, source, &map, *slot))
                .collect();
            lower_worksharing(b, &given, &places);
        })
    }

    /// Replaces a critical region by its code between acquire and release of the named lock.
    pub(crate) fn critical(&mut self, body: &mut Body, op: Op) {
        critical(self.unit, body, op);
    }
}

fn critical(unit: &mut Unit, body: &mut Body, op: Op) {
    let OpKind::Critical(name) = body.kind(op).clone() else {
        unreachable!("only critical sections are lowered to locks");
    };
    let region = body.op_regions(op)[0];
    let b = &mut Builder::new(unit, body);
    b.loc = b.body.ops[op].loc;
    b.set_insertion_before(op);
    let lock = abi::lock_address(b, &name);
    let (take, give) = (Entry::Lock.declare(b.unit), Entry::Unlock.declare(b.unit));
    b.call(take, &[lock]);
    let after = b.body.next(op);
    inline_region(b, op, region, &[]);
    if let Some(after) = after {
        b.set_insertion_before(after);
        b.call(give, &[lock]);
    }
}

/// Lowers worksharing and barriers in the body of a team function with parameters `given`. `places` are the
/// slots of copyprivate singles, in order.
fn lower_worksharing(b: &mut Builder<'_>, given: &[Value], places: &[Value]) {
    let long = b.unit.types.int(64);
    let end = entry_alloca(b, long);
    let first = b.body.first(b.body.root());
    let after_slots = b.body.ops_in(b.body.root()).nth(1).or(first);
    let at_start = after_slots.map(|at| b.set_insertion_before(at));
    let (rank, size) = (to_i64(b, given[1]), to_i64(b, given[2]));
    if let Some(back) = at_start {
        b.restore_insertion_point(back);
    }
    let state = RankState {
        member: given[0],
        rank,
        size,
        end,
    };
    let mut places = places.iter();
    for op in shared_ops(b.body, b.body.root()) {
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        match *b.body.kind(op) {
            OpKind::Barrier(_) => {
                barrier(b, state);
                b.body.erase(op);
            }
            OpKind::Single { copy: true, .. } => {
                if let Some(&place) = places.next() {
                    single_for_all(b, state, op, place);
                }
            }
            OpKind::Single { nowait, .. } => single(b, state, op, nowait),
            OpKind::ShareFor {
                schedule, nowait, ..
            } => {
                shared_loop(b, state, op, schedule);
                if !nowait {
                    barrier(b, state);
                }
                b.body.erase(op);
            }
            _ => {}
        }
    }
}

/// Returns the worksharing ops and barriers of the team that runs `region`, in order, without those of nested teams.
fn shared_ops(body: &Body, region: Region) -> Vec<Op> {
    let mut found = Vec::new();
    let mut open = vec![body.first(region)];
    while let Some(next) = open.pop() {
        let Some(op) = next else {
            continue;
        };
        open.push(body.next(op));
        let kind = body.kind(op);
        if matches!(
            kind,
            OpKind::Barrier(_) | OpKind::Single { .. } | OpKind::ShareFor { .. }
        ) {
            found.push(op);
        }
        if !matches!(kind, OpKind::Spmd { .. }) {
            open.extend(body.op_regions(op).iter().rev().map(|r| body.first(*r)));
        }
    }
    found
}

fn barrier(b: &mut Builder<'_>, state: RankState) {
    let entry = Entry::Barrier.declare(b.unit);
    b.call(entry, &[state.member]);
}

/// Emits `if (rank is selected) { region }`, with the operands as results on the remaining ranks.
fn single(b: &mut Builder<'_>, state: RankState, op: Op, nowait: bool) {
    let choice = select_single_rank(b, state, op);
    let others: Vec<Value> = b.body.operands(op).collect();
    fill_arms(b, choice, op, &others);
    let chosen = b.body.results(choice).to_vec();
    replace_results(b, op, &chosen);
    if !nowait {
        barrier(b, state);
    }
    b.body.erase(op);
}

/// Like [`single`]; yielded values reach all ranks through memory.
fn single_for_all(b: &mut Builder<'_>, state: RankState, op: Op, place: Value) {
    let types: Vec<TypeId> = b.body.results(op).iter().map(|v| b.body.ty(*v)).collect();
    let block = b.unit.types.tuple(types.clone());
    let choice = select_single_rank(b, state, op);
    let mut nothing = Vec::new();
    for ty in types {
        nothing.push(b.poison(ty));
    }
    let region = b.body.op_regions(op)[0];
    if let Some(end) = b.body.yield_of(region) {
        let given: Vec<Value> = b.body.operands(end).collect();
        let back = b.set_insertion_before(end);
        store_fields(b, block, place, &given);
        b.restore_insertion_point(back);
    }
    fill_arms(b, choice, op, &nothing);
    barrier(b, state);
    let values = load_fields(b, block, place);
    // No rank writes the slot again before all ranks have read the slot.
    barrier(b, state);
    replace_results(b, op, &values);
    b.body.erase(op);
}

fn select_single_rank(b: &mut Builder<'_>, state: RankState, op: Op) -> Op {
    let entry = Entry::Single.declare(b.unit);
    let call = b.call(entry, &[state.member]);
    let mine = b.body.result(call);
    let types: Vec<TypeId> = b.body.results(op).iter().map(|v| b.body.ty(*v)).collect();
    b.if_(mine, &types).0
}

/// Moves the region of `op` into the first arm of `choice`; the second arm yields `others`.
fn fill_arms(b: &mut Builder<'_>, choice: Op, op: Op, others: &[Value]) {
    let regions = b.body.op_regions(choice).to_vec();
    let own = b.body.op_regions(op)[0];
    b.body.move_ops(own, regions[0]);
    let back = b.set_insertion_end(regions[1]);
    b.yield_(others);
    b.restore_insertion_point(back);
}

fn replace_results(b: &mut Builder<'_>, op: Op, values: &[Value]) {
    let results = b.body.results(op).to_vec();
    for (result, &value) in results.into_iter().zip(values) {
        b.body.replace_uses(result, value);
    }
}

fn shared_loop(b: &mut Builder<'_>, state: RankState, op: Op, schedule: Schedule) {
    let operands: Vec<Value> = b.body.operands(op).collect();
    let trips = to_i64(b, operands[0]);
    let chunk = operands.get(1).copied();
    let chunk = chunk.map(|chunk| to_i64(b, chunk));
    match (schedule, chunk) {
        (Schedule::Static, None) => {
            // A runtime call instead of inline arithmetic: scalar evolution would expand the quotient and the
            // minimum in every address of the loop, and reject the addresses for strength reduction as too
            // complex.
            let part = Entry::Part.declare(b.unit);
            let call = b.call(part, &[state.rank, state.size, trips, state.end]);
            let start = b.body.result(call);
            emit_range_to(b, op, start, state.end);
        }
        (Schedule::Static, Some(chunk)) => {
            round_robin_chunks(b, (state.rank, state.size), op, trips, chunk)
        }
        (Schedule::Dynamic | Schedule::Guided, chunk) => {
            // Without a stated chunk the schedule is unspecified, too: the runtime knows the current setting.
            let (none, one) = (b.i64(0), b.i64(1));
            let chunk = chunk.map_or(none, |chunk| at_least(b, chunk, one));
            dynamic_chunks(b, state, op, trips, chunk, schedule == Schedule::Guided);
        }
    }
}

/// Emits iterations from `start` to the end stored in slot `end`, exclusive.
fn emit_range_to(b: &mut Builder<'_>, op: Op, start: Value, end: Value) {
    let long = b.unit.types.int(64);
    let end = b.load(long, end);
    let length = b.binary(BinaryOp::Sub, end, start);
    emit_range(b, op, start, length);
}

/// Emits a loop over chunks fetched from the team.
fn dynamic_chunks(
    b: &mut Builder<'_>,
    state: RankState,
    op: Op,
    trips: Value,
    chunk: Value,
    guided: bool,
) {
    let (begin, next) = (
        Entry::LoopBegin.declare(b.unit),
        Entry::LoopNext.declare(b.unit),
    );
    b.call(begin, &[state.member]);
    let (_, round) = b.loop_(&[], &[]);
    let back = b.set_insertion_end(round);
    let guided = b.bool(guided);
    let args = [state.member, trips, chunk, guided, state.end];
    let call = b.call(next, &args);
    let start = b.body.result(call);
    emit_range_to(b, op, start, state.end);
    let again = b.icmp(IntPredicate::Ult, start, trips);
    b.repeat(again, &[], &[]);
    b.restore_insertion_point(back);
}
