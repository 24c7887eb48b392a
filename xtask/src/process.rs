//! Starting other programs: with their output shown or captured.
//!
//! Every failure names the command line, so that a reader can type it again.

use std::fmt;
use std::process::Command;

/// What a command of this crate gives: a value, or why not.
pub type Outcome<T> = Result<T, Failure>;

/// Why a command stopped, in words for the person who typed it.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// A failure with this explanation.
    pub fn new(why: impl Into<String>) -> Failure {
        Failure(why.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure(why)
    }
}

/// The command line as a person would type it.
pub fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|a| a.to_string_lossy().into_owned()));
    words.join(" ")
}

/// Runs a command with its output shown.
///
/// # Errors
/// Where it cannot be started or does not end with status 0.
pub fn show(command: &mut Command) -> Outcome<()> {
    let status = command
        .status()
        .map_err(|e| format!("cannot start `{}`: {e}", line(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure(format!("`{}`: {status}", line(command))))
    }
}

/// Runs a command and gives its standard output.
///
/// # Errors
/// Where it cannot be started or does not end with status 0; then with its standard error.
pub fn capture(command: &mut Command) -> Outcome<String> {
    let output = command
        .output()
        .map_err(|e| format!("cannot start `{}`: {e}", line(command)))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Failure(format!(
            "`{}`: {}\n{}",
            line(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        )))
    }
}

/// Whether a program of this name is on PATH.
pub fn on_path(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(name).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_its_command_and_what_it_said() {
        let failure =
            capture(Command::new("sh").args(["-c", "echo no luck >&2; false"])).unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("sh -c") && text.contains("no luck"), "{text}");
    }
}
