//! `gradus grad`: derivatives of functions by name, in an object that replaces the object of the source
//! files.
//!
//! Flow: the front half of the user's compilation turns each source into bitcode; a module is used
//! unchanged. Gradus's passes run in the child process, which links the modules first. The back half emits
//! the object. Files are written atomically.

use crate::clang_jobs::Job;
use crate::compilation;
use crate::files::{self, Content, Outputs, Scratch};
use crate::job_execution::run_compiler;
use crate::linker_flags::is_for_the_linker;
use crate::module_scan::is_parallel;
use crate::report::{self, Document, Wanted};
pub use crate::shared_library::Entry;
use crate::shared_library::{self, Parts};
use crate::source::{self, CompilerOptions};
use crate::{Settings, child, program, rustc, signature, words};
use gradus_ir::{Code, Diagnostic, Severity};
use gradus_pipeline::{GradTask, Options, Outcome, OutputKind, Reply, Request, Task};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The form of output.
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
    /// GIR.
    Gir,
    /// Only the C header.
    Header,
    /// A shared library that exports the functions and their derivatives.
    Shared,
}

/// A run of `gradus grad`.
#[derive(Clone, Debug)]
pub struct Grad {
    /// The program: C, C++, Fortran, LLVM IR, or objects that carry bitcode. A Rust file (a source, or a
    /// crate's `Cargo.toml`) or a CUDA file must be the only file. The first file names the outputs.
    pub files: Vec<PathBuf>,
    /// The derivatives.
    pub task: GradTask,
    /// The form of output.
    pub emit: Emit,
    /// The output; [`files::STDOUT`] for standard output. `None` means the first source's name with the output's
    /// extension, in the current folder.
    pub output: Option<PathBuf>,
    /// Additional symbols of a shared library.
    pub entry: Entry,
    /// The file for the signatures of the functions and derivatives, as JSON.
    pub signature: Option<PathBuf>,
    /// The reports.
    pub reports: Vec<Wanted>,
    /// Flags of the user's compiler; of nvcc for CUDA, of rustc or `cargo rustc` for Rust.
    pub flags: Vec<String>,
    /// Options of the passes.
    pub options: Options,
}

impl Grad {
    /// Returns the file that names the outputs.
    fn first(&self) -> &Path {
        self.files.first().map_or(Path::new(""), PathBuf::as_path)
    }
    /// Returns true if the output goes to standard output.
    pub fn writes_to_stdout(&self) -> bool {
        self.output.as_deref() == Some(Path::new(files::STDOUT))
    }
}

/// The outcome of `gradus grad`.
#[derive(Clone, Debug, Default)]
pub struct GradOutcome {
    /// True if the files were written.
    pub done: bool,
    /// The files written.
    pub files: Vec<PathBuf>,
    /// The reports for standard output.
    pub report: String,
    /// All diagnostics.
    pub diagnostics: Vec<Diagnostic>,
}

/// Emits and writes derivatives.
pub fn grad(settings: &Settings, what: &Grad) -> GradOutcome {
    let mut graded = GradOutcome::default();
    if let Err(diagnostic) = run(settings, what, &mut graded) {
        graded.diagnostics.push(diagnostic);
        graded.done = false;
    }
    graded
}

fn run(settings: &Settings, what: &Grad, graded: &mut GradOutcome) -> Result<(), Diagnostic> {
    let scratch = settings.scratch()?;
    let derived = scratch.file("derived.bc");
    let result = scratch.file("result");
    let wanted = CompilerOptions {
        flags: &flags(what),
        form: compiler_options(what.emit),
        output: &result,
    };
    let program = program::open_all(settings, &what.files, &wanted, &scratch, &derived)?;
    let source = program.whole;
    let parallel = source.device.is_some() || program.inputs.iter().any(|i| is_parallel(&i.bytes));
    let request = Request {
        inputs: program.inputs,
        task: Task::Grad(what.task.clone()),
        level: source.level,
        report: true,
        emit: match what.emit {
            Emit::Gir => vec![OutputKind::Bitcode, OutputKind::Gir, OutputKind::Header],
            _ => vec![OutputKind::Bitcode, OutputKind::Header],
        },
        options: Options {
            skip_late: true,
            callable_primals: what.emit == Emit::Shared,
            strip_debug: !source.debug,
            parallel,
            device: source.device,
            ..what.options.clone()
        },
    };
    let mut reply = child::compile(settings, &request);
    words::add_registration_lines(&source.registrations, &mut reply.diagnostics);
    graded.diagnostics.extend(reply.diagnostics.iter().cloned());
    if reply.outcome != Outcome::Ok {
        return Ok(());
    }
    if reply.derivatives.iter().any(|made| made.is_zero) {
        refuse_zeros(&mut graded.diagnostics);
        return Ok(());
    }
    let document = Document::new(std::mem::take(&mut reply.report));
    let mut outputs = outputs(
        what,
        &reply,
        &source.library,
        &source.back,
        (&derived, &result),
        (settings, &scratch),
    )?;
    let printed = report::render_all(
        &what.reports,
        &document,
        &page_name(what, &source.library),
        &mut outputs,
    );
    outputs.commit(&settings.leftovers)?;
    graded.report = printed;
    graded.files = outputs.paths();
    graded.done = true;
    Ok(())
}

