//! `gradus dev`: shows the effect of the passes on a program.

use crate::options::{ParserError, bad_option, option_value, split_at_dashes, word_text, words};
use crate::said::outln;
use crate::session::{Session, status};
use gradus::Diagnostic;
use gradus::dev::{Dev, dev};
use gradus::pipeline::OutputKind;
use lexopt::Arg::{Long, Short, Value};
use std::ffi::OsString;

struct Asked {
    dev: Dev,
    time: bool,
}

/// Runs the command. Returns the exit status.
pub fn run(session: &Session, args: &[OsString]) -> u8 {
    let asked = match parse(args) {
        Ok(asked) => asked,
        Err(diagnostic) => return session.fail(diagnostic),
    };
    let reply = match dev(&session.settings, &asked.dev) {
        Ok(reply) => reply,
        Err(diagnostic) => return session.fail(diagnostic),
    };
    for dump in &reply.dumps {
        outln!("; after {}\n{}", dump.pass, dump.text);
    }
    if asked.time {
        for time in &reply.timings {
            outln!("{:>12.3} ms  {}", time.duration as f64 / 1e6, time.pass);
        }
    }
    if let Some(report) = reply.text(OutputKind::Report) {
        crate::said::out(format_args!("{report}"));
    }
    session.show(&reply.diagnostics);
    match reply.has_errors() {
        true => status(&reply.diagnostics),
        false => 0,
    }
}

fn parse(args: &[OsString]) -> Result<Asked, Diagnostic> {
    let (own, flags) = split_at_dashes(args);
    let (mut file, mut after) = (None, Vec::new());
    let mut dev = Dev {
        flags: words(flags)?,
        ..Dev::default()
    };
    let (mut print, mut time) = (false, false);
    let mut parser = lexopt::Parser::from_args(own);
    while let Some(arg) = parser.next().map_err(ParserError)? {
        match arg {
            Long("print") => print = true,
            Long("time") => time = true,
            Long("verify-each") => dev.options.verify_each = true,
            Long("deterministic") => dev.options.deterministic = true,
            Long("restructure-all") => dev.restructure_all = true,
            Long("after") => after.push(option_value(&mut parser)?),
            Short('f') => dev.function = Some(option_value(&mut parser)?),
            Value(name) if file.is_none() => file = Some(word_text(&name)?.into()),
            other => return Err(ParserError(other.unexpected()).into()),
        }
    }
    dev.file = file.ok_or_else(|| bad_option("no program is given"))?;
    if print && after.is_empty() {
        after.push("all".into());
    }
    dev.options.dump_after = after;
    Ok(Asked { dev, time })
}
