//! The parallel report (`--par-report`): the outcome of every parallel construct, as text.
//!
//! ```text
//! norm.c:6: raised to parallel loops and tasks
//!     line 6: for
//!         call of mag in line 7 hoisted out of the loop
//!         forks from 40001 iterations, or from 5001 while a worker is awake
//! ```
//!
//! A loop is identified by its source location. A loop in several functions, due to inlining, is listed
//! once, with all changes to any copy.

use crate::reports::parallel_loops::{ChangeKind, ParallelLoopChange};
use gradus_ir::{LocId, SourceSpan, Unit};
use gradus_par::{ForkDecision, ForkThreshold, FusedLoops};
use gradus_raise::{Raised, RegionRecord};
use std::fmt::Write;

/// Changes to parallel loops after raising.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParallelChanges {
    /// Changes by simplification.
    pub moves: Vec<ParallelLoopChange>,
    /// Fused loops.
    pub fused: Vec<FusedLoops>,
    /// The fork condition of each loop.
    pub forks: Vec<ForkDecision>,
}

/// Returns the report's text.
pub(crate) fn text(unit: &Unit, raised: &Raised, changes: &ParallelChanges) -> String {
    let mut said = lines(unit, changes);
    let mut text = String::new();
    for region in &raised.regions {
        let place = region.span.as_ref().map_or_else(
            || region.function.clone(),
            |span| format!("{}:{}", span.file, span.line),
        );
        // Writing to a string does not fail.
        let _ = writeln!(text, "{place}: {}", region.outcome);
        for construct in &region.constructs {
            let _ = match &construct.span {
                Some(span) => writeln!(text, "    line {}: {}", span.line, construct.name),
                None => writeln!(text, "    {}", construct.name),
            };
            for line in take_construct_lines(&mut said, &raised.regions, construct.span.as_ref()) {
                let _ = writeln!(text, "        {line}");
            }
        }
    }
    text
}

/// Lines, each with the source location of a loop.
type LocatedLines = Vec<(SourceSpan, String)>;

/// Returns all lines on loops, without duplicates.
fn lines(unit: &Unit, changes: &ParallelChanges) -> LocatedLines {
    let mut said = LocatedLines::new();
    let mut say = |loc: Option<LocId>, line: String| {
        if let Some(span) = unit.span(loc)
            && !said
                .iter()
                .any(|(at, known)| at.line == span.line && at.file == span.file && *known == line)
        {
            said.push((span, line));
        }
    };
    for ParallelLoopChange { lp, what } in &changes.moves {
        say(*lp, change_text(unit, what));
    }
    for fused in &changes.fused {
        if let Some(second) = unit.span(fused.second) {
            say(
                fused.first,
                format!("fused with the loop in line {}", second.line),
            );
        }
        if let Some(first) = unit.span(fused.first) {
            say(
                fused.second,
                format!("fused with the loop in line {}", first.line),
            );
        }
    }
    for fork in &changes.forks {
        if fork.interchanged {
            let line = "interchanged with the inner loop: contiguous access across columns";
            say(fork.loc, line.to_string());
        }
        say(fork.loc, size(fork.size));
    }
    said
}

fn change_text(unit: &Unit, what: &ChangeKind) -> String {
    let line = |loc: &Option<LocId>| match unit.span(*loc) {
        Some(span) => format!(" in line {}", span.line),
        None => String::new(),
    };
    match what {
        ChangeKind::Call(name, loc) => {
            format!("call of {name}{} hoisted out of the loop", line(loc))
        }
        ChangeKind::DeletedCall(name, loc) => format!(
            "call of {name}{} deleted: the result is known or unused",
            line(loc)
        ),
        ChangeKind::Loop(loc) => format!("loop{} hoisted out of the loop", line(loc)),
        ChangeKind::Loads(1) => "1 load hoisted out of the loop".to_string(),
        ChangeKind::Loads(count) => format!("{count} loads hoisted out of the loop"),
        ChangeKind::Deleted => "deleted: the loop is empty, or the results are unused".to_string(),
    }
}

fn size(size: ForkThreshold) -> String {
    match size {
        ForkThreshold::Never => "runs serially: too little work for a fork".to_string(),
        ForkThreshold::Always => "forks always: enough work for a fork".to_string(),
        ForkThreshold::From { awake, asleep } if awake == asleep => {
            format!("forks from {asleep} iterations")
        }
        ForkThreshold::From { awake, asleep } => {
            format!("forks from {asleep} iterations, or from {awake} while a worker is awake")
        }
        ForkThreshold::Estimated => {
            "forks if the estimated work at loop entry is large enough".to_string()
        }
    }
}

/// Removes and returns the lines on a construct: lines of loops for which `construct` is the last preceding
/// construct.
fn take_construct_lines(
    said: &mut LocatedLines,
    regions: &[RegionRecord],
    construct: Option<&SourceSpan>,
) -> Vec<String> {
    let Some(construct) = construct else {
        return Vec::new();
    };
    let constructs = || {
        let all = regions.iter().flat_map(|region| &region.constructs);
        let loops = all.filter(|c| makes_loops(c.name));
        loops.filter_map(|c| c.span.as_ref())
    };
    let last_before = |at: &SourceSpan| {
        let before = constructs().filter(|c| c.file == at.file && c.line <= at.line);
        before.map(|c| c.line).max()
    };
    let is_loop = constructs().any(|c| c == construct);
    let belongs = |at: &SourceSpan| {
        is_loop && at.file == construct.file && last_before(at) == Some(construct.line)
    };
    let (own, rest) = std::mem::take(said)
        .into_iter()
        .partition(|(at, _)| belongs(at));
    *said = rest;
    let own: LocatedLines = own;
    own.into_iter().map(|(_, line)| line).collect()
}

/// Returns true if a construct becomes a parallel loop.
fn makes_loops(name: &str) -> bool {
    ["for", "for (dynamic)", "gr_for", "taskloop"].contains(&name)
}
