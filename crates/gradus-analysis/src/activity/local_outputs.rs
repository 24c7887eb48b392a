//! Outputs in blocks that the call graph allocates and leaves behind an argument: `*y = malloc(…)`. A
//! one-call gradient allocates the shadows of such blocks, so the caller cannot seed cotangents in advance.
//!
//! Steps:
//!
//! 1. Visit each store of a varied float to memory reachable from an argument with a shadow.
//! 2. The store goes to a local block if its address is computed from an allocation in the same function.
//!
//! A loaded address counts as memory of the caller, which may have allocated the block before.

use crate::activity::memory::MemoryActivity;
use crate::memory::value_accesses::{ValueAccess, value_accesses, visible_call_result};
use crate::view::View;
use gradus_ir::externals::ExternalFn;
use gradus_ir::{Body, Op, Unit, Value};
use std::collections::HashSet;

/// Returns true if the call graph stores varied floats to its own blocks behind arguments with shadows, and
/// to no other memory behind such arguments.
pub fn writes_only_local_blocks(facts: View<'_>, classes: &MemoryActivity) -> bool {
    let mut copies = facts.memory.copies().iter();
    if copies.any(|copy| {
        let mut ends = copy.to.iter();
        ends.any(|to| classes.has_caller_shadow(to.class))
    }) {
        return false;
    }
    let (mut own, mut others) = (false, false);
    for (func, body) in facts.closure.bodies(facts.unit) {
        let blocks = allocated(facts.unit, body);
        for op in body.walk(body.root()) {
            value_accesses(facts.unit, body, op, |access| {
                let ValueAccess::Store { ptr, value } = access else {
                    // Not an error: loads write no memory.
                    return;
                };
                let numbers = facts.words.carries_float(func, value);
                if !numbers || !classes.value_varied(func, value) {
                    return;
                }
                let is_local = |class| !classes.has_caller_shadow(class);
                if !facts.memory.points_only_into(func, ptr, is_local) {
                    let fresh = blocks.contains(&body.address_base(ptr));
                    own |= fresh;
                    others |= !fresh;
                }
            });
        }
    }
    own && !others
}

/// Returns the blocks allocated by calls of a body.
fn allocated(unit: &Unit, body: &Body) -> HashSet<Value> {
    let is_allocation = |op: &Op| {
        let known = unit.known_callee(body, *op);
        matches!(known, Some(ExternalFn::Memory(function)) if function.allocation().is_some())
    };
    let calls = body.walk(body.root()).filter(is_allocation);
    calls
        .filter_map(|op| visible_call_result(body, op))
        .collect()
}
