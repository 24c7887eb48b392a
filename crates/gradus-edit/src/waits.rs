//! Loops in which a thread may wait for what another one writes.
//!
//! Such a loop goes round without getting anywhere: on some way through it all that decides whether it ends stays as
//! it was, but for what it reads of memory that others change: volatile or atomic loads, read-modify-writes that
//! leave the same when done twice (`atomicExch(&lock, 1)`), exchanges that compare with what does not change
//! (`atomicCAS(&lock, 0, 1)`), and any load where the loop has a fence. An exchange that compares with what
//! was read is no waiting: if nobody comes between, it is done (`do old = x; while (atomicCAS(p, old, f(old)) != old)`).
//!
//! What stays as it was is found from below: a number that the loop carries stays if on some way its next value is
//! itself, or is made of what stays. A list that is followed (`p = p->next`) does not stay, nor does what is counted.

use crate::is_pure;
use gradus_ir::{Body, ConstKind, Op, OpKind, Region, RmwOp, Unit, Value};
use std::collections::HashSet;

/// Whether a thread may wait in a loop for what another one writes.
pub fn may_wait(unit: &Unit, body: &Body, lp: Op) -> bool {
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
    let mut round = Round {
        unit,
        body,
        region,
        again: body.operand(end, 0),
        fenced: body
            .walk(region)
            .any(|op| matches!(body.kind(op), OpKind::Fence { .. })),
        still: HashSet::new(),
    };
    let params = body.region_params(region).to_vec();
    let next: Vec<(Value, Value)> = params
        .iter()
        .copied()
        .zip(body.operands(end).skip(1))
        .collect();
    let kept = next
        .iter()
        .filter(|(param, next)| round.may_be(*next, *param));
    let kept: Vec<Value> = kept.map(|(param, _)| *param).collect();
    round.still.extend(kept);
    loop {
        let grown = next
            .iter()
            .filter(|(param, next)| !round.still.contains(param) && round.is_still(*next));
        let grown: Vec<Value> = grown.map(|(param, _)| *param).collect();
        if grown.is_empty() {
            break;
        }
        round.still.extend(grown);
    }
    round.waits(&next)
}

/// One round of a loop.
struct Round<'a> {
    unit: &'a Unit,
    body: &'a Body,
    region: Region,
    /// Whether there is another round.
    again: Value,
    fenced: bool,
    /// What the loop carries that stays as it was, on some way.
    still: HashSet<Value>,
}

