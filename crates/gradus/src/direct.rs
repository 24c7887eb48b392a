//! Compiles a source by one run of the user's compiler, if nothing in the source asks for Gradus.
//!
//! Most files of a program have neither derivative calls nor parallel code. The driver ([`crate::driver`]) starts here:
//! one run emits the object and the list of files read. The object stands if no file may hold words of the interface
//! and no symbol asks for Gradus; a record ([`SourceRecord`]) in the object lets a later link differentiate its
//! functions. In all other cases nothing is written, and the driver begins again.
//!
//! # Invariants
//! Only command lines of known options come here: one C or C++ source, `-c`, one output.

use crate::Settings;
use crate::dependencies::{dependencies, is_of_system};
use crate::files::{self, Content, Outputs, Scratch};
use crate::module_scan::{asks_for_gradus, names_gradus};
use crate::objects::source_record::{SourceRecord, checksum};
use gradus_ir::Diagnostic;
use gradus_pipeline::may_hold_words;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The macro by which sources detect Gradus: `gradus/parallel.h` tests it.
pub(crate) const GRADUS_MACRO: &str = "__GRADUS__=1";

/// The macros of all sources: Gradus, and the version of the call interface.
pub(crate) const MACROS: [&str; 4] = [
    GRADUS_MACRO,
    "ENZYME_VERSION_MAJOR=0",
    "ENZYME_VERSION_MINOR=0",
    "ENZYME_VERSION_PATCH=200",
];

/// Options with a value in the next word.
const WITH_VALUE: [&str; 8] = [
    "-D",
    "-U",
    "-I",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-isysroot",
    "-target",
];
/// Beginnings of options without effect on the kind or number of outputs.
const KNOWN: [&str; 19] = [
    "-D",
    "-U",
    "-I",
    "-O",
    "-W",
    "-std=",
    "-m",
    "-g",
    "-f",
    "-pedantic",
    "-ansi",
    "-w",
    "-pthread",
    "-pipe",
    "--sysroot=",
    "--target=",
    "-nostdinc",
    "-MP",
    "-isystem",
];
/// Beginnings of options that [`KNOWN`] covers, but that add outputs or inputs, or change the kind of output.
const EXCLUDED: [&str; 29] = [
    "-working",
    "-foptimization-record",
    "-fproc-stat",
    "-ftest-coverage",
    "-Wp,",
    "-Wa,",
    "-mllvm",
    "-gsplit-dwarf",
    "-gmodules",
    "-fopenmp",
    "-flto",
    "-fembed",
    "-fplugin",
    "-fpass-plugin",
    "-fsyntax-only",
    "-ftime",
    "-fsave",
    "-fprofile",
    "-fcoverage",
    "-femit",
    "-foffload",
    "-fmodule",
    "-fcs-profile",
    "-fprebuilt",
    "-fsycl",
    "-fthinlto",
    "-fno-integrated",
    "-fdump",
    "-fstack-usage",
];

/// A command line with one source and one object.
#[derive(Debug, Default)]
struct Line {
    source: PathBuf,
    output: Option<PathBuf>,
    /// The arguments but outputs and lists of files.
    args: Vec<String>,
    /// The option that requests a list of files: `-MD` or `-MMD`.
    list: Option<&'static str>,
    list_file: Option<PathBuf>,
    /// True if options name the target of the list's rule.
    names_target: bool,
}

/// Reads a command line; `None` for a command line with other options.
fn read(args: &[String]) -> Option<Line> {
    let mut line = Line::default();
    let (mut compiles, mut sources, mut of_system) = (false, 0, false);
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-c" => compiles = true,
            "-o" => line.output = Some(words.next()?.into()),
            "-MD" => line.list = Some("-MD"),
            "-MMD" => line.list = Some("-MMD"),
            "-MF" => line.list_file = Some(words.next()?.into()),
            "-MT" | "-MQ" => {
                line.names_target = true;
                line.args.extend([word.clone(), words.next()?.clone()]);
            }
            option if WITH_VALUE.contains(&option) => {
                of_system |= option == "-isystem";
                line.args.extend([word.clone(), words.next()?.clone()]);
            }
            option if option.starts_with('-') => {
                let begins = |list: &[&str]| list.iter().any(|start| option.starts_with(start));
                if !begins(&KNOWN) || begins(&EXCLUDED) {
                    return None;
                }
                line.args.push(word.clone());
            }
            source => {
                let kind = Path::new(source).extension()?.to_str()?;
                if !["c", "cc", "cpp", "cxx", "c++", "C"].contains(&kind) {
                    return None;
                }
                line.source = source.into();
                sources += 1;
            }
        }
    }
    let is_listed_as_asked =
        line.list.is_some() || (line.list_file.is_none() && !line.names_target);
    // Such a list leaves files out that may hold words.
    let is_partial = line.list == Some("-MMD") && of_system;
    (compiles && sources == 1 && is_listed_as_asked && !is_partial).then_some(line)
}

impl Line {
    /// Returns the object to write.
    fn object(&self) -> PathBuf {
        let stem = self.source.file_stem().unwrap_or_default();
        let named = Path::new(stem).with_added_extension("o");
        self.output.clone().unwrap_or(named)
    }

    /// Returns the compiler's arguments without outputs.
    fn compilation(&self) -> Vec<String> {
        let macros = MACROS.iter().map(|name| format!("-D{name}"));
        let source = self.source.display().to_string();
        std::iter::once("-c".to_string())
            .chain(macros)
            .chain(self.args.iter().cloned())
            .chain([source])
            .collect()
    }

