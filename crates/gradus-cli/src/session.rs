//! The state shared by all commands: settings, common options, and the format of diagnostics.

use crate::options::{self, bad_option};
use crate::progress::{self, When};
use crate::{FAILED, LIMIT, json, render, surroundings};
use gradus::{Code, Diagnostic, Settings, Severity};
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The format of diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// A JSON object per line, in rustc's format.
    Json,
}

/// A run of the program.
#[derive(Debug)]
pub struct Session {
    /// Programs, folders, limits.
    pub settings: Settings,
    format: Format,
    progress: When,
    /// The file for a SARIF log.
    sarif: Option<PathBuf>,
    /// The diagnostics shown so far, for the log.
    shown: RefCell<Vec<Diagnostic>>,
}

/// The options common to all commands.
const COMMON: [&str; 5] = [
    "--message-format",
    "--sarif",
    "--progress",
    "--max-time",
    "--max-memory",
];

impl Session {
    /// Creates the session of a command line, and returns the remaining arguments. In a driver's command
    /// line, an option's value must be in the same word, since separate words are the compiler's.
    ///
    /// # Errors
    /// `BadOption`, with the session to show it.
    pub fn begin(
        args: &[OsString],
        driver: bool,
    ) -> Result<(Session, Vec<OsString>), (Session, Diagnostic)> {
        let mut session = Session {
            settings: surroundings::settings(),
            format: Format::Human,
            progress: When::Auto,
            sarif: None,
            shown: RefCell::default(),
        };
        match session.take_common_options(args, driver) {
            Ok(rest) => {
                session.settings.progress = match (session.progress, session.format) {
                    // Standard error holds objects for a program.
                    (When::Auto, Format::Json) => progress::sink(When::Never),
                    (when, _) => progress::sink(when),
                };
                Ok((session, rest))
            }
            Err(finding) => Err((session, finding)),
        }
    }

    /// Removes the common options from a command line.
    fn take_common_options(
        &mut self,
        args: &[OsString],
        driver: bool,
    ) -> Result<Vec<OsString>, Diagnostic> {
        let mut rest = Vec::new();
        let mut words = args.iter();
        while let Some(word) = words.next() {
            if word == "--" && !driver {
                rest.push(word.clone());
                rest.extend(words.by_ref().cloned());
                break;
            }
            let (name, value) = match word.to_str().and_then(|w| w.split_once('=')) {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (word.to_str().unwrap_or_default(), None),
            };
            if !COMMON.contains(&name) || (driver && value.is_none()) {
                rest.push(word.clone());
                continue;
            }
            let value = value.or_else(|| words.next().cloned());
            let value = value.ok_or_else(|| bad_option(format!("`{name}` requires a value")))?;
            self.set(name, &value)?;
        }
        Ok(rest)
    }

    fn set(&mut self, name: &str, value: &OsStr) -> Result<(), Diagnostic> {
        let text = value.to_string_lossy();
        let limits = &mut self.settings.limits;
        match name {
            "--max-time" => limits.time = Duration::from_secs(options::seconds(&text)?.into()),
            "--max-memory" => limits.memory_bytes = options::size_bytes(&text)?,
            "--progress" => self.progress = When::of(&text)?,
            "--sarif" => self.sarif = Some(value.into()),
            _ => {
                self.format = match &*text {
                    "human" => Format::Human,
                    "json" => Format::Json,
                    _ => {
                        return Err(bad_option(format!(
                            "unknown message format `{text}`: use human or json"
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    /// Shows diagnostics on standard error, without duplicates.
    pub fn show(&self, diagnostics: &[Diagnostic]) {
        let mut shown: Vec<&Diagnostic> = Vec::new();
        for diagnostic in diagnostics {
            if !shown.contains(&diagnostic) {
                shown.push(diagnostic);
            }
        }
        if self.sarif.is_some() {
            self.shown
                .borrow_mut()
                .extend(shown.iter().map(|&d| d.clone()));
        }
        match self.format {
            Format::Human => render::show(&shown),
            Format::Json => json::show(&shown),
        }
    }

    /// Returns the file for a SARIF log, if one is requested.
    pub fn sarif_file(&self) -> Option<&Path> {
        self.sarif.as_deref()
    }

    /// Returns the diagnostics shown so far; recorded for a SARIF log only.
    pub fn shown(&self) -> Vec<Diagnostic> {
        self.shown.borrow().clone()
    }

    /// Shows a diagnostic. Returns its exit status.
    pub fn fail(&self, diagnostic: Diagnostic) -> u8 {
        let diagnostics = [diagnostic];
        self.show(&diagnostics);
        status(&diagnostics)
    }
}

/// Returns the exit status of a failed command with these diagnostics.
pub fn status(diagnostics: &[Diagnostic]) -> u8 {
    let limit = |d: &Diagnostic| d.severity == Severity::Error && d.code == Code::LimitReached;
    match diagnostics.iter().any(limit) {
        true => LIMIT,
        false => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(words: &[&str], driver: bool) -> Result<(Session, Vec<OsString>), Diagnostic> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        Session::begin(&words, driver).map_err(|(_, finding)| finding)
    }

    #[test]
    fn common_options_are_taken_out_and_others_left() {
        let line = [
            "e.c",
            "--max-time",
            "9",
            "-f",
            "f",
            "--max-memory=2G",
            "--",
            "--max-time",
        ];
        let (session, rest) = begin(&line, false).expect("understood");
        assert_eq!(rest, ["e.c", "-f", "f", "--", "--max-time"]);
        assert_eq!(session.settings.limits.time, Duration::from_secs(9));
        assert_eq!(session.settings.limits.memory_bytes, 2 << 30);
        let line = ["-c", "--max-time", "a.c", "--message-format=json"];
        let (session, rest) = begin(&line, true).expect("understood");
        assert_eq!(rest, ["-c", "--max-time", "a.c"]);
        assert_eq!(session.format, Format::Json);
    }

    #[test]
    fn wrong_values_are_findings() {
        for word in [
            "--max-time=0",
            "--max-memory=many",
            "--message-format=xml",
            "--progress=sometimes",
            "--max-time",
        ] {
            let finding = begin(&[word], false).expect_err(word);
            assert_eq!(finding.code, Code::BadOption);
        }
    }
}
