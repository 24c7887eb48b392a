//! Teams as the code of one rank with barriers: barrier fission turns the rank's code into loops over ranks
//! before differentiation.
//!
//! Ranks of a correct program do not wait for each other between two barriers, and may therefore run one after
//! the other. Work is distributed by arithmetic. A worksharing loop is partitioned by rank and number of ranks,
//! whatever its schedule (any partition is a legal run of a dynamic schedule); a `single` region goes to rank
//! 0. The number of ranks, unless stated by the program, is queried from the runtime before the team, and
//! derivatives save the number like any value.
//!
//! A team stays unchanged if its ranks may wait for each other by other means than barriers and critical
//! regions: results of atomics, fences, nested tasks or teams, or unknown callees.

use crate::emit::abi::Entry;
use crate::emit::share_for_chunks::round_robin_chunks;
use crate::thread_count::order_dependence::functions_reaching;
use gradus_edit::{
    ValueMap, block_type, clone_op_within, entry_alloca, load_fields, store_fields, strided_to_for,
    to_i64, to_index_type,
};
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn, OpenMpFn};
use gradus_ir::{
    BarrierScope, BinaryOp, Body, Builder, CastOp, EffectClass, Flags, FuncId, IntPredicate, Op,
    OpKind, Region, Schedule, ScopeId, TypeId, Unit, Value,
};
use std::collections::HashSet;

/// Returns true if `body` has worksharing or barriers of a team outside of `body`.
pub fn has_orphaned_worksharing(body: &Body) -> bool {
    let mut open = vec![body.root()];
    while let Some(region) = open.pop() {
        for op in body.ops_in(region) {
            match body.kind(op) {
                OpKind::ShareFor { .. }
                | OpKind::Single { .. }
                | OpKind::Barrier(BarrierScope::Team) => return true,
                OpKind::Spmd { .. } => {}
                _ => open.extend(body.op_regions(op)),
            }
        }
    }
    false
}

/// Returns the functions in which a rank may wait for another rank, or may be distinguished from another rank.
pub fn functions_that_wait(unit: &Unit) -> HashSet<FuncId> {
    functions_reaching(unit, &may_wait_for_rank)
}

/// Turns a team into the code of one rank with barriers, and materialises the number of ranks before the team.
/// Returns true on success. `waiting` is the result of [`functions_that_wait`].
pub fn team_to_rank_code(
    unit: &mut Unit,
    body: &mut Body,
    team: Op,
    waiting: &HashSet<FuncId>,
) -> bool {
    replace_rank_queries(unit, body, team);
    let region = body.op_regions(team)[0];
    let shares = |op: &Op| {
        matches!(
            body.kind(*op),
            OpKind::Barrier(BarrierScope::Team) | OpKind::ShareFor { .. } | OpKind::Single { .. }
        )
    };
    let is_nested = (body.ancestors(team)).any(|op| body.kind(op).is_parallel());
    let (shared, others): (Vec<Op>, Vec<Op>) = body.walk(region).partition(shares);
    let waits =
        |op: &Op| may_wait_for_rank(unit, body, *op, waiting) || is_unsized_slot(unit, body, *op);
    if is_nested || others.iter().any(waits) {
        return false;
    }
    let mut b = Builder::new(unit, body);
    materialize_rank_count(&mut b, team);
    rank_strides_to_for(b.unit, b.body, team);
    let Some(rank) = RankCode::of(&mut b, team) else {
        unreachable!("a one-dimensional team has a rank and a size parameter");
    };
    for op in shared {
        rank.lower_worksharing(&mut b, op);
    }
    isolate_critical_regions(unit, body, team);
    drop_split_alias_scopes(unit, body, team);
    true
}

