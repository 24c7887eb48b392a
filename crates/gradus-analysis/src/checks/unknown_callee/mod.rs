//! Functions without a body and without a known derivative (GRD0005).

pub(super) mod external_writes;
pub(super) mod flang_advice;

use crate::checks::finding::{Finding, name_of};
use crate::checks::request::RequestFacts;
use crate::checks::unshadowed_stores::Destination;
use gradus_ir::Code;

/// Refuses active values in memory from a function that may be an allocator.
pub(super) fn allocators(request: &RequestFacts<'_>) -> Vec<Finding> {
    let unit = request.facts.unit;
    request.at_unshadowed_stores(|store| {
        let Destination::Allocator(site, callee) = store.destination else {
            // Not an error: the store has another code.
            return None;
        };
        let name = name_of(unit, callee);
        let message =
            format!("active values are stored in memory from `{name}`, an external function");
        let error = store.error_at_allocation(unit, site, Code::UnknownCallee, message);
        Some(error.help(format!(
            "compile the file that defines `{name}` together with this one, or register `{name}` as an allocator with `__enzyme_allocation_like`"
        )))
    })
}
