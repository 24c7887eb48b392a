//! `gradus nvcc`: compiles CUDA programs for the host.
//!
//! Flow: [`options`] parses the command line. Clang compiles each source with device code twice, for the
//! host and for a GPU; Gradus's passes process both halves together, and the host's own job emits the
//! object ([`translation_unit`]). All other files and the link go to the ordinary driver ([`crate::driver`]). All
//! objects of a run appear, or none.

mod clang_messages;
mod execution_spaces;
mod launch_syntax;
mod link_libraries;
mod option_table;
mod options;
mod separate;
mod toolkit_paths;
mod translation_unit;
mod vectorizer_remarks;

use crate::compilation::DebugDetail;
use crate::driver::{DriveOptions, DriverOutcome, drive};
use crate::files::{self, Content, Outputs, Scratch};
use crate::source::{self, CompilerOptions};
use crate::{Language, Settings};
use gradus_ir::{Code, Diagnostic};
use options::{Invocation, LastStage, Source};
use std::path::{Path, PathBuf};

/// The output of `--version`, in the words that build systems look for.
pub const VERSION: &str = "\
nvcc: NVIDIA (R) Cuda compiler driver (gradus: generates code for CPUs)
Cuda compilation tools, release 12.2, V12.2.140
";

/// Runs nvcc's command line.
pub fn nvcc(settings: &Settings, how: &DriveOptions, args: &[String]) -> DriverOutcome {
    let mut driven = DriverOutcome::default();
    if let Err(diagnostic) = run(settings, how, args, &mut driven) {
        driven.diagnostics.push(diagnostic);
        driven.status = 1;
    }
    driven
}

fn run(
    settings: &Settings,
    how: &DriveOptions,
    args: &[String],
    driven: &mut DriverOutcome,
) -> Result<(), Diagnostic> {
    let asked = options::read(args)?;
    if asked.version {
        driven.printed.push_str(VERSION);
        return Ok(());
    }
    if asked.verbose {
        driven.remarks.push(toolkit_paths::toolkit_paths(settings)?);
    }
    check_invocation(&asked)?;
    let scratch = settings.scratch()?;
    let mut outputs = Outputs::default();
    let mut objects: Vec<Option<PathBuf>> = vec![None; asked.files.len()];
    if asked.stop != LastStage::Preprocess {
        for (at, source) in asked.files.iter().enumerate().filter(|(_, s)| s.cuda) {
            let object = scratch.file(&format!("{at}.o"));
            let session = translation_unit::UnitCompiler {
                settings,
                how,
                asked: &asked,
                scratch: &scratch,
                form: source::OBJECT,
            };
            driven.status = session.compile(at, source, &object, driven)?;
            if driven.status != 0 {
                return Ok(());
            }
            if asked.stop == LastStage::Object {
                outputs.add(&object_name(&asked, source), Content::File(object.clone()));
            }
            objects[at] = Some(object);
        }
    }
    if asked.stop == LastStage::Link {
        let linked = asked.files.iter().zip(&objects);
        let path = |(source, object): (&Source, &Option<PathBuf>)| {
            object.clone().unwrap_or_else(|| source.path.clone().into())
        };
        separate::check(&linked.map(path).collect::<Vec<_>>())?;
    }
    let line = match asked.stop {
        LastStage::DeviceLink => Some(empty_object(&asked, &scratch)?),
        LastStage::Archive => {
            let made = archive(&asked, &objects)?;
            outputs.add(&output_or(&asked, "a.a"), Content::Bytes(made));
            None
        }
        _ => remaining_command_line(settings, &asked, &objects, &scratch)?,
    };
    if let Some(line) = line {
        let other = DriveOptions {
            language: Language::PlusPlus,
            ..how.clone()
        };
        let done = drive(settings, &other, &line);
        driven.status = done.status;
        driven.remarks.extend(done.remarks);
        driven.diagnostics.extend(done.diagnostics);
        driven.printed += &done.printed;
        driven.report.append(done.report);
        if done.status != 0 {
            return Ok(());
        }
    }
    outputs.commit(&settings.leftovers)
}

