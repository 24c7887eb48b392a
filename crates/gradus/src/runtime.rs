//! The run-time library of parallel programs, held in this program, and whether a link needs it.

use crate::files::{self, Scratch};
use crate::plan::Job;
use gradus_ir::Diagnostic;
use object::{Object, ObjectSymbol};
use std::path::Path;

/// The library as one relocatable object; its symbols are the `gr_*` entries, CUDA's run time, and for each function `f`
/// of OpenMP's library that it stands before `__wrap_f` and `f` itself.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gradus_rt.o"));

/// The linker's job, with the library where one of its objects calls it.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn linked(job: &Job, scratch: &Scratch) -> Result<Job, Diagnostic> {
    with_library(job, scratch, "")
}

/// As [`linked`], for a compiler that calls the linker.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn linked_by_compiler(job: &Job, scratch: &Scratch) -> Result<Job, Diagnostic> {
    with_library(job, scratch, "-Wl,")
}

/// The job with the library, the linker's own options behind `prefix`.
fn with_library(job: &Job, scratch: &Scratch, prefix: &str) -> Result<Job, Diagnostic> {
    let objects = job.args.iter().filter(|arg| arg.ends_with(".o"));
    let mut calls = objects.filter(|arg| needs_runtime(Path::new(arg)));
    if calls.next().is_none() {
        return Ok(job.clone());
    }
    let library = scratch.file("gradus_rt.o");
    files::write(&library, OBJECT)?;
    let mut job = job.clone();
    job.args
        .extend(wrapped().iter().map(|option| format!("{prefix}{option}")));
    job.args.extend([
        library.display().to_string(),
        format!("{prefix}--as-needed"),
        "-lgcc_s".to_string(),
        // The CUDA library's random numbers.
        "-lm".to_string(),
        "-lc".to_string(),
    ]);
    Ok(job)
}

/// Options with which calls of OpenMP's functions reach ours first.
fn wrapped() -> Vec<String> {
    let Ok(file) = object::File::parse(OBJECT) else {
        return Vec::new();
    };
    let names = file.symbols().filter_map(|symbol| {
        let name = symbol.name().ok()?.strip_prefix("__wrap_")?;
        symbol.is_global().then(|| format!("--wrap={name}"))
    });
    names.collect()
}

/// Whether an object refers to an entry of the library that it does not define.
fn needs_runtime(path: &Path) -> bool {
    let Ok(bytes) = files::read(path) else {
        return false;
    };
    let Ok(file) = object::File::parse(&*bytes) else {
        return false;
    };
    file.symbols()
        .filter(|symbol| symbol.is_undefined())
        .any(|symbol| symbol.name().is_ok_and(is_entry))
}

/// How the names of the library's own entries begin.
const ENTRIES: [&str; 5] = ["gr_", "__gr_", "cuda", "__cuda", "curand"];

fn is_entry(name: &str) -> bool {
    ENTRIES.iter().any(|start| name.starts_with(start))
}
