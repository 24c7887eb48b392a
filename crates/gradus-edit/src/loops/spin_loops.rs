//! Detects spin loops: loops in which a thread may wait for a store by another thread.
//!
//! A spin loop has a path through an iteration on which the loop condition depends only on unchanged values
//! and on reads of memory that other threads may change. Such reads are:
//!
//! - volatile or atomic loads;
//! - idempotent read-modify-writes (`atomicExch(&lock, 1)`);
//! - compare-exchanges with an invariant expected value (`atomicCAS(&lock, 0, 1)`);
//! - any load, if the loop contains a fence.
//!
//! A compare-exchange that expects a previously read value is no wait, because it succeeds without
//! interference (`do old = x; while (atomicCAS(p, old, f(old)) != old)`).
//!
//! The set of unchanged carried values is the least fixpoint: a carried value is unchanged if its next value
//! on some path is the value itself or is computed from unchanged values. A pointer chase (`p = p->next`) and
//! a counter change.

use crate::is_pure;
use gradus_ir::{Body, ConstKind, Op, OpKind, Region, RmwOp, Unit, Value};
use std::collections::HashSet;

/// Returns whether a thread may wait in loop `lp` for a store by another thread.
pub fn may_spin(unit: &Unit, body: &Body, lp: Op) -> bool {
    let OpKind::Loop { .. } = body.kind(lp) else {
        return false;
    };
    let region = body.op_regions(lp)[0];
    let Some(end) = body
        .last(region)
        .filter(|end| matches!(body.kind(*end), OpKind::Repeat))
    else {
        return false;
    };
    let mut round = SpinIteration {
        unit,
        body,
        region,
        again: body.operand(end, 0),
        has_fence: body
            .walk(region)
            .any(|op| matches!(body.kind(op), OpKind::Fence { .. })),
        unchanged: HashSet::new(),
    };
    let params = body.region_params(region).to_vec();
    let next: Vec<(Value, Value)> = params
        .iter()
        .copied()
        .zip(body.operands(end).skip(1))
        .collect();
    let kept = next
        .iter()
        .filter(|(param, next)| round.may_equal(*next, *param));
    let kept: Vec<Value> = kept.map(|(param, _)| *param).collect();
    round.unchanged.extend(kept);
    loop {
        let grown = next
            .iter()
            .filter(|(param, next)| !round.unchanged.contains(param) && round.is_unchanged(*next));
        let grown: Vec<Value> = grown.map(|(param, _)| *param).collect();
        if grown.is_empty() {
            break;
        }
        round.unchanged.extend(grown);
    }
    round.is_spinning(&next)
}

/// Iteration of a loop under analysis.
struct SpinIteration<'a> {
    unit: &'a Unit,
    body: &'a Body,
    region: Region,
    /// Loop condition: whether another iteration follows.
    again: Value,
    has_fence: bool,
    /// Carried values unchanged on some path.
    unchanged: HashSet<Value>,
}

