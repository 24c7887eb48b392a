//! `gradus dev`: shows the effect of the passes on a program.

use crate::said::outln;
use crate::session::{Session, status};
use clap::Args;
use gradus::dev::{Dev, dev};
use gradus::pipeline::Options;
use gradus::report::{Document, Form, render};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  gradus dev energy.c -f energy --after=licm
  gradus dev loops.c --print --time -- -fopenmp";

/// The words of the command line.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Words {
    /// The program
    #[arg(value_name = "IN")]
    file: String,
    /// The function; all functions by default
    #[arg(short, value_name = "NAME")]
    function: Option<String>,
    /// Print the IR after this pass, or after `all`
    #[arg(long, value_name = "PASS")]
    after: Vec<String>,
    /// Print the IR after each pass
    #[arg(long)]
    print: bool,
    /// Print the time of each pass
    #[arg(long)]
    time: bool,
    /// Verify the IR after each pass
    #[arg(long)]
    verify_each: bool,
    /// Equal bits for any number of threads
    #[arg(long)]
    deterministic: bool,
    /// Send every function through the IR and back
    #[arg(long)]
    restructure_all: bool,
    /// Flags of the compiler, after `--`
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

/// Runs the command. Returns the exit status.
pub fn run(session: &Session, words: Words) -> u8 {
    let time = words.time;
    let reply = match dev(&session.settings, &words.dev()) {
        Ok(reply) => reply,
        Err(diagnostic) => return session.fail(diagnostic),
    };
    for dump in &reply.dumps {
        outln!("; after {}\n{}", dump.pass, dump.text);
    }
    if time {
        for time in &reply.timings {
            outln!("{:>12.3} ms  {}", time.duration as f64 / 1e6, time.pass);
        }
    }
    let report = Document::new(reply.report.clone());
    crate::said::out(format_args!("{}", render(Form::Full, &report)));
    session.show(&reply.diagnostics);
    match reply.has_errors() {
        true => status(&reply.diagnostics),
        false => 0,
    }
}

impl Words {
    fn dev(self) -> Dev {
        let all = self.print && self.after.is_empty();
        Dev {
            file: PathBuf::from(self.file),
            function: self.function,
            restructure_all: self.restructure_all,
            flags: self.flags,
            options: Options {
                verify_each: self.verify_each,
                deterministic: self.deterministic,
                dump_after: if all { vec!["all".into()] } else { self.after },
                ..Options::default()
            },
        }
    }
}
