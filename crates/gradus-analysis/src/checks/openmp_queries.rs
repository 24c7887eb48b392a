//! OpenMP queries of final tasks and nesting levels: `omp_in_final` and the like.
//!
//! The derivative has neither the tasks nor the regions of the primal. A query would return a different
//! answer and may select different code. All code reachable from the request is checked, active or not.

use crate::call_graph::Callee;
use crate::view::View;
use gradus_ir::externals::{ExternalFn, OpenMpFn};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Code, Diagnostic};

/// Returns a diagnostic for each such query.
pub(crate) fn findings(facts: View<'_>) -> Vec<Diagnostic> {
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
            let function = &unit.functions[func];
            let name = function.display_name();
            let message =
                "the call queries OpenMP tasks or nested regions, and the derivative has neither";
            let finding = Diagnostic::error(Code::OpenMp, message).in_function(name);
            let finding = finding.at(unit.span(body.ops[op].loc), "here");
            list.push(finding.help("compile without -fopenmp"));
        }
    }
    list
}
