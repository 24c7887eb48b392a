//! Inline assembly on active values (GRD0015).

use crate::call_graph::Callee;
use crate::checks::finding::Finding;
use crate::checks::no_derivative::HELP_INACTIVE;
use crate::checks::variant::VariantFacts;
use gradus_ir::Code;

/// Refuses inline assembly that works on active values.
pub(super) fn calls(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_calls(|call| {
        let is_refused = call.callee == Callee::Foreign && call.works_on_active_values();
        is_refused.then(|| {
            let message = "inline assembly works on active values";
            variant
                .error(call.op, Code::InlineAssembly, message)
                .help(HELP_INACTIVE)
        })
    })
}
