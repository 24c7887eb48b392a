//! Unswitches loops of derivatives that test whether pointers equal their shadows.

use crate::reports::derivative_record::DerivativeRecord;
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::derivative_edits::{edit, functions_of};
use gradus_analysis::Stage;
use gradus_ir::Unit;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "unswitch",
    stage: Stage::Derivative,
    switch: None,
    about: "unswitches loops on pointer inequality",
    run: StageRun::Derivatives(run),
};

fn run(_: &mut Run<'_>, unit: &mut Unit, made: &mut [Vec<DerivativeRecord>]) -> Result<(), Stop> {
    for func in functions_of(made) {
        edit(unit, func, |unit, body| {
            let loops = gradus_simplify::unswitch_all(unit, body);
            if loops > 0 {
                gradus_edit::remove_dead_ops(unit, body);
            }
            loops
        });
    }
    Ok(())
}
