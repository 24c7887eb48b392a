//! Cloning of recursive functions that spawn: a parallel clone for the upper recursion levels and a serial
//! projection for the levels below.
//!
//! ```text
//! f(args)                   f.gr_fork(args, 0)
//! f.gr_fork(args, level)    the body of f; calls among cloned functions call gr_level with a higher level
//! f.gr_level(args, level)   f.gr_fork if level is below the cut-off, else f.gr_serial
//! f.gr_serial(args)         no tasks; calls among cloned functions call gr_serial
//! ```
//!
//! A spawned call descends several levels, and more levels if a run makes many calls. A call without siblings
//! in its run descends one level. Recursion along a list thus still creates many tasks, and a tree performs at
//! most some hundred tests, whichever branches are spawned. No work estimate is needed, and one worker runs the
//! code of many workers.

use crate::emit::serial;
use crate::lower::tasks;
use gradus_analysis::CallGraph;
use gradus_ir::{
    AttrSet, Body, Builder, CallInfo, FuncId, Function, IntPredicate, Linkage, Op, OpKind, Region,
    TailKind, Type, Unit, Value,
};
use std::collections::{HashMap, HashSet};

/// The levels that a spawned call descends, or a call with siblings.
const LEVELS_SPAWNED: i64 = 8;
/// Like `LEVELS_SPAWNED`, for runs with enough calls that three generations are enough tasks.
const LEVELS_SPAWNED_OF_MANY: i64 = 11;
/// The number of calls that counts as many: three generations yield as many tasks as six generations of two
/// calls.
const MANY_CALLS: usize = 4;
/// The levels that the only call of a run descends.
const LEVELS_CALLED: i64 = 1;
/// Nothing is spawned from this level on.
const CUT_OFF: i64 = 32;

/// The clones of a function.
#[derive(Clone, Copy)]
struct Clones {
    fork: FuncId,
    level: FuncId,
    serial: FuncId,
}

/// Clones the recursive spawning functions of a call graph. Returns all functions with new bodies,
/// clones included.
pub(crate) fn clone_recursive_spawners(unit: &mut Unit, closure: &CallGraph) -> Vec<FuncId> {
    let chosen = functions_to_clone(unit, closure);
    let minds_final = serial::depends_on_final(unit, &chosen);
    let clones: HashMap<FuncId, Clones> = chosen
        .iter()
        .map(|&func| (func, declare_clones(unit, func)))
        .collect();
    for &func in &chosen {
        let Some(body) = unit.functions[func].body.take() else {
            continue;
        };
        let made = clones[&func];
        unit.functions[made.serial].body = Some(serial_body(unit, &body, &clones, minds_final));
        unit.functions[made.level].body = Some(level_body(unit, made));
        unit.functions[func].body = Some(entry_body(unit, func, made.fork));
        unit.functions[made.fork].body = Some(fork_body(unit, body, &clones));
    }
    let all = chosen.iter().flat_map(|func| {
        let made = clones[func];
        [*func, made.fork, made.level, made.serial]
    });
    all.collect()
}

/// Selects the functions to clone: members of call cycles with spawns, and their callees that spawn too.
fn functions_to_clone(unit: &Unit, closure: &CallGraph) -> Vec<FuncId> {
    let mut spawning: HashSet<FuncId> = HashSet::new();
    let mut open: Vec<FuncId> = Vec::new();
    for component in closure.components() {
        let spawns = |func: &FuncId| {
            let body = unit.functions[*func].body.as_deref();
            body.is_some_and(|b| {
                b.walk(b.root())
                    .any(|op| matches!(b.kind(op), OpKind::Spawn { .. }))
            })
        };
        let own = component.functions.iter().any(spawns);
        let below = component.functions.iter().any(|func| {
            let called = callees(unit, closure, *func);
            called.iter().any(|callee| spawning.contains(callee))
        });
        if own || below {
            spawning.extend(&component.functions);
        }
        if own && component.recursive {
            open.extend(&component.functions);
        }
    }
    let mut chosen: Vec<FuncId> = Vec::new();
    while let Some(func) = open.pop() {
        if spawning.contains(&func) && !chosen.contains(&func) && can_be_cloned(unit, func) {
            chosen.push(func);
            open.extend(callees(unit, closure, func));
        }
    }
    chosen
}

/// Returns the direct callees of `func` that have bodies.
fn callees(unit: &Unit, closure: &CallGraph, func: FuncId) -> Vec<FuncId> {
    let Some(body) = unit.functions[func].body.as_deref() else {
        return Vec::new();
    };
    body.walk(body.root())
        .filter_map(|op| unit.callee(body, op))
        .filter(|callee| closure.contains(*callee))
        .collect()
}

