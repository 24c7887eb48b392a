//! Functions that are declared without an execution space and defined with one: `double f(double);` in a header,
//! `__host__ __device__ double f(double x) { … }` in a source below the kernel that calls it. nvcc joins what a
//! unit says of a function; clang goes by what it has read so far, and refuses the call.
//!
//! Where clang refuses such a call and the unit defines the function for the device, the declaration gets both
//! spaces in a copy, which stands for the file by way of clang's overlay of file systems: lines, names in
//! messages and debug information stay.

use crate::files::{self, Scratch};
use gradus_ir::Diagnostic;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What clang says, at its place, of a declaration that was meant for the host.
const NOTE: &str = ": note: candidate function not viable: call to __host__ function from __";
const BOTH: &str = "__host__ __device__ ";

/// The declarations that were completed so far.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    /// The lines, from 1, of each file.
    completed: BTreeMap<PathBuf, Vec<usize>>,
    overlay: Option<PathBuf>,
}

impl Spaces {
    /// What clang is told.
    pub fn words(&self) -> Vec<String> {
        let overlay = self.overlay.iter();
        overlay
            .flat_map(|file| ["-ivfsoverlay".to_string(), file.display().to_string()])
            .collect()
    }

    /// Completes the declarations that clang points at in `said`; whether there were new ones.
    ///
    /// # Errors
    /// Where a file cannot be read or written.
    pub fn learn(
        &mut self,
        said: &str,
        source: &str,
        at: usize,
        scratch: &Scratch,
    ) -> Result<bool, Diagnostic> {
        let definitions = String::from_utf8_lossy(&files::read(Path::new(source))?).into_owned();
        let mut new = false;
        for (file, line, column) in said.lines().filter_map(place) {
            let Some(file) = absolute(Path::new(file)) else {
                continue;
            };
            let text = String::from_utf8_lossy(&files::read(&file)?).into_owned();
            let Some(name) = text.lines().nth(line - 1).and_then(|l| name_at(l, column)) else {
                continue;
            };
            if !for_device(&definitions, name) && !for_device(&text, name) {
                continue;
            }
            let lines = self.completed.entry(file).or_default();
            if !lines.contains(&line) {
                lines.push(line);
                new = true;
            }
        }
        if new {
            self.write(at, scratch)?;
        }
        Ok(new)
    }

    fn write(&mut self, at: usize, scratch: &Scratch) -> Result<(), Diagnostic> {
        let mut roots = Vec::new();
        for (number, (file, lines)) in self.completed.iter().enumerate() {
            let text = String::from_utf8_lossy(&files::read(file)?).into_owned();
            let copy = scratch.file(&format!("{at}.{number}.completed"));
            files::write(&copy, completed(&text, lines).as_bytes())?;
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

/// The file, line and column of a note.
fn place(line: &str) -> Option<(&str, usize, usize)> {
    let (place, _) = line.split_once(NOTE)?;
    let mut parts = place.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    Some((parts.next()?, line, column))
}

/// A path as clang's file systems know it: from the root, without steps back.
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

/// The name that begins at a column, from 1.
fn name_at(line: &str, column: usize) -> Option<&str> {
    let rest = line.get(column.checked_sub(1)?..)?;
    let end = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a text has a declaration or definition of a function for the device.
fn for_device(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + name.len()..]);
        let called = after.trim_start().starts_with('(');
        let begins = before.rfind([';', '{', '}', '#']).map_or(0, |at| at + 1);
        let whole = !before.ends_with(is_of_name);
        called && whole && before[begins..].contains("__device__")
    })
}

/// The text with both spaces before what stands in these lines.
fn completed(text: &str, lines: &[usize]) -> String {
    let mut result = String::with_capacity(text.len() + lines.len() * BOTH.len());
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if lines.contains(&(number + 1)) {
            result.push_str(BOTH);
        }
        result.push_str(line);
    }
    result
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
        assert!(for_device(text, "f"));
        assert!(!for_device(text, "g"));
        assert!(!for_device("__device__ int of(int); int f(int);", "f"));
        assert_eq!(
            completed("int g();\nint f(int);\n", &[2]),
            "int g();\n__host__ __device__ int f(int);\n"
        );
    }
}
