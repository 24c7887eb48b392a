//! The round trip of every function through the IR, without any transform.

use crate::run::{Run, Stop};
use crate::stages::{export, import, pre_ad_llvm};
use gradus_ir::{Code, Diagnostic, Severity};
use gradus_llvm::{Host, Pipeline};
use std::collections::{BTreeMap, BTreeSet};

/// The number of occurrences of each operation in a module.
type Census = BTreeMap<String, usize>;

/// Imports and exports every function (round trip through the IR).
pub(super) fn restructure_all(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    if !run.request.options.skip_early {
        pre_ad_llvm::optimize(run, host, Pipeline::EarlyPlain)?;
    }
    let before = host.census(|_| true);
    let imported = run.pass(&import::PASS, |run| {
        let imported = host.import_all();
        run.after_unit(&import::PASS, &imported.unit)?;
        Ok(imported)
    })?;
    let untouched = imported.refused.iter();
    let notes = untouched.filter_map(|(func, _)| imported.refusal(*func));
    let notes = notes.map(|finding| Diagnostic {
        severity: Severity::Note,
        ..finding
    });
    run.add_diagnostics(notes.collect())?;
    run.pass(&export::PASS, |run| {
        run.value_or_stop(host.export_all(&imported.unit))?;
        run.value_or_stop(host.verify())?;
        run.after_host(&export::PASS, host)
    })?;
    run.add_diagnostics(op_count_differences(&before, &host.census(|_| true)))
}

/// Returns a diagnostic on the operations whose number differs before and after the round trip.
fn op_count_differences(before: &Census, after: &Census) -> Vec<Diagnostic> {
    let kinds: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differs = |kind: &&String| before.get(*kind) != after.get(*kind);
    let different: Vec<&String> = kinds.into_iter().filter(differs).collect();
    if different.is_empty() {
        return Vec::new();
    }
    let count = different.len();
    let message =
        format!("the round trip through the IR changed the counts of {count} kinds of operations");
    let mut finding = Diagnostic::error(Code::BrokenOutput, message);
    for kind in different.into_iter().take(5) {
        let times = |census: &Census| census.get(kind).copied().unwrap_or(0);
        finding = finding.note(format!(
            "{} before, {} after: {kind}",
            times(before),
            times(after)
        ));
    }
    vec![finding]
}
