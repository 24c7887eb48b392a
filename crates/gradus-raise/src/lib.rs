//! Raising: parallel runtime calls become parallel ops.
//!
//! ```text
//! let raised = gradus_raise::raise(&mut unit, &Orphans::Leave);   // before anything is inlined
//! raised.changed                                  // functions with new bodies
//! raised.regions                                  // what became of every region, by source line
//! ```
//!
//! Place in the flow: after the import of a parallel call graph (`Pipeline::EarlyPlain`), before
//! simplification. Parallel constructs arrive as runtime calls: OpenMP as emitted by clang and flang
//! ([`openmp`]), CUDA launches as left by the merge of host and device code ([`cuda`]), parallel intrinsics of
//! `gradus/parallel.h` ([`intrinsics`]). Each construct becomes the equivalent op. Then teams whose ranks only
//! execute worksharing loops become parallel loops ([`team_to_parallel_loop`]).
//!
//! # Invariants
//! - A region that is not recognised as a whole remains unchanged, with all functions it reaches; its record
//!   states reason and location.
//! - The result passes the verifier.
//! - Nothing recurses over nesting.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod atomics;
mod capture;
mod cuda;
mod definite_assignment;
mod handlers;
mod intrinsics;
mod loop_bail_reason;
mod openmp;
mod private_memory;
mod reach;
mod reductions;
mod region_extent;
mod regions;
mod report;
mod runtime_calls;
mod task_scopes;
mod team_to_parallel_loop;
mod thread_private;

pub use report::{Construct, Outcome, Reason, RegionRecord};

use gradus_ir::{Diagnostic, FuncId, SourceSpan, Unit};
use std::collections::HashSet;

/// The result of raising.
#[derive(Clone, Debug, Default)]
pub struct Raised {
    /// The outcome of every region, and of constructs outside of regions, in program order.
    pub regions: Vec<RegionRecord>,
    /// The functions with new bodies.
    pub changed: Vec<FuncId>,
    /// Diagnostics of launches that cannot become grids.
    pub refused: Vec<Diagnostic>,
    /// Call graph summaries before raising.
    reach: reach::Reach,
}

impl Raised {
    /// Returns a remark for each region that remains unchanged, and for each statement that runs serially.
    pub fn remarks(&self) -> Vec<Diagnostic> {
        let kept = self
            .regions
            .iter()
            .filter_map(|region| match &region.outcome {
                Outcome::Unraised(reason) => Some((region, reason, "region is not raised")),
                Outcome::Serial(reason) => Some((region, reason, "statement runs serially")),
                _ => None,
            });
        kept.map(|(region, reason, what)| {
            let message = format!("this parallel {what}: {}", reason.text);
            let why = reason.span.clone();
            let why = why.filter(|span| Some(span) != region.span.as_ref());
            region.remark(message).at(why, "caused here")
        })
        .collect()
    }

    /// Returns remarks on regions whose ranks are distinguished: a derivative is based on the serial projection
    /// and runs such a region with one thread. Functions in `as_they_are` get no remark.
    #[must_use]
    pub fn one_thread_remarks(&self, as_they_are: &HashSet<&str>) -> Vec<Diagnostic> {
        let projected = |r: &&RegionRecord| !as_they_are.contains(r.function.as_str());
        let team = |r: &&RegionRecord| matches!(r.outcome, Outcome::Team(_));
        let teams = self.regions.iter().filter(team).filter(projected);
        let remark = |region: &RegionRecord| {
            let message = "a derivative runs this parallel region with one thread: the region distinguishes threads by thread number, barrier or private state";
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

/// The treatment of functions with worksharing of an enclosing team in a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Orphans {
    /// Raised: the caller, a team or serial code, determines the meaning of the ops.
    Raise,
    /// Raised if in the set, otherwise unchanged.
    RaiseOf(HashSet<FuncId>),
    /// Unchanged: the calling team may be in another file and belong to either library, which the runtime finds
    /// out.
    LeaveUnraised,
}

/// Raises all recognised constructs of a unit. Launches are raised only if nothing is differentiated; see
/// [`raise_launches`] otherwise.
pub fn raise(unit: &mut Unit, orphans: &Orphans) -> Raised {
    let mut raised = intrinsics::raise(unit);
    let regions = openmp::raise(unit, orphans);
    raised.regions.extend(regions.regions);
    raised.changed.extend(regions.changed);
    raised.reach = regions.reach;
    if *orphans == Orphans::LeaveUnraised {
        let launches = cuda::raise(unit);
        raised.changed.extend(launches.changed);
        raised.refused = launches.refused;
    }
    raised.changed.sort_unstable();
    raised.changed.dedup();
    raised
}

/// Folds teams after inlining: a function pointer call in a loop may have become a direct call of a function
/// known not to distinguish ranks. Returns the locations of the folded teams.
pub fn fold_again(unit: &mut Unit, raised: &Raised, functions: &[FuncId]) -> Vec<SourceSpan> {
    let mut places = Vec::new();
    for &func in functions {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        for team in team_to_parallel_loop::raise(unit, &mut body, &raised.reach).folded {
            places.extend(unit.span(body.ops[team].loc));
        }
        unit.functions[func].body = Some(body);
    }
    places
}

/// Raises all launches in `functions` for differentiation; launches elsewhere stay calls.
pub fn raise_launches(unit: &mut Unit, functions: &[FuncId]) -> Raised {
    let launches = cuda::raise_in(unit, functions, &HashSet::new());
    Raised {
        changed: launches.changed,
        refused: launches.refused,
        ..Raised::default()
    }
}
