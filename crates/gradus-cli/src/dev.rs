//! `gradus dev`: what the passes do to a program.

use crate::options::{Wrong, split, text, texts, wrong};
use crate::{FAILED, render, surroundings};
use gradus::Diagnostic;
use gradus::dev::{Dev, dev};
use gradus::pipeline::OutputKind;
use lexopt::Arg::{Long, Short, Value};
use std::ffi::OsString;

struct Asked {
    dev: Dev,
    time: bool,
}

/// Runs the command; gives the exit status.
pub fn run(args: &[OsString]) -> u8 {
    let asked = match read(args) {
        Ok(asked) => asked,
        Err(diagnostic) => return render::fail(diagnostic),
    };
    let reply = match dev(&surroundings::settings(), &asked.dev) {
        Ok(reply) => reply,
        Err(diagnostic) => return render::fail(diagnostic),
    };
    for dump in &reply.dumps {
        println!("; after {}\n{}", dump.pass, dump.text);
    }
    if asked.time {
        for time in &reply.timings {
            println!("{:>12.3} ms  {}", time.duration as f64 / 1e6, time.pass);
        }
    }
    if let Some(report) = reply.text(OutputKind::Report) {
        print!("{report}");
    }
    render::show(&reply.diagnostics);
    u8::from(reply.has_errors()) * FAILED
}

fn read(args: &[OsString]) -> Result<Asked, Diagnostic> {
    let (own, flags) = split(args);
    let (mut file, mut after) = (None, Vec::new());
    let mut dev = Dev {
        flags: texts(flags),
        ..Dev::default()
    };
    let (mut print, mut time) = (false, false);
    let mut parser = lexopt::Parser::from_args(own);
    while let Some(arg) = parser.next().map_err(Wrong)? {
        match arg {
            Long("print") => print = true,
            Long("time") => time = true,
            Long("verify-each") => dev.options.verify_each = true,
            Long("restructure-all") => dev.restructure_all = true,
            Long("after") => after.push(text(&mut parser)?),
            Short('f') => dev.function = Some(text(&mut parser)?),
            Value(name) if file.is_none() => file = Some(name.into()),
            other => return Err(Wrong(other.unexpected()).into()),
        }
    }
    dev.file = file.ok_or_else(|| wrong("no program is given"))?;
    if print && after.is_empty() {
        after.push("all".into());
    }
    dev.options.dump_after = after;
    Ok(Asked { dev, time })
}
