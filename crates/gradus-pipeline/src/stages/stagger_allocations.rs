//! Staggers allocations of derivatives: shadows of large blocks start at page offsets different from the blocks'.

use crate::reports::derivative_record::DerivativeRecord;
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::derivative_edits::{edit_counted, functions_of};
use gradus_analysis::Stage;
use gradus_ir::Unit;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "stagger-allocations",
    stage: Stage::FinalDerivative,
    switch: Some("stagger-allocations"),
    about: "staggers the start addresses of large zeroed allocations by some cache lines",
    run: StageRun::Derivatives(run),
};

fn run(run: &mut Run<'_>, unit: &mut Unit, made: &mut [Vec<DerivativeRecord>]) -> Result<(), Stop> {
    edit_counted(
        unit,
        &mut run.analyses,
        &functions_of(made),
        gradus_simplify::has_large_zeroed_allocations,
        gradus_simplify::stagger_allocations,
    );
    Ok(())
}
