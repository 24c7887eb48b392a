//! The compiling process: LLVM runs in a child process with limits, so that a crash becomes a diagnostic
//! and excessive use of resources is harmless.
//!
//! The parent enforces the time limit by killing the child. The child itself limits memory, processor time
//! (in case the parent exits) and core files, before reading the request: [`child_limits`] parses the
//! limits. A crashed child leaves a reproducer ([`crate::reproducer`]).

use crate::progress::ProgressSink;
use crate::settings::{Limits, Settings};
use crate::{files, reproducer};
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::{Input, Outcome, Progress, Reply, Request, Task, from_bytes, to_bytes};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The signal of a process that exceeded its processor time.
const SIGXCPU: i32 = 24;
const SIGKILL: i32 = 9;

/// Parses the arguments of [`Settings::child`], the child's limits: bytes of memory, and seconds of processor
/// time. The child reads the request from standard input and writes the reply to standard output.
pub fn child_limits(args: &[OsString]) -> Option<(u64, u64)> {
    let number = |i: usize| args.get(i)?.to_str()?.parse().ok();
    Some((number(0)?, number(1)?))
}

/// The third argument of a child that tells its progress on standard error.
const TELL_PROGRESS: &str = "progress";

/// Returns true if the child's arguments ask for its progress on standard error, as lines of [`Progress`].
pub fn child_tells_progress(args: &[OsString]) -> bool {
    args.get(2).is_some_and(|word| word == TELL_PROGRESS)
}

/// Compiles in a child process. A crash or an exceeded limit is a diagnostic in the reply.
pub fn compile(settings: &Settings, request: &Request) -> Reply {
    let reply = match run(settings, request) {
        Ok(end) => match reply(&end) {
            Some(reply) => with_reproducers(settings, request, reply),
            None => refused(missing_reply_error(settings, request, &end)),
        },
        Err(diagnostic) => refused(diagnostic),
    };
    if let Some(record) = &settings.record {
        record.add(request);
        record.add_findings(&reply.diagnostics);
    }
    reply
}

/// Adds the path of a reproducer to the reply's first internal error.
fn with_reproducers(settings: &Settings, request: &Request, mut reply: Reply) -> Reply {
    let internal = |finding: &&mut Diagnostic| finding.code == Code::CompilerDied;
    if let (Some(finding), None) = (
        reply.diagnostics.iter_mut().find(internal),
        &settings.record,
    ) {
        *finding = with_reproducer(settings, request, finding.clone());
    }
    reply
}

fn refused(diagnostic: Diagnostic) -> Reply {
    Reply {
        outcome: Outcome::Refused,
        diagnostics: vec![diagnostic],
        ..Reply::default()
    }
}

/// Returns the diagnostic for a child without a reply: an exceeded limit, unreadable input, or an internal
/// error with a reproducer.
fn missing_reply_error(settings: &Settings, request: &Request, end: &ChildOutcome) -> Diagnostic {
    let finding = exit_error(&settings.limits, end);
    if finding.code != Code::CompilerDied {
        return finding;
    }
    if let Some(input) = request.inputs.iter().find(|i| crashes_parser(settings, i)) {
        let message = format!("{}: LLVM's reader crashes on this file", input.name);
        return Diagnostic::error(Code::UnreadableInput, message)
            .help("compile the file again: the file is damaged, or LLVM did not write the file");
    }
    match settings.record {
        // The report in progress is the reproducer.
        Some(_) => finding,
        None => with_reproducer(settings, request, finding),
    }
}

/// Returns true if a child that only parses this input dies of a signal.
fn crashes_parser(settings: &Settings, input: &Input) -> bool {
    let only_read = Request {
        inputs: vec![input.clone()],
        task: Task::List,
        ..Request::default()
    };
    let signal = |end: ChildOutcome| end.status.and_then(|s| s.signal());
    run(settings, &only_read).is_ok_and(|end| signal(end).is_some_and(|s| s != SIGKILL))
}

/// The end of a child process.
struct ChildOutcome {
    /// `None` if stopped by the time limit.
    status: Option<ExitStatus>,
    out: Vec<u8>,
    said: Vec<u8>,
}

fn run(settings: &Settings, request: &Request) -> Result<ChildOutcome, Diagnostic> {
    let cannot = |e: String| {
        let message = format!("cannot run the compiler process: {e}");
        Diagnostic::error(Code::CompilerDied, message)
    };
    let broken = |e: std::io::Error| cannot(e.to_string());
    let bytes = to_bytes(request).map_err(|e| cannot(e.to_string()))?;
    let limits = settings.limits;
    let _running = settings.progress.begin("read", "");
    let mut command = Command::new(&settings.child);
    command
        .arg(limits.memory_bytes.to_string())
        .arg(limits.time.as_secs().saturating_add(2).to_string());
    if settings.progress.is_watched() {
        command.arg(TELL_PROGRESS);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| cannot_start(settings, &e))?;
    let talk = ChildPipes::begin(&mut child, bytes, &settings.progress);
    let in_time = talk.wait(limits.time);
    if !in_time {
        // A child that has just exited cannot be killed.
        let _ = child.kill();
    }
    let status = child.wait().map_err(broken)?;
    let (out, said) = talk.end();
    Ok(ChildOutcome {
        status: in_time.then_some(status),
        out,
        said,
    })
}

/// Returns the diagnostic on a compiling process that cannot be started: an incomplete installation.
fn cannot_start(settings: &Settings, error: &std::io::Error) -> Diagnostic {
    let message = format!("cannot run {}: {error}", settings.child.display());
    Diagnostic::error(Code::ToolFailed, message)
        .note("`gradus` runs its passes in the program `gradus-compiler`")
        .help("install Gradus again: both programs belong into one folder")
}

