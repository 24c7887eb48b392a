//! Temporary folders to remove if a run is terminated early, and the lock that protects the renaming of
//! outputs from signals.
//!
//! Other programs write to temporary folders only; removing a folder also removes their late output. A
//! signal handler calls [`TempFolders::clear`] and exits the process.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The temporary folders of a run; clones share the list.
#[derive(Clone, Debug, Default)]
pub struct TempFolders {
    folders: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl TempFolders {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        // A list left by a panic is still valid.
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a folder.
    pub fn add(&self, folder: &Path) {
        self.lock().insert(folder.to_path_buf());
    }

    /// Removes a folder, and its entry.
    pub fn remove(&self, folder: &Path) {
        let mut folders = self.lock();
        // A folder that cannot be removed is left: nothing depends on it.
        let _ = fs::remove_dir_all(folder);
        folders.remove(folder);
    }

    /// Runs `work` without interruption by [`TempFolders::clear`].
    pub fn without_interruption<T>(&self, work: impl FnOnce() -> T) -> T {
        let folders = self.lock();
        let done = work();
        drop(folders);
        done
    }

    /// Removes all folders and blocks other users of the list from then on: for the end of a process.
    pub fn clear(&self) {
        let folders = self.lock();
        for folder in folders.iter() {
            let _ = fs::remove_dir_all(folder);
        }
        std::mem::forget(folders);
    }
}

/// Returns a random part of a file name. The process identifier is not enough: processes in two containers share a
/// folder and have equal identifiers, and a killed process leaves its files behind.
pub(crate) fn random_suffix() -> String {
    // The standard library seeds the state from the system's random numbers, and never twice with the same numbers.
    format!("{:016x}", RandomState::new().hash_one(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_suffixes_differ() {
        let suffixes: BTreeSet<String> = (0..1000).map(|_| random_suffix()).collect();
        assert_eq!(suffixes.len(), 1000);
        assert!(suffixes.iter().all(|suffix| suffix.len() == 16));
    }

    #[test]
    fn what_was_noted_goes_and_what_was_removed_does_not_matter() {
        let base = std::env::temp_dir().join(format!("gradus-leftovers-{}", random_suffix()));
        let (one, two) = (base.join("one"), base.join("two"));
        for folder in [&one, &two] {
            fs::create_dir_all(folder).expect("a folder");
        }
        let leftovers = TempFolders::default();
        leftovers.add(&one);
        leftovers.add(&two);
        leftovers.remove(&one);
        assert!(!one.exists() && two.exists());
        assert_eq!(leftovers.without_interruption(|| 3), 3);
        leftovers.clear();
        assert!(!two.exists());
        fs::remove_dir_all(&base).expect("gone");
    }
}
