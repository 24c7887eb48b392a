//! The run-time library of parallel programs, held in this program, whether a link needs it, and whose
//! threads it uses there: where an object, an archive or a library of the link has regions of OpenMP's own,
//! those of OpenMP's library, as there is one set of threads in a program.

use crate::files::{self, Scratch};
use crate::plan::Job;
use crate::{archive, drive::holds, fat::is_bitcode, link};
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::ParallelTarget;
use object::{Object, ObjectKind, ObjectSymbol};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library as one relocatable object; its symbols are the `gr_*` entries, CUDA's run time, and for each function `f`
/// of OpenMP's library that it stands before `__wrap_f` and `f` itself.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gradus_rt.o"));

/// The linker's job, with the library where one of its objects calls it.
///
/// # Errors
/// A file that cannot be written; `BadOption` where OpenMP's threads are to do the work and its library is not in
/// the link.
pub(crate) fn linked(
    job: &Job,
    scratch: &Scratch,
    target: ParallelTarget,
) -> Result<Job, Diagnostic> {
    let on_openmp = target == ParallelTarget::OpenMp;
    if on_openmp && !job.args.iter().any(|arg| OPENMP.contains(&arg.as_str())) {
        let message =
            "the threads of OpenMP's library are to do the work, and it is not in the link";
        let finding = Diagnostic::error(Code::BadOption, message);
        return Err(finding.help("give `-fopenmp` to the link, too"));
    }
    with_library(job, scratch, "", on_openmp)
}

/// As [`linked`], for a compiler that calls the linker.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn linked_by_compiler(job: &Job, scratch: &Scratch) -> Result<Job, Diagnostic> {
    with_library(job, scratch, "-Wl,", false)
}

/// The job with the library, the linker's own options behind `prefix`. OpenMP's threads do its work where that is
/// asked for, or something in the link begins regions of OpenMP's own.
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
    files::write(&library, OBJECT)?;
    let mut job = job.clone();
    job.args
        .extend(wrapped().iter().map(|option| format!("{prefix}{option}")));
    if on_openmp || shares_threads(&job) {
        job.args.push(format!("{prefix}{ON_LIBOMP}"));
    }
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

/// Whether an object of the link refers to an entry of the library that it does not define, or a member of an archive
/// to one that the library has.
fn needs_runtime(job: &Job) -> bool {
    let (archives, others): (Vec<PathBuf>, Vec<PathBuf>) =
        (link::inputs(job).map(|(_, path)| path)).partition(|path| link::is_archive(path));
    let mut objects = others.iter().filter_map(|path| files::read(path).ok());
    if objects.any(|bytes| !is_linked(&bytes) && misses(&bytes, &ENTRIES)) {
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

/// Whether a file is a program or a shared library.
fn is_linked(bytes: &[u8]) -> bool {
    object::File::parse(bytes).is_ok_and(|file| file.kind() != ObjectKind::Relocatable)
}

/// The names of the library's own entries.
fn defined_entries() -> HashSet<String> {
    let names = archive::defined(OBJECT).into_iter();
    let names = names.filter_map(|name| String::from_utf8(name).ok());
    names.filter(|name| begins(name, &ENTRIES)).collect()
}

/// Writes the library under the names that CUDA's has into a folder, for links that are not ours.
///
/// # Errors
/// What cannot be written.
pub(crate) fn write_libraries(folder: &Path) -> Result<(), Diagnostic> {
    let library = archive::of(&[("gradus_rt.o".to_string(), OBJECT.to_vec())]);
    let there = |file: &Path| files::read(file).is_ok_and(|bytes| bytes == library);
    files::make_folder(folder)?;
    let paths = LIBRARIES.map(|name| folder.join(name));
    let mut missing = paths.iter().filter(|path| !there(path));
    missing.try_for_each(|path| files::write(path, &library))
}

/// The names of CUDA's own run-time library.
const LIBRARIES: [&str; 3] = ["libcudart_static.a", "libcudart.a", "libcudadevrt.a"];

/// OpenMP's libraries, as a link names them.
const OPENMP: [&str; 3] = ["-lomp", "-liomp5", "-lgomp"];

/// The option that gives the work to OpenMP's threads: a symbol that the library asks for.
const ON_LIBOMP: &str = "--defsym=gr_on_libomp=gr_for";

/// Whether something in the link begins regions of OpenMP's own.
fn shares_threads(job: &Job) -> bool {
    link::inputs(job).any(|(_, path)| match link::is_archive(&path) {
        true => {
            let members = archive::members(&path);
            let is_library = members.iter().any(|member| has(member, &FORKS));
            !is_library && members.iter().any(|member| misses(member, &FORKS))
        }
        false => files::read(&path).is_ok_and(|bytes| misses(&bytes, &FORKS)),
    })
}

/// How the calls that begin regions are named; GNU's compilers have one for each kind of region.
const FORKS: [&str; 2] = ["__kmpc_fork_", "GOMP_parallel"];

/// flang's run-time library, where an object refers to it and the compiler knows where it lies.
pub(crate) fn fortran_library(clang: &Path, object: &Path) -> Option<String> {
    let refers = |bytes: Vec<u8>| misses(&bytes, &["_Fortran"]);
    if !files::read(object).is_ok_and(refers) {
        return None;
    }
    let asked = "-print-file-name=libflang_rt.runtime.a";
    let output = Command::new(clang).arg(asked).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?.trim().to_string();
    Path::new(&path).is_file().then_some(path)
}

/// Whether an object, a shared library or, for a link that optimises, LLVM's bitcode refers to a symbol that begins so
/// and that it does not define. Bitcode is taken to refer to all that it names: a library too many does no harm.
fn misses(bytes: &[u8], starts: &[&str]) -> bool {
    with_symbol(bytes, |undefined, name| undefined && begins(name, starts))
        || is_bitcode(bytes) && starts.iter().any(|start| holds(bytes, start.as_bytes()))
}

/// Whether an object defines such a symbol.
fn has(bytes: &[u8], starts: &[&str]) -> bool {
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

/// How the names of the library's own entries begin.
const ENTRIES: [&str; 5] = ["gr_", "__gr_", "cuda", "__cuda", "curand"];

fn begins(name: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| name.starts_with(start))
}
