//! Loop recomputation: loops whose iterations the reverse pass recomputes one by one, each before its
//! reversal. The tape holds no values of such a loop.
//!
//! An iteration can be recomputed under three conditions. First, the iteration writes scratch memory only
//! ([`crate::analysis::body_facts::loop_scratch`]). Second, all other memory that the iteration reads is unchanged in the reverse pass.
//! Third, no required value depends on the previous iteration.

use super::BodyFacts;
use crate::analysis::body_facts::build::FactsBuilder;
use crate::analysis::body_facts::forward_slice::forward_slice;
use crate::analysis::body_facts::loop_scratch::ScratchQuery;
use gradus_analysis::{Alias, Clobbers};
use gradus_ir::{Body, Op, OpKind, Region, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A loop whose iterations can be recomputed.
#[derive(Clone, Debug, Default)]
pub struct RecomputableLoop {
    /// Values defined outside and used by an iteration.
    pub inputs: Vec<Value>,
    /// Carried values that equal their initial value at every use, mapped to the initial value.
    pub invariant_carried: HashMap<Value, Value>,
    /// Values that depend on any other carried value. The reverse pass must not require such a value.
    pub unknown_values: HashSet<Value>,
}

impl FactsBuilder<'_> {
    /// Collects the outermost recomputable loops.
    pub(super) fn find_recomputable_loops(
        &self,
        facts: &mut BodyFacts<'_>,
        alias: &Alias<'_>,
        clobbers: &Clobbers<'_>,
    ) {
        let body = facts.body;
        let mut found: BTreeMap<Op, RecomputableLoop> = BTreeMap::new();
        let returned = alias.points_to.returned(body);
        for lp in body
            .walk(body.root())
            .filter(|op| matches!(body.kind(*op), OpKind::For { .. }))
        {
            let around = std::iter::successors(Some(lp), |at| alias.nest.parent(*at));
            let taken = around
                .clone()
                .any(|at| found.contains_key(&at) || body.is_independent(at));
            let parallel = || {
                let mut inside = body.walk(body.op_regions(lp)[0]);
                inside.any(|op| body.is_independent(op))
            };
            let scratch = ScratchQuery {
                unit: self.unit,
                facts,
                alias,
                clobbers,
                effects: &self.closure.effects,
                returned: &returned,
            };
            if !taken
                && !parallel()
                && scratch.writes_only_scratch(lp)
                && let Some(repeatable) = self.classify_carried(facts, lp)
            {
                found.insert(lp, repeatable);
            }
        }
        facts.recomputable_loops = found;
    }

    /// Classifies the carried values of a loop; `None` if memory or control flow of an iteration depends on a
    /// carried value.
    fn classify_carried(&self, facts: &BodyFacts<'_>, lp: Op) -> Option<RecomputableLoop> {
        let body = facts.body;
        let region = body.op_regions(lp)[0];
        let end = body.yield_of(region)?;
        let mut found = RecomputableLoop {
            inputs: inputs(body, lp),
            ..RecomputableLoop::default()
        };
        let mut unknown = Vec::new();
        for (number, &param) in body.region_params(region).iter().enumerate().skip(1) {
            let (initial, next) = (body.operand(lp, number), body.operand(end, number - 1));
            match is_invariant_carried(facts, lp, param, next) {
                true => {
                    found.invariant_carried.insert(param, initial);
                    found
                        .inputs
                        .extend(body.as_const(initial).is_none().then_some(initial));
                }
                false => unknown.push(param),
            }
        }
        found.unknown_values = forward_slice(self.unit, body, &unknown, Some(lp), false)?;
        Some(found)
    }
}

/// Returns true if every use of a carried value sees the initial value: the value is yielded unchanged,
/// always or in one arm of an `if` with a loop-invariant condition.
fn is_invariant_carried(facts: &BodyFacts<'_>, lp: Op, param: Value, next: Value) -> bool {
    let body = facts.body;
    let Some(op) = body
        .def_op(next)
        .filter(|op| matches!(body.kind(*op), OpKind::If))
    else {
        return next == param;
    };
    let varies = |value: Value| {
        facts
            .varying_loops
            .get(&value)
            .is_some_and(|loops| loops.contains(&lp))
    };
    let arms: HashSet<Option<Region>> = body.uses(param).map(|at| body.parent(at.op)).collect();
    let goes_on = body.uses(param).all(|at| {
        let arm = body
            .parent(at.op)
            .filter(|arm| body.op_regions(op).contains(arm));
        arm.is_some()
            && matches!(body.kind(at.op), OpKind::Yield)
            && body.results(op).get(at.index as usize) == Some(&next)
    });
    goes_on && arms.len() <= 1 && !varies(body.operand(op, 0))
}

/// Returns the values used in a loop's region but defined outside, except constants.
fn inputs(body: &Body, lp: Op) -> Vec<Value> {
    let inside = body.op_regions(lp)[0];
    let mut seen = HashSet::new();
    let operands = body.walk(inside).flat_map(|op| body.operands(op));
    operands
        .filter(|value| is_defined_outside(body, lp, *value) && seen.insert(*value))
        .collect()
}

/// Returns true if a value is defined outside of a loop and is no constant.
fn is_defined_outside(body: &Body, lp: Op, value: Value) -> bool {
    let inside = body.op_regions(lp)[0];
    body.as_const(value).is_none() && !body.is_defined_in(value, inside)
}

impl BodyFacts<'_> {
    /// Returns the requirements of recomputing an iteration of `lp`, if the loop is recomputed.
    pub fn recomputed_loop(&self, lp: Op) -> Option<&RecomputableLoop> {
        self.recomputed_loops.get(&lp)
    }
    /// Returns the values, defined outside of a recomputed loop, that the snapshots in the loop require.
    pub fn snapshot_inputs(&self, lp: Op) -> Vec<Value> {
        let inside = self.body.op_regions(lp)[0];
        (self.snapshots.iter())
            .filter(|snapshot| self.body.is_nested_in(snapshot.anchor, inside))
            .flat_map(|snapshot| snapshot.inputs(self.body))
            .filter(|value| is_defined_outside(self.body, lp, *value))
            .collect()
    }
    /// Returns the enclosing recomputed loop of a region.
    pub fn enclosing_recomputed_loop(&self, region: Region) -> Option<Op> {
        if self.recomputed_loops.is_empty() {
            return None;
        }
        let owner = self.body.owner(region)?;
        self.body
            .op_and_ancestors(owner)
            .find(|op| self.recomputed_loops.contains_key(op))
    }
    /// Returns all recomputed loops.
    pub fn recomputed_loops(&self) -> &BTreeMap<Op, RecomputableLoop> {
        &self.recomputed_loops
    }
    /// Returns all recomputable loops.
    pub fn recomputable_loops(&self) -> &BTreeMap<Op, RecomputableLoop> {
        &self.recomputable_loops
    }
    /// Filters the loops that enclose a region: retains the loops within one iteration of the enclosing
    /// recomputed loop.
    pub fn loops_within_recomputed(&self, region: Region, loops: Vec<Op>) -> Vec<Op> {
        let Some(around) = self.enclosing_recomputed_loop(region) else {
            return loops;
        };
        let inside = self.body.op_regions(around)[0];
        let is_inside = |lp: &Op| self.body.is_nested_in(*lp, inside);
        loops.into_iter().filter(is_inside).collect()
    }
}
