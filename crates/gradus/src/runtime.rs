//! Link of the runtime library of parallel programs: decides whether a link needs it, and selects its
//! threads. If an object, an archive or a library of the link has OpenMP regions of its own, the runtime
//! uses the threads of OpenMP's library, for a single thread pool in the program.

use crate::clang_jobs::Job;
use crate::files::{self, Scratch};
use crate::module_scan::holds;
use crate::objects::archive;
use crate::objects::kind::{is_archive, is_bitcode, is_linked};
use crate::objects::linker_inputs::inputs;
use crate::runtime_library::{self, OBJECT, WITHOUT_CUDA, wrap_options};
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::ParallelTarget;
use object::{Object, ObjectSymbol};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the linker's job, with the library if an object calls it.
///
/// # Errors
/// A file cannot be written; `BadOption` if OpenMP's threads are requested and OpenMP's library is not in
/// the link.
pub(crate) fn with_runtime(
    job: &Job,
    scratch: &Scratch,
    target: ParallelTarget,
) -> Result<Job, Diagnostic> {
    let on_openmp = target == ParallelTarget::OpenMp;
    if on_openmp && !job.args.iter().any(|arg| OPENMP.contains(&arg.as_str())) {
        let message = "`--par-target=openmp` requires the OpenMP library, which is not in the link";
        let finding = Diagnostic::error(Code::BadOption, message);
        return Err(finding.help("add `-fopenmp` to the link command"));
    }
    with_library(job, scratch, "", on_openmp)
}

/// Like [`with_runtime`], for a compiler that calls the linker.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn with_runtime_by_compiler(job: &Job, scratch: &Scratch) -> Result<Job, Diagnostic> {
    with_library(job, scratch, "-Wl,", false)
}

/// Returns the job with the library; linker options are prefixed by `prefix`. OpenMP's threads are used on
/// request, or if the link has OpenMP regions of its own.
fn with_library(
    job: &Job,
    scratch: &Scratch,
    prefix: &str,
    on_openmp: bool,
) -> Result<Job, Diagnostic> {
    if !needs_runtime(job) {
        return Ok(job.clone());
    }
    let library = scratch.file("gradus_rt.o");
    let object = match uses_cuda(job) {
        true => OBJECT,
        false => WITHOUT_CUDA,
    };
    files::write(&library, object)?;
    let mut job = job.clone();
    job.args.extend(
        wrap_options()
            .iter()
            .map(|option| format!("{prefix}{option}")),
    );
    if on_openmp || has_openmp_regions(&job) {
        job.args.push(format!("{prefix}{USE_OPENMP_THREADS}"));
    }
    job.args.extend([
        library.display().to_string(),
        format!("{prefix}--as-needed"),
        "-lgcc_s".to_string(),
        // Required by the CUDA library's random numbers.
        "-lm".to_string(),
        "-lc".to_string(),
    ]);
    Ok(job)
}

/// Returns true if an input of the link refers to an entry for CUDA programs. A shared library that defines one counts,
/// too: the program and the library must use one copy of the runtime's state.
fn uses_cuda(job: &Job) -> bool {
    let names = |object| archive::defined_symbols(object).into_iter();
    let others: HashSet<Vec<u8>> = names(WITHOUT_CUDA).collect();
    let only_cuda = names(OBJECT).filter(|name| !others.contains(name));
    let entries: HashSet<String> =
        (only_cuda.filter_map(|name| String::from_utf8(name).ok())).collect();
    let calls = |bytes: &[u8]| {
        let counts = |undefined: bool| undefined || is_linked(bytes);
        with_symbol(bytes, |undefined, name| {
            counts(undefined) && entries.contains(name)
        }) || is_bitcode(bytes) && entries.iter().any(|name| holds(bytes, name.as_bytes()))
    };
    inputs(job).any(|(_, path)| match is_archive(&path) {
        true => archive::members(&path).iter().any(|member| calls(member)),
        false => files::read(&path).is_ok_and(|bytes| calls(&bytes)),
    })
}

