//! Opens the files of a program: selects the compiler of each file, and collects the modules in link order.
//!
//! `gradus grad`, `gradus check` and `gradus dev` begin here. [`crate::source`], [`crate::nvcc`] and [`crate::rustc`]
//! compile a file to a module.

use crate::files::Scratch;
use crate::settings::Settings;
use crate::source::{self, CompilerOptions, Source};
use crate::{nvcc, rustc};
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::Input;
use std::path::{Path, PathBuf};

/// A program of several files, ready for the passes.
#[derive(Clone, Debug)]
pub struct Program {
    /// The files' modules, in the given order, which is the link order.
    pub inputs: Vec<Input>,
    /// Like [`Source`], for all files together; the back half is the first file's.
    pub whole: Source,
}

/// Opens the files of a program like [`open`], all with equal flags.
///
/// # Errors
/// See [`open`]; `BadOption` for a Rust or CUDA file among several.
pub fn open_all(
    settings: &Settings,
    files: &[PathBuf],
    wanted: &CompilerOptions,
    scratch: &Scratch,
    derived: &Path,
) -> Result<Program, Diagnostic> {
    let alone = |file: &&PathBuf| rustc::is_rust(file) || is_cuda(file);
    if let Some(file) = files.iter().find(alone).filter(|_| files.len() > 1) {
        let message = format!("{} cannot be combined with other files", file.display());
        return Err(Diagnostic::error(Code::BadOption, message)
            .note("C, C++, Fortran and LLVM IR files and objects with embedded bitcode can be combined")
            .help("pass the `Cargo.toml` of a Rust crate; compile several CUDA files with `gradus nvcc`, and request derivatives by calls"));
    }
    let mut program: Option<Program> = None;
    for file in files {
        let _running = settings
            .progress
            .begin("compile", &file.display().to_string());
        let mut source = open(settings, file, wanted, scratch, derived)?;
        let module = std::mem::take(&mut source.module);
        let input = Input::new(file.display().to_string(), module);
        match &mut program {
            None => {
                program = Some(Program {
                    inputs: vec![input],
                    whole: source,
                });
            }
            Some(program) => {
                program.inputs.push(input);
                program.whole.debug |= source.debug;
            }
        }
    }
    program.ok_or_else(|| Diagnostic::error(Code::BadOption, "no program is given"))
}

/// Opens `file`; the back half reads `derived`.
///
/// # Errors
/// `FileAccess`, `ToolFailed`; for a CUDA source also the refusals of nvcc's command line and of device
/// code.
pub fn open(
    settings: &Settings,
    file: &Path,
    wanted: &CompilerOptions,
    scratch: &Scratch,
    derived: &Path,
) -> Result<Source, Diagnostic> {
    if is_cuda(file) {
        return nvcc::open(settings, file, wanted, scratch, derived);
    }
    if rustc::is_rust(file) {
        return rustc::open(settings, file, wanted, scratch, derived);
    }
    source::open(settings, file, wanted, scratch, derived)
}

fn is_cuda(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "cu")
}
