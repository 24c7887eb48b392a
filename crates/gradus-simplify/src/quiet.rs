//! Structure that only reads: such a loop may be moved as a whole.

use crate::Facts;
use gradus_analysis::{AccessKind, MemoryAccess, Place};
use gradus_edit::is_pure;
use gradus_ir::{Body, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

/// How many ops such structure may hold.
const OPS: usize = 400;

/// An op and all inside it.
pub(crate) fn all_in(body: &Body, op: Op) -> Vec<Op> {
    let mut all = vec![op];
    for &region in body.op_regions(op) {
        all.extend(body.walk(region));
    }
    all
}

/// Whether these accesses read nothing but memory that the program can reach, and write nothing but
/// `errno`.
pub(crate) fn only_reads(accesses: &[MemoryAccess]) -> bool {
    accesses.iter().all(|access| match access.kind {
        AccessKind::Read => !matches!(access.place, Place::Errno | Place::Inaccessible),
        AccessKind::Write => matches!(access.place, Place::Errno),
        _ => false,
    })
}

/// Whether a call gives values that follow from its arguments and the memory that it reads, and does
/// nothing else: it comes back.
pub(crate) fn is_reading_call(unit: &Unit, body: &Body, facts: &Facts, op: Op) -> bool {
    let plain = matches!(body.kind(op), OpKind::Call(info) if info.bundles.is_empty());
    if !plain || body.results(op).is_empty() {
        return false;
    }
    let effects = facts.effects.of_call(unit, body, op);
    let accesses = facts.effects.of_op(unit, body, op);
    let reads = match is_declared(unit, body, op) {
        true => accesses.iter().all(|a| a.kind == AccessKind::Read),
        false => !effects.calls_unknown && only_reads(&accesses),
    };
    reads && !effects.returns_fresh && !effects.may_throw && !effects.may_not_return
}

/// Whether a call is to code that is not seen, so that its effects are what its declaration says. One that
/// says that it only reads (`pure`) is taken at its word: its value follows from arguments and memory, and
/// not from what else it could ask, like the number of its thread.
fn is_declared(unit: &Unit, body: &Body, op: Op) -> bool {
    let callee = unit.callee(body, op);
    callee.is_some_and(|f| unit.functions[f].body.is_none() && unit.known(f).is_none())
}

/// Whether structure gives values and does nothing else: it comes to its end, and what is in there is
/// pure, or reads as `reads` says.
pub(crate) fn is_quiet(unit: &Unit, body: &Body, op: Op, reads: impl Fn(Op) -> bool) -> bool {
    let mut seen = 0;
    body.op_regions(op).iter().all(|&region| {
        body.walk(region).all(|inner| {
            seen += 1;
            let plain = match body.kind(inner) {
                OpKind::For { .. } | OpKind::If | OpKind::Switch(_) | OpKind::Yield => true,
                OpKind::Load(access) => access.is_plain() && reads(inner),
                OpKind::Call(info) => info.bundles.is_empty() && reads(inner),
                _ => is_pure(unit, body, inner),
            };
            plain && seen <= OPS
        })
    })
}

/// The values of outside that an op uses, its regions included; constants left out.
pub(crate) fn used(body: &Body, op: Op) -> Vec<Value> {
    if body.op_regions(op).is_empty() {
        return body
            .operands(op)
            .filter(|&v| body.as_const(v).is_none())
            .collect();
    }
    let all = all_in(body, op);
    let inside: HashSet<Region> = all
        .iter()
        .flat_map(|&o| body.op_regions(o))
        .copied()
        .collect();
    let mut seen = HashSet::new();
    let operands = all.iter().flat_map(|&o| body.operands(o));
    operands
        .filter(|&v| body.region_of(v).is_some_and(|r| !inside.contains(&r)) && seen.insert(v))
        .collect()
}
