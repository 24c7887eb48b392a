//! Derivatives that may be zero by a declaration of the request (GRD0019, a warning).

use crate::checks::finding::{Finding, name_of};
use crate::checks::request::RequestFacts;
use crate::checks::unshadowed_stores::Destination;
use gradus_ir::{Code, Diagnostic};

/// Warns of reads that may alias a value stored to const memory.
pub(super) fn const_aliases(request: &RequestFacts<'_>) -> Vec<Finding> {
    let unit = request.facts.unit;
    request.at_unshadowed_stores(|store| {
        let Destination::ConstAlias = store.destination else {
            // Not an error: the store has another code.
            return None;
        };
        let message = "active values are stored in memory of a const argument, and the result depends on memory of const arguments; a read that aliases the store has the derivative zero";
        let warning = Diagnostic::warning(Code::ZeroDerivative, message)
            .in_function(name_of(unit, store.func))
            .at(unit.span(store.body.ops[store.op].loc), "stored here")
            .help("mark the argument as dup and pass a shadow; if the memory does not alias, no change is required");
        Some(warning)
    })
}
