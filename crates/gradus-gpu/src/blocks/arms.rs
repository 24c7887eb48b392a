//! Terminators of regions, and arms of branches without ops.

use gradus_ir::{Body, Op, OpKind, Region};

/// Returns whether a region only terminates, and is the first such arm of its op that yields results: those
/// are stored before the op, and the other arms overwrite them. An arm that consists of `unreachable` yields
/// nothing and is always empty.
pub(crate) fn is_empty_arm(body: &Body, region: Region) -> bool {
    let only_ends = |region: &Region| body.first(*region) == body.last(*region);
    let is_dead = |region: &Region| live_terminator(body, *region).is_none();
    let arms = body.owner(region).map(|op| body.op_regions(op));
    let first = arms.and_then(|arms| arms.iter().find(|r| only_ends(r) && !is_dead(r)));
    only_ends(&region) && (is_dead(&region) || first == Some(&region))
}

/// The terminator of a region, unless `unreachable` (which has no operands).
pub(crate) fn live_terminator(body: &Body, region: Region) -> Option<Op> {
    body.last(region).filter(|end| !is_unreachable(body, *end))
}

/// Returns whether a terminator is unreachable.
pub(crate) fn is_unreachable(body: &Body, end: Op) -> bool {
    matches!(body.kind(end), OpKind::Unreachable)
}