/// Threads for the child's input and output, to avoid deadlock on full pipes.
struct ChildPipes {
    done: mpsc::Receiver<()>,
    out: std::thread::JoinHandle<Vec<u8>>,
    said: std::thread::JoinHandle<Vec<u8>>,
}

impl ChildPipes {
    fn begin(child: &mut Child, request: Vec<u8>, progress: &ProgressSink) -> ChildPipes {
        let (finished, done) = mpsc::channel();
        if let Some(mut stdin) = child.stdin.take() {
            std::thread::spawn(move || {
                // A child that dies before reading everything is reported by the missing reply.
                let _ = stdin.write_all(&request);
            });
        }
        let out = child.stdout.take();
        let said = child.stderr.take();
        let progress = progress.clone();
        ChildPipes {
            done,
            out: std::thread::spawn(move || {
                let bytes = all(out);
                // The end of output is the end of work.
                let _ = finished.send(());
                bytes
            }),
            said: std::thread::spawn(move || messages(said, &progress)),
        }
    }

    /// Returns true if the child closed its output in time.
    fn wait(&self, time: Duration) -> bool {
        !matches!(
            self.done.recv_timeout(time),
            Err(mpsc::RecvTimeoutError::Timeout)
        )
    }

    fn end(self) -> (Vec<u8>, Vec<u8>) {
        let bytes = |t: std::thread::JoinHandle<Vec<u8>>| t.join().unwrap_or_default();
        (bytes(self.out), bytes(self.said))
    }
}

fn all(from: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        // Bytes read before an error are kept.
        let _ = from.read_to_end(&mut bytes);
    }
    bytes
}

/// Returns the child's messages; lines with a step of progress go to `progress`.
fn messages(from: Option<impl Read>, progress: &ProgressSink) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Some(from) = from else { return bytes };
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    // Messages read before an error are kept.
    while from
        .read_until(b'\n', &mut line)
        .is_ok_and(|count| count > 0)
    {
        match Progress::parse(String::from_utf8_lossy(&line).trim_end()) {
            Some(step) => progress.tell(&step),
            None => bytes.extend_from_slice(&line),
        }
        line.clear();
    }
    bytes
}

fn reply(end: &ChildOutcome) -> Option<Reply> {
    let fine = end.status.is_some_and(|s| s.success());
    fine.then(|| from_bytes(&end.out).ok())?
}

/// Out-of-memory messages of Rust, LLVM and C++.
const OUT_OF_MEMORY: [&str; 3] = ["memory allocation of", "out of memory", "bad_alloc"];

/// LLVM's prefix of a fatal error on a program that it cannot compile.
const LLVM_FATAL_ERROR: &str = "LLVM ERROR: ";

fn exit_error(limits: &Limits, end: &ChildOutcome) -> Diagnostic {
    let said = String::from_utf8_lossy(&end.said);
    let limit = |message: String, option: &str| {
        Diagnostic::error(Code::LimitReached, message).help(format!(
            "raise the limit with `{option}`, or request fewer derivatives at a time"
        ))
    };
    let signal = end.status.and_then(|s| s.signal());
    if end.status.is_none() || signal == Some(SIGXCPU) {
        let seconds = limits.time.as_secs();
        let message = format!("the compilation exceeded the limit of {seconds} seconds");
        return limit(message, "--max-time SECONDS");
    }
    if OUT_OF_MEMORY.iter().any(|words| said.contains(words)) {
        let mebibytes = limits.memory_bytes >> 20;
        let message = format!("the compilation exceeded the memory limit of {mebibytes} MiB");
        return limit(message, "--max-memory SIZE");
    }
    let words = said.lines().find_map(|l| l.strip_prefix(LLVM_FATAL_ERROR));
    if let (Some(words), None) = (words, signal) {
        return Diagnostic::error(
            Code::ToolFailed,
            format!("LLVM cannot compile the program: {words}"),
        )
        .help("check the target and the target features of the program");
    }
    let how = end.status.map(|s| s.to_string()).unwrap_or_default();
    let message = format!("the compiler process died ({how})");
    let mut diagnostic = Diagnostic::error(Code::CompilerDied, message)
        .help("this is a bug in Gradus: please report this message with the program");
    if signal == Some(SIGKILL) {
        diagnostic = diagnostic
            .note("the system killed the process: the machine may have run out of memory");
    }
    for line in own_lines(&said).into_iter().take(12) {
        diagnostic = diagnostic.note(line.to_string());
    }
    diagnostic
}

/// Returns what the process printed, without blank lines, and of a backtrace the lines of Gradus's sources alone.
fn own_lines(said: &str) -> Vec<&str> {
    let mut own = Vec::new();
    let mut frames = false;
    for line in said.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let number = line.split(": ").next().unwrap_or_default();
        frames |= number.parse::<u32>().is_ok();
        if !frames {
            own.push(line);
        } else if let Some((at, _)) = line.match_indices("crates/gradus").next() {
            own.push(&line[at..]);
        }
    }
    own
}

/// Returns the diagnostic with the path of a reproducer.
fn with_reproducer(settings: &Settings, request: &Request, finding: Diagnostic) -> Diagnostic {
    let outcome = [finding.clone()];
    let archive = reproducer::pack(settings, std::slice::from_ref(request), &outcome);
    let kept = archive.and_then(|bytes| {
        let place = reproducer::place(settings);
        files::write(&place, &bytes).map(|()| place)
    });
    match kept {
        Ok(place) => {
            let shown = place.display();
            finding.note(format!(
                "{shown} reproduces the fault: `gradus bug-report --replay {shown}`"
            ))
        }
        Err(why) => finding.note(format!("cannot write a reproducer: {}", why.message)),
    }
}
