//! Privatises atomic adds of parallel loops per chunk, in derivatives.

use crate::reports::derivative_record::DerivativeRecord;
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::derivative_edits::edit_adds;
use gradus_analysis::Stage;
use gradus_ir::Unit;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "privatize-adds",
    stage: Stage::FinalDerivative,
    switch: Some("privatize-adds"),
    about: "privatises sums to which all iterations of a loop add",
    run: StageRun::Derivatives(run),
};

fn run(run: &mut Run<'_>, unit: &mut Unit, made: &mut [Vec<DerivativeRecord>]) -> Result<(), Stop> {
    let least = match run.request.options.few_adds {
        true => 1,
        false => gradus_simplify::PRIVATIZE_ADDS_MIN,
    };
    edit_adds(unit, &mut run.analyses, made, 0, |unit, body, _| {
        gradus_simplify::privatize_adds(unit, body, least)
    });
    Ok(())
}
