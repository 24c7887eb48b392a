//! Interface words dropped by a compiler before it emits a module: unknown attributes, and unused
//! registrations.
//!
//! Flow: a front half lists the files read. If a file may hold such words, the source is preprocessed, the
//! words are preserved ([`gradus_pipeline::preserve_words`]), and the front half runs again on the new text.
//! Every registration in the text must then be in the module. Options of the Enzyme plugin are removed from
//! command lines here, too, each with a note.

use crate::clang_jobs::Job;
use crate::dependencies::{self, LIST, is_of_system};
use crate::files::{self, Scratch};
use crate::module_scan::holds;
use crate::{Settings, job_execution};
use gradus_ir::{Code, Diagnostic, Severity, SourceSpan};
use gradus_pipeline::{WrittenRegistration, may_hold_words, preserve_words};
use std::path::{Path, PathBuf};
use std::process::Output;

/// The output of a front half, with all words.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrontOutput {
    /// The module.
    pub module: Vec<u8>,
    /// The compiler's messages on the text with preserved words; `None` if the first run stands.
    pub said: Option<String>,
    /// The registrations, for diagnostics without a line.
    pub registrations: Vec<WrittenRegistration>,
}

/// Adds the registrations' lines to diagnostics without lines.
pub(crate) fn add_registration_lines(
    registrations: &[WrittenRegistration],
    findings: &mut [Diagnostic],
) {
    let lineless = findings
        .iter_mut()
        .filter(|finding| finding.labels.is_empty());
    for finding in lineless {
        let mut named = registrations.iter();
        if let Some(known) = named.find(|known| finding.message.contains(&known.name)) {
            *finding = finding
                .clone()
                .at(Some(known.span.clone()), "registered here");
        }
    }
}

/// Returns the module of a front half, with all words of its sources.
///
/// # Errors
/// Words at places without a meaning, registrations dropped by the compiler; `FileAccess`, `ToolFailed`.
pub(crate) fn module_with_words(
    settings: &Settings,
    front: &Job,
    bitcode: &Path,
    scratch: &Scratch,
) -> Result<FrontOutput, Diagnostic> {
    let plain = FrontOutput {
        module: files::read(bitcode)?,
        ..FrontOutput::default()
    };
    let language = match front.value("-x") {
        Some("c") => "cpp-output",
        Some("c++") => "c++-cpp-output",
        Some("cuda") => "cuda-cpp-output",
        _ => return Ok(plain),
    };
    if !holds_words(settings, front) {
        return Ok(plain);
    }
    let stem = bitcode.file_stem().unwrap_or_default().to_string_lossy();
    let text = scratch.file(&format!("{stem}.words.i"));
    let preprocessed = run(&preprocessing(front, &text))?;
    if !preprocessed.status.success() {
        return Ok(plain);
    }
    let kept = preserve_words(&String::from_utf8_lossy(&files::read(&text)?));
    if let Some(finding) = kept.findings.into_iter().next() {
        return Err(finding);
    }
    let mut settled = plain;
    if kept.changed {
        files::write(&text, kept.text.as_bytes())?;
        let output = run(&on_text(front, language, &text))?;
        if !output.status.success() {
            return Err(job_execution::refused_error(&output));
        }
        settled.module = files::read(bitcode)?;
        settled.said = Some(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let is_kept = |known: &WrittenRegistration| holds(&settled.module, known.name.as_bytes());
    if let Some(lost) = kept.registrations.iter().find(|known| !is_kept(known)) {
        return Err(dropped(&lost.name, &lost.span));
    }
    settled.registrations = kept.registrations;
    for registered in &mut settled.registrations {
        registered.span.file = files::shown_name(&registered.span.file);
    }
    Ok(settled)
}

fn dropped(name: &str, span: &SourceSpan) -> Diagnostic {
    let message = format!("the compiler drops the registration `{name}`");
    Diagnostic::error(Code::UnsupportedKeyword, message)
        .at(Some(span.clone()), "registered here")
        .help("define the registration at file scope, outside templates, as an array of pointers with an initialiser")
}

fn run(job: &Job) -> Result<Output, Diagnostic> {
    job_execution::run_captured(job)
}

/// Returns true if a file read by a front half, or its command line, may hold words that compilers drop.
fn holds_words(settings: &Settings, front: &Job) -> bool {
    let own = |file: &Path| {
        settings
            .include
            .as_ref()
            .is_some_and(|folder| file.starts_with(folder))
    };
    // Without a list, a front half reads no headers.
    let files = dependencies::files_read(front)
        .unwrap_or_default()
        .into_iter();
    let typed = front.args.iter().any(|arg| may_hold_words(arg.as_bytes()));
    let read = |file: PathBuf| files::read(&file).is_ok_and(|bytes| may_hold_words(&bytes));
    typed
        || files
            .filter(|file| !own(file) && !is_of_system(file))
            .any(read)
}

/// Returns a front half that only preprocesses.
fn preprocessing(front: &Job, text: &Path) -> Job {
    let mut job = without_lists(front);
    job.args
        .retain(|arg| arg != "-disable-llvm-passes" && arg != "-disable-O0-optnone");
    for arg in &mut job.args {
        if arg == "-emit-llvm-bc" {
            *arg = "-E".to_string();
        }
    }
    set(&mut job, "-o", &text.display().to_string());
    job
}

/// Returns a front half that reads preprocessed text.
fn on_text(front: &Job, language: &str, text: &Path) -> Job {
    let mut job = without_lists(front);
    let mut args = Vec::new();
    let mut rest = job.args.into_iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            // The preprocessed text already has their effect.
            "-include" | "-D" | "-U" | "-imacros" => {
                rest.next();
            }
            _ => args.push(arg),
        }
    }
    job.args = args;
    set(&mut job, "-x", language);
    if let Some(last) = job.args.last_mut() {
        *last = text.display().to_string();
    }
    job
}

