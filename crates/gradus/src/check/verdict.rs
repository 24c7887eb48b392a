//! The verdict on a run of the check's program, from output and exit status.

use super::{Check, stop, trace};
use gradus_ir::{Code, Diagnostic, SourceSpan};
use gradus_pipeline::{Argument, Derivative, WrittenRegistration};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A run of the check's program.
pub(super) struct Run {
    /// The lines written for the check.
    pub(super) text: String,
    /// The end of the function's output to standard error.
    pub(super) stderr_tail: String,
    /// The exit status; `None` after a timeout.
    pub(super) status: Option<ExitStatus>,
}

/// The outcome of a run.
pub(super) enum Verdict {
    /// A nonzero derivative agrees with differences, and nothing disagrees.
    Right,
    /// A comparison disagrees.
    Wrong,
    /// No comparison was meaningful.
    Untested(Reason),
}

/// The reason why nothing was tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// No active argument has an element.
    Empty,
    /// The function returns nothing and writes nothing.
    NoOutput,
    /// The function returns no finite number.
    NotFinite,
    /// Differences converge nowhere.
    Divergent,
    /// Every derivative is zero.
    Zero,
    /// The function is not deterministic.
    NonDeterministic,
}

impl Reason {
    fn of(word: &str) -> Reason {
        match word {
            "empty" => Reason::Empty,
            "unwritten" => Reason::NoOutput,
            "notfinite" => Reason::NotFinite,
            "unsettled" => Reason::Divergent,
            "unsteady" => Reason::NonDeterministic,
            _ => Reason::Zero,
        }
    }

    /// Returns true if other values in arrays of unchanged extents may test more.
    pub(super) fn depends_on_values(self) -> bool {
        !matches!(self, Reason::Empty | Reason::NonDeterministic)
    }

    /// Returns the reason as text.
    pub(super) fn text(self) -> &'static str {
        match self {
            Reason::Empty => "no active argument has an element",
            Reason::NoOutput => "the function returned no number and changed no active array",
            Reason::NotFinite => "the outputs of the function are not finite",
            Reason::Divergent => "finite differences do not converge",
            Reason::Zero => "every derivative is zero",
            Reason::NonDeterministic => {
                "two calls of the function with equal values return different results"
            }
        }
    }
}

impl Run {
    fn line_after(&self, start: &str) -> Option<&str> {
        self.text.lines().rev().find_map(|l| l.strip_prefix(start))
    }

    fn has(&self, line: &str) -> bool {
        self.text.lines().any(|l| l == line)
    }

    /// Returns true if the program died of a misaligned address.
    pub(super) fn is_misaligned(&self) -> bool {
        self.has("@misaligned")
    }

    /// Returns the lines for the user.
    pub(super) fn shown(&self) -> String {
        let shown = self.text.lines().filter(|l| l.starts_with("  "));
        shown.map(|l| format!("{l}\n")).collect()
    }

    fn frames(&self) -> Vec<&str> {
        let frames = self.text.lines();
        frames.filter_map(|l| l.strip_prefix("@frame ")).collect()
    }
}

/// The signals of an expired timer, and of exceeded processor time.
const OUT_OF_TIME: [Option<i32>; 2] = [Some(14), Some(24)];

/// The runtime's word for the function, in place of a mode (`runtime.h`).
const FUNCTION_ITSELF: &str = "the function itself";

/// The context of a run.
pub(super) struct CheckContext<'a> {
    pub(super) what: &'a Check,
    pub(super) derivative: &'a Derivative,
    /// The definition of the function.
    pub(super) location: Option<SourceSpan>,
    /// Derivatives that the program registers.
    pub(super) registrations: &'a [WrittenRegistration],
    /// Returns the user's source line for the innermost of some addresses.
    pub(super) place: &'a dyn Fn(&[&str]) -> Option<SourceSpan>,
    /// Returns the user's function of the innermost of some addresses.
    pub(super) function: &'a dyn Fn(&[&str]) -> Option<String>,
}

