//! Folding of teams to parallel loops: a team whose ranks only execute worksharing loops becomes a sequence of
//! parallel loops.
//!
//! One rank is a legal execution of a team, and iterations of a worksharing loop may run in any order, also
//! concurrently. The region of a team may therefore replace the team, executed by one thread, with every
//! `to_share_for.for` as a `par.for`. The rules: rank and size are unused, code outside of worksharing loops has equal
//! effects on every rank, and iterations that now run concurrently do not share private memory of a rank:
//! - memory that an iteration initialises (by a first write or a lifetime start) is privatised to the
//!   iteration;
//! - memory that iterations only read is shared;
//! - memory that starts from an identity, accumulates in the loop and is combined under a lock afterwards is a
//!   reduction: each iteration contributes its accumulation from the identity.
//!
//! A team whose entire work is in `single` regions is the work itself. A team with an `if` clause is versioned
//! ([`crate::if_clause`]).
//!
//! Any other team stays a team. Barriers vanish with the team: code before and after runs in order.

use crate::atomics;
use crate::if_clause;
use crate::private_memory::{PrivateSlot, slots_to_privatize};
use crate::reach::{Reach, may_distinguish_ranks, reaches_spin_wait, reaches_unknown, waits};
use crate::reductions::{self, REDUCTION_LOCK, Reduction};
use crate::region_extent;
use crate::regions::move_region_before;
use crate::report::{RaiseResult, Reason, reason};
use gradus_edit::{is_pure, promote_slots, remove_dead_ops};
use gradus_ir::externals::ExternalFn;
use gradus_ir::{
    AllocaStorage, BarrierScope, BinaryOp, Body, Builder, Flags, IntPredicate, Op, OpKind,
    ReduceOp, Region, Schedule, SpmdKind, Type, Unit, Value,
};
use std::collections::HashSet;

/// The outcome for the teams of a body.
#[derive(Default)]
pub(crate) struct FoldedTeams {
    /// Teams that became loops.
    pub folded: Vec<Op>,
    /// Remaining teams, and the op that distinguishes their ranks.
    pub with_distinct_ranks: Vec<(Op, Reason)>,
}

/// Folds all teams of a body that qualify, inner teams first.
pub(crate) fn raise(unit: &mut Unit, body: &mut Body, reach: &Reach) -> FoldedTeams {
    let mut teams: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| {
            let team = OpKind::Spmd {
                kind: SpmdKind::Team,
                dims: 1,
            };
            *body.kind(op) == team
        })
        .collect();
    teams.reverse();
    let mut done = FoldedTeams::default();
    for team in teams {
        let parted = if_clause::part(unit, body, team, reach);
        match parted.and_then(|()| plan_fold(unit, body, team, requested_ranks(body, team), reach))
        {
            Ok(plan) => {
                done.folded.push(team);
                region_extent::mark_region_extent(unit, body, team, reach);
                fold(unit, body, team, plan, reach);
            }
            Err(why) => done.with_distinct_ranks.push((team, why)),
        }
    }
    if !done.folded.is_empty() {
        atomics::raise(unit, body);
        promote_slots(unit, body);
        reductions::drop_neutral(unit, body);
        remove_dead_ops(unit, body);
    }
    done
}

/// The transformation of a team's worksharing loops.
pub(crate) struct FoldPlan {
    loops: Vec<(Op, Vec<Reduction>, Vec<PrivateSlot>)>,
    /// Comparisons of the rank with a number, and their result for the only rank.
    compared: Vec<(Op, bool)>,
}

