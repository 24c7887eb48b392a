//! Rule on paths: no text file contains a path of one machine or a path out of the clone.

use super::Finding;
use super::scan;
use std::path::{Component, Path};

/// Beginnings of paths that exist on one machine only. A `|` splits the path, so that the table does not break
/// the rule.
const MACHINE_PATHS: &[&str] = &["/wo|rk/", "/ro|ot/", "/ho|me/", "/Us|ers/", "C:|\\"];

/// Returns the paths in a text file that break the rule.
pub fn check(file: &str, text: &str) -> Vec<Finding> {
    if file.ends_with("LICENSE") || file.ends_with(".lock") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for path in MACHINE_PATHS.iter().map(|p| p.replace('|', "")) {
            if starts_a_path(line, &path) {
                findings.push(Finding::new(
                    file,
                    number + 1,
                    format!("`{path}` exists on one machine only"),
                ));
            }
        }
        findings.extend(paths_out(file, line).map(|path| {
            Finding::new(
                file,
                number + 1,
                format!("`{path}` is outside of the clone"),
            )
        }));
    }
    findings
}

/// Returns whether the line contains an absolute path with the given beginning (`x/work/` is another path).
fn starts_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].bytes().next_back();
        !before.is_some_and(|b| scan::is_word(b) || matches!(b, b'.' | b'/' | b'}' | b'*' | b'-'))
    })
}

/// Returns the relative paths in a line that climb above the root of the clone, seen from the file's folder.
fn paths_out<'a>(file: &str, line: &'a str) -> impl Iterator<Item = &'a str> {
    let depth = file.matches('/').count();
    let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '-');
    line.split(move |c| !part(c))
        .filter(move |path| path.starts_with("../") && climb(path) > depth)
}

/// Returns the number of folders by which a relative path climbs above its start.
fn climb(path: &str) -> usize {
    let (mut down, mut up) = (0usize, 0usize);
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir if down > 0 => down -= 1,
            Component::ParentDir => up += 1,
            Component::Normal(_) => down += 1,
            // A root, a prefix and `.` do not climb.
            _ => {}
        }
    }
    up
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_one_machine_are_flagged() {
        for path in MACHINE_PATHS {
            let text = format!("see `{}x`\n", path.replace('|', ""));
            assert_eq!(check("crates/gradus/src/run.rs", &text).len(), 1, "{text}");
        }
        assert!(check("README.md", "target/work/x and /usr/lib/llvm-22\n").is_empty());
    }

    #[test]
    fn paths_out_of_the_clone_are_flagged() {
        assert_eq!(check("README.md", "see ../elsewhere/x.md\n").len(), 1);
        assert_eq!(check("bench/README.md", "see (../README.md)\n").len(), 0);
        assert_eq!(
            check("bench/README.md", "see a/../../b and ../../b\n").len(),
            1
        );
    }
}
