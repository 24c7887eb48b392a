//! File access: files are read whole, and written under another name and renamed, so that no partial file
//! is visible. All outputs of a run appear together, or none.

use crate::TempFolders;
use crate::temp_files::random_suffix;
use gradus_ir::{Code, Diagnostic};
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A temporary folder, removed on drop.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
    leftovers: TempFolders,
}

impl Scratch {
    /// Creates a folder inside `within`, listed in `leftovers` while it exists. Other users cannot read the folder, and
    /// cannot predict its name.
    ///
    /// # Errors
    /// `FileAccess` if creation fails.
    pub fn new(within: &Path, leftovers: &TempFolders) -> Result<Scratch, Diagnostic> {
        for _ in 0..100 {
            let folder = within.join(format!("gradus-{}", random_suffix()));
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => {
                    leftovers.add(&folder);
                    return Ok(Scratch {
                        folder,
                        leftovers: leftovers.clone(),
                    });
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(failed("create a folder in", within, &e)),
            }
        }
        let message = format!("cannot create a temporary folder in {}", within.display());
        Err(Diagnostic::error(Code::FileAccess, message))
    }
    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
    /// Returns the path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
    /// Copies a file into the folder, under its own name.
    ///
    /// # Errors
    /// `FileAccess`.
    pub fn copy(&self, file: &Path) -> Result<PathBuf, Diagnostic> {
        let copy = self.file(&file.file_name().unwrap_or_default().to_string_lossy());
        fs::copy(file, &copy).map_err(|e| failed("read", file, &e))?;
        Ok(copy)
    }
    /// Returns true if a path is in the folder.
    pub fn holds(&self, path: &Path) -> bool {
        path.starts_with(&self.folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.leftovers.remove(&self.folder);
    }
}

/// Returns a file's bytes.
///
/// # Errors
/// `FileAccess`.
pub fn read(file: &Path) -> Result<Vec<u8>, Diagnostic> {
    fs::read(file).map_err(|e| failed("read", file, &e))
}

/// Opens a file for another program.
///
/// # Errors
/// `FileAccess`.
pub fn open(file: &Path) -> Result<fs::File, Diagnostic> {
    fs::File::open(file).map_err(|e| failed("read", file, &e))
}

/// Returns a file's name relative to the current folder, if the file is inside: the form of other names in diagnostics.
pub(crate) fn shown_name(file: &str) -> String {
    let path = Path::new(file);
    let inside = std::path::absolute(".").ok();
    let inside = inside.and_then(|folder| path.strip_prefix(folder).ok());
    inside.unwrap_or(path).display().to_string()
}

/// Returns the paths in a folder, sorted.
///
/// # Errors
/// `FileAccess`.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let entries = fs::read_dir(folder).map_err(|e| failed("read", folder, &e))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(|e| failed("read", folder, &e))?;
    paths.sort();
    Ok(paths)
}

/// Waits for the exclusive lock on a file, which is created if necessary. The lock ends with the returned file.
///
/// # Errors
/// `FileAccess`.
pub fn lock(file: &Path) -> Result<fs::File, Diagnostic> {
    make_folder(file.parent().unwrap_or(Path::new(".")))?;
    let opened = fs::File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(file);
    let locked = opened.and_then(|opened| opened.lock().map(|()| opened));
    locked.map_err(|e| failed("lock", file, &e))
}

/// Creates a folder, and its parents.
///
/// # Errors
/// `FileAccess`.
pub fn make_folder(folder: &Path) -> Result<(), Diagnostic> {
    fs::create_dir_all(folder).map_err(|e| failed("make", folder, &e))
}

/// Writes a file atomically, by renaming a file in the same folder.
///
/// # Errors
/// `FileAccess`; the file is then unchanged.
pub fn write(file: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    let mut outputs = Outputs::default();
    outputs.add(file, Content::Bytes(bytes.to_vec()));
    outputs.write_all()
}

/// Makes `link` a symbolic link to `target`; an existing link to another target is replaced.
///
/// # Errors
/// `FileAccess`.
pub fn link_to(target: &Path, link: &Path) -> Result<(), Diagnostic> {
    if fs::read_link(link).is_ok_and(|there| there == target) {
        return Ok(());
    }
    make_folder(link.parent().unwrap_or(Path::new(".")))?;
    let fresh = link.with_extension(random_suffix());
    let made = std::os::unix::fs::symlink(target, &fresh).and_then(|()| fs::rename(&fresh, link));
    made.map_err(|e| {
        let message = format!("cannot write {}: {e}", link.display());
        Diagnostic::error(Code::FileAccess, message)
    })
}

/// The content of an output.
#[derive(Clone, Debug)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A copy of this file, with permissions.
    File(PathBuf),
}

/// The outputs of a run: all appear, or none.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    list: Vec<(PathBuf, Content)>,
}

impl Outputs {
    /// Adds an output.
    pub fn add(&mut self, file: &Path, content: Content) {
        self.list.push((file.to_path_buf(), content));
    }

