//! `gradus check`: is the derivative right?

use crate::options::{Wrong, list, split, text, texts, wrong};
use crate::{FAILED, LIMIT, render, surroundings};
use gradus::Diagnostic;
use gradus::check::{Check, check};
use gradus::pipeline::Options;
use lexopt::Arg::{Long, Short, Value};
use std::ffi::OsString;

/// The most seconds for all calls together, where nothing is said.
const LIMIT_SECONDS: u32 = 60;

/// Runs the command; gives the exit status.
pub fn run(args: &[OsString]) -> u8 {
    let what = match read(args) {
        Ok(what) => what,
        Err(diagnostic) => return render::fail(diagnostic),
    };
    let checked = check(&surroundings::settings(), &what);
    if !checked.text.is_empty() {
        println!("{}\n{}", what.function, checked.text.trim_end());
    }
    render::show(&checked.diagnostics);
    match (checked.right, checked.limit) {
        (true, _) => {
            println!("the derivative is right");
            0
        }
        (false, true) => LIMIT,
        (false, false) => FAILED,
    }
}

fn read(args: &[OsString]) -> Result<Check, Diagnostic> {
    let (own, flags) = split(args);
    let (mut file, mut function) = (None, None);
    let mut what = Check {
        file: Default::default(),
        function: String::new(),
        wrt: Vec::new(),
        inactive: Vec::new(),
        values: Vec::new(),
        single: false,
        driver: None,
        flags: texts(flags),
        limit_seconds: LIMIT_SECONDS,
        options: Options::default(),
    };
    let mut parser = lexopt::Parser::from_args(own);
    while let Some(arg) = parser.next().map_err(Wrong)? {
        match arg {
            Short('f') | Long("function") => function = Some(text(&mut parser)?),
            Long("wrt") => what.wrt.extend(list(&text(&mut parser)?)),
            Long("inactive") => what.inactive.extend(list(&text(&mut parser)?)),
            Long("arg") => what.values.push(value(&text(&mut parser)?)?),
            Long("single") => what.single = true,
            Long("driver") => what.driver = Some(text(&mut parser)?.into()),
            Long("limit") => what.limit_seconds = seconds(&text(&mut parser)?)?,
            Long("without") => what.options.off.extend(list(&text(&mut parser)?)),
            Value(name) if file.is_none() => file = Some(name.into()),
            other => return Err(Wrong(other.unexpected()).into()),
        }
    }
    what.file = file.ok_or_else(|| wrong("no program is given"))?;
    what.function = function.ok_or_else(|| wrong("no function is given: `-f NAME`"))?;
    Ok(what)
}

fn value(text: &str) -> Result<(String, String), Diagnostic> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| wrong(format!("`--arg {text}` has no value: `--arg NAME=VALUE`")))?;
    Ok((name.trim().to_string(), value.trim().to_string()))
}

fn seconds(text: &str) -> Result<u32, Diagnostic> {
    let seconds = text.parse().ok().filter(|s| *s > 0);
    seconds.ok_or_else(|| wrong(format!("`{text}` is no number of seconds")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_order() {
        let words =
            ["e.c", "-f", "f", "--arg", "n=100", "--arg", "x = rand(n)"].map(OsString::from);
        let what = read(&words).expect("understood");
        assert_eq!(what.values[0], ("n".to_string(), "100".to_string()));
        assert_eq!(what.values[1], ("x".to_string(), "rand(n)".to_string()));
        assert!(read(&["e.c", "-f", "f", "--arg", "n"].map(OsString::from)).is_err());
    }
}
