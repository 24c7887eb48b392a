//! Raising of OpenMP as emitted by clang: the order of steps.
//!
//! 1. [`survey`]: functions with constructs, reachability of regions, and obstacles.
//! 2. The constructs of every function are raised on a clone of its body: worksharing loops ([`worksharing_loops`]),
//!    synchronisation constructs ([`sync_constructs`]), tasks ([`tasks`], [`taskloop`]). A failure is an obstacle.
//! 3. A region that reaches an obstacle remains unchanged, with all constructs it reaches, because threads of
//!    one library cannot meet in worksharing of the other; to a fixpoint.
//! 4. The remaining functions are assembled, callees first: tasks and regions inline their functions ([`assemble`]).

mod assemble;
mod dynamic_chunks;
mod flang_normalize;
mod last_iteration;
mod loop_bounds;
mod memory_mirrors;
mod parallel_region;
mod static_schedule;
mod survey;
mod sync_constructs;
mod taskloop;
mod tasks;
mod thread_num;
mod unrotate;
mod worksharing_loops;

use crate::report::{RaiseResult, Reason, reason};
use crate::runtime_calls::RuntimeCalls;
use crate::{Orphans, Raised};
use gradus_ir::externals::{ExternalFn, OpenMpFn};
use gradus_ir::{Body, Builder, FuncId, Op, OpKind, Unit};
use std::collections::HashMap;
use survey::Survey;

/// A function with raised constructs; regions and tasks still call their functions.
pub(crate) struct RaisedBody {
    pub body: Body,
    /// The functions of its tasks.
    pub entries: Vec<FuncId>,
}

/// Raises the OpenMP constructs of a unit.
pub(crate) fn raise(unit: &mut Unit, orphans: &Orphans) -> Raised {
    let calls = RuntimeCalls::of(unit);
    if calls.is_empty() {
        return Raised::default();
    }
    normalize_runtime_calls(unit, &calls);
    let mut survey = Survey::of(unit, &calls, orphans);
    let mut converted: HashMap<FuncId, RaisedBody> = HashMap::new();
    for func in survey.functions() {
        if survey.is_rejected(func) || survey.is_left_to_caller(func) {
            continue;
        }
        let taken_in = survey.is_outlined_code(func) || survey::is_always_inline(unit, func);
        let done = raise_constructs(unit, &calls, func, survey.is_orphaned(func));
        match done.and_then(|done| check_inlinable(unit, func, done, taken_in)) {
            Ok(done) => {
                converted.insert(func, done);
            }
            Err(why) => survey.reject(func, why),
        }
    }
    survey.settle();
    let done = assemble::assemble(unit, &calls, &survey, converted);
    Raised {
        regions: survey.records(unit, &done),
        changed: done.changed,
        refused: Vec::new(),
        reach: survey.reach(unit),
    }
}

/// Turns invokes of runtime functions into calls, because the declarations of OpenMP queries lack `nounwind` in
/// C++, and normalises flang's IR.
fn normalize_runtime_calls(unit: &mut Unit, calls: &RuntimeCalls) {
    let with_bodies = unit.functions.iter().filter(|(_, f)| f.body.is_some());
    let functions: Vec<FuncId> = with_bodies.map(|(func, _)| func).collect();
    for func in functions {
        if let Some(mut body) = unit.functions[func].body.take() {
            let is_quiet =
                |unit: &Unit, func| matches!(unit.known(func), Some(ExternalFn::OpenMp(_)));
            gradus_edit::invokes_to_calls(unit, &mut body, is_quiet);
            flang_normalize::normalize(unit, &mut body, calls);
            unit.functions[func].body = Some(body);
        }
    }
}

