//! MPI calls on active values (GRD0012).

use crate::checks::finding::Finding;
use crate::checks::variant::VariantFacts;
use gradus_ir::Code;
use gradus_ir::externals::ExternalFn;

/// Refuses MPI calls that work on active values.
pub(super) fn calls(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_known_calls(|call, known| {
        let is_refused = known == ExternalFn::Mpi && call.works_on_active_values();
        is_refused.then(|| {
            let error = variant.error(call.op, Code::Mpi, "MPI on an active path");
            [error.help("move the communication out of the differentiated function")]
        })
    })
}
