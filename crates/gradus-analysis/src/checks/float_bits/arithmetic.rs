//! Ops that compute with bits of active floats, or assemble floats from other bits.

use crate::checks::finding::Finding;
use crate::checks::float_bits::reasons::Reason;
use crate::checks::float_bits::{finding, takes_integer_of_word};
use crate::checks::variant::VariantFacts;
use crate::type_analysis::bit_ranges;
use crate::type_analysis::type_map::BitRange;
use crate::type_analysis::whole_float_moves::{self, element_bit};
use gradus_ir::{CastOp, Op, OpKind, Value};

/// Refuses such ops.
pub(crate) fn check(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_ops(|op| {
        computes_with_bits(variant, op).then(|| finding(variant, op, Reason::Arithmetic))
    })
}

fn computes_with_bits(variant: &VariantFacts<'_>, op: Op) -> bool {
    let (unit, body) = (variant.facts.unit, variant.body);
    match body.kind(op) {
        OpKind::Binary(binary) => !binary.is_float() && splits_floats(variant, op),
        OpKind::InsertElement | OpKind::InsertValue(_) | OpKind::Shuffle(_) => {
            splits_floats(variant, op)
        }
        // `no_derivative.rs` checks addresses.
        OpKind::Cast(CastOp::IntToPtr) => false,
        OpKind::Cast(_) => {
            let computes =
                is_reassembled_from_bits(variant, body.result(op)) || is_reinterpreted(variant, op);
            computes && !takes_integer_of_word(variant, op)
        }
        OpKind::ExtractElement => {
            variant.activity.active(body.result(op)) && !is_extracted(variant, op)
        }
        OpKind::Call(_) | OpKind::Invoke(_) => {
            let result = body.call_result(op);
            let integer = result.filter(|v| unit.types.int_bits(body.ty(*v)).is_some());
            integer.is_some_and(|value| is_reassembled_from_bits(variant, value))
        }
        _ => false,
    }
}

/// Returns true if the result of an op is active or a float, and the op does not move whole floats.
fn splits_floats(variant: &VariantFacts<'_>, op: Op) -> bool {
    let (unit, body) = (variant.facts.unit, variant.body);
    let result = body.result(op);
    let lanes = variant.facts.words.lanes(variant.func, result);
    let moves = whole_float_moves::moves_whole_ranges(unit, body, op, lanes);
    variant.activity.active(result) && !moves || is_reassembled_from_bits(variant, result)
}

/// Returns true if integer arithmetic computes a useful float from the bits of a varied float.
fn is_reassembled_from_bits(variant: &VariantFacts<'_>, value: Value) -> bool {
    let (classes, func) = (variant.classes, variant.func);
    variant.facts.words.carries_float(func, value)
        && classes.is_bitwise_tainted(func, value)
        && classes.value_useful(func, value)
}

/// Returns true if a cast reinterprets the bits of varied floats as useful floats of another format.
fn is_reinterpreted(variant: &VariantFacts<'_>, op: Op) -> bool {
    let (body, func) = (variant.body, variant.func);
    let (from, to) = (body.operand(op, 0), body.result(op));
    let lanes = [from, to].map(|value| variant.facts.words.lanes(func, value));
    matches!(body.kind(op), OpKind::Cast(CastOp::BitCast))
        && lanes.iter().all(|lanes| !lanes.is_empty())
        && lanes[0] != lanes[1]
        && variant.classes.value_varied(func, from)
        && variant.classes.value_useful(func, to)
}

/// Returns true if the bit ranges of an extracted element are whole bit ranges of the vector.
fn is_extracted(variant: &VariantFacts<'_>, op: Op) -> bool {
    let (unit, body) = (variant.facts.unit, variant.body);
    let (vector, result) = (body.operand(op, 0), body.result(op));
    let whole = variant.facts.words.lanes(variant.func, vector);
    let bits = bit_ranges::image_bits(unit, body.ty(result));
    let index = body.as_int(unit, body.operand(op, 1));
    let lanes = variant.facts.words.lanes(variant.func, result);
    lanes.iter().all(|lane| match index {
        Some(index) => whole.iter().any(|other| {
            other.kind == lane.kind && other.bit == element_bit(index, bits) + lane.bit
        }),
        None => {
            let same = |other: &BitRange| other.kind == lane.kind && other.bit % bits == lane.bit;
            whole.iter().all(same)
        }
    })
}
