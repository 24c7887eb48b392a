//! Report records: the outcome of every parallel construct, by source line; data for `--par-report`.

use crate::runtime_calls::span_of;
use gradus_ir::{Body, Code, Diagnostic, Op, Severity, SourceSpan, Unit};
use std::fmt;

/// The record of a parallel region, or of a construct outside of all regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionRecord {
    /// The source function of the region.
    pub function: String,
    /// The start of the region.
    pub span: Option<SourceSpan>,
    /// The outcome of the region.
    pub outcome: Outcome,
    /// The constructs in the region, in program order.
    pub constructs: Vec<Construct>,
}

impl RegionRecord {
    /// Returns a note at the region's location.
    pub(crate) fn remark(&self, message: String) -> Diagnostic {
        let finding = Diagnostic {
            severity: Severity::Note,
            ..Diagnostic::warning(Code::ParallelNotRaised, message)
        };
        let what = match self.outcome {
            Outcome::Serial(_) => "the statement",
            _ => "the region",
        };
        finding
            .in_function(&self.function)
            .at(self.span.clone(), what)
    }
}

/// The outcome of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Parallel loops and tasks in serial code: no rank is observable.
    Loops,
    /// A team of ranks, and the reason why ranks are distinguished, if found.
    Team(Option<Reason>),
    /// Tasks or worksharing in a function called by regions.
    Orphan,
    /// Worksharing in a function that teams of either library may call.
    LeftToCaller,
    /// A statement marked parallel runs serially.
    Serial(Reason),
    /// The region remains unchanged and uses its compiler's runtime.
    Unraised(Reason),
}

/// The reason why a region remains unchanged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// The finding.
    pub text: String,
    /// The location of the finding.
    pub span: Option<SourceSpan>,
}

/// A step that may fail: the function then remains unchanged.
pub(crate) type RaiseResult<T = ()> = Result<T, Reason>;

/// Returns a reason located at `op`.
pub(crate) fn reason(unit: &Unit, body: &Body, op: Op, text: impl Into<String>) -> Reason {
    Reason {
        text: text.into(),
        span: span_of(unit, body, op),
    }
}

/// A construct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Construct {
    /// The source name of the construct.
    pub name: &'static str,
    /// The location of the construct.
    pub span: Option<SourceSpan>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Loops => f.write_str("raised to parallel loops and tasks"),
            Outcome::Team(None) => f.write_str("raised to a team of ranks"),
            Outcome::Team(Some(Reason { text, span: None })) => {
                write!(f, "raised to a team of ranks: {text}")
            }
            Outcome::Team(Some(Reason {
                text,
                span: Some(at),
            })) => {
                write!(f, "raised to a team of ranks: {text} (line {})", at.line)
            }
            Outcome::Orphan => f.write_str("raised as orphaned constructs"),
            Outcome::LeftToCaller => f.write_str("left to the calling team"),
            Outcome::Serial(reason) => write!(f, "runs serially: {}", reason.text),
            Outcome::Unraised(reason) => write!(f, "not raised: {}", reason.text),
        }
    }
}