    /// Returns the paths of the outputs.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.list.iter().map(|(file, _)| file.clone()).collect()
    }

    /// Writes all outputs under temporary names in their folders, then renames them without interruption by
    /// [`TempFolders::clear`].
    ///
    /// # Errors
    /// `FileAccess`; every file is then unchanged.
    pub fn commit(&self, leftovers: &TempFolders) -> Result<(), Diagnostic> {
        leftovers.without_interruption(|| self.write_all())
    }

    fn write_all(&self) -> Result<(), Diagnostic> {
        let mut parts = Vec::new();
        // A file that a program did not write is not an output.
        let there = |(_, content): &&(PathBuf, Content)| match content {
            Content::Bytes(_) => true,
            Content::File(from) => from.exists(),
        };
        let (others, files): (Vec<_>, Vec<_>) =
            (self.list.iter().filter(there)).partition(|(file, _)| is_special_file(file));
        let written = files.iter().try_for_each(|(file, content)| {
            let part = temporary_name(file);
            parts.push((part.clone(), file));
            write_content(content, &part).map_err(|e| failed("write", file, &e))
        });
        // Devices such as /dev/null and pipes are written directly; a folder cannot be written.
        let done = written
            .and_then(|()| {
                others
                    .iter()
                    .try_for_each(|(file, content)| write_to_device(content, file))
            })
            .and_then(|()| {
                parts.iter().try_for_each(|(part, file)| {
                    fs::rename(part, file).map_err(|e| failed("write", file, &e))
                })
            });
        if done.is_err() {
            for (part, _) in &parts {
                // The remaining partial file is useless.
                let _ = fs::remove_file(part);
            }
        }
        done
    }
}

/// The name of standard output as an output file.
pub const STDOUT: &str = "-";

/// Returns true for standard output, and if the path exists and is not a regular file.
pub fn is_special_file(path: &Path) -> bool {
    path == Path::new(STDOUT) || fs::metadata(path).is_ok_and(|m| !m.is_file())
}

fn write_content(content: &Content, to: &Path) -> std::io::Result<()> {
    match content {
        Content::Bytes(bytes) => fs::write(to, bytes),
        Content::File(from) => fs::copy(from, to).map(|_| ()),
    }
}

/// Writes to standard output, a device or pipe.
fn write_to_device(content: &Content, to: &Path) -> Result<(), Diagnostic> {
    let bytes = match content {
        Content::Bytes(bytes) => bytes.clone(),
        Content::File(from) => read(from)?,
    };
    let written = match to == Path::new(STDOUT) {
        true => std::io::stdout().write_all(&bytes),
        false => fs::write(to, bytes),
    };
    written.map_err(|e| failed("write", to, &e))
}

/// Returns the name of an unfinished file.
fn temporary_name(file: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(format!(".{}.part", random_suffix()));
    file.with_file_name(name)
}

fn failed(what: &str, file: &Path, error: &std::io::Error) -> Diagnostic {
    let message = format!("cannot {what} {}: {error}", file.display());
    Diagnostic::error(Code::FileAccess, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch() -> Scratch {
        Scratch::new(&std::env::temp_dir(), &TempFolders::default()).expect("a folder")
    }

    #[test]
    fn a_scratch_folder_goes_away_and_files_are_written_whole() {
        let scratch = scratch();
        let file = scratch.file("a");
        write(&file, b"one").expect("written");
        write(&file, b"two").expect("written again");
        assert_eq!(read(&file).expect("read"), b"two");
        let folder = scratch.folder.clone();
        assert_eq!(fs::read_dir(&folder).expect("listed").count(), 1);
        drop(scratch);
        assert!(!folder.exists());
        assert_eq!(read(&file).expect_err("gone").code, Code::FileAccess);
    }

    #[test]
    fn of_several_outputs_all_appear_or_none() {
        let scratch = scratch();
        let mut outputs = Outputs::default();
        outputs.add(&scratch.file("a"), Content::Bytes(b"a".to_vec()));
        outputs.add(&scratch.file("no/b"), Content::Bytes(b"b".to_vec()));
        let refused = outputs.commit(&scratch.leftovers);
        assert_eq!(refused.expect_err("no folder").code, Code::FileAccess);
        assert_eq!(fs::read_dir(&scratch.folder).expect("listed").count(), 0);
        let mut outputs = Outputs::default();
        outputs.add(&scratch.file("a"), Content::Bytes(b"a".to_vec()));
        outputs.add(&scratch.folder, Content::Bytes(b"b".to_vec()));
        assert!(outputs.commit(&scratch.leftovers).is_err());
        assert!(!scratch.file("a").exists());
        let mut outputs = Outputs::default();
        outputs.add(&scratch.file("b"), Content::File(scratch.file("nothing")));
        outputs.add(&scratch.file("c"), Content::Bytes(b"c".to_vec()));
        outputs.commit(&scratch.leftovers).expect("written");
        assert!(!scratch.file("b").exists() && scratch.file("c").exists());
    }
}
