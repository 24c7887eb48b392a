//! Outside parallel calls become parallel ops.
//!
//! ```text
//! let raised = gradus_raise::raise(&mut unit, &Orphans::Leave);   // before anything is inlined
//! raised.changed                                  // functions with new bodies
//! raised.regions                                  // what became of every region, by source line
//! ```
//!
//! Place: after the import of a parallel closure (`Pipeline::EarlyPlain`), before simplification. A
//! program's parallel constructs come as calls of a run time: OpenMP's as clang and flang emit them
//! ([`openmp`]), CUDA's launches as the merge of its halves leaves them ([`cuda`]), the words of our header
//! as markers ([`markers`]). Each construct becomes the op that means the same; then teams whose ranks do nothing
//! but share loops become parallel loops ([`fold`]).
//!
//! Invariants: a region that is not understood as a whole stays exactly as it was, with all functions
//! that it reaches, and its record says why and where. What is made passes the verifier. Nothing
//! recurses over nesting.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod atomics;
mod conditions;
mod cuda;
mod extents;
mod fold;
mod handlers;
mod kept;
mod markers;
mod openmp;
mod privates;
mod ranks_own;
mod reductions;
mod regions;
mod report;
mod scopes;
mod uncounted;
mod written_first;

pub use report::{Construct, Outcome, Reason, RegionRecord};

use gradus_ir::{Diagnostic, FuncId, SourceSpan, Unit};
use std::collections::HashSet;

/// What raising came to.
#[derive(Clone, Debug, Default)]
pub struct Raised {
    /// What became of every region and of constructs outside of regions, in the order of the program.
    pub regions: Vec<RegionRecord>,
    /// The functions with new bodies.
    pub changed: Vec<FuncId>,
    /// Launches that cannot become grids.
    pub refused: Vec<Diagnostic>,
    /// What functions reached when they were read.
    reach: fold::Reach,
}

impl Raised {
    /// A remark for each region that stays as it is, and each statement that runs serially.
    pub fn remarks(&self) -> Vec<Diagnostic> {
        let kept = self
            .regions
            .iter()
            .filter_map(|region| match &region.outcome {
                Outcome::Kept(reason) => Some((region, reason, "region stays as it is")),
                Outcome::Serial(reason) => Some((region, reason, "statement runs serially")),
                _ => None,
            });
        kept.map(|(region, reason, what)| {
            let message = format!("this parallel {what}: {}", reason.text);
            let why = reason.span.clone();
            let why = why.filter(|span| Some(span) != region.span.as_ref());
            region.remark(message).at(why, "because of this")
        })
        .collect()
    }

    /// Remarks on regions whose threads are told apart: in a derivative, which is that of the serial
    /// projection, one thread runs them. Those of functions in `as_they_are` are none.
    #[must_use]
    pub fn teams_of_one(&self, as_they_are: &HashSet<&str>) -> Vec<Diagnostic> {
        let projected = |r: &&RegionRecord| !as_they_are.contains(r.function.as_str());
        let team = |r: &&RegionRecord| matches!(r.outcome, Outcome::Team(_));
        let teams = self.regions.iter().filter(team).filter(projected);
        let remark = |region: &RegionRecord| {
            let message = "a derivative runs this parallel region with one thread: its threads are told apart, by their numbers, a barrier or what each has of its own";
            let remark = region.remark(message.to_string());
            let Outcome::Team(Some(why)) = &region.outcome else {
                return remark;
            };
            let place = why.span.clone();
            remark.at(place.filter(|p| Some(p) != region.span.as_ref()), &why.text)
        };
        teams.map(remark).collect()
    }
}

/// What is done with a function that shares the work of a team which it did not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Orphans {
    /// It is raised: whoever calls it gets its meaning, a team or code on one thread, from the same ops.
    Raise,
    /// It is raised if it is one of these functions, and stays as it is else.
    RaiseOf(HashSet<FuncId>),
    /// It stays as it is: a team calls it that may stand in another file and be of either library, and
    /// the run time finds out which.
    Leave,
}

/// Raises all that is understood in a unit; launches only where nothing is differentiated
/// ([`raise_launches`] for the rest).
pub fn raise(unit: &mut Unit, orphans: &Orphans) -> Raised {
    let mut raised = markers::raise(unit);
    let regions = openmp::raise(unit, orphans);
    raised.regions.extend(regions.regions);
    raised.changed.extend(regions.changed);
    raised.reach = regions.reach;
    if *orphans == Orphans::Leave {
        let launches = cuda::raise(unit);
        raised.changed.extend(launches.changed);
        raised.refused = launches.refused;
    }
    raised.changed.sort_unstable();
    raised.changed.dedup();
    raised
}

/// Makes parallel loops of teams in functions that have taken others in since they were raised: what a loop
/// called through a pointer may be a function now, of which it is known that it tells no ranks apart. Gives the
/// places of these teams.
pub fn fold_again(unit: &mut Unit, raised: &Raised, functions: &[FuncId]) -> Vec<SourceSpan> {
    let mut places = Vec::new();
    for &func in functions {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        for team in fold::raise(unit, &mut body, &raised.reach).folded {
            places.extend(unit.span(body.ops[team].loc));
        }
        unit.functions[func].body = Some(body);
    }
    places
}

/// Raises all launches in `functions`, for differentiation; what stands elsewhere stays calls.
pub fn raise_launches(unit: &mut Unit, functions: &[FuncId]) -> Raised {
    let launches = cuda::raise_in(unit, functions, &HashSet::new());
    Raised {
        changed: launches.changed,
        refused: launches.refused,
        ..Raised::default()
    }
}