/// Returns true if the body may be copied into clones and has a serial projection. Worksharing of an enclosing
/// team has none.
fn can_be_cloned(unit: &Unit, func: FuncId) -> bool {
    let function = &unit.functions[func];
    let variadic = matches!(
        unit.types.get(function.ty),
        Type::Func { variadic: true, .. }
    );
    let Some(body) = function.body.as_deref() else {
        return false;
    };
    let fits = |op: Op| match body.kind(op) {
        OpKind::Call(info) => info.tail != TailKind::MustTail,
        OpKind::ShareFor { .. } | OpKind::Single { .. } | OpKind::Barrier(_) => body.is_in_team(op),
        _ => true,
    };
    !variadic && function.linkage != Linkage::Interposable && body.walk(body.root()).all(fits)
}

fn declare_clones(unit: &mut Unit, func: FuncId) -> Clones {
    Clones {
        fork: declare_clone(unit, func, "fork", true),
        level: declare_clone(unit, func, "level", true),
        serial: declare_clone(unit, func, "serial", false),
    }
}

/// Adds a function with the signature of `func` and no body. The level follows the parameters.
fn declare_clone(unit: &mut Unit, func: FuncId, suffix: &str, levelled: bool) -> FuncId {
    let parent = unit.functions[func].clone();
    let mut params = unit.param_types(parent.ty).to_vec();
    if levelled {
        params.push(unit.types.int(64));
    }
    let result = unit.result_type(parent.ty);
    let result = result.unwrap_or_else(|| unit.types.void());
    let ty = unit.types.func(result, params);
    let name = unit.fresh_name(&format!("{}.gr_{suffix}", parent.name));
    unit.add_function(Function {
        name,
        ty,
        linkage: Linkage::Internal,
        defined: false,
        body: None,
        derived_from: Some(func),
        param_names: Vec::new(),
        ..parent
    })
}

/// Calls a clone, with the parameter attributes and calling convention of `like`.
fn call_clone(b: &mut Builder<'_>, callee: FuncId, like: FuncId, args: &[Value]) -> Option<Value> {
    let function = &b.unit.functions[like];
    let (own, convention) = (b.unit.attrs(function.attrs).clone(), function.convention);
    let attrs = b.unit.intern_attrs(AttrSet {
        function: Vec::new(),
        ..own
    });
    let info = CallInfo {
        convention,
        attrs: Some(attrs),
        ..CallInfo::plain(b.unit.functions[callee].ty)
    };
    let target = b.func(callee);
    let call = b.call_with(info, target, args);
    b.body.results(call).first().copied()
}

fn entry_body(unit: &mut Unit, func: FuncId, fork: FuncId) -> Box<Body> {
    let params = unit.param_types(unit.functions[func].ty).to_vec();
    let mut body = Body::new(&params);
    let b = &mut Builder::new(unit, &mut body);
    let mut args = b.body.params().to_vec();
    args.push(b.i64(0));
    let result = call_clone(b, fork, func, &args);
    b.return_(result);
    Box::new(body)
}

fn level_body(unit: &mut Unit, made: Clones) -> Box<Body> {
    let ty = unit.functions[made.level].ty;
    let params = unit.param_types(ty).to_vec();
    let void = unit.types.void();
    let result = unit.result_type(ty).filter(|ty| *ty != void);
    let types: Vec<_> = result.into_iter().collect();
    let mut body = Body::new(&params);
    let b = &mut Builder::new(unit, &mut body);
    let args = b.body.params().to_vec();
    let (&level, plain) = args.split_last().expect("the level is a parameter");
    let cut_off = b.i64(CUT_OFF);
    let above = b.icmp(IntPredicate::Ult, level, cut_off);
    let outside = b.set_insertion_end(b.body.root());
    let (choice, forks, stays) = b.if_(above, &types);
    for (region, callee, args) in [(forks, made.fork, &args[..]), (stays, made.serial, plain)] {
        b.set_insertion_end(region);
        let result = call_clone(b, callee, made.serial, args);
        b.yield_(&result.into_iter().collect::<Vec<_>>());
    }
    b.restore_insertion_point(outside);
    let result = b.body.results(choice).first().copied();
    b.return_(result);
    Box::new(body)
}

