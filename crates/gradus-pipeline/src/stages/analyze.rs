//! Analyses the call graph of a root before differentiation.

use crate::requests::Root;
use crate::requests::in_kernels::collective_op_errors;
use crate::run::{Run, StagePass, StageRun, Stop};
use gradus_ad::ProgramFacts;
use gradus_analysis::Stage;
use gradus_ir::Unit;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "analyze",
    stage: Stage::Primal,
    switch: None,
    about: "analyses the call graph of a request",
    run: StageRun::Step,
};

/// Returns the facts on the call graph of a root.
pub(crate) fn analyze(run: &mut Run<'_>, unit: &Unit, root: &Root) -> Result<ProgramFacts, Stop> {
    let asked = gradus_ad::Root {
        func: root.variant.func,
        args: root.variant.args.clone(),
        result: root.variant.result,
    };
    let refused = collective_op_errors(unit, &mut run.analyses, &root.variant);
    if !refused.is_empty() {
        return Err(run.refuse_at(root.span.as_ref(), refused));
    }
    let facts = run.pass(&PASS, |run| {
        match ProgramFacts::of(unit, &mut run.analyses, &asked) {
            Ok(facts) => Ok(facts),
            Err(findings) => Err(run.refuse_at(root.span.as_ref(), findings)),
        }
    })?;
    let warnings = run.refused_unless_allowed(facts.warnings());
    run.add_diagnostics(warnings)?;
    run.after_unit(&PASS, unit)?;
    Ok(facts)
}
