//! Early availability: values that can be computed before control reaches their ops.
//!
//! Tape arrays over a whole loop nest require the trip counts of inner loops at the allocation.

use super::BodyFacts;
use gradus_ir::{BinaryOp, Body, Definition, Op, OpKind, Unit, Value};
use std::collections::HashSet;

/// Limit on the number of ops in a chain that is computed early.
const CHAIN_OPS_MAX: usize = 24;

/// The length of one dimension of a tape array: a loop's trip count plus a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyLength {
    /// The loop.
    pub of: Op,
    /// The constant.
    pub plus: i64,
}

impl BodyFacts<'_> {
    /// Returns an upper bound of a `for` loop's trip count, computable just before the enclosing op `anchor`.
    /// The bound is the trip count itself if available there. Otherwise a trip count of the form "index of an
    /// enclosing loop plus constant" is bounded by the maximum of that sum.
    pub fn length_bound_at(&self, unit: &Unit, op: Op, anchor: Op) -> Option<EarlyLength> {
        if self.trip_known_at(op, anchor) {
            return Some(EarlyLength { of: op, plus: 0 });
        }
        let (of, plus) = self.match_index_plus_constant(unit, self.body.operand(op, 0))?;
        let around = self.loops_between(op, None);
        let more = (plus - 1).max(0);
        (around.contains(&of) && self.trip_known_at(of, anchor))
            .then_some(EarlyLength { of, plus: more })
    }

    /// Matches `value` as the index of a loop plus a non-negative constant.
    fn match_index_plus_constant(&self, unit: &Unit, value: Value) -> Option<(Op, i64)> {
        let body = self.body;
        let number = |value: Value| {
            body.as_int(unit, value)
                .filter(|n| (0..1 << 31).contains(n))
        };
        let add = |op: &Op| *body.kind(*op) == OpKind::Binary(BinaryOp::Add);
        match body.values[value].def {
            Definition::Result(op, _) if add(&op) => {
                let (lp, plus) = self.match_index_plus_constant(unit, body.operand(op, 0))?;
                Some((lp, plus + number(body.operand(op, 1))?))
            }
            Definition::Param(region, at) => {
                let lp = body.owner(region)?;
                if !matches!(body.kind(lp), OpKind::For { .. }) {
                    return None;
                }
                let Some(carried) = at.checked_sub(1) else {
                    return Some((lp, 0));
                };
                // A carried value that increases by one.
                let end = body.yield_of(region)?;
                let next = body.def_op(body.operand(end, carried as usize))?;
                let steps = add(&next)
                    && body.operand(next, 0) == value
                    && number(body.operand(next, 1)) == Some(1);
                let start = number(body.operand(lp, at as usize))?;
                steps.then_some((lp, start))
            }
            _ => None,
        }
    }

    /// Returns true if the trip count of a `for` loop can be computed just before the enclosing op `anchor`.
    pub fn trip_known_at(&self, op: Op, anchor: Op) -> bool {
        is_available_before(self.body, self.body.operand(op, 0), anchor)
    }

    /// Returns the branch conditions that enclose `op` within `anchor` and can be computed just before
    /// `anchor`, each with the truth value of the arm that contains `op`. If a guard fails, control does not
    /// reach `op`, and the trip count of `op` may be meaningless.
    pub fn guards_known_at(&self, op: Op, anchor: Op) -> Vec<(Value, bool)> {
        let mut guards = Vec::new();
        let mut at = op;
        while at != anchor
            && let Some(region) = self.body.parent(at)
            && let Some(owner) = self.body.owner(region)
        {
            if matches!(self.body.kind(owner), OpKind::If) {
                let condition = self.body.operand(owner, 0);
                if is_available_before(self.body, condition, anchor) {
                    guards.push((condition, self.body.op_regions(owner)[0] == region));
                }
            }
            at = owner;
        }
        guards
    }

    /// Returns the ops, in order, that compute `value` from values that satisfy `have`.
    pub fn early_ops(&self, value: Value, have: &dyn Fn(Value) -> bool) -> Vec<Op> {
        chain(self.body, value, have).unwrap_or_default()
    }
}

/// Returns true if a value is visible just before `at`, or can be computed there from visible values.
pub(super) fn is_available_before(body: &Body, value: Value, at: Op) -> bool {
    let Some(home) = body.parent(at) else {
        return false;
    };
    let visible = |value: Value| body.is_visible_in(value, home);
    chain(body, value, &visible).is_some()
}

/// Returns true if a value can be computed from the values that satisfy `visible`.
pub(super) fn is_computable_from(
    body: &Body,
    value: Value,
    visible: &dyn Fn(Value) -> bool,
) -> bool {
    chain(body, value, visible).is_some()
}

fn chain(body: &Body, value: Value, have: &dyn Fn(Value) -> bool) -> Option<Vec<Op>> {
    let mut order: Vec<Op> = Vec::new();
    let mut seen: HashSet<Op> = HashSet::new();
    let mut work = vec![(value, false)];
    while let Some((value, operands_done)) = work.pop() {
        if body.as_const(value).is_some() || have(value) {
            continue;
        }
        let op = body.def_op(value)?;
        if operands_done {
            order.push(op);
            continue;
        }
        if !seen.insert(op) {
            continue;
        }
        if !may_execute_early(body, op) || seen.len() > CHAIN_OPS_MAX {
            return None;
        }
        work.push((value, true));
        work.extend(body.operands(op).map(|v| (v, false)));
    }
    Some(order)
}

fn may_execute_early(body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Binary(op) => !op.may_trap(),
        OpKind::Cast(_) | OpKind::ICmp(_) | OpKind::Select => true,
        _ => false,
    }
}