/// Checks that a function with worksharing of an enclosing team can be inlined into the region.
fn check_inlinable(
    unit: &Unit,
    func: FuncId,
    done: RaisedBody,
    taken_in: bool,
) -> RaiseResult<RaisedBody> {
    let body = &done.body;
    let shares = |op: &Op| {
        let kind = body.kind(*op);
        matches!(
            kind,
            OpKind::ShareFor { .. } | OpKind::Single { .. } | OpKind::Barrier(_)
        )
    };
    let first = body.walk(body.root()).find(shares).filter(|_| taken_in);
    match (first, gradus_edit::can_inline_region_body(unit, func, body)) {
        (Some(op), Err(why)) => Err(reason(unit, body, op, &why.to_string())),
        _ => Ok(done),
    }
}

/// Replaces thread numbers by zero if no runtime call uses them. Calls that stay with libomp need the library's
/// number, whose query initialises the library.
fn fold_thread_numbers(unit: &mut Unit, body: &mut Body, calls: &RuntimeCalls) {
    for op in calls.of_kind(unit, body, OpenMpFn::GlobalThread) {
        let result = body.result(op);
        let users: Vec<Op> = body.uses(result).map(|user| user.op).collect();
        if users.iter().any(|&op| calls.id(unit, body, op).is_some()) {
            continue;
        }
        let ty = body.ty(result);
        let zero = Builder::new(unit, body).int(ty, 0);
        body.replace_uses(result, zero);
        body.erase(op);
    }
}

/// Drops the TBAA tag of stores of captured parameters. Compilers pass numbers to an outlined function as
/// 64-bit integers and tag the slot accordingly, whereas a callee with the slot's address loads the number's
/// type. The tag is harmless only without inlining.
fn drop_tbaa_on_captures(body: &mut Body) {
    let stores: Vec<Op> = body
        .walk(body.root())
        .filter(|op| matches!(body.kind(*op), OpKind::Store(_)))
        .collect();
    for op in stores {
        let into = body.def_op(body.operand(op, 1));
        let is_slot = into.is_some_and(|op| matches!(body.kind(op), OpKind::Alloca(_)));
        if is_slot && body.params().contains(&body.operand(op, 0)) {
            body.ops[op].meta = None;
        }
    }
}

/// Raises the constructs of a function except for its regions; `orphaned` if the function may run outside of
/// all regions.
fn raise_constructs(
    unit: &mut Unit,
    calls: &RuntimeCalls,
    func: FuncId,
    orphaned: bool,
) -> RaiseResult<RaisedBody> {
    let Some(original) = unit.functions[func].body.take() else {
        return Err(Reason {
            text: "a function reached from the region cannot be imported".into(),
            span: unit.functions[func].span.clone(),
        });
    };
    let mut body = (*original).clone();
    unit.functions[func].body = Some(original);
    drop_tbaa_on_captures(&mut body);
    worksharing_loops::raise(unit, &mut body, calls)?;
    sync_constructs::raise(unit, &mut body, calls)?;
    let entries = tasks::raise(unit, &mut body, calls, orphaned)?;
    for (op, id) in calls.list(unit, &body) {
        match id {
            OpenMpFn::Hint => body.erase(op),
            OpenMpFn::Fork
            | OpenMpFn::ForkIf
            | OpenMpFn::GlobalThread
            | OpenMpFn::PushNumThreads
            | OpenMpFn::BeginSerial
            | OpenMpFn::EndSerial
            | OpenMpFn::ThreadPrivate
            | OpenMpFn::ThreadNum
            | OpenMpFn::NumThreads
            | OpenMpFn::MaxThreads
            | OpenMpFn::InParallel
            | OpenMpFn::Level
            | OpenMpFn::AncestorInfo
            | OpenMpFn::InFinal
            | OpenMpFn::InRegion
            | OpenMpFn::BeginRegion
            | OpenMpFn::EndRegion
            | OpenMpFn::Query
            | OpenMpFn::Setting
            | OpenMpFn::Clock => {}
            _ => {
                let text = "this OpenMP runtime call is not recognised";
                return Err(reason(unit, &body, op, text));
            }
        }
    }
    let root = body.root();
    thread_num::query_library_numbers(unit, &mut body, root);
    fold_thread_numbers(unit, &mut body, calls);
    Ok(RaisedBody { body, entries })
}
