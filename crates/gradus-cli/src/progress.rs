//! The progress line: on a terminal, after two seconds, one line on standard error shows the phase and the function in
//! work. The line is rewritten in place, and erased before other output and at the end.

use crate::options::bad_option;
use gradus::pipeline::Progress;
use gradus::{Diagnostic, ProgressSink};
use std::io::{IsTerminal, Write, stderr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// When progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// On a terminal, after [`DELAY`].
    #[default]
    Auto,
    /// At once, on any standard error.
    Always,
    /// Never.
    Never,
}

impl When {
    /// Parses the value of `--progress`.
    ///
    /// # Errors
    /// `BadOption`.
    pub fn of(text: &str) -> Result<When, Diagnostic> {
        match text {
            "auto" => Ok(When::Auto),
            "always" => Ok(When::Always),
            "never" => Ok(When::Never),
            _ => Err(bad_option(format!("unknown value `--progress={text}`"))
                .help("use auto, always or never")),
        }
    }
}

/// The time before the first line.
const DELAY: Duration = Duration::from_secs(2);
/// The time between two looks at the present step.
const INTERVAL: Duration = Duration::from_millis(100);
/// The largest number of characters of a line: a line that wraps cannot be rewritten.
const WIDTH_MAX: usize = 78;
/// Erases the line, with the cursor at its start.
const ERASE: &str = "\r\x1b[2K";

/// The present step, and the line on the terminal.
struct Line {
    step: Option<Progress>,
    shown: String,
}

static LINE: Mutex<Line> = Mutex::new(Line {
    step: None,
    shown: String::new(),
});

fn line() -> MutexGuard<'static, Line> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the receiver of progress; nobody listens if progress is not shown.
pub fn sink(when: When) -> ProgressSink {
    let delay = match when {
        When::Never => return ProgressSink::default(),
        When::Auto if !stderr().is_terminal() => return ProgressSink::default(),
        When::Auto => DELAY,
        When::Always => Duration::ZERO,
    };
    let start = Instant::now();
    if delay > Duration::ZERO {
        std::thread::spawn(move || {
            std::thread::sleep(delay);
            loop {
                line().draw();
                std::thread::sleep(INTERVAL);
            }
        });
    }
    ProgressSink::new(move |step| {
        let mut line = line();
        line.step = step.cloned();
        match step {
            Some(_) if start.elapsed() >= delay => line.draw(),
            Some(_) => {}
            None => line.erase(),
        }
    })
}

/// Erases the line before other output.
pub fn erase() {
    line().erase();
}

impl Line {
    fn draw(&mut self) {
        let Some(step) = &self.step else {
            // Not an error: no work is in progress.
            return;
        };
        let text = text(step);
        if text != self.shown {
            // A terminal that cannot be written is no reason to stop.
            let _ = stderr()
                .lock()
                .write_all(format!("{ERASE}{text}").as_bytes());
            self.shown = text;
        }
    }

    fn erase(&mut self) {
        if !self.shown.is_empty() {
            let _ = stderr().lock().write_all(ERASE.as_bytes());
            self.shown.clear();
        }
    }
}

/// Returns a step as text.
fn text(step: &Progress) -> String {
    let count = match step.total {
        0 => String::new(),
        total => format!(" ({} of {total})", step.number),
    };
    let head = format!("gradus: {}", step.phase);
    let room = WIDTH_MAX.saturating_sub(head.chars().count() + count.chars().count() + 1);
    // Control characters of a name would move the cursor.
    let name: String = step.subject.chars().filter(|c| !c.is_control()).collect();
    let subject = match name.chars().count() {
        0 => String::new(),
        length if length <= room => format!(" {name}"),
        _ => format!(
            " {}…",
            name.chars()
                .take(room.saturating_sub(1))
                .collect::<String>()
        ),
    };
    format!("{head}{subject}{count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_the_terminal() {
        let step = |subject: &str, total| Progress {
            phase: "differentiate".into(),
            subject: subject.into(),
            number: 2,
            total,
        };
        assert_eq!(
            text(&step("a::f", 5)),
            "gradus: differentiate a::f (2 of 5)"
        );
        assert_eq!(text(&step("", 0)), "gradus: differentiate");
        let long = text(&step(&"é".repeat(300), 12345));
        assert!(
            long.chars().count() <= WIDTH_MAX && long.ends_with("… (2 of 12345)"),
            "{long}"
        );
        assert!(!text(&step("a\u{1b}[31m", 0)).contains('\u{1b}'));
    }
}
