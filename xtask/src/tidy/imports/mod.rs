//! Rule on imports inside a crate: no import cycle leaves one folder.
//!
//! Flow: `modules` reads the module tree of each crate and the paths in its code; `graph` collapses the modules
//! under one top-level module into a node and finds the strongly connected components. A folder may have cycles
//! among its own files. The figure of a crate is the share of its lines that lie in a cycle of several nodes.

mod graph;
mod modules;

use super::Finding;
use graph::Graph;
use modules::Modules;
use std::collections::BTreeMap;

/// Percentage of a crate's lines that may still lie in cycles, rounded up. A row is deleted when its crate has no
/// cycle.
// table
const EXCEPTIONS: &[(&str, f64)] = &[];

/// Modules of all crates, collected file by file.
#[derive(Default)]
pub struct Imports {
    crates: BTreeMap<String, Modules>,
}

impl Imports {
    /// Adds a file below the `src` folder of a crate; ignores every other file.
    pub fn add(&mut self, file: &str, text: &str) {
        let Some((folder, inside)) = file.split_once("/src/") else {
            // Not an error: the file is no source of a crate.
            return;
        };
        if inside.ends_with(".rs") && !inside.starts_with("bin/") {
            let modules = self.crates.entry(folder.to_owned()).or_default();
            modules.add(inside, text);
        }
    }

    /// Returns the crates with more lines in cycles than allowed, and the exceptions without a need.
    pub fn check(&self) -> Vec<Finding> {
        let cycles: Vec<(&str, Cycles)> = self
            .crates
            .iter()
            .map(|(folder, modules)| (folder.as_str(), Cycles::of(&modules.graph())))
            .collect();
        judge(&cycles, EXCEPTIONS)
    }

    /// Returns one line per crate with its cycles, for people.
    pub fn figures(&self) -> Vec<String> {
        let line = |(folder, modules): (&String, &Modules)| {
            let cycles = Cycles::of(&modules.graph());
            match cycles.largest.is_empty() {
                true => format!("{folder}: no cycle"),
                false => format!(
                    "{folder}: {:.1} % of the lines lie in {} cycles; the largest, {:.1} %: {}",
                    cycles.percent,
                    cycles.number,
                    cycles.largest_percent,
                    cycles.largest.join(", ")
                ),
            }
        };
        self.crates.iter().map(line).collect()
    }
}

/// Cycles of one crate.
#[derive(Debug, Default)]
struct Cycles {
    /// Number of cycles of several nodes.
    number: usize,
    /// Percentage of lines in any cycle of several nodes.
    percent: f64,
    /// Percentage of lines in the largest cycle.
    largest_percent: f64,
    /// Nodes of the cycle with the most lines.
    largest: Vec<String>,
}

impl Cycles {
    /// Returns the cycles of a graph.
    fn of(graph: &Graph) -> Cycles {
        let percent = |lines: usize| 100.0 * lines as f64 / graph.lines().max(1) as f64;
        let cycles = graph.cycles();
        let lines: Vec<usize> = cycles.iter().map(|nodes| graph.lines_of(nodes)).collect();
        let largest = (0..cycles.len()).max_by_key(|&at| lines[at]);
        Cycles {
            number: cycles.len(),
            percent: percent(lines.iter().sum()),
            largest_percent: largest.map_or(0.0, |at| percent(lines[at])),
            largest: largest.map_or_else(Vec::new, |at| cycles[at].clone()),
        }
    }
}

/// Compares the cycles of crates with the exceptions.
fn judge(cycles: &[(&str, Cycles)], exceptions: &[(&str, f64)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, cycles) in cycles {
        let allowed = exceptions
            .iter()
            .find(|(of, _)| of == folder)
            .map_or(0.0, |(_, percent)| *percent);
        if cycles.percent > allowed {
            let message = format!(
                "{:.1} % of the lines lie in import cycles beyond one folder, {allowed} % are allowed; the largest cycle: {}",
                cycles.percent,
                cycles.largest.join(", ")
            );
            findings.push(Finding::new(folder, 1, message));
        }
    }
    let is_cyclic = |folder: &str| {
        let mut rows = cycles.iter();
        rows.any(|(of, cycles)| *of == folder && cycles.percent > 0.0)
    };
    for (folder, _) in exceptions.iter().filter(|(folder, _)| !is_cyclic(folder)) {
        let message = format!("the exception of {folder} is no longer needed: delete its row");
        findings.push(Finding::new("xtask/src/tidy/imports/mod.rs", 1, message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Cycles {
        let mut imports = Imports::default();
        for (file, text) in files {
            imports.add(&format!("crates/a/src/{file}"), text);
        }
        Cycles::of(&imports.crates["crates/a"].graph())
    }

    #[test]
    fn a_cycle_of_two_folders_is_flagged() {
        let files = [
            ("lib.rs", "mod x;\nmod y;\n"),
            ("x/mod.rs", "mod z;\n"),
            ("x/z.rs", "use crate::y::Y;\n"),
            ("y.rs", "use crate::x;\nstruct Y;\n\n"),
        ];
        let cycles = of(&files);
        assert_eq!(cycles.largest, ["x", "y"]);
        assert!((cycles.percent - 100.0 * 5.0 / 7.0).abs() < 1e-9);
        let rows = [("crates/a", cycles)];
        assert_eq!(judge(&rows, &[]).len(), 1);
        assert_eq!(judge(&rows, &[("crates/a", 71.0)]).len(), 1);
        assert!(judge(&rows, &[("crates/a", 72.0)]).is_empty());
    }

    #[test]
    fn a_cycle_inside_one_folder_passes() {
        let cycles = of(&[
            ("lib.rs", "mod x;\n"),
            ("x/mod.rs", "mod a;\nmod b;\npub use a::A;\n"),
            ("x/a.rs", "use super::b::B;\npub struct A;\n"),
            ("x/b.rs", "use crate::x::A;\npub struct B;\n"),
        ]);
        assert!(cycles.largest.is_empty(), "{cycles:?}");
    }

    #[test]
    fn an_exception_without_a_cycle_is_flagged() {
        let rows = [("crates/a", Cycles::default())];
        let all = judge(&rows, &[("crates/a", 10.0)]);
        assert_eq!(all.len(), 1);
        assert!(all[0].message.contains("no longer needed"));
    }

    #[test]
    fn files_outside_src_are_ignored() {
        let mut imports = Imports::default();
        imports.add("crates/a/tests/x.rs", "use crate::y;\n");
        imports.add("README.md", "");
        assert!(imports.crates.is_empty());
    }
}
