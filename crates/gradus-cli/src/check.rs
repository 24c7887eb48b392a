//! `gradus check`: tests a derivative.

use crate::options::{REPORT_HELP, allowed, report as report_form, trimmed};
use crate::said::{errln, outln};
use crate::session::{Session, status};
use clap::Args;
use gradus::check::{Check, check};
use gradus::pipeline::{Allowance, Options};
use gradus::report::{self, Wanted};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  gradus check energy.c -f energy --arg n=100 --arg 'x=rand(n)'
  gradus check plane.f90 -f energy --arg 'x=[1, 2, 3]' -- -O3
  gradus check energy.c -f energy --arg 'x=rand(9)' --arg n=9 --report=html
  gradus check solver.c -f residual --driver main.c

Values: a number; [NUMBER, …]; rand, zeros, ones, iota (LENGTH, …); randint(LENGTH, BOUND).
The driver of `--driver` calls the function and passes the numbers; given(LENGTH) passes arrays.";

/// The words of the command line.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Words {
    /// The program: C, C++, Fortran, Rust, CUDA or LLVM IR
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// The function to test
    #[arg(short, long, value_name = "NAME")]
    function: String,
    /// The arguments to differentiate with respect to [default: all with floats]
    #[arg(long, value_name = "ARGUMENTS", value_delimiter = ',')]
    wrt: Vec<String>,
    /// Arguments without a derivative
    #[arg(long, value_name = "ARGUMENTS", value_delimiter = ',')]
    inactive: Vec<String>,
    /// The value of an argument
    #[arg(long = "arg", value_name = "NAME=VALUE", allow_hyphen_values = true, value_parser = name_and_value)]
    values: Vec<(String, String)>,
    /// The function computes in float: loosen the tolerances
    #[arg(long)]
    single: bool,
    /// A program that calls the function
    #[arg(long, value_name = "MAIN.c")]
    driver: Option<PathBuf>,
    #[arg(long = "report", value_name = "FORM[:FILE]", value_parser = report_form, help = REPORT_HELP)]
    reports: Vec<Wanted>,
    /// Time limit for all calls together
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_SECONDS, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Define zero times infinity or NaN as zero
    #[arg(long)]
    strong_zero: bool,
    /// Accept with a warning: numbers that pass through text or a file, where derivatives end
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = allowed())]
    allow: Vec<Allowance>,
    /// Turn passes off, for tests
    #[arg(long, value_name = "PASSES", value_delimiter = ',')]
    without: Vec<String>,
    /// Flags of the compiler, after `--` [default: -O2]
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

/// The default time limit for all calls together, in seconds.
const LIMIT_SECONDS: u32 = 60;

/// Runs the command. Returns the exit status.
pub fn run(session: &Session, mut words: Words) -> u8 {
    let reports = std::mem::take(&mut words.reports);
    let what = words.check(session.settings.limits.memory_bytes);
    let checked = check(&session.settings, &what);
    // A document on standard output stands alone.
    let to_stderr = reports.iter().any(Wanted::is_document_on_stdout);
    let say = |text: &str| match to_stderr {
        true => errln!("{text}"),
        false => outln!("{text}"),
    };
    if !checked.text.is_empty() {
        say(&format!("{}\n{}", what.function, checked.text.trim_end()));
    }
    let output = what.files.first().and_then(|file| file.file_stem());
    let output = output.unwrap_or_default();
    let is_made = !checked.text.is_empty();
    let reports = if is_made { reports.as_slice() } else { &[] };
    match report::deliver(
        &session.settings,
        reports,
        &checked.document(),
        output.as_ref(),
    ) {
        Ok((printed, written)) => {
            crate::said::out(format_args!("{printed}"));
            (written.iter()).for_each(|file| say(&format!("wrote {}", file.display())));
        }
        Err(finding) => {
            session.show(&checked.diagnostics);
            return session.fail(finding);
        }
    }
    session.show(&checked.diagnostics);
    if !checked.is_right {
        return status(&checked.diagnostics);
    }
    match checked.untested_reason_at_given_values {
        None => say("the derivative is right"),
        Some(why) => say(&format!(
            "the derivative is right at other values; at the given values {why}"
        )),
    }
    0
}

impl Words {
    fn check(self, limit_memory_bytes: u64) -> Check {
        Check {
            files: self.files.iter().map(PathBuf::from).collect(),
            function: self.function,
            wrt: trimmed(&self.wrt),
            inactive: trimmed(&self.inactive),
            values: self.values,
            single: self.single,
            driver: self.driver,
            flags: self.flags,
            limit_seconds: self.limit,
            limit_memory_bytes,
            options: Options {
                strong_zero: self.strong_zero,
                allowed: self.allow,
                off: trimmed(&self.without),
                ..Options::default()
            },
        }
    }
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("it has no value: use NAME=VALUE")?;
    Ok((name.trim().to_string(), value.trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_follows_the_name() {
        let parsed = name_and_value("x = rand(n)").expect("understood");
        assert_eq!(parsed, ("x".to_string(), "rand(n)".to_string()));
        assert!(name_and_value("n").is_err());
    }
}
