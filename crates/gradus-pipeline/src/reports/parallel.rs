//! The report on parallel code: the outcome of every parallel construct, and the decisions on each loop.
//!
//! A loop is identified by its source location. A loop in several functions, due to inlining, is listed
//! once, with all changes to any copy.

use crate::reports::derivative::location;
use crate::reports::parallel_loops::{ChangeKind, ParallelLoopChange};
use crate::wire::report::{
    ConstructReport, DecisionKind, LoopDecision, RegionOutcome, RegionReport,
};
use gradus_ir::{LocId, SourceSpan, Unit};
use gradus_par::{ForkDecision, ForkThreshold, FusedLoops};
use gradus_raise::{Outcome, Raised, RegionRecord};

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

/// Returns the report on the parallel regions.
pub(crate) fn reports(
    unit: &Unit,
    raised: &Raised,
    changes: &ParallelChanges,
) -> Vec<RegionReport> {
    let mut told = decisions(unit, changes);
    let regions = raised.regions.iter().map(|region| RegionReport {
        function: region.function.clone(),
        location: region.span.as_ref().map(location),
        outcome: outcome(&region.outcome),
        text: region.outcome.to_string(),
        constructs: (region.constructs.iter())
            .map(|construct| ConstructReport {
                name: construct.name.to_string(),
                location: construct.span.as_ref().map(location),
                decisions: take_decisions(&mut told, &raised.regions, construct.span.as_ref()),
            })
            .collect(),
    });
    regions.collect()
}

fn outcome(outcome: &Outcome) -> RegionOutcome {
    match outcome {
        Outcome::Loops => RegionOutcome::Loops,
        Outcome::Team(_) => RegionOutcome::Team,
        Outcome::Orphan => RegionOutcome::Orphan,
        Outcome::LeftToCaller => RegionOutcome::LeftToCaller,
        Outcome::Serial(_) => RegionOutcome::Serial,
        Outcome::Unraised(_) => RegionOutcome::NotRaised,
    }
}

/// Decisions, each with the source location of a loop.
type LocatedDecisions = Vec<(SourceSpan, LoopDecision)>;

/// Returns all decisions on loops, without duplicates.
fn decisions(unit: &Unit, changes: &ParallelChanges) -> LocatedDecisions {
    let mut said = LocatedDecisions::new();
    let mut say = |loc: Option<LocId>, kind: DecisionKind, text: String| {
        let decision = LoopDecision { kind, text };
        if let Some(span) = unit.span(loc)
            && !said.iter().any(|(at, known)| {
                at.line == span.line && at.file == span.file && *known == decision
            })
        {
            said.push((span, decision));
        }
    };
    for ParallelLoopChange { lp, what } in &changes.moves {
        say(*lp, DecisionKind::Simplified, change_text(unit, what));
    }
    for fused in &changes.fused {
        if let Some(second) = unit.span(fused.second) {
            say(
                fused.first,
                DecisionKind::Fused,
                format!("fused with the loop in line {}", second.line),
            );
        }
        if let Some(first) = unit.span(fused.first) {
            say(
                fused.second,
                DecisionKind::Fused,
                format!("fused with the loop in line {}", first.line),
            );
        }
    }
    for fork in &changes.forks {
        if fork.interchanged {
            let line = "interchanged with the inner loop: contiguous access across columns";
            say(fork.loc, DecisionKind::Interchanged, line.to_string());
        }
        say(fork.loc, DecisionKind::Fork, size(fork.size));
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

/// Removes and returns the decisions on a construct: decisions on loops for which `construct` is the last preceding
/// construct.
fn take_decisions(
    said: &mut LocatedDecisions,
    regions: &[RegionRecord],
    construct: Option<&SourceSpan>,
) -> Vec<LoopDecision> {
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
    let own: LocatedDecisions = own;
    own.into_iter().map(|(_, decision)| decision).collect()
}

/// Returns true if a construct becomes a parallel loop.
fn makes_loops(name: &str) -> bool {
    ["for", "for (dynamic)", "gr_for", "taskloop"].contains(&name)
}
