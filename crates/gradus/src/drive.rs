//! The drop-in drivers: everything that clang does, and in modules that call the differentiation
//! interface our passes between its two halves.
//!
//! Flow: ask the driver for its plan; run its jobs in order. A compilation first runs its front
//! half alone; where the bitcode names no differentiation call, the user's own job runs as it is.

use crate::cc1::{self, Halves};
use crate::files::{self, Scratch};
use crate::plan::{self, Job};
use crate::{Settings, child};
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::{CallsTask, Input, Options, Outcome, OutputKind, Reply, Request, Task};
use std::path::Path;
use std::process::ExitStatus;

/// What a driver is asked for beside clang's own options.
#[derive(Clone, Debug, Default)]
pub struct DriveOptions {
    /// Whether this is the C++ driver.
    pub plus_plus: bool,
    /// Whether every function goes through the language in the middle and back.
    pub restructure_all: bool,
    /// Options of the passes.
    pub options: Options,
}

/// What a driver run came to.
#[derive(Clone, Debug, Default)]
pub struct Driven {
    /// The exit status to pass on.
    pub status: i32,
    /// What the driver itself said about the command line.
    pub remarks: Vec<String>,
    /// Findings of ours.
    pub diagnostics: Vec<Diagnostic>,
    /// Reports of the modules that went through our passes.
    pub reports: Vec<String>,
}

/// Runs a driver's command line.
pub fn drive(settings: &Settings, how: &DriveOptions, args: &[String]) -> Driven {
    let mut driven = Driven::default();
    if let Err(diagnostic) = run(settings, how, args, &mut driven) {
        driven.diagnostics.push(diagnostic);
        driven.status = 1;
    }
    driven
}

fn run(
    settings: &Settings,
    how: &DriveOptions,
    args: &[String],
    driven: &mut Driven,
) -> Result<(), Diagnostic> {
    let clang = settings.clang(how.plus_plus)?;
    let mut plan = plan::ask(&clang, args)?;
    let ours = |job: &Job| job.is_compilation() && job.input() != Some("-");
    if !plan.ok || !plan.jobs.iter().any(ours) {
        let whole = Job {
            program: clang,
            args: args.to_vec(),
        };
        driven.status = status(&whole)?;
        return Ok(());
    }
    driven.remarks = std::mem::take(&mut plan.remarks);
    let scratch = Scratch::new(&settings.temp)?;
    plan.move_intermediates(&scratch);
    for (at, job) in plan.jobs.iter().enumerate() {
        driven.status = match ours(job) {
            true => compile(settings, how, &scratch, at, job, driven)?,
            false => status(job)?,
        };
        if driven.status != 0 {
            break;
        }
    }
    Ok(())
}

/// Runs a job with our own input and output; gives its exit status.
fn status(job: &Job) -> Result<i32, Diagnostic> {
    let status = job.command().status();
    let status = status.map_err(|e| {
        let message = format!("cannot run {}: {e}", job.program.display());
        Diagnostic::error(Code::ToolFailed, message)
    })?;
    Ok(exit_code(status))
}

fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.signal().map(|s| 128 + s);
    status.code().or(signal).unwrap_or(1)
}

fn compile(
    settings: &Settings,
    how: &DriveOptions,
    scratch: &Scratch,
    at: usize,
    job: &Job,
    driven: &mut Driven,
) -> Result<i32, Diagnostic> {
    let bitcode = scratch.file(&format!("{at}.bc"));
    let derived = scratch.file(&format!("{at}.derived.bc"));
    let halves = cc1::halves(job, &bitcode, &derived);
    let code = status(&halves.front)?;
    if code != 0 {
        return Ok(code);
    }
    let bytes = files::read(&bitcode)?;
    if !how.restructure_all && !names_a_derivative(&bytes) {
        return status(job);
    }
    let name = job.input().unwrap_or_default();
    let reply = derive(settings, how, &halves, name, bytes);
    driven
        .reports
        .extend(reply.text(OutputKind::Report).map(String::from));
    let bitcode = reply.output(OutputKind::Bitcode);
    let bitcode = bitcode.filter(|_| reply.outcome == Outcome::Ok);
    if let Some(bytes) = bitcode {
        files::write(&derived, bytes)?;
    }
    let done = bitcode.is_some();
    driven.diagnostics.extend(reply.diagnostics);
    if done { status(&halves.back) } else { Ok(1) }
}

fn derive(
    settings: &Settings,
    how: &DriveOptions,
    halves: &Halves,
    name: &str,
    bytes: Vec<u8>,
) -> Reply {
    let request = Request {
        inputs: vec![Input::new(name, bytes)],
        task: match how.restructure_all {
            true => Task::RestructureAll,
            false => Task::Calls(CallsTask { partial: false }),
        },
        level: halves.level,
        emit: vec![OutputKind::Bitcode, OutputKind::Report],
        options: Options {
            skip_late: true,
            strip_debug: !halves.debug,
            ..how.options.clone()
        },
    };
    child::compile(settings, &request)
}

/// Whether a module's table of symbols holds a name of the differentiation interface.
pub fn names_a_derivative(bitcode: &[u8]) -> bool {
    let keys: [&[u8]; 2] = [b"__enzyme_", b"__gradus_"];
    keys.iter()
        .any(|key| bitcode.windows(key.len()).any(|w| w == *key))
}

/// Whether a path names LLVM IR, or an object that may carry it.
pub fn is_ir(file: &Path) -> bool {
    let extension = file.extension().and_then(|e| e.to_str());
    matches!(extension, Some("bc" | "ll" | "o"))
}
