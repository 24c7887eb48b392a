//! `gradus check`: tests derivatives against each other and against finite differences, in a separate
//! process with limits.
//!
//! The function runs alone first, on arrays between guard pages: faults at this stage are the function's
//! own. Three tests follow: the dot product ⟨ȳ, Jẋ⟩ = ⟨Jᵀȳ, ẋ⟩ (forward against reverse mode), forward mode
//! against finite differences along a direction, reverse mode against finite differences entry by entry.
//! The step is refined until differences converge; a message reports divergence. A check passes only if a
//! nonzero derivative was compared with converged differences. If all derivatives are zero, other values
//! are tried.

mod driver;
mod slots;
mod stop;
#[cfg(test)]
mod tests;
mod trace;
mod values;
mod verdict;

use crate::clang_jobs::Job;
use crate::files::{self, Scratch};
use crate::job_execution::run_compiler;
use crate::linker_flags::is_for_the_linker;
use crate::module_scan::is_parallel;
use crate::report::{CheckReport, Comparison, Document};
use crate::source::{self, CompilerOptions};
use crate::{Language, Settings, child, fortran_descriptor, program, runtime, words};
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::report::{Location, Report};
use gradus_pipeline::{GradRequest, GradTask, Mode, Options, Outcome, OutputKind, Request, Task};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;
use verdict::{CheckContext, Run, Verdict};

/// A run of `gradus check`.
#[derive(Clone, Debug)]
pub struct Check {
    /// The program, like [`crate::grad::Grad::files`].
    pub files: Vec<PathBuf>,
    /// The function.
    pub function: String,
    /// The arguments to differentiate with respect to; empty for all differentiable arguments.
    pub wrt: Vec<String>,
    /// Arguments that are inactive.
    pub inactive: Vec<String>,
    /// Values of arguments, in the order of references: name and value.
    pub values: Vec<(String, String)>,
    /// True if the tolerance must be that of single precision. Functions that compute in single precision are detected
    /// without the flag, unless the computation is in a library.
    pub single: bool,
    /// A program that calls the function: the first call supplies the values not given here.
    pub driver: Option<PathBuf>,
    /// Flags of the user's compiler.
    pub flags: Vec<String>,
    /// The time limit for all calls together, in seconds.
    pub limit_seconds: u32,
    /// The memory limit in bytes.
    pub limit_memory_bytes: u64,
    /// Options of the passes.
    pub options: Options,
}

/// The outcome of a check.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// True if all comparisons agree, and a nonzero derivative was tested.
    pub is_right: bool,
    /// The reason why the given values tested nothing, if the verdict is from other values.
    pub untested_reason_at_given_values: Option<String>,
    /// True if a limit was reached.
    pub limit: bool,
    /// The comparisons, for the user.
    pub text: String,
    /// The report on the derivatives.
    pub report: Report,
    /// All diagnostics.
    pub diagnostics: Vec<Diagnostic>,
}

impl Checked {
    /// Returns the report with the result of the check.
    pub fn document(&self) -> Document {
        let comparison = |line: &str| {
            let (title, result) = line.trim().split_once("  ").unwrap_or((line.trim(), ""));
            Comparison {
                title: title.to_string(),
                result: result.trim().to_string(),
            }
        };
        let mut document = Document::new(self.report.clone());
        document.check = Some(CheckReport {
            right: self.is_right,
            untested_reason_at_given_values: self.untested_reason_at_given_values.clone(),
            comparisons: self.text.lines().map(comparison).collect(),
        });
        document
    }
}

/// Differentiates a function in both modes and checks the derivatives.
pub fn check(settings: &Settings, what: &Check) -> Checked {
    let mut checked = Checked::default();
    if let Err(diagnostic) = run(settings, what, &mut checked) {
        checked.limit = diagnostic.code == Code::LimitReached;
        checked.is_right = false;
        checked.diagnostics.push(diagnostic);
    }
    checked
}

