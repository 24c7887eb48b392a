//! Loop recomputation: loops whose iterations the reverse pass recomputes one by one, each before its
//! reversal. The tape holds no values of such a loop.
//!
//! An iteration can be recomputed under three conditions. First, the iteration writes scratch memory only
//! ([`crate::analysis::body_facts::loop_scratch`]). Second, all other memory that the iteration reads is unchanged in the reverse pass.
//! Third, no required value depends on the previous iteration.

use super::Facts;
use crate::analysis::body_facts::build::MakeFacts;
use crate::analysis::body_facts::exclusive_adds::is_independent;
use crate::analysis::body_facts::forward_slice::influence;
use crate::analysis::body_facts::loop_scratch::Scratch;
use gradus_analysis::{Alias, Clobbers};
use gradus_ir::{Body, Op, OpKind, Region, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A loop whose iterations can be recomputed.
#[derive(Clone, Debug, Default)]
pub struct Repeatable {
    /// Values defined outside and used by an iteration.
    pub inputs: Vec<Value>,
    /// Carried values that equal their initial value at every use, mapped to the initial value.
    pub constant: HashMap<Value, Value>,
    /// Values that depend on any other carried value. The reverse pass must not require such a value.
    pub unknown: HashSet<Value>,
}

impl MakeFacts<'_> {
    /// Collects the outermost recomputable loops.
    pub(super) fn repeatable(
        &self,
        facts: &mut Facts<'_>,
        alias: &Alias<'_>,
        clobbers: &Clobbers<'_>,
    ) {
        let body = facts.body;
        let mut found: BTreeMap<Op, Repeatable> = BTreeMap::new();
        let returned = alias.points_to.returned(body);
        for lp in body
            .walk(body.root())
            .filter(|op| matches!(body.kind(*op), OpKind::For { .. }))
        {
            let around = std::iter::successors(Some(lp), |at| alias.nest.parent(*at));
            let taken = around
                .clone()
                .any(|at| found.contains_key(&at) || is_independent(body, at));
            let parallel = || {
                let mut inside = body.walk(body.op_regions(lp)[0]);
                inside.any(|op| is_independent(body, op))
            };
            let scratch = Scratch {
                unit: self.unit,
                facts,
                alias,
                clobbers,
                effects: &self.closure.effects,
                returned: &returned,
            };
            if !taken
                && !parallel()
                && scratch.suffices(lp)
                && let Some(repeatable) = self.carried(facts, lp)
            {
                found.insert(lp, repeatable);
            }
        }
        facts.repeatable = found;
    }

    /// Classifies the carried values of a loop; `None` if memory or control flow of an iteration depends on a
    /// carried value.
    fn carried(&self, facts: &Facts<'_>, lp: Op) -> Option<Repeatable> {
        let body = facts.body;
        let region = body.op_regions(lp)[0];
        let end = body.last(region);
        let end = end.filter(|end| matches!(body.kind(*end), OpKind::Yield))?;
        let mut found = Repeatable {
            inputs: inputs(body, lp),
            ..Repeatable::default()
        };
        let mut unknown = Vec::new();
        for (number, &param) in body.region_params(region).iter().enumerate().skip(1) {
            let (initial, next) = (body.operand(lp, number), body.operand(end, number - 1));
            match stays(facts, lp, param, next) {
                true => {
                    found.constant.insert(param, initial);
                    found
                        .inputs
                        .extend(body.as_const(initial).is_none().then_some(initial));
                }
                false => unknown.push(param),
            }
        }
        found.unknown = influence(self.unit, body, &unknown, Some(lp), false)?;
        Some(found)
    }
}

/// Returns true if every use of a carried value sees the initial value: the value is yielded unchanged,
/// always or in one arm of an `if` with a loop-invariant condition.
fn stays(facts: &Facts<'_>, lp: Op, param: Value, next: Value) -> bool {
    let body = facts.body;
    let Some(op) = body
        .def_op(next)
        .filter(|op| matches!(body.kind(*op), OpKind::If))
    else {
        return next == param;
    };
    let varies = |value: Value| {
        facts
            .varying
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
        .filter(|value| is_from_outside(body, lp, *value) && seen.insert(*value))
        .collect()
}

/// Returns true if a value is defined outside of a loop and is no constant.
fn is_from_outside(body: &Body, lp: Op, value: Value) -> bool {
    let inside = body.op_regions(lp)[0];
    body.region_of(value)
        .is_some_and(|home| !body.is_inside(home, inside))
}

impl Facts<'_> {
    /// Returns the requirements of recomputing an iteration of `lp`, if the loop is recomputed.
    pub fn replayed(&self, lp: Op) -> Option<&Repeatable> {
        self.replayed.get(&lp)
    }
    /// Returns the values, defined outside of a recomputed loop, that the snapshots in the loop require.
    pub fn snapshot_inputs(&self, lp: Op) -> Vec<Value> {
        let inside = self.body.op_regions(lp)[0];
        let made_inside = |anchor: Op| {
            self.body
                .parent(anchor)
                .is_some_and(|r| self.body.is_inside(r, inside))
        };
        (self.snapshots.iter())
            .filter(|snapshot| made_inside(snapshot.anchor))
            .flat_map(|snapshot| snapshot.inputs(self.body))
            .filter(|value| is_from_outside(self.body, lp, *value))
            .collect()
    }
    /// Returns the enclosing recomputed loop of a region.
    pub fn replayed_around(&self, region: Region) -> Option<Op> {
        if self.replayed.is_empty() {
            return None;
        }
        let mut around = std::iter::successors(Some(region), |at| self.body.enclosing(*at));
        around.find_map(|at| {
            self.body
                .owner(at)
                .filter(|op| self.replayed.contains_key(op))
        })
    }
    /// Returns all recomputed loops.
    pub fn all_replayed(&self) -> &BTreeMap<Op, Repeatable> {
        &self.replayed
    }
    /// Returns all recomputable loops.
    pub fn all_repeatable(&self) -> &BTreeMap<Op, Repeatable> {
        &self.repeatable
    }
    /// Filters the loops that enclose a region: retains the loops within one iteration of the enclosing
    /// recomputed loop.
    pub fn within_replay(&self, region: Region, loops: Vec<Op>) -> Vec<Op> {
        let Some(around) = self.replayed_around(region) else {
            return loops;
        };
        let inside = self.body.op_regions(around)[0];
        let is_inside = |lp: &Op| {
            self.body
                .parent(*lp)
                .is_some_and(|r| self.body.is_inside(r, inside))
        };
        loops.into_iter().filter(is_inside).collect()
    }
}
