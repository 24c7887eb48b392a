//! Symbols in the shared libraries of an executable.
//!
//! A definition whose symbol no other object and no library of the link names belongs to the program alone. A library
//! counts with the symbols that it defines, too: the dynamic linker prefers the executable's definition of `malloc`.

use crate::clang_jobs::Job;
use crate::files;
use crate::objects::archive;
use crate::objects::kind::is_archive;
use crate::objects::linker_inputs::library;
use object::read::elf::{Dyn, FileHeader};
use object::{Object, ObjectKind, ObjectSymbol};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Names of linker options that make another kind of output than an executable, that export symbols, or that name
/// symbols.
// table
const OPEN: [&str; 34] = [
    "shared",
    "Bshareable",
    "r",
    "relocatable",
    "i",
    "Ur",
    "E",
    "export-dynamic",
    "export-dynamic-symbol",
    "export-dynamic-symbol-list",
    "dynamic-list",
    "dynamic-list-data",
    "dynamic-list-cpp-new",
    "dynamic-list-cpp-typeinfo",
    "version-script",
    "retain-symbols-file",
    "gc-keep-exported",
    "T",
    "script",
    "default-script",
    "dT",
    "defsym",
    "wrap",
    "u",
    "undefined",
    "require-defined",
    "e",
    "entry",
    "init",
    "fini",
    "just-symbols",
    "R",
    "plugin",
    "flavor",
];

/// Short options that take a value without a space: `-uNAME`.
const WITH_VALUE: [char; 4] = ['u', 'e', 'T', 'R'];

/// Returns the symbols of the shared libraries of an executable's link. `is_object` tells the positions of the objects
/// that the caller reads; the caller also reads the members of archives on the command line. `None` if the link makes another kind of output, exports or names symbols, or has
/// an input of unknown format.
pub(crate) fn of_executable(
    job: &Job,
    is_object: impl Fn(usize) -> bool,
) -> Option<BTreeSet<String>> {
    let mut reader = LibraryReader {
        job,
        seen: BTreeSet::new(),
        symbols: BTreeSet::new(),
    };
    let mut words = job.args.iter().enumerate();
    while let Some((at, word)) = words.next() {
        if is_open(word) {
            return None;
        }
        if takes_path(word) {
            words.next();
        } else if word.starts_with("-l") {
            reader.add_input(&library(job, word)?)?;
        } else if !word.starts_with('-') && !is_object(at) {
            let path = Path::new(word);
            // Values of options, such as the emulation behind `-m`, are no files.
            if path.is_file() {
                reader.add_input(path)?;
            }
        }
    }
    Some(reader.symbols)
}

/// Returns whether an option makes the set of users of a symbol unknown.
fn is_open(word: &str) -> bool {
    let Some(option) = word.strip_prefix('-') else {
        return word.starts_with('@');
    };
    let is_short = !option.starts_with('-');
    let option = option.trim_start_matches('-');
    let name = option.split('=').next().unwrap_or_default();
    let with_value = is_short
        && option.starts_with(WITH_VALUE)
        && !["eh-frame-hdr", "enable-new-dtags"].contains(&name);
    OPEN.contains(&name) || with_value
}

/// Returns whether the next word is a file that the linker does not read as an input.
fn takes_path(word: &str) -> bool {
    [
        "-o",
        "-dynamic-linker",
        "--dynamic-linker",
        "-rpath",
        "-rpath-link",
        "-soname",
        "-Map",
    ]
    .contains(&word)
}

struct LibraryReader<'a> {
    job: &'a Job,
    seen: BTreeSet<PathBuf>,
    symbols: BTreeSet<String>,
}

impl LibraryReader<'_> {
    /// Adds the symbols of an input. The caller has the symbols of archives, if all members are objects.
    fn add_input(&mut self, path: &Path) -> Option<()> {
        if !is_archive(path) {
            return self.add(path);
        }
        let is_object = |member: &Vec<u8>| object::File::parse(&**member).is_ok();
        archive::members(path).iter().all(is_object).then_some(())
    }
    /// Adds the symbols of a library, of the libraries that it needs, or of the libraries in a linker script.
    fn add(&mut self, path: &Path) -> Option<()> {
        if !self.seen.insert(path.to_owned()) {
            return Some(());
        }
        if is_archive(path) {
            return archive::members(path)
                .iter()
                .try_for_each(|member| self.add_symbols(&object::File::parse(&**member).ok()?));
        }
        let bytes = files::read(path).ok()?;
        let Ok(file) = object::File::parse(&*bytes) else {
            return self.add_script(std::str::from_utf8(&bytes).ok()?);
        };
        self.add_symbols(&file)?;
        if file.kind() == ObjectKind::Dynamic {
            for name in needed_libraries(&bytes)? {
                let found = library(self.job, &format!("-l:{name}"))?;
                self.add(&found)?;
            }
        }
        Some(())
    }
    fn add_symbols(&mut self, file: &object::File<'_>) -> Option<()> {
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let name = symbol.name().ok()?;
            // `name@VERSION` in the symbol table of an object.
            let name = name.split('@').next().unwrap_or_default();
            if symbol.is_global() || symbol.is_undefined() {
                self.symbols.insert(name.to_owned());
            }
        }
        Some(())
    }
    /// Adds the libraries that a linker script names.
    fn add_script(&mut self, text: &str) -> Option<()> {
        let is_listed = ["GROUP", "INPUT"].iter().any(|word| text.contains(word));
        if !is_listed {
            return None;
        }
        let words = text.split(|c: char| c.is_whitespace() || "(),".contains(c));
        for word in words {
            if word.starts_with('/') && !word.starts_with("/*") {
                self.add(Path::new(word))?;
            } else if word.starts_with("-l") {
                self.add(&library(self.job, word)?)?;
            }
        }
        Some(())
    }
}

/// Returns the file names of the libraries that a shared library needs.
fn needed_libraries(bytes: &[u8]) -> Option<Vec<String>> {
    let header = object::elf::FileHeader64::<object::Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, bytes).ok()?;
    let Some((dynamic, link)) = sections.dynamic(endian, bytes).ok()? else {
        return Some(Vec::new());
    };
    let strings = sections.strings(endian, bytes, link).ok()?;
    let needed = dynamic
        .iter()
        .filter(|entry| entry.tag32(endian) == Some(object::elf::DT_NEEDED));
    needed
        .map(|entry| {
            let name = entry.string(endian, strings).ok()?;
            String::from_utf8(name.to_vec()).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(words: &[&str]) -> Job {
        Job {
            program: "ld".into(),
            args: words.iter().map(|word| word.to_string()).collect(),
        }
    }

    #[test]
    fn an_executable_is_closed() {
        let link = [
            "-pie",
            "--eh-frame-hdr",
            "-m",
            "elf_x86_64",
            "-o",
            "a",
            "a.o",
            "--as-needed",
        ];
        assert_eq!(
            of_executable(&job(&link), |at| at == 6),
            Some(BTreeSet::new())
        );
    }

    #[test]
    fn other_outputs_and_named_symbols_are_open() {
        for word in [
            "-shared",
            "-r",
            "-E",
            "--export-dynamic",
            "--dynamic-list=a",
            "--version-script=a",
            "--wrap=f",
            "--defsym=a=b",
            "-u",
            "-ufree",
            "-efirst",
            "-Tscript",
            "@words",
            "-lno-such-library",
        ] {
            assert_eq!(
                of_executable(&job(&["a.o", word]), |at| at == 0),
                None,
                "{word}"
            );
        }
    }
}
