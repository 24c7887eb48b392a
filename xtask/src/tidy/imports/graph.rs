//! Import graph of a crate, and its strongly connected components.

use std::collections::{BTreeMap, BTreeSet};

/// Nodes with their lines and their imports. A node is a top-level module with all files below, or the root file.
#[derive(Default)]
pub struct Graph {
    nodes: BTreeMap<String, Node>,
}

/// Lines and imports of a node.
#[derive(Default)]
struct Node {
    lines: usize,
    imports: BTreeSet<String>,
}

impl Graph {
    /// Adds lines to a node.
    pub fn add_lines(&mut self, node: &str, lines: usize) {
        self.nodes.entry(node.to_owned()).or_default().lines += lines;
    }

    /// Adds an import. An import of the node itself is ignored.
    pub fn add_import(&mut self, from: &str, to: &str) {
        if from != to {
            let node = self.nodes.entry(from.to_owned()).or_default();
            node.imports.insert(to.to_owned());
        }
    }

    /// Returns the lines of all nodes.
    pub fn lines(&self) -> usize {
        self.nodes.values().map(|node| node.lines).sum()
    }

    /// Returns the lines of some nodes.
    pub fn lines_of(&self, names: &[String]) -> usize {
        let lines = |name: &String| self.nodes.get(name).map_or(0, |node| node.lines);
        names.iter().map(lines).sum()
    }

    /// Returns the strongly connected components of at least two nodes. A crate has some dozens of nodes, hence
    /// reachability from each node is computed on its own.
    pub fn cycles(&self) -> Vec<Vec<String>> {
        let reach: BTreeMap<&str, BTreeSet<&str>> = self
            .nodes
            .keys()
            .map(|name| (name.as_str(), self.reachable(name)))
            .collect();
        let reaches = |from: &str, to: &str| reach.get(from).is_some_and(|set| set.contains(to));
        let mut placed: BTreeSet<&str> = BTreeSet::new();
        let mut cycles = Vec::new();
        for name in self.nodes.keys().map(String::as_str) {
            if placed.contains(name) || !reaches(name, name) {
                continue;
            }
            let others = self.nodes.keys().map(String::as_str);
            let cycle: Vec<&str> = others
                .filter(|other| reaches(name, other) && reaches(other, name))
                .collect();
            placed.extend(&cycle);
            cycles.push(cycle.into_iter().map(String::from).collect());
        }
        cycles
    }

    /// Returns the nodes reachable from a node by at least one import.
    fn reachable(&self, from: &str) -> BTreeSet<&str> {
        let imports = |name: &str| {
            let node = self.nodes.get(name).into_iter();
            node.flat_map(|node| node.imports.iter().map(String::as_str))
        };
        let mut found = BTreeSet::new();
        let mut worklist: Vec<&str> = imports(from).collect();
        while let Some(name) = worklist.pop() {
            if found.insert(name) {
                worklist.extend(imports(name));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_separate_and_chains_are_none() {
        let mut graph = Graph::default();
        for (from, to) in [
            ("a", "b"),
            ("b", "a"),
            ("b", "c"),
            ("c", "d"),
            ("d", "e"),
            ("e", "d"),
            ("e", "e"),
            ("f", "a"),
        ] {
            graph.add_lines(from, 2);
            graph.add_import(from, to);
        }
        assert_eq!(graph.cycles(), [["a", "b"], ["d", "e"]]);
        assert_eq!(graph.lines(), 16);
        assert_eq!(graph.lines_of(&["a".to_owned()]), 2);
    }

    #[test]
    fn an_import_of_a_missing_node_is_no_cycle() {
        let mut graph = Graph::default();
        graph.add_import("a", "b");
        assert!(graph.cycles().is_empty());
    }
}
