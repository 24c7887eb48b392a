//! Calls of OpenMP's run-time library without derivatives (GRD0011).

use crate::call_graph::Callee;
use crate::checks::finding::{Finding, at};
use crate::checks::request::RequestFacts;
use crate::checks::variant::VariantFacts;
use gradus_ir::Code;
use gradus_ir::externals::{ExternalFn, OpenMpFn};
use gradus_ir::mutant::{Mutant, is_planted};

/// Refuses queries of final tasks and nesting levels: `omp_in_final` and the like.
///
/// The derivative has neither the tasks nor the regions of the primal. A query would return a different answer and may
/// select different code. All code reachable from the request is checked, active or not.
pub(super) fn queries(request: &RequestFacts<'_>) -> Vec<Finding> {
    let facts = request.facts;
    let unit = facts.unit;
    let mut list = Vec::new();
    for (func, body) in facts.closure.bodies(unit) {
        for op in body.walk(body.root()) {
            let Some(Callee::Outside(callee)) = facts.closure.callee(unit, body, op) else {
                continue;
            };
            let Some(ExternalFn::OpenMp(
                query @ (OpenMpFn::InFinal | OpenMpFn::AncestorInfo | OpenMpFn::Level),
            )) = unit.known(callee)
            else {
                continue;
            };
            if query == OpenMpFn::Level && is_planted(Mutant::LevelQueryAccepted) {
                continue;
            }
            let message =
                "the call queries OpenMP tasks or nested regions, and the derivative has neither";
            let error = at(unit, func, body, op, Code::OpenMp, message);
            let error = error.help("compile without -fopenmp");
            list.push(Finding::without_position(error));
        }
    }
    list
}

/// Refuses OpenMP constructs that stay with OpenMP's library and work on active values.
pub(super) fn calls(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_known_calls(|call, known| {
        let is_open_mp = matches!(known, ExternalFn::OpenMp(_) | ExternalFn::Fork(_));
        let is_refused = is_open_mp && call.works_on_active_values();
        is_refused.then(|| {
            let error = variant.error(call.op, Code::OpenMp, "OpenMP on an active path");
            [error.help("remove the construct that prevents the conversion of this region (a note at the region names the construct), or compile without -fopenmp")]
        })
    })
}
