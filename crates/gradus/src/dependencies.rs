//! Files that a compilation reads: the compiler's option for a list, and the list, a rule of `make`.

use crate::clang_jobs::Job;
use crate::files;
use gradus_ir::Diagnostic;
use std::path::{Path, PathBuf};

/// Makes a front half list the files read, unless the user's options already do.
pub(crate) fn list_files(front: &mut Job, bitcode: &Path) {
    let reads_source = matches!(front.value("-x"), Some("c" | "c++" | "cuda"));
    let is_clang = front.args.first().is_some_and(|first| first == "-cc1");
    if is_clang && reads_source && front.value(LIST).is_none() {
        let at = front.args.len().min(1);
        let list = bitcode.with_extension("d").display().to_string();
        let words = [LIST, &list, "-sys-header-deps", "-MT", "module"];
        front.args.splice(at..at, words.map(String::from));
    }
}

/// The option of a front half that names the list.
pub(crate) const LIST: &str = "-dependency-file";

/// Returns the files that a front half has listed.
///
/// # Errors
/// `FileAccess` if the list is missing.
pub(crate) fn files_read(front: &Job) -> Result<Vec<PathBuf>, Diagnostic> {
    let list = PathBuf::from(front.value(LIST).unwrap_or_default());
    let rule = files::read(&list)?;
    Ok(dependencies(&String::from_utf8_lossy(&rule)))
}

/// Returns true for a header of the system: part of the compiler's installation rather than of the program.
pub(crate) fn is_of_system(file: &Path) -> bool {
    file.starts_with("/usr/include") || file.starts_with("/usr/lib")
}

/// Returns the dependences of a `make` rule.
pub(crate) fn dependencies(rule: &str) -> Vec<PathBuf> {
    let rule = rule.replace("\\\n", " ");
    let Some((_, list)) = rule.lines().next().and_then(|line| line.split_once(": ")) else {
        return Vec::new();
    };
    let (mut found, mut name) = (Vec::new(), String::new());
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some(&next @ (' ' | '#'))) => {
                name.push(next);
                chars.next();
            }
            ('$', Some('$')) => {
                name.push('$');
                chars.next();
            }
            (c, _) if c.is_whitespace() => {
                found.extend((!name.is_empty()).then(|| std::mem::take(&mut name)))
            }
            (c, _) => name.push(c),
        }
    }
    found.extend((!name.is_empty()).then_some(name));
    found.into_iter().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_make_are_read() {
        let rule = "module: a.c \\\n  inc/b\\ c.h \\\n  $$d.h\n";
        let expected = ["a.c", "inc/b c.h", "$d.h"].map(PathBuf::from);
        assert_eq!(dependencies(rule), expected);
    }
}
