//! Command-line parsing shared by several commands.

use gradus::pipeline::Allowance;
use gradus::{Code, Diagnostic};
use lexopt::ValueExt;
use std::ffi::{OsStr, OsString};

/// Returns the diagnostic for a wrong command line.
pub fn bad_option(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::BadOption, message).help("`gradus --help` lists the options")
}

impl From<ParserError> for Diagnostic {
    fn from(error: ParserError) -> Self {
        bad_option(error.0.to_string())
    }
}

/// An error of the option parser.
pub struct ParserError(pub lexopt::Error);

impl From<lexopt::Error> for ParserError {
    fn from(error: lexopt::Error) -> Self {
        ParserError(error)
    }
}

/// Splits a command line at `--`.
pub fn split_at_dashes(args: &[OsString]) -> (&[OsString], &[OsString]) {
    match args.iter().position(|a| a == "--") {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &[]),
    }
}

/// Converts arguments to text.
///
/// # Errors
/// `BadOption` for an argument that is not UTF-8: compilers are called with text.
pub fn words(args: &[OsString]) -> Result<Vec<String>, Diagnostic> {
    args.iter().map(|word| word_text(word)).collect()
}

/// Converts an argument to text.
///
/// # Errors
/// `BadOption`.
pub fn word_text(word: &OsStr) -> Result<String, Diagnostic> {
    word.to_str().map(String::from).ok_or_else(|| {
        let message = format!("`{}` is not valid UTF-8", word.to_string_lossy());
        bad_option(message).help("rename the file, or pass a link to the file")
    })
}

/// Parses a number of seconds, at least 1.
///
/// # Errors
/// `BadOption`.
pub fn seconds(text: &str) -> Result<u32, Diagnostic> {
    let seconds = text.parse().ok().filter(|s| *s > 0);
    seconds.ok_or_else(|| bad_option(format!("`{text}` is not a number of seconds")))
}

/// Parses a size in bytes: a number, with `K`, `M` or `G` for powers of 1024; in mebibytes without a
/// suffix.
///
/// # Errors
/// `BadOption`.
pub fn size_bytes(text: &str) -> Result<u64, Diagnostic> {
    let (number, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 20),
    };
    let size = number.parse::<u64>().ok().filter(|n| *n > 0);
    let size = size.and_then(|n| n.checked_mul(1 << shift));
    size.ok_or_else(|| {
        bad_option(format!("`{text}` is not a size"))
            .help("pass a number of mebibytes, or a number with K, M or G")
    })
}

/// Parses the value of `--allow=a,b`.
///
/// # Errors
/// `BadOption` for an unknown name.
pub fn allowed(text: &str) -> Result<Vec<Allowance>, Diagnostic> {
    let names = || Allowance::ALL.iter().map(|kind| kind.name());
    let of_name = |name: String| {
        let found = Allowance::ALL.iter().find(|kind| kind.name() == name);
        found.copied().ok_or_else(|| {
            let help = format!("use {}", names().collect::<Vec<_>>().join(", "));
            bad_option(format!("unknown name in `--allow={name}`")).help(help)
        })
    };
    match split_commas(text) {
        names if names.is_empty() => Err(bad_option("`--allow` requires a name")),
        names => names.into_iter().map(of_name).collect(),
    }
}

/// Splits a list at commas.
pub fn split_commas(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim);
    parts.filter(|p| !p.is_empty()).map(String::from).collect()
}

/// Returns the value of the option just read.
///
/// # Errors
/// `BadOption` without a value.
pub fn option_value(parser: &mut lexopt::Parser) -> Result<String, Diagnostic> {
    let value = parser.value().map_err(ParserError)?;
    Ok(value.string().map_err(ParserError)?)
}
