//! What the surroundings say: given as data, since nothing here reads environment or clock.

use crate::files::Scratch;
use crate::{Leftovers, Record};
use gradus_ir::{Code, Diagnostic};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
    /// Variables that compilers see beside those of this process: where `gradus.h` is.
    pub environment: Vec<(String, OsString)>,
    /// The folder with our headers.
    pub include: Option<PathBuf>,
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
    /// The C compiler, or the C++ compiler beside it.
    ///
    /// # Errors
    /// `ToolFailed` where there is none.
    pub fn clang(&self, plus_plus: bool) -> Result<PathBuf, Diagnostic> {
        let (versioned, plain) = match plus_plus {
            false => ("clang-22", "clang"),
            true => ("clang++-22", "clang++"),
        };
        if let Some(given) = &self.clang {
            return Ok(if plus_plus {
                beside(given)
            } else {
                given.clone()
            });
        }
        let found = self.find(versioned).or_else(|| self.find(plain));
        found.ok_or_else(|| {
            Diagnostic::error(Code::ToolFailed, "no clang was found")
                .help("install clang-22, or name a compiler in GRADUS_CLANG")
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
