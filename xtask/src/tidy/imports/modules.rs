//! Module tree of a crate, and the module that each path in its code names.
//!
//! Not a parser: the scan finds paths that begin with `crate::`, `super::` or `self::`, expands their braces and
//! follows them as far as modules go. In the root file a path may also begin with a module. Test code is left out.
//!
//! The root file has two roles. `pub use` and macro definitions form the crate's interface: a path to a name in the
//! interface is a path to the module behind the name, and `pub use` is no import of the root. Types and constants of
//! the root belong to the parent of all modules, hence their use is no import; the use of a root's function is.

use super::graph::Graph;
use crate::tidy::scan;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Node of the root file (`lib.rs`, `main.rs`).
const ROOT: &str = "root";

/// Longest chain of names in the root's interface that is followed.
const INTERFACE_STEPS_MAX: usize = 8;

/// Path of a module from the root; empty for the root.
type ModulePath = Vec<String>;

/// Modules of one crate.
#[derive(Default)]
pub struct Modules {
    modules: BTreeMap<ModulePath, Module>,
    /// Modules that only tests contain.
    tests: BTreeSet<ModulePath>,
    /// Names in the root's interface, with their paths.
    interface: BTreeMap<String, Vec<String>>,
}

/// One file.
struct Module {
    lines: usize,
    paths: Vec<CodePath>,
}

/// A path in the code of a module.
struct CodePath {
    segments: Vec<String>,
    /// Number of inline modules around the path.
    depth: usize,
}

impl Modules {
    /// Adds a file; `inside` is its path below `src`.
    pub fn add(&mut self, inside: &str, text: &str) {
        let own = module_path(inside);
        let code = without_tests(text, |name| {
            let child = own.iter().cloned().chain([name.to_owned()]).collect();
            self.tests.insert(child);
        });
        for name in macros(&code) {
            let path = own.iter().cloned().chain([name.clone()]).collect();
            self.interface.entry(name).or_insert(path);
        }
        let inline = inline_modules(&code);
        let mut paths = Vec::new();
        for start in path_starts(&code, own.is_empty()) {
            let depth = inline.iter().filter(|span| span.contains(&start)).count();
            for segments in expand(&code, start) {
                if own.is_empty() && is_in_pub_use(&code, start) {
                    self.add_to_interface(segments);
                } else {
                    paths.push(CodePath { segments, depth });
                }
            }
        }
        let lines = text.lines().count();
        self.modules.insert(own, Module { lines, paths });
    }

    /// Records a name that the root re-exports.
    fn add_to_interface(&mut self, segments: Vec<String>) {
        if let Some(name) = segments.last() {
            self.interface.insert(name.clone(), segments);
        }
    }

    /// Returns the graph of the top-level modules.
    pub fn graph(&self) -> Graph {
        let mut graph = Graph::default();
        for (own, module) in self.modules.iter().filter(|(own, _)| !self.is_test(own)) {
            let node = node(own);
            graph.add_lines(node, module.lines);
            for path in &module.paths {
                if let Some(target) = self.target(own, path) {
                    graph.add_import(node, &target);
                }
            }
        }
        graph
    }

    /// Returns whether only tests contain a module or one of its parents.
    fn is_test(&self, own: &[String]) -> bool {
        (1..=own.len()).any(|length| self.tests.contains(&own[..length]))
    }

    /// Returns the node that a path names; `None` if the path names no module of the crate.
    fn target(&self, own: &[String], path: &CodePath) -> Option<String> {
        let (first, rest) = path.segments.split_first()?;
        let mut rest = rest;
        let mut base: &[String] = match first.as_str() {
            "crate" => &[],
            "self" => own,
            "super" => {
                let more = rest.iter().take_while(|s| s.as_str() == "super").count();
                rest = &rest[more..];
                // Each inline module around the path takes one `super`.
                let up = (1 + more).saturating_sub(path.depth);
                &own[..own.len().saturating_sub(up)]
            }
            _ => {
                rest = &path.segments;
                &[]
            }
        };
        for _ in 0..INTERFACE_STEPS_MAX {
            if !base.is_empty() {
                return Some(node(base).to_owned());
            }
            let Some(next) = rest.first() else {
                // A glob of the root: the names behind it are unknown.
                return None;
            };
            if self.is_module(next) {
                return Some(next.clone());
            }
            let Some(behind) = self.interface.get(next) else {
                break;
            };
            let is_prefix = |s: &&String| matches!(s.as_str(), "crate" | "self");
            let skip = usize::from(behind.first().as_ref().is_some_and(is_prefix));
            rest = &behind[skip..];
            base = &[];
        }
        let is_function = rest
            .first()
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()));
        let is_anchored = matches!(first.as_str(), "crate" | "super" | "self");
        (is_anchored && is_function).then(|| ROOT.to_owned())
    }

    /// Returns whether a top-level module has the name.
    fn is_module(&self, name: &str) -> bool {
        self.modules
            .keys()
            .any(|path| path.first().is_some_and(|first| first == name))
    }
}

