//! `gradus check`: is the derivative right? A program that calls the function and both of its
//! derivatives, run in a process of its own with limits.
//!
//! Three tests, each against another: the dot product ⟨ȳ, Jẋ⟩ = ⟨Jᵀȳ, ẋ⟩ (forward against
//! reverse), forward against differences along one direction, reverse against differences entry
//! by entry. Differences are refined until they settle, or are said not to.

mod driver;
#[cfg(test)]
mod tests;
mod trace;

use crate::drive::is_parallel;
use crate::files::{self, Scratch};
use crate::plan::Job;
use crate::source::{self, Wanted, quiet};
use crate::{Language, Settings, child, runtime, words};
use gradus_ir::{Code, Diagnostic, SourceSpan};
use gradus_pipeline::{
    Derivative, GradRequest, GradTask, Mode, Options, Outcome, OutputKind, Request, Task,
};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

/// A run of `gradus check`.
#[derive(Clone, Debug)]
pub struct Check {
    /// The program: as of [`crate::grad::Grad`].
    pub files: Vec<PathBuf>,
    /// The function.
    pub function: String,
    /// The arguments to differentiate by; empty for all that can be.
    pub wrt: Vec<String>,
    /// Arguments that are inactive.
    pub inactive: Vec<String>,
    /// Values of arguments, in the order in which they refer to each other: name and value.
    pub values: Vec<(String, String)>,
    /// Whether numbers inside the function are kept in single precision, so that less agreement is
    /// asked for; said by itself of arguments and results.
    pub single: bool,
    /// A program that calls the function: its first call gives the values that are not given here.
    pub driver: Option<PathBuf>,
    /// Flags of the user's compiler.
    pub flags: Vec<String>,
    /// The most seconds that the calls may take together.
    pub limit_seconds: u32,
    /// The most bytes of memory that they may use.
    pub limit_memory_bytes: u64,
    /// Options of the passes.
    pub options: Options,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Whether everything agrees.
    pub right: bool,
    /// Whether differences settled anywhere, and so had a say in it.
    pub compared: bool,
    /// Whether a limit was reached.
    pub limit: bool,
    /// What agrees and what does not, for the user.
    pub text: String,
    /// All findings.
    pub diagnostics: Vec<Diagnostic>,
}

/// Differentiates a function both ways and checks the derivatives.
pub fn check(settings: &Settings, what: &Check) -> Checked {
    let mut checked = Checked::default();
    if let Err(diagnostic) = run(settings, what, &mut checked) {
        checked.limit = diagnostic.code == Code::LimitReached;
        checked.right = false;
        checked.diagnostics.push(diagnostic);
    }
    checked
}

fn run(settings: &Settings, what: &Check, checked: &mut Checked) -> Result<(), Diagnostic> {
    let scratch = settings.scratch()?;
    let (object, derived) = (scratch.file("function.o"), scratch.file("derived.bc"));
    let mut flags = what.flags.clone();
    flags.retain(|flag| !is_for_the_linker(flag));
    let wanted = Wanted {
        flags: &flags,
        form: source::OBJECT,
        output: &object,
    };
    let program = source::open_all(settings, &what.files, &wanted, &scratch, &derived)?;
    let source = program.whole;
    let parallel = source.device.is_some() || program.inputs.iter().any(|i| is_parallel(&i.bytes));
    let request = Request {
        inputs: program.inputs,
        task: Task::Grad(task(what)),
        level: source.level,
        emit: vec![OutputKind::Bitcode, OutputKind::Header],
        options: Options {
            skip_late: true,
            // Where a signal strikes is told by the lines.
            strip_debug: false,
            parallel,
            device: source.device,
            ..what.options.clone()
        },
    };
    let mut reply = child::compile(settings, &request);
    words::place(&source.registrations, &mut reply.diagnostics);
    checked
        .diagnostics
        .extend(reply.diagnostics.iter().cloned());
    let [forward, reverse] = &reply.derivatives[..] else {
        return Ok(());
    };
    if reply.outcome != Outcome::Ok {
        return Ok(());
    }
    let driver = driver::write(what, forward, reverse)?;
    files::write(
        &derived,
        reply.output(OutputKind::Bitcode).unwrap_or_default(),
    )?;
    quiet(&source.back)?;
    let header = reply.output(OutputKind::Header).unwrap_or_default();
    let symbol = &forward.function;
    let objects = (object.as_path(), source.library.as_deref());
    let program = build(settings, what, &scratch, objects, (header, &driver, symbol))?;
    let output = call(&program)?;
    let place = |frames: &[&str]| trace::source_line(settings, &program, frames);
    judge(what, &output, forward, &place, checked)
}

/// Both directions.
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

fn is_for_the_linker(flag: &str) -> bool {
    ["-l", "-L", "-Wl,"]
        .iter()
        .any(|start| flag.starts_with(start))
}