impl CheckContext<'_> {
    fn source_name(&self) -> &str {
        &self.derivative.source_name
    }

    /// Returns the verdict on a run, with warnings.
    ///
    /// # Errors
    /// A run that did not finish.
    pub(super) fn verdict(&self, run: &Run) -> Result<(Verdict, Vec<Diagnostic>), Diagnostic> {
        let stage = run.line_after("@stage ");
        if let Some(finding) = self.limits(run, stage.unwrap_or("the function itself")) {
            return Err(finding);
        }
        if let Some(finding) = self.invalid_value_error(run) {
            return Err(finding);
        }
        if !run.has("@end") {
            return Err(self.unfinished(run, stage));
        }
        let mut warnings = Vec::new();
        let told = |start| run.line_after(start);
        if let (Some(what), Some(mode)) = (told("@notfinite "), told("@mode ")) {
            warnings.push(self.not_finite((what, mode), (self.place)(&run.frames())));
        }
        if run.has("@wrong") {
            return Ok((Verdict::Wrong, warnings));
        }
        let verdict = match run.line_after("@nothing ") {
            Some(word) => Verdict::Untested(Reason::of(word)),
            None => Verdict::Right,
        };
        Ok((verdict, warnings))
    }

    /// Returns the diagnostic on an exceeded limit.
    fn limits(&self, run: &Run, stage: &str) -> Option<Diagnostic> {
        let name = self.source_name();
        let signal = run.status.map(|s| s.signal());
        let finding = |message: String| Diagnostic::error(Code::LimitReached, message);
        if run.status.is_none() || signal.is_some_and(|s| OUT_OF_TIME.contains(&s)) {
            let seconds = self.what.limit_seconds;
            let message = format!(
                "{name}: LIMIT: the check exceeded {seconds} seconds in the calls of {stage}"
            );
            let found =
                finding(message).note("a function that does not terminate reaches this limit, too");
            return Some(
                found.help("pass smaller values, or raise the limit with `--limit SECONDS`"),
            );
        }
        let bytes: u64 = run.line_after("@refused ")?.parse().ok()?;
        let mebibytes = self.what.limit_memory_bytes >> 20;
        let message = format!(
            "{name}: LIMIT: the calls of {stage} exceeded the memory limit of {mebibytes} MiB"
        );
        let asked = match bytes >> 20 {
            0 => format!("an allocation of {bytes} bytes failed"),
            more => format!("an allocation of {more} MiB failed"),
        };
        Some(
            finding(message)
                .note(asked)
                .help("pass smaller values, or raise the limit with `--max-memory SIZE`"),
        )
    }

    /// Returns the diagnostic on an invalid value of an argument.
    fn invalid_value_error(&self, run: &Run) -> Option<Diagnostic> {
        let (number, value) = run.line_after("@misfit ")?.split_once(' ')?;
        let argument = self.argument(number)?;
        let message = match value.split_once(' ') {
            Some(("length", value)) => {
                format!("`{}` cannot have a length of {value}", argument.source_name)
            }
            _ => format!(
                "{value} is not a valid value of `{}`, which holds integers",
                argument.source_name
            ),
        };
        Some(Diagnostic::error(Code::MissingCheckInput, message))
    }

    fn argument(&self, number: &str) -> Option<&Argument> {
        self.derivative.primal.get(number.parse::<usize>().ok()?)
    }

    /// Returns the diagnostic on an unfinished run.
    fn unfinished(&self, run: &Run, stage: Option<&str>) -> Diagnostic {
        let name = self.source_name();
        let Some(stage) = stage else {
            let message = format!("the driver exited without a call of {name}");
            return Diagnostic::error(Code::MissingCheckInput, message).help(
                "call the function in the driver, and define the function in a separate file",
            );
        };
        if let Some(finding) = self.out_of_bounds_error(run, stage) {
            return finding;
        }
        if let Some(stop) = stop::stop(&run.stderr_tail) {
            return self.stopped(run, stage, stop);
        }
        let signal = run.status.and_then(|s| s.signal());
        let message = match (uncaught_exception_type(&run.stderr_tail), signal) {
            (Some(what), _) => format!("{name}: {stage} threw {what}"),
            (None, Some(11)) if run.has("@stack") => {
                format!("{name}: {stage} was killed by signal 11 (SIGSEGV, stack overflow)")
            }
            (None, Some(signal)) => format!(
                "{name}: {stage} was killed by signal {signal}{}",
                trace::signal_meaning(signal)
            ),
            (None, None) => {
                let code = run.status.and_then(|s| s.code()).unwrap_or(0);
                format!("{name}: {stage} exited the program with status {code}")
            }
        };
        let finding = Diagnostic::error(Code::CheckFailed, message)
            .at((self.place)(&run.frames()), "execution ended here");
        let finding = with_stderr(finding, &run.stderr_tail);
        match stage.contains("derivative") {
            true => finding
                .help("this is a bug in Gradus, please report it: the function itself returns with these values"),
            false => finding.help("pass values that the function accepts"),
        }
    }

    /// Returns the diagnostic on a derivative that ended the program with a message: the message's own.
    fn stopped(&self, run: &Run, stage: &str, stop: stop::Stop) -> Diagnostic {
        let name = self.source_name();
        let frames = run.frames();
        let place = stop.place.or_else(|| (self.place)(&frames));
        let mut finding = Diagnostic::error(stop.code, stop.text)
            .at(place, "the derivative of this line ended the program")
            .note(format!(
                "{stage} of `{name}` ended the program with this message"
            ));
        finding.help = stop::remedy(stop.code).map(String::from);
        finding.function = (self.function)(&frames);
        finding
    }

    /// Returns the diagnostic on an access outside an argument's memory.
    fn out_of_bounds_error(&self, run: &Run, stage: &str) -> Option<Diagnostic> {
        let mut words = run.line_after("@fault ")?.splitn(5, ' ');
        let argument = self.argument(words.next()?)?;
        let (how, index) = (words.next()?, words.next()?);
        let count = words.next()?;
        let of = words.next().unwrap_or_default();
        let x = &argument.source_name;
        let before = index.starts_with('-');
        let side = match before {
            true => "before the beginning",
            false => "past the end",
        };
        let elements = match count {
            "1" => "1 element".to_string(),
            _ => format!("{count} elements"),
        };
        let place = (self.place)(&run.frames());
        if stage.contains("derivative") {
            let message = format!("{}: {stage} {how} {side} of {of}`{x}`", self.source_name());
            let finding = Diagnostic::error(Code::CheckFailed, message)
                .note(format!(
                    "the access is to element {index} of {elements}; the function itself stays within these elements"
                ))
                .help("this is a bug in Gradus: please report it");
            return Some(finding.at(place, "out-of-bounds access"));
        }
        let message = format!(
            "argument `{x}`: {} {how} {side} of the {elements} that the check passes",
            self.source_name()
        );
        let finding = Diagnostic::error(Code::MissingCheckInput, message)
            .at(place, format!("element {index}"));
        Some(finding.help(match before {
            true => format!("pass other values: the function accesses memory before the first element of `{x}`"),
            false => format!(
                "pass a length that fits the other arguments, `--arg '{x}=rand(LENGTH)'`, or pass smaller values for the other arguments"
            ),
        }))
    }

    /// Returns the diagnostic on an infinite or NaN derivative.
    fn not_finite(&self, (what, mode): (&str, &str), place: Option<SourceSpan>) -> Diagnostic {
        let name = self.source_name();
        const LABEL: &str = "the first operation with a non-finite result";
        if mode == FUNCTION_ITSELF {
            let message = format!("{name}: the function is {what} at the given values");
            return Diagnostic::warning(Code::NotFinite, message)
                .at(place, LABEL)
                .help("pass values at which the function is defined");
        }
        let message =
            format!("{name}: the derivative in {mode} is {what}, but the function is finite");
        Diagnostic::warning(Code::NotFinite, message)
            .at(place, LABEL)
            .help("use `--strong-zero` to define zero times an infinite slope as zero, or pass values at which the slope is finite")
    }

    /// Returns the diagnostic on a failed comparison, with the comparisons and the derivatives that the program itself
    /// registers: these are the usual cause.
    pub(super) fn mismatch(&self, comparisons: &str) -> Diagnostic {
        let message = format!("the derivative of {} fails the check", self.source_name());
        let mut finding = Diagnostic::error(Code::CheckFailed, message)
            .at(self.location.clone(), "the derivative of this function");
        for registered in self.registrations {
            let span = Some(registered.span.clone());
            finding = finding.at(
                span,
                "the program registers this derivative: check the function alone",
            );
        }
        let failed = comparisons.lines().filter(|line| line.contains("MISMATCH"));
        for line in failed {
            let words: Vec<&str> = line.split_whitespace().collect();
            finding = finding.note(words.join(" "));
        }
        finding
    }

    /// Returns the diagnostic on a check that tested nothing.
    pub(super) fn untested(&self, reason: Reason) -> Diagnostic {
        let message = format!(
            "{}: nothing was tested: {}",
            self.source_name(),
            reason.text()
        );
        let mut finding = Diagnostic::error(Code::MissingCheckInput, message);
        if reason.depends_on_values() {
            finding = finding.note("the check also tried values near the given values");
        }
        finding.help(self.help(reason))
    }

    fn help(&self, reason: Reason) -> String {
        let names = |wanted: &dyn Fn(&Argument) -> bool| {
            let hits = self.derivative.primal.iter().filter(|a| wanted(a));
            let hits = hits.map(|a| format!("`--arg {}=…`", a.source_name));
            hits.collect::<Vec<_>>().join(", ")
        };
        let is_zero = |a: &Argument| {
            let of = |n: &str| n == a.name || n == a.source_name;
            let given = self
                .what
                .values
                .iter()
                .find(|(name, _)| of(super::slots::without_type_suffix(name)));
            given.is_some_and(|(_, v)| {
                ["0", "[0]"].contains(&v.trim()) || v.trim().starts_with("zeros")
            })
        };
        let zeros = names(&is_zero);
        match reason {
            Reason::NonDeterministic => "make the result depend on the arguments alone: remove random numbers, clocks and variables that retain values between calls".to_string(),
            Reason::Divergent => "pass values away from jumps and large rounding errors, and add `--single` if the function computes in float".to_string(),
            Reason::NotFinite => "pass values at which the function is defined".to_string(),
            _ if !zeros.is_empty() => format!("pass nonzero values: {zeros}"),
            Reason::Empty => format!("pass a length of at least 1: {}", names(&|a| a.c_type.contains('*'))),
            Reason::NoOutput if !self.derivative.primal.iter().any(|a| a.c_type.contains('*')) => "check a function that returns a floating-point number or writes to an active array".to_string(),
            Reason::NoOutput | Reason::Zero => format!(
                "pass values at which the outputs depend on the active arguments: {}",
                names(&|_| true)
            ),
        }
    }
}

/// Returns the type of an uncaught exception, from the messages of C++ runtime libraries.
fn uncaught_exception_type(said: &str) -> Option<String> {
    let starts = [
        "terminate called after throwing an instance of '",
        "terminating due to uncaught exception of type ",
    ];
    let line = said
        .lines()
        .find_map(|line| starts.iter().find_map(|s| line.split_once(s)))?;
    let end = line.1.find(['\'', ':']).filter(|_| !line.1.contains("::"));
    let ty = line.1.trim_end_matches('\'');
    Some(format!(
        "an uncaught exception of type {}",
        &ty[..end.unwrap_or(ty.len()).min(ty.len())]
    ))
}

/// Adds the last lines printed by the function to a diagnostic.
fn with_stderr(mut finding: Diagnostic, said: &str) -> Diagnostic {
    let lines: Vec<&str> = said.lines().filter(|l| !l.trim().is_empty()).collect();
    for line in &lines[lines.len().saturating_sub(3)..] {
        finding = finding.note(format!("standard error: {}", line.trim_end()));
    }
    finding
}
