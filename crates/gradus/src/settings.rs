//! What the surroundings say: given as data, since nothing here reads environment or clock.

use crate::files::Scratch;
use crate::{Leftovers, Record};
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
    /// The language of a source, by the ending of its name; C where it tells no other.
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

/// What a process that we start may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may run.
    pub time: Duration,
    /// How many bytes of memory it may use.
    pub memory_bytes: u64,
}

impl Default for Limits {
    /// An hour and 16 GiB: against programs that never end, not against large ones.
    fn default() -> Self {
        Limits {
            time: Duration::from_secs(3600),
            memory_bytes: 16 << 30,
        }
    }
}

/// Programs and folders to work with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The C compiler (`GRADUS_CLANG`); `None` looks for `clang-22`, then `clang`.
    pub clang: Option<PathBuf>,
    /// The Fortran compiler (`GRADUS_FLANG`); `None` looks for `flang-22`, then `flang`.
    pub flang: Option<PathBuf>,
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
    /// Variables that compilers see beside those of this process: where `gradus.h` is.
    pub environment: Vec<(String, OsString)>,
    /// The folder with our headers.
    pub include: Option<PathBuf>,
    /// Where files of ours stay from run to run, by version.
    pub store: PathBuf,
    /// Where temporary files go.
    pub temp: PathBuf,
    /// The program that, called with [`crate::CHILD_COMMAND`], compiles a request.
    pub child: PathBuf,
    /// What the compiling process may take.
    pub limits: Limits,
    /// What is to go when the run is ended before its time.
    pub leftovers: Leftovers,
    /// The command line, for reports of faults.
    pub command: Vec<String>,
    /// Where requests to the compiling process are kept, for a report.
    pub record: Option<Record>,
}

impl Settings {
    /// A fresh folder for temporary files.
    ///
    /// # Errors
    /// `FileAccess` where none can be made.
    pub fn scratch(&self) -> Result<Scratch, Diagnostic> {
        Scratch::new(&self.temp, &self.leftovers)
    }
    /// The program `name` on the path.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let candidates = self.path.iter().map(|folder| folder.join(name));
        candidates.into_iter().find(|file| is_program(file))
    }
    /// What the compiler of a language is told in addition: where `gradus.f90` is, as flang asks no variable for that.
    pub(crate) fn words(&self, language: Language) -> Vec<String> {
        let include = self.include.as_ref();
        let told = include.filter(|_| language == Language::Fortran);
        told.map_or_else(Vec::new, |folder| {
            vec!["-I".to_string(), folder.display().to_string()]
        })
    }
    /// The compiler of a language: of C++ the one beside that of C.
    ///
    /// # Errors
    /// `ToolFailed` where there is none.
    pub fn compiler(&self, language: Language) -> Result<PathBuf, Diagnostic> {
        let (names, given) = match language {
            Language::C => (["clang-22", "clang"], self.clang.clone()),
            Language::PlusPlus => (["clang++-22", "clang++"], self.clang.as_deref().map(beside)),
            Language::Fortran => (["flang-22", "flang"], self.flang.clone()),
        };
        let found = given.or_else(|| names.into_iter().find_map(|name| self.find(name)));
        found.ok_or_else(|| {
            let (name, variable) = match language {
                Language::C | Language::PlusPlus => ("clang", "GRADUS_CLANG"),
                Language::Fortran => ("flang", "GRADUS_FLANG"),
            };
            Diagnostic::error(Code::ToolFailed, format!("no {name} was found")).help(format!(
                "install {name}-22, or name a compiler in {variable}"
            ))
        })
    }
}

/// The C++ driver beside a C driver: `clang-22` → `clang++-22`.
fn beside(clang: &Path) -> PathBuf {
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
        assert_eq!(beside(Path::new("clang-22")), Path::new("clang++-22"));
        assert_eq!(beside(Path::new("clang++")), Path::new("clang++"));
    }
}
