//! `gradus grad`: derivatives of functions by name, in an object that takes the place of the
//! source file's own.
//!
//! Flow: source → bitcode (front half of the user's compilation), or the module as it is → our
//! passes in the child → object (back half) → files, written whole.

use crate::cc1;
use crate::drive::is_parallel;
use crate::files::{self, Content, Outputs};
use crate::plan::Job;
use crate::source::{self, Wanted, quiet};
use crate::{Settings, child, rust};
use gradus_ir::Diagnostic;
use gradus_pipeline::{GradTask, Input, Options, Outcome, OutputKind, Reply, Request, Task};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// An object file.
    Object,
    /// LLVM IR as text.
    Llvm,
    /// LLVM bitcode.
    Bitcode,
    /// Assembly.
    Assembly,
    /// The language in the middle.
    Gir,
    /// The C header alone.
    Header,
}

/// A run of `gradus grad`.
#[derive(Clone, Debug)]
pub struct Grad {
    /// The program: C, C++, Fortran, Rust (a source, or a crate's `Cargo.toml`), CUDA, LLVM IR, or an object that
    /// carries bitcode.
    pub file: PathBuf,
    /// The derivatives.
    pub task: GradTask,
    /// What to write.
    pub emit: Emit,
    /// Where to; `None` for the source's name with the output's ending, in the current folder.
    pub output: Option<PathBuf>,
    /// Flags of the user's compiler; of nvcc for CUDA, of rustc or `cargo rustc` for Rust.
    pub flags: Vec<String>,
    /// Options of the passes.
    pub options: Options,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Graded {
    /// Whether the files were written.
    pub done: bool,
    /// The files written.
    pub files: Vec<PathBuf>,
    /// The report.
    pub report: Option<String>,
    /// All findings.
    pub diagnostics: Vec<Diagnostic>,
}

/// Makes derivatives and writes them.
pub fn grad(settings: &Settings, what: &Grad) -> Graded {
    let mut graded = Graded::default();
    if let Err(diagnostic) = run(settings, what, &mut graded) {
        graded.diagnostics.push(diagnostic);
        graded.done = false;
    }
    graded
}

fn run(settings: &Settings, what: &Grad, graded: &mut Graded) -> Result<(), Diagnostic> {
    let scratch = settings.scratch()?;
    let derived = scratch.file("derived.bc");
    let result = scratch.file("result");
    let wanted = Wanted {
        flags: &flags(what),
        form: form(what.emit),
        output: &result,
    };
    let source = source::open(settings, &what.file, &wanted, &scratch, &derived)?;
    let parallel = source.device.is_some() || is_parallel(&source.module);
    let request = Request {
        inputs: vec![Input::new(what.file.display().to_string(), source.module)],
        task: Task::Grad(what.task.clone()),
        level: source.level,
        emit: vec![
            OutputKind::Bitcode,
            OutputKind::Gir,
            OutputKind::Header,
            OutputKind::Report,
        ],
        options: Options {
            skip_late: true,
            strip_debug: !source.debug,
            parallel,
            device: source.device,
            ..what.options.clone()
        },
    };
    let reply = child::compile(settings, &request);
    graded.diagnostics.extend(reply.diagnostics.iter().cloned());
    if reply.outcome != Outcome::Ok {
        return Ok(());
    }
    graded.report = reply.text(OutputKind::Report).map(String::from);
    let outputs = outputs(
        what,
        &reply,
        &source.library,
        &source.back,
        (&derived, &result),
    )?;
    outputs.commit(&settings.leftovers)?;
    graded.files = outputs.paths();
    graded.done = true;
    Ok(())
}

/// What is to be written: nothing is yet.
fn outputs(
    what: &Grad,
    reply: &Reply,
    library: &Option<PathBuf>,
    back: &Job,
    (derived, result): (&Path, &Path),
) -> Result<Outputs, Diagnostic> {
    let library = library.as_deref();
    let output = what.output.clone();
    let output = output.unwrap_or_else(|| default_output(what, library));
    let made = |kind| reply.output(kind).unwrap_or_default();
    let bytes = match what.emit {
        Emit::Gir => made(OutputKind::Gir).to_vec(),
        Emit::Header => made(OutputKind::Header).to_vec(),
        Emit::Object | Emit::Llvm | Emit::Bitcode | Emit::Assembly => {
            files::write(derived, made(OutputKind::Bitcode))?;
            quiet(back)?;
            cc1::named_after(files::read(result)?, &what.file)
        }
    };
    let mut outputs = Outputs::default();
    outputs.add(&output, Content::Bytes(bytes));
    // A device takes one output.
    if what.emit == Emit::Object && !files::is_no_file(&output) {
        let header = made(OutputKind::Header).to_vec();
        outputs.add(&output.with_extension("h"), Content::Bytes(header));
        if let Some((library, name)) = library.and_then(|l| Some((l, l.file_name()?))) {
            let bytes = files::read(library)?;
            outputs.add(&output.with_file_name(name), Content::Bytes(bytes));
        }
    }
    Ok(outputs)
}

/// The user's flags. Code for a machine is optimised where they do not say how much; what is to be read again, by us
/// or by others, is left as it is.
fn flags(what: &Grad) -> Vec<String> {
    let mut flags = what.flags.clone();
    if matches!(what.emit, Emit::Object | Emit::Assembly) {
        flags.insert(0, "-O2".into());
    }
    flags
}

/// What the user's compiler is asked for.
fn form(emit: Emit) -> &'static [&'static str] {
    match emit {
        Emit::Llvm => &["-S", "-emit-llvm"],
        Emit::Bitcode => &["-c", "-emit-llvm"],
        Emit::Assembly => &["-S"],
        Emit::Object | Emit::Gir | Emit::Header => source::OBJECT,
    }
}

fn default_output(what: &Grad, library: Option<&Path>) -> PathBuf {
    let of_crate = library.and_then(rust::crate_name).map(OsStr::new);
    let stem = of_crate.or(what.file.file_stem()).unwrap_or_default();
    let ending = match what.emit {
        Emit::Object => "o",
        Emit::Llvm => "ll",
        Emit::Bitcode => "bc",
        Emit::Assembly => "s",
        Emit::Gir => "gir",
        Emit::Header => "h",
    };
    let mut name = PathBuf::from(stem);
    // Never the input itself.
    let same = what.file.extension().is_some_and(|e| e == ending);
    name.set_extension(match same {
        true => format!("grad.{ending}"),
        false => ending.to_string(),
    });
    name
}
