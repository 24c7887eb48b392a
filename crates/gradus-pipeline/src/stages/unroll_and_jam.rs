//! Unrolls and jams serial reductions of derivatives.

use crate::reports::derivative_record::DerivativeRecord;
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::derivative_edits::{edit_counted, functions_of};
use gradus_analysis::Stage;
use gradus_ir::Unit;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "unroll-and-jam",
    stage: Stage::Derivative,
    switch: Some("unroll-and-jam"),
    about: "unrolls and jams latency-bound serial reductions",
    run: StageRun::Derivatives(run),
};

fn run(run: &mut Run<'_>, unit: &mut Unit, made: &mut [Vec<DerivativeRecord>]) -> Result<(), Stop> {
    edit_counted(
        unit,
        &mut run.analyses,
        &functions_of(made),
        gradus_simplify::has_serial_reduction_nest,
        gradus_simplify::unroll_and_jam,
    );
    Ok(())
}
