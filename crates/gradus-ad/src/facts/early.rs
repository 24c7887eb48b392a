//! Values that can be computed before their ops are reached: trip counts of inner loops, wanted
//! where an array over a whole nest is made.

use super::Facts;
use gradus_ir::{BinaryOp, Body, Definition, Op, OpKind, Unit, Value};
use std::collections::HashSet;

/// Longer chains are not computed twice.
const LONGEST: usize = 24;

/// How long an array is in one dimension: as a loop's trip count, and so much more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// The loop.
    pub of: Op,
    /// What is added.
    pub more: i64,
}

impl Facts<'_> {
    /// How often a `for` runs at most, known just before `anchor`, which contains it: its trip count, where
    /// that can be computed there; else, where it is the index of a loop around it and a number more, the
    /// most that this comes to.
    pub fn length_at(&self, unit: &Unit, op: Op, anchor: Op) -> Option<Length> {
        if self.trip_known_at(op, anchor) {
            return Some(Length { of: op, more: 0 });
        }
        let (of, plus) = self.index_plus(unit, self.body.operand(op, 0))?;
        let around = self.loops_between(op, None);
        let more = (plus - 1).max(0);
        (around.contains(&of) && self.trip_known_at(of, anchor)).then_some(Length { of, more })
    }

    /// The loop whose index plus a number, which is not negative, a value is.
    fn index_plus(&self, unit: &Unit, value: Value) -> Option<(Op, i64)> {
        let body = self.body;
        let number = |value: Value| {
            body.as_int(unit, value)
                .filter(|n| (0..1 << 31).contains(n))
        };
        let add = |op: &Op| *body.kind(*op) == OpKind::Binary(BinaryOp::Add);
        match body.values[value].def {
            Definition::Result(op, _) if add(&op) => {
                let (lp, plus) = self.index_plus(unit, body.operand(op, 0))?;
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
                // It is carried along and grows by one.
                let end = body.last(region)?;
                if !matches!(body.kind(end), OpKind::Yield) {
                    return None;
                }
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

    /// Whether the trip count of a `for` can be computed just before `anchor`, which contains it.
    pub fn trip_known_at(&self, op: Op, anchor: Op) -> bool {
        is_known_before(self.body, self.body.operand(op, 0), anchor)
    }

    /// The conditions of branches that `op` stands in, inside of `anchor`, as far as they can be computed
    /// just before `anchor`; each with the truth value that leads to `op`. Where one does not hold, `op`
    /// is not reached, and its trip count may mean nothing.
    pub fn guards_known_at(&self, op: Op, anchor: Op) -> Vec<(Value, bool)> {
        let mut guards = Vec::new();
        let mut at = op;
        while at != anchor
            && let Some(region) = self.body.parent(at)
            && let Some(owner) = self.body.owner(region)
        {
            if matches!(self.body.kind(owner), OpKind::If) {
                let condition = self.body.operand(owner, 0);
                if is_known_before(self.body, condition, anchor) {
                    guards.push((condition, self.body.op_regions(owner)[0] == region));
                }
            }
            at = owner;
        }
        guards
    }

    /// The ops to do, in order, to have `value` where values that satisfy `have` are at hand.
    pub fn early_ops(&self, value: Value, have: &dyn Fn(Value) -> bool) -> Vec<Op> {
        chain(self.body, value, have).unwrap_or_default()
    }
}

/// Whether a value is visible just before `at`, or can be computed there from what is.
pub(super) fn is_known_before(body: &Body, value: Value, at: Op) -> bool {
    let Some(home) = body.parent(at) else {
        return false;
    };
    let visible = |value: Value| {
        body.region_of(value)
            .is_none_or(|region| body.is_inside(home, region))
    };
    chain(body, value, &visible).is_some()
}

/// Whether a value can be computed where those are visible for which `visible` says so.
pub(super) fn is_known_where(body: &Body, value: Value, visible: &dyn Fn(Value) -> bool) -> bool {
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
        if !can_run_early(body, op) || seen.len() > LONGEST {
            return None;
        }
        work.push((value, true));
        work.extend(body.operands(op).map(|v| (v, false)));
    }
    Some(order)
}

fn can_run_early(body: &Body, op: Op) -> bool {
    use gradus_ir::BinaryOp::{SDiv, SRem, UDiv, URem};
    match body.kind(op) {
        OpKind::Binary(UDiv | SDiv | URem | SRem) => false,
        OpKind::Binary(_) | OpKind::Cast(_) | OpKind::ICmp(_) | OpKind::Select => true,
        _ => false,
    }
}