/// Builds the parallel clone: calls to cloned functions pass the new level.
fn fork_body(unit: &mut Unit, mut body: Box<Body>, clones: &HashMap<FuncId, Clones>) -> Box<Body> {
    let root = body.root();
    let long = unit.types.int(64);
    let level = body.add_param(root, long);
    let b = &mut Builder::new(unit, &mut body);
    if let Some(first) = b.body.first(root) {
        b.set_insertion_before(first);
    }
    let clones_called = |op| Some((op, clones.get(&b.unit.callee(b.body, op)?)?));
    let calls: Vec<(Op, &Clones)> = b.body.walk(root).filter_map(clones_called).collect();
    let down = match max_calls_per_run(b.body, &calls) >= MANY_CALLS {
        true => LEVELS_SPAWNED_OF_MANY,
        false => LEVELS_SPAWNED,
    };
    let [spawned, called] = [down, LEVELS_CALLED].map(|down| {
        let down = b.i64(down);
        b.add(level, down)
    });
    let plain: Vec<Op> = calls
        .iter()
        .map(|(op, _)| *op)
        .filter(|op| !b.body.is_in_strand(*op))
        .collect();
    let several = !plain
        .iter()
        .all(|op| is_only_call_of_run(b.body, *op, &plain));
    for (op, made) in calls {
        let level = match several || !plain.contains(&op) {
            true => spawned,
            false => called,
        };
        redirect_call(b, op, made.level, Some(level));
    }
    body
}

/// Returns true if a run that executes the call `op` executes it once and no other of `calls`.
fn is_only_call_of_run(body: &Body, op: Op, calls: &[Op]) -> bool {
    !body.is_in_loop(op)
        && calls
            .iter()
            .all(|other| *other == op || are_exclusive(body, op, *other))
}

/// Returns the maximum number of `calls` in one run: the calls not exclusive with each other, at least [`MANY_CALLS`]
/// for a call in a loop.
fn max_calls_per_run(body: &Body, calls: &[(Op, &Clones)]) -> usize {
    let meets = |op: Op| {
        let others = calls.iter().map(|(other, _)| *other);
        let met = others
            .filter(|&other| other == op || !are_exclusive(body, op, other))
            .count();
        match body.is_in_loop(op) {
            true => met.max(MANY_CALLS),
            false => met,
        }
    };
    calls.iter().map(|(op, _)| meets(*op)).max().unwrap_or(0)
}

/// Returns true if `a` and `b` are in different arms of a branch.
fn are_exclusive(body: &Body, a: Op, b: Op) -> bool {
    let arms = |op: Op| {
        let inside = body.op_and_ancestors(op);
        inside.filter_map(|op| Some((body.parent_op(op)?, body.parent(op)?)))
    };
    let of_a: HashMap<Op, Region> = arms(a).collect();
    let meeting = arms(b).find(|(owner, _)| of_a.contains_key(owner));
    meeting.is_some_and(|(owner, arm)| {
        matches!(body.kind(owner), OpKind::If | OpKind::Switch(_)) && of_a[&owner] != arm
    })
}

/// Redirects a call to `callee`, with an optional extra argument.
fn redirect_call(b: &mut Builder<'_>, op: Op, callee: FuncId, further: Option<Value>) {
    let args = b.unit.call_args(b.body, op);
    let bundled: Vec<Value> = b.body.operands(op).skip(1 + args.len()).collect();
    let target = b.func(callee);
    let operands: Vec<Value> = std::iter::once(target)
        .chain(args)
        .chain(further)
        .chain(bundled)
        .collect();
    b.body.set_operands(op, &operands);
    let signature = b.unit.functions[callee].ty;
    if let OpKind::Call(info) | OpKind::Invoke(info) = &mut b.body.ops[op].kind {
        info.signature = signature;
    }
}

/// Builds the serial projection. Locks remain, because tasks may run concurrently. If `minds_final`, tasks are
/// marked final.
fn serial_body(
    unit: &mut Unit,
    body: &Body,
    clones: &HashMap<FuncId, Clones>,
    minds_final: bool,
) -> Box<Body> {
    let mut body = body.clone();
    let projected = |body: &Body| {
        body.walk(body.root()).find(|&op| {
            body.kind(op).is_parallel() && !matches!(body.kind(op), OpKind::Critical(_))
        })
    };
    while let Some(op) = projected(&body) {
        if minds_final {
            tasks::mark_final_task(&mut Builder::new(unit, &mut body), op);
        }
        serial::lower(unit, &mut body, op);
    }
    gradus_edit::hoist_private_allocas(&mut body);
    let b = &mut Builder::new(unit, &mut body);
    let calls: Vec<Op> = b.body.walk(b.body.root()).collect();
    for op in calls {
        let callee = b.unit.callee(b.body, op);
        if let Some(made) = callee.and_then(|f| clones.get(&f)) {
            redirect_call(b, op, made.serial, None);
        }
    }
    Box::new(body)
}
