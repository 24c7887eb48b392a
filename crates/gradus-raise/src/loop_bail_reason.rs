//! Loop bail-out reasons: why the trip count of a marked loop is unknown, or why control leaves the loop.
//!
//! The loop condition is traced to its origin. One origin is an exception that leaves the loop for a handler of
//! the function. Another origin is a bound reloaded in each iteration, because the loop may modify the bound.

use crate::handlers;
use gradus_edit::is_pure;
use gradus_ir::{Body, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

const BOUND_RELOADED: &str = "the loop condition reloads the bound in each iteration because the loop may modify the bound: \
    copy the bound to a local variable before the loop";
const TRIPS_UNKNOWN: &str = "the trip count is unknown when the loop starts";

/// Returns the reason why `lp` is no `for`, and the op responsible, if any.
pub(crate) fn bail_reason(unit: &Unit, body: &Body, lp: Op) -> (&'static str, Option<Op>) {
    let region = body.op_regions(lp)[0];
    let mut read = None;
    for op in condition_ops(body, region) {
        match body.kind(op) {
            OpKind::Invoke(_) if may_catch_and_continue(body, op) => {
                return (handlers::CAUGHT_HERE, Some(op));
            }
            kind if kind.call_info().is_none() && !body.op_regions(op).is_empty() => {}
            _ if !is_pure(unit, body, op) => read = read.or(Some(op)),
            _ => {}
        }
    }
    match read {
        Some(op) => (BOUND_RELOADED, Some(op)),
        None => (TRIPS_UNKNOWN, None),
    }
}

/// Returns the op by which control leaves a loop's iterations, and the reason.
pub(crate) fn abnormal_exit(
    unit: &Unit,
    body: &Body,
    region: Region,
) -> Option<(&'static str, Option<Op>)> {
    body.walk(region).find_map(|op| match body.kind(op) {
        OpKind::Resume => match handlers::call_with_handler(unit, body, region) {
            Some(call) => Some((handlers::CAUGHT_HERE, Some(call))),
            None => Some((handlers::RUNS_DESTRUCTORS, Some(op))),
        },
        OpKind::Return => Some(("control may leave the loop", Some(op))),
        _ => None,
    })
}

/// Returns true if the call has an unwind arm that reaches its end.
fn may_catch_and_continue(body: &Body, call: Op) -> bool {
    let last = body.op_regions(call).get(1).and_then(|arm| body.last(*arm));
    last.is_some_and(|last| matches!(body.kind(last), OpKind::Yield))
}

/// Returns the ops of a loop's region that determine the loop condition, nearest first.
fn condition_ops(body: &Body, region: Region) -> Vec<Op> {
    let end = body.last(region);
    let mut open: Vec<Value> = end
        .and_then(|end| body.operands(end).next())
        .into_iter()
        .collect();
    let (mut seen, mut found): (HashSet<Value>, Vec<Op>) = (HashSet::new(), Vec::new());
    while let Some(value) = open.pop() {
        let inside = body.is_defined_in(value, region);
        let Some(op) = body.def_op(value).filter(|_| inside && seen.insert(value)) else {
            continue;
        };
        found.push(op);
        let kind = body.kind(op);
        if kind.is_arithmetic() || matches!(kind, OpKind::If | OpKind::Switch(_) | OpKind::Freeze) {
            open.extend(body.operands(op));
        }
        let Some(index) = body.results(op).iter().position(|r| *r == value) else {
            continue;
        };
        let ends = body.op_regions(op).iter().filter_map(|r| body.last(*r));
        let yields = ends.filter(|end| matches!(body.kind(*end), OpKind::Yield));
        open.extend(yields.filter_map(|end| body.operands(end).nth(index)));
    }
    found
}
