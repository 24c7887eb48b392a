//! Profitability of forks with atomic updates of shared memory: adds a serial version.
//!
//! ```text
//! for %k < 2 independent { … k(…) … }
//!   →   if there are more than so many workers { for %k < 2 independent { … k(…) … } } else { for %k < 2 { … a(…) … } }
//! ```
//!
//! In a reverse pass both arms of a fork accumulate atomically into adjoints of shared primals. A derivative
//! without concurrent execution accumulates by plain adds, and LLVM may vectorise its loops. A fork is
//! therefore profitable only with more workers than the speed ratio of the two versions. Loops are compared at
//! lowering ([`crate::lower::serial_fallback`]); for a fork, mostly a recursion, the two versions are separate functions.
//!
//! The versions accumulate in different orders. If results must be bitwise equal for any number of workers,
//! only the serial version exists.

use crate::cost::model;
use crate::emit::abi::Entry;
use crate::lower::loops::is_serial_allowed;
use crate::lower::serial_fallback::{clear_independent_around, is_atomic_between_iterations};
use crate::prepare_ad::tasks_as_loops;
use gradus_analysis::CallGraph;
use gradus_edit::{ValueMap, clone_op_within};
use gradus_ir::{BinaryOp, Body, Builder, Flags, FuncId, IntPredicate, LocId, Op, Unit, Value};
use std::collections::HashMap;

/// Adds a serial version to each fork in `functions` that calls a key of `alone`, if the serial version is
/// faster on one thread. `alone` maps derivatives that may run concurrently to equivalents that do not.
///
/// With `one_order` the serial version replaces the fork. Returns function and location of each fork replaced.
pub fn version_forks_by_worker_count(
    unit: &mut Unit,
    functions: &[FuncId],
    alone: &HashMap<FuncId, FuncId>,
    one_order: bool,
) -> Vec<(FuncId, Option<LocId>)> {
    let mut serialised = Vec::new();
    for &func in functions {
        // A concurrently executed derivative accumulates atomically in any case.
        if alone.contains_key(&func) {
            continue;
        }
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let loops: Vec<Op> = body.walk(body.root()).collect();
        for lp in loops {
            if !tasks_as_loops::is_fork(unit, &body, lp) {
                continue;
            }
            let inside = body.walk(body.op_regions(lp)[0]);
            let called: Vec<FuncId> = inside
                .filter_map(|op| unit.callee(&body, op))
                .filter(|callee| alone.contains_key(callee))
                .collect();
            let derivatives = reachable_concurrent(unit, &called, alone);
            let Some(threads) = model::break_even_threads_of_calls(unit, &derivatives) else {
                continue;
            };
            if one_order {
                let forks = replace_by_serial(unit, &mut body, lp, alone);
                serialised.extend(forks.into_iter().map(|op| (func, body.ops[op].loc)));
            } else {
                add_serial_version(unit, &mut body, lp, threads, alone);
            }
        }
        unit.functions[func].body = Some(body);
    }
    serialised
}

/// Returns the possibly concurrent derivatives reachable from `called`.
fn reachable_concurrent(
    unit: &Unit,
    called: &[FuncId],
    alone: &HashMap<FuncId, FuncId>,
) -> Vec<FuncId> {
    let closure = CallGraph::of(unit, called);
    let reached = closure.functions().iter().copied();
    reached.filter(|func| alone.contains_key(func)).collect()
}

/// Adds the serial version for up to `threads` workers.
fn add_serial_version(
    unit: &mut Unit,
    body: &mut Body,
    lp: Op,
    threads: u64,
    alone: &HashMap<FuncId, FuncId>,
) {
    let types: Vec<_> = body.results(lp).iter().map(|v| body.ty(*v)).collect();
    let results = body.results(lp).to_vec();
    let b = &mut Builder::new(unit, body);
    b.loc = b.body.ops[lp].loc;
    b.set_insertion_before(lp);
    let workers = Entry::Workers.declare(b.unit);
    let call = b.call(workers, &[]);
    let workers = b.body.result(call);
    let ty = b.body.ty(workers);
    let most = b.int(ty, i128::from(threads.min(model::THREADS_MAX)));
    let few = b.icmp(IntPredicate::Ule, workers, most);
    let free = is_serial_allowed(b, true);
    let serial = b.binary(BinaryOp::And, few, free);
    let (choice, one, many) = b.if_(serial, &types);
    for (result, value) in results.iter().zip(b.body.results(choice).to_vec()) {
        b.body.replace_uses(*result, value);
    }
    b.set_insertion_end(one);
    let copy = clone_op_within(lp, b, &mut ValueMap::new());
    make_serial(b, copy, alone);
    let given: Vec<Value> = b.body.results(copy).to_vec();
    b.set_insertion_end(one);
    b.yield_(&given);
    b.body.move_op(lp, many);
    b.set_insertion_end(many);
    b.yield_(&results);
}

/// Replaces a fork by the serial version; returns the fork and the nested forks that are now serial.
fn replace_by_serial(
    unit: &mut Unit,
    body: &mut Body,
    lp: Op,
    alone: &HashMap<FuncId, FuncId>,
) -> Vec<Op> {
    let inside = body.walk(body.op_regions(lp)[0]);
    let inside = inside.filter(|op| tasks_as_loops::is_fork(unit, body, *op));
    let mut forks: Vec<Op> = std::iter::once(lp).chain(inside).collect();
    make_serial(&mut Builder::new(unit, body), lp, alone);
    forks.retain(|op| !tasks_as_loops::is_fork(unit, body, *op));
    forks
}

/// Makes a fork serial: calls non-concurrent derivatives and uses plain adds. Enclosing loops lose their
/// independence, too.
fn make_serial(b: &mut Builder<'_>, lp: Op, alone: &HashMap<FuncId, FuncId>) {
    b.body.ops[lp].flags = Flags::NONE;
    let inside: Vec<Op> = b.body.walk(b.body.op_regions(lp)[0]).collect();
    for op in inside {
        let callee = b.unit.callee(b.body, op);
        if is_atomic_between_iterations(b.body, op) {
            clear_independent_around(b.body, op);
            gradus_edit::atomic_to_plain(b, op);
        } else if let Some(&other) = callee.and_then(|callee| alone.get(&callee)) {
            clear_independent_around(b.body, op);
            let other = b.func(other);
            b.body.set_operand(op, 0, other);
        }
    }
}
