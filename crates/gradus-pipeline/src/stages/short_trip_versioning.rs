//! Versions update loops of derivatives over array rows that the next outer iteration updates again: short rows run in a
//! loop that is not vectorised.

use crate::reports::derivative_record::DerivativeRecord;
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::derivative_edits::{edit_counted, functions_of};
use gradus_analysis::Stage;
use gradus_ir::Unit;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "short-trip-versioning",
    stage: Stage::FinalDerivative,
    switch: Some("short-trip-versioning"),
    about: "versions short update loops into a scalar and a vectorisable loop",
    run: StageRun::Derivatives(run),
};

fn run(run: &mut Run<'_>, unit: &mut Unit, made: &mut [Vec<DerivativeRecord>]) -> Result<(), Stop> {
    edit_counted(
        unit,
        &mut run.analyses,
        &functions_of(made),
        gradus_simplify::has_update_loops,
        gradus_simplify::version_short_loops,
    );
    Ok(())
}
