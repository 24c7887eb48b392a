//! Turns parallel loops with conflicts between neighbouring iterations into two-phase schedules, in derivatives.

use crate::reports::derivative_record::DerivativeRecord;
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::derivative_edits::edit_adds;
use gradus_analysis::Stage;
use gradus_ir::Unit;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "two-phase-adds",
    stage: Stage::FinalDerivative,
    switch: Some("two-phase-adds"),
    about: "schedules adds of neighbouring iterations in two phases of disjoint chunks",
    run: StageRun::Derivatives(run),
};

fn run(run: &mut Run<'_>, unit: &mut Unit, made: &mut [Vec<DerivativeRecord>]) -> Result<(), Stop> {
    let least = match run.request.options.few_adds {
        true => 1,
        false => gradus_simplify::PHASES_ADDS_MIN,
    };
    edit_adds(unit, &mut run.analyses, made, 1, |unit, body, facts| {
        gradus_simplify::schedule_in_phases(unit, body, facts, least)
    });
    Ok(())
}
