//! Starts processes: with output shown, with output captured, or with a time limit.
//!
//! Every failure names the command line for a reader to repeat.

use std::fmt;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Result of a command of this crate.
pub type Outcome<T> = Result<T, Failure>;

/// Reason for the failure of a command, for the user.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// Returns a failure with an explanation.
    pub fn new(why: impl Into<String>) -> Failure {
        Failure(why.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure(why)
    }
}

/// Exit status and output of a process.
pub struct Finished {
    /// Exit status; `None` if the time limit stopped the process.
    pub status: Option<ExitStatus>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// Returns whether the process ended with status 0.
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|s| s.success())
    }

    /// Describes the end of the process.
    pub fn ending(&self) -> String {
        match self.status {
            None => "time limit exceeded".into(),
            Some(s) => s.to_string(),
        }
    }
}

/// Returns the command line as a user would type the line.
pub fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|a| a.to_string_lossy().into_owned()));
    words.join(" ")
}

/// Runs a command with its output shown.
///
/// # Errors
/// Fails if the command cannot start or does not end with status 0.
pub fn show(command: &mut Command) -> Outcome<()> {
    let status = command
        .status()
        .map_err(|e| format!("cannot start `{}`: {e}", line(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure(format!("`{}`: {status}", line(command))))
    }
}

/// Runs a command and returns its standard output.
///
/// # Errors
/// Fails if the command cannot start or does not end with status 0; the failure holds the standard error.
pub fn capture(command: &mut Command) -> Outcome<String> {
    let output = command
        .output()
        .map_err(|e| format!("cannot start `{}`: {e}", line(command)))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Failure(format!(
            "`{}`: {}\n{}",
            line(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        )))
    }
}

/// Runs a command with a time limit. At the limit, the command and all its descendants are killed.
///
/// # Errors
/// Fails only if the command cannot start; the exit status is part of the result.
pub fn within(command: &mut Command, limit: Duration) -> Outcome<Finished> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|e| format!("cannot start `{}`: {e}", line(command)))?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if start.elapsed() < limit => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            Ok(None) => {
                // Descendants of the child also hold its pipes.
                let group = format!("kill -s KILL -- -{}", child.id());
                let killed = Command::new("sh").args(["-c", &group]).status();
                killed
                    .and_then(|_| child.kill())
                    .map_err(|e| format!("cannot stop `{}`: {e}", line(command)))?;
                child
                    .wait()
                    .map_err(|e| format!("`{}`: {e}", line(command)))?;
                break None;
            }
            Err(e) => return Err(Failure(format!("`{}`: {e}", line(command)))),
        }
    };
    Ok(Finished {
        status,
        stdout: collected(stdout),
        stderr: collected(stderr),
    })
}

type Draining = Option<thread::JoinHandle<Vec<u8>>>;

fn drain(pipe: Option<impl Read + Send + 'static>) -> Draining {
    pipe.map(|mut pipe| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // A broken pipe leaves the bytes read before the break.
            let _ = pipe.read_to_end(&mut bytes);
            bytes
        })
    })
}

fn collected(thread: Draining) -> String {
    let bytes = thread.and_then(|t| t.join().ok()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs a command with a time limit and returns the processor time of the command and its children, in seconds.
/// Wall-clock time has little meaning on a busy machine.
///
/// # Errors
/// Fails if the command cannot start or reports no time.
pub fn processor_time(command: &Command, limit: Duration) -> Outcome<(Finished, f64)> {
    const MARK: &str = "processor time";
    let mut shell = Command::new("bash");
    shell.args(["-c", "TIMEFORMAT=\"$0 %U %S\"; time \"$@\"", MARK]);
    shell.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    let mut done = within(&mut shell, limit)?;
    let Some(at) = done.stderr.rfind(MARK) else {
        let nothing = done.status.is_none();
        return if nothing {
            Ok((done, f64::INFINITY))
        } else {
            Err(Failure::new("bash reports no times"))
        };
    };
    let words = done.stderr[at + MARK.len()..].split_whitespace();
    let seconds = words.filter_map(|w| w.parse::<f64>().ok()).sum();
    done.stderr.truncate(at);
    Ok((done, seconds))
}

/// Returns whether PATH has a program of the given name.
pub fn on_path(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(name).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_past_its_limit_is_stopped() {
        let done = within(Command::new("sleep").arg("30"), Duration::from_millis(50)).unwrap();
        assert!(done.status.is_none() && !done.succeeded());
    }

    #[test]
    fn what_a_process_past_its_limit_started_is_stopped_too() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo begun; sleep 100000 & wait"]);
        // `within` returns only after all holders of the pipes have ended.
        let done = within(&mut command, Duration::from_millis(500)).unwrap();
        assert!(done.status.is_none());
        assert_eq!(done.stdout, "begun\n");
    }

    #[test]
    fn processor_time_is_not_time_on_the_wall() {
        let limit = Duration::from_secs(20);
        let (done, seconds) = processor_time(Command::new("sleep").arg("0.3"), limit).unwrap();
        assert!(done.succeeded() && seconds < 0.2, "{seconds}");
        let busy = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo said >&2; exit 3";
        let (done, seconds) =
            processor_time(Command::new("bash").args(["-c", busy]), limit).unwrap();
        assert_eq!(
            (done.status.and_then(|s| s.code()), done.stderr.as_str()),
            (Some(3), "said\n")
        );
        assert!(seconds > 0.01, "{seconds}");
    }

    #[test]
    fn both_streams_come_back() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let done = within(&mut command, Duration::from_secs(20)).unwrap();
        assert_eq!(
            (done.stdout.as_str(), done.stderr.as_str()),
            ("out\n", "err\n")
        );
        assert_eq!(done.status.and_then(|s| s.code()), Some(3));
    }

    #[test]
    fn a_failure_names_its_command_and_what_it_said() {
        let failure =
            capture(Command::new("sh").args(["-c", "echo no luck >&2; false"])).unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("sh -c") && text.contains("no luck"), "{text}");
    }
}
