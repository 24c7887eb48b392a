//! A run in progress: gathers diagnostics, timings and dumps around every pass.
//!
//! A pass that cannot continue puts its diagnostics into the reply and returns [`Stop`]; the reply is then
//! a refusal without outputs.

use crate::reports::derivative_record::DerivativeRecord;
use crate::reports::parallel::{self, ParallelChanges};
use crate::reports::readable_symbols::with_source_names;
use crate::wire::progress::Progress;
use crate::wire::reply::{Dump, Outcome, Output, Timing};
use crate::wire::report::Report;
use crate::{Allowance, Reply, Request};
use gradus_analysis::{Aliasing, Analyses, Pass, Verification};
use gradus_ir::{Code, Diagnostic, Severity, SourceSpan, Unit};
use gradus_llvm::Host;
use gradus_raise::Raised;

/// The run ends here; the diagnostics in the reply give the reason.
#[derive(Debug)]
pub(crate) struct Stop;

/// A row of the table of passes ([`crate::passes::PASSES`]).
pub(crate) type StagePass = Pass<StageRun>;

/// The entry point of a pass.
#[derive(Clone, Copy)]
pub(crate) enum StageRun {
    /// A step of the driver, called at its place with inputs and outcome of its own: each step produces what the
    /// next one consumes.
    Step,
    /// A pass on the derivatives of all roots, run in the order of the table.
    Derivatives(fn(&mut Run<'_>, &mut Unit, &mut [Vec<DerivativeRecord>]) -> Result<(), Stop>),
}

/// A run in progress.
pub(crate) struct Run<'a> {
    /// The request.
    pub request: &'a Request,
    /// The reply so far.
    pub reply: Reply,
    /// Outputs emitted before the export to LLVM: text form, header.
    pub early_outputs: Vec<Output>,
    /// The regions raised for differentiation, with outcomes.
    pub raised: Raised,
    /// Cached call graphs and effects.
    pub analyses: Analyses,
    /// The options of differentiation.
    pub ad_options: gradus_ad::Options,
    /// True if the program has no parallel code, starts no threads and handles no signals.
    pub is_serial: bool,
    clock: &'a mut dyn FnMut() -> u64,
    progress: &'a mut dyn FnMut(&Progress),
    step: Progress,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        request: &'a Request,
        aliasing: Aliasing,
        clock: &'a mut dyn FnMut() -> u64,
        progress: &'a mut dyn FnMut(&Progress),
    ) -> Self {
        Run {
            request,
            reply: Reply::default(),
            early_outputs: Vec::new(),
            raised: Raised::default(),
            analyses: Analyses::new(
                match request.options.verify_each {
                    true => Verification::Recompute,
                    false => Verification::Off,
                },
                aliasing,
            ),
            ad_options: gradus_ad::Options::default(),
            is_serial: false,
            clock,
            progress,
            step: Progress::default(),
        }
    }

    /// Tells the caller the function in work, number `number` of `total` known so far. An empty name stands for the
    /// whole program.
    pub(crate) fn begin_subject(&mut self, name: &str, number: usize, total: usize) {
        self.step.subject = name.to_string();
        (self.step.number, self.step.total) = (number, total);
        (self.progress)(&self.step);
    }

    fn begin_phase(&mut self, name: &str) -> String {
        let outer = std::mem::replace(&mut self.step.phase, name.to_string());
        if !name.is_empty() {
            (self.progress)(&self.step);
        }
        outer
    }

