//! Emits the requested outputs, in the order of the request.

use crate::OutputKind;
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::wire::reply::Output;
use gradus_analysis::Stage;
use gradus_llvm::{Emit, Host};

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "emit",
    stage: Stage::Host,
    switch: None,
    about: "emits the requested outputs",
    run: StageRun::Step,
};

/// Emits the requested outputs, in the order of the request.
pub(crate) fn emit(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    // The outputs are copies. Code generation may prepare the module for itself, which no dump needs to show.
    run.after_host(&PASS, host)?;
    for &kind in &run.request.emit {
        let level = run.request.level.into();
        let bytes = match kind {
            OutputKind::Bitcode => Some(host.to_bitcode()),
            OutputKind::LlvmText => Some(host.to_text().into_bytes()),
            OutputKind::Object => Some(run.value_or_stop(host.emit(Emit::Object, level))?),
            OutputKind::Assembly => Some(run.value_or_stop(host.emit(Emit::Assembly, level))?),
            OutputKind::Gir | OutputKind::Header => None,
        };
        let output = match bytes {
            Some(bytes) => Some(Output { kind, bytes }),
            None => run.early_outputs.iter().find(|o| o.kind == kind).cloned(),
        };
        run.reply.outputs.extend(output);
    }
    Ok(())
}
