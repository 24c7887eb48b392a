//! Loop bounds of a thread's range: does the loop use the bounds for counting only?
//!
//! Raising replaces a thread's range by the whole iteration space. The replacement is legal only if the bounds
//! merely count: they start inductions, decide on another iteration, and give the iteration number together
//! with the trip number (`lower + run`).
//!
//! - A carried value that does not start from the bounds is private to the thread, even a count: it counts the
//!   thread's trips, not all trips.
//! - An optimiser may have hoisted a load of `y[lower - 1]` for the first iteration. The start of each range
//!   then matters, and the loop must keep its bounds.
//! - Within an iteration any use of the bounds is legal: a loop that carries only inductions computes a
//!   function of the iteration number, in any range.
//! - An optimiser may let iterations count from zero and add the range's start. Such a count is part of an
//!   iteration number, recognised by the addition.

use gradus_edit::is_induction;
use gradus_ir::externals::ExternalFn;
use gradus_ir::{BinaryOp, Body, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

/// Returns the carried values of `lp` private to the thread, because they start from other values than the
/// bounds. Returns `None` if the loads of `slots`, the lower and upper bound, have uses other than counting.
pub(super) fn thread_private_carried(
    unit: &Unit,
    body: &Body,
    slots: &[Op],
    lp: Op,
) -> Option<Vec<usize>> {
    let mut flow = BoundFlow {
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
        if !uses.all(|at| flow.only_counts(at.op, at.index as usize)) {
            return None;
        }
    }
    flow.private_positions()
}

/// The values that depend on the bounds.
struct BoundFlow<'a> {
    unit: &'a Unit,
    body: &'a Body,
    slots: &'a [Op],
    lp: Op,
    seen: HashSet<Value>,
    open: Vec<Value>,
}

impl BoundFlow<'_> {
    fn add(&mut self, value: Value) {
        if self.seen.insert(value) {
            self.open.push(value);
        }
    }

    /// Returns the positions of carried values private to the thread; `None` if one may be part of an iteration
    /// number.
    fn private_positions(&self) -> Option<Vec<usize>> {
        let body = self.body;
        let initial = body.operands(self.lp).enumerate();
        let others = initial.filter(|(_, value)| !self.seen.contains(value));
        let is_count = |at: usize| is_induction(self.unit, body, self.lp, at);
        let own = others.map(|(at, _)| at);
        let own: Vec<usize> = own
            .filter(|&at| !is_count(at) || !self.is_added_to_bounds(at))
            .collect();
        let unclear = self.is_used_inside() && own.iter().any(|&at| is_count(at));
        (!unclear).then_some(own)
    }

    /// Returns true if a count with an unrelated start is only added to values that depend on the bounds.
    fn is_added_to_bounds(&self, position: usize) -> bool {
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

    /// Returns true if an iteration uses bound-dependent values beyond the test for the last iteration.
    fn is_used_inside(&self) -> bool {
        let more =
            |op: Op| self.is_in_iteration(op) && !matches!(self.body.kind(op), OpKind::ICmp(_));
        let mut seen = self.seen.iter();
        seen.any(|value| self.body.uses(*value).any(|at| more(at.op)))
    }

    /// Returns true if `op` only counts with operand `index`, directly or through its results.
    fn only_counts(&mut self, op: Op, index: usize) -> bool {
        let body = self.body;
        match body.kind(op) {
            kind if kind.is_arithmetic() => self.add(body.result(op)),
            OpKind::Freeze => self.add(body.result(op)),
            OpKind::Call(_) if self.is_integer(op) => self.add(body.result(op)),
            OpKind::Load(_) | OpKind::Store(_) | OpKind::AtomicRmw(..) | OpKind::Call(_)
                if self.is_in_iteration(op) => {}
            OpKind::Call(_) => return self.unit.marker_callee(body, op).is_some(),
            OpKind::Store(_) => {
                let into = body.def_op(body.operand(op, 1));
                return index == 0 && into.is_some_and(|slot| self.slots.contains(&slot));
            }
            OpKind::Loop { .. } if op == self.lp => {
                return is_induction(self.unit, body, op, index);
            }
            OpKind::Repeat => {
                let Some(lp) = body.parent_op(op) else {
                    return false;
                };
                if lp != self.lp && self.is_in_iteration(lp) {
                    self.add_all_of(lp);
                    return true;
                }
                let carried = body.operand_count(lp);
                match index.checked_sub(1 + carried) {
                    Some(result) => self.add(body.results(lp)[result]),
                    None => return index == 0 && lp == self.lp,
                }
            }
            OpKind::If if self.guards_or_tests_loop(op) => {}
            OpKind::If | OpKind::Switch(_) | OpKind::For { .. } | OpKind::Loop { .. }
                if self.is_in_iteration(op) =>
            {
                self.add_all_of(op)
            }
            OpKind::Yield => match body.parent_op(op) {
                Some(branch) if matches!(body.kind(branch), OpKind::If) => {
                    self.add(body.results(branch)[index]);
                }
                Some(around) if self.is_in_iteration(op) => self.add_all_of(around),
                _ => return false,
            },
            _ => return false,
        }
        true
    }

    /// Adds all results of a branch or loop, and its region parameters.
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
        matches!(known, Some(ExternalFn::Integer(_)))
    }

    /// Returns true if `op` is part of an iteration.
    fn is_in_iteration(&self, op: Op) -> bool {
        op != self.lp && self.body.is_ancestor(self.lp, op)
    }

    /// Returns true if a branch encloses the loop, or is the test at the loop's top.
    fn guards_or_tests_loop(&self, branch: Op) -> bool {
        let body = self.body;
        if body.is_ancestor(branch, self.lp) {
            return true;
        }
        let region: Region = body.op_regions(self.lp)[0];
        let last = body.last(region);
        last.is_some_and(|last| body.prev(last) == Some(branch))
    }
}
