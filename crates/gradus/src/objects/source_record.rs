//! Record of a compilation in an object, in place of the module: the command, the folder, and the files read with
//! checksums. A link that differentiates functions of the object compiles the source again.
//!
//! An object of a file without derivative calls is mostly never differentiated. A module in each object takes more than
//! twice the space of the code, and a second front-end run.
//!
//! # Invariants
//! The module is that of the recorded files: a file that is gone or changed, or a compilation that reads other files,
//! is refused.

use crate::clang_jobs;
use crate::compilation::{self, DebugDetail};
use crate::dependencies::{self, is_of_system};
use crate::files;
use crate::objects::elf_sections::with_excluded_section;
use crate::objects::fat_objects::CarriedModule;
use crate::settings::Settings;
use gradus_ir::{Code, Diagnostic};
use object::{Object, ObjectSection};
use std::path::{Path, PathBuf};

/// The section of the record.
const SECTION: &str = ".gradus.src";
/// Separates fields.
const SEPARATOR: &str = "\0";

/// A recorded compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRecord {
    /// The compiler.
    pub compiler: PathBuf,
    /// The folder of the compilation, for relative paths.
    pub folder: PathBuf,
    /// The compiler's arguments.
    pub args: Vec<String>,
    /// The files read except for the system's, with checksums.
    pub files: Vec<(PathBuf, u64)>,
}

impl SourceRecord {
    /// Returns the object with the record; `None` if the format of the object has no such sections.
    pub(crate) fn attach(&self, object: &[u8]) -> Option<Vec<u8>> {
        with_excluded_section(object, SECTION, self.to_text().as_bytes())
    }

    /// Returns the record of an object.
    pub(crate) fn of(file: &object::File<'_>) -> Option<SourceRecord> {
        let bytes = file.section_by_name(SECTION)?.data().ok()?;
        SourceRecord::from_text(std::str::from_utf8(bytes).ok()?)
    }

    /// Fields: compiler, folder, number of arguments, arguments, then path and checksum of each file.
    fn to_text(&self) -> String {
        let mut fields = vec![
            self.compiler.display().to_string(),
            self.folder.display().to_string(),
            self.args.len().to_string(),
        ];
        fields.extend(self.args.iter().cloned());
        for (file, sum) in &self.files {
            fields.extend([file.display().to_string(), format!("{sum:016x}")]);
        }
        fields.join(SEPARATOR)
    }

    fn from_text(text: &str) -> Option<SourceRecord> {
        let fields: Vec<&str> = text.split(SEPARATOR).collect();
        let [compiler, folder, count, rest @ ..] = &fields[..] else {
            // Not an error: another program's section.
            return None;
        };
        let (args, files) = rest.split_at_checked(count.parse().ok()?)?;
        let file = |pair: &[&str]| match pair {
            [path, sum] => Some((PathBuf::from(path), u64::from_str_radix(sum, 16).ok()?)),
            _ => None,
        };
        Some(SourceRecord {
            compiler: compiler.into(),
            folder: folder.into(),
            args: args.iter().map(|arg| (*arg).to_string()).collect(),
            files: files.chunks(2).map(file).collect::<Option<_>>()?,
        })
    }

    /// Compiles the source again to `bitcode`, the module before optimisation. `object` is for messages.
    ///
    /// # Errors
    /// `FileAccess` if a file is gone or changed; `ToolFailed`.
    pub(crate) fn module(
        &self,
        settings: &Settings,
        object: &str,
        bitcode: &Path,
    ) -> Result<CarriedModule, Diagnostic> {
        for (file, sum) in &self.files {
            match std::fs::read(self.folder.join(file)) {
                Ok(bytes) if checksum(&bytes) == *sum => {}
                Ok(_) => return Err(self.outdated(object, file, "has changed")),
                Err(_) => return Err(self.outdated(object, file, "is gone")),
            }
        }
        let plan = clang_jobs::query_in(settings, &self.compiler, &self.args, Some(&self.folder))?;
        let job = plan.jobs.iter().find(|job| job.is_compilation());
        let Some(job) = job.filter(|_| plan.ok) else {
            let message = format!("{object}: the compiler no longer accepts the command line");
            return Err(Diagnostic::error(Code::ToolFailed, message));
        };
        let mut halves =
            compilation::split_compilation(job, bitcode, Path::new("-"), DebugDetail::Lines);
        dependencies::list_files(&mut halves.front, bitcode);
        let output = (halves.front.command().current_dir(&self.folder).output()).map_err(|e| {
            let message = format!("cannot run {}: {e}", job.program.display());
            Diagnostic::error(Code::ToolFailed, message)
        })?;
        if !output.status.success() {
            return Err(crate::job_execution::refused_error(&output));
        }
        let read = dependencies::files_read(&halves.front)?;
        let known = |file: &PathBuf| self.files.iter().any(|(recorded, _)| recorded == file);
        let other = read.iter().find(|file| !is_of_system(file) && !known(file));
        if let Some(other) = other {
            return Err(self.outdated(object, other, "was not read before"));
        }
        Ok(CarriedModule {
            bitcode: files::read(bitcode)?,
            back: compilation::without_temporary_paths(&halves.back.args),
        })
    }

    fn outdated(&self, object: &str, file: &Path, what: &str) -> Diagnostic {
        let file = self.folder.join(file);
        let message = format!(
            "{object} is older than its sources: {} {what}",
            file.display()
        );
        Diagnostic::error(Code::FileAccess, message)
            .note("a derivative across files compiles the sources of the functions again")
            .help(format!("compile {object} again before the link"))
    }
}

/// Returns the checksum of a file's contents: FNV-1a, equal in every version of Gradus.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_object() {
        let record = SourceRecord {
            compiler: "/bin/clang".into(),
            folder: "/work".into(),
            args: ["-c", "a b.c", ""].map(String::from).to_vec(),
            files: vec![("a b.c".into(), checksum(b"int a;"))],
        };
        let object = record
            .attach(crate::runtime_library::OBJECT)
            .expect("an object");
        let parsed = object::File::parse(&*object).expect("parsed");
        assert_eq!(SourceRecord::of(&parsed), Some(record));
    }
}
