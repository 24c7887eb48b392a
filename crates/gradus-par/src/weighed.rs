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

use crate::abi::Entry;
use crate::alone::is_between;
use crate::forks;
use crate::loops::may_be_serial;
use crate::work;
use gradus_analysis::Closure;
use gradus_edit::{ValueMap, clone_op_within};
use gradus_ir::{BinaryOp, Body, Builder, Flags, FuncId, IntPredicate, Op, OpKind, Unit, Value};
use std::collections::HashMap;

/// Puts a serial version beside each fork of `functions` that calls what `alone` has another function for, if that one
/// is faster on one thread: `alone` says, of derivatives that others may run beside, which does the same when none does.
pub fn weigh(unit: &mut Unit, functions: &[FuncId], alone: &HashMap<FuncId, FuncId>) {
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
            if let Some(threads) = work::threads_for_one_call(unit, &derivatives) {
                beside(unit, &mut body, lp, threads, alone);
            }
        }
        unit.functions[func].body = Some(body);
    }
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
    b.body.ops[copy].flags = Flags::NONE;
    call_alone(b, copy, alone);
    let given: Vec<Value> = b.body.results(copy).to_vec();
    b.at_end(one);
    b.yield_(&given);
    b.body.move_op(lp, many);
    b.at_end(many);
    b.yield_(&results);
}

/// Has the calls in a loop go to the functions that nothing runs beside.
fn call_alone(b: &mut Builder<'_>, lp: Op, alone: &HashMap<FuncId, FuncId>) {
    let inside: Vec<Op> = b.body.walk(b.body.op_regions(lp)[0]).collect();
    for op in inside {
        if matches!(b.body.kind(op), OpKind::For { .. }) {
            let flags = &mut b.body.ops[op].flags;
            *flags = flags.without(Flags::INDEPENDENT);
        }
        if is_between(b.body, op) {
            gradus_edit::make_plain(b, op);
            continue;
        }
        let callee = b.unit.callee(b.body, op);
        if let Some(&other) = callee.and_then(|callee| alone.get(&callee)) {
            let other = b.func(other);
            b.body.set_operand(op, 0, other);
        }
    }
}
