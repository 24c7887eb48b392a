//! The command `gradus`. Besides its bindings, the only crate that prints and reads environment and clock.
//!
//! The passes run in the program `gradus-compiler`. A link to this program named `gradus-cc`, `gradus-c++`,
//! `gradus-fc`, `gradus-nvcc` or `nvcc` acts as `gradus cc`, and so on.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod bug_report;
mod cargo;
mod check;
mod command_line;
mod dev;
mod drivers;
mod explain;
mod grad;
mod install;
mod json;
mod options;
mod progress;
mod render;
mod said;
mod sarif;
mod session;
mod signals;
mod surroundings;
mod uninstall;
mod version;

use command_line::{Parsed, Word};
use gradus::Language;
use session::Session;

use std::ffi::OsString;
use std::process::ExitCode;

/// The exit status of an error or a refusal.
const FAILED: u8 = 1;
/// The exit status of an exceeded limit.
const LIMIT: u8 = 3;

/// The commands with a compiler's command line.
const DRIVERS: [&str; 4] = ["cc", "c++", "fc", "nvcc"];
/// The command with Cargo's command line.
const CARGO: &str = "cargo";

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_default();
    let mut args: Vec<OsString> = words.collect();
    let called = called.to_string_lossy().into_owned();
    match cargo::role(&called) {
        // Cargo passes the name of the subcommand.
        Some(cargo::Role::Cargo) => {
            if args.first().is_some_and(|word| word == "gradus") {
                args.remove(0);
            }
            args.insert(0, CARGO.into());
        }
        Some(role) => return ExitCode::from(cargo::run(role, &args)),
        None => {}
    }
    if let Some(driver) = driver_of_name(&called) {
        args.insert(0, driver.into());
    }
    let status = run(&args);
    ExitCode::from(status)
}

/// Returns the driver that a link to this program names: some build systems require a compiler command of one
/// word, and some look for `nvcc`.
fn driver_of_name(called: &str) -> Option<&str> {
    let name = called.rsplit('/').next()?;
    let driver = name
        .strip_prefix("gradus-")
        .or((name == "nvcc").then_some(name));
    driver.filter(|name| DRIVERS.contains(name))
}

fn run(args: &[OsString]) -> u8 {
    if let Some((first, words)) = args.split_first()
        && first == CARGO
    {
        if !cargo::asks_for_help(words) {
            return cargo::run(cargo::Role::Cargo, words);
        }
        return run(&["help".into(), CARGO.into()]);
    }
    let driver = args
        .first()
        .is_some_and(|word| DRIVERS.iter().any(|name| word == name));
    let (mut session, args) = match Session::begin(args, driver) {
        Ok(begun) => begun,
        Err((session, finding)) => {
            let status = session.fail(finding);
            return finish(&session, status);
        }
    };
    signals::install_handlers(&session.settings.leftovers);
    let status = match parsed(&session, &args) {
        Ok(Word::BugReport(words)) => {
            bug_report::run(
                &mut session,
                words,
                &|session, args| match parsed(session, args) {
                    Ok(word) => command(session, word, args),
                    Err(status) => status,
                },
            )
        }
        Ok(word) => command(&session, word, &args),
        Err(status) => status,
    };
    finish(&session, status)
}

/// Ends a run: writes the SARIF log, if one is requested. Returns the exit status.
fn finish(session: &Session, status: u8) -> u8 {
    let Some(file) = session.sarif_file() else {
        return status;
    };
    let log = sarif::log(&session.shown());
    match gradus::files::write(file, log.as_bytes()) {
        Ok(()) => status,
        Err(finding) => session.fail(finding),
    }
}

/// Parses a command line; a driver's command line stays as it is. A help page, or a wrong command line, ends the run
/// with a status.
fn parsed(session: &Session, args: &[OsString]) -> Result<Word, u8> {
    let first = args.first().and_then(|word| word.to_str());
    match first {
        Some("--version" | "-V") => return Err(version::run(&session.settings)),
        Some(name) if DRIVERS.contains(&name) => return Ok(Word::driver(name)),
        _ => {}
    }
    match command_line::parse(args) {
        Ok(Parsed::Run(word)) => Ok(word),
        Ok(Parsed::Help(page)) => {
            crate::said::out(format_args!("{page}"));
            Err(0)
        }
        Ok(Parsed::NoCommand(page)) => {
            crate::said::err(format_args!("{page}"));
            Err(FAILED)
        }
        Err(finding) => Err(session.fail(finding)),
    }
}

/// Runs a command; a driver reads the command line. Returns the exit status.
fn command(session: &Session, word: Word, args: &[OsString]) -> u8 {
    let rest = args.get(1..).unwrap_or_default();
    match word {
        Word::Grad(words) => grad::run(session, *words),
        Word::Check(words) => check::run(session, *words),
        Word::Cc(_) => drivers::run(session, rest, Language::C),
        Word::PlusPlus(_) => drivers::run(session, rest, Language::PlusPlus),
        Word::Fc(_) => drivers::run(session, rest, Language::Fortran),
        Word::Nvcc(_) => drivers::nvcc(session, rest),
        Word::Cargo(_) => cargo::run(cargo::Role::Cargo, rest),
        Word::Dev(words) => dev::run(session, words),
        Word::Explain(words) => explain::run(session, &words),
        Word::Install(words) => install::run(session, &words, command_line::installed_files()),
        Word::Uninstall(words) => uninstall::run(session, &words),
        Word::Completions(words) => {
            let text = command_line::completions_of(words.shell);
            crate::said::out(format_args!("{}", String::from_utf8_lossy(&text)));
            0
        }
        Word::BugReport(_) => {
            let message = "`gradus bug-report` cannot report on `gradus bug-report`";
            session.fail(options::bad_option(message))
        }
    }
}