/// Plans the folding of a team with `asked` requested ranks, or returns the op that distinguishes its ranks.
pub(crate) fn plan_fold(
    unit: &Unit,
    body: &Body,
    team: Op,
    asked: Value,
    reach: &Reach,
) -> RaiseResult<FoldPlan> {
    let why = |op: Op, text: &str| Err(reason(unit, body, op, text));
    // A team of possibly one rank was perhaps requested because its loops must not run concurrently.
    if body.as_int(unit, asked) == Some(1) || body.as_const(asked).is_none() {
        return why(team, "the number of threads is one, or is computed");
    }
    let region = body.op_regions(team)[0];
    if let Some(op) = body
        .walk(region)
        .find(|&op| may_have_several_ranks(unit, body, op))
    {
        return why(op, "the region contains a nested parallel region");
    }
    // With a stated number of ranks, unknown code may rely on no other thread entering, and the program on
    // exactly that many ranks entering, e.g. to wait for each other.
    let stated = body.as_int(unit, asked) != Some(0);
    if stated {
        let counts =
            |op: &Op| reaches_unknown(unit, body, *op, reach) || waits(unit, body, *op, reach);
        if let Some(op) = body.walk(region).find(counts) {
            return why(
                op,
                "code reached from here may rely on the requested number of threads",
            );
        }
        if let Some(op) = effect_per_rank(unit, body, region) {
            return why(
                op,
                "the region requests a number of threads, and each thread executes this code",
            );
        }
    }
    let (shared, level) = team_level_ops(unit, body, team, reach)?;
    // Waiting iterations require that earlier iterations have started in order.
    let watches = |op: &Op| reaches_spin_wait(unit, body, *op, reach);
    let mut inside = shared
        .iter()
        .flat_map(|lp| body.walk(body.op_regions(*lp)[0]));
    if let Some(op) = inside.find(watches) {
        return why(
            op,
            "iterations may wait until earlier iterations write memory",
        );
    }
    if let Some(op) = thread_local_state_call(unit, body, &shared, reach) {
        return why(
            op,
            "unknown code called in static loops may keep thread-local state between the loops",
        );
    }
    let compared = rank_comparisons(unit, body, region, &shared)?;
    let chosen = |op: Op| only_selects_rank_zero(unit, body, op);
    if let Some((op, _)) = compared.iter().find(|(op, _)| stated && !chosen(*op)) {
        return why(*op, USES_THREAD_NUMBER);
    }
    let mut combined: HashSet<Op> = HashSet::new();
    let mut loops = Vec::new();
    for &op in &shared {
        let found = reductions::of_loop(unit, body, op);
        combined.extend(found.iter().map(|r| r.critical));
        let gathered: HashSet<Op> = found.iter().map(|r| r.slot).collect();
        let own = slots_to_privatize(unit, body, region, op, &gathered, !stated, reach)?;
        loops.push((op, found, own));
    }
    // A lock other than a reduction's orders ranks; a single rank would not need the lock.
    let is_combined = |op: &Op| {
        combined.contains(op)
            && reductions::contains_only_reductions(
                unit,
                body,
                *op,
                loops.iter().flat_map(|(_, r, _)| r),
            )
    };
    let locks = level
        .iter()
        .filter(|&&op| matches!(body.kind(op), OpKind::Critical(_)));
    if let Some(&op) = locks.into_iter().find(|op| !is_combined(op)) {
        return why(op, "each thread executes a critical section");
    }
    Ok(FoldPlan { loops, compared })
}

/// Returns a call in a static loop by which a loop may pass thread-local state to another loop, or to its next
/// execution. In static loops, one thread runs an iteration number in all loops.
fn thread_local_state_call(unit: &Unit, body: &Body, shared: &[Op], reach: &Reach) -> Option<Op> {
    let is_static = |lp: &&Op| {
        let kind = body.kind(**lp);
        matches!(
            kind,
            OpKind::ShareFor {
                schedule: Schedule::Static,
                ..
            }
        )
    };
    let unseen = |lp: &Op| {
        let mut ops = body.walk(body.op_regions(*lp)[0]);
        ops.find(|op| reaches_unknown(unit, body, *op, reach))
    };
    let calling: Vec<(Op, Op)> = shared
        .iter()
        .filter(is_static)
        .filter_map(|lp| Some((*lp, unseen(lp)?)))
        .collect();
    let owner = |op: &Op| body.owner(body.parent(*op)?);
    let is_team = |op: &Op| matches!(body.kind(*op), OpKind::Spmd { .. });
    let again = |lp: Op| {
        let mut around = std::iter::successors(owner(&lp), owner).take_while(|op| !is_team(op));
        around.any(|op| matches!(body.kind(op), OpKind::Loop { .. } | OpKind::For { .. }))
    };
    let &(lp, call) = calling.first()?;
    (calling.len() > 1 || again(lp)).then_some(call)
}

