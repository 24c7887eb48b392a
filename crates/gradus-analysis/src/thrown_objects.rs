//! Exception objects that carry no derivative, whatever memory they may be taken for.
//!
//! What a handler catches may be anything that was thrown, so that all exception objects count as one memory with what
//! is not seen. What is caught has no shadow. Nor has an object that is only given plain integers and constants before
//! it is thrown, as long as handlers only read what they catch: nothing in it carries a derivative, or leads to what
//! does.

use crate::activity::Facts;
use crate::closure::Callee;
use crate::flow::{self, ValueAccess};
use gradus_ir::known::{ExceptionFn, Known};
use gradus_ir::{Body, Op, OpKind, Value};

/// Whether a call makes an exception object that is only given such values.
pub(crate) fn is_plain(
    facts: Facts<'_>,
    body: &Body,
    op: Op,
    carries_nothing: impl Fn(Value) -> bool,
) -> bool {
    let object = flow::call_result(body, op);
    let made = known(facts, body, op) == Some(ExceptionFn::Allocate);
    object.filter(|_| made).is_some_and(|object| {
        used_only(body, object, |op, place| match known(facts, body, op) {
            Some(ends) => matches!(ends, ExceptionFn::Throw | ExceptionFn::Free),
            None => {
                let (mut stores, mut plain) = (false, true);
                flow::value_accesses(facts.unit, body, op, |touch| match touch {
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

/// Whether a call throws an exception object.
pub(crate) fn throws(facts: Facts<'_>, body: &Body, op: Op) -> bool {
    known(facts, body, op) == Some(ExceptionFn::Throw)
}

/// Whether no handler of a closure does anything but read what it catches.
pub(crate) fn handlers_only_read(facts: Facts<'_>) -> bool {
    let components = facts.closure.components().iter();
    let mut functions = components.flat_map(|component| &component.functions);
    functions.all(|&func| {
        let body = facts.unit.functions[func].body.as_deref();
        body.is_none_or(|body| body.walk(body.root()).all(|op| only_reads(facts, body, op)))
    })
}

fn only_reads(facts: Facts<'_>, body: &Body, op: Op) -> bool {
    if known(facts, body, op) != Some(ExceptionFn::BeginCatch) {
        return true;
    }
    flow::call_result(body, op).is_none_or(|caught| {
        used_only(body, caught, |op, place| {
            let mut loads = false;
            flow::value_accesses(facts.unit, body, op, |touch| {
                loads |= matches!(touch, ValueAccess::Load { ptr, .. } if ptr == place);
            });
            loads
        })
    })
}

/// Whether every use of an address, and of places that are counted from it, is of a kind.
fn used_only(body: &Body, start: Value, is_fine: impl Fn(Op, Value) -> bool) -> bool {
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

fn known(facts: Facts<'_>, body: &Body, op: Op) -> Option<ExceptionFn> {
    match facts.closure.callee(facts.unit, body, op)? {
        Callee::Outside(func) => match facts.unit.known(func)? {
            Known::Exception(id) => Some(id),
            _ => None,
        },
        _ => None,
    }
}