impl Round<'_> {
    fn is_inside(&self, value: Value) -> bool {
        let region = self.body.region_of(value);
        self.body.as_const(value).is_none()
            && region.is_some_and(|r| self.body.is_inside(r, self.region))
    }

    /// The values of which a value is one, depending on the way: those that arms give, and those chosen from.
    fn ways(&self, value: Value) -> Option<Vec<Value>> {
        let (body, op) = (self.body, self.body.def_op(value)?);
        match body.kind(op) {
            OpKind::Select => Some(vec![body.operand(op, 1), body.operand(op, 2)]),
            OpKind::If | OpKind::Switch(_) => {
                let index = body.results(op).iter().position(|r| *r == value)?;
                let arms = body.op_regions(op).iter().enumerate();
                let ends = arms.filter(|(arm, _)| self.goes_on(op, *arm));
                let ends = ends.filter_map(|(_, arm)| body.last(*arm));
                let yields = ends.filter(|end| matches!(body.kind(*end), OpKind::Yield));
                Some(yields.map(|end| body.operand(end, index)).collect())
            }
            _ => None,
        }
    }

    /// Whether there may be another round after an arm of a branch.
    fn goes_on(&self, branch: Op, arm: usize) -> bool {
        let body = self.body;
        if matches!(body.kind(branch), OpKind::If) && body.operand(branch, 0) == self.again {
            return arm == 0;
        }
        // An arm that does not yield ends the code that runs it: no iteration follows `__trap()`.
        let end = body.last(body.op_regions(branch)[arm]);
        let Some(end) = end.filter(|end| matches!(body.kind(*end), OpKind::Yield)) else {
            return false;
        };
        let index = body.results(branch).iter().position(|r| *r == self.again);
        let given = index.map(|index| body.operand(end, index));
        given.is_none_or(|given| body.as_int(self.unit, given) != Some(0))
    }

    /// Whether a value is another one on some way.
    fn may_be(&self, value: Value, what: Value) -> bool {
        let mut open = vec![value];
        let mut seen = HashSet::new();
        while let Some(value) = open.pop() {
            if value == what {
                return true;
            }
            if seen.insert(value) {
                open.extend(self.ways(value).into_iter().flatten());
            }
        }
        false
    }

    /// Whether a value is the same in the next round, on some way, if nobody else writes.
    fn is_still(&self, value: Value) -> bool {
        let body = self.body;
        // What is not on the list when all it is made of has been looked at changes.
        let mut known: HashSet<Value> = HashSet::new();
        let mut seen: HashSet<Value> = HashSet::new();
        let mut order = Vec::new();
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            order.push(value);
            if !self.is_inside(value) || self.still.contains(&value) {
                known.insert(value);
            } else if let Some(ways) = self.ways(value) {
                open.extend(ways);
            } else if let Some(op) = body.def_op(value).filter(|op| self.stays(*op)) {
                open.extend(body.operands(op));
            }
        }
        loop {
            let before = known.len();
            for &value in order.iter().rev() {
                let holds = match self.ways(value) {
                    Some(ways) => ways.iter().any(|way| known.contains(way)),
                    None => body.def_op(value).is_some_and(|op| {
                        self.stays(op) && body.operands(op).all(|v| known.contains(&v))
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

    /// Whether an op gives the same if its operands are the same and nobody else writes.
    fn stays(&self, op: Op) -> bool {
        let loads = matches!(self.body.kind(op), OpKind::Load(_));
        loads || self.looks(op) || is_pure(self.unit, self.body, op)
    }

    /// Whether an op looks at what others write, and does nothing by which this thread gets on.
    fn looks(&self, op: Op) -> bool {
        let body = self.body;
        match body.kind(op) {
            OpKind::Load(access) => self.fenced || !access.is_plain(),
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

    /// Whether all that decides about another round stays, and some of it is looked up.
    fn waits(&self, next: &[(Value, Value)]) -> bool {
        let body = self.body;
        let mut looked = false;
        let mut seen: HashSet<Value> = HashSet::new();
        let mut open = vec![self.again];
        while let Some(value) = open.pop() {
            if !self.is_inside(value) || !seen.insert(value) {
                continue;
            }
            if let Some((_, next)) = next.iter().find(|(param, _)| *param == value) {
                if !self.still.contains(&value) {
                    return false;
                }
                open.push(*next);
                continue;
            }
            let Some(op) = body.def_op(value) else {
                continue;
            };
            match (body.kind(op), self.ways(value)) {
                (OpKind::ICmp(_), _) if self.is_done(op) => {}
                (OpKind::If | OpKind::Switch(_), Some(ways)) => {
                    open.extend(ways);
                    open.push(body.operand(op, 0));
                }
                (OpKind::CmpXchg { .. }, _) if !self.looks(op) => {}
                _ => {
                    looked |= self.looks(op) && body.operands(op).all(|v| self.is_still(v));
                    open.extend(body.operands(op));
                    let inner = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
                    open.extend(inner.flat_map(|op| body.operands(op).collect::<Vec<Value>>()));
                }
            }
        }
        looked
    }

    /// Whether a comparison asks if an exchange was done that compares with what was read.
    fn is_done(&self, test: Op) -> bool {
        let body = self.body;
        let sides = [body.operand(test, 0), body.operand(test, 1)];
        let exchange = |value: Value| {
            let taken = body
                .def_op(value)
                .filter(|op| matches!(body.kind(*op), OpKind::ExtractValue(_)))?;
            let op = body.def_op(body.operand(taken, 0))?;
            (matches!(body.kind(op), OpKind::CmpXchg { .. }) && !self.looks(op)).then_some(op)
        };
        let compares =
            |one: Value, other: Value| exchange(one).is_some_and(|op| body.operand(op, 1) == other);
        compares(sides[0], sides[1]) || compares(sides[1], sides[0])
    }
}