/// Returns true for a team that may have several ranks. A nested team has one rank, unless several levels may
/// be active, and would not know the enclosing team.
fn may_have_several_ranks(unit: &Unit, body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Spmd { .. })
        && body.as_int(unit, requested_ranks(body, op)) != Some(1)
}

/// Returns the requested number of ranks.
fn requested_ranks(body: &Body, team: Op) -> Value {
    strip_casts(body, body.operand(team, 0))
}

/// Returns the operand of a cast, or the value itself.
pub(crate) fn strip_casts(body: &Body, value: Value) -> Value {
    match body.def_op(value) {
        Some(op) if matches!(body.kind(op), OpKind::Cast(_)) => body.operand(op, 0),
        _ => value,
    }
}

/// Returns the worksharing loops of a team, and the surrounding ops run by every rank, or the op for which the
/// number of ranks matters.
pub(crate) fn team_level_ops(
    unit: &Unit,
    body: &Body,
    team: Op,
    reach: &Reach,
) -> RaiseResult<(Vec<Op>, Vec<Op>)> {
    let region = body.op_regions(team)[0];
    let (mut shared, mut level) = (Vec::new(), Vec::new());
    let mut parallel = false;
    let mut open = vec![region];
    while let Some(region) = open.pop() {
        for op in body.ops_in(region) {
            level.push(op);
            if let Some(text) = rank_distinction(unit, body, op, reach) {
                return Err(reason(unit, body, op, text));
            }
            match body.kind(op) {
                OpKind::ShareFor { .. } => shared.push(op),
                OpKind::Spawn { .. } | OpKind::ParFor { .. } | OpKind::Spmd { .. } => {
                    parallel = true;
                }
                OpKind::Call(_) | OpKind::Invoke(_) => {
                    let callee = unit.callee(body, op);
                    parallel |=
                        callee.is_some_and(|func| reach.with_tasks_or_regions.contains(&func));
                    open.extend(body.op_regions(op));
                    continue;
                }
                _ => {
                    open.extend(body.op_regions(op));
                    continue;
                }
            }
            let mut inside = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
            if let Some(op) = inside.find(|op| may_distinguish_ranks(unit, body, *op, reach)) {
                return Err(reason(unit, body, op, DISTINGUISHES));
            }
        }
    }
    match parallel || !shared.is_empty() || is_single_rank_work(unit, body, region) {
        true => Ok((shared, level)),
        false => {
            let text =
                "the region contains no worksharing loop: each thread executes the whole region";
            Err(reason(unit, body, team, text))
        }
    }
}

const DISTINGUISHES: &str = "the callee may query the thread number or the number of threads";
const USES_THREAD_NUMBER: &str = "the thread number is used";

/// Returns the reason why an op run by every rank distinguishes ranks, if any.
fn rank_distinction(unit: &Unit, body: &Body, op: Op, reach: &Reach) -> Option<&'static str> {
    match body.kind(op) {
        OpKind::ShareFor { .. }
        | OpKind::Spawn { .. }
        | OpKind::ParFor { .. }
        | OpKind::Spmd { .. } => None,
        OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => {
            Some("each thread executes this atomic update")
        }
        OpKind::Foreign(_) => Some("each thread executes an unsupported instruction"),
        OpKind::Barrier(scope) if *scope != BarrierScope::Team => {
            Some("this barrier does not synchronise the team")
        }
        _ if may_distinguish_ranks(unit, body, op, reach) => Some(DISTINGUISHES),
        _ if reaches_unknown(unit, body, op, reach) => {
            Some("unknown code is called outside worksharing loops")
        }
        _ if unit
            .callee(body, op)
            .is_some_and(|f| reach.updating_or_locking.contains(&f)) =>
        {
            Some(
                "a function called outside worksharing loops takes a lock or executes atomic updates",
            )
        }
        _ => None,
    }
}

