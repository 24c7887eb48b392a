//! Read-only structured ops and calls, which LICM may move as a whole.

use gradus_analysis::{AccessKind, MemoryAccess, MemoryRegion, PassContext};
use gradus_edit::is_pure;
use gradus_ir::{Body, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

/// Maximum number of ops in a read-only structured op.
const OPS_MAX: usize = 400;

/// Returns an op and all nested ops.
pub(crate) fn with_nested_ops(body: &Body, op: Op) -> Vec<Op> {
    let mut all = vec![op];
    for &region in body.op_regions(op) {
        all.extend(body.walk(region));
    }
    all
}

/// Returns whether the accesses read only program-visible memory and write only `errno`.
pub(crate) fn only_reads(accesses: &[MemoryAccess]) -> bool {
    accesses.iter().all(|access| match access.kind {
        AccessKind::Read => !matches!(
            access.place,
            MemoryRegion::Errno | MemoryRegion::Inaccessible
        ),
        AccessKind::Write => matches!(access.place, MemoryRegion::Errno),
        _ => false,
    })
}

/// Returns whether a call only computes values from its arguments and from memory, without side effects, and
/// always returns.
pub(crate) fn is_read_only_call(unit: &Unit, body: &Body, facts: &PassContext, op: Op) -> bool {
    let plain = matches!(body.kind(op), OpKind::Call(info) if info.bundles.is_empty());
    if !plain || body.results(op).is_empty() {
        return false;
    }
    let effects = facts.effects.of_call(unit, body, op);
    let accesses = facts.effects.of_op(unit, body, op);
    let reads = match has_declared_effects(unit, body, op) {
        true => accesses.iter().all(|a| a.kind == AccessKind::Read),
        false => !effects.calls_unknown && only_reads(&accesses),
    };
    reads && !effects.returns_fresh && !effects.may_throw && !effects.may_not_return
}

/// Returns whether a call's callee has no body and is not a known external, hence its declaration determines
/// the effects. A `pure` declaration is trusted: the result depends on arguments and memory only, not on
/// state such as the thread number.
fn has_declared_effects(unit: &Unit, body: &Body, op: Op) -> bool {
    let callee = unit.callee(body, op);
    callee.is_some_and(|f| unit.functions[f].body.is_none() && unit.known(f).is_none())
}

/// Returns whether a structured op only computes values and terminates: all nested ops are pure or satisfy
/// `reads`.
pub(crate) fn is_read_only(unit: &Unit, body: &Body, op: Op, reads: impl Fn(Op) -> bool) -> bool {
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
            plain && seen <= OPS_MAX
        })
    })
}

/// Returns the non-constant outside values that an op and its regions use.
pub(crate) fn outside_values(body: &Body, op: Op) -> Vec<Value> {
    if body.op_regions(op).is_empty() {
        return body
            .operands(op)
            .filter(|&v| body.as_const(v).is_none())
            .collect();
    }
    let all = with_nested_ops(body, op);
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