/// Returns true if an object of the link has an undefined symbol with an entry's prefix, or an archive
/// member refers to an entry of the library.
fn needs_runtime(job: &Job) -> bool {
    let (archives, others): (Vec<PathBuf>, Vec<PathBuf>) =
        (inputs(job).map(|(_, path)| path)).partition(|path| is_archive(path));
    let mut objects = others.iter().filter_map(|path| files::read(path).ok());
    if objects.any(|bytes| !is_linked(&bytes) && has_undefined_symbol(&bytes, &ENTRIES)) {
        return true;
    }
    let entries = defined_entries();
    let calls = |member: &Vec<u8>| {
        let named = |undefined: bool, name: &str| undefined && entries.contains(name);
        let mut entries = entries.iter();
        with_symbol(member, named)
            || is_bitcode(member) && entries.any(|name| holds(member, name.as_bytes()))
    };
    let mut members = archives.iter().flat_map(|path| archive::members(path));
    members.any(|member| calls(&member))
}

/// Returns the names of the library's entries.
fn defined_entries() -> HashSet<String> {
    let names = archive::defined_symbols(OBJECT).into_iter();
    let names = names.filter_map(|name| String::from_utf8(name).ok());
    names.filter(|name| begins(name, &ENTRIES)).collect()
}

/// Writes the library into a folder under the names of CUDA's libraries, for links by other compilers.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write_libraries(folder: &Path) -> Result<(), Diagnostic> {
    let library = runtime_library::archive();
    let there = |file: &Path| files::read(file).is_ok_and(|bytes| bytes == library);
    files::make_folder(folder)?;
    let paths = LIBRARIES.map(|name| folder.join(name));
    let mut missing = paths.iter().filter(|path| !there(path));
    missing.try_for_each(|path| files::write(path, &library))
}

/// The names of CUDA's own runtime library.
const LIBRARIES: [&str; 3] = ["libcudart_static.a", "libcudart.a", "libcudadevrt.a"];

/// OpenMP's libraries, as named in a link.
const OPENMP: [&str; 3] = ["-lomp", "-liomp5", "-lgomp"];

/// The option that selects OpenMP's threads: defines a symbol tested by the library.
const USE_OPENMP_THREADS: &str = "--defsym=gr_on_libomp=gr_for";

/// Returns true if an input of the link has OpenMP regions of its own.
fn has_openmp_regions(job: &Job) -> bool {
    inputs(job).any(|(_, path)| match is_archive(&path) {
        true => {
            let members = archive::members(&path);
            let is_library = members
                .iter()
                .any(|member| has_defined_symbol(member, &FORKS));
            !is_library
                && members
                    .iter()
                    .any(|member| has_undefined_symbol(member, &FORKS))
        }
        false => files::read(&path).is_ok_and(|bytes| has_undefined_symbol(&bytes, &FORKS)),
    })
}

/// The prefixes of calls that fork regions; GNU's compilers have one per kind of region.
const FORKS: [&str; 2] = ["__kmpc_fork_", "GOMP_parallel"];

/// Returns flang's runtime library, if an object refers to it and the compiler knows its path.
pub(crate) fn fortran_library(clang: &Path, object: &Path) -> Option<String> {
    let refers = |bytes: Vec<u8>| has_undefined_symbol(&bytes, &["_Fortran"]);
    if !files::read(object).is_ok_and(refers) {
        return None;
    }
    let asked = "-print-file-name=libflang_rt.runtime.a";
    let output = Command::new(clang).arg(asked).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?.trim().to_string();
    Path::new(&path).is_file().then_some(path)
}

/// Returns true if an object, a shared library or LTO bitcode has an undefined symbol with one of these
/// prefixes. Bitcode is assumed to refer to all its names: a superfluous library is harmless.
fn has_undefined_symbol(bytes: &[u8], starts: &[&str]) -> bool {
    with_symbol(bytes, |undefined, name| undefined && begins(name, starts))
        || is_bitcode(bytes) && starts.iter().any(|start| holds(bytes, start.as_bytes()))
}

/// Returns true if an object defines a symbol with one of these prefixes.
fn has_defined_symbol(bytes: &[u8], starts: &[&str]) -> bool {
    with_symbol(bytes, |undefined, name| !undefined && begins(name, starts))
}

fn with_symbol(bytes: &[u8], such: impl Fn(bool, &str) -> bool) -> bool {
    let Ok(file) = object::File::parse(bytes) else {
        return false;
    };
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let mut symbols = symbols.filter_map(|s| Some((s.is_undefined(), s.name().ok()?)));
    symbols.any(|(undefined, name)| such(undefined, name))
}

/// The prefixes of the library's entries.
const ENTRIES: [&str; 5] = ["gr_", "__gr_", "cuda", "__cuda", "curand"];

fn begins(name: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| name.starts_with(start))
}
