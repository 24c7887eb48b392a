//! Input files of a linker's command line: objects, archives and libraries, `-l` resolved by `-L`.
//!
//! The link across files and the embedded runtime library look for symbols in these files.

use crate::clang_jobs::Job;
use std::path::{Path, PathBuf};

/// Returns the input files of a linker's command line, with argument positions: paths, or `-l` searched in
/// the folders of `-L`.
pub(crate) fn inputs(job: &Job) -> impl Iterator<Item = (usize, PathBuf)> {
    let words = job.args.iter().enumerate();
    let words = words.filter(|(at, _)| *at == 0 || job.args[at - 1] != "-o");
    let paths = words.map(|(at, word)| {
        let path = library(job, word).unwrap_or_else(|| PathBuf::from(word));
        (at, path)
    });
    paths.filter(|(_, path)| path.is_file())
}

/// Returns the file named by `-l` in the folders of `-L`: a shared library, else an archive.
pub(crate) fn library(job: &Job, word: &str) -> Option<PathBuf> {
    let name = word.strip_prefix("-l")?;
    let names = match name.strip_prefix(':') {
        Some(file) => vec![file.to_string()],
        None => vec![format!("lib{name}.so"), format!("lib{name}.a")],
    };
    let folders = job.args.iter().filter_map(|arg| arg.strip_prefix("-L"));
    let files = folders.flat_map(|folder| names.iter().map(|name| Path::new(folder).join(name)));
    let mut files = files.filter(|path| path.is_file());
    files.next()
}
