//! Teams whose ranks do nothing but share loops become parallel loops.
//!
//! One rank is a legal run of a team, and the iterations of a shared loop may run in any order or at
//! once. So the region of a team can stand in the place of the team, run by one, with every `share.for` a
//! `par.for` — where nobody asks for rank or size, all that a rank does beside shared loops is what any
//! other does too, and the ranks' own memory is not shared by iterations that now run at once:
//! - memory that an iteration begins anew (it writes it first, or its life begins there) moves into the
//!   iteration;
//! - memory that iterations only read stays;
//! - memory that starts from a neutral value, gathers in the loop and is combined under a lock behind it
//!   is a reduction: each iteration contributes what it gathers from the neutral value.
//!
//! A team in which one rank does all the work (`single`) is that work. One that is of one rank where a condition does
//! not hold stands there twice ([`crate::conditions`]).
//!
//! Anything else stays a team. Barriers end with the team: what stood on both sides runs in order.

use crate::atomics;
use crate::conditions;
use crate::extents;
use crate::openmp::{
    REDUCTION_LOCK, Step, calls_unseen, calls_waiting, looks_again, ranks, reason, watches,
};
use crate::privates::{Own, own_memory};
use crate::reductions::{self, Reduction};
use crate::regions::splice;
use crate::report::Reason;
use gradus_edit::{is_pure, promote_slots, sweep_dead};
use gradus_ir::known::Known;
use gradus_ir::{
    AllocaPlace, BarrierScope, BinaryOp, Body, Builder, Flags, FuncId, IntPredicate, Op, OpKind,
    ReduceOp, Region, Schedule, SpmdKind, Type, Unit, Value,
};
use std::collections::HashSet;

/// What functions reach.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// Those that reach what tells ranks apart, or code that is not seen.
    pub speaking: HashSet<FuncId>,
    /// Whether a pointer may point to one of these.
    pub pointed_speak: bool,
    /// Those that reach tasks or regions.
    pub working: HashSet<FuncId>,
    /// Those that reach code which may ask for rank and size, or share work between ranks.
    pub unseen: HashSet<FuncId>,
    /// Those that reach what may wait for another thread.
    pub waiting: HashSet<FuncId>,
    /// Those that reach a loop that waits for what another thread writes.
    pub watching: HashSet<FuncId>,
    /// Those that reach what updates memory at once with others, or locks.
    pub meeting: HashSet<FuncId>,
    /// Those that reach what allocates on the heap.
    pub allocating: HashSet<FuncId>,
}

/// What became of a body's teams.
#[derive(Default)]
pub(crate) struct Folded {
    /// Those that are no more.
    pub folded: Vec<Op>,
    /// The others, and why their ranks are told apart.
    pub told_apart: Vec<(Op, Reason)>,
}

/// Folds all teams of a body that can be, inner ones first.
pub(crate) fn raise(unit: &mut Unit, body: &mut Body, reach: &Reach) -> Folded {
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
    let mut done = Folded::default();
    for team in teams {
        let parted = conditions::part(unit, body, team, reach);
        match parted.and_then(|()| plan(unit, body, team, extent(body, team), reach)) {
            Ok(plan) => {
                done.folded.push(team);
                extents::mark(unit, body, team, reach);
                fold(unit, body, team, plan, reach);
            }
            Err(why) => done.told_apart.push((team, why)),
        }
    }
    if !done.folded.is_empty() {
        atomics::raise(unit, body);
        promote_slots(unit, body);
        reductions::drop_neutral(unit, body);
        sweep_dead(unit, body);
    }
    done
}

/// What is to be done to a team's shared loops.
pub(crate) struct Plan {
    loops: Vec<(Op, Vec<Reduction>, Vec<Own>)>,
    /// Comparisons of the rank with a number, and what they give for the one rank.
    compared: Vec<(Op, bool)>,
}

