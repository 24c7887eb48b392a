//! Command-line parsing shared by several commands.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use gradus::pipeline::Allowance;
use gradus::report::{Form, Wanted};
use gradus::{Code, Diagnostic};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Returns the diagnostic for a wrong command line.
pub fn bad_option(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::BadOption, message).help("`gradus --help` lists the options")
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

/// Returns the parser of a name of `--allow`.
pub fn allowed() -> impl TypedValueParser<Value = Allowance> {
    let names = Allowance::ALL.iter().map(|kind| kind.name());
    PossibleValuesParser::new(names).map(|name| {
        let found = Allowance::ALL.iter().find(|kind| kind.name() == name);
        *found.unwrap_or_else(|| unreachable!("the parser accepts names of the table only"))
    })
}

/// Parses the value of a driver's `--allow=a,b`.
///
/// # Errors
/// `BadOption` for an unknown name.
pub fn allowed_list(text: &str) -> Result<Vec<Allowance>, Diagnostic> {
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

/// The help on `--report`, shared by all commands with reports.
pub const REPORT_HELP: &str = "Report as short, full, json, html or remarks (LLVM), to standard output (html: to a file beside the output) or to FILE; may be repeated";

/// Parses the value of `--report`: a form, and an optional file after a colon.
///
/// # Errors
/// A text for the user.
pub fn report(text: &str) -> Result<Wanted, String> {
    let (name, file) = match text.split_once(':') {
        Some((name, file)) => (name, Some(file)),
        None => (text, None),
    };
    let found = Form::NAMES.iter().find(|(known, _)| *known == name);
    let Some((_, form)) = found else {
        let names: Vec<&str> = Form::NAMES.iter().map(|(name, _)| *name).collect();
        return Err(format!("the forms are {}", names.join(", ")));
    };
    if file == Some("") {
        return Err(format!("a file is missing after `{name}:`"));
    }
    Ok(Wanted {
        form: *form,
        file: file.map(PathBuf::from),
    })
}

/// Parses a driver's `--report` or `--report=VALUE`.
///
/// # Errors
/// `BadOption`.
pub fn driver_report(value: Option<&str>) -> Result<Wanted, Diagnostic> {
    let Some(text) = value else {
        return Ok(Wanted::short());
    };
    report(text).map_err(|why| bad_option(format!("`--report={text}` is not a report")).help(why))
}

/// Returns names without blanks around them, and no empty ones.
pub fn trimmed(names: &[String]) -> Vec<String> {
    split_commas(&names.join(","))
}

/// Splits a list at commas.
pub fn split_commas(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim);
    parts.filter(|p| !p.is_empty()).map(String::from).collect()
}