/// Returns the module of a file by its path below `src`.
fn module_path(inside: &str) -> ModulePath {
    let stem = inside.strip_suffix(".rs").unwrap_or(inside);
    let mut parts: ModulePath = stem.split('/').map(String::from).collect();
    let is_own_folder = |name: &String| name == "mod" || name == "lib" || name == "main";
    if parts.last().is_some_and(is_own_folder) {
        parts.pop();
    }
    parts
}

/// Returns the name of the node of a module.
fn node(module: &[String]) -> &str {
    module.first().map_or(ROOT, String::as_str)
}

/// Returns the code view of a text without test items; reports each module file that a test item declares.
fn without_tests(text: &str, mut report: impl FnMut(&str)) -> String {
    let code = scan::views(text).code;
    let mut bytes = code.clone().into_bytes();
    for range in scan::test_items(&code) {
        let item = &code[range.clone()];
        let words: Vec<&str> = scan::words(item).map(|(_, word)| word).collect();
        if item.trim_end().ends_with(';')
            && let Some(at) = words.iter().position(|word| *word == "mod")
            && let Some(name) = words.get(at + 1)
        {
            report(name);
        }
        for byte in &mut bytes[range] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the offsets where a path begins; in the root file, every word before `::`.
fn path_starts(code: &str, is_root: bool) -> Vec<usize> {
    let is_start = |at: usize, word: &str| {
        let before = code[..at].trim_end();
        let is_first = !before.ends_with("::");
        let is_visibility = before.ends_with("(in");
        let is_path = code[at + word.len()..].trim_start().starts_with("::");
        let is_anchor = matches!(word, "crate" | "super" | "self");
        is_first && is_path && !is_visibility && (is_anchor || is_root)
    };
    scan::words(code)
        .filter(|(at, word)| is_start(*at, word))
        .map(|(at, _)| at)
        .collect()
}

/// Returns whether the item around an offset is a `pub use`.
fn is_in_pub_use(code: &str, at: usize) -> bool {
    let begin = code[..at].rfind([';', '}']).map_or(0, |i| i + 1);
    let words: Vec<&str> = scan::words(&code[begin..at])
        .map(|(_, word)| word)
        .collect();
    words.contains(&"use") && words.first() == Some(&"pub")
}

/// Returns the names of the macros that a code view defines.
fn macros(code: &str) -> Vec<String> {
    let all: Vec<&str> = scan::words(code).map(|(_, word)| word).collect();
    let defined = all.windows(2).filter(|pair| pair[0] == "macro_rules");
    defined.map(|pair| pair[1].to_owned()).collect()
}

/// Returns the ranges of inline modules.
fn inline_modules(code: &str) -> Vec<Range<usize>> {
    let all: Vec<(usize, &str)> = scan::words(code).collect();
    let mut found = Vec::new();
    for pair in all.windows(2) {
        let [(at, "mod"), (name_at, name)] = pair else {
            continue;
        };
        let behind = code[name_at + name.len()..].trim_start();
        if behind.starts_with('{')
            && let Some(end) = scan::item_end(code, *at)
        {
            found.push(*at..end);
        }
    }
    found
}

/// Returns the paths of the use tree, or of the plain path, that begins at an offset.
fn expand(code: &str, start: usize) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    tree(code.as_bytes(), start, &[], &mut found);
    found
}

/// Reads one use tree below `prefix` and returns the offset behind it.
fn tree(code: &[u8], start: usize, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = prefix.to_vec();
    let mut at = start;
    loop {
        at = skip_blanks(code, at);
        match code.get(at) {
            Some(b'{') => return group(code, at + 1, &path, found),
            Some(&byte) if scan::is_word(byte) => {
                let length = code[at..].iter().take_while(|b| scan::is_word(**b)).count();
                let word = String::from_utf8_lossy(&code[at..at + length]).into_owned();
                at += length;
                if word != "self" || path.is_empty() {
                    path.push(word);
                }
            }
            // A star, or the generic arguments of an item.
            _ => break,
        }
        let behind = skip_blanks(code, at);
        if !code[behind..].starts_with(b"::") {
            break;
        }
        at = behind + 2;
    }
    found.push(path);
    at
}

/// Reads the trees of a group up to its closing brace and returns the offset behind it.
fn group(code: &[u8], start: usize, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut at = start;
    loop {
        at = skip_blanks(code, at);
        match code.get(at) {
            Some(b'}') => return at + 1,
            Some(&byte) if scan::is_word(byte) || byte == b'{' => {
                at = tree(code, at, prefix, found);
                // `as NAME` renames the path that was read.
                while code.get(at).is_some_and(|b| !matches!(b, b',' | b'}')) {
                    at += 1;
                }
            }
            Some(_) => at += 1,
            None => return at,
        }
    }
}

/// Returns the offset of the next byte that is no white space.
fn skip_blanks(code: &[u8], mut at: usize) -> usize {
    while code.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(code: &str) -> Vec<String> {
        let starts = path_starts(code, false);
        let all = starts.into_iter().flat_map(|start| expand(code, start));
        all.map(|path| path.join("::")).collect()
    }

    /// Returns the imports of module `a` as a list of nodes.
    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let mut modules = Modules::default();
        for (file, text) in files {
            modules.add(file, text);
        }
        let own = vec!["a".to_owned()];
        let module = &modules.modules[&own];
        let mut targets: Vec<String> = module
            .paths
            .iter()
            .filter_map(|path| modules.target(&own, path))
            .collect();
        targets.sort();
        targets.dedup();
        targets
    }

    #[test]
    fn use_trees_expand() {
        assert_eq!(
            paths("use crate::{a, b::{self, c as d}, e::*};\npub(in crate::f) fn g() {}"),
            ["crate::a", "crate::b", "crate::b::c", "crate::e"]
        );
        assert_eq!(
            paths("fn f() -> super::a::B<u8> { crate::c::d::<u8>() }"),
            ["super::a::B", "crate::c::d"]
        );
        assert_eq!(paths("use std::{fs};"), Vec::<String>::new());
    }

    #[test]
    fn paths_lead_to_top_level_modules() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("b.rs", ""),
            ("c/mod.rs", ""),
            ("d.rs", ""),
            (
                "a.rs",
                "use super::b::B; fn f() { crate::c::x::y() } use self::z::Z;",
            ),
        ];
        assert_eq!(imports(&files), ["a", "b", "c"]);
    }

    #[test]
    fn the_interface_leads_to_the_module_behind() {
        let files = [
            (
                "lib.rs",
                "mod a; mod b;\npub use b::{B, b2 as other};\npub struct R;",
            ),
            ("b.rs", ""),
            ("a.rs", "use crate::B;"),
        ];
        assert_eq!(imports(&files), ["b"]);
        let functions = [files[0], files[1], ("a.rs", "use crate::r;")];
        assert_eq!(imports(&functions), [ROOT]);
        let types = [files[0], files[1], ("a.rs", "use crate::{R, LIMIT};")];
        assert!(imports(&types).is_empty());
    }

    #[test]
    fn inline_modules_take_one_super() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("b.rs", ""),
            ("a.rs", "mod i { use super::X; use super::super::b::B; }"),
        ];
        assert_eq!(imports(&files), ["a", "b"]);
    }

    #[test]
    fn tests_import_nothing() {
        let mut modules = Modules::default();
        modules.add("lib.rs", "mod a;\n#[cfg(test)]\nmod tests;\n");
        modules.add("tests.rs", "use crate::a::A;");
        modules.add("a.rs", "#[cfg(test)]\nmod tests { use crate::tests::T; }");
        let own = vec!["a".to_owned()];
        assert!(modules.modules[&own].paths.is_empty());
        assert!(modules.is_test(&["tests".to_owned()]));
        assert_eq!(modules.graph().lines(), 5);
    }

    #[test]
    fn the_root_imports_what_its_code_names() {
        let mut modules = Modules::default();
        modules.add(
            "main.rs",
            "mod a;\nuse a::A;\nfn main() { std::process::exit(1) }",
        );
        modules.add("a.rs", "use crate::root_function;");
        assert_eq!(modules.graph().cycles(), [["a", ROOT]]);
    }
}
