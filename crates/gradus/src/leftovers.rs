//! What a run must not leave behind when it is ended before its time: its scratch folders. And the
//! moment in which outputs get their names, which a signal may not cut in two.
//!
//! Programs of other people write into scratch folders only; a folder that is gone takes what they
//! still write with it. Whoever handles signals calls [`Leftovers::clear`] and ends the process.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The folders of a run that are to go; clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Leftovers {
    folders: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Leftovers {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        // A list that a panic left is as good as any other.
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a folder.
    pub fn note(&self, folder: &Path) {
        self.lock().insert(folder.to_path_buf());
    }

    /// Takes a folder away, and off the list.
    pub fn remove(&self, folder: &Path) {
        let mut folders = self.lock();
        // A folder that cannot be taken away is left: nothing depends on it.
        let _ = fs::remove_dir_all(folder);
        folders.remove(folder);
    }

    /// Does something that [`Leftovers::clear`] may not interrupt.
    pub fn undisturbed<T>(&self, work: impl FnOnce() -> T) -> T {
        let folders = self.lock();
        let done = work();
        drop(folders);
        done
    }

    /// Takes all folders away and keeps everybody else out from then on: for the end of a process.
    pub fn clear(&self) {
        let folders = self.lock();
        for folder in folders.iter() {
            let _ = fs::remove_dir_all(folder);
        }
        std::mem::forget(folders);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_goes_and_what_was_removed_does_not_matter() {
        let base = std::env::temp_dir().join(format!("gradus-leftovers-{}", std::process::id()));
        let (one, two) = (base.join("one"), base.join("two"));
        for folder in [&one, &two] {
            fs::create_dir_all(folder).expect("a folder");
        }
        let leftovers = Leftovers::default();
        leftovers.note(&one);
        leftovers.note(&two);
        leftovers.remove(&one);
        assert!(!one.exists() && two.exists());
        assert_eq!(leftovers.undisturbed(|| 3), 3);
        leftovers.clear();
        assert!(!two.exists());
        fs::remove_dir_all(&base).expect("gone");
    }
}
