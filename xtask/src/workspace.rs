//! Where things lie in this clone: the root, the build folder, the compiler under test.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the clone.
pub fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .parent()
        .map_or(manifest.clone(), Path::to_path_buf)
}

/// Cargo's build folder.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A cargo process in the root of the clone, by the cargo that started this one.
pub fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    // Those of this crate's own run would reach the crates' build scripts and tests.
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

/// The clang that everything is measured against: `GRADUS_CLANG`, else `clang-22`.
pub fn clang() -> String {
    std::env::var("GRADUS_CLANG").unwrap_or_else(|_| "clang-22".into())
}
