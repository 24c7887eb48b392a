//! `gradus bug-report`: packs all inputs of a command into an archive, and replays such archives.

use crate::options::bad_option;
use crate::said::outln;
use crate::session::{Session, status};
use clap::Args;
use gradus::files::{Content, Outputs};
use gradus::{Code, Diagnostic, Record, child, files, reproducer};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The default name of an archive.
const NAME: &str = "gradus-report.tar";

const EXAMPLES: &str = "\
Examples:
  gradus bug-report -- grad energy.c -f energy
  gradus bug-report -o report.tar -- cc -O2 main.c
  gradus bug-report --replay report.tar";

/// The words of the command line.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Words {
    /// The archive to write
    #[arg(short, long, value_name = "ARCHIVE", default_value = NAME)]
    output: PathBuf,
    /// Compile the modules of an archive again
    #[arg(long, value_name = "ARCHIVE")]
    replay: Option<PathBuf>,
    /// The command of gradus to run, after `--`
    #[arg(last = true)]
    command: Vec<String>,
}

/// Runs the command; `again` runs another command. Returns the exit status.
pub fn run(session: &mut Session, words: Words, again: &dyn Fn(&Session, &[OsString]) -> u8) -> u8 {
    let command = command_of_gradus(&words.command);
    let done = match (&words.replay, command) {
        (Some(archive), []) => return replay(session, archive),
        (None, [_, ..]) => {
            let record = Record::default();
            session.settings.record = Some(record.clone());
            let line = std::iter::once("gradus").chain(command.iter().map(String::as_str));
            session.settings.command = line.map(String::from).collect();
            let args: Vec<OsString> = command.iter().map(OsString::from).collect();
            let status = again(session, &args);
            pack(session, &record, &words.output, status)
        }
        _ => Err(bad_option(
            "`gradus bug-report` requires a command: `gradus bug-report -- grad FILE -f NAME`",
        )
        .help("to replay an archive, run `gradus bug-report --replay ARCHIVE`")),
    };
    match done {
        Ok(()) => {
            outln!(
                "send the archive with a description of the expected result; `gradus bug-report --replay` replays the archive"
            );
            0
        }
        Err(diagnostic) => session.fail(diagnostic),
    }
}

/// Returns a command without the tool's own name, which users copy along.
fn command_of_gradus(command: &[String]) -> &[String] {
    match command {
        [first, rest @ ..] if Path::new(first).file_name().is_some_and(|n| n == "gradus") => rest,
        _ => command,
    }
}

/// Packs the requests of a command to the compiling process.
fn pack(session: &Session, record: &Record, output: &Path, status: u8) -> Result<(), Diagnostic> {
    let requests = record.requests();
    if requests.is_empty() {
        let message = "the command ended before any compilation, and there is nothing to pack";
        return Err(Diagnostic::error(Code::BadRequest, message)
            .help("report the command line and the output"));
    }
    let outcome = record.findings();
    let bytes = reproducer::pack(&session.settings, &requests, &outcome)?;
    let mut outputs = Outputs::default();
    outputs.add(output, Content::Bytes(bytes));
    outputs.commit(&session.settings.leftovers)?;
    outln!(
        "the command exited with status {status}; wrote {}",
        output.display()
    );
    Ok(())
}

/// Replays the requests of an archive. Returns the exit status of the first failing request.
fn replay(session: &Session, archive: &Path) -> u8 {
    let requests = files::read(archive).and_then(|bytes| reproducer::unpack(&bytes));
    let requests = match requests {
        Ok(requests) => requests,
        Err(diagnostic) => return session.fail(diagnostic),
    };
    let mut end = 0;
    for (number, request) in requests.iter().enumerate() {
        let reply = child::compile(&session.settings, request);
        session.show(&reply.diagnostics);
        let failed = reply.has_errors();
        let word = if failed { "refused" } else { "succeeded" };
        outln!("request {} of {}: {word}", number + 1, requests.len());
        if failed && end == 0 {
            end = status(&reply.diagnostics);
        }
    }
    end
}
