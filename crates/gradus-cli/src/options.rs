//! Reading command lines: the parts that several commands share.

use gradus::{Code, Diagnostic};
use lexopt::ValueExt;
use std::ffi::OsString;

/// A wrong command line, as a finding.
pub fn wrong(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::BadOption, message).help("`gradus --help` shows what can be given")
}

impl From<Wrong> for Diagnostic {
    fn from(error: Wrong) -> Self {
        wrong(error.0.to_string())
    }
}

/// What the reader of options found.
pub struct Wrong(pub lexopt::Error);

impl From<lexopt::Error> for Wrong {
    fn from(error: lexopt::Error) -> Self {
        Wrong(error)
    }
}

/// A command line before and after `--`.
pub fn split(args: &[OsString]) -> (&[OsString], &[OsString]) {
    match args.iter().position(|a| a == "--") {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &[]),
    }
}

/// Words as text; what is no Unicode is kept as well as it can be.
pub fn texts(args: &[OsString]) -> Vec<String> {
    args.iter()
        .map(|a| a.to_string_lossy().into_owned())
        .collect()
}

/// The parts of a list with commas.
pub fn list(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim);
    parts.filter(|p| !p.is_empty()).map(String::from).collect()
}

/// The value of the option just read.
///
/// # Errors
/// `BadOption` where there is none.
pub fn text(parser: &mut lexopt::Parser) -> Result<String, Diagnostic> {
    let value = parser.value().map_err(Wrong)?;
    Ok(value.string().map_err(Wrong)?)
}