/// Converts loops of a team with the number of ranks, a positive number, as step into `for`s. Saved values then
/// have a tape slot per iteration.
fn rank_strides_to_for(unit: &mut Unit, body: &mut Body, team: Op) {
    let region = body.op_regions(team)[0];
    let mut sizes: Vec<Value> = body.region_params(region)[1..].to_vec();
    let mut next = 0;
    while let Some(&size) = sizes.get(next) {
        next += 1;
        let same = body.uses(size).filter_map(|at| match body.kind(at.op) {
            OpKind::Cast(CastOp::Trunc | CastOp::SExt | CastOp::ZExt) | OpKind::Freeze => {
                let value = body.result(at.op);
                let bits = unit.types.int_bits(body.ty(value));
                bits.is_some_and(|bits| bits >= 32).then_some(value)
            }
            _ => None,
        });
        let same: Vec<Value> = same.collect();
        sizes.extend(same);
    }
    let loops = body.walk(region);
    let loops = loops.filter(|op| matches!(body.kind(*op), OpKind::Loop { .. }));
    let mut loops: Vec<Op> = loops.collect();
    loops.reverse();
    for op in loops {
        strided_to_for(unit, body, op, &sizes);
    }
}

/// Replaces rank and size queries of code inlined into the team by the team's parameters.
fn replace_rank_queries(unit: &mut Unit, body: &mut Body, team: Op) {
    let region = body.op_regions(team)[0];
    let &[number, size] = body.region_params(region) else {
        unreachable!("a team's region has the rank and the size as parameters");
    };
    let of_team = |op: &Op| {
        let mut between = body.ancestors(*op).take_while(|op| *op != team);
        between.all(|op| match body.kind(op) {
            OpKind::ShareFor { .. } | OpKind::Single { .. } | OpKind::Critical(_) => true,
            kind => !kind.is_parallel(),
        })
    };
    let asked = body.walk(region).filter_map(|op| {
        let answer = match unit.known_callee(body, op)? {
            ExternalFn::OpenMp(OpenMpFn::ThreadNum) => number,
            ExternalFn::OpenMp(OpenMpFn::NumThreads) => size,
            _ => return None,
        };
        let is_call = matches!(body.kind(op), OpKind::Call(_));
        (is_call && of_team(&op)).then_some((op, answer))
    });
    for (op, answer) in asked.collect::<Vec<_>>() {
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        let result = b.body.result(op);
        let ty = b.body.ty(result);
        let answer = to_index_type(&mut b, answer, ty);
        b.body.replace_uses(result, answer);
        b.body.erase(op);
    }
}

/// Returns true if ranks may wait for each other at `op`, except at worksharing and barriers.
fn may_wait_for_rank(unit: &Unit, body: &Body, op: Op, waiting: &HashSet<FuncId>) -> bool {
    match body.kind(op) {
        OpKind::ParFor { .. } | OpKind::Critical(_) => false,
        OpKind::Load(access) | OpKind::Store(access) => !access.is_plain(),
        OpKind::AtomicRmw(..) => body.has_uses(body.result(op)),
        OpKind::CmpXchg { .. } | OpKind::Fence { .. } | OpKind::Unreachable => true,
        kind if kind.is_parallel() => true,
        kind if kind.call_info().is_none() => false,
        OpKind::Call(_) => {
            let Some(callee) = unit.callee(body, op) else {
                return true;
            };
            match unit.known(callee) {
                Some(ExternalFn::OpenMp(
                    OpenMpFn::MaxThreads | OpenMpFn::Query | OpenMpFn::Clock,
                )) => false,
                Some(
                    ExternalFn::OpenMp(_)
                    | ExternalFn::Fork(_)
                    | ExternalFn::Kernel(_)
                    | ExternalFn::Mpi,
                ) => true,
                Some(_) => false,
                None => unit.functions[callee].body.is_none() || waiting.contains(&callee),
            }
        }
        _ => true,
    }
}

/// Returns true for a rank's private slot of unknown size.
fn is_unsized_slot(unit: &Unit, body: &Body, op: Op) -> bool {
    let is_slot = matches!(body.kind(op), OpKind::Alloca(_));
    is_slot && body.as_int(unit, body.operand(op, 0)).is_none()
}

