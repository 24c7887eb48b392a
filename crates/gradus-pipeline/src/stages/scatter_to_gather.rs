//! Turns scatter loops of derivatives into gather loops. Differentiation itself reads plain loops.

use crate::reports::derivative_record::DerivativeRecord;
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::derivative_edits::{edit_counted, functions_of};
use gradus_analysis::Stage;
use gradus_ir::Unit;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "scatter-to-gather",
    stage: Stage::Derivative,
    switch: Some("scatter-to-gather"),
    about: "combines adds of neighbouring iterations to one location into a single add",
    run: StageRun::Derivatives(run),
};

fn run(run: &mut Run<'_>, unit: &mut Unit, made: &mut [Vec<DerivativeRecord>]) -> Result<(), Stop> {
    let loops = edit_counted(
        unit,
        &mut run.analyses,
        &functions_of(made),
        gradus_simplify::has_scatter_loops,
        gradus_simplify::scatter_to_gather,
    );
    for (made, count) in made.iter_mut().flatten().zip(loops) {
        made.gather_loops = count;
    }
    Ok(())
}
