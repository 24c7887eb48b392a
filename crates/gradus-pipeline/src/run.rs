//! A run in progress: gathers diagnostics, timings and dumps around every pass.
//!
//! A pass that cannot continue puts its diagnostics into the reply and returns [`Stop`]; the reply is then
//! a refusal without outputs.

use crate::wire::reply::{Dump, Outcome, Output, Timing};
use crate::{Allowance, Reply, Request};
use gradus_ir::{Code, Diagnostic, Severity, Unit};
use gradus_llvm::Host;
use gradus_raise::Raised;

/// The names of the passes in order, for [`crate::Options::dump_after`] and timings.
pub const PASSES: &[&str] = &[
    "parse",
    "pre-ad-llvm",
    "import",
    "raise",
    "lower-teams",
    "collect-requests",
    "simplify",
    "argminmax",
    "index-array-copies",
    "analyze",
    "differentiate",
    "dead-derivative-code",
    "unswitch",
    "privatize-adds",
    "two-phase-adds",
    "scatter-to-gather",
    "unroll-and-jam",
    "short-trip-versioning",
    "stagger-allocations",
    "rewrite-call-sites",
    "gpu",
    "lower",
    "split-functions",
    "export",
    "final-llvm",
    "emit",
];

/// The run ends here; the diagnostics in the reply give the reason.
#[derive(Debug)]
pub(crate) struct Stop;

/// A run in progress.
pub(crate) struct Run<'a> {
    /// The request.
    pub request: &'a Request,
    /// The reply so far.
    pub reply: Reply,
    /// Outputs emitted before the export to LLVM: text form, header, report.
    pub early_outputs: Vec<Output>,
    /// The regions raised for differentiation, with outcomes.
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

    /// Runs a pass and records the duration; a pass may run several times.
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

    /// Adds diagnostics to the reply.
    ///
    /// # Errors
    /// Stops if a diagnostic is an error.
    pub(crate) fn add_diagnostics(&mut self, findings: Vec<Diagnostic>) -> Result<(), Stop> {
        let fatal = findings.iter().any(|d| d.severity == Severity::Error);
        for finding in findings {
            if !self.reply.diagnostics.contains(&finding) {
                self.reply.diagnostics.push(finding);
            }
        }
        if fatal { Err(Stop) } else { Ok(()) }
    }

    /// Returns the diagnostics. Diagnostics that require the user's permission and lack it become errors.
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

    /// Returns the value, or stops with the diagnostic.
    pub(crate) fn value_or_stop<T>(&mut self, result: Result<T, Diagnostic>) -> Result<T, Stop> {
        result.map_err(|finding| self.refuse(finding))
    }

    /// Adds a diagnostic and returns the stop.
    pub(crate) fn refuse(&mut self, finding: Diagnostic) -> Stop {
        self.reply.diagnostics.push(finding);
        Stop
    }

    fn dumps(&self, pass: &str) -> bool {
        let wanted = &self.request.options.dump_after;
        wanted.iter().any(|w| w == pass || w == "all")
    }

    /// Dumps the module's text if requested after `pass`, and verifies the module.
    pub(crate) fn after_host(&mut self, pass: &str, host: &Host) -> Result<(), Stop> {
        if self.dumps(pass) {
            self.reply.dumps.push(Dump {
                pass: pass.to_string(),
                text: host.to_text(),
            });
        }
        if self.request.options.verify_each {
            self.value_or_stop(host.verify())?;
        }
        Ok(())
    }

    /// Dumps the unit's bodies if requested after `pass`, and verifies them.
    pub(crate) fn after_unit(&mut self, pass: &str, unit: &Unit) -> Result<(), Stop> {
        if self.dumps(pass) {
            self.reply.dumps.push(Dump {
                pass: pass.to_string(),
                text: gradus_ir::print(unit),
            });
        }
        if self.request.options.verify_each {
            self.add_diagnostics(gradus_ir::verify(unit))?;
        }
        Ok(())
    }

    /// Returns the reply, a refusal if the run was stopped.
    pub(crate) fn finish(mut self, end: Result<(), Stop>) -> Reply {
        if end.is_err() || self.reply.has_errors() {
            self.reply.outcome = Outcome::Refused;
            self.reply.outputs.clear();
            self.reply.derivatives.clear();
        }
        self.reply
    }
}
