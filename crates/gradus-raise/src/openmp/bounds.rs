//! What a loop does with the bounds of its thread's part.
//!
//! Raising makes the part the whole. That is right only where the bounds do nothing but count: they
//! start inductions and decide on another run. An optimiser may have read `y[lower - 1]` in front of the
//! loop, for the first iteration to find it as every later one does: then the start of each part
//! matters, and the loop must keep its own bounds.

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
            OpKind::Cast(_)
            | OpKind::Binary(_)
            | OpKind::ICmp(_)
            | OpKind::Select
            | OpKind::Freeze
            | OpKind::Addr { .. } => self.add(body.result(op)),
            OpKind::Call(_) => {
                let known = self.unit.callee(body, op).and_then(|f| self.unit.known(f));
                match known {
                    Some(Known::Integer(_)) => self.add(body.result(op)),
                    _ => return is_marker(self.unit, body, op),
                }
            }
            OpKind::Store(_) => {
                let into = body.def_op(body.operand(op, 1));
                return index == 0 && into.is_some_and(|slot| self.slots.contains(&slot));
            }
            OpKind::Loop { .. } => {
                return op == self.lp && is_induction(self.unit, body, op, index);
            }
            OpKind::Repeat => {
                let Some(lp) = owner(body, op) else {
                    return false;
                };
                let carried = body.operand_count(lp);
                match index.checked_sub(1 + carried) {
                    Some(result) => self.add(body.results(lp)[result]),
                    None => return index == 0 && lp == self.lp,
                }
            }
            OpKind::If => return self.decides_on_runs(op),
            OpKind::Yield => match owner(body, op) {
                Some(branch) if matches!(body.kind(branch), OpKind::If) => {
                    self.add(body.results(branch)[index]);
                }
                _ => return false,
            },
            _ => return false,
        }
        true
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
