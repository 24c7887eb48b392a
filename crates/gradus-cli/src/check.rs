//! `gradus check`: tests a derivative.

use crate::options::{
    ParserError, allowed, bad_option, option_value, seconds, split_at_dashes, split_commas,
    word_text, words,
};
use crate::said::outln;
use crate::session::{Session, status};
use gradus::Diagnostic;
use gradus::check::{Check, check};
use gradus::pipeline::Options;
use lexopt::Arg::{Long, Short, Value};
use std::ffi::OsString;

/// The default time limit for all calls together, in seconds.
const LIMIT_SECONDS: u32 = 60;

/// Runs the command. Returns the exit status.
pub fn run(session: &Session, args: &[OsString]) -> u8 {
    let what = match parse(args) {
        Ok(what) => Check {
            limit_memory_bytes: session.settings.limits.memory_bytes,
            ..what
        },
        Err(diagnostic) => return session.fail(diagnostic),
    };
    let checked = check(&session.settings, &what);
    if !checked.text.is_empty() {
        outln!("{}\n{}", what.function, checked.text.trim_end());
    }
    session.show(&checked.diagnostics);
    if !checked.is_right {
        return status(&checked.diagnostics);
    }
    match checked.untested_reason_at_given_values {
        None => outln!("the derivative is right"),
        Some(why) => outln!("the derivative is right at other values; at the given values {why}"),
    }
    0
}

fn parse(args: &[OsString]) -> Result<Check, Diagnostic> {
    let (own, flags) = split_at_dashes(args);
    let mut function = None;
    let mut what = Check {
        files: Vec::new(),
        function: String::new(),
        wrt: Vec::new(),
        inactive: Vec::new(),
        values: Vec::new(),
        single: false,
        driver: None,
        flags: words(flags)?,
        limit_seconds: LIMIT_SECONDS,
        limit_memory_bytes: 0,
        options: Options::default(),
    };
    let mut parser = lexopt::Parser::from_args(own);
    while let Some(arg) = parser.next().map_err(ParserError)? {
        match arg {
            Short('f') | Long("function") => function = Some(option_value(&mut parser)?),
            Long("wrt") => what.wrt.extend(split_commas(&option_value(&mut parser)?)),
            Long("inactive") => what
                .inactive
                .extend(split_commas(&option_value(&mut parser)?)),
            Long("arg") => what
                .values
                .push(name_and_value(&option_value(&mut parser)?)?),
            Long("single") => what.single = true,
            Long("driver") => what.driver = Some(option_value(&mut parser)?.into()),
            Long("limit") => what.limit_seconds = seconds(&option_value(&mut parser)?)?,
            Long("strong-zero") => what.options.strong_zero = true,
            Long("allow") => what
                .options
                .allowed
                .extend(allowed(&option_value(&mut parser)?)?),
            Long("without") => what
                .options
                .off
                .extend(split_commas(&option_value(&mut parser)?)),
            Value(name) => what.files.push(word_text(&name)?.into()),
            other => return Err(ParserError(other.unexpected()).into()),
        }
    }
    if what.files.is_empty() {
        return Err(bad_option("no program is given"));
    }
    what.function = function.ok_or_else(|| bad_option("no function is given: `-f NAME`"))?;
    Ok(what)
}

fn name_and_value(text: &str) -> Result<(String, String), Diagnostic> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| bad_option(format!("`--arg {text}` has no value: `--arg NAME=VALUE`")))?;
    Ok((name.trim().to_string(), value.trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_order() {
        let words =
            ["e.c", "-f", "f", "--arg", "n=100", "--arg", "x = rand(n)"].map(OsString::from);
        let what = parse(&words).expect("understood");
        assert_eq!(what.values[0], ("n".to_string(), "100".to_string()));
        assert_eq!(what.values[1], ("x".to_string(), "rand(n)".to_string()));
        assert!(parse(&["e.c", "-f", "f", "--arg", "n"].map(OsString::from)).is_err());
    }
}
