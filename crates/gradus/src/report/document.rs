//! The document of a report: the compiler's report, headlines that sum it up, and the result of a check.

use gradus_pipeline::report::{
    AliasVersion, DerivativeMode, DerivativeReport, DynamicOps, REPORT_VERSION, Report, Tape,
    TapeSize,
};
use serde::Serialize;

/// A report with everything that a renderer shows.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// The name of the format.
    format: &'static str,
    /// The version of the format.
    version: u32,
    /// The version of Gradus.
    gradus: &'static str,
    /// A headline for each requested derivative.
    pub headlines: Vec<Headline>,
    /// The compiler's report.
    #[serde(flatten)]
    pub report: Report,
    /// The result of a check, if one ran.
    pub check: Option<CheckReport>,
}

/// The figures of a requested derivative.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Headline {
    /// The index of the derivative in `derivatives`.
    pub derivative: usize,
    /// The index of the version that runs if no arguments alias; the derivative itself if there is one version.
    pub version: usize,
    /// The indices of the called derivatives.
    pub called: Vec<usize>,
    /// The number of operations: an estimate of the executed ones if the function has loops, otherwise those in the
    /// code.
    pub ops: DynamicOps,
    /// True if `ops` is an estimate.
    pub ops_estimated: bool,
    /// Operations of the derivative per operation of the function; `None` for a function without operations.
    pub ratio: Option<f64>,
    /// The tape, without called functions; `None` without a tape.
    pub tape: Option<TapeSize>,
    /// The number of called functions with values on the tape.
    pub called_tapes: usize,
    /// The bytes of the tapes of called functions, for one call of each; `None` if a length is unknown.
    pub called_tape_bytes: Option<f64>,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// True if the derivative is right.
    pub right: bool,
    /// The reason why the given values tested nothing, if other values were used.
    pub untested_reason_at_given_values: Option<String>,
    /// The comparisons, in order.
    pub comparisons: Vec<Comparison>,
}

/// A comparison of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The subject.
    pub title: String,
    /// The result.
    pub result: String,
}

impl Document {
    /// Returns the document of a report.
    pub fn new(report: Report) -> Document {
        Document {
            format: "gradus-report",
            version: REPORT_VERSION,
            gradus: env!("CARGO_PKG_VERSION"),
            headlines: headlines(&report.derivatives),
            report,
            check: None,
        }
    }

    /// Returns the document as JSON text, with a line for each field.
    pub(super) fn json(&self) -> String {
        written(serde_json::to_string_pretty(self))
    }

    /// Returns the document as JSON text in one line.
    pub(super) fn compact_json(&self) -> String {
        written(serde_json::to_string(self))
    }

    /// Returns a derivative by index.
    pub(super) fn derivative(&self, index: usize) -> &DerivativeReport {
        &self.report.derivatives[index]
    }
}

fn written(json: serde_json::Result<String>) -> String {
    match json {
        Ok(text) => text + "\n",
        Err(error) => unreachable!("a document has string keys only: {error}"),
    }
}

/// Returns a headline for each requested derivative. The derivatives that it calls follow it in the list.
fn headlines(all: &[DerivativeReport]) -> Vec<Headline> {
    let requested: Vec<usize> = (0..all.len()).filter(|i| all[*i].requested).collect();
    let ends = requested.iter().skip(1).copied().chain([all.len()]);
    requested
        .iter()
        .zip(ends)
        .map(|(&start, end)| headline(all, start, end))
        .collect()
}

fn headline(all: &[DerivativeReport], start: usize, end: usize) -> Headline {
    let root = &all[start];
    let is_version = |i: &usize| {
        let one = &all[*i];
        one.symbol == root.symbol && one.mode == root.mode && one.version == AliasVersion::NoAlias
    };
    let version = match root.selects_version {
        true => (start + 1..end).find(is_version).unwrap_or(start),
        false => start,
    };
    let shown = &all[version];
    let is_called = |i: &usize| {
        let one = &all[*i];
        let is_other = one.symbol != root.symbol || one.mode != root.mode;
        is_other && one.version != AliasVersion::Fallback
    };
    let called: Vec<usize> = (start + 1..end).filter(is_called).collect();
    let is_dynamic = runs_loops(shown);
    let ops = match is_dynamic {
        true => shown.dynamic_ops,
        false => DynamicOps {
            primal: shown.ops.primal as f64,
            derivative: shown.ops.derivative as f64,
        },
    };
    let tapes = called.iter().filter_map(|i| all[*i].tape.as_ref());
    let called_tapes: Vec<TapeSize> = (tapes.map(Tape::size))
        .filter(|size| !size.is_zero())
        .collect();
    Headline {
        derivative: start,
        version,
        ops,
        ops_estimated: is_dynamic,
        ratio: (ops.primal > 0.0).then(|| ops.derivative / ops.primal),
        tape: shown.tape.as_ref().map(Tape::size),
        called_tapes: called_tapes.len(),
        called_tape_bytes: (called_tapes.iter()).try_fold(0.0, |sum, size| Some(sum + size.bytes?)),
        called,
    }
}

/// Returns true if the estimate of executed operations differs from the number of operations in the code.
pub(super) fn runs_loops(one: &DerivativeReport) -> bool {
    one.dynamic_ops.primal > one.ops.primal as f64
        || one.dynamic_ops.derivative > one.ops.derivative as f64
}

/// Returns the name of a kind of derivative.
pub(super) fn mode_name(mode: DerivativeMode) -> &'static str {
    match mode {
        DerivativeMode::Jvp => "JVP",
        DerivativeMode::Vjp => "VJP",
        DerivativeMode::Dependencies => "dependency sets",
        DerivativeMode::ForwardPass => "forward pass",
        DerivativeMode::ReversePass => "reverse pass",
    }
}
