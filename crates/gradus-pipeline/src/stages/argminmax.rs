//! Recomputes the results of min/max reductions by the selected iteration (argmin/argmax), for the derivatives of
//! one root.

use crate::requests::Root;
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::primal_edits::{OriginalBodies, edit_for_derivatives};
use gradus_analysis::Stage;
use gradus_ir::{Body, FuncId, Unit};

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "argminmax",
    stage: Stage::Primal,
    switch: Some("argminmax"),
    about: "recomputes the selected iteration of argmin/argmax reductions outside the loop",
    run: StageRun::Step,
};

/// Edits the primals of a root. The original bodies are added to `originals`.
pub(crate) fn recompute_argminmax(
    run: &mut Run<'_>,
    unit: &mut Unit,
    root: &Root,
    originals: &mut OriginalBodies,
) -> Result<(), Stop> {
    if run.skips(&PASS) {
        return Ok(());
    }
    let closure = run.analyses.call_graph(unit, &[root.variant.func]);
    run.pass(&PASS, |run| {
        let has_reduction =
            |(_, body): &(FuncId, &Body)| gradus_simplify::has_argminmax(unit, body);
        let found = closure.bodies(unit).filter(has_reduction);
        let found = found.map(|(func, _)| func).collect();
        let pass = gradus_simplify::recompute_argminmax;
        edit_for_derivatives(unit, &mut run.analyses, &closure, found, originals, pass);
        run.after_unit(&PASS, unit)
    })
}
