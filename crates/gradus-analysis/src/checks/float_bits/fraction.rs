//! Conversions and stores that depend on the fraction bits of active floats: approximate logarithms and exponentials.

use crate::activity::fraction_bits::FractionUse;
use crate::checks::finding::Finding;
use crate::checks::float_bits::diagnostic;
use crate::checks::float_bits::reasons::Reason;
use crate::checks::request::RequestFacts;

/// Refuses such conversions and stores.
pub(crate) fn check(request: &RequestFacts<'_>) -> Vec<Finding> {
    let (facts, bits) = (request.facts, request.classes.fraction_bits());
    let mut found = Vec::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            let reason = match bits.use_without_derivative((func, op)) {
                None => continue,
                Some(FractionUse::Converted) => Reason::FractionConverted,
                Some(FractionUse::IntegerOfUnion) => Reason::IntegerOfUnion,
                Some(FractionUse::Stored) => Reason::NumberInFraction,
            };
            let error = diagnostic(facts.unit, (func, body, op), reason);
            found.push(Finding::without_position(error));
        }
    }
    found
}
