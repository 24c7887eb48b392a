//! External state as data, since nothing in this crate reads environment or clock.

use crate::files::Scratch;
use crate::progress::ProgressSink;
use crate::request_record::Record;
use crate::temp_files::TempFolders;
use gradus_ir::{Code, Diagnostic};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The language of a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// C.
    #[default]
    C,
    /// C++.
    PlusPlus,
    /// Fortran.
    Fortran,
}

impl Language {
    /// Returns the language of a source, by extension; C by default.
    pub fn of(file: &Path) -> Language {
        match file.extension().and_then(|e| e.to_str()) {
            Some("cpp" | "cc" | "cxx" | "C" | "c++") => Language::PlusPlus,
            Some(
                "f" | "for" | "f77" | "f90" | "f95" | "f03" | "f08" | "f18" | "F" | "FOR" | "F77"
                | "F90" | "F95" | "F03" | "F08" | "F18",
            ) => Language::Fortran,
            _ => Language::C,
        }
    }
}

/// The limits of a child process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The time limit.
    pub time: Duration,
    /// The memory limit in bytes.
    pub memory_bytes: u64,
}

impl Default for Limits {
    /// An hour and 16 GiB: stops programs that never end, but not large ones.
    fn default() -> Self {
        Limits {
            time: Duration::from_secs(3600),
            memory_bytes: 16 << 30,
        }
    }
}

/// Programs and folders.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The C compiler (`GRADUS_CLANG`); `None` looks for `clang-22`, then `clang`.
    pub clang: Option<PathBuf>,
    /// The Fortran compiler (`GRADUS_FLANG`); `None` looks for `flang-22`, then `flang`.
    pub flang: Option<PathBuf>,
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
    /// Environment variables for compilers in addition to the process's own: the path of `gradus.h`.
    pub environment: Vec<(String, OsString)>,
    /// The folder with Gradus's headers.
    pub include: Option<PathBuf>,
    /// The folder for files kept between runs, by version.
    pub store: PathBuf,
    /// The folder for temporary files.
    pub temp: PathBuf,
    /// The command `gradus`, for links to it under the drivers' names.
    pub program: PathBuf,
    /// The program `gradus-compiler`, which serves a request.
    pub child: PathBuf,
    /// The limits of the compiling process.
    pub limits: Limits,
    /// Folders to remove if the run is terminated early.
    pub leftovers: TempFolders,
    /// The receiver of progress.
    pub progress: ProgressSink,
    /// The command line, for bug reports.
    pub command: Vec<String>,
    /// The record of requests to the compiling process, for a bug report.
    pub record: Option<Record>,
}

impl Settings {
    /// Creates a folder for temporary files.
    ///
    /// # Errors
    /// `FileAccess` if creation fails.
    pub fn scratch(&self) -> Result<Scratch, Diagnostic> {
        Scratch::new(&self.temp, &self.leftovers)
    }
    /// Returns the program `name` on the path.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let candidates = self.path.iter().map(|folder| folder.join(name));
        candidates.into_iter().find(|file| is_program(file))
    }
    /// Returns additional arguments for the compiler of a language: the path of `gradus.f90`, as flang has
    /// no environment variable for it.
    pub(crate) fn extra_arguments(&self, language: Language) -> Vec<String> {
        let include = self.include.as_ref();
        let told = include.filter(|_| language == Language::Fortran);
        told.map_or_else(Vec::new, |folder| {
            vec!["-I".to_string(), folder.display().to_string()]
        })
    }
    /// Returns the compiler of a language; the C++ compiler is derived from the C compiler.
    ///
    /// # Errors
    /// `ToolFailed` if none exists.
    pub fn compiler(&self, language: Language) -> Result<PathBuf, Diagnostic> {
        let (names, given) = match language {
            Language::C => (["clang-22", "clang"], self.clang.clone()),
            Language::PlusPlus => (
                ["clang++-22", "clang++"],
                self.clang.as_deref().map(cplusplus_driver),
            ),
            Language::Fortran => (["flang-22", "flang"], self.flang.clone()),
        };
        let found = given.or_else(|| names.into_iter().find_map(|name| self.find(name)));
        found.ok_or_else(|| {
            let (name, variable) = match language {
                Language::C | Language::PlusPlus => ("clang", "GRADUS_CLANG"),
                Language::Fortran => ("flang", "GRADUS_FLANG"),
            };
            Diagnostic::error(Code::ToolFailed, format!("no {name} was found")).help(format!(
                "install {name}-22, or set {variable} to a compiler"
            ))
        })
    }
}

/// Returns the C++ driver next to a C driver: `clang-22` → `clang++-22`.
fn cplusplus_driver(clang: &Path) -> PathBuf {
    let name = clang.file_name().map(|n| n.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    if name.contains("++") {
        return clang.to_path_buf();
    }
    let plus_plus = clang.with_file_name(name.replacen("clang", "clang++", 1));
    match is_program(&plus_plus) || !clang.is_absolute() {
        true => plus_plus,
        false => clang.to_path_buf(),
    }
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plus_plus_driver_lies_beside_the_c_driver() {
        assert_eq!(
            cplusplus_driver(Path::new("clang-22")),
            Path::new("clang++-22")
        );
        assert_eq!(cplusplus_driver(Path::new("clang++")), Path::new("clang++"));
    }
}
