//! Runs LLVM's pipeline at the user's optimisation level.

use crate::OutputKind;
use crate::run::{Run, StagePass, StageRun, Stop};
use gradus_analysis::Stage;
use gradus_llvm::{Host, Pipeline};

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "final-llvm",
    stage: Stage::Host,
    switch: None,
    about: "runs LLVM's pipeline at the user's optimisation level",
    run: StageRun::Step,
};

/// Runs LLVM's pipeline at the user's optimisation level.
pub(crate) fn final_llvm(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    if run.request.options.skip_late {
        return Ok(());
    }
    let level = run.request.level;
    let again = |kind: &OutputKind| matches!(kind, OutputKind::Bitcode | OutputKind::LlvmText);
    host.set_tape_noinline(run.request.emit.iter().any(again));
    run.pass(&PASS, |run| {
        run.value_or_stop(host.run(Pipeline::Late(level.into())))?;
        run.after_host(&PASS, host)
    })
}