/// Returns an op of a rank's own code for which the number of executions matters: a call with effects, a task,
/// loop or team. Stores need no check: a store to shared memory would be a race.
fn effect_per_rank(unit: &Unit, body: &Body, region: Region) -> Option<Op> {
    let mut open = vec![region];
    while let Some(region) = open.pop() {
        for op in body.ops_in(region) {
            let kind = body.kind(op);
            match kind {
                OpKind::ShareFor { .. } | OpKind::Single { .. } => continue,
                OpKind::Critical(name) if **name == *REDUCTION_LOCK => continue,
                OpKind::Barrier(_) | OpKind::Store(_) => {}
                _ if kind.is_parallel() => return Some(op),
                _ if kind.call_info().is_some() && !has_no_effect(unit, body, op) => {
                    return Some(op);
                }
                _ => {}
            }
            open.extend(body.op_regions(op));
        }
    }
    None
}

fn has_no_effect(unit: &Unit, body: &Body, call: Op) -> bool {
    let known = unit.callee(body, call).and_then(|func| unit.known(func));
    is_pure(unit, body, call)
        || matches!(known, Some(ExternalFn::Memory(_) | ExternalFn::Marker(_)))
}

/// Returns true if a comparison only selects code for rank 0, without an alternative for the other ranks.
fn only_selects_rank_zero(unit: &Unit, body: &Body, compared: Op) -> bool {
    let is_equal = matches!(body.kind(compared), OpKind::ICmp(IntPredicate::Eq));
    let with_first = body.as_int(unit, body.operand(compared, 1)) == Some(0);
    let only_then = |user: Op| {
        let otherwise = body.op_regions(user).get(1);
        let is_empty = |region: &Region| {
            let end = |op: Op| matches!(body.kind(op), OpKind::Yield);
            body.ops_in(*region).all(end) && body.results(user).is_empty()
        };
        matches!(body.kind(user), OpKind::If) && otherwise.is_none_or(is_empty)
    };
    let mut users = body.uses(body.result(compared)).map(|at| at.op);
    is_equal && with_first && users.all(only_then)
}

/// Returns true if one rank does all work of a team: `single` regions, without side effects in between.
fn is_single_rank_work(unit: &Unit, body: &Body, region: Region) -> bool {
    let single = |op: Op| matches!(body.kind(op), OpKind::Single { .. });
    let quiet = |op: Op| {
        let plain = matches!(
            body.kind(op),
            OpKind::Barrier(_) | OpKind::Alloca(_) | OpKind::Load(_) | OpKind::Yield
        );
        let known = unit.callee(body, op).and_then(|func| unit.known(func));
        plain || is_pure(unit, body, op) || matches!(known, Some(ExternalFn::Marker(_)))
    };
    body.ops_in(region).any(single) && body.ops_in(region).all(|op| single(op) || quiet(op))
}

/// Returns the comparisons of the rank with numbers, or an op with a different use of rank or size.
pub(crate) fn rank_comparisons(
    unit: &Unit,
    body: &Body,
    region: Region,
    shared: &[Op],
) -> RaiseResult<Vec<(Op, bool)>> {
    let why = |op: Op, text: &str| Err(reason(unit, body, op, text));
    let (rank, size) = (body.region_params(region)[0], body.region_params(region)[1]);
    if let Some(used) = body.uses(size).next() {
        return why(used.op, "the number of threads is used");
    }
    let loops: HashSet<Region> = shared.iter().map(|&op| body.op_regions(op)[0]).collect();
    let mut found = Vec::new();
    let mut open: Vec<Value> = vec![rank];
    while let Some(value) = open.pop() {
        for op in body.uses(value).map(|u| u.op) {
            let mut at = body.parent(op);
            while let Some(region) = at {
                if loops.contains(&region) {
                    return why(op, USES_THREAD_NUMBER);
                }
                at = body.enclosing(region);
            }
            match *body.kind(op) {
                OpKind::Cast(gradus_ir::CastOp::Trunc) => open.push(body.result(op)),
                OpKind::ICmp(predicate @ (IntPredicate::Eq | IntPredicate::Ne)) => {
                    let Some(other) = body.as_int(unit, body.operand(op, 1)) else {
                        return why(op, USES_THREAD_NUMBER);
                    };
                    let equal = predicate == IntPredicate::Eq;
                    found.push((op, (other == 0) == equal));
                }
                _ => return why(op, USES_THREAD_NUMBER),
            }
        }
    }
    Ok(found)
}

