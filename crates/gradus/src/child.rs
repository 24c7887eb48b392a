//! The compiling process: LLVM runs in a child of ours, so that its death is a diagnostic.

use crate::settings::Settings;
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::{Outcome, Reply, Request, from_bytes, to_bytes};
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The first argument that makes [`Settings::child`] compile: the request comes on standard
/// input, the reply goes to standard output.
pub const CHILD_COMMAND: &str = "__compile";

/// Compiles in a child process. A child that dies is a finding of the reply.
pub fn compile(settings: &Settings, request: &Request) -> Reply {
    match run(settings, request) {
        Ok(output) => reply(&output).unwrap_or_else(|| refused(died(&output))),
        Err(diagnostic) => refused(diagnostic),
    }
}

fn refused(diagnostic: Diagnostic) -> Reply {
    Reply {
        outcome: Outcome::Refused,
        diagnostics: vec![diagnostic],
        ..Reply::default()
    }
}

fn run(settings: &Settings, request: &Request) -> Result<Output, Diagnostic> {
    let cannot = |e: String| {
        let message = format!("the compiling process cannot be run: {e}");
        Diagnostic::error(Code::CompilerDied, message)
    };
    let broken = |e: std::io::Error| cannot(e.to_string());
    let bytes = to_bytes(request).map_err(|e| cannot(e.to_string()))?;
    let mut child = Command::new(&settings.child)
        .arg(CHILD_COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(broken)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that dies before it has read all is told by its reply.
        let _ = stdin.write_all(&bytes);
    }
    child.wait_with_output().map_err(broken)
}

fn reply(output: &Output) -> Option<Reply> {
    output
        .status
        .success()
        .then(|| from_bytes(&output.stdout).ok())?
}

fn died(output: &Output) -> Diagnostic {
    let how = output.status.to_string();
    let mut diagnostic = Diagnostic::error(
        Code::CompilerDied,
        format!("the compiling process died ({how})"),
    )
    .help("this is a fault of Gradus: please report it with the program that caused it");
    let said = String::from_utf8_lossy(&output.stderr);
    for line in said.lines().filter(|l| !l.trim().is_empty()).take(8) {
        diagnostic = diagnostic.note(line.to_string());
    }
    diagnostic
}