/// Materialises the number of ranks before the team.
fn materialize_rank_count(b: &mut Builder<'_>, team: Op) {
    b.set_insertion_before(team);
    b.loc = b.body.ops[team].loc;
    let extent = b.body.operand(team, 0);
    let ty = b.body.ty(extent);
    let stated = b.body.as_int(b.unit, extent).filter(|ranks| *ranks > 0);
    let ranks = match stated {
        Some(_) => extent,
        None => {
            let entry = Entry::Ranks.declare(b.unit);
            let int = b.unit.types.int(32);
            let wanted = to_i64(b, extent);
            let wanted = b.cast(CastOp::Trunc, wanted, int);
            let call = b.call(entry, &[wanted]);
            let answer = b.body.result(call);
            let answer = to_i64(b, answer);
            to_index_type(b, answer, ty)
        }
    };
    let ranks = b.value(OpKind::Freeze, &[ranks], ty);
    b.body.set_operand(team, 0, ranks);
}

/// The rank state of the code to emit.
#[derive(Clone, Copy)]
struct RankCode {
    number: Value,
    /// `rank` and `size` (the number of ranks) are 64 bits wide.
    rank: Value,
    size: Value,
    team: Op,
}

impl RankCode {
    fn of(b: &mut Builder<'_>, team: Op) -> Option<RankCode> {
        let region = b.body.op_regions(team)[0];
        let first = b.body.first(region)?;
        b.set_insertion_before(first);
        let &[number, size] = b.body.region_params(region) else {
            return None;
        };
        for number in [number, size] {
            drop_truncated_extensions(b, number);
        }
        let (rank, size) = (to_i64(b, number), to_i64(b, size));
        Some(RankCode {
            number,
            rank,
            size,
            team,
        })
    }

    /// Replaces a worksharing op by the rank's share.
    fn lower_worksharing(self, b: &mut Builder<'_>, op: Op) {
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        match *b.body.kind(op) {
            OpKind::ShareFor {
                schedule, nowait, ..
            } => {
                self.shared_loop(b, op, schedule);
                if !nowait {
                    barrier(b);
                }
            }
            OpKind::Single { copy: true, .. } => self.single_for_all(b, op),
            OpKind::Single { nowait, .. } => {
                let others: Vec<Value> = b.body.operands(op).collect();
                self.single(b, op, &others);
                if !nowait {
                    barrier(b);
                }
            }
            _ => return,
        }
        b.body.erase(op);
    }

    /// Emits `if (rank == 0) { region }`, with `others` as results on the remaining ranks.
    fn single(self, b: &mut Builder<'_>, op: Op, others: &[Value]) {
        let ty = b.body.ty(self.number);
        let zero = b.zero(ty);
        let mine = b.icmp(IntPredicate::Eq, self.number, zero);
        let results = b.body.results(op).to_vec();
        let types: Vec<TypeId> = results.iter().map(|v| b.body.ty(*v)).collect();
        let (choice, own, none) = b.if_(mine, &types);
        let region = b.body.op_regions(op)[0];
        b.body.move_ops(region, own);
        let back = b.set_insertion_end(none);
        b.yield_(others);
        b.restore_insertion_point(back);
        for (result, value) in results.into_iter().zip(b.body.results(choice).to_vec()) {
            b.body.replace_uses(result, value);
        }
    }

    /// Like [`RankCode::single`]; yielded values reach all ranks through memory.
    fn single_for_all(self, b: &mut Builder<'_>, op: Op) {
        let results = b.body.results(op).to_vec();
        let block = block_type(b.unit, b.body, &results);
        let place = entry_alloca(b, block);
        let region = b.body.op_regions(op)[0];
        if let Some(end) = b.body.last(region) {
            let given: Vec<Value> = b.body.operands(end).collect();
            let back = b.set_insertion_before(end);
            store_fields(b, block, place, &given);
            b.restore_insertion_point(back);
        }
        let types: Vec<TypeId> = results.iter().map(|v| b.body.ty(*v)).collect();
        let nothing: Vec<Value> = types.iter().map(|ty| b.poison(*ty)).collect();
        let mut uses = Vec::new();
        for &result in &results {
            uses.push(b.body.uses(result).collect::<Vec<_>>());
        }
        self.single(b, op, &nothing);
        barrier(b);
        let values = load_fields(b, block, place);
        for (uses, value) in uses.into_iter().zip(values) {
            for at in uses {
                b.body.set_operand(at.op, at.index as usize, value);
            }
        }
        // No rank writes the slot again before all ranks have read the slot.
        barrier(b);
    }

