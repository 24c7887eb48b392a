//! Locates the compiler under test: the binary `gradus` of the clone, or the binary that `GRADUS_BINARY` names.

use crate::process::{self, Outcome};
use crate::workspace;
use std::path::PathBuf;

/// Builds the binary and returns its path; `None` if the clone has no command line.
///
/// # Errors
/// Fails if the binary does not build.
pub fn binary() -> Outcome<Option<PathBuf>> {
    if let Some(path) = std::env::var_os("GRADUS_BINARY") {
        return Ok(Some(PathBuf::from(path)));
    }
    if !workspace::root()
        .join("crates/gradus-cli/Cargo.toml")
        .is_file()
    {
        return Ok(None);
    }
    eprintln!("building gradus (release) …");
    process::show(workspace::cargo().args([
        "build",
        "--release",
        "--quiet",
        "--package",
        "gradus-cli",
    ]))?;
    Ok(Some(workspace::target().join("release/gradus")))
}

/// Message in place of a result if the clone has no binary.
pub const NOT_THERE_YET: &str = "not available";

/// Returns the first line of `gradus`'s output with a diagnostic code, or the first line.
pub fn reason(stderr: &str) -> String {
    let lines = || {
        stderr
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    let line = lines()
        .find(|line| line.contains("GRD"))
        .or_else(|| lines().next());
    line.unwrap_or("no output").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_with_the_code_is_the_reason() {
        let text =
            "note: one thing\nerror[GRD0007]: inline assembly on an active value\n --> x.c:3\n";
        assert_eq!(
            reason(text),
            "error[GRD0007]: inline assembly on an active value"
        );
        assert_eq!(reason("\n  killed\n"), "killed");
    }
}
