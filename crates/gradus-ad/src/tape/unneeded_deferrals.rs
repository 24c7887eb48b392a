//! Deferred frees that a tape plan does not need.
//!
//! A deferred `free` keeps the loads from a block recomputable. If the plan recomputes no load of the block, the facts
//! are built again without the deferral.

use crate::analysis::body_facts::BodyFacts;
use crate::analysis::forward_value::Node;
use crate::tape::plan::TapePlan;
use gradus_ir::{Op, OpKind, Value};
use std::collections::{BTreeSet, HashSet};

/// Returns the allocations whose frees need no deferral: the reverse pass of `plan` reads nothing from the blocks.
pub fn unneeded_deferrals(facts: &BodyFacts<'_>, plan: &TapePlan) -> BTreeSet<Op> {
    let needless = |addresses: &HashSet<Value>| {
        addresses.iter().all(|address| {
            let mut uses = facts.body.uses(*address);
            !facts.shadow_may_be_primal(*address)
                && uses.all(|at| !is_recomputed(facts, plan, at.op))
        })
    };
    let blocks = facts.private_block_addresses().iter();
    blocks
        .filter(|(_, addresses)| needless(addresses))
        .map(|(made, _)| *made)
        .collect()
}

/// Returns true if the reverse pass of `plan` recomputes an op, or recomputes an enclosing loop.
fn is_recomputed(facts: &BodyFacts<'_>, plan: &TapePlan, op: Op) -> bool {
    let in_replay = |region| facts.enclosing_recomputed_loop(region).is_some();
    let loaded = match facts.body.kind(op) {
        OpKind::Load(_) => plan
            .recomputed
            .contains(&Node::Primal(facts.body.result(op))),
        _ => false,
    };
    loaded || facts.body.parent(op).is_some_and(in_replay)
}
