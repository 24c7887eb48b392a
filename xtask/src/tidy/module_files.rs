//! Rule on Rust files: each file below `src` and `tests` belongs to a program.
//!
//! The compiler ignores a file that no `mod` item declares: tests in such a file never run. A file is declared by
//! `mod NAME;` in the file of its parent module, or by `#[path]` in any file of the folder. Programs start at
//! `main.rs` and `lib.rs`, and at each file below `src/bin`. A file without a test function in a folder below `tests`
//! may also be a program that a test compiles.

use super::Finding;
use super::scan;
use std::collections::{BTreeMap, BTreeSet};

/// Names that the Rust files of the clone declare, and the files that need a declaration.
#[derive(Default)]
pub struct ModuleFiles {
    /// Modules that a file declares, with the file.
    declared: BTreeMap<String, BTreeSet<String>>,
    /// Files that `#[path]` names.
    by_path: BTreeSet<String>,
    files: Vec<String>,
}

impl ModuleFiles {
    /// Adds a Rust file.
    pub fn add(&mut self, file: &str, text: &str) {
        let code = scan::views(text).code;
        let words: Vec<&str> = scan::words(&code).map(|(_, word)| word).collect();
        let named = words.windows(2).filter(|pair| pair[0] == "mod");
        let named = named.map(|pair| pair[1].to_owned()).collect();
        self.declared.insert(file.to_owned(), named);
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (at, _) in text.match_indices("#[path = \"") {
            let name = text[at..].split('"').nth(1).unwrap_or_default();
            self.by_path.insert(format!("{folder}/{name}"));
        }
        let is_data =
            file.contains("/tests/") && !folder.ends_with("/tests") && !code.contains("#[test]");
        if parents(file).is_some() && !is_data {
            self.files.push(file.to_owned());
        }
    }

    /// Returns the files that no file declares.
    pub fn check(&self) -> Vec<Finding> {
        let is_declared = |file: &String| {
            self.by_path.contains(file)
                || parents(file).is_none_or(|(name, files)| {
                    let mut declared = files.iter().filter_map(|file| self.declared.get(file));
                    declared.any(|names| names.contains(&name))
                })
        };
        let missing = self.files.iter().filter(|file| !is_declared(file));
        let message = "no `mod` item declares this file: the compiler ignores it; declare it in its parent module";
        missing.map(|file| Finding::new(file, 1, message)).collect()
    }
}

/// Returns the name of a file's module and the files that may declare it; none for the root file of a program and for
/// files outside of `src` and `tests`.
fn parents(file: &str) -> Option<(String, Vec<String>)> {
    let parts: Vec<&str> = file.split('/').collect();
    let start = parts
        .iter()
        .position(|&part| part == "src" || part == "tests")?;
    let (last, folders) = parts.split_last()?;
    let inside = &folders[start + 1..];
    if inside.first() == Some(&"bin") && inside.len() == 1 {
        return None;
    }
    let (name, folders) = match *last {
        "main.rs" | "lib.rs" => return None,
        "mod.rs" if inside.is_empty() => return None,
        "mod.rs" => (folders[folders.len() - 1], &folders[..folders.len() - 1]),
        _ => (last.trim_end_matches(".rs"), folders),
    };
    let folder = folders.join("/");
    let mut files: Vec<String> = ["mod.rs", "main.rs", "lib.rs"]
        .map(|root| format!("{folder}/{root}"))
        .into();
    files.push(format!("{folder}.rs"));
    Some((name.to_owned(), files))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(files: &[(&str, &str)]) -> Vec<String> {
        let mut all = ModuleFiles::default();
        files.iter().for_each(|(file, text)| all.add(file, text));
        all.check().into_iter().map(|f| f.file).collect()
    }

    #[test]
    fn a_file_without_declaration_is_flagged() {
        let main = ("crates/a/tests/main.rs", "mod one; // mod two;");
        let one = ("crates/a/tests/one.rs", "mod inner;");
        let two = ("crates/a/tests/two.rs", "");
        let inner = ("crates/a/tests/one/inner.rs", "");
        let outer = ("crates/a/tests/two/inner.rs", "#[test]\nfn f() {}");
        let data = ("crates/a/tests/two/data.rs", "fn main() {}");
        let found = missing(&[main, one, two, inner, outer, data]);
        assert_eq!(
            found,
            ["crates/a/tests/two.rs", "crates/a/tests/two/inner.rs"]
        );
    }

    #[test]
    fn roots_folders_and_paths_are_declared() {
        let files = [
            ("crates/a/src/lib.rs", "pub mod b;\nmod c;"),
            ("crates/a/src/bin/tool.rs", ""),
            (
                "crates/a/src/b/mod.rs",
                "#[path = \"d_tests.rs\"]\nmod tests;",
            ),
            ("crates/a/src/b/d_tests.rs", ""),
            ("crates/a/src/c.rs", ""),
            ("crates/a/build.rs", ""),
        ];
        assert_eq!(missing(&files), Vec::<String>::new());
    }
}
