//! Opens a source for clang or flang, or LLVM IR: compiles the file to a module, and provides the back half of the
//! compilation.
//!
//! [`crate::program`] selects the compiler of a file. CUDA ([`crate::nvcc`]) and Rust ([`crate::rustc`]) open programs
//! in the same form.

use crate::clang_jobs;
use crate::clang_jobs::Job;
use crate::compilation::{self, DebugDetail};
use crate::files::{self, Scratch};
use crate::job_execution::run_compiler;
use crate::objects::fat_objects;
use crate::objects::kind::is_ir;
use crate::settings::{Language, Settings};
use crate::{dependencies, words};
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::{Input, Level, WrittenRegistration};
use std::path::{Path, PathBuf};

/// A program ready for the passes.
#[derive(Clone, Debug)]
pub struct Source {
    /// The module: bitcode, LLVM's text, or an object that carries bitcode.
    pub module: Vec<u8>,
    /// The GPU half of a CUDA source: LLVM text.
    pub device: Option<Input>,
    /// The library to link for symbols undefined in the module: Rust's static library.
    pub library: Option<PathBuf>,
    /// The registrations of C and C++, for diagnostics without a line.
    pub registrations: Vec<WrittenRegistration>,
    /// The compilation from the passes' bitcode to the requested output.
    pub back: Job,
    /// True if the user requested debug information.
    pub debug: bool,
    /// The user's optimisation level.
    pub level: Level,
}

/// The compiler's options for a source.
#[derive(Clone, Copy, Debug)]
pub struct CompilerOptions<'a> {
    /// The user's flags: a C compiler's, nvcc's for a CUDA source, rustc's or Cargo's for Rust.
    pub flags: &'a [String],
    /// The output form, as compiler arguments.
    pub form: &'a [&'static str],
    /// The output path.
    pub output: &'a Path,
}

/// The output form of an object.
pub const OBJECT: &[&str] = &["-c"];

/// Opens a C, C++, Fortran or LLVM IR file; the back half reads `derived`.
///
/// # Errors
/// `FileAccess`, `ToolFailed`.
pub fn open(
    settings: &Settings,
    file: &Path,
    wanted: &CompilerOptions,
    scratch: &Scratch,
    derived: &Path,
) -> Result<Source, Diagnostic> {
    let ir = is_ir(file);
    let bytes = module_of_object(settings, file, files::read(file)?, scratch)?;
    let language = Language::of(file);
    let compiler = settings.compiler(language)?;
    let (mut args, _) = words::without_plugins(wanted.flags);
    args.extend(settings.extra_arguments(language));
    args.extend(wanted.form.iter().map(|word| word.to_string()));
    args.extend(["-o".into(), wanted.output.display().to_string()]);
    if ir {
        args.extend(["-x".into(), "ir".into()]);
    }
    args.push(absolute(file).display().to_string());
    let plan = clang_jobs::query(settings, &compiler, &args)?;
    let job = plan.jobs.iter().find(|job| job.is_compilation());
    let job = job.filter(|_| plan.ok).ok_or_else(|| {
        let message = format!("the compiler does not accept {}", file.display());
        let mut diagnostic = Diagnostic::error(Code::ToolFailed, message);
        diagnostic.notes.clone_from(&plan.remarks);
        // Clang lists its jobs.
        diagnostic.help(match plan.ok && plan.jobs.is_empty() {
            true => format!(
                "{} is not clang; set GRADUS_CLANG to clang",
                compiler.display()
            ),
            false => "pass C, C++, Fortran, Rust, CUDA or LLVM IR, and compiler flags after `--`"
                .to_string(),
        })
    })?;
    let bitcode = scratch.file("front.bc");
    let mut halves = compilation::split_compilation(job, &bitcode, derived, DebugDetail::Types);
    let settled = match ir {
        true => words::FrontOutput {
            module: bytes,
            ..words::FrontOutput::default()
        },
        false => {
            dependencies::list_files(&mut halves.front, &bitcode);
            run_compiler(&halves.front)?;
            words::module_with_words(settings, &halves.front, &bitcode, scratch)?
        }
    };
    Ok(Source {
        module: settled.module,
        device: None,
        library: None,
        registrations: settled.registrations,
        back: halves.back,
        debug: halves.debug || ir,
        level: halves.level,
    })
}

/// Returns the module of an object that carries the record of its compilation; other contents stay.
fn module_of_object(
    settings: &Settings,
    file: &Path,
    bytes: Vec<u8>,
    scratch: &Scratch,
) -> Result<Vec<u8>, Diagnostic> {
    let source = fat_objects::object_facts(&bytes).and_then(|facts| facts.source);
    match source {
        Some(source) => {
            let name = file.display().to_string();
            Ok(source
                .module(settings, &name, &scratch.file("again.bc"))?
                .bitcode)
        }
        None => Ok(bytes),
    }
}

/// Returns the path recorded by a compiler in line information.
pub(crate) fn absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf())
}
