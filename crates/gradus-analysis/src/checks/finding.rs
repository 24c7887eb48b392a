//! Findings: diagnostics with their place in the order of printing.

use gradus_ir::{Body, Code, Diagnostic, FuncId, Op, Unit};

/// A diagnostic of a check.
pub(crate) struct Finding {
    /// Position of the refused code among the ops that the check reads. Findings of several checks are printed by
    /// increasing position.
    pub position: usize,
    /// The diagnostic.
    pub diagnostic: Diagnostic,
}

impl Finding {
    /// Returns a finding that is printed after all findings with a position.
    pub fn without_position(diagnostic: Diagnostic) -> Finding {
        Finding {
            position: usize::MAX,
            diagnostic,
        }
    }
}

/// Returns the name of a function in the source.
pub(crate) fn name_of(unit: &Unit, func: FuncId) -> String {
    unit.functions[func].display_name().to_string()
}

/// Returns an error at an op.
pub(crate) fn at(
    unit: &Unit,
    func: FuncId,
    body: &Body,
    op: Op,
    code: Code,
    message: impl Into<String>,
) -> Diagnostic {
    Diagnostic::error(code, message)
        .in_function(name_of(unit, func))
        .at(unit.span(body.ops[op].loc), "here")
}
