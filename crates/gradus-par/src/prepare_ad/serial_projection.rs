//! Serial projection of a body before differentiation: every parallel op becomes sequential code, and
//! thread-count queries return one.
//!
//! Place: after tasks have become loops. [`crate::prepare_ad::restore`] recovers parallel loops from the flag
//! [`Flags::INDEPENDENT`] afterwards.

use crate::emit::serial::{lower, outermost_parallel_op};
use crate::prepare_ad::iteration_private_memory;
use crate::thread_count::order_dependence::may_order_iterations;
use crate::thread_count::queries::queries_max_threads;
use gradus_ir::{Body, Builder, Flags, FuncId, Op, OpKind, Unit};
use std::collections::HashSet;

/// Replaces all parallel ops of a body by their serial projections.
///
/// A loop that calls a function in `ordered` is not flagged independent: the serial projection drops the
/// ordering of iterations in the callee, too. Likewise for a loop that `relies` on a thread count of one.
pub(crate) fn project(
    unit: &mut Unit,
    body: &mut Body,
    ordered: &HashSet<FuncId>,
    relies: impl Fn(Op) -> bool,
) {
    while let Some(op) = outermost_parallel_op(body) {
        let mut regions = body.op_regions(op).iter();
        let calls_ordered = |op: Op| {
            body.kind(op).call_info().is_some() && may_order_iterations(unit, body, op, ordered)
        };
        let hidden = relies(op) || regions.any(|region| body.walk(*region).any(calls_ordered));
        let before = body.ops.len();
        if !hidden && matches!(body.kind(op), OpKind::ParFor { .. }) {
            iteration_private_memory::slots_to_heap(unit, body, op);
        }
        lower(unit, body, op);
        if hidden {
            let made: Vec<Op> = body.ops.ids().skip(before).collect();
            for op in made {
                let flags = &mut body.ops[op].flags;
                *flags = flags.without(Flags::INDEPENDENT);
            }
        }
    }
}

/// Replaces thread-count queries by one if `is_told`. A team has one rank in the serial projection, and a
/// program that reads the results of every thread must find one thread.
pub(crate) fn fold_thread_count_to_one(unit: &mut Unit, is_told: impl Fn(FuncId, Op) -> bool) {
    let with_bodies = unit.functions.iter().filter(|(_, f)| f.body.is_some());
    let functions: Vec<FuncId> = with_bodies.map(|(func, _)| func).collect();
    for func in functions {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let calls = body.walk(body.root());
        let calls: Vec<Op> = calls
            .filter(|op| queries_max_threads(unit, &body, *op) && is_told(func, *op))
            .collect();
        for op in calls {
            let result = body.result(op);
            let ty = body.ty(result);
            let one = Builder::new(unit, &mut body).int(ty, 1);
            body.replace_uses(result, one);
            body.erase(op);
        }
        unit.functions[func].body = Some(body);
    }
}
