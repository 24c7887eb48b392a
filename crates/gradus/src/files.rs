//! Files: read whole, written beside and renamed, so that nobody ever sees half of one.

use gradus_ir::{Code, Diagnostic};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that goes away with its value.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// A fresh folder inside `within`.
    ///
    /// # Errors
    /// `FileAccess` where none can be made.
    pub fn new(within: &Path) -> Result<Scratch, Diagnostic> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        for _ in 0..100 {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let folder = within.join(format!("gradus-{}-{count}", std::process::id()));
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(Scratch { folder }),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(failed("make a folder in", within, &e)),
            }
        }
        let message = format!("no fresh folder can be made in {}", within.display());
        Err(Diagnostic::error(Code::FileAccess, message))
    }
    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be taken away is left: nothing depends on it.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A file's bytes.
///
/// # Errors
/// `FileAccess`.
pub fn read(file: &Path) -> Result<Vec<u8>, Diagnostic> {
    fs::read(file).map_err(|e| failed("read", file, &e))
}

/// Writes a file whole: under another name in the same folder first.
///
/// # Errors
/// `FileAccess`; the file is then as it was.
pub fn write(file: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    if fs::metadata(file).is_ok_and(|m| !m.is_file()) {
        // A device such as /dev/null, or a pipe, is written to as it is.
        return fs::write(file, bytes).map_err(|e| failed("write", file, &e));
    }
    let mut name = file.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    let part = file.with_file_name(name);
    fs::write(&part, bytes)
        .and_then(|()| fs::rename(&part, file))
        .map_err(|e| {
            // What is left of the part is of no use to anybody.
            let _ = fs::remove_file(&part);
            failed("write", file, &e)
        })
}

fn failed(what: &str, file: &Path, error: &std::io::Error) -> Diagnostic {
    let message = format!("cannot {what} {}: {error}", file.display());
    Diagnostic::error(Code::FileAccess, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_folder_goes_away_and_files_are_written_whole() {
        let scratch = Scratch::new(&std::env::temp_dir()).expect("a folder");
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
}