    /// Runs a pass and records the duration; a pass may run several times.
    pub(crate) fn pass<T>(
        &mut self,
        pass: &StagePass,
        work: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let start = (self.clock)();
        let outer = self.begin_phase(pass.name);
        let result = work(self);
        self.begin_phase(&outer);
        let duration = (self.clock)().saturating_sub(start);
        match self.reply.timings.iter_mut().find(|t| t.pass == pass.name) {
            Some(known) => known.duration += duration,
            None => self.reply.timings.push(Timing {
                pass: pass.name.to_string(),
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
        for finding in findings.into_iter().map(with_source_names) {
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
        self.reply.diagnostics.push(with_source_names(finding));
        Stop
    }

    /// Adds diagnostics, each labelled with the request's source location unless it has a label, and returns the
    /// stop.
    pub(crate) fn refuse_at(
        &mut self,
        span: Option<&SourceSpan>,
        findings: Vec<Diagnostic>,
    ) -> Stop {
        let label = |finding: Diagnostic| match finding.labels.is_empty() {
            true => finding.at(span.cloned(), "requested here"),
            false => finding,
        };
        // The stop follows in any case.
        let _ = self.add_diagnostics(findings.into_iter().map(label).collect());
        Stop
    }

    /// Returns true if the request turns a switch off.
    pub(crate) fn is_off(&self, switch: &str) -> bool {
        self.request.options.off.iter().any(|off| off == switch)
    }

    /// Returns true if the request turns a pass off.
    pub(crate) fn skips(&self, pass: &StagePass) -> bool {
        pass.switch.is_some_and(|switch| self.is_off(switch))
    }

    /// Appends the outcome of each parallel region to the report, if requested.
    pub(crate) fn add_parallel_report(
        &mut self,
        unit: &Unit,
        raised: &Raised,
        changes: &ParallelChanges,
    ) {
        if self.request.report {
            let regions = parallel::reports(unit, raised, changes);
            self.reply.report.parallel_regions.extend(regions);
        }
    }

    fn dumps(&self, pass: &StagePass) -> bool {
        let wanted = &self.request.options.dump_after;
        wanted.iter().any(|w| w == pass.name || w == "all")
    }

    /// Dumps the module's text if requested after `pass`, and verifies the module.
    pub(crate) fn after_host(&mut self, pass: &StagePass, host: &Host) -> Result<(), Stop> {
        if self.dumps(pass) {
            self.reply.dumps.push(Dump {
                pass: pass.name.to_string(),
                text: host.to_text(),
            });
        }
        if self.request.options.verify_each {
            self.value_or_stop(host.verify())?;
        }
        Ok(())
    }

    /// Dumps the unit's bodies if requested after `pass`, and verifies the bodies and the cached analyses.
    pub(crate) fn after_unit(&mut self, pass: &StagePass, unit: &Unit) -> Result<(), Stop> {
        if self.dumps(pass) {
            self.reply.dumps.push(Dump {
                pass: pass.name.to_string(),
                text: gradus_ir::print(unit),
            });
        }
        if self.request.options.verify_each {
            self.add_diagnostics(gradus_ir::verify(unit))?;
            let outdated = self.analyses.take_findings();
            self.add_diagnostics(outdated)?;
        }
        Ok(())
    }

    /// Returns a warning for each requested dump of a pass that did not run.
    fn missing_dumps(&self) -> Vec<Diagnostic> {
        let is_dumped = |name: &str| self.reply.dumps.iter().any(|dump| dump.pass == name);
        let wanted = self.request.options.dump_after.iter();
        wanted
            .filter(|name| *name != "all" && !is_dumped(name))
            .map(|name| {
                let message = format!("the pass `{name}` did not run on this program");
                Diagnostic::warning(Code::BadOption, message)
            })
            .collect()
    }

    /// Returns the reply, a refusal if the run was stopped.
    pub(crate) fn finish(mut self, end: Result<(), Stop>) -> Reply {
        self.reply.diagnostics.extend(self.analyses.take_findings());
        if end.is_ok() {
            let missing = self.missing_dumps();
            self.reply.diagnostics.extend(missing);
        }
        if end.is_err() || self.reply.has_errors() {
            self.reply.outcome = Outcome::Refused;
            self.reply.outputs.clear();
            self.reply.derivatives.clear();
            self.reply.report = Report::default();
        }
        self.reply
    }
}
