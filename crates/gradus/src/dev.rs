//! `gradus dev`: runs the passes for compiler developers.

use crate::module_scan::{has_interface_symbol, is_parallel};
use crate::source::{self, CompilerOptions};
use crate::{Settings, child, program};
use gradus_ir::Diagnostic;
use gradus_pipeline::{
    CallsTask, GradRequest, GradTask, Input, Options, OutputKind, Reply, Request, Task,
};
use std::path::PathBuf;

/// A run of `gradus dev`.
#[derive(Clone, Debug, Default)]
pub struct Dev {
    /// The program.
    pub file: PathBuf,
    /// The function to differentiate; `None` for the program's own calls, or, without calls, for the round
    /// trip of every function through the IR.
    pub function: Option<String>,
    /// True if every function is imported and exported.
    pub restructure_all: bool,
    /// Flags of the user's compiler.
    pub flags: Vec<String>,
    /// Options of the passes.
    pub options: Options,
}

/// Runs the passes; no file is written.
///
/// # Errors
/// A program that cannot be read or compiled.
pub fn dev(settings: &Settings, what: &Dev) -> Result<Reply, Diagnostic> {
    let scratch = settings.scratch()?;
    let derived = scratch.file("derived.bc");
    let wanted = CompilerOptions {
        flags: &what.flags,
        form: source::OBJECT,
        output: &scratch.file("result"),
    };
    let source = program::open(settings, &what.file, &wanted, &scratch, &derived)?;
    let request = Request {
        task: task(what, &source.module),
        options: Options {
            parallel: source.device.is_some() || is_parallel(&source.module),
            device: source.device,
            ..what.options.clone()
        },
        inputs: vec![Input::new(what.file.display().to_string(), source.module)],
        level: source.level,
        emit: vec![OutputKind::Object],
        report: true,
    };
    Ok(child::compile(settings, &request))
}

fn task(what: &Dev, module: &[u8]) -> Task {
    match &what.function {
        _ if what.restructure_all => Task::RestructureAll,
        Some(function) => Task::Grad(GradTask {
            derivatives: vec![GradRequest {
                function: function.clone(),
                ..GradRequest::default()
            }],
            beside: false,
        }),
        None if has_interface_symbol(module) => Task::Calls(CallsTask::default()),
        None => Task::RestructureAll,
    }
}