/// Returns a job that lists no files.
fn without_lists(front: &Job) -> Job {
    let mut args = Vec::new();
    let mut rest = front.args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            LIST | "-MT" | "-MQ" => {
                rest.next();
            }
            "-sys-header-deps" | "-MP" | "-MG" | "-MV" => {}
            _ => args.push(arg.clone()),
        }
    }
    Job {
        program: front.program.clone(),
        args,
    }
}

fn set(job: &mut Job, option: &str, value: &str) {
    let at = job.args.iter().position(|arg| arg == option);
    if let Some(word) = at.and_then(|at| job.args.get_mut(at + 1)) {
        *word = value.to_string();
    }
}

/// Returns the user's own job without warnings about honoured attributes.
pub(crate) fn without_remarks(job: &Job) -> Job {
    let mut job = job.clone();
    let at = job.args.len().saturating_sub(1);
    job.args.insert(at, "-Wno-unknown-attributes".to_string());
    job
}

/// Returns a command line without options of the Enzyme plugin, and a note on each.
pub fn without_plugins(args: &[String]) -> (Vec<String>, Vec<Diagnostic>) {
    let (mut kept, mut notes) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < args.len() {
        match plugin_words(&args[at..]) {
            0 => {
                kept.push(args[at].clone());
                at += 1;
            }
            count => {
                let option = args[at..at + count].join(" ");
                let message =
                    format!("`{option}` is ignored: Gradus requires no plugin to differentiate");
                let mut note = Diagnostic::error(Code::UnsupportedKeyword, message);
                note.severity = Severity::Note;
                notes.push(note);
                at += count;
            }
        }
    }
    (kept, notes)
}

/// Returns the number of leading words that form an option of the Enzyme plugin; 0 for none.
fn plugin_words(args: &[String]) -> usize {
    let names = |word: &str| word.to_ascii_lowercase().contains("enzyme");
    let plugin = [
        "-fpass-plugin=",
        "-fplugin=",
        "-Wl,-mllvm=-load=",
        "-Wl,--load-pass-plugin=",
    ];
    let option =
        |word: &str| word.trim_start_matches('-').starts_with("enzyme") && word.starts_with('-');
    let words: Vec<&str> = args.iter().take(4).map(String::as_str).collect();
    match words[..] {
        [first, ..] if plugin.iter().any(|start| first.starts_with(start)) && names(first) => 1,
        [first, ..]
            if first
                .strip_prefix("-Wl,-mllvm,")
                .or(first.strip_prefix("-Wl,-mllvm="))
                .is_some_and(option) =>
        {
            1
        }
        ["-mllvm", value, ..] if option(value) => 2,
        ["-Xclang", "-load", "-Xclang", library] if names(library) => 4,
        ["-Xclang", value, ..] if value.starts_with("-load=") && names(value) => 2,
        ["-Xclang", "-mllvm", "-Xclang", value] if option(value) => 4,
        ["-load", library, ..] if names(library) => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_other_compiler_are_left_out() {
        let line = "-O2 -fpass-plugin=/opt/ClangEnzyme-19.so -Xclang -load -Xclang LLVMEnzyme.so -mllvm -enzyme-loose-types=1 \
                    -mllvm -other -Wl,-mllvm,-enzyme-print a.c";
        let args: Vec<String> = line.split_whitespace().map(String::from).collect();
        let (kept, notes) = without_plugins(&args);
        assert_eq!(kept.join(" "), "-O2 -mllvm -other a.c");
        assert_eq!(notes.len(), 4);
        assert!(notes.iter().all(|note| note.severity == Severity::Note));
    }
}
