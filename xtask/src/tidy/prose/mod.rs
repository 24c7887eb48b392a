//! Rule on prose: figures of the comments of each crate and of each page, against limits.
//!
//! Flow: `text` extracts paragraphs, `count` counts with the lists of `vocabulary`, `limits` compares each unit's
//! figures with the limits and with the figures in `exceptions`. A unit is a crate (sources and tests) or a page.
//! Case pages and other test inputs are no prose of the project, and the changelog has a rule of its own.

mod count;
mod exceptions;
mod limits;
pub mod text;
mod vocabulary;

use super::Finding;
use count::Counts;
use std::collections::BTreeMap;
use text::Extent;

/// Pages at the root of the clone that are units.
const ROOT_PAGES: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "GLOSSARY.md",
];

/// Figures of all units, collected file by file.
#[derive(Default)]
pub struct Prose {
    units: BTreeMap<String, Counts>,
}

impl Prose {
    /// Adds the prose of a file to its unit. A file without a unit adds nothing.
    pub fn add(&mut self, file: &str, text: &str) {
        let Some(unit) = unit_of(file) else {
            // Not an error: the file has no prose of the project.
            return;
        };
        let paragraphs = match file.ends_with(".rs") {
            true => text::comments(text, Extent::Sentences),
            false => text::page(text, Extent::Sentences),
        };
        *self.units.entry(unit.to_owned()).or_default() += count::count(&paragraphs);
    }

    /// Returns the units beyond a limit and the exceptions that are no longer needed.
    pub fn check(&self) -> Vec<Finding> {
        limits::check(&self.units, exceptions::EXCEPTIONS)
    }

    /// Returns one line per unit with its figures, for people.
    pub fn figures(&self) -> Vec<String> {
        limits::figures(&self.units)
    }
}

/// Returns the unit of a file: a crate's folder or a page; `None` for a file without prose of the project.
fn unit_of(file: &str) -> Option<&str> {
    if file.ends_with(".rs") {
        if file.starts_with("xtask/") {
            return Some("xtask");
        }
        let name = file.strip_prefix("crates/")?.split('/').next()?;
        return file.get(.."crates/".len() + name.len());
    }
    let is_page = ROOT_PAGES.contains(&file) || file.starts_with("docs/") && file.ends_with(".md");
    is_page.then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_its_crate_or_is_a_page() {
        assert_eq!(
            unit_of("crates/gradus-ad/tests/x.rs"),
            Some("crates/gradus-ad")
        );
        assert_eq!(unit_of("xtask/src/main.rs"), Some("xtask"));
        assert_eq!(unit_of("docs/guide.md"), Some("docs/guide.md"));
        assert_eq!(unit_of("README.md"), Some("README.md"));
        assert_eq!(unit_of("crates/gradus-ad/cases/x.md"), None);
        assert_eq!(unit_of("CHANGELOG.md"), None);
        assert_eq!(unit_of("bench/fft.c"), None);
    }

    #[test]
    fn files_of_a_crate_add_up() {
        let mut prose = Prose::default();
        prose.add("crates/a/src/x.rs", "//! Loads the tape.\n");
        prose.add("crates/a/tests/y.rs", "//! But fails.\n");
        prose.add("crates/a/cases/z.md", "But no unit.\n");
        let counts = prose.units["crates/a"];
        assert_eq!(prose.units.len(), 1);
        assert_eq!((counts.sentences, counts.openings, counts.words), (2, 1, 5));
    }
}
