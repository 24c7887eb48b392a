//! Execution of a job with captured output, and the diagnostics on a tool that is missing, refuses or dies.
//!
//! [`crate::clang_jobs`] plans jobs; sources, interface words, objects and the link run jobs here. The drivers run
//! the user's own jobs with inherited output ([`crate::driver`]).

use crate::clang_jobs::Job;
use gradus_ir::{Code, Diagnostic};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Output, Stdio};

/// Runs a compiler; on failure, messages become a diagnostic.
///
/// # Errors
/// `ToolFailed`.
pub fn run_compiler(job: &Job) -> Result<(), Diagnostic> {
    let output = run_captured(job)?;
    match output.status.success() {
        true => Ok(()),
        false => match signal_error(&job.program, &output.status, &output.stderr) {
            Some(died) => Err(died),
            None => Err(refused_error(&output)),
        },
    }
}

/// Runs a program and captures its output.
///
/// # Errors
/// `ToolFailed` if the program cannot be started.
pub(crate) fn run_captured(job: &Job) -> Result<Output, Diagnostic> {
    let output = job.command().stdin(Stdio::null()).output();
    output.map_err(|e| {
        let message = format!("cannot run {}: {e}", job.program.display());
        Diagnostic::error(Code::ToolFailed, message)
    })
}

/// Returns the diagnostic on a compiler that refuses a program.
pub(crate) fn refused_error(output: &Output) -> Diagnostic {
    let diagnostic = Diagnostic::error(Code::ToolFailed, "the compiler rejected the program");
    with_output(diagnostic, &output.stderr)
}

/// Returns the diagnostic on a compiler or linker killed by a signal, with its messages.
pub fn signal_error(program: &Path, status: &ExitStatus, said: &[u8]) -> Option<Diagnostic> {
    let signal = status.signal()?;
    let message = format!("{} was killed by signal {signal}", program.display());
    Some(with_output(
        Diagnostic::error(Code::ToolFailed, message),
        said,
    ))
}

/// Adds the first lines of a program's output to a diagnostic.
fn with_output(finding: Diagnostic, said: &[u8]) -> Diagnostic {
    let said = String::from_utf8_lossy(said);
    let lines = said.lines().take(20);
    lines.fold(finding, |finding, line| finding.note(line.to_string()))
}
