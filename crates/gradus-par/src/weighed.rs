//! Forks whose sides add to what they share, weighed against one thread.
//!
//! ```text
//! for %k < 2 independent { … k(…) … }
//!   →   if there are more than so many workers { for %k < 2 independent { … k(…) … } } else { for %k < 2 { … a(…) … } }
//! ```
//!
//! In a return sweep both sides of a fork add to the adjoints of what both read, by atomic operations; a derivative that
//! no other runs beside adds plainly, and LLVM may make vectors of its loops. So a fork is worth it for so many workers
//! only as one thread is faster with that one. Loops weigh the same when they are lowered ([`crate::alone`]); of a
//! fork, which mostly is a recursion, the two are different functions.
//!
//! The two add in different orders. Where the bits are to be the same for any number of workers there is the serial one only.

use crate::abi::Entry;
use crate::alone::{is_between, make_serial_around};
use crate::forks;
use crate::loops::may_be_serial;
use crate::work;
use gradus_analysis::Closure;
use gradus_edit::{ValueMap, clone_op_within};
use gradus_ir::{BinaryOp, Body, Builder, Flags, FuncId, IntPredicate, LocId, Op, Unit, Value};
use std::collections::HashMap;

/// Puts a serial version beside each fork of `functions` that calls what `alone` has another function for, if that one
/// is faster on one thread: `alone` says, of derivatives that others may run beside, which does the same when none does.
/// With `one_order` it takes the place of the fork; gives the function and the place of each that is serial for that.
pub fn weigh(
    unit: &mut Unit,
    functions: &[FuncId],
    alone: &HashMap<FuncId, FuncId>,
    one_order: bool,
) -> Vec<(FuncId, Option<LocId>)> {
    let mut serialised = Vec::new();
    for &func in functions {
        // What others run beside adds atomically, whatever it does itself.
        if alone.contains_key(&func) {
            continue;
        }
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let loops: Vec<Op> = body.walk(body.root()).collect();
        for lp in loops {
            if !forks::is_fork(unit, &body, lp) {
                continue;
            }
            let inside = body.walk(body.op_regions(lp)[0]);
            let called: Vec<FuncId> = inside
                .filter_map(|op| unit.callee(&body, op))
                .filter(|callee| alone.contains_key(callee))
                .collect();
            let derivatives = closed(unit, &called, alone);
            let Some(threads) = work::threads_for_one_call(unit, &derivatives) else {
                continue;
            };
            if one_order {
                let forks = one_order_of(unit, &mut body, lp, alone);
                serialised.extend(forks.into_iter().map(|op| (func, body.ops[op].loc)));
            } else {
                beside(unit, &mut body, lp, threads, alone);
            }
        }
        unit.functions[func].body = Some(body);
    }
    serialised
}

/// All derivatives that some come to and that others may run beside.
fn closed(unit: &Unit, called: &[FuncId], alone: &HashMap<FuncId, FuncId>) -> Vec<FuncId> {
    let closure = Closure::of(unit, called);
    let reached = closure.functions().iter().copied();
    reached.filter(|func| alone.contains_key(func)).collect()
}

/// Puts the serial version beside a fork that is worth it with more than `threads` workers.
fn beside(unit: &mut Unit, body: &mut Body, lp: Op, threads: u64, alone: &HashMap<FuncId, FuncId>) {
    let types: Vec<_> = body.results(lp).iter().map(|v| body.ty(*v)).collect();
    let results = body.results(lp).to_vec();
    let b = &mut Builder::new(unit, body);
    b.loc = b.body.ops[lp].loc;
    b.at_op(lp);
    let workers = Entry::Workers.declare(b.unit);
    let call = b.call(workers, &[]);
    let workers = b.body.result(call);
    let ty = b.body.ty(workers);
    let most = b.int(ty, i128::from(threads.min(work::MOST_THREADS)));
    let few = b.icmp(IntPredicate::Ule, workers, most);
    let free = may_be_serial(b, true);
    let serial = b.binary(BinaryOp::And, few, free);
    let (choice, one, many) = b.if_(serial, &types);
    for (result, value) in results.iter().zip(b.body.results(choice).to_vec()) {
        b.body.replace_uses(*result, value);
    }
    b.at_end(one);
    let copy = clone_op_within(lp, b, &mut ValueMap::new());
    make_serial(b, copy, alone);
    let given: Vec<Value> = b.body.results(copy).to_vec();
    b.at_end(one);
    b.yield_(&given);
    b.body.move_op(lp, many);
    b.at_end(many);
    b.yield_(&results);
}

/// Puts the serial version in a fork's place; gives it and the forks inside of it that are serial with it.
fn one_order_of(
    unit: &mut Unit,
    body: &mut Body,
    lp: Op,
    alone: &HashMap<FuncId, FuncId>,
) -> Vec<Op> {
    let inside = body.walk(body.op_regions(lp)[0]);
    let inside = inside.filter(|op| forks::is_fork(unit, body, *op));
    let mut forks: Vec<Op> = std::iter::once(lp).chain(inside).collect();
    make_serial(&mut Builder::new(unit, body), lp, alone);
    forks.retain(|op| !forks::is_fork(unit, body, *op));
    forks
}

/// Makes a fork serial, with the functions that nothing runs beside and plain adds. Loops around these are serial, too.
fn make_serial(b: &mut Builder<'_>, lp: Op, alone: &HashMap<FuncId, FuncId>) {
    b.body.ops[lp].flags = Flags::NONE;
    let inside: Vec<Op> = b.body.walk(b.body.op_regions(lp)[0]).collect();
    for op in inside {
        let callee = b.unit.callee(b.body, op);
        if is_between(b.body, op) {
            make_serial_around(b.body, op);
            gradus_edit::make_plain(b, op);
        } else if let Some(&other) = callee.and_then(|callee| alone.get(&callee)) {
            make_serial_around(b.body, op);
            let other = b.func(other);
            b.body.set_operand(op, 0, other);
        }
    }
}
