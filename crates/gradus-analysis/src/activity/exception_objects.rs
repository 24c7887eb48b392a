//! Exception objects without derivatives.
//!
//! A handler may catch any thrown object; all exception objects share one alias set with external memory. A
//! caught object has no shadow. An object that only receives plain integers and constants before the throw
//! has no shadow either, if every handler only reads its caught object. Nothing in such an object carries a
//! derivative or leads to memory with derivatives.

use crate::call_graph::Callee;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::view::View;
use gradus_ir::externals::{ExceptionFn, ExternalFn};
use gradus_ir::{Body, Op, OpKind, Value};

/// Returns true if a call allocates an exception object that only receives values without derivatives.
pub(crate) fn allocates_inactive_exception(
    facts: View<'_>,
    body: &Body,
    op: Op,
    carries_nothing: impl Fn(Value) -> bool,
) -> bool {
    let object = body.call_result(op);
    let made = known(facts, body, op) == Some(ExceptionFn::Allocate);
    object.filter(|_| made).is_some_and(|object| {
        has_only_uses(body, object, |op, place| match known(facts, body, op) {
            Some(ends) => matches!(ends, ExceptionFn::Throw | ExceptionFn::Free),
            None => {
                let (mut stores, mut plain) = (false, true);
                value_accesses(facts.unit, body, op, |touch| match touch {
                    ValueAccess::Store { ptr, value } => {
                        stores |= ptr == place;
                        plain &= value != place && carries_nothing(value);
                    }
                    ValueAccess::Load { .. } => plain = false,
                });
                stores && plain
            }
        })
    })
}

/// Returns true if a call throws an exception object.
pub(crate) fn is_throw(facts: View<'_>, body: &Body, op: Op) -> bool {
    known(facts, body, op) == Some(ExceptionFn::Throw)
}

/// Returns true if every handler of the call graph only reads its caught object.
pub(crate) fn handlers_are_read_only(facts: View<'_>) -> bool {
    let components = facts.closure.components().iter();
    let mut functions = components.flat_map(|component| &component.functions);
    functions.all(|&func| {
        let body = facts.unit.functions[func].body.as_deref();
        body.is_none_or(|body| {
            body.walk(body.root())
                .all(|op| catches_read_only(facts, body, op))
        })
    })
}

fn catches_read_only(facts: View<'_>, body: &Body, op: Op) -> bool {
    if known(facts, body, op) != Some(ExceptionFn::BeginCatch) {
        return true;
    }
    body.call_result(op).is_none_or(|caught| {
        has_only_uses(body, caught, |op, place| {
            let mut loads = false;
            value_accesses(facts.unit, body, op, |touch| {
                loads |= matches!(touch, ValueAccess::Load { ptr, .. } if ptr == place);
            });
            loads
        })
    })
}

/// Returns true if `is_fine` holds for every use of an address and of addresses at an offset from it.
fn has_only_uses(body: &Body, start: Value, is_fine: impl Fn(Op, Value) -> bool) -> bool {
    let mut work = vec![start];
    while let Some(place) = work.pop() {
        for user in body.uses(place) {
            match body.kind(user.op) {
                OpKind::Addr { .. } if body.operand(user.op, 0) == place => {
                    work.push(body.result(user.op));
                }
                _ if is_fine(user.op, place) => {}
                _ => return false,
            }
        }
    }
    true
}

fn known(facts: View<'_>, body: &Body, op: Op) -> Option<ExceptionFn> {
    match facts.closure.callee(facts.unit, body, op)? {
        Callee::Outside(func) => match facts.unit.known(func)? {
            ExternalFn::Exception(id) => Some(id),
            _ => None,
        },
        _ => None,
    }
}
