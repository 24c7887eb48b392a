//! Conversions and stores that depend on the fraction bits of active floats: approximate logarithms and exponentials.

use crate::checks::finding::Finding;
use crate::checks::float_bits::float_bits_diagnostic;
use crate::checks::request::RequestFacts;

/// Refuses such conversions and stores.
pub(crate) fn check(request: &RequestFacts<'_>) -> Vec<Finding> {
    let (facts, bits) = (request.facts, request.classes.fraction_bits());
    let mut found = Vec::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            if bits.is_refused((func, op)) {
                let error = float_bits_diagnostic(facts.unit, func, body, op);
                found.push(Finding::without_position(error));
            }
        }
    }
    found
}
