//! What a loop does with the bounds of its thread's part.
//!
//! Raising makes the part the whole. That is right only where the bounds do nothing but count: they
//! start inductions, decide on another run, and with the number of the run tell an iteration its own
//! number (`lower + run`). What the runs of a loop hand on and does not start from the bounds is the thread's
//! own, also where it is a count: of the runs of the thread, which are not all. An optimiser may have read `y[lower - 1]` in front of the loop, for the first
//! iteration to find it as every later one does: then the start of each part matters, and the loop must
//! keep its own bounds. Inside an iteration anything may be done with them: one that hands on to the
//! next nothing but inductions computes what its number says, whatever part it belongs to. An optimiser may also
//! have iterations count from zero and add their part's start: such a count is a number, and is told by that from
//! one of the thread's own.

use super::loops::is_marker;
use gradus_edit::is_induction;
use gradus_ir::known::Known;
use gradus_ir::{BinaryOp, Body, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

/// Whether what is read from `slots`, the lower and the upper bound of a part, only counts the runs of
/// `lp`. Then which of the values carried by `lp` are the thread's own, as they start from something else.
pub(super) fn only_count(unit: &Unit, body: &Body, slots: &[Op], lp: Op) -> Option<Vec<usize>> {
    let mut flow = Flow {
        unit,
        body,
        slots,
        lp,
        seen: HashSet::new(),
        open: Vec::new(),
    };
    for &slot in slots {
        let reads = body.uses(body.result(slot)).map(|at| at.op);
        for read in reads.filter(|op| matches!(body.kind(*op), OpKind::Load(_))) {
            flow.add(body.result(read));
        }
    }
    while let Some(value) = flow.open.pop() {
        let mut uses = body.uses(value);
        if !uses.all(|at| flow.counts(at.op, at.index as usize)) {
            return None;
        }
    }
    flow.own()
}

/// The values that depend on the bounds.
struct Flow<'a> {
    unit: &'a Unit,
    body: &'a Body,
    slots: &'a [Op],
    lp: Op,
    seen: HashSet<Value>,
    open: Vec<Value>,
}

impl Flow<'_> {
    fn add(&mut self, value: Value) {
        if self.seen.insert(value) {
            self.open.push(value);
        }
    }

    /// The positions of the carried values that are the thread's own; `None` where one of them may be meant as a
    /// part of an iteration's number.
    fn own(&self) -> Option<Vec<usize>> {
        let body = self.body;
        let initial = body.operands(self.lp).enumerate();
        let others = initial.filter(|(_, value)| !self.seen.contains(value));
        let is_count = |at: usize| is_induction(self.unit, body, self.lp, at);
        let own = others.map(|(at, _)| at);
        let own: Vec<usize> = own
            .filter(|&at| !is_count(at) || !self.is_number(at))
            .collect();
        let unclear = self.is_used_inside() && own.iter().any(|&at| is_count(at));
        (!unclear).then_some(own)
    }

    /// Whether a count from somewhere else is only added to values that depend on the bounds.
    fn is_number(&self, position: usize) -> bool {
        let body = self.body;
        let carried = body.operand_count(self.lp);
        let mut open = vec![body.region_params(body.op_regions(self.lp)[0])[position]];
        while let Some(value) = open.pop() {
            for at in body.uses(value) {
                let mut others = body.operands(at.op).filter(|other| *other != value);
                match body.kind(at.op) {
                    OpKind::Repeat if (1..=carried).contains(&(at.index as usize)) => {}
                    OpKind::Repeat => return false,
                    _ if others.any(|other| self.seen.contains(&other)) => {}
                    OpKind::Binary(BinaryOp::Add) => open.push(body.result(at.op)),
                    _ => return false,
                }
            }
        }
        true
    }

    /// Whether an iteration does more with what depends on the bounds than to ask whether it is the last.
    fn is_used_inside(&self) -> bool {
        let more = |op: Op| self.is_inside(op) && !matches!(self.body.kind(op), OpKind::ICmp(_));
        let mut seen = self.seen.iter();
        seen.any(|value| self.body.uses(*value).any(|at| more(at.op)))
    }

    /// Whether an op does nothing with its operand `index` but count, now or in what it gives.
    fn counts(&mut self, op: Op, index: usize) -> bool {
        let body = self.body;
        match body.kind(op) {
            kind if kind.is_arithmetic() => self.add(body.result(op)),
            OpKind::Freeze => self.add(body.result(op)),
            OpKind::Call(_) if self.is_integer(op) => self.add(body.result(op)),
            OpKind::Load(_) | OpKind::Store(_) | OpKind::AtomicRmw(..) | OpKind::Call(_)
                if self.is_inside(op) => {}
            OpKind::Call(_) => return is_marker(self.unit, body, op),
            OpKind::Store(_) => {
                let into = body.def_op(body.operand(op, 1));
                return index == 0 && into.is_some_and(|slot| self.slots.contains(&slot));
            }
            OpKind::Loop { .. } if op == self.lp => {
                return is_induction(self.unit, body, op, index);
            }
            OpKind::Repeat => {
                let Some(lp) = owner(body, op) else {
                    return false;
                };
                if lp != self.lp && self.is_inside(lp) {
                    self.add_all_of(lp);
                    return true;
                }
                let carried = body.operand_count(lp);
                match index.checked_sub(1 + carried) {
                    Some(result) => self.add(body.results(lp)[result]),
                    None => return index == 0 && lp == self.lp,
                }
            }
            OpKind::If if self.decides_on_runs(op) => {}
            OpKind::If | OpKind::Switch(_) | OpKind::For { .. } | OpKind::Loop { .. }
                if self.is_inside(op) =>
            {
                self.add_all_of(op)
            }
            OpKind::Yield => match owner(body, op) {
                Some(branch) if matches!(body.kind(branch), OpKind::If) => {
                    self.add(body.results(branch)[index]);
                }
                Some(around) if self.is_inside(op) => self.add_all_of(around),
                _ => return false,
            },
            _ => return false,
        }
        true
    }

    /// All that a branch or loop gives, and what its runs hand on.
    fn add_all_of(&mut self, op: Op) {
        let body = self.body;
        for &result in body.results(op) {
            self.add(result);
        }
        for &region in body.op_regions(op) {
            for &param in body.region_params(region) {
                self.add(param);
            }
        }
    }

    fn is_integer(&self, call: Op) -> bool {
        let known = self.unit.callee(self.body, call);
        let known = known.and_then(|func| self.unit.known(func));
        matches!(known, Some(Known::Integer(_)))
    }

    /// Whether an op is part of an iteration.
    fn is_inside(&self, op: Op) -> bool {
        let mut around = std::iter::successors(owner(self.body, op), |op| owner(self.body, *op));
        around.any(|op| op == self.lp)
    }

    /// Whether a branch stands around the loop, or is the test at its top.
    fn decides_on_runs(&self, branch: Op) -> bool {
        let body = self.body;
        let mut at = Some(self.lp);
        while let Some(op) = at {
            if op == branch {
                return true;
            }
            at = owner(body, op);
        }
        let region: Region = body.op_regions(self.lp)[0];
        let last = body.last(region);
        last.is_some_and(|last| body.prev(last) == Some(branch))
    }
}

fn owner(body: &Body, op: Op) -> Option<Op> {
    body.parent(op).and_then(|region| body.owner(region))
}
