//! A run in progress: findings, timings and dumps gathered around every pass.
//!
//! A pass that cannot go on puts its findings into the reply and gives [`Stop`]; the reply is then a
//! refusal without outputs.

use crate::reply::{Dump, Outcome, Output, Timing};
use crate::{Allowance, Reply, Request};
use gradus_ir::{Code, Diagnostic, Severity, Unit};
use gradus_llvm::Host;
use gradus_raise::Raised;

/// The names of the passes in their order, as [`crate::Options::dump_after`] and timings use them.
pub const PASSES: &[&str] = &[
    "read",
    "early",
    "import",
    "raise",
    "requests",
    "simplify",
    "winners",
    "lists",
    "facts",
    "differentiate",
    "simplify-derivatives",
    "unswitch",
    "private-sums",
    "rounds",
    "gather",
    "jam",
    "short-rows",
    "stagger",
    "call-sites",
    "gpu",
    "lower",
    "cut",
    "export",
    "late",
    "emit",
];

/// The run ends here; the findings that say why are in the reply.
#[derive(Debug)]
pub(crate) struct Stop;

/// A run in progress.
pub(crate) struct Run<'a> {
    /// What was asked.
    pub request: &'a Request,
    /// The answer so far.
    pub reply: Reply,
    /// Outputs that are made before the program goes back to LLVM: text form, header, report.
    pub early_outputs: Vec<Output>,
    /// What became of the regions that were raised for derivatives.
    pub raised: Raised,
    clock: &'a mut dyn FnMut() -> u64,
}

impl<'a> Run<'a> {
    pub(crate) fn new(request: &'a Request, clock: &'a mut dyn FnMut() -> u64) -> Self {
        Run {
            request,
            reply: Reply::default(),
            early_outputs: Vec::new(),
            raised: Raised::default(),
            clock,
        }
    }

    /// Runs a pass and notes how long it took; a pass may run several times.
    pub(crate) fn pass<T>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let start = (self.clock)();
        let result = work(self);
        let duration = (self.clock)().saturating_sub(start);
        match self.reply.timings.iter_mut().find(|t| t.pass == name) {
            Some(known) => known.duration += duration,
            None => self.reply.timings.push(Timing {
                pass: name.to_string(),
                duration,
            }),
        }
        result
    }

    /// Adds findings; stops where one of them is an error.
    pub(crate) fn take(&mut self, findings: Vec<Diagnostic>) -> Result<(), Stop> {
        let fatal = findings.iter().any(|d| d.severity == Severity::Error);
        for finding in findings {
            if !self.reply.diagnostics.contains(&finding) {
                self.reply.diagnostics.push(finding);
            }
        }
        if fatal { Err(Stop) } else { Ok(()) }
    }

    /// Returns the diagnostics. Those that need the user's permission and lack it become errors.
    pub(crate) fn refused_unless_allowed(&self, findings: &[Diagnostic]) -> Vec<Diagnostic> {
        let allowed = &self.request.options.allowed;
        let refused = |code: Code| {
            Allowance::ALL
                .iter()
                .any(|kind| kind.code() == code && !allowed.contains(kind))
        };
        let mut list = findings.to_vec();
        for finding in list.iter_mut().filter(|finding| refused(finding.code)) {
            finding.severity = Severity::Error;
        }
        list
    }

    /// The value, or a stop with its finding.
    pub(crate) fn check<T>(&mut self, result: Result<T, Diagnostic>) -> Result<T, Stop> {
        result.map_err(|finding| self.refuse(finding))
    }

    /// Stops with a finding.
    pub(crate) fn refuse(&mut self, finding: Diagnostic) -> Stop {
        self.reply.diagnostics.push(finding);
        Stop
    }

    fn dumps(&self, pass: &str) -> bool {
        let wanted = &self.request.options.dump_after;
        wanted.iter().any(|w| w == pass || w == "all")
    }

    /// Gives the module's text where it was asked for after `pass`, and verifies it.
    pub(crate) fn after_host(&mut self, pass: &str, host: &Host) -> Result<(), Stop> {
        if self.dumps(pass) {
            self.reply.dumps.push(Dump {
                pass: pass.to_string(),
                text: host.to_text(),
            });
        }
        if self.request.options.verify_each {
            self.check(host.verify())?;
        }
        Ok(())
    }

    /// Gives the text of the unit's bodies where it was asked for after `pass`, and verifies them.
    pub(crate) fn after_unit(&mut self, pass: &str, unit: &Unit) -> Result<(), Stop> {
        if self.dumps(pass) {
            self.reply.dumps.push(Dump {
                pass: pass.to_string(),
                text: gradus_ir::print(unit),
            });
        }
        if self.request.options.verify_each {
            self.take(gradus_ir::verify(unit))?;
        }
        Ok(())
    }

    /// The reply, a refusal where the run was stopped.
    pub(crate) fn finish(mut self, end: Result<(), Stop>) -> Reply {
        if end.is_err() || self.reply.has_errors() {
            self.reply.outcome = Outcome::Refused;
            self.reply.outputs.clear();
            self.reply.derivatives.clear();
        }
        self.reply
    }
}
