//! Rule on the changelog: the form of Keep a Changelog, one short line per entry.
//!
//! A version is `## [0.2.0] - 2027-01-31` and `## [Unreleased]` may precede all versions. A section is a heading of
//! level three with a name of [`SECTIONS`].

use super::Finding;

/// Path of the changelog.
const FILE: &str = "CHANGELOG.md";

/// Largest length of a line, in characters.
const LINE_CHARS_MAX: usize = 120;

/// Names of sections.
const SECTIONS: &[&str] = &[
    "Added",
    "Changed",
    "Fixed",
    "Wrong results fixed",
    "Performance",
];

/// Returns the places of the changelog that break the rule; none for another file.
pub fn check(file: &str, text: &str) -> Vec<Finding> {
    if file != FILE {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut is_in_version = false;
    for (index, line) in text.lines().enumerate() {
        let mut report = |message: String| findings.push(Finding::new(file, index + 1, message));
        let length = line.chars().count();
        if length > LINE_CHARS_MAX {
            report(format!(
                "{length} characters, at most {LINE_CHARS_MAX} are allowed: move the mechanism into the commit message"
            ));
        }
        if let Some(version) = line.strip_prefix("## ") {
            if let Some(problem) = version_problem(version, is_in_version) {
                report(problem);
            }
            is_in_version = true;
        } else if let Some(section) = line.strip_prefix("### ") {
            if !SECTIONS.contains(&section.trim()) {
                report(format!(
                    "unknown section `{section}`, expected one of: {}",
                    SECTIONS.join(", ")
                ));
            }
            if !is_in_version {
                report("a section needs a version above".into());
            }
        }
    }
    findings
}

/// Returns the problem of a version's heading.
fn version_problem(heading: &str, is_behind_another: bool) -> Option<String> {
    let heading = heading.trim();
    if matches!(heading, "Unreleased" | "[Unreleased]") {
        return is_behind_another.then(|| "`Unreleased` must precede all versions".into());
    }
    let is_complete = heading.strip_prefix('[').is_some_and(|rest| {
        rest.split_once("] - ")
            .is_some_and(|(number, date)| is_number(number) && is_date(date))
    });
    (!is_complete).then(|| format!("`{heading}` does not have the form `[0.2.0] - 2027-01-31`"))
}

/// Returns whether a text is three numbers with dots, with an optional pre-release behind a hyphen.
fn is_number(text: &str) -> bool {
    let numbers = text.split('-').next().unwrap_or_default();
    let parts: Vec<&str> = numbers.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
}

/// Returns whether a text is a date, as in `2027-01-31`.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let number = |at: usize| parts.get(at).and_then(|part| part.parse::<u32>().ok());
    lengths == [4, 2, 2]
        && number(0).is_some()
        && number(1).is_some_and(|month| (1..=12).contains(&month))
        && number(2).is_some_and(|day| (1..=31).contains(&day))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check(FILE, text).len()
    }

    #[test]
    fn the_form_passes() {
        let text = "# Changelog\n\n## [Unreleased]\n\n### Fixed\n\n- Hang in loops (#12).\n\n## [0.2.0] - 2027-01-31\n\n### Wrong results fixed\n\n- x\n\n## [0.1.0-beta.1] - 2026-12-01\n\n### Performance\n\n- y\n";
        assert_eq!(found(text), 0);
    }

    #[test]
    fn long_lines_are_flagged() {
        assert_eq!(found(&format!("- {}\n", "x".repeat(119))), 1);
        assert_eq!(found(&format!("- {}\n", "×".repeat(118))), 0);
    }

    #[test]
    fn unknown_and_homeless_sections_are_flagged() {
        assert_eq!(found("## [Unreleased]\n\n### Mistakes\n"), 1);
        assert_eq!(found("### Fixed\n"), 1);
    }

    #[test]
    fn versions_without_date_or_order_are_flagged() {
        for heading in [
            "0.2.0",
            "[0.2.0]",
            "[0.2] - 2027-01-31",
            "[0.2.0] - 2027-13-31",
            "[0.2.0] - 31.1.2027",
        ] {
            assert_eq!(found(&format!("## {heading}\n")), 1, "{heading}");
        }
        assert_eq!(found("## [0.2.0] - 2027-01-31\n\n## Unreleased\n"), 1);
    }

    #[test]
    fn other_files_pass() {
        assert!(check("README.md", "## 0.2.0\n").is_empty());
    }
}