/// Links the driver and the function into a program. The function's file may have a `main` of its
/// own: the driver's comes first.
fn build(
    settings: &Settings,
    what: &Check,
    scratch: &Scratch,
    (object, library): (&Path, Option<&Path>),
    (header, driver, symbol): (&[u8], &str, &str),
) -> Result<PathBuf, Diagnostic> {
    files::write(&scratch.file("derivatives.h"), header)?;
    files::write(&scratch.file("runtime.h"), include_bytes!("runtime.h"))?;
    files::write(&scratch.file("driver.c"), driver.as_bytes())?;
    let file = |name: &str| scratch.file(name).display().to_string();
    quiet(&Job {
        program: settings.compiler(Language::C)?,
        args: vec![
            "-std=gnu11".into(),
            "-D_GNU_SOURCE".into(),
            "-O1".into(),
            "-w".into(),
            "-c".into(),
            file("driver.c"),
            "-o".into(),
            file("driver.o"),
        ],
    })
    .map_err(|said| {
        let message = "the values given do not fit the function";
        let mut finding = Diagnostic::error(Code::MissingCheckInput, message);
        finding.notes = said.notes;
        finding
    })?;
    let program = scratch.file("check");
    let mut args = vec![file("driver.o"), object.display().to_string()];
    // Another compiler's flags say nothing to this one.
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
        quiet(&Job {
            program: settings.compiler(Language::C)?,
            args: compile,
        })?;
        // The program's calls of the function come to the driver.
        args.extend([file("main.o"), format!("-Wl,--wrap={symbol}")]);
    }
    args.extend(library.map(|library| library.display().to_string()));
    args.extend(what.flags.iter().filter(|f| is_for_the_linker(f)).cloned());
    args.extend(runtime::fortran_library(
        &settings.compiler(Language::C)?,
        object,
    ));
    // Without a random base the addresses that a signal reports are those of the file.
    args.extend(["-no-pie", "-Wl,--allow-multiple-definition", "-lm", "-o"].map(String::from));
    args.push(program.display().to_string());
    let openmp = what.flags.iter().filter(|f| f.starts_with("-fopenmp"));
    args.extend(openmp.cloned());
    let link = Job {
        program: settings.compiler(Language::PlusPlus)?,
        args,
    };
    quiet(&runtime::linked_by_compiler(&link, scratch)?)?;
    Ok(program)
}

fn call(program: &Path) -> Result<Output, Diagnostic> {
    let job = Job {
        program: program.to_path_buf(),
        args: Vec::new(),
    };
    let output = job
        .command()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    output.map_err(|e| {
        Diagnostic::error(
            Code::ToolFailed,
            format!("the check's program cannot be run: {e}"),
        )
    })
}

/// Signal of a timer that ran out.
const SIGALRM: i32 = 14;

fn judge(
    what: &Check,
    output: &Output,
    derivative: &Derivative,
    place: &dyn Fn(&[&str]) -> Option<SourceSpan>,
    checked: &mut Checked,
) -> Result<(), Diagnostic> {
    use std::os::unix::process::ExitStatusExt;
    let text = String::from_utf8_lossy(&output.stdout);
    let said = text.lines().filter(|l| l.starts_with("  "));
    checked.text = said.map(|l| format!("{l}\n")).collect();
    let stage = text.lines().rev().find_map(|l| l.strip_prefix("@stage "));
    let stage = stage.unwrap_or("the function itself");
    let name = &derivative.source_name;
    let reported = |line: &str| text.lines().any(|l| l == line);
    let out_of_time = output.status.signal() == Some(SIGALRM);
    if out_of_time || output.status.code() == Some(3) || reported("@memory") {
        let message = format!("{name}: the calls of {stage} reached a limit");
        let mebibytes = what.limit_memory_bytes >> 20;
        let limit = format!(
            "{} seconds and {mebibytes} MiB are allowed",
            what.limit_seconds
        );
        return Err(Diagnostic::error(Code::LimitReached, message)
            .note(limit)
            .help(
                "try smaller values, or allow more with `--limit SECONDS` and `--max-memory SIZE`",
            ));
    }
    let frames = text.lines().filter_map(|l| l.strip_prefix("@frame "));
    let frames: Vec<&str> = frames.collect();
    if let Some(signal) = output.status.signal() {
        let message = format!(
            "{name}: {stage} died of signal {signal}{}",
            trace::meaning(signal)
        );
        let help = "check that the values given are ones that the function can take";
        return Err(Diagnostic::error(Code::CheckFailed, message)
            .at(place(&frames), "it died here")
            .help(help));
    }
    let ended = text.lines().any(|l| l == "@end");
    if !ended && what.driver.is_some() {
        let message = format!("the driver ended without a call of {name}");
        return Err(Diagnostic::error(Code::MissingCheckInput, message)
            .help("the driver must call the function from another file than the function's own"));
    }
    checked.right = output.status.code() == Some(0) && ended;
    checked.compared = reported("@compared");
    if !checked.right {
        let message = format!("the derivative of {name} does not agree with its check");
        checked
            .diagnostics
            .push(Diagnostic::error(Code::CheckFailed, message));
    }
    let told = |start| text.lines().find_map(|l| l.strip_prefix(start));
    if let (Some(what), Some(mode)) = (told("@notfinite "), told("@mode ")) {
        let found = not_finite(name, (what, mode), place(&frames));
        checked.diagnostics.push(found);
    }
    Ok(())
}

/// What is said of a derivative that is not finite.
fn not_finite(name: &str, (what, mode): (&str, &str), place: Option<SourceSpan>) -> Diagnostic {
    let message = format!("{name}: the derivative by {mode} is {what}, and the function is finite");
    Diagnostic::warning(Code::NotFinite, message)
        .at(place, "the first operation that gives no finite number")
        .help("where an infinite slope meets what is zero, `--strong-zero` makes their product zero; at other points the slope may be finite")
}
