//! Reloadable carried values: `end[i]` of one row is the start of the next row.
//!
//! Optimisers replace the two loads `p[i]` and `p[i + 1]` by one load per iteration and carry the second
//! value. The reverse pass reloads `p[i]`, and the tape holds no carried values. The initial value was loaded
//! from `p` before the loop; the value of each later iteration was loaded by the previous iteration from
//! `p[i]`. Both loads must be recomputable.

use super::BodyFacts;
use crate::analysis::forward_value::{Availability, Node};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, Body, Op, OpKind, Region, Unit, Value};
use smallvec::smallvec;
use std::collections::HashMap;

/// A carried value that memory still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReloadableCarried {
    /// The load by which an iteration reads the value of the next iteration.
    pub load: Op,
    /// The address computation of the load.
    pub addr: Op,
    /// The address of the initial value.
    pub base: Value,
    /// The index of the loop.
    pub index: Value,
}

/// Finds all reloadable carried values of a body. The table of stable loads must be complete.
pub(super) fn find_reloadable(
    unit: &Unit,
    facts: &BodyFacts<'_>,
) -> HashMap<Value, ReloadableCarried> {
    let body = facts.body;
    let fors = body.walk(body.root());
    let fors = fors.filter(|op| matches!(body.kind(*op), OpKind::For { .. }));
    let of_loop = |lp: Op| {
        let params = body.region_params(body.op_regions(lp)[0]);
        (1..params.len()).filter_map(move |number| {
            let found = carried_load(unit, facts, lp, number)?;
            Some((params[number], found))
        })
    };
    fors.flat_map(of_loop).collect()
}

fn carried_load(
    unit: &Unit,
    facts: &BodyFacts<'_>,
    lp: Op,
    number: usize,
) -> Option<ReloadableCarried> {
    let body = facts.body;
    let region = body.op_regions(lp)[0];
    if facts.enclosing_recomputed_loop(region).is_some() {
        return None;
    }
    let end = body.yield_of(region)?;
    let load = recomputable_load(facts, body.operand(end, number - 1))?;
    let first = recomputable_load(facts, body.operand(lp, number))?;
    let same_type = body.ty(body.result(load)) == body.ty(body.result(first));
    if body.parent(load) != Some(region) || !same_type {
        return None;
    }
    let addr = body.def_op(body.operand(load, 0))?;
    let operands: Vec<Value> = body.operands(addr).collect();
    let (OpKind::Addr { .. }, &[base, next]) = (body.kind(addr), operands.as_slice()) else {
        return None;
    };
    let index = body.region_params(region)[0];
    let fits = base == body.operand(first, 0)
        && is_defined_outside(body, region, base)
        && is_one_more(unit, body, next, index);
    fits.then_some(ReloadableCarried {
        load,
        addr,
        base,
        index,
    })
}

/// Returns the plain, recomputable load that defines a value.
fn recomputable_load(facts: &BodyFacts<'_>, value: Value) -> Option<Op> {
    let op = facts.body.def_op(value)?;
    let plain = matches!(facts.body.kind(op), OpKind::Load(access) if access.is_plain());
    let stable = facts.is_stable(op) || is_planted(Mutant::ClobberedCarriedReloaded);
    (plain && stable).then_some(op)
}

fn is_defined_outside(body: &Body, region: Region, value: Value) -> bool {
    let home = body.region_of(value);
    !home.is_some_and(|home| body.is_inside(home, region))
}

fn is_one_more(unit: &Unit, body: &Body, value: Value, index: Value) -> bool {
    let Some(op) = body.def_op(value) else {
        return false;
    };
    let sum = matches!(body.kind(op), OpKind::Binary(BinaryOp::Add));
    sum && body.operand(op, 0) == index && body.as_int(unit, body.operand(op, 1)) == Some(1)
}

impl BodyFacts<'_> {
    /// Returns the location of a reloadable carried value.
    pub fn reloadable_carried(&self, value: Value) -> Option<&ReloadableCarried> {
        self.reloadable_carried.get(&value)
    }
    /// Returns the availability of a carried value by reloading.
    pub fn reload_availability(&self, value: Value) -> Option<Availability> {
        let found = self.reloadable_carried(value)?;
        Some(Availability::Recompute {
            from: smallvec![Node::Primal(found.base), Node::Primal(found.index)],
            cost: 3,
        })
    }
}
