//! Parallel regions: a fork becomes an `spmd` with the outlined function inlined.
//!
//! `__kmpc_fork_call` passes an outlined function and its captured variables to a team. A branch between a fork
//! and a serial call of the outlined function (clang's `if` clause) becomes one `spmd` whose extent is a select
//! on the condition; flang's `__kmpc_fork_call_if` likewise. A serial call without a fork becomes an `spmd` of
//! extent 1.

use crate::openmp::thread_num;
use crate::runtime_calls::{RuntimeCalls, span_of};
use gradus_edit::inline_region_body;
use gradus_ir::externals::{ExternalFn, OpenMpFn};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    AllocaInfo, AllocaStorage, Body, Builder, CastOp, FuncId, IntPredicate, LocId, Location, Op,
    OpKind, Region, SpmdKind, Unit, Value,
};
use std::collections::HashMap;

/// The raised bodies of outlined functions.
pub(super) type OutlinedBodies = HashMap<FuncId, Body>;

/// Returns the outlined function of a fork, if function and captures are recognised.
pub(super) fn outlined_function(unit: &Unit, body: &Body, fork: Op) -> Option<FuncId> {
    captured(unit, body, fork)?;
    body.as_function(unit, *unit.call_args(body, fork).get(2)?)
}

/// Returns the captured values that a fork passes.
fn captured(unit: &Unit, body: &Body, fork: Op) -> Option<Vec<Value>> {
    let args = unit.call_args(body, fork);
    if !is_conditional(unit, body, fork) {
        return args.get(3..).map(<[Value]>::to_vec);
    }
    match (body.as_int(unit, *args.get(1)?)?, &args[..]) {
        (0, [_, _, _, _, _]) => Some(Vec::new()),
        (1, [_, _, _, _, block]) => Some(vec![*block]),
        _ => None,
    }
}

/// Returns true if the fork has a condition argument.
fn is_conditional(unit: &Unit, body: &Body, fork: Op) -> bool {
    let known = unit.known_callee(body, fork);
    known == Some(ExternalFn::OpenMp(OpenMpFn::ForkIf))
}

/// Raises the forks of a body whose outlined functions are in `bodies`; other forks remain. Returns the teams
/// and their outlined functions.
pub(super) fn raise(
    unit: &mut Unit,
    body: &mut Body,
    calls: &RuntimeCalls,
    bodies: &OutlinedBodies,
) -> HashMap<Op, FuncId> {
    let mut teams = HashMap::new();
    let mut forks = calls.list(unit, body);
    forks.retain(|(_, id)| matches!(id, OpenMpFn::Fork | OpenMpFn::ForkIf));
    for (fork, _) in forks {
        if let Some(func) = outlined_function(unit, body, fork).filter(|f| bodies.contains_key(f)) {
            teams.insert(team(unit, body, calls, (fork, func), bodies), func);
        }
    }
    for begin in calls.of_kind(unit, body, OpenMpFn::BeginSerial) {
        raise_serialized_region(unit, body, calls, begin, bodies);
    }
    teams
}

fn team(
    unit: &mut Unit,
    body: &mut Body,
    calls: &RuntimeCalls,
    (fork, func): (Op, FuncId),
    bodies: &OutlinedBodies,
) -> Op {
    let Some(captured) = captured(unit, body, fork) else {
        unreachable!("a fork of a known function passes its captures");
    };
    let serial = serial_branch(unit, body, calls, fork, func, &captured);
    let asked = pushed_num_threads(unit, body, calls, fork);
    // If the number is computed after the branch, the team stays in its arm.
    let serial = serial
        .filter(|(branch, _)| asked.is_none_or(|(number, _)| body.dominates(number, *branch)));
    let mut b = Builder::new(unit, body);
    let at = serial.map_or(fork, |(branch, _)| branch);
    b.set_insertion_before(at);
    b.loc = runtime_call_location(b.unit, b.body, fork);
    let long = b.unit.types.int(64);
    let mut extent = match asked {
        Some((number, _)) => b.cast(CastOp::SExt, number, long),
        None => b.i64(0),
    };
    if let Some((branch, arm)) = serial {
        let one = b.i64(1);
        let condition = b.body.operand(branch, 0);
        extent = match arm {
            0 => b.select(condition, one, extent),
            _ => b.select(condition, extent, one),
        };
    }
    if is_conditional(b.unit, b.body, fork) {
        extent = extent_if_condition(&mut b, fork, extent);
    }
    let team = build_spmd(&mut b, func, extent, &captured, bodies);
    body.erase(at);
    // A push inside of the branch went with the branch.
    if let Some((_, push)) = asked.filter(|(_, push)| body.parent(*push).is_some()) {
        remove_push(unit, body, push, team);
    }
    team
}

