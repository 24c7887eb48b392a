//! `cargo xtask tidy`: checks the rules of the house on every file of the clone.
//!
//! Flow: `tree` lists the files, `layers` checks the crates' manifests. `scan` splits a Rust file into code,
//! comments and literals. Rules on one file: `source`, `silence`, `words`, `paths`, `mentions`, `changelog`. Rules on
//! a crate or a page as a whole: `prose`, `imports`, `chapters`. Rules on all crates: `unused_functions`, `module_files`. Rule on
//! the history: `commits`. A test of this crate runs all.
//!
//! # Invariants
//! Each rule has a snippet that breaks it, in the tests of its module.

mod changelog;
pub mod chapters;
mod commits;
mod imports;
mod layers;
mod mentions;
mod module_files;
mod paths;
mod prose;
pub mod scan;
mod silence;
mod source;
pub mod tree;
mod unused_functions;
mod words;

use crate::process::{Failure, Outcome};
use crate::workspace;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the root of the clone.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Problem and action.
    pub message: String,
}

impl Finding {
    /// Returns a finding.
    fn new(file: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            file: file.into(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// Result of all rules.
#[derive(Default)]
pub struct Report {
    /// Places that break a rule, in order of file and line.
    pub findings: Vec<Finding>,
    /// Rules that could not be checked, with the reason.
    pub notes: Vec<String>,
    /// Figures of prose and of import cycles.
    pub figures: Vec<String>,
}

/// Checks the clone and prints each place that breaks a rule. `--figures` also prints the figures of prose and
/// imports.
///
/// # Errors
/// A place breaks a rule, or the clone cannot be read.
pub fn run(arguments: &[String]) -> Outcome<()> {
    if arguments.iter().any(|a| a != "--figures") {
        return Err(Failure::new("usage: cargo xtask tidy [--figures]"));
    }
    let report = check(&workspace::root())?;
    if !arguments.is_empty() {
        report.figures.iter().for_each(|line| println!("{line}"));
    }
    for note in &report.notes {
        println!("note: {note}");
    }
    for finding in &report.findings {
        println!("{finding}");
    }
    match report.findings.len() {
        0 => Ok(()),
        n => Err(Failure::new(format!("{n} violations"))),
    }
}

/// Checks the clone at `root`.
///
/// # Errors
/// The clone cannot be read.
pub fn check(root: &Path) -> Outcome<Report> {
    let mut report = Report {
        findings: layers::check(&layers::manifests(root)?),
        ..Report::default()
    };
    let files = tree::files(root)?;
    let mut silent = BTreeMap::new();
    let mut prose = prose::Prose::default();
    let mut imports = imports::Imports::default();
    let mut functions = unused_functions::Functions::default();
    let mut modules = module_files::ModuleFiles::default();
    for file in &files {
        report.findings.extend(tree::name(file));
        let bytes = std::fs::read(root.join(file))
            .map_err(|e| Failure::new(format!("cannot read {file}: {e}")))?;
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        let findings = &mut report.findings;
        findings.extend(words::check(file, &text));
        findings.extend(paths::check(file, &text));
        prose.add(file, &text);
        if file == chapters::SUMMARY {
            findings.extend(chapters::check(&files, &text));
        }
        if file.ends_with(".md") {
            findings.extend(mentions::check(file, &text, &files));
            findings.extend(changelog::check(file, &text));
        }
        if file.ends_with(".rs") {
            findings.extend(source::check(file, &text));
            findings.extend(silence::check(file, &text, &mut silent));
            imports.add(file, &text);
            functions.add(file, &text);
            modules.add(file, &text);
        }
    }
    let findings = &mut report.findings;
    findings.extend(silence::limits(&silent));
    findings.extend(prose.check());
    findings.extend(imports.check());
    findings.extend(functions.check());
    findings.extend(modules.check());
    match commits::check(root) {
        Ok(found) => findings.extend(found),
        Err(reason) => report.notes.push(reason),
    }
    report.figures = prose.figures();
    report.figures.extend(imports.figures());
    report.findings.sort();
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clone_is_tidy() {
        let report = check(&workspace::root()).unwrap();
        for note in &report.notes {
            println!("note: {note}");
        }
        let list: Vec<String> = report.findings.iter().map(Finding::to_string).collect();
        assert!(list.is_empty(), "\n{}", list.join("\n"));
    }
}
