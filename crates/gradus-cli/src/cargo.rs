//! `cargo gradus`, and the programs that Cargo and rustc run for it: wrappers around rustc and rustdoc, and the linker.
//!
//! All are this program, under other names. Cargo reads rustc's messages as JSON: the wrapper adds Gradus's diagnostics
//! in the same form, in place of rustc's report of a failed linker.

use crate::options::words;
use crate::session::{self, Session};
use crate::{FAILED, json, said, signals};
use gradus::cargo::command::{self, CargoCommand, LINKER, RUSTC, RUSTDOC};
use gradus::cargo::rust_link::{self, RustLink};
use gradus::cargo::rustc_options::{self, Options, Run};
use gradus::pipeline::Level;
use gradus::{Code, Diagnostic, Severity};
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

/// A program of `cargo gradus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The subcommand of Cargo.
    Cargo,
    /// The wrapper around rustc.
    Rustc,
    /// The wrapper around rustdoc.
    Rustdoc,
    /// The linker.
    Linker,
}

/// The real linker, for the linker of Gradus.
const REAL_LINKER: &str = "GRADUS_RUST_LINKER";
/// The optimisation level.
const LEVEL: &str = "GRADUS_RUST_LEVEL";
/// The file for diagnostics, as lines of JSON.
const FINDINGS: &str = "GRADUS_RUST_FINDINGS";

/// Returns the role that a link to this program names.
pub fn role(called: &str) -> Option<Role> {
    match called.rsplit('/').next()? {
        "cargo-gradus" => Some(Role::Cargo),
        RUSTC => Some(Role::Rustc),
        RUSTDOC => Some(Role::Rustdoc),
        LINKER => Some(Role::Linker),
        _ => None,
    }
}

/// Returns true if the words of `cargo gradus` ask for the help page.
pub fn asks_for_help(words: &[OsString]) -> bool {
    let first = words.first();
    first.is_none_or(|word| ["--help", "-h", "help"].iter().any(|help| word == help))
}

/// Runs a program of `cargo gradus`. Returns the exit status.
pub fn run(role: Role, args: &[OsString]) -> u8 {
    let session = match Session::begin(&[], true) {
        Ok((session, _)) | Err((session, _)) => session,
    };
    signals::install_handlers(&session.settings.leftovers);
    let done = words(args).and_then(|args| match role {
        Role::Cargo => cargo(&session, args),
        Role::Rustc => rustc(&session, args),
        Role::Rustdoc => rustdoc(&session, &args),
        Role::Linker => linker(&session, args),
    });
    done.unwrap_or_else(|finding| session.fail(finding))
}

/// Replaces this process by Cargo.
fn cargo(session: &Session, words: Vec<String>) -> Result<u8, Diagnostic> {
    let settings = &session.settings;
    let given = std::env::var_os("CARGO").map(PathBuf::from);
    let cargo = given.or_else(|| settings.find("cargo")).ok_or_else(|| {
        Diagnostic::error(Code::ToolFailed, "no cargo was found")
            .help("install Rust: https://rustup.rs")
    })?;
    let asked = CargoCommand {
        cargo,
        words,
        version: version(&settings.child),
    };
    Err(replace_by(command::prepare(settings, &asked)?))
}

/// Returns a text that changes with the compiling program.
fn version(program: &Path) -> String {
    let changed = std::fs::metadata(program).and_then(|about| about.modified());
    let changed = changed
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let changed = changed.unwrap_or_default().as_nanos();
    format!("{} {changed}", env!("CARGO_PKG_VERSION"))
}

/// Runs a program in place of this process; returns on failure only.
fn replace_by(mut command: Command) -> Diagnostic {
    let error = command.exec();
    let program = command.get_program().to_string_lossy();
    Diagnostic::error(Code::ToolFailed, format!("cannot run {program}: {error}"))
}

/// Runs rustc with changed options.
fn rustc(session: &Session, args: Vec<String>) -> Result<u8, Diagnostic> {
    let Some((program, args)) = args.split_first() else {
        let message = format!("`{RUSTC}` is a wrapper that Cargo runs");
        return Err(Diagnostic::error(Code::BadOption, message).help("run `cargo gradus build`"));
    };
    let own = std::env::var("CARGO_PKG_NAME").is_ok_and(|name| name == "gradus");
    let folder = std::env::var("CARGO_MANIFEST_DIR").ok().filter(|_| own);
    let linker = beside(LINKER);
    let run = Run {
        linker: &linker,
        own_crate: folder.as_deref(),
    };
    let mut command = Command::new(program);
    let Some(options) = rustc_options::changed(args, run) else {
        command.args(args);
        return Err(replace_by(command));
    };
    command.args(&options.args);
    if !options.links && options.static_library.is_none() {
        return Err(replace_by(command));
    }
    let scratch = session.settings.scratch()?;
    let findings = scratch.file("findings");
    set_link(&mut command, &options);
    command.env(FINDINGS, &findings);
    let status = run_with_findings(command, &findings)?;
    match options.static_library {
        Some(library) if status == 0 => static_library(session, options.level, &library),
        _ => Ok(status),
    }
}