/// How a team for which so many ranks are `asked` becomes loops; else what tells its ranks apart.
pub(crate) fn plan(unit: &Unit, body: &Body, team: Op, asked: Value, reach: &Reach) -> Step<Plan> {
    let why = |op: Op, text: &str| Err(reason(unit, body, op, text));
    // A team that may be of one was perhaps asked for because its loops must not run at once.
    if body.as_int(unit, asked) == Some(1) || body.as_const(asked).is_none() {
        return why(team, "its number of threads is computed, or one");
    }
    let region = body.op_regions(team)[0];
    if let Some(op) = body.walk(region).find(|&op| is_wide_team(unit, body, op)) {
        return why(op, "a region with threads of its own stands in it");
    }
    // With a number of its own, what is not seen may count on no other thread coming by, and the program on
    // so many coming by, as where they wait for each other.
    let stated = body.as_int(unit, asked) != Some(0);
    if stated {
        let counts = |op: &Op| is_unseen(unit, body, *op, reach) || waits(unit, body, *op, reach);
        if let Some(op) = body.walk(region).find(counts) {
            return why(
                op,
                "what is called may count on the number of threads that is asked for",
            );
        }
        if let Some(op) = done_by_each(unit, body, region) {
            return why(
                op,
                "a number of threads is asked for, and each of them does this",
            );
        }
    }
    let (shared, level) = rank_level(unit, body, team, reach)?;
    // Those that run must have been begun in their order.
    let watches = |op: &Op| leads_to_watching(unit, body, *op, reach);
    let mut inside = shared
        .iter()
        .flat_map(|lp| body.walk(body.op_regions(*lp)[0]));
    if let Some(op) = inside.find(watches) {
        return why(op, "iterations may wait for what earlier ones write");
    }
    if let Some(op) = left_to_thread(unit, body, &shared, reach) {
        return why(
            op,
            "code that is not seen here is called in several static loops, and may keep something for its thread",
        );
    }
    let compared = compared(unit, body, region, &shared)?;
    let chosen = |op: Op| chooses_first(unit, body, op);
    if let Some((op, _)) = compared.iter().find(|(op, _)| stated && !chosen(*op)) {
        return why(*op, NUMBERED);
    }
    let mut combined: HashSet<Op> = HashSet::new();
    let mut loops = Vec::new();
    for &op in &shared {
        let found = reductions::of_loop(unit, body, op);
        combined.extend(found.iter().map(|r| r.critical));
        let gathered: HashSet<Op> = found.iter().map(|r| r.slot).collect();
        let own = own_memory(unit, body, region, op, &gathered, !stated, reach)?;
        loops.push((op, found, own));
    }
    // A lock that is no reduction's guards something between ranks; one rank would not need it.
    let is_combined = |op: &Op| {
        combined.contains(op)
            && reductions::is_all(unit, body, *op, loops.iter().flat_map(|(_, r, _)| r))
    };
    let locks = level
        .iter()
        .filter(|&&op| matches!(body.kind(op), OpKind::Critical(_)));
    if let Some(&op) = locks.into_iter().find(|op| !is_combined(op)) {
        return why(op, "each thread passes through a lock");
    }
    Ok(Plan { loops, compared })
}

/// A call in a static loop of a team by which one loop may leave something to another, or to its next run, in what
/// is the thread's: iterations of one number are one thread's in all of them.
fn left_to_thread(unit: &Unit, body: &Body, shared: &[Op], reach: &Reach) -> Option<Op> {
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
        ops.find(|op| is_unseen(unit, body, *op, reach))
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

/// Whether an op is a team that may have several ranks: inside of another one it has one, unless several levels may be
/// active, and would not know of that one.
fn is_wide_team(unit: &Unit, body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Spmd { .. }) && body.as_int(unit, extent(body, op)) != Some(1)
}

/// The number of ranks asked for.
fn extent(body: &Body, team: Op) -> Value {
    uncast(body, body.operand(team, 0))
}

/// A value before it was converted.
pub(crate) fn uncast(body: &Body, value: Value) -> Value {
    match body.def_op(value) {
        Some(op) if matches!(body.kind(op), OpKind::Cast(_)) => body.operand(op, 0),
        _ => value,
    }
}

