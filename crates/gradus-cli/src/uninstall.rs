//! `gradus uninstall PREFIX`: removes the files that `gradus install PREFIX` lists in its manifest, and the folders that
//! are empty then.
//!
//! # Invariants
//! No file is removed unless all lines of the manifest are paths below the prefix that name no folder. The manifest is
//! removed last: an interrupted removal can run again.

use crate::install::MANIFEST;
use crate::said::outln;
use crate::session::Session;
use clap::Args;
use gradus::{Code, Diagnostic, files};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// The words of the command line.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  gradus uninstall ~/.local\n  gradus uninstall /usr/local")]
pub struct Words {
    /// The folder of `gradus install`
    prefix: PathBuf,
}

/// Runs the command. Returns the exit status.
pub fn run(session: &Session, words: &Words) -> u8 {
    let prefix = &words.prefix;
    match uninstall(prefix) {
        Ok(count) => {
            outln!("removed {count} files below {}", prefix.display());
            0
        }
        Err(finding) => session.fail(finding),
    }
}

/// Removes all listed files. Returns their number.
fn uninstall(prefix: &Path) -> Result<usize, Diagnostic> {
    let manifest = prefix.join(MANIFEST);
    let text = files::read(&manifest).map_err(|finding| {
        finding
            .note(format!("{} has no list of installed files", prefix.display()))
            .help("pass the folder that `gradus install` was given; packages are removed by their package manager")
    })?;
    let text = String::from_utf8_lossy(&text);
    let listed: Vec<&Path> = text.lines().map(Path::new).collect();
    let refused = listed.iter().find(|path| !is_removable(prefix, path));
    if let Some(path) = refused {
        let message = format!(
            "{} lists `{}`, which is no file below the folder",
            manifest.display(),
            path.display()
        );
        return Err(Diagnostic::error(Code::UnreadableInput, message)
            .note("no file was removed")
            .help("install again over the damaged installation, and remove it then"));
    }
    let is_manifest = |path: &&Path| *path == Path::new(MANIFEST);
    let (last, first): (Vec<&Path>, Vec<&Path>) = listed.iter().partition(|path| is_manifest(path));
    let mut count = 0;
    for path in first.into_iter().chain(last) {
        count += usize::from(remove(&prefix.join(path))?);
    }
    for folder in folders(&listed) {
        // Not an error: a folder with other files stays.
        let _ = std::fs::remove_dir(prefix.join(folder));
    }
    Ok(count)
}

/// Returns true for a relative path without `..` that names no folder.
fn is_removable(prefix: &Path, path: &Path) -> bool {
    let mut parts = path.components();
    path.components().next().is_some()
        && parts.all(|part| matches!(part, Component::Normal(_)))
        && std::fs::symlink_metadata(prefix.join(path)).map_or(true, |found| !found.is_dir())
}

/// Removes a file or a link. Returns false if the file is gone already.
fn remove(path: &Path) -> Result<bool, Diagnostic> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => {
            let message = format!("cannot remove {}: {error}", path.display());
            Err(Diagnostic::error(Code::FileAccess, message)
                .help("run the command again with the rights of the installation"))
        }
    }
}

/// Returns the folders of listed files below `bin`, `include`, `lib` and `share`, inner ones first.
fn folders<'a>(listed: &[&'a Path]) -> Vec<&'a Path> {
    let all = listed.iter().flat_map(|path| path.ancestors().skip(1));
    let inner = all.filter(|folder| folder.components().count() > 1);
    let sorted: BTreeSet<&Path> = inner.collect();
    sorted.into_iter().rev().collect()
}
