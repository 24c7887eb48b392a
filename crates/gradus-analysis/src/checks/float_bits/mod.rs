//! Integer arithmetic on the bits of active floats (GRD0008).

pub(super) mod arithmetic;
pub(crate) mod fraction;
pub(super) mod integer_stores;
pub(super) mod integer_vectors;
mod reasons;
pub(super) mod stored_formats;
pub(super) mod text_over_floats;

use crate::activity::flow_graph;
use crate::checks::finding::{Finding, at};
use crate::checks::variant::VariantFacts;
use crate::points_to::alias_sets::CellRef;
use crate::type_analysis::type_map::LaneKind;
use gradus_ir::{Body, CastOp, Code, Diagnostic, FuncId, Op, OpKind, Unit};
use reasons::Reason;

/// Returns the diagnostic for an op that a check refuses.
fn diagnostic(unit: &Unit, (func, body, op): (FuncId, &Body, Op), reason: Reason) -> Diagnostic {
    at(unit, func, body, op, Code::FloatBits, reason.message()).help(reason.help())
}

/// Returns the finding for an op of a variant.
fn finding(variant: &VariantFacts<'_>, op: Op, reason: Reason) -> Diagnostic {
    diagnostic(variant.facts.unit, (variant.func, variant.body, op), reason)
}

/// Refuses active words that may be floats or addresses.
pub(super) fn conflicting_words(variant: &VariantFacts<'_>) -> Vec<Finding> {
    let words = variant.facts.words;
    variant.at_ops(|op| {
        let mut values = variant.active_results(op);
        let is_refused = values.any(|value| words.is_conflicting(variant.func, value))
            && !takes_integer_of_word(variant, op);
        let reason = match reads_no_address(variant, op) {
            true => Reason::OtherFormat,
            false => Reason::WordAsInteger,
        };
        is_refused.then(|| finding(variant, op, reason))
    })
}

/// Returns true if an op reads no address: the conflict is one of two formats, or of a part of a float.
fn reads_no_address(variant: &VariantFacts<'_>, op: Op) -> bool {
    let (body, memory, words) = (variant.body, variant.facts.memory, variant.facts.words);
    let values = body.operands(op).chain(body.results(op).iter().copied());
    let mut lanes = values.flat_map(|value| words.lanes(variant.func, value));
    match body.kind(op) {
        OpKind::Load(_) => {
            let targets = memory.targets(variant.func, body.operand(op, 0));
            let has_address = |place: &CellRef| words.type_at(memory, *place).has_pointer();
            !targets.iter().any(has_address)
        }
        _ => !lanes.any(|lane| lane.kind == LaneKind::Pointer),
    }
}

/// Refuses floats that flow into a value otherwise used as an address: different paths leave a float or an address in
/// one integer (Rust results of functions that may panic).
pub(super) fn floats_as_addresses(variant: &VariantFacts<'_>) -> Vec<Finding> {
    let (unit, body, func) = (variant.facts.unit, variant.body, variant.func);
    let words = variant.facts.words;
    variant.at_ops(|op| {
        let mut found = false;
        flow_graph::value_flows(unit, body, op, |from, to| {
            found |= words.is_conflicting(func, to)
                && !words.carries_float(func, to)
                && words.carries_float(func, from)
                && variant.activity.varied(from);
        });
        let is_refused = found && !takes_integer_of_word(variant, op);
        is_refused.then(|| finding(variant, op, Reason::FloatOrAddress))
    })
}

/// Returns true if a cast takes the lower half of a word of run-time kind, which counts as an integer.
fn takes_integer_of_word(variant: &VariantFacts<'_>, op: Op) -> bool {
    let body = variant.body;
    let OpKind::Cast(CastOp::Trunc) = body.kind(op) else {
        // Not an error: the op takes the whole word.
        return false;
    };
    let bits = (variant.facts.unit.types).int_bits(body.ty(body.result(op)));
    let word = (variant.func, body.operand(op, 0));
    bits.is_some_and(|bits| bits <= 32) && variant.classes.may_be_integer_word(variant.facts, word)
}
