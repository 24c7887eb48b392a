//! Remarks on parallel code that runs serially.

use gradus_ir::{Code, Diagnostic, FuncId, LocId, Severity, Unit};

/// The reason for serial execution under `--deterministic`.
pub(crate) const DETERMINISTIC_REASON: &str = "this runs serially (`--deterministic`): the result may depend on the order of threads, due to an atomic update, a lock, the number of threads or an unknown call";

/// Returns remarks on serialised ops, with the reason.
pub(crate) fn remarks(
    unit: &Unit,
    serialised: &[(FuncId, Option<LocId>)],
    message: &str,
) -> Vec<Diagnostic> {
    let remark = |(func, loc): &(FuncId, Option<LocId>)| {
        let function = &unit.functions[*func];
        let name = function.display_name();
        let finding = Diagnostic {
            severity: Severity::Note,
            ..Diagnostic::warning(Code::ParallelNotRaised, message.to_string())
        };
        finding.in_function(name).at(unit.span(*loc), "here")
    };
    serialised.iter().map(remark).collect()
}
