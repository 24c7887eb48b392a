//! What became of every parallel construct, by source line: data for `--par-report`.

use gradus_ir::{Code, Diagnostic, Severity, SourceSpan};
use std::fmt;

/// A parallel region of the program, or a construct of its own outside of all regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionRecord {
    /// The function of the source that it stands in.
    pub function: String,
    /// Where it begins.
    pub span: Option<SourceSpan>,
    /// What became of it.
    pub outcome: Outcome,
    /// What stands in it, in the order of the program.
    pub constructs: Vec<Construct>,
}

impl RegionRecord {
    /// A note on it, at its place.
    pub(crate) fn remark(&self, message: String) -> Diagnostic {
        let finding = Diagnostic {
            severity: Severity::Note,
            ..Diagnostic::warning(Code::ParallelKept, message)
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

/// What became of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Parallel loops and tasks of serial code around them: no thread knows its number.
    Loops,
    /// Ranks of a team, and why they are told apart, where that was found.
    Team(Option<Reason>),
    /// Tasks or shared work in a function that regions call.
    Orphan,
    /// Shared work in a function that teams of either library may call.
    Left,
    /// A statement that its marker says may run at once runs where it stands.
    Serial(Reason),
    /// It stays as it was, and runs on the run time that its compiler meant.
    Kept(Reason),
}

/// Why a region stays as it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// What was found.
    pub text: String,
    /// Where.
    pub span: Option<SourceSpan>,
}

/// One construct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Construct {
    /// Its name in the source.
    pub name: &'static str,
    /// Where it stands.
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
            Outcome::Orphan => f.write_str("raised where it stands"),
            Outcome::Left => f.write_str("left to the team that calls it"),
            Outcome::Serial(reason) => write!(f, "runs serially: {}", reason.text),
            Outcome::Kept(reason) => write!(f, "left as it is: {}", reason.text),
        }
    }
}
