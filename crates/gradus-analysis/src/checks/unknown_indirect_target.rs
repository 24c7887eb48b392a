//! Indirect calls without a known target (GRD0018).

use crate::checks::finding::Finding;
use crate::checks::request::RequestFacts;
use crate::checks::unshadowed_stores::Destination;
use gradus_ir::Code;

/// Refuses active values in memory that an indirect call without a known target returns.
pub(super) fn allocators(request: &RequestFacts<'_>) -> Vec<Finding> {
    let unit = request.facts.unit;
    request.at_unshadowed_stores(|store| {
        let Destination::IndirectAllocator(site) = store.destination else {
            // Not an error: the store has another code.
            return None;
        };
        let message =
            "active values are stored in memory from an indirect call without a known target";
        let error = store.error_at_allocation(unit, site, Code::UnknownIndirectTarget, message);
        Some(error.help("compile the file that defines the target together with this one, or directly call an allocator that is registered with `__enzyme_allocation_like`"))
    })
}