// ---- the fold ----------------------------------------------------------------------------------

fn fold(unit: &mut Unit, body: &mut Body, team: Op, plan: FoldPlan, reach: &Reach) {
    settle(unit, body, plan.compared);
    for (op, reductions, own) in plan.loops {
        for own in own {
            own.take_in(unit, body, op);
        }
        par_for(unit, body, op, &reductions, reach);
    }
    inline_team_body(body, team);
}

/// Replaces comparisons of the rank by their result for the only rank.
pub(crate) fn settle(unit: &mut Unit, body: &mut Body, compared: Vec<(Op, bool)>) {
    for (op, truth) in compared {
        let value = Builder::new(unit, body).bool(truth);
        let result = body.result(op);
        body.replace_uses(result, value);
        body.erase(op);
    }
}

/// Inlines the code of a team's only rank, without worksharing, in place of the team.
pub(crate) fn inline_team_body(body: &mut Body, team: Op) {
    let region = body.op_regions(team)[0];
    drop_rank_ops(body, region);
    let allocas: Vec<Op> = body
        .ops_in(region)
        .filter(|&op| matches!(body.kind(op), OpKind::Alloca(_)))
        .collect();
    for op in allocas {
        move_to_enclosing_strand(body, op, team);
    }
    move_region_before(body, region, team);
    body.erase(team);
}

/// Moves an allocation of constant size to the strand around a team.
pub(crate) fn move_to_enclosing_strand(body: &mut Body, op: Op, team: Op) {
    let home = body.enclosing_strand(team);
    let place = match home == body.root() {
        true => AllocaStorage::Frame,
        false => AllocaStorage::Private,
    };
    let fixed = body.operands(op).all(|v| body.as_const(v).is_some());
    if let OpKind::Alloca(info) = &mut body.ops[op].kind
        && fixed
    {
        info.storage = place;
        body.detach(op);
        match body.first(home) {
            Some(first) => body.insert_before(first, op),
            None => body.append(home, op),
        }
    }
}

/// Removes ops that matter between ranks only.
fn drop_rank_ops(body: &mut Body, region: Region) {
    let mut open = vec![region];
    while let Some(region) = open.pop() {
        let ops: Vec<Op> = body.ops_in(region).collect();
        for op in ops {
            match body.kind(op) {
                OpKind::Barrier(_) => body.erase(op),
                OpKind::Critical(name) if **name == *REDUCTION_LOCK => inline_op_region(body, op),
                OpKind::Single { .. } => {
                    let inner = body.op_regions(op)[0];
                    let nested: Vec<Op> = body.ops_in(inner).collect();
                    inline_op_region(body, op);
                    let regions = nested.iter().filter(|&&o| body.parent(o).is_some());
                    open.extend(regions.flat_map(|&o| body.op_regions(o).to_vec()));
                }
                OpKind::ParFor { .. } | OpKind::Spmd { .. } | OpKind::Spawn { .. } => {}
                _ => open.extend(body.op_regions(op)),
            }
        }
    }
}

fn inline_op_region(body: &mut Body, op: Op) {
    let region = body.op_regions(op)[0];
    let values = move_region_before(body, region, op);
    for (result, value) in body.results(op).to_vec().into_iter().zip(values) {
        body.replace_uses(result, value);
    }
    body.erase(op);
}

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

fn par_for(unit: &mut Unit, body: &mut Body, op: Op, reductions: &[Reduction], reach: &Reach) {
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