/// Opens a source with device code for derivatives by name, like [`source::open`] for other sources, with
/// nvcc's flags.
///
/// # Errors
/// See [`source::open`].
pub(crate) fn open(
    settings: &Settings,
    file: &Path,
    wanted: &CompilerOptions,
    scratch: &Scratch,
    derived: &Path,
) -> Result<source::Source, Diagnostic> {
    let mut args = wanted.flags.to_vec();
    args.extend(["-c".to_string(), file.display().to_string()]);
    let asked = options::read(&args)?;
    let unit = translation_unit::UnitCompiler {
        settings,
        how: &DriveOptions::default(),
        asked: &asked,
        scratch,
        form: wanted.form,
    };
    let [only] = &asked.files[..] else {
        let message = "the compiler flags name a second file";
        return Err(Diagnostic::error(Code::BadOption, message));
    };
    let mut driven = DriverOutcome::default();
    let to = (derived, DebugDetail::Types);
    let Some(opened) = unit.open(0, only, wanted.output, to, &mut driven)? else {
        let mut refused = Diagnostic::error(Code::ToolFailed, "the compiler rejected the program");
        let said = driven.remarks.iter().flat_map(|text| text.lines());
        refused.notes.extend(said.take(20).map(String::from));
        return Err(refused);
    };
    Ok(source::Source {
        module: opened.host,
        device: Some(opened.device),
        library: None,
        registrations: Vec::new(),
        back: opened.halves.back,
        debug: opened.halves.debug,
        level: opened.halves.level,
    })
}

fn check_invocation(asked: &Invocation) -> Result<(), Diagnostic> {
    if asked.files.is_empty() {
        return Err(Diagnostic::error(Code::BadOption, "no file is given"));
    }
    let several = asked.files.len() > 1 && asked.stop == LastStage::Object;
    if several && asked.output.is_some() {
        let message = "`-o` names one output for several objects";
        return Err(Diagnostic::error(Code::BadOption, message).help("remove `-o`"));
    }
    let of_host = |source: &&Source| !source.cuda && !source.linked;
    let only_objects = match asked.stop {
        LastStage::DeviceLink => asked.files.iter().find(|s| s.cuda || of_host(s)),
        LastStage::Archive => asked.files.iter().find(of_host),
        _ => None,
    };
    if let Some(source) = only_objects {
        let message = format!("{} is not an object file", source.path);
        return Err(
            Diagnostic::error(Code::BadOption, message).help("compile the file with `-c` first")
        );
    }
    let of_host = asked.files.iter().filter(of_host).count();
    if asked.stop == LastStage::Object && asked.folder.is_some() && of_host > 1 {
        let message = "an output directory is not supported for several host objects";
        return Err(
            Diagnostic::error(Code::BadOption, message).help("compile the host files one by one")
        );
    }
    if asked.stop == LastStage::Link {
        link_libraries::without_replaced_libraries(&asked.link)?;
    }
    Ok(())
}

/// Returns the job that emits the device-link object: an empty object. Device code needs no separate link,
/// since the program's link joins it like host code, but build systems expect the object.
fn empty_object(asked: &Invocation, scratch: &Scratch) -> Result<Vec<String>, Diagnostic> {
    let nothing = scratch.file("nothing.c");
    files::write(&nothing, b"")?;
    let output = output_or(asked, "a_dlink.o");
    let words = [
        "-x",
        "c",
        "-c",
        &nothing.display().to_string(),
        "-o",
        &output.display().to_string(),
    ];
    Ok(words.map(String::from).to_vec())
}

/// Returns an archive of the objects, under their own names.
fn archive(asked: &Invocation, objects: &[Option<PathBuf>]) -> Result<Vec<u8>, Diagnostic> {
    let members = asked.files.iter().zip(objects).map(|(source, object)| {
        let (name, path) = match object {
            Some(object) => (Path::new(&source.path).with_extension("o"), object.clone()),
            None => (PathBuf::from(&source.path), PathBuf::from(&source.path)),
        };
        let name = name.file_name().unwrap_or_default().to_string_lossy();
        Ok((name.into_owned(), files::read(&path)?))
    });
    Ok(crate::objects::archive::create(
        &members.collect::<Result<Vec<_>, _>>()?,
    ))
}