fn run(settings: &Settings, what: &Check, checked: &mut Checked) -> Result<(), Diagnostic> {
    let scratch = settings.scratch()?;
    let (object, derived) = (scratch.file("function.o"), scratch.file("derived.bc"));
    let mut flags = what.flags.clone();
    flags.retain(|flag| !is_for_the_linker(flag));
    let wanted = CompilerOptions {
        flags: &flags,
        form: source::OBJECT,
        output: &object,
    };
    let program = program::open_all(settings, &what.files, &wanted, &scratch, &derived)?;
    let source = program.whole;
    let parallel = source.device.is_some() || program.inputs.iter().any(|i| is_parallel(&i.bytes));
    let request = Request {
        inputs: program.inputs,
        task: Task::Grad(task(what)),
        level: source.level,
        // The report locates the function.
        report: true,
        emit: vec![OutputKind::Bitcode, OutputKind::Header],
        options: Options {
            skip_late: true,
            callable_primals: true,
            // Lines locate a signal.
            strip_debug: false,
            parallel,
            device: source.device,
            ..what.options.clone()
        },
    };
    let mut reply = child::compile(settings, &request);
    words::add_registration_lines(&source.registrations, &mut reply.diagnostics);
    checked
        .diagnostics
        .extend(reply.diagnostics.iter().cloned());
    if reply.outcome != Outcome::Ok {
        return Ok(());
    }
    checked.report = std::mem::take(&mut reply.report);
    let [forward, reverse] = &reply.derivatives[..] else {
        let given = reply.derivatives.len();
        let message =
            format!("internal error: a check requested 2 derivatives and received {given}");
        return Err(Diagnostic::error(Code::CompilerDied, message)
            .help("this is a bug in Gradus: please report this message with the program"));
    };
    let driver = driver::write(what, forward, reverse)?;
    let _running = settings.progress.begin("check", &what.function);
    files::write(
        &derived,
        reply.output(OutputKind::Bitcode).unwrap_or_default(),
    )?;
    run_compiler(&source.back)?;
    let header = reply.output(OutputKind::Header).unwrap_or_default();
    let symbol = &forward.function;
    let objects = (object.as_path(), source.library.as_deref());
    let program = build(settings, what, &scratch, objects, (header, &driver, symbol))?;
    let place = |frames: &[&str]| trace::source_line(settings, &program, frames);
    let function = |frames: &[&str]| trace::function_name(settings, &program, frames);
    let location = checked.report.derivatives.iter().find(|one| one.requested);
    let location = location.and_then(|one| one.location.as_ref());
    let setting = CheckContext {
        what,
        derivative: forward,
        location: location.map(Location::span),
        registrations: &source.registrations,
        place: &place,
        function: &function,
    };
    decide(&setting, &program, &scratch, checked)
}

/// The number of other points to try if the given values test nothing.
const OTHER_POINTS: u32 = 4;

/// The alignment of arrays in bytes for a function that requires more than its elements do.
const WIDE_ALIGN: u32 = 64;

/// Runs the program, also at other points if necessary, and decides the outcome.
fn decide(
    setting: &CheckContext<'_>,
    program: &Path,
    scratch: &Scratch,
    checked: &mut Checked,
) -> Result<(), Diagnostic> {
    let what = setting.what;
    let mut align = 1;
    let mut run = run_program(program, scratch, what, (0, align))?;
    if run.is_misaligned() {
        align = WIDE_ALIGN;
        run = run_program(program, scratch, what, (0, align))?;
    }
    checked.text = run.shown();
    let (mut verdict, warnings) = setting.verdict(&run)?;
    checked.diagnostics.extend(warnings);
    if let Verdict::Untested(reason) = verdict
        && reason.depends_on_values()
    {
        for point in 1..=OTHER_POINTS {
            let other = run_program(program, scratch, what, (point, align))?;
            // Not an error: the function may not accept these values, which the user did not choose.
            let Ok((found, _)) = setting.verdict(&other) else {
                continue;
            };
            if !matches!(found, Verdict::Untested(_)) {
                let title = "other values";
                checked.text += &format!(
                    "  {title:<16} used, because at the given values {}\n",
                    reason.text()
                );
                checked.text += &other.shown();
                checked.untested_reason_at_given_values = Some(reason.text().to_string());
                verdict = found;
                break;
            }
        }
    }
    match verdict {
        Verdict::Right => checked.is_right = true,
        Verdict::Untested(reason) => checked.diagnostics.push(setting.untested(reason)),
        Verdict::Wrong => {
            let finding = setting.mismatch(&checked.text);
            checked.diagnostics.push(finding);
        }
    }
    Ok(())
}

/// Returns the task: derivatives in both modes.
fn task(what: &Check) -> GradTask {
    let one = |mode, suffix: &str| GradRequest {
        function: what.function.clone(),
        wrt: what.wrt.clone(),
        inactive: what.inactive.clone(),
        mode,
        name: Some(format!("gr_check_{suffix}")),
        ..GradRequest::default()
    };
    GradTask {
        derivatives: vec![one(Mode::Forward, "jvp"), one(Mode::Reverse, "vjp")],
        beside: false,
    }
}