/// Emits the extent: `extent` if the fork's condition holds, else one.
fn extent_if_condition(b: &mut Builder, fork: Op, extent: Value) -> Value {
    let condition = b.unit.call_args(b.body, fork)[3];
    let one = b.i64(1);
    match b.body.as_int(b.unit, condition) {
        Some(0) => one,
        Some(_) => extent,
        None => {
            let ty = b.body.ty(condition);
            let zero = b.int(ty, 0);
            let holds = b.icmp(IntPredicate::Ne, condition, zero);
            b.select(holds, extent, one)
        }
    }
}

/// Returns the location of a runtime call, from the location argument if the host states none.
fn runtime_call_location(unit: &mut Unit, body: &Body, op: Op) -> Option<LocId> {
    let stated = body.ops[op].loc;
    if stated.is_some() {
        return stated;
    }
    let span = span_of(unit, body, op)?;
    let location = Location {
        span,
        function: String::new(),
        inlined_at: None,
        host: None,
    };
    Some(unit.locations.push(location))
}

/// Returns the number of threads pushed for the fork, and the pushing call. The call precedes the fork or a branch around
/// the fork.
fn pushed_num_threads(
    unit: &Unit,
    body: &Body,
    calls: &RuntimeCalls,
    fork: Op,
) -> Option<(Value, Op)> {
    let consumes = |id: Option<OpenMpFn>| {
        matches!(
            id,
            Some(OpenMpFn::Fork | OpenMpFn::ForkIf | OpenMpFn::BeginSerial)
        )
    };
    let mut from = fork;
    loop {
        let mut at = body.prev(from);
        while let Some(op) = at {
            if calls.id(unit, body, op) == Some(OpenMpFn::PushNumThreads) {
                return unit.call_args(body, op).get(2).map(|v| (*v, op));
            }
            let mut inner = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
            let is_consumed = consumes(calls.id(unit, body, op))
                || inner.any(|op| {
                    let is_team = matches!(body.kind(op), OpKind::Spmd { .. });
                    is_team || consumes(calls.id(unit, body, op))
                });
            if is_consumed {
                return None;
            }
            at = body.prev(op);
        }
        let around = body.parent_op(from)?;
        let missed = is_planted(Mutant::NumThreadsBeforeBranchMissed);
        if missed || !matches!(body.kind(around), OpKind::If) {
            return None;
        }
        from = around;
    }
}

/// Removes the push of a raised fork. Where the push precedes branches around the fork, the other arms take copies,
/// which may contain the fork's serial form.
fn remove_push(unit: &mut Unit, body: &mut Body, push: Op, team: Op) {
    let mut from = team;
    while body.parent(from) != body.parent(push) {
        let Some(region) = body.parent(from) else {
            unreachable!("a push precedes its fork or a branch around the fork");
        };
        let Some(around) = body.owner(region) else {
            unreachable!("a push precedes its fork or a branch around the fork");
        };
        let arms = body.op_regions(around).to_vec();
        for arm in arms.into_iter().filter(|arm| *arm != region) {
            let args = unit.call_args(body, push);
            let Some(func) = unit.callee(body, push) else {
                unreachable!("a push is a direct call");
            };
            let mut b = Builder::new(unit, body);
            match b.body.first(arm) {
                Some(first) => b.set_insertion_before(first),
                None => b.set_insertion_end(arm),
            };
            b.loc = b.body.ops[push].loc;
            b.call(func, &args);
        }
        from = around;
    }
    body.erase(push);
}