/// Returns the named output, or an output of this name.
fn output_or(asked: &Invocation, name: &str) -> PathBuf {
    let folder = asked.folder.iter().map(PathBuf::from);
    let within: PathBuf = folder.chain([name.into()]).collect();
    asked.output.as_ref().map_or(within, PathBuf::from)
}

/// Returns the path of a source's object: the user's choice, or the source's name in the output folder.
fn object_name(asked: &Invocation, source: &Source) -> PathBuf {
    let stem = Path::new(&source.path).file_stem().unwrap_or_default();
    output_or(asked, &format!("{}.o", stem.to_string_lossy()))
}

/// Returns the ordinary driver's command line, for files without device code and for the link; `None` if
/// neither exists.
fn remaining_command_line(
    settings: &Settings,
    asked: &Invocation,
    objects: &[Option<PathBuf>],
    scratch: &Scratch,
) -> Result<Option<Vec<String>>, Diagnostic> {
    let files: Vec<String> = asked
        .files
        .iter()
        .zip(objects)
        .filter_map(|(source, object)| match (object, asked.stop) {
            (Some(object), LastStage::Link) => Some(object.display().to_string()),
            (Some(_), _) => None,
            (None, _) => Some(source.path.clone()),
        })
        .collect();
    if files.is_empty() {
        return Ok(None);
    }
    let mut line = translation_unit::header_search_path(settings, scratch);
    line.push(translation_unit::BY_NVCC.into());
    let is_c = |f: &String| f.ends_with(".c");
    let some_c = files.iter().any(is_c);
    if some_c {
        line.extend(OLD_C.map(String::from));
    }
    // Options of compilations may be unused, and the language switch may be the last argument.
    line.push("-Wno-unused-command-line-argument".into());
    line.push(GLUED_MACROS.into());
    // nvcc's compilers accept a C++ version for C; clang refuses it.
    let says = |word: &&String| {
        !some_c || files.iter().any(is_cplusplus) || !word.starts_with("-std=gnu++")
    };
    line.extend(asked.common.iter().filter(says).cloned());
    line.extend(asked.host.iter().cloned());
    line.extend(asked.level.clone());
    match asked.stop {
        LastStage::Object => line.push("-c".into()),
        LastStage::Link => line.extend(link_libraries::without_replaced_libraries(&asked.link)?),
        LastStage::Preprocess => line.extend(translation_unit::host_preprocess_options(asked)),
        LastStage::DeviceLink | LastStage::Archive => {}
    }
    let within = asked
        .files
        .iter()
        .find(|source| !source.cuda && !source.linked);
    let within = within.filter(|_| asked.stop == LastStage::Object && asked.folder.is_some());
    let within = within.map(|source| object_name(asked, source).display().to_string());
    let output = asked.output.clone().or(within);
    line.extend(output.into_iter().flat_map(|o| ["-o".to_string(), o]));
    // Libraries are searched for symbols of preceding objects.
    let at = line
        .iter()
        .position(|w| w.starts_with("-l"))
        .unwrap_or(line.len());
    let with_language = files.iter().flat_map(|file| {
        let text = file.ends_with(".c");
        let named = text.then(|| ["-x".to_string(), "c".to_string()]);
        let back = text.then(|| ["-x".to_string(), "none".to_string()]);
        let named = named.into_iter().flatten();
        named
            .chain([file.clone()])
            .chain(back.into_iter().flatten())
    });
    let words: Vec<String> = with_language.collect();
    line.splice(at..at, words);
    Ok(Some(line))
}

fn is_cplusplus(file: &String) -> bool {
    let extension = Path::new(file).extension().and_then(|e| e.to_str());
    matches!(
        extension,
        Some("cpp" | "cc" | "cxx" | "c++" | "C" | "CPP" | "cp")
    )
}

/// Permits `"text"MACRO` without a blank, accepted by nvcc's host compilers.
const GLUED_MACROS: &str = "-Wno-reserved-user-defined-literal";

/// Permits C from before C99: nvcc passes C to a compiler of that time.
const OLD_C: [&str; 4] = [
    "-Wno-implicit-function-declaration",
    "-Wno-implicit-int",
    "-Wno-int-conversion",
    "-Wno-incompatible-pointer-types",
];
