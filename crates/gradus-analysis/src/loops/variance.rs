//! Loop variance: the loops in which a value may differ between iterations.
//!
//! A tape needs one copy of a value per iteration of the loops in which the value *varies*, not of all
//! loops around it. Loop masks, by depth, grow along uses to a fixpoint. Each value changes at most once
//! per enclosing loop.

use crate::cfg::nesting::is_loop;
use crate::memory::clobbers::Clobbers;
use crate::memory::effects::Effects;
use gradus_ir::{Body, Definition, Entity, Op, OpKind, Use, Value};

/// Bit d stands for the enclosing loop at depth d (outermost 0), the last bit for all deeper loops.
type Mask = u64;

/// The variance of all values of one body. Valid until the first edit.
#[derive(Clone, Debug)]
pub struct Variance<'a> {
    clobbers: &'a Clobbers<'a>,
    masks: Vec<Mask>,
}

impl<'a> Variance<'a> {
    /// Computes the variance of a body.
    pub fn of(clobbers: &'a Clobbers<'a>, effects: &Effects) -> Variance<'a> {
        let body = clobbers.alias.body;
        let mut solver = Solver {
            effects,
            table: Variance {
                clobbers,
                masks: vec![0; body.values.len()],
            },
            work: Vec::new(),
            queued: vec![false; body.values.len()],
        };
        for op in body.walk(body.root()) {
            solver.seed(op);
        }
        while let Some(value) = solver.work.pop() {
            solver.queued[value.index()] = false;
            for at in body.uses(value) {
                solver.propagate_use(value, at);
            }
        }
        solver.table
    }

    /// Returns the loops around a value's definition in which the value varies, outermost first.
    pub fn loops(&self, value: Value) -> Vec<Op> {
        let mask = self.mask(value);
        let mut found: Vec<Op> = self
            .loops_around(value)
            .into_iter()
            .filter(|lp| mask & self.bit(*lp) != 0)
            .collect();
        found.reverse();
        found
    }

    fn mask(&self, value: Value) -> Mask {
        match self.clobbers.alias.body.values[value].def {
            Definition::Const(_) => 0,
            _ => self.masks[value.index()],
        }
    }
    fn loops_around(&self, value: Value) -> Vec<Op> {
        let alias = self.clobbers.alias;
        let innermost = alias.nest.loop_of_value(alias.body, value);
        std::iter::successors(innermost, |lp| alias.nest.enclosing_loop(*lp)).collect()
    }
    fn bit(&self, lp: Op) -> Mask {
        1 << self.clobbers.alias.nest.loop_depth(lp).min(63)
    }
}

struct Solver<'a, 'b> {
    effects: &'b Effects,
    table: Variance<'a>,
    work: Vec<Value>,
    queued: Vec<bool>,
}

impl Solver<'_, '_> {
    fn body(&self) -> &Body {
        self.table.clobbers.alias.body
    }

    /// Returns the mask of all loops around an op.
    fn all(&self, op: Op) -> Mask {
        match self.table.clobbers.alias.nest.loop_depth(op) {
            depth @ 0..=63 => (1 << depth) - 1,
            _ => Mask::MAX,
        }
    }

    /// Adds loops to a value's mask, restricted to loops around its definition.
    fn add(&mut self, value: Value, mask: Mask) {
        let alias = self.table.clobbers.alias;
        let around = match alias.nest.loop_of_value(alias.body, value) {
            Some(lp) => self.all(lp) | self.table.bit(lp),
            None => 0,
        };
        let known = &mut self.table.masks[value.index()];
        let grown = *known | (mask & around);
        if grown != *known {
            *known = grown;
            if !std::mem::replace(&mut self.queued[value.index()], true) {
                self.work.push(value);
            }
        }
    }

    fn add_results(&mut self, op: Op, mask: Mask) {
        for result in self.body().results(op).to_vec() {
            self.add(result, mask);
        }
    }

    /// Seeds values that vary on their own: loop indices, loads, calls, allocations.
    fn seed(&mut self, op: Op) {
        let kind = self.body().kind(op).clone();
        if is_loop(&kind) {
            let bit = self.table.bit(op);
            for region in self.body().op_regions(op).to_vec() {
                for param in self.body().region_params(region).to_vec() {
                    self.add(param, bit);
                }
            }
        }
        match kind {
            OpKind::Load(access) if access.is_plain() => {
                let mask = self.changing_loops(op);
                self.add_results(op, mask);
            }
            OpKind::Call(_) => {
                let mask = self.call(op);
                self.add_results(op, mask);
            }
            OpKind::Invoke(_) => {
                let mask = self.call(op);
                let normal = self.body().op_regions(op)[0];
                for param in self.body().region_params(normal).to_vec() {
                    self.add(param, mask);
                }
                let all = self.all(op);
                self.add_results(op, all);
            }
            OpKind::Load(_)
            | OpKind::Alloca(_)
            | OpKind::AtomicRmw(..)
            | OpKind::CmpXchg { .. }
            | OpKind::Freeze
            | OpKind::LandingPad(_)
            | OpKind::Foreign(_) => {
                let all = self.all(op);
                self.add_results(op, all);
            }
            _ => {}
        }
    }

    /// Returns the loops around an op that write the memory read by the op.
    fn changing_loops(&self, op: Op) -> Mask {
        let clobbers = self.table.clobbers;
        let mut loops: Vec<Op> = clobbers.alias.nest.loops_of(op).collect();
        let mut mask = 0;
        while let Some(lp) = loops.pop() {
            if clobbers.invariant_in(op, lp) {
                break;
            }
            mask |= self.table.bit(lp);
        }
        mask
    }

    fn call(&self, op: Op) -> Mask {
        let alias = self.table.clobbers.alias;
        let effects = self.effects.of_call(alias.unit, alias.body, op);
        let repeatable = !effects.writes_memory()
            && !effects.inaccessible.writes
            && !effects.inaccessible.reads
            && !effects.returns_fresh
            && !effects.calls_unknown;
        match repeatable {
            true => self.changing_loops(op),
            false => self.all(op),
        }
    }

    // ---- propagation -----------------------------------------------------------------------

    /// Propagates a mask along a use: to the targets on control edges, or to all results. A varying condition or
    /// trip count varies all results of the op.
    fn propagate_use(&mut self, value: Value, at: Use) {
        let (mask, body) = (self.table.mask(value), self.body());
        let mut targets = body.flow_targets(at);
        match body.kind(at.op) {
            _ if !targets.is_empty() => {}
            OpKind::Repeat => {
                let owner = body.parent_op(at.op);
                targets.extend(owner.into_iter().flat_map(|op| body.results(op)).copied());
            }
            // The regions depend on the arguments.
            OpKind::Invoke(_) => {
                let regions = body.op_regions(at.op).iter();
                targets.extend(regions.flat_map(|r| body.region_params(*r)).copied());
            }
            _ => targets.extend_from_slice(body.results(at.op)),
        }
        targets
            .into_iter()
            .for_each(|target| self.add(target, mask));
    }
}
