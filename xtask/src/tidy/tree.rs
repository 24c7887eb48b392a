//! The files of the clone, and the rule on their names.

use super::Finding;
use crate::process::{self, Failure, Outcome};
use std::path::Path;
use std::process::Command;

/// Paths from `root` of all files that belong to the project: what git tracks or would; where there is
/// no git, everything outside build folders and hidden ones.
///
/// # Errors
/// Where a folder cannot be read.
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

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "common", "misc"];

/// A file or a folder is named after its subject.
pub fn name(file: &str) -> Option<Finding> {
    let empty = file
        .split('/')
        .map(|part| part.split('.').next().unwrap_or_default())
        .find(|stem| EMPTY_NAMES.contains(stem))?;
    Some(Finding::new(
        file,
        1,
        format!("`{empty}` names no subject: name it after what it says"),
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
