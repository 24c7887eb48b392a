//! Rule on pages: a path that a page mentions exists.
//!
//! The rule covers paths from the root of the clone (`crates/…`, `docs/…`). A path with a placeholder (`*`,
//! `…`, a word in capitals) stands for many paths and is not checked.

use super::Finding;

/// Folders at the root of the clone whose paths are checked.
const ROOTS: &[&str] = &["crates/", "xtask/", "docs/", "bench/"];

/// Returns the paths in a page that are not among the clone's `files`.
pub fn check(file: &str, text: &str, files: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for path in line
            .split(['`', '(', ')', ' ', ',', ';', '|'])
            .filter(|p| is_path(p))
        {
            let path = path.trim_end_matches(['/', '.', ':']);
            let folder = format!("{path}/");
            if !files.iter().any(|f| f == path || f.starts_with(&folder)) {
                findings.push(Finding::new(
                    file,
                    number + 1,
                    format!("the clone does not contain `{path}`"),
                ));
            }
        }
    }
    findings
}

/// Returns whether a word is a path without a placeholder.
fn is_path(word: &str) -> bool {
    let placeholder = |part: &str| {
        let letters: Vec<char> = part.chars().filter(|c| c.is_alphabetic()).collect();
        let known = part.starts_with("README") || part.starts_with("GRD0");
        part.contains(['*', '…', '{', '<'])
            || !known && letters.len() > 1 && letters.iter().all(|c| c.is_uppercase())
    };
    ROOTS.iter().any(|root| word.starts_with(root))
        && !word.split(['/', '.', '_', '-']).any(placeholder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        let files = [
            "crates/gradus-ir/src/ops.rs".to_owned(),
            "docs/decisions/README.md".to_owned(),
        ];
        check("CONTRIBUTING.md", text, &files).len()
    }

    #[test]
    fn a_path_that_is_not_there_is_flagged() {
        assert_eq!(found("see `crates/gradus-ir/src/opcodes.rs`."), 1);
        assert_eq!(found("see [it](docs/manual.md)"), 1);
    }

    #[test]
    fn files_folders_and_placeholders_pass() {
        assert_eq!(
            found("`crates/gradus-ir/src/ops.rs`, `crates/gradus-ir/`, docs/decisions/README.md."),
            0
        );
        assert_eq!(
            found("`crates/*`, `docs/decisions/NNNN-what.md`, `bench/NAME.c`, and/or"),
            0
        );
    }
}