/// Turns warnings of zero derivatives into errors: a zero derivative requested by name is a mistake.
fn refuse_zeros(findings: &mut [Diagnostic]) {
    for finding in findings {
        if finding.code == Code::ZeroDerivative {
            finding.severity = Severity::Error;
        }
    }
}

/// Returns the outputs, not yet written.
fn outputs(
    what: &Grad,
    reply: &Reply,
    library: &Option<PathBuf>,
    back: &Job,
    (derived, result): (&Path, &Path),
    (settings, scratch): (&Settings, &Scratch),
) -> Result<Outputs, Diagnostic> {
    let library = library.as_deref();
    let output = what.output.clone();
    let output = output.unwrap_or_else(|| default_output(what, library));
    let made = |kind| reply.output(kind).unwrap_or_default();
    let _running = settings.progress.begin("generate code", "");
    let bytes = match what.emit {
        Emit::Gir => made(OutputKind::Gir).to_vec(),
        Emit::Header => made(OutputKind::Header).to_vec(),
        Emit::Object | Emit::Llvm | Emit::Bitcode | Emit::Assembly => {
            files::write(derived, made(OutputKind::Bitcode))?;
            run_compiler(back)?;
            compilation::with_module_name(files::read(result)?, what.first())
        }
        Emit::Shared => {
            files::write(derived, made(OutputKind::Bitcode))?;
            run_compiler(back)?;
            let linked = scratch.file("linked.so");
            let parts = Parts {
                object: result,
                library,
                header: made(OutputKind::Header),
                derivatives: &reply.derivatives,
                sources: &what.files,
                flags: &what.flags,
                entry: what.entry,
            };
            shared_library::link(settings, &parts, scratch, &linked)?;
            files::read(&linked)?
        }
    };
    let mut outputs = Outputs::default();
    outputs.add(&output, Content::Bytes(bytes));
    if let Some(file) = &what.signature {
        let text = signature::json(&reply.derivatives, what.entry);
        outputs.add(file, Content::Bytes(text.into_bytes()));
    }
    // A device takes a single output.
    if what.emit == Emit::Object && !files::is_special_file(&output) {
        let header = made(OutputKind::Header).to_vec();
        outputs.add(&output.with_extension("h"), Content::Bytes(header));
        if let Some((library, name)) = library.and_then(|l| Some((l, l.file_name()?))) {
            let bytes = files::read(library)?;
            outputs.add(&output.with_file_name(name), Content::Bytes(bytes));
        }
    }
    Ok(outputs)
}

/// Returns the user's flags, with `-O2` as the default for machine code. Output to be compiled again is not
/// optimised.
fn flags(what: &Grad) -> Vec<String> {
    let mut flags = what.flags.clone();
    if what.emit == Emit::Shared {
        flags.retain(|flag| !is_for_the_linker(flag));
    }
    if matches!(what.emit, Emit::Object | Emit::Assembly | Emit::Shared) {
        flags.insert(0, "-O2".into());
    }
    flags
}

/// Returns the compiler options for an output form.
fn compiler_options(emit: Emit) -> &'static [&'static str] {
    match emit {
        Emit::Llvm => &["-S", "-emit-llvm"],
        Emit::Bitcode => &["-c", "-emit-llvm"],
        Emit::Assembly => &["-S"],
        Emit::Object | Emit::Gir | Emit::Header => source::OBJECT,
        Emit::Shared => &["-c", "-fPIC"],
    }
}

/// Returns the path that names a page by its stem: the output, unless a device.
fn page_name(what: &Grad, library: &Option<PathBuf>) -> PathBuf {
    let output = what.output.clone();
    let output = output.filter(|output| !files::is_special_file(output));
    output.unwrap_or_else(|| default_output(what, library.as_deref()))
}

fn default_output(what: &Grad, library: Option<&Path>) -> PathBuf {
    let of_crate = library.and_then(rustc::crate_name).map(OsStr::new);
    let stem = of_crate.or(what.first().file_stem()).unwrap_or_default();
    let ending = match what.emit {
        Emit::Object => "o",
        Emit::Llvm => "ll",
        Emit::Bitcode => "bc",
        Emit::Assembly => "s",
        Emit::Gir => "gir",
        Emit::Header => "h",
        Emit::Shared => "so",
    };
    let named = |ending: &str| {
        let mut name = PathBuf::from(stem);
        name.set_extension(ending);
        name
    };
    let name = named(ending);
    // An output never overwrites an input.
    let is_input = |file: &PathBuf| file.file_name() == Some(name.as_os_str());
    match what.files.iter().any(is_input) {
        true => named(&format!("grad.{ending}")),
        false => name,
    }
}