/// The shared loops of a team, and the ops around them that every rank runs; else what makes the number of ranks
/// matter.
pub(crate) fn rank_level(
    unit: &Unit,
    body: &Body,
    team: Op,
    reach: &Reach,
) -> Step<(Vec<Op>, Vec<Op>)> {
    let region = body.op_regions(team)[0];
    let (mut shared, mut level) = (Vec::new(), Vec::new());
    let mut parallel = false;
    let mut open = vec![region];
    while let Some(region) = open.pop() {
        for op in body.ops_in(region) {
            level.push(op);
            if let Some(text) = told_apart_by(unit, body, op, reach) {
                return Err(reason(unit, body, op, text));
            }
            match body.kind(op) {
                OpKind::ShareFor { .. } => shared.push(op),
                OpKind::Spawn { .. } | OpKind::ParFor { .. } | OpKind::Spmd { .. } => {
                    parallel = true;
                }
                OpKind::Call(_) | OpKind::Invoke(_) => {
                    let callee = unit.callee(body, op);
                    parallel |= callee.is_some_and(|func| reach.working.contains(&func));
                    open.extend(body.op_regions(op));
                    continue;
                }
                _ => {
                    open.extend(body.op_regions(op));
                    continue;
                }
            }
            let mut inside = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
            if let Some(op) = inside.find(|op| speaks(unit, body, *op, reach)) {
                return Err(reason(unit, body, op, SPEAKS));
            }
        }
    }
    match parallel || !shared.is_empty() || is_for_one(unit, body, region) {
        true => Ok((shared, level)),
        false => {
            let text = "no loop in it is shared: each thread does all of it";
            Err(reason(unit, body, team, text))
        }
    }
}

const SPEAKS: &str = "what is called may ask for the number of a thread, or of all";
const NUMBERED: &str = "the number of a thread is used";

/// Why an op that every rank runs tells ranks apart, if it does.
fn told_apart_by(unit: &Unit, body: &Body, op: Op, reach: &Reach) -> Option<&'static str> {
    match body.kind(op) {
        OpKind::ShareFor { .. }
        | OpKind::Spawn { .. }
        | OpKind::ParFor { .. }
        | OpKind::Spmd { .. } => None,
        OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => Some("each thread updates memory here"),
        OpKind::Foreign(_) => Some("each thread runs an instruction that is not understood"),
        OpKind::Barrier(scope) if *scope != BarrierScope::Team => {
            Some("a barrier of some threads stands here")
        }
        _ if speaks(unit, body, op, reach) => Some(SPEAKS),
        _ if is_unseen(unit, body, op, reach) => {
            Some("code that is not seen here is called, outside of loops")
        }
        _ if unit
            .callee(body, op)
            .is_some_and(|f| reach.meeting.contains(&f)) =>
        {
            Some("what is called, outside of loops, updates memory at once with others, or locks")
        }
        _ => None,
    }
}

/// What each rank does in its own code of which it matters how often it is done: it calls something that has
/// effects, or makes tasks, loops or teams. What it stores is its own, or there would be a race.
fn done_by_each(unit: &Unit, body: &Body, region: Region) -> Option<Op> {
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
    is_pure(unit, body, call) || matches!(known, Some(Known::Memory(_) | Known::Marker(_)))
}

/// Whether a comparison only chooses what rank 0 does beside the others.
fn chooses_first(unit: &Unit, body: &Body, compared: Op) -> bool {
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

/// Whether all that a team's ranks do is done by one of them: `single` regions, and between them nothing
/// that anybody sees.
fn is_for_one(unit: &Unit, body: &Body, region: Region) -> bool {
    let single = |op: Op| matches!(body.kind(op), OpKind::Single { .. });
    let quiet = |op: Op| {
        let plain = matches!(
            body.kind(op),
            OpKind::Barrier(_) | OpKind::Alloca(_) | OpKind::Load(_) | OpKind::Yield
        );
        let known = unit.callee(body, op).and_then(|func| unit.known(func));
        plain || is_pure(unit, body, op) || matches!(known, Some(Known::Marker(_)))
    };
    body.ops_in(region).any(single) && body.ops_in(region).all(|op| single(op) || quiet(op))
}

/// Whether an op asks for rank or size, or calls who does, or who is not known.
fn speaks(unit: &Unit, body: &Body, op: Op, reach: &Reach) -> bool {
    if body.kind(op).call_info().is_none() {
        return false;
    }
    match unit.callee(body, op) {
        Some(func) => reach.speaking.contains(&func) || ranks::asked(unit, body, op).is_some(),
        None => reach.pointed_speak,
    }
}

/// Whether an op calls, or leads to, code that is neither seen nor known by name. Every rank must run it.
pub(crate) fn is_unseen(unit: &Unit, body: &Body, op: Op, reach: &Reach) -> bool {
    let leads = |func| reach.unseen.contains(&func);
    calls_unseen(unit, body, op) || unit.callee(body, op).is_some_and(leads)
}

/// Whether an op is, or leads to, what may wait for another thread: it needs one of its own.
fn waits(unit: &Unit, body: &Body, op: Op, reach: &Reach) -> bool {
    let leads = |func| reach.waiting.contains(&func);
    let waits = calls_waiting(unit, body, op) || looks_again(unit, body, op);
    waits || unit.callee(body, op).is_some_and(leads)
}

/// Whether an op is, or leads to, a loop that waits for what another thread writes.
fn leads_to_watching(unit: &Unit, body: &Body, op: Op, reach: &Reach) -> bool {
    let leads = |func| reach.watching.contains(&func);
    watches(unit, body, op) || unit.callee(body, op).is_some_and(leads)
}

/// The comparisons of the rank with numbers; else where rank or size are used otherwise.
pub(crate) fn compared(
    unit: &Unit,
    body: &Body,
    region: Region,
    shared: &[Op],
) -> Step<Vec<(Op, bool)>> {
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
                    return why(op, NUMBERED);
                }
                at = body.enclosing(region);
            }
            match *body.kind(op) {
                OpKind::Cast(gradus_ir::CastOp::Trunc) => open.push(body.result(op)),
                OpKind::ICmp(predicate @ (IntPredicate::Eq | IntPredicate::Ne)) => {
                    let Some(other) = body.as_int(unit, body.operand(op, 1)) else {
                        return why(op, NUMBERED);
                    };
                    let equal = predicate == IntPredicate::Eq;
                    found.push((op, (other == 0) == equal));
                }
                _ => return why(op, NUMBERED),
            }
        }
    }
    Ok(found)
}

