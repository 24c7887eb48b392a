//! Functions declared without an execution space and defined with one: `double f(double);` in a header,
//! `__host__ __device__ double f(double x) { … }` in a source below the calling kernel. nvcc merges all
//! declarations of a unit; clang considers only the text before the call, and refuses it.
//!
//! If clang refuses such a call and the unit defines the function for the device, the declaration gets both
//! spaces in a copy of the file. Clang's virtual file system overlay substitutes the copy: lines, and names
//! in messages, dependence lists and debug information stay. Sources with blanks in launch brackets are
//! substituted likewise.

use crate::files::{self, Scratch};
use crate::nvcc::launch_syntax;
use gradus_ir::Diagnostic;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Clang's note on a declaration for the host.
const NOTE: &str = ": note: candidate function not viable: call to __host__ function from __";
const BOTH: &str = "__host__ __device__ ";

/// The files substituted for clang.
#[derive(Debug, Default)]
pub(super) struct FileSubstitution {
    texts: BTreeMap<PathBuf, String>,
    /// The declarations completed so far: files, and lines from 1.
    completed: BTreeSet<(PathBuf, usize)>,
    overlay: Option<PathBuf>,
}

impl FileSubstitution {
    /// Creates the substitution for a source, with launch brackets closed for clang.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn of(source: &str, at: usize, scratch: &Scratch) -> Result<FileSubstitution, Diagnostic> {
        let mut spaces = FileSubstitution::default();
        let text = files::read(Path::new(source))?;
        let readable = launch_syntax::close_brackets(&String::from_utf8_lossy(&text));
        if let (Some(text), Some(file)) = (readable, absolute(Path::new(source))) {
            spaces.texts.insert(file, text);
            spaces.write(at, scratch)?;
        }
        Ok(spaces)
    }

    /// Returns clang's arguments.
    pub fn words(&self) -> Vec<String> {
        let overlay = self.overlay.iter();
        overlay
            .flat_map(|file| ["-ivfsoverlay".to_string(), file.display().to_string()])
            .collect()
    }

    /// Completes the declarations named by clang's notes in `said`. Returns true if any was new.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn complete_from_notes(
        &mut self,
        said: &str,
        source: &str,
        at: usize,
        scratch: &Scratch,
    ) -> Result<bool, Diagnostic> {
        let definitions = self.text(Path::new(source))?;
        let mut new = false;
        for (file, line, column) in said.lines().filter_map(place) {
            let Some(file) = absolute(Path::new(file)) else {
                continue;
            };
            let text = self.text(&file)?;
            let Some(name) = text.lines().nth(line - 1).and_then(|l| name_at(l, column)) else {
                continue;
            };
            if !is_declared_for_device(&definitions, name) && !is_declared_for_device(&text, name) {
                continue;
            }
            if self.completed.insert((file.clone(), line)) {
                self.texts.insert(file, with_both_spaces(&text, line));
                new = true;
            }
        }
        if new {
            self.write(at, scratch)?;
        }
        Ok(new)
    }

    /// Returns a file's text as read by clang.
    fn text(&self, file: &Path) -> Result<String, Diagnostic> {
        let changed = absolute(file).and_then(|file| self.texts.get(&file).cloned());
        let read = || Ok(String::from_utf8_lossy(&files::read(file)?).into_owned());
        changed.map_or_else(read, Ok)
    }

    fn write(&mut self, at: usize, scratch: &Scratch) -> Result<(), Diagnostic> {
        let mut roots = Vec::new();
        for (number, (file, text)) in self.texts.iter().enumerate() {
            let copy = scratch.file(&format!("{at}.{number}.text"));
            files::write(&copy, text.as_bytes())?;
            roots.push(json!({
                "type": "file",
                "name": file.display().to_string(),
                "external-contents": copy.display().to_string(),
            }));
        }
        let overlay = scratch.file(&format!("{at}.overlay.yaml"));
        let tree = json!({ "version": 0, "use-external-names": false, "roots": roots });
        files::write(&overlay, tree.to_string().as_bytes())?;
        self.overlay = Some(overlay);
        Ok(())
    }
}

/// Parses file, line and column of a note.
fn place(line: &str) -> Option<(&str, usize, usize)> {
    let (place, _) = line.split_once(NOTE)?;
    let mut parts = place.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    Some((parts.next()?, line, column))
}

/// Returns the absolute path without parent components, as used by clang's file systems.
fn absolute(path: &Path) -> Option<PathBuf> {
    let mut whole = PathBuf::new();
    for part in std::path::absolute(path).ok()?.components() {
        match part {
            std::path::Component::ParentDir => {
                whole.pop();
            }
            part => whole.push(part),
        }
    }
    whole.is_file().then_some(whole)
}

/// Returns the name that begins at a column, from 1.
fn name_at(line: &str, column: usize) -> Option<&str> {
    let rest = line.get(column.checked_sub(1)?..)?;
    let end = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns true if a text declares or defines the function for the device.
fn is_declared_for_device(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + name.len()..]);
        let called = after.trim_start().starts_with('(');
        let begins = before.rfind([';', '{', '}', '#']).map_or(0, |at| at + 1);
        let whole = !before.ends_with(is_of_name);
        called && whole && before[begins..].contains("__device__")
    })
}

/// Returns the text with both spaces inserted at the start of a line, from 1.
fn with_both_spaces(text: &str, line: usize) -> String {
    let before = text.split_inclusive('\n').take(line - 1);
    let start = before.map(str::len).sum();
    [&text[..start], BOTH, &text[start..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_tells_the_declaration() {
        let said = "./a.h:10:8: note: candidate function not viable: call to __host__ function from __global__ function";
        assert_eq!(place(said), Some(("./a.h", 10, 8)));
        assert_eq!(
            place("a.h:1:2: note: candidate function not viable: requires 2"),
            None
        );
        assert_eq!(name_at("double f_1(int);", 8), Some("f_1"));
    }

    #[test]
    fn only_what_is_defined_for_the_device_is_completed() {
        let text = "int g() { return f(1); }\n__host__ __device__\nint f(int x) { return x; }";
        assert!(is_declared_for_device(text, "f"));
        assert!(!is_declared_for_device(text, "g"));
        assert!(!is_declared_for_device(
            "__device__ int of(int); int f(int);",
            "f"
        ));
        assert_eq!(
            with_both_spaces("int g();\nint f(int);\n", 2),
            "int g();\n__host__ __device__ int f(int);\n"
        );
    }
}
