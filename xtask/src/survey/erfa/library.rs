//! ERFA on disk: its functions, and the sources that a function needs.

use super::prototypes::{self, Function};
use crate::process::{Failure, Outcome};
use crate::sources;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Sources and functions of the library.
pub struct Library {
    /// Folder of the sources.
    pub folder: PathBuf,
    /// All functions that the header declares.
    pub functions: Vec<Function>,
    /// Source that defines each function.
    defined_in: BTreeMap<String, String>,
    /// Functions of the library that each source mentions.
    mentions: BTreeMap<String, BTreeSet<String>>,
}

impl Library {
    /// Fetches and parses the library.
    ///
    /// # Errors
    /// Fails if the library cannot be fetched or parsed.
    pub fn open() -> Outcome<Library> {
        Library::read(&sources::ERFA.locate()?)
    }

    fn read(folder: &Path) -> Outcome<Library> {
        let text = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path)
                .map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())))
        };
        let (mut defined_in, mut mentions) = (BTreeMap::new(), BTreeMap::new());
        let entries = std::fs::read_dir(folder)
            .map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
        for entry in entries.flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            // No source needs a definition of the test programs.
            if !file.ends_with(".c") || file.starts_with("t_") {
                continue;
            }
            let code = prototypes::without_comments(&text(&file)?);
            for line in code
                .lines()
                .filter(|l| l.starts_with(|c: char| c.is_alphabetic()))
            {
                let head = line.split('(').next().unwrap_or_default();
                if let Some(name) = words(head)
                    .last()
                    .filter(|w| line.contains('(') && is_function(w))
                {
                    defined_in.insert(name.to_owned(), file.clone());
                }
            }
            mentions.insert(
                file,
                words(&code)
                    .filter(|w| is_function(w))
                    .map(String::from)
                    .collect(),
            );
        }
        let comment = |name: &str| match defined_in.get(name) {
            Some(file) => text(file),
            None => Err(Failure::new(format!("no source defines {name}"))),
        };
        let functions = prototypes::parse(&text("erfa.h")?, comment)?;
        Ok(Library {
            folder: folder.to_path_buf(),
            functions,
            defined_in,
            mentions,
        })
    }

    /// Returns the sources that define a function and all transitive callees.
    pub fn closure(&self, name: &str) -> BTreeSet<&str> {
        let mut files = BTreeSet::new();
        let mut open = vec![name];
        while let Some(name) = open.pop() {
            if let Some(file) = self.defined_in.get(name)
                && files.insert(file.as_str())
                && let Some(mentioned) = self.mentions.get(file)
            {
                open.extend(mentioned.iter().map(String::as_str));
            }
        }
        files
    }

    /// Returns the functions that some sources define.
    pub fn defined_by<'a>(&'a self, files: &'a BTreeSet<&str>) -> impl Iterator<Item = &'a str> {
        self.defined_in
            .iter()
            .filter(|(_, file)| files.contains(file.as_str()))
            .map(|(name, _)| name.as_str())
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
}

/// The library's functions begin with `era` and a capital; types have only capitals after `era`.
fn is_function(word: &str) -> bool {
    word.strip_prefix("era").is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_uppercase()) && !rest.chars().all(|c| c.is_uppercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports a missing library and passes.
    #[test]
    fn every_prototype_is_read_and_every_callee_found() {
        let library = match Library::open() {
            Ok(library) => library,
            Err(failure) => return println!("ERFA is not here: {failure}"),
        };
        let differentiable = library
            .functions
            .iter()
            .filter(|f| f.is_differentiable())
            .count();
        assert!(
            library.functions.len() > 240 && differentiable > 230,
            "{differentiable}"
        );
        let closure = library.closure("eraPnm06a");
        for file in [
            "pnm06a.c", "pfw06.c", "nut06a.c", "fw2m.c", "nut00a.c", "obl06.c", "rz.c",
        ] {
            assert!(closure.contains(file), "{file} in {closure:?}");
        }
        assert!(!closure.contains("moon98.c"));
        assert_eq!(library.closure("eraEpv00").len(), 1);
    }

    #[test]
    fn functions_are_told_from_types() {
        assert!(is_function("eraAb") && is_function("eraP06e"));
        assert!(!is_function("eraASTROM") && !is_function("era") && !is_function("erase"));
    }
}