    fn shared_loop(self, b: &mut Builder<'_>, op: Op, schedule: Schedule) {
        let operands: Vec<Value> = b.body.operands(op).collect();
        let trips = to_i64(b, operands[0]);
        let one = b.i64(1);
        let chunk = operands.get(1).map(|chunk| to_i64(b, *chunk));
        match (schedule, chunk) {
            (Schedule::Static | Schedule::Guided, None) => self.block_partition(b, op, trips),
            (_, chunk) => {
                let chunk = chunk.unwrap_or(one);
                round_robin_chunks(b, (self.rank, self.size), op, trips, chunk);
            }
        }
    }

    /// Emits the block partition: rank r has iterations r·p to (r+1)·p, p = ⌈n/ranks⌉, as in a team at run
    /// time. All ranks have an equal trip count, and iterations past the end are empty: tape slots per
    /// iteration are then at known offsets.
    fn block_partition(self, b: &mut Builder<'_>, op: Op, trips: Value) {
        let exact = Flags::NUW.with(Flags::NSW);
        let one = b.i64(1);
        // The chunk size, equal for all ranks, is computed before the team if possible.
        let before = recompute_before_team(b, self.team, trips);
        let (all, size, back) = match before {
            None => (trips, self.size, None),
            Some(all) => {
                let back = b.set_insertion_before(self.team);
                let extent = b.body.operand(self.team, 0);
                (all, to_i64(b, extent), Some(back))
            }
        };
        let less = b.binary(BinaryOp::Sub, size, one);
        let sum = b.add(all, less);
        let share = b.binary(BinaryOp::UDiv, sum, size);
        if let Some(back) = back {
            b.restore_insertion_point(back);
        }
        let start = b.mul(self.rank, share);
        b.set_flags(start, exact);
        let region = b.body.op_regions(op)[0];
        let (_, inner) = b.for_(share, &[]);
        let back = b.set_insertion_end(inner);
        let own = b.body.region_params(inner)[0];
        let index = b.add(start, own);
        b.set_flags(index, exact);
        let there = b.icmp(IntPredicate::Ult, index, trips);
        let param = b.body.region_params(region)[0];
        let ty = b.body.ty(param);
        let index = to_index_type(b, index, ty);
        b.body.replace_uses(param, index);
        let (_, some, none) = b.if_(there, &[]);
        b.body.move_ops(region, some);
        b.set_insertion_end(none);
        b.yield_(&[]);
        b.set_insertion_end(inner);
        b.yield_(&[]);
        b.restore_insertion_point(back);
    }
}

/// The maximum number of recomputed ops.
const RECOMPUTED_OPS_MAX: usize = 64;

/// Returns `value` as recomputed before the team, if computed by speculatable arithmetic from values before the
/// team.
fn recompute_before_team(b: &mut Builder<'_>, team: Op, value: Value) -> Option<Value> {
    let region = b.body.op_regions(team)[0];
    let (mut open, mut found) = (vec![value], Vec::new());
    while let Some(value) = open.pop() {
        if !b.body.is_defined_in(value, region) {
            continue;
        }
        let op = b.body.def_op(value)?;
        let is_plain = b.body.kind(op).effects() == EffectClass::Pure;
        if !is_plain || found.len() == RECOMPUTED_OPS_MAX {
            return None;
        }
        found.push(op);
        open.extend(b.body.operands(op));
    }
    // `found` lists every op before its operands.
    let (mut made, mut map) = (HashSet::new(), ValueMap::new());
    let back = b.set_insertion_before(team);
    for op in found.into_iter().rev().filter(|op| made.insert(*op)) {
        clone_op_within(op, b, &mut map);
    }
    b.restore_insertion_point(back);
    Some(map.get_or_same(value))
}

