//! `gradus bug-report`: packs all inputs of a command into an archive, and replays such archives.

use crate::options::{ParserError, bad_option, option_value, split_at_dashes};
use crate::said::outln;
use crate::session::{Session, status};
use gradus::files::{Content, Outputs};
use gradus::{Code, Diagnostic, Record, child, files, reproducer};
use lexopt::Arg::{Long, Short};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The default name of an archive.
const NAME: &str = "gradus-report.tar";

enum Asked {
    /// Run this command and pack its requests.
    Pack { output: PathBuf },
    /// Replay an archive.
    Replay { archive: PathBuf },
}

/// Runs the command; `again` runs another command. Returns the exit status.
pub fn run(
    session: &mut Session,
    args: &[OsString],
    again: &dyn Fn(&Session, &[OsString]) -> u8,
) -> u8 {
    let (own, command) = split_at_dashes(args);
    let asked = match parse(own, command.is_empty()) {
        Ok(asked) => asked,
        Err(diagnostic) => return session.fail(diagnostic),
    };
    let done = match asked {
        Asked::Pack { output } => {
            let record = Record::default();
            session.settings.record = Some(record.clone());
            let words = command.iter().map(|w| w.to_string_lossy().into_owned());
            session.settings.command = std::iter::once("gradus".to_string()).chain(words).collect();
            let status = again(session, command);
            pack(session, &record, &output, status)
        }
        Asked::Replay { archive } => return replay(session, &archive),
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

fn parse(own: &[OsString], no_command: bool) -> Result<Asked, Diagnostic> {
    let (mut output, mut replay) = (None, None);
    let mut parser = lexopt::Parser::from_args(own);
    while let Some(arg) = parser.next().map_err(ParserError)? {
        match arg {
            Short('o') | Long("output") => output = Some(PathBuf::from(option_value(&mut parser)?)),
            Long("replay") => replay = Some(PathBuf::from(option_value(&mut parser)?)),
            other => return Err(ParserError(other.unexpected()).into()),
        }
    }
    match (replay, no_command) {
        (Some(archive), true) => Ok(Asked::Replay { archive }),
        (None, false) => Ok(Asked::Pack {
            output: output.unwrap_or_else(|| NAME.into()),
        }),
        _ => Err(bad_option(
            "`gradus bug-report` requires a command: `gradus bug-report -- grad FILE -f NAME`",
        )
        .help("to replay an archive, run `gradus bug-report --replay ARCHIVE`")),
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
