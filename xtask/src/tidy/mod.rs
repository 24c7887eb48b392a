//! `cargo xtask tidy`: the rules of the house, as a check, so that review is about ideas.
//!
//! Flow: the files of the clone (`tree`), the crates' manifests (`layers`); each Rust file is split into
//! what is code and what is comment (`scan`) and judged (`source`, `silence`), each text file read for words and
//! paths (`words`), each page for paths that do not exist (`mentions`). Runs as a test of this crate too.
//!
//! Every rule has a snippet that breaks it in the tests below its module.

mod layers;
mod mentions;
mod scan;
mod silence;
mod source;
mod tree;
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
    /// What is wrong and what to do.
    pub message: String,
}

impl Finding {
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

/// Checks the clone and prints what breaks a rule.
///
/// # Errors
/// Where anything does.
pub fn run(_: &[String]) -> Outcome<()> {
    let findings = check(&workspace::root())?;
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        n => Err(Failure::new(format!("{n} places break a rule"))),
    }
}

/// All findings in the clone at `root`, in order of file and line.
///
/// # Errors
/// Where the clone cannot be read.
pub fn check(root: &Path) -> Outcome<Vec<Finding>> {
    let mut findings = layers::check(&layers::manifests(root)?);
    let files = tree::files(root)?;
    let mut silent = BTreeMap::new();
    for file in &files {
        if let Some(finding) = tree::name(file) {
            findings.push(finding);
        }
        let bytes = std::fs::read(root.join(file))
            .map_err(|e| Failure::new(format!("cannot read {file}: {e}")))?;
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        findings.extend(words::check(file, &text));
        if file.ends_with(".md") {
            findings.extend(mentions::check(file, &text, &files));
        }
        if file.ends_with(".rs") {
            findings.extend(source::check(file, &text));
            findings.extend(silence::check(file, &text, &mut silent));
        }
    }
    findings.extend(silence::limits(&silent));
    findings.sort();
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clone_is_tidy() {
        let findings = check(&workspace::root()).unwrap();
        let list: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert!(list.is_empty(), "\n{}", list.join("\n"));
    }
}