/// Removes truncation to 32 bits followed by extension from a thread number: ranks fit into 32 bits and are not
/// negative.
fn drop_truncated_extensions(b: &mut Builder<'_>, number: Value) {
    let made = |b: &Builder<'_>, value: Value, is: fn(CastOp) -> bool| -> Vec<Value> {
        let uses = b.body.uses(value);
        let casts = uses.filter(|at| matches!(b.body.kind(at.op), OpKind::Cast(cast) if is(*cast)));
        casts.map(|at| b.body.result(at.op)).collect()
    };
    for short in made(b, number, |cast| cast == CastOp::Trunc) {
        if b.unit.types.int_bits(b.body.ty(short)) != Some(32) {
            continue;
        }
        for long in made(b, short, |cast| matches!(cast, CastOp::SExt | CastOp::ZExt)) {
            if b.body.ty(long) == b.body.ty(number) {
                b.body.replace_uses(long, number);
            }
        }
    }
}

fn barrier(b: &mut Builder<'_>) {
    b.op(OpKind::Barrier(BarrierScope::Team), &[], &[], 0);
}

/// Returns the regions split by barrier fission: the team's region and all regions with a barrier.
fn split_regions(body: &Body, team: Op) -> HashSet<Region> {
    let root = body.op_regions(team)[0];
    let mut cut = HashSet::from([root]);
    for op in body.walk(root) {
        if matches!(body.kind(op), OpKind::Barrier(_)) {
            let regions = body.parent(op).into_iter();
            let regions = regions.flat_map(|home| body.regions_around(home));
            cut.extend(regions.take_while(|region| *region != root));
        }
    }
    cut
}

/// Puts barriers around critical regions in split regions: only the critical regions then run rank after rank,
/// not the neighbouring code.
fn isolate_critical_regions(unit: &mut Unit, body: &mut Body, team: Op) {
    let cut = split_regions(body, team);
    let locks = body.walk(body.op_regions(team)[0]).filter(|op| {
        let stands = body.parent(*op).is_some_and(|region| cut.contains(&region));
        stands && matches!(body.kind(*op), OpKind::Critical(_))
    });
    for op in locks.collect::<Vec<Op>>() {
        let after = body.next(op);
        let mut b = Builder::new(unit, body);
        b.loc = b.body.ops[op].loc;
        b.set_insertion_before(op);
        barrier(&mut b);
        if let Some(after) = after {
            b.set_insertion_before(after);
            barrier(&mut b);
        }
    }
}

/// Drops alias scopes declared in split regions: after fission, a rank's accesses are no longer separate from
/// accesses of other ranks.
fn drop_split_alias_scopes(unit: &mut Unit, body: &mut Body, team: Op) {
    let cut = split_regions(body, team);
    let inside: Vec<Op> = body.walk(body.op_regions(team)[0]).collect();
    let begins = |op: &Op| {
        let known = unit.known_callee(body, *op);
        let stands = body.parent(*op).is_some_and(|region| cut.contains(&region));
        stands && known == Some(ExternalFn::Marker(CompilerIntrinsic::NoaliasScopeDecl))
    };
    let begun: Vec<Op> = inside.iter().copied().filter(begins).collect();
    if begun.is_empty() {
        return;
    }
    let of_team: HashSet<Op> = inside.iter().copied().collect();
    let outside = body.walk(body.root()).filter(|op| !of_team.contains(op));
    let metas = outside.filter_map(|op| body.ops[op].meta);
    let stay: HashSet<ScopeId> = metas
        .flat_map(|meta| {
            let meta = unit.meta(meta);
            meta.alias_scopes.iter().chain(&meta.noalias).copied()
        })
        .collect();
    for op in inside {
        let Some(meta) = body.ops[op].meta else {
            continue;
        };
        let mut meta = unit.meta(meta).clone();
        meta.alias_scopes.retain(|scope| stay.contains(scope));
        meta.noalias.retain(|scope| stay.contains(scope));
        body.ops[op].meta = unit.intern_meta(meta);
    }
    for op in begun {
        body.erase(op);
    }
}
