//! Forward slices over SSA values: the values that depend on a value.

use gradus_ir::externals::ExternalFn;
use gradus_ir::{Body, Op, OpKind, Unit, Use, Value};
use std::collections::HashSet;

/// Returns the values that depend on `from`, including `from`; `None` if memory, a branch, a trip count or a
/// call with effects depends on them. A return counts as an effect unless `may_return` is set. Values carried
/// by the loop `around` are followed within that loop only.
pub(crate) fn forward_slice(
    unit: &Unit,
    body: &Body,
    from: &[Value],
    around: Option<Op>,
    may_return: bool,
) -> Option<HashSet<Value>> {
    let mut found: HashSet<Value> = from.iter().copied().collect();
    let mut work: Vec<Value> = from.to_vec();
    while let Some(value) = work.pop() {
        for at in body.uses(value) {
            let next = match body.kind(at.op) {
                OpKind::Return if may_return => Vec::new(),
                kind if kind.is_terminator() || kind.is_loop() => {
                    operand_targets(body, at, around)?
                }
                _ if has_only_results(unit, body, at.op) => body.results(at.op).to_vec(),
                _ => return None,
            };
            work.extend(next.into_iter().filter(|v| found.insert(*v)));
        }
    }
    Some(found)
}

/// Returns true if the only effect of an op is its results. `errno` is ignored.
pub(super) fn has_only_results(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = unit.known_callee(body, op);
    let function = matches!(known, Some(ExternalFn::Math(_) | ExternalFn::Integer(_)));
    match body.kind(op) {
        OpKind::Call(info) if function => info.bundles.is_empty(),
        _ => gradus_edit::is_pure(unit, body, op),
    }
}

/// Returns the values that an operand of a sequential region op, or of a terminator inside, flows into; `None` for
/// a condition, a trip count and other ops. Results of `around` are left out.
fn operand_targets(body: &Body, at: Use, around: Option<Op>) -> Option<Vec<Value>> {
    let owner = match body.kind(at.op).is_terminator() {
        true => body.parent_op(at.op)?,
        false => at.op,
    };
    let sequential = matches!(
        body.kind(owner),
        OpKind::For { .. } | OpKind::Loop { .. } | OpKind::If | OpKind::Switch(_)
    );
    let targets = body.flow_targets(at);
    let left_out =
        |value: &Value| Some(owner) == around && owner != at.op && body.def_op(*value) == around;
    let kept = targets.iter().copied().filter(|value| !left_out(value));
    (sequential && !targets.is_empty()).then(|| kept.collect())
}
