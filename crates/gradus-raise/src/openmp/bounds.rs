//! What a loop does with the bounds of its thread's part.
//!
//! Raising makes the part the whole. That is right only where the bounds do nothing but count: they
//! start inductions, decide on another run, and with the number of the run tell an iteration its own
//! number (`lower + run`). An optimiser may have read `y[lower - 1]` in front of the loop, for the first
//! iteration to find it as every later one does: then the start of each part matters, and the loop must
//! keep its own bounds. Inside an iteration anything may be done with them: one that hands on to the
//! next nothing but inductions computes what its number says, whatever part it belongs to.

use super::loops::is_marker;
use gradus_edit::is_induction;
use gradus_ir::known::Known;
use gradus_ir::{Body, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

/// Whether what is read from `slots`, the lower and the upper bound of a part, only counts the runs of
/// `lp`.
pub(super) fn only_count(unit: &Unit, body: &Body, slots: &[Op], lp: Op) -> bool {
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
            return false;
        }
    }
    true
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
