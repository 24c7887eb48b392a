//! Legality of folding a team: no code outside of worksharing loops distinguishes ranks, and iterations share no
//! private memory.
//!
//! Place: first step of folding, see [`crate::team_to_parallel_loop`]. The plan lists the reductions and
//! privatised slots of each worksharing loop; a failure states the op for which the number of ranks matters.

use crate::private_memory::{PrivateSlot, slots_to_privatize};
use crate::reach::{Reach, may_distinguish_ranks, reaches_spin_wait, reaches_unknown, waits};
use crate::reductions::{self, REDUCTION_LOCK, Reduction};
use crate::report::{RaiseResult, reason};
use gradus_edit::is_pure;
use gradus_ir::externals::ExternalFn;
use gradus_ir::{BarrierScope, Body, IntPredicate, Op, OpKind, Region, Schedule, Unit, Value};
use std::collections::HashSet;

/// The transformation of a team's worksharing loops.
pub(super) struct FoldPlan {
    /// The worksharing loops, with reductions and privatised slots.
    pub loops: Vec<(Op, Vec<Reduction>, Vec<PrivateSlot>)>,
    /// Comparisons of the rank with a number, and their result for the only rank.
    pub compared: Vec<(Op, bool)>,
}

/// Plans the folding of a team with `asked` requested ranks, or returns the op that distinguishes its ranks.
pub(super) fn plan_fold(
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
    let is_team = |op: &Op| matches!(body.kind(*op), OpKind::Spmd { .. });
    let again = |lp: Op| {
        let mut around = body.ancestors(lp).take_while(|op| !is_team(op));
        around.any(|op| body.kind(op).is_loop())
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
pub(super) fn requested_ranks(body: &Body, team: Op) -> Value {
    strip_casts(body, body.operand(team, 0))
}

/// Returns the operand of a cast, or the value itself.
pub(super) fn strip_casts(body: &Body, value: Value) -> Value {
    match body.def_op(value) {
        Some(op) if matches!(body.kind(op), OpKind::Cast(_)) => body.operand(op, 0),
        _ => value,
    }
}

/// Returns the worksharing loops of a team, and the surrounding ops run by every rank, or the op for which the
/// number of ranks matters.
pub(super) fn team_level_ops(
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
    let known = unit.known_callee(body, call);
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
        let known = unit.known_callee(body, op);
        plain || is_pure(unit, body, op) || matches!(known, Some(ExternalFn::Marker(_)))
    };
    body.ops_in(region).any(single) && body.ops_in(region).all(|op| single(op) || quiet(op))
}

/// Returns the comparisons of the rank with numbers, or an op with a different use of rank or size.
pub(super) fn rank_comparisons(
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
    let shared: HashSet<Op> = shared.iter().copied().collect();
    let mut found = Vec::new();
    let mut open: Vec<Value> = vec![rank];
    while let Some(value) = open.pop() {
        for op in body.uses(value).map(|u| u.op) {
            if body.ancestors(op).any(|at| shared.contains(&at)) {
                return why(op, USES_THREAD_NUMBER);
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