impl SpinIteration<'_> {
    fn is_inside(&self, value: Value) -> bool {
        self.body.is_defined_in(value, self.region)
    }

    /// Returns the possible values of `value`, one per path: values yielded by branch arms, or operands of a
    /// select.
    fn possible_values(&self, value: Value) -> Option<Vec<Value>> {
        let (body, op) = (self.body, self.body.def_op(value)?);
        match body.kind(op) {
            OpKind::Select => Some(vec![body.operand(op, 1), body.operand(op, 2)]),
            OpKind::If | OpKind::Switch(_) => {
                let index = body.results(op).iter().position(|r| *r == value)?;
                let arms = body.op_regions(op).iter().enumerate();
                let ends = arms.filter(|(arm, _)| self.may_repeat_after(op, *arm));
                let ends = ends.filter_map(|(_, arm)| body.last(*arm));
                let yields = ends.filter(|end| matches!(body.kind(*end), OpKind::Yield));
                Some(yields.map(|end| body.operand(end, index)).collect())
            }
            _ => None,
        }
    }

    /// Returns whether another iteration may follow after an arm of a branch.
    fn may_repeat_after(&self, branch: Op, arm: usize) -> bool {
        let body = self.body;
        if matches!(body.kind(branch), OpKind::If) && body.operand(branch, 0) == self.again {
            return arm == 0;
        }
        // An arm without a yield ends the execution: no iteration follows `__trap()`.
        let end = body.last(body.op_regions(branch)[arm]);
        let Some(end) = end.filter(|end| matches!(body.kind(*end), OpKind::Yield)) else {
            return false;
        };
        let index = body.results(branch).iter().position(|r| *r == self.again);
        let given = index.map(|index| body.operand(end, index));
        given.is_none_or(|given| body.as_int(self.unit, given) != Some(0))
    }

    /// Returns whether `value` equals `what` on some path.
    fn may_equal(&self, value: Value, what: Value) -> bool {
        let mut open = vec![value];
        let mut seen = HashSet::new();
        while let Some(value) = open.pop() {
            if value == what {
                return true;
            }
            if seen.insert(value) {
                open.extend(self.possible_values(value).into_iter().flatten());
            }
        }
        false
    }

    /// Returns whether `value` is unchanged in the next iteration on some path, if no other thread stores.
    fn is_unchanged(&self, value: Value) -> bool {
        let body = self.body;
        // A value not in `known` after all its operands were visited changes.
        let mut known: HashSet<Value> = HashSet::new();
        let mut seen: HashSet<Value> = HashSet::new();
        let mut order = Vec::new();
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            order.push(value);
            if !self.is_inside(value) || self.unchanged.contains(&value) {
                known.insert(value);
            } else if let Some(ways) = self.possible_values(value) {
                open.extend(ways);
            } else if let Some(op) = body.def_op(value).filter(|op| self.is_deterministic(*op)) {
                open.extend(body.operands(op));
            }
        }
        loop {
            let before = known.len();
            for &value in order.iter().rev() {
                let holds = match self.possible_values(value) {
                    Some(ways) => ways.iter().any(|way| known.contains(way)),
                    None => body.def_op(value).is_some_and(|op| {
                        self.is_deterministic(op) && body.operands(op).all(|v| known.contains(&v))
                    }),
                };
                if holds {
                    known.insert(value);
                }
            }
            if known.len() == before {
                return known.contains(&value);
            }
        }
    }

    /// Returns whether an op yields equal results for equal operands, if no other thread stores.
    fn is_deterministic(&self, op: Op) -> bool {
        let loads = matches!(self.body.kind(op), OpKind::Load(_));
        loads || self.observes_other_threads(op) || is_pure(self.unit, self.body, op)
    }

    /// Returns whether an op reads memory of other threads without making progress for its own thread.
    fn observes_other_threads(&self, op: Op) -> bool {
        let body = self.body;
        match body.kind(op) {
            OpKind::Load(access) => self.has_fence || !access.is_plain(),
            OpKind::AtomicRmw(
                RmwOp::Add | RmwOp::Sub | RmwOp::Xor | RmwOp::FAdd | RmwOp::FSub,
                _,
            ) => {
                let by = body.as_const(body.operand(op, 1));
                let zero = |kind: &ConstKind| matches!(kind, ConstKind::Zero | ConstKind::Int(0));
                by.is_some_and(|by| zero(&self.unit.constant(by).kind))
            }
            OpKind::AtomicRmw(
                RmwOp::UIncWrap | RmwOp::UDecWrap | RmwOp::USubCond | RmwOp::USubSat | RmwOp::Nand,
                _,
            ) => false,
            OpKind::AtomicRmw(..) => true,
            OpKind::CmpXchg { .. } => !self.is_inside(body.operand(op, 1)),
            _ => false,
        }
    }

    /// Returns whether all values that decide on another iteration are unchanged and depend on a read of
    /// shared memory.
    fn is_spinning(&self, next: &[(Value, Value)]) -> bool {
        let body = self.body;
        let mut looked = false;
        let mut seen: HashSet<Value> = HashSet::new();
        let mut open = vec![self.again];
        while let Some(value) = open.pop() {
            if !self.is_inside(value) || !seen.insert(value) {
                continue;
            }
            if let Some((_, next)) = next.iter().find(|(param, _)| *param == value) {
                if !self.unchanged.contains(&value) {
                    return false;
                }
                open.push(*next);
                continue;
            }
            let Some(op) = body.def_op(value) else {
                continue;
            };
            match (body.kind(op), self.possible_values(value)) {
                (OpKind::ICmp(_), _) if self.tests_exchange_success(op) => {}
                (OpKind::If | OpKind::Switch(_), Some(ways)) => {
                    open.extend(ways);
                    open.push(body.operand(op, 0));
                }
                (OpKind::CmpXchg { .. }, _) if !self.observes_other_threads(op) => {}
                _ => {
                    looked |= self.observes_other_threads(op)
                        && body.operands(op).all(|v| self.is_unchanged(v));
                    open.extend(body.operands(op));
                    let inner = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
                    open.extend(inner.flat_map(|op| body.operands(op).collect::<Vec<Value>>()));
                }
            }
        }
        looked
    }

    /// Returns whether a comparison tests the success of a compare-exchange that expects a previously read
    /// value.
    fn tests_exchange_success(&self, test: Op) -> bool {
        let body = self.body;
        let sides = [body.operand(test, 0), body.operand(test, 1)];
        let exchange = |value: Value| {
            let taken = body
                .def_op(value)
                .filter(|op| matches!(body.kind(*op), OpKind::ExtractValue(_)))?;
            let op = body.def_op(body.operand(taken, 0))?;
            (matches!(body.kind(op), OpKind::CmpXchg { .. }) && !self.observes_other_threads(op))
                .then_some(op)
        };
        let compares =
            |one: Value, other: Value| exchange(one).is_some_and(|op| body.operand(op, 1) == other);
        compares(sides[0], sides[1]) || compares(sides[1], sides[0])
    }
}
