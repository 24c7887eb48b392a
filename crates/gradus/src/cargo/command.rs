//! Cargo's command line and environment for `cargo gradus COMMAND`.

use crate::clang_jobs::Job;
use crate::files;
use crate::job_execution::run_captured;
use crate::settings::Settings;
use crate::source::absolute;
use gradus_ir::{Code, Diagnostic};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Cargo's commands that compile or run a program, with abbreviations.
const COMMANDS: [&str; 12] = [
    "build", "b", "check", "c", "test", "t", "run", "r", "bench", "clippy", "doc", "nextest",
];

/// Name of the wrapper around rustc: a link to the command `gradus`.
pub const RUSTC: &str = "gradus-rustc";
/// Name of the wrapper around rustdoc.
pub const RUSTDOC: &str = "gradus-rustdoc";
/// Name of the linker.
pub const LINKER: &str = "gradus-rust-linker";

/// A command line of `cargo gradus`.
#[derive(Clone, Debug)]
pub struct CargoCommand {
    /// Cargo.
    pub cargo: PathBuf,
    /// The words after `cargo gradus`.
    pub words: Vec<String>,
    /// A text that changes with the version of Gradus: another version compiles everything again.
    pub version: String,
}

/// Returns the command that runs Cargo.
///
/// # Errors
/// `BadOption` for another command; `ToolFailed` if Cargo finds no package or rustc does not run; `FileAccess`.
pub fn prepare(settings: &Settings, asked: &CargoCommand) -> Result<Command, Diagnostic> {
    let Some((name, rest)) = asked.words.split_first() else {
        return Err(unknown_command("no command of Cargo is given".into()));
    };
    if !COMMANDS.contains(&name.as_str()) {
        return Err(unknown_command(format!(
            "`cargo gradus` has no command `{name}`"
        )));
    }
    let end = rest.iter().position(|word| word == "--");
    let options = &rest[..end.unwrap_or(rest.len())];
    let mut command = Command::new(&asked.cargo);
    command.arg(name);
    if name == "nextest" {
        // The options belong to nextest's own command.
        command.args(rest.first());
    }
    let target = match value(options, "--target-dir") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let folder = target_folder(asked, options)?.join("gradus");
            command.arg("--target-dir").arg(&folder);
            folder
        }
    };
    if value(options, "--target").is_none() {
        command.arg("--target").arg(host(settings)?);
    }
    command.args(&rest[usize::from(name == "nextest").min(rest.len())..]);
    let tools = absolute(&target).join("gradus-tools");
    for tool in [RUSTC, RUSTDOC, LINKER] {
        files::link_to(&settings.program, &tools.join(tool))?;
    }
    let environment: [(&str, OsString); 3] = [
        ("RUSTC_WRAPPER", tools.join(RUSTC).into()),
        ("RUSTDOC", tools.join(RUSTDOC).into()),
        ("GRADUS_COMPILER", asked.version.clone().into()),
    ];
    command.envs(environment);
    Ok(command)
}

fn unknown_command(message: String) -> Diagnostic {
    let names = COMMANDS.iter().filter(|name| name.len() > 1);
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    Diagnostic::error(Code::BadOption, message).help(format!(
        "write a command of Cargo, with options: {}",
        names.join(", ")
    ))
}

/// Returns the value of an option, in the same word or the next.
fn value<'w>(words: &'w [String], option: &str) -> Option<&'w str> {
    words
        .iter()
        .enumerate()
        .find_map(|(at, word)| match word.strip_prefix(option)? {
            "" => words.get(at + 1).map(String::as_str),
            rest => rest.strip_prefix('='),
        })
}

/// Returns the target folder of the workspace.
fn target_folder(asked: &CargoCommand, options: &[String]) -> Result<PathBuf, Diagnostic> {
    let mut words = vec!["metadata", "--no-deps", "--format-version=1"];
    let manifest = value(options, "--manifest-path");
    words.extend(manifest.iter().flat_map(|file| ["--manifest-path", *file]));
    let network = ["--offline", "--frozen", "--locked"];
    words.extend(
        options
            .iter()
            .map(String::as_str)
            .filter(|word| network.contains(word)),
    );
    let said = output(&asked.cargo, &words, "Cargo cannot read the package")?;
    let metadata: Option<serde_json::Value> = serde_json::from_slice(&said).ok();
    let folder = metadata.and_then(|m| Some(PathBuf::from(m["target_directory"].as_str()?)));
    folder.ok_or_else(|| {
        let message = "`cargo metadata` names no target folder";
        Diagnostic::error(Code::ToolFailed, message).help("name one: `--target-dir FOLDER`")
    })
}

/// Returns the triple of this machine. With a target, Cargo compiles build scripts and procedural macros apart.
fn host(settings: &Settings) -> Result<String, Diagnostic> {
    let rustc = settings.find("rustc").ok_or_else(|| {
        Diagnostic::error(Code::ToolFailed, "no rustc was found")
            .help("install Rust: https://rustup.rs")
    })?;
    let said = output(&rustc, &["-vV"], "rustc does not run")?;
    let said = String::from_utf8_lossy(&said);
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(String::from)
        .ok_or_else(|| Diagnostic::error(Code::ToolFailed, "`rustc -vV` names no host"))
}

/// Returns the standard output of a program that succeeds.
fn output(program: &Path, words: &[&str], message: &str) -> Result<Vec<u8>, Diagnostic> {
    let output = run_captured(&Job {
        program: program.to_path_buf(),
        args: words.iter().map(|word| (*word).to_string()).collect(),
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = said.lines().filter(|line| !line.trim().is_empty());
    Err(
        lines.fold(Diagnostic::error(Code::ToolFailed, message), |d, line| {
            d.note(line.trim_start_matches("error: ").to_string())
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_their_value_in_either_form() {
        let words = ["--target=a", "--target-dir", "b", "-p"].map(String::from);
        assert_eq!(value(&words, "--target"), Some("a"));
        assert_eq!(value(&words, "--target-dir"), Some("b"));
        assert_eq!(value(&words, "-p"), None);
    }
}
