//! Files of the clone, and the rule on file names.

use super::Finding;
use crate::process::{self, Failure, Outcome};
use std::path::Path;
use std::process::Command;

/// Returns the paths of all files of the project, from `root`: tracked files and untracked files that git does
/// not ignore. Without git, returns all files outside build folders and hidden folders.
///
/// # Errors
/// Fails if a folder cannot be read.
pub fn files(root: &Path) -> Outcome<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    if let Ok(list) = process::capture(&mut git) {
        let present = |f: &&str| !f.is_empty() && root.join(f).is_file();
        return Ok(list.split('\0').filter(present).map(String::from).collect());
    }
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .map_err(|e| Failure::new(format!("cannot read {}: {e}", folder.display())))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" {
                    folders.push(path);
                }
            } else if let Ok(inside) = path.strip_prefix(root) {
                found.push(inside.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Names without a subject.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "common", "misc"];

/// Returns a finding if a file or a folder has a name without a subject.
pub fn name(file: &str) -> Option<Finding> {
    let empty = file
        .split('/')
        .map(|part| part.split('.').next().unwrap_or_default())
        .find(|stem| EMPTY_NAMES.contains(stem))?;
    Some(Finding::new(
        file,
        1,
        format!("`{empty}` is not a subject: name the file after the subject"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn empty_names_are_flagged() {
        assert!(name("crates/gradus-ir/src/utils.rs").is_some());
        assert!(name("crates/gradus-ir/src/common/types.rs").is_some());
        assert!(name("crates/gradus-ir/src/types.rs").is_none());
    }

    #[test]
    fn this_file_is_among_the_files() {
        let files = files(&workspace::root()).unwrap();
        assert!(files.iter().any(|f| f == "xtask/src/tidy/tree.rs"));
        assert!(!files.iter().any(|f| f.starts_with("target/")));
    }
}
