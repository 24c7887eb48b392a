//! Paths of the clone: the root and the build folder; folders to remove; cargo and the reference clang.

use crate::process::Outcome;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the root of the clone.
pub fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .parent()
        .map_or(manifest.clone(), Path::to_path_buf)
}

/// Returns cargo's build folder.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns a cargo process in the root of the clone. The process runs the cargo that started xtask.
pub fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    // Variables of xtask's own run would reach build scripts and tests.
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|n| n.starts_with("CARGO_PKG_") || n.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
    command
}

/// Returns the reference clang of all measurements: `GRADUS_CLANG`, else `clang-22`.
pub fn clang() -> String {
    std::env::var("GRADUS_CLANG").unwrap_or_else(|_| "clang-22".into())
}

/// Removes a folder that may be absent.
///
/// # Errors
/// Fails if the folder stays.
pub fn remove(folder: &Path) -> Outcome<()> {
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {e}", folder.display()).into())
        }
        _ => Ok(()),
    }
}