// ---- the fold ----------------------------------------------------------------------------------

fn fold(unit: &mut Unit, body: &mut Body, team: Op, plan: Plan, reach: &Reach) {
    settle(unit, body, plan.compared);
    for (op, reductions, own) in plan.loops {
        for own in own {
            own.take_in(unit, body, op);
        }
        par_for(unit, body, op, &reductions, reach);
    }
    dissolve(body, team);
}

/// Gives comparisons of the rank the outcome that they have for the one rank.
pub(crate) fn settle(unit: &mut Unit, body: &mut Body, compared: Vec<(Op, bool)>) {
    for (op, truth) in compared {
        let value = Builder::new(unit, body).bool(truth);
        let result = body.result(op);
        body.replace_uses(result, value);
        body.erase(op);
    }
}

/// Puts the code of a team's one rank, in which nothing is shared any more, in the place of the team.
pub(crate) fn dissolve(body: &mut Body, team: Op) {
    let region = body.op_regions(team)[0];
    one_rank(body, region);
    let allocas: Vec<Op> = body
        .ops_in(region)
        .filter(|&op| matches!(body.kind(op), OpKind::Alloca(_)))
        .collect();
    for op in allocas {
        move_home(body, op, team);
    }
    splice(body, region, team);
    body.erase(team);
}

/// Has an allocation of fixed length live as long as the strand around a team.
pub(crate) fn move_home(body: &mut Body, op: Op, team: Op) {
    let home = body.strand_of(team);
    let place = match home == body.root() {
        true => AllocaPlace::Frame,
        false => AllocaPlace::Private,
    };
    let fixed = body.operands(op).all(|v| body.as_const(v).is_some());
    if let OpKind::Alloca(info) = &mut body.ops[op].kind
        && fixed
    {
        info.place = place;
        body.detach(op);
        match body.first(home) {
            Some(first) => body.insert_before(first, op),
            None => body.append(home, op),
        }
    }
}

/// Takes away what only matters between ranks.
fn one_rank(body: &mut Body, region: Region) {
    let mut open = vec![region];
    while let Some(region) = open.pop() {
        let ops: Vec<Op> = body.ops_in(region).collect();
        for op in ops {
            match body.kind(op) {
                OpKind::Barrier(_) => body.erase(op),
                OpKind::Critical(name) if **name == *REDUCTION_LOCK => inline(body, op),
                OpKind::Single { .. } => {
                    let inner = body.op_regions(op)[0];
                    let nested: Vec<Op> = body.ops_in(inner).collect();
                    inline(body, op);
                    let regions = nested.iter().filter(|&&o| body.parent(o).is_some());
                    open.extend(regions.flat_map(|&o| body.op_regions(o).to_vec()));
                }
                OpKind::ParFor { .. } | OpKind::Spmd { .. } | OpKind::Spawn { .. } => {}
                _ => open.extend(body.op_regions(op)),
            }
        }
    }
}