    /// Returns the options for the list of files in `list`.
    fn list_options(&self, list: &Path) -> Vec<String> {
        let mut options = vec![self.list.unwrap_or("-MD").to_string()];
        options.extend(["-MF".into(), list.display().to_string()]);
        if !self.names_target {
            options.extend(["-MQ".into(), self.object().display().to_string()]);
        }
        options
    }
}

/// Compiles a command line directly; `further` are options of the compiler's messages. Returns the messages; `None` if
/// Gradus's passes may have work, or if the compiler reports an error: nothing is written then.
///
/// # Errors
/// `FileAccess` if an output cannot be written.
pub(crate) fn compile(
    settings: &Settings,
    compiler: &Path,
    args: &[String],
    further: Option<&str>,
) -> Result<Option<String>, Diagnostic> {
    let Some(line) = read(args) else {
        // Not an error: the driver plans the jobs.
        return Ok(None);
    };
    if std::fs::read(&line.source).is_ok_and(|text| names_gradus(&text)) {
        return Ok(None);
    }
    let scratch = settings.scratch()?;
    let (object, list) = (scratch.file("direct.o"), scratch.file("direct.d"));
    let mut command = Command::new(compiler);
    command
        .args(line.compilation())
        .args(line.list_options(&list));
    command.arg("-o").arg(&object).stdin(Stdio::null());
    command.args(further);
    command.envs(
        settings
            .environment
            .iter()
            .map(|(name, value)| (name, value)),
    );
    let Ok(output) = command.output() else {
        // Not an error here: the driver reports a compiler that does not run.
        return Ok(None);
    };
    if !output.status.success() {
        return Ok(None);
    }
    let Some(read) = checked_files(settings, &list)? else {
        // Not an error: a file may hold words that the compiler drops.
        return Ok(None);
    };
    let made = files::read(&object)?;
    let record = SourceRecord {
        compiler: absolute_program(compiler),
        folder: std::path::absolute(".").unwrap_or_default(),
        args: line.compilation(),
        files: read,
    };
    if asks_for_gradus(&made) {
        return Ok(None);
    }
    let Some(made) = record.attach(&made) else {
        // Not an error: the object has no room for the record.
        return Ok(None);
    };
    write_outputs(settings, &line, &scratch, made)?;
    Ok(Some(String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// Returns the path of a program that holds in every folder; the name of a program on the path stays.
fn absolute_program(program: &Path) -> PathBuf {
    let is_path = program.components().count() > 1;
    let absolute = std::path::absolute(program).ok().filter(|_| is_path);
    absolute.unwrap_or_else(|| program.to_path_buf())
}

/// Returns the files read with checksums, without the system's and Gradus's; `None` if a file may hold words.
fn checked_files(
    settings: &Settings,
    list: &Path,
) -> Result<Option<Vec<(PathBuf, u64)>>, Diagnostic> {
    let rule = String::from_utf8_lossy(&files::read(list)?).into_owned();
    let own = settings.include.as_deref();
    let mut read = Vec::new();
    for file in dependencies(&rule) {
        if is_of_system(&file) || own.is_some_and(|own| file.starts_with(own)) {
            continue;
        }
        let bytes = files::read(&file)?;
        if names_gradus(&bytes) && may_hold_words(&bytes) {
            return Ok(None);
        }
        read.push((file, checksum(&bytes)));
    }
    Ok(Some(read))
}

/// Writes the object and the requested list of files.
fn write_outputs(
    settings: &Settings,
    line: &Line,
    scratch: &Scratch,
    object: Vec<u8>,
) -> Result<(), Diagnostic> {
    let mut outputs = Outputs::default();
    let path = line.object();
    if line.list.is_some() {
        let named = line
            .list_file
            .clone()
            .unwrap_or_else(|| path.with_extension("d"));
        outputs.add(&named, Content::File(scratch.file("direct.d")));
    }
    outputs.add(&path, Content::Bytes(object));
    outputs.commit(&settings.leftovers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<Line> {
        read(&text.split(' ').map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn build_systems_lines_are_read() {
        let cmake =
            "-DX=1 -I inc -O2 -g -std=gnu17 -MD -MT d/a.c.o -MF d/a.c.o.d -o d/a.c.o -c /s/a.c";
        let read = line(cmake).expect("known options");
        assert_eq!(read.object(), Path::new("d/a.c.o"));
        assert_eq!(read.list_file.as_deref(), Some(Path::new("d/a.c.o.d")));
        assert!(read.names_target);
        let read = line("-Wall -c sub/b.cpp").expect("known options");
        assert_eq!(read.object(), Path::new("b.o"));
    }

    #[test]
    fn other_lines_are_left_to_the_driver() {
        for text in [
            "a.c",
            "-c a.c b.c",
            "-c a.o",
            "-c -fopenmp a.c",
            "-c -flto a.c",
            "-c -emit-llvm a.c",
            "-S a.c",
            "-c -x c -",
            "-c -MMD -isystem lib a.c",
            "-c -MF a.d a.c",
            "-c -Xclang -load a.c",
            "-c -Wp,-MD,a.d a.c",
            "-c -include-pch a.pch a.c",
        ] {
            assert!(line(text).is_none(), "{text}");
        }
    }
}
