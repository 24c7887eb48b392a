//! Compiles a C library twice: with clang, for the reference, and with `gradus cc -c`, whose objects carry
//! bitcode for differentiation at link time.
//!
//! Existing archives are reused, since neither archive holds derivatives. The folder may be deleted.

use crate::process::{self, Failure, Outcome};
use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Both archives of a library.
pub struct Archives {
    /// Archive compiled by clang.
    pub plain: PathBuf,
    /// Archive compiled by `gradus cc`.
    pub carried: PathBuf,
}

/// Sources and flags of a library.
pub struct Sources {
    /// C files.
    pub files: Vec<PathBuf>,
    /// Flags of the compiler.
    pub flags: Vec<String>,
}

/// Compiles a library into `folder`.
///
/// # Errors
/// Fails if the folder cannot be written or if a file does not compile.
pub fn build(binary: &Path, folder: &Path, sources: &Sources) -> Outcome<Archives> {
    let mut clang = vec![workspace::clang()];
    let mut gradus = vec![binary.display().to_string(), "cc".into()];
    for command in [&mut clang, &mut gradus] {
        command.extend(["-w", "-O2", "-c"].map(String::from));
        command.extend(sources.flags.iter().cloned());
    }
    Ok(Archives {
        plain: archive(&folder.join("plain"), &clang, &sources.files)?,
        carried: archive(&folder.join("carried"), &gradus, &sources.files)?,
    })
}

fn archive(folder: &Path, command: &[String], files: &[PathBuf]) -> Outcome<PathBuf> {
    let archive = folder.join("library.a");
    if archive.is_file() {
        return Ok(archive);
    }
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
    let objects: Vec<PathBuf> = (0..files.len())
        .map(|i| folder.join(format!("{i}.o")))
        .collect();
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<Failure>> = Mutex::new(None);
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let (Some(file), Some(object)) = (files.get(i), objects.get(i)) else {
                break;
            };
            let mut compile = Command::new(&command[0]);
            compile.args(&command[1..]).arg(file).arg("-o").arg(object);
            if let (Err(failure), Ok(mut first)) = (process::capture(&mut compile), failed.lock()) {
                first.get_or_insert(failure);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    if let Some(failure) = failed.into_inner().unwrap_or_default() {
        return Err(failure);
    }
    let made = folder.join("made.a");
    process::capture(Command::new("ar").arg("crs").arg(&made).args(&objects))?;
    std::fs::rename(&made, &archive)
        .map_err(|e| Failure::new(format!("{}: {e}", archive.display())))?;
    Ok(archive)
}
