//! Active floats in vectors of integers.

use crate::checks::finding::Finding;
use crate::checks::variant::VariantFacts;
use gradus_ir::externals::ExternalFn;
use gradus_ir::{Code, Op, Value};

/// Refuses active floats in integer vectors with floats at uneven positions. Under a mask, all such vectors are refused:
/// masked lanes can only be moved back as floats.
pub(crate) fn check(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_ops(|op| {
        is_refused(variant, op).then(|| {
            let message = "active floating-point numbers are moved as a vector of integers";
            variant
                .error(op, Code::FloatBits, message)
                .help("compile with -fno-slp-vectorize -fno-vectorize, or give Gradus the source")
        })
    })
}

fn is_refused(variant: &VariantFacts<'_>, op: Op) -> bool {
    let (unit, body, func) = (variant.facts.unit, variant.body, variant.func);
    let words = variant.facts.words;
    let known = unit.known_callee(body, op);
    let masked = matches!(known, Some(ExternalFn::Masked(_)));
    let hides = |value: Value| words.is_int_vector_with_floats(unit, body, func, value);
    let mut results = variant.active_results(op);
    if results.any(|value| hides(value) && (masked || !words.floats_are_even(func, value))) {
        return true;
    }
    let mut args = match masked {
        true => unit.call_args(body, op),
        false => Vec::new(),
    }
    .into_iter();
    args.any(|value| hides(value) && variant.activity.active(value))
}
