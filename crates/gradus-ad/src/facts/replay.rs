//! Replay: loops whose iterations are run again in the return sweep, one by one, each before it is
//! undone, so that nothing of them need be kept from one sweep to the other.
//!
//! An iteration can be run again if it writes scratch memory only ([`super::scratch`]), if what else it
//! reads is still there in the return sweep, and if nothing that matters comes from the iteration before.

use super::Facts;
use super::influence::influence;
use super::make::MakeFacts;
use super::own_adds::is_independent;
use super::scratch::Scratch;
use gradus_analysis::{Alias, Clobbers};
use gradus_ir::{Body, Op, OpKind, Region, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A loop whose iterations can be run again.
#[derive(Clone, Debug, Default)]
pub struct Repeatable {
    /// Values from outside that an iteration takes.
    pub inputs: Vec<Value>,
    /// Carried values that matter only where they are what they were before the loop, and that value.
    pub constant: HashMap<Value, Value>,
    /// What depends on carried values otherwise: it must not be asked for.
    pub unknown: HashSet<Value>,
}

impl MakeFacts<'_> {
    /// Fills in the loops whose iterations can be run again: the outermost ones.
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

    /// What becomes of the values that a loop carries; `None` where an iteration needs one of them.
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

/// Whether a carried value, where it is read, is what it was before the loop: it only goes on, always
/// or in one arm of an `if` whose condition is the same in each iteration.
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

/// The values from outside that the ops of a loop's region take; no constants.
fn inputs(body: &Body, lp: Op) -> Vec<Value> {
    let inside = body.op_regions(lp)[0];
    let mut seen = HashSet::new();
    let operands = body.walk(inside).flat_map(|op| body.operands(op));
    operands
        .filter(|value| is_from_outside(body, lp, *value) && seen.insert(*value))
        .collect()
}

/// Whether a value, no constant, is made outside of a loop.
fn is_from_outside(body: &Body, lp: Op, value: Value) -> bool {
    let inside = body.op_regions(lp)[0];
    body.region_of(value)
        .is_some_and(|home| !body.is_inside(home, inside))
}

impl Facts<'_> {
    /// What running an iteration of a loop again takes, if it is run again.
    pub fn replayed(&self, lp: Op) -> Option<&Repeatable> {
        self.replayed.get(&lp)
    }
    /// The values from outside of a replayed loop that making snapshots inside of it may take.
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
    /// The loop around a region whose iterations are run again.
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
    /// All loops whose iterations are run again.
    pub fn all_replayed(&self) -> &BTreeMap<Op, Repeatable> {
        &self.replayed
    }
    /// The loops whose iterations could be run again.
    pub fn all_repeatable(&self) -> &BTreeMap<Op, Repeatable> {
        &self.repeatable
    }
    /// Of some loops around a region, those that run within one iteration of the replayed loop around it.
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
