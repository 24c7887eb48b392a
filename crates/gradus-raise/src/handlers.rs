//! Exception handlers of statements that become tasks.
//!
//! If a statement becomes a task, another thread may reach the handler after the statement, without the
//! exception in flight. An outlined function of an OpenMP task contains its handlers, and a handler that only
//! terminates the program is no obstacle.

use gradus_edit::handler_terminates;
use gradus_ir::{Body, Op, OpKind, Region, Unit};

/// The reason why a statement with a handler runs undeferred.
pub(crate) const CAUGHT_HERE: &str = "a handler in this function catches exceptions of the statement, and other threads do not have the exception in flight";

/// The reason why a statement with destructors on its unwind path runs undeferred.
pub(crate) const RUNS_DESTRUCTORS: &str =
    "an exception of the statement runs destructors on the unwind path";

/// Returns the first call in a region whose exception a handler catches.
pub(crate) fn call_with_handler(unit: &Unit, body: &Body, region: Region) -> Option<Op> {
    body.walk(region).find(|&op| {
        let [_, handler] = body.op_regions(op) else {
            return false;
        };
        let pad = body.first(*handler).map(|pad| body.kind(pad));
        matches!(pad, Some(OpKind::LandingPad(pad)) if !pad.clauses.is_empty())
            && !handler_terminates(unit, body, op)
    })
}
