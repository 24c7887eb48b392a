//! Handlers that exceptions of a statement would meet.
//!
//! Where a statement becomes a task, its handler may stand behind it, where another thread comes, which does not have
//! the exception in flight. A function that compilers make of an OpenMP task has its own handlers only, and one that
//! ends the program is nobody's.

use gradus_edit::only_terminates;
use gradus_ir::{Body, Op, OpKind, Region, Unit};

/// Why a statement with a handler runs where it stands.
pub(crate) const MET: &str = "an exception out of it would meet a handler of this function, and other threads do not have the exception in flight";

/// Why a statement runs where it stands that an exception leaves by way of destructors.
pub(crate) const ENDED: &str = "an exception out of it would end a variable on its way";

/// The first call in a region whose exception a handler takes.
pub(crate) fn met(unit: &Unit, body: &Body, region: Region) -> Option<Op> {
    body.walk(region).find(|&op| {
        let [_, handler] = body.op_regions(op) else {
            return false;
        };
        let pad = body.first(*handler).map(|pad| body.kind(pad));
        matches!(pad, Some(OpKind::LandingPad(pad)) if !pad.clauses.is_empty())
            && !only_terminates(unit, body, op)
    })
}
