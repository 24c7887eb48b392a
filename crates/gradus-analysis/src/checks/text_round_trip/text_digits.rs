//! Digits of text: the program itself converts characters to numbers, as in `number = 10 * number +
//! (text[i] - '0')`.
//!
//! Characters of text written from active numbers are sources. The bit edges of [`Flow`] propagate sources
//! through integer arithmetic and memory. Each useful conversion to a float is a read of the text.
//! Comparisons, lengths and addresses are step functions and have no bit edges.

use crate::activity::flow_graph::{Flow, FlowNode};
use crate::activity::memory::MemoryActivity;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::AliasSetId;
use crate::types::lattice;
use crate::view::View;
use gradus_ir::{Body, CastOp, FuncId, Op, OpKind, Value};
use std::collections::HashSet;

/// Width of a character in bits.
const CHARACTER_BITS: u32 = 8;

/// Returns useful conversions to floats of integers that are computed from characters in `text` or from
/// `results`.
pub(crate) fn text_conversions<'u>(
    facts: View<'u>,
    classes: &MemoryActivity,
    flow: &Flow,
    text: &HashSet<AliasSetId>,
    results: &[(FuncId, Value)],
) -> Vec<(FuncId, &'u Body, Op)> {
    let results = results.iter();
    let mut sources: Vec<FlowNode> = results
        .filter_map(|(func, value)| flow.value_node(*func, *value))
        .collect();
    for (func, body) in facts.closure.bodies(facts.unit) {
        let named = lattice::has_tbaa_names(facts.unit, body);
        for op in body.walk(body.root()) {
            value_accesses(facts.unit, body, op, |access| {
                let ValueAccess::Load { ptr, value } = access else {
                    // Not an error: only loads read text.
                    return;
                };
                let reads_text =
                    || (facts.memory).may_point_into(func, ptr, |class| text.contains(&class));
                if may_be_text(facts, body, op, value, named) && reads_text() {
                    sources.extend(flow.value_node(func, value));
                }
            });
        }
    }
    if sources.is_empty() {
        return Vec::new();
    }
    let made = flow.bitwise_tainted(&[], sources);
    let mut found = Vec::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            let OpKind::Cast(CastOp::SIToFP | CastOp::UIToFP | CastOp::BitCast) = body.kind(op)
            else {
                continue;
            };
            let (from, to) = (body.operand(op, 0), body.result(op));
            let is_made = flow.value_node(func, from).is_some_and(|node| made[node]);
            let is_float = facts.unit.types.float_kind(body.ty(to)).is_some();
            if is_made && is_float && classes.value_useful(func, to) {
                found.push((func, body, op));
            }
        }
    }
    found
}

/// Returns true if a load may read characters, because TBAA names no type other than bytes. `named` states
/// that the front end names types in this body.
fn may_be_text(facts: View<'_>, body: &Body, op: Op, value: Value, named: bool) -> bool {
    match facts.unit.types.int_bits(body.ty(value)) {
        Some(CHARACTER_BITS) => true,
        Some(_) => named && !lattice::access_type(facts.unit, body, op).has_integer(),
        None => false,
    }
}
