//! Diagnostics for the memory of a request: runs the memory checks on the result of activity analysis.
//!
//! `findings.rs` has the checks of the ops of one variant.

use crate::activity::memory::{MemoryActivity, Request};
use crate::checks::unshadowed::Provenance;
use crate::checks::{
    external_writes, fraction, kept_values, openmp_queries, persistent_memory, stored_formats,
    text_roundtrip, unshadowed,
};
use crate::points_to::alias_sets::AliasSetId;
use crate::view::View;
use gradus_ir::Diagnostic;

/// Returns the diagnostics for the request's memory, errors and warnings.
pub fn memory_findings(
    facts: View<'_>,
    request: &Request,
    classes: &MemoryActivity,
) -> Vec<Diagnostic> {
    let mut findings = unshadowed::memory_diagnostics(facts, classes, |class| {
        // A pointer into a shadow group with a shadow has a shadow, or a run-time test decides.
        let group = classes.group_provenance(class);
        Provenance {
            barred: classes.provenance(class).barred,
            bare: group.constant && !group.dup && !group.allocated_inside,
            promised: group.promised && !group.dup,
        }
    });
    findings.extend(persistent_memory::findings(facts, classes));
    findings.extend(kept_values::findings(facts, classes, request.root));
    let bare = |class: &AliasSetId| {
        classes.provenance(*class).constant && facts.words.types_of_set(*class).has_float()
    };
    let mut returned = classes.result_reachable_sets().iter().copied();
    if let Some(class) = returned.find(bare) {
        findings.push(unshadowed::unshadowed_result(facts, request.root, class));
    }
    findings.extend(external_writes::findings(facts, classes));
    let (flow, bits) = (classes.flow(), classes.float_bit_nodes());
    findings.extend(fraction::findings(facts, classes, flow, bits));
    findings.extend(stored_formats::findings(facts, classes));
    findings.extend(text_roundtrip::findings(facts, classes, flow));
    findings.extend(openmp_queries::findings(facts));
    findings
}