/// Returns the path of another name of this program, in the folder of the called name.
fn beside(name: &str) -> PathBuf {
    let called = std::env::args_os().next().unwrap_or_default();
    Path::new(&called).with_file_name(name)
}

/// Sets the environment of the linker.
fn set_link(command: &mut Command, options: &Options) {
    let linker = options.linker.as_deref().unwrap_or("cc");
    let level = match options.level {
        Level::O3 => "3",
        _ => "2",
    };
    command.env(REAL_LINKER, linker).env(LEVEL, level);
}

/// Runs rustc, and shows the linker's diagnostics in place of rustc's report on the linker. Returns the exit status.
fn run_with_findings(mut command: Command, findings: &Path) -> Result<u8, Diagnostic> {
    let cannot =
        |e: std::io::Error| Diagnostic::error(Code::ToolFailed, format!("cannot run rustc: {e}"));
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(cannot)?;
    let messages = child.stderr.take().map(BufReader::new);
    for line in messages.into_iter().flat_map(BufRead::lines) {
        let line = line.map_err(cannot)?;
        if !(reports_linker(&line) && has_error(findings)) {
            said::err(format_args!("{line}\n"));
        }
    }
    let status = child.wait().map_err(cannot)?;
    said::err(format_args!("{}", read(findings)));
    Ok(u8::try_from(status.code().unwrap_or(1)).unwrap_or(FAILED))
}

/// Returns true for rustc's message on a failed linker.
fn reports_linker(line: &str) -> bool {
    let message: Option<serde_json::Value> = serde_json::from_str(line).ok();
    let text = message.as_ref().and_then(|m| m["message"].as_str());
    text.is_some_and(|text| text.starts_with("linking with `"))
}

fn read(findings: &Path) -> String {
    // No file: the linker had nothing to say.
    std::fs::read_to_string(findings).unwrap_or_default()
}

fn has_error(findings: &Path) -> bool {
    let lines = read(findings);
    let mut objects = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    objects.any(|object| object["level"] == "error")
}

/// Merges the bitcode of a static library. Returns the exit status.
fn static_library(session: &Session, level: Level, library: &Path) -> Result<u8, Diagnostic> {
    let found = rust_link::merge_static_library(&session.settings, level, library)?;
    said::err(format_args!("{}", json::lines(&found)));
    let fails = found
        .iter()
        .any(|finding| finding.severity == Severity::Error);
    if fails {
        // Cargo takes an existing output for a success.
        let _ = std::fs::remove_file(library);
    }
    Ok(match fails {
        true => session::status(&found),
        false => 0,
    })
}

/// Replaces this process by rustdoc, with changed options: documentation tests are programs.
fn rustdoc(session: &Session, args: &[String]) -> Result<u8, Diagnostic> {
    let rustdoc = session.settings.find("rustdoc").ok_or_else(|| {
        Diagnostic::error(Code::ToolFailed, "no rustdoc was found")
            .help("install Rust: https://rustup.rs")
    })?;
    let linker = beside(LINKER);
    let run = Run {
        linker: &linker,
        own_crate: None,
    };
    let mut command = Command::new(rustdoc);
    match rustc_options::changed(args, run) {
        Some(options) => {
            command.args(&options.args);
            set_link(&mut command, &options);
        }
        None => {
            command.args(args);
        }
    }
    Err(replace_by(command))
}

/// Links a program. Returns the exit status.
fn linker(session: &Session, args: Vec<String>) -> Result<u8, Diagnostic> {
    let variable = |name: &str| std::env::var_os(name);
    let linker = variable(REAL_LINKER).unwrap_or_else(|| "cc".into());
    let level = variable(LEVEL);
    let linked = rust_link::link(
        &session.settings,
        &RustLink {
            linker: linker.into(),
            level: match level.as_deref() {
                Some(level) if level == OsStr::new("3") => Level::O3,
                _ => Level::O2,
            },
            args,
        },
    );
    match variable(FINDINGS) {
        Some(file) => {
            let mut lines = std::fs::OpenOptions::new();
            let lines = lines.create(true).append(true).open(&file);
            let text = json::lines(&linked.diagnostics);
            let written = lines.and_then(|mut lines| lines.write_all(text.as_bytes()));
            if let Err(error) = written {
                session.show(&linked.diagnostics);
                said::err(format_args!("{}: {error}\n", Path::new(&file).display()));
            }
        }
        None => session.show(&linked.diagnostics),
    }
    Ok(u8::try_from(linked.status).unwrap_or(FAILED))
}