fn inline(body: &mut Body, op: Op) {
    let region = body.op_regions(op)[0];
    let values = splice(body, region, op);
    for (result, value) in body.results(op).to_vec().into_iter().zip(values) {
        body.replace_uses(result, value);
    }
    body.erase(op);
}

/// Whether a shared loop is sections some of which may wait for others: each iteration has code of its own, by its
/// number. They are to run at once however short they are.
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
    let waits = |op: Op| waits(unit, body, op, reach) || is_unseen(unit, body, op, reach);
    body.ops_in(region).any(chooses) && body.walk(region).any(waits)
}

fn par_for(unit: &mut Unit, body: &mut Body, op: Op, reductions: &[Reduction], reach: &Reach) {
    let OpKind::ShareFor {
        schedule, chunked, ..
    } = *body.kind(op)
    else {
        unreachable!("only shared loops become parallel loops");
    };
    let chunk = chunked.then(|| chunk_of(body, op));
    let stated = chunk.and_then(|chunk| body.as_int(unit, chunk));
    let grain = match schedule {
        Schedule::Guided => stated,
        Schedule::Static | Schedule::Dynamic => None,
    };
    let are_tasks = is_waiting_sections(unit, body, op, reach);
    let mut b = Builder::new(unit, body);
    let begin = |r: &Reduction| (r.op, r.initial(&mut b, op));
    let begun: Vec<_> = reductions.iter().map(begin).collect();
    b.at_op(op);
    b.loc = b.body.ops[op].loc;
    let trips = b.body.operand(op, 0);
    let grain = grain.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 1);
    let grain = if are_tasks { Some(1) } else { grain };
    let from = b.body.op_regions(op)[0];
    let old = b.body.region_params(from)[0];
    let stay_together = schedule != Schedule::Guided && stated.is_none_or(|n| n > 1);
    let made = match chunk {
        Some(_) if stay_together => by_chunks(&mut b, op, trips, &begun, stated),
        _ => {
            let (made, into) = b.par_for(trips, &begun, grain);
            let index = b.body.region_params(into)[0];
            b.body.replace_uses(old, index);
            b.body.move_ops(from, into);
            made
        }
    };
    let stay = reductions.iter().filter(|r| r.stays(&mut b));
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

/// The iterations of a chunk are one thread's, in their order, and may meet in memory: a chunk is an iteration
/// of the parallel loop. Chunks of shrinking loops (`guided`) begin nobody knows where.
fn by_chunks(
    b: &mut Builder,
    op: Op,
    trips: Value,
    begun: &[(ReduceOp, Value)],
    stated: Option<i64>,
) -> Op {
    let ty = b.body.ty(trips);
    // No loop of 64 bits runs 2⁶³ times.
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
    b.at_end(into);
    let number = b.body.region_params(into)[0];
    let start = b.mul(number, chunk);
    mark(b, start, fits);
    let left = b.sub(last, start);
    let whole = b.sub(chunk, one);
    let is_whole = b.icmp(IntPredicate::Ult, whole, left);
    let reach = b.select(is_whole, whole, left);
    let length = b.add(reach, one);
    mark(b, length, fits);
    let (inner, rounds) = b.for_(length, &[]);
    if let OpKind::For { trip_max } = &mut b.body.ops[inner].kind {
        *trip_max = stated.and_then(|n| u64::try_from(n).ok());
    }
    b.yield_(&[]);
    b.at_end(rounds);
    let step = b.body.region_params(rounds)[0];
    let index = b.add(start, step);
    mark(b, index, fits);
    let from = b.body.op_regions(op)[0];
    let old = b.body.region_params(from)[0];
    b.body.replace_uses(old, index);
    // An array whose length an iteration computes stays its own.
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

fn mark(b: &mut Builder, value: Value, flags: Flags) {
    if let Some(op) = b.body.def_op(value) {
        b.body.ops[op].flags = flags;
    }
}

fn chunk_of(body: &Body, op: Op) -> Value {
    let value = body.operand(op, 1);
    match body.def_op(value) {
        Some(cast) if matches!(body.kind(cast), OpKind::Cast(_)) => body.operand(cast, 0),
        _ => value,
    }
}