/// Links the driver and the function into a program. The function's file may define `main`; the driver's
/// `main` comes first.
fn build(
    settings: &Settings,
    what: &Check,
    scratch: &Scratch,
    (object, library): (&Path, Option<&Path>),
    (header, driver, symbol): (&[u8], &str, &str),
) -> Result<PathBuf, Diagnostic> {
    files::write(&scratch.file("derivatives.h"), header)?;
    let parts: [(&str, &[u8]); 4] = [
        ("descriptor.h", fortran_descriptor::HEADER.as_bytes()),
        ("runtime.h", include_bytes!("runtime.h")),
        ("differences.h", include_bytes!("differences.h")),
        ("memory.h", include_bytes!("memory.h")),
    ];
    for (name, bytes) in parts {
        files::write(&scratch.file(name), bytes)?;
    }
    files::write(&scratch.file("driver.c"), driver.as_bytes())?;
    let file = |name: &str| scratch.file(name).display().to_string();
    run_compiler(&Job {
        program: settings.compiler(Language::C)?,
        args: vec![
            "-std=gnu11".into(),
            "-D_GNU_SOURCE".into(),
            "-O1".into(),
            "-w".into(),
            "-fno-builtin-malloc".into(),
            "-fno-builtin-calloc".into(),
            "-fno-builtin-realloc".into(),
            "-c".into(),
            file("driver.c"),
            "-o".into(),
            file("driver.o"),
        ],
    })
    .map_err(|said| {
        let message = "the given values do not fit the function";
        let mut finding = Diagnostic::error(Code::MissingCheckInput, message);
        finding.notes = said.notes;
        finding
    })?;
    let program = scratch.file("check");
    let mut args = vec![file("driver.o"), object.display().to_string()];
    // Flags of rustc or Cargo do not apply to clang.
    let is_rust = library.is_some();
    if let Some(main) = &what.driver {
        let mut compile = what.flags.clone();
        compile.retain(|flag| !is_rust && !is_for_the_linker(flag));
        compile.extend([
            "-c".into(),
            "-o".into(),
            file("main.o"),
            main.display().to_string(),
        ]);
        run_compiler(&Job {
            program: settings.compiler(Language::C)?,
            args: compile,
        })?;
        // Calls of the function in the program are redirected to the driver.
        args.extend([file("main.o"), format!("-Wl,--wrap={symbol}")]);
    }
    args.extend(library.map(|library| library.display().to_string()));
    args.extend(what.flags.iter().filter(|f| is_for_the_linker(f)).cloned());
    args.extend(runtime::fortran_library(
        &settings.compiler(Language::C)?,
        object,
    ));
    // With a fixed base, addresses reported by a signal equal those in the file.
    args.extend(["-no-pie", "-Wl,--allow-multiple-definition", "-lm", "-o"].map(String::from));
    args.push(program.display().to_string());
    let openmp = what.flags.iter().filter(|f| f.starts_with("-fopenmp"));
    args.extend(openmp.cloned());
    let link = Job {
        program: settings.compiler(Language::PlusPlus)?,
        args,
    };
    run_compiler(&runtime::with_runtime_by_compiler(&link, scratch)?)?;
    Ok(program)
}

/// The seconds that a program may take to exit after its own timer should have stopped it.
const GRACE_SECONDS: u64 = 5;

/// The number of bytes read of a program's standard error.
const STDERR_BYTES_MAX: u64 = 4096;

/// Runs the program at a point, with arrays aligned to `align` bytes.
fn run_program(
    program: &Path,
    scratch: &Scratch,
    what: &Check,
    (point, align): (u32, u32),
) -> Result<Run, Diagnostic> {
    let broken = |e: std::io::Error| {
        let message = format!("cannot run the check program: {e}");
        Diagnostic::error(Code::ToolFailed, message)
    };
    let job = Job {
        program: program.to_path_buf(),
        args: Vec::new(),
    };
    // Output goes to files: a pipe would stay open as long as a process left behind by the function.
    let (out, said) = (scratch.file("check.out"), scratch.file("check.err"));
    let child = job
        .command()
        .env("GRADUS_CHECK_POINT", point.to_string())
        .env("GRADUS_CHECK_ALIGN", align.to_string())
        // The user needs the panic message, not Gradus's frames.
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(File::create(&out).map_err(broken)?)
        .stderr(File::create(&said).map_err(broken)?)
        .spawn()
        .map_err(broken)?;
    let limit = Duration::from_secs(u64::from(what.limit_seconds) + GRACE_SECONDS);
    let status = wait_with_timeout(child, limit).map_err(broken)?;
    let text = files::read(&out)?;
    Ok(Run {
        text: String::from_utf8_lossy(&text).into_owned(),
        stderr_tail: end_of(&said).unwrap_or_default(),
        status,
    })
}

/// Returns the exit status of a child, or `None` if it had to be stopped.
fn wait_with_timeout(mut child: Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let mut waited = Duration::ZERO;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if waited > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        waited += pause;
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn end_of(file: &Path) -> Option<String> {
    let mut file = File::open(file).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(STDERR_BYTES_MAX)))
        .ok()?;
    let mut bytes = Vec::new();
    file.take(STDERR_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