/// Returns the branch whose other arm calls the outlined function serially, and the index of the arm.
fn serial_branch(
    unit: &Unit,
    body: &Body,
    calls: &RuntimeCalls,
    fork: Op,
    func: FuncId,
    captured: &[Value],
) -> Option<(Op, usize)> {
    let own = body.parent(fork)?;
    let branch = body.owner(own)?;
    let is_if = matches!(body.kind(branch), OpKind::If);
    let unused = body.results(branch).iter().all(|r| !body.has_uses(*r));
    let arm = usize::from(body.op_regions(branch).first() == Some(&own));
    let other = *body.op_regions(branch).get(arm)?;
    let mut runs = 0;
    for region in [own, other] {
        for op in body.ops_in(region) {
            let fits = match calls.id(unit, body, op) {
                Some(OpenMpFn::Fork) => op == fork,
                Some(
                    OpenMpFn::PushNumThreads
                    | OpenMpFn::BeginSerial
                    | OpenMpFn::EndSerial
                    | OpenMpFn::GlobalThread,
                ) => true,
                Some(_) => false,
                None if unit.callee(body, op) == Some(func) => {
                    runs += 1;
                    unit.call_args(body, op).get(2..) == Some(captured)
                }
                // The serial call's thread numbers.
                None => matches!(body.kind(op), OpKind::Store(_) | OpKind::Yield),
            };
            if !fits {
                return None;
            }
        }
    }
    (is_if && unused && runs == 1).then_some((branch, arm))
}

/// Raises a serialised region. A region of unrecognised shape remains a call: on one thread the function is
/// equivalent.
fn raise_serialized_region(
    unit: &mut Unit,
    body: &mut Body,
    calls: &RuntimeCalls,
    begin: Op,
    bodies: &OutlinedBodies,
) {
    if body.parent(begin).is_none() {
        return;
    }
    let mut at = body.next(begin);
    let mut call = None;
    while let Some(op) = at {
        if calls.id(unit, body, op) == Some(OpenMpFn::EndSerial) {
            break;
        }
        if let Some(func) = unit.callee(body, op).filter(|f| bodies.contains_key(f)) {
            call = Some((op, func));
        }
        at = body.next(op);
    }
    let (Some(end), Some((call, func))) = (at, call) else {
        // Not an error: the call remains and is equivalent on one thread.
        return;
    };
    let captured = unit.call_args(body, call)[2..].to_vec();
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(call);
    b.loc = runtime_call_location(b.unit, b.body, begin);
    let one = b.i64(1);
    build_spmd(&mut b, func, one, &captured, bodies);
    for op in [call, begin, end] {
        body.erase(op);
    }
}

/// Builds the `spmd` with the outlined function inlined.
fn build_spmd(
    b: &mut Builder,
    func: FuncId,
    extent: Value,
    captured: &[Value],
    bodies: &OutlinedBodies,
) -> Op {
    let (long, int) = (b.unit.types.int(64), b.unit.types.int(32));
    let kind = OpKind::Spmd {
        kind: SpmdKind::Team,
        dims: 1,
    };
    let op = b.op(kind, &[extent], &[], 1);
    let region = b.body.op_regions(op)[0];
    let rank = b.body.add_param(region, long);
    b.body.add_param(region, long);
    b.set_insertion_end(region);
    let thread = slot(b, int);
    let number = b.cast(CastOp::Trunc, rank, int);
    b.store(number, thread);
    let mut args = vec![thread, thread];
    args.extend_from_slice(captured);
    let call = b.call(func, &args);
    b.yield_(&[]);
    if let Some(code) = bodies.get(&func) {
        // Code that cannot be inlined remains a call, which queries its rank.
        let copied = inline_region_body(b.unit, b.body, call, func, code);
        if copied.is_ok() {
            thread_num::replace_queries(b.unit, b.body, region);
            thread_num::query_library_numbers(b.unit, b.body, region);
            privatize_allocations(b.body, region);
        }
    }
    op
}

fn slot(b: &mut Builder, ty: gradus_ir::TypeId) -> Value {
    let one = b.i64(1);
    let ptr = b.unit.types.ptr();
    let info = AllocaInfo {
        ty,
        align_bytes: 4,
        storage: AllocaStorage::Private,
        inalloca: false,
    };
    b.value(OpKind::Alloca(info), &[one], ptr)
}

/// Makes allocations of the region private to a rank.
fn privatize_allocations(body: &mut Body, region: Region) {
    let ops: Vec<Op> = body.ops_in(region).collect();
    for op in ops {
        if let OpKind::Alloca(info) = &mut body.ops[op].kind
            && info.storage == AllocaStorage::Frame
        {
            info.storage = AllocaStorage::Private;
        }
    }
}
