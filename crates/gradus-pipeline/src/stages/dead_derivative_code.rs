//! Removes dead code of differentiation, including code that only computed an unused primal result.

use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::derivative_edits::{edit, edit_counted};
use gradus_analysis::Stage;
use gradus_ir::{FuncId, Unit};

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "dead-derivative-code",
    stage: Stage::Primal,
    switch: None,
    about: "removes dead code of derivatives",
    run: StageRun::Step,
};

/// Removes dead code of the derivatives `functions`.
pub(crate) fn remove_dead_code(
    run: &mut Run<'_>,
    unit: &mut Unit,
    functions: &[FuncId],
) -> Result<(), Stop> {
    run.pass(&PASS, |run| {
        for &func in functions {
            edit(unit, func, |unit, body| {
                gradus_edit::remove_dead_ops(unit, body)
            });
        }
        edit_counted(
            unit,
            &mut run.analyses,
            functions,
            gradus_simplify::allocates_memory,
            gradus_simplify::remove_dead_memory,
        );
        run.after_unit(&PASS, unit)
    })
}
