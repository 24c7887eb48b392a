//! Parses all inputs and links them into a single module of the host. A whole Rust program is simplified here.

use crate::run::{Run, StagePass, StageRun, Stop};
use crate::{CallsTask, Input, Task};
use gradus_analysis::Stage;
use gradus_ir::{Code, Diagnostic};
use gradus_llvm::{Host, Pipeline};

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "parse",
    stage: Stage::Host,
    switch: None,
    about: "parses the inputs and links them into one module",
    run: StageRun::Step,
};

/// Parses all inputs and links them into a single module.
pub(crate) fn parse(run: &mut Run<'_>) -> Result<Host, Stop> {
    let Some((first, others)) = run.request.inputs.split_first() else {
        let finding = Diagnostic::error(Code::UnreadableInput, "no input was given");
        return Err(run.refuse(finding));
    };
    let blank = |input: &&Input| input.bytes.iter().all(u8::is_ascii_whitespace);
    if let Some(input) = run.request.inputs.iter().find(blank) {
        let message = format!("{} is empty", input.name);
        return Err(run.refuse(Diagnostic::error(Code::UnreadableInput, message)));
    }
    let mut host = run.value_or_stop(Host::parse(&first.bytes, &first.name))?;
    for input in others {
        run.value_or_stop(host.link(&input.bytes, &input.name))?;
    }
    if let Some(device) = &run.request.options.device {
        let separate = run.request.options.separate;
        run.value_or_stop(host.merge_device(&device.bytes, &device.name, separate))?;
    }
    if let Task::Calls(CallsTask {
        needed_outside: Some(needed),
        ..
    }) = &run.request.task
    {
        host.close_program(needed);
    }
    run.value_or_stop(host.verify().map_err(|broken| Diagnostic {
        code: Code::UnreadableInput,
        ..broken
    }))?;
    if let Some(used) = &run.request.options.whole_program {
        host.make_whole_program(used);
        run.value_or_stop(host.run(Pipeline::EarlyRust))?;
    }
    run.after_host(&PASS, &host)?;
    Ok(host)
}
