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
                kind if kind.is_terminator() => terminator_operand_targets(body, at, around)?,
                OpKind::For { .. } | OpKind::Loop { .. } => loop_operand_targets(body, at)?,
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

/// Returns the values that an operand of a `for` or `loop` flows into.
fn loop_operand_targets(body: &Body, at: Use) -> Option<Vec<Value>> {
    let counted = matches!(body.kind(at.op), OpKind::For { .. });
    let index = at.index as usize;
    let region = body.op_regions(at.op)[0];
    let param = *body.region_params(region).get(index)?;
    match counted {
        // The trip count.
        true if index == 0 => None,
        true => Some(vec![param, body.results(at.op)[index - 1]]),
        false => Some(vec![param]),
    }
}

/// Returns the values that an operand of a terminator flows into.
fn terminator_operand_targets(body: &Body, at: Use, around: Option<Op>) -> Option<Vec<Value>> {
    let region = body.parent(at.op)?;
    let owner = body.owner(region)?;
    let index = at.index as usize;
    let results = |index: usize| match Some(owner) == around {
        true => None,
        false => body.results(owner).get(index).copied(),
    };
    let next = match (body.kind(at.op), body.kind(owner)) {
        (OpKind::Yield, OpKind::For { .. }) => {
            let param = body.region_params(region).get(index + 1).copied();
            [param, results(index)]
        }
        (OpKind::Yield, OpKind::If | OpKind::Switch(_)) => [results(index), None],
        (OpKind::Repeat, OpKind::Loop { .. }) => {
            let carried = body.region_params(region).len();
            match index.checked_sub(1)? {
                number if number < carried => [Some(body.region_params(region)[number]), None],
                number => [results(number - carried), None],
            }
        }
        _ => return None,
    };
    Some(next.into_iter().flatten().collect())
}
