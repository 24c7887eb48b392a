//! Lowers teams in differentiated code to parallel loops over the ranks, split at barriers.
//!
//! A team that stays a team has a single rank in a derivative, and the program then sees one thread. The
//! number of ranks must equal the number seen by the program. Hence either all teams of default size become
//! loops and the program sees the true number, or none does. Further parallel loops that may depend on the
//! number of ranks run serially if that number is 1 ([`gradus_par::guard_by_team_size`]). Such a loop may be right for a
//! single thread only, and the number of threads may differ when the reverse pass runs.

use crate::run::{StagePass, StageRun};
use gradus_analysis::{Analyses, Effects, Stage};
use gradus_ir::{Body, FuncId, Unit};
use std::collections::HashSet;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "lower-teams",
    stage: Stage::Unit,
    switch: None,
    about: "lowers teams in differentiated code to loops over ranks",
    run: StageRun::Step,
};

/// The outcome for the teams of some functions.
pub(crate) struct Teams {
    /// The functions with new bodies.
    pub changed: Vec<FuncId>,
    /// True if no team of default size (a rank per worker) is left.
    pub all: bool,
}

/// Lowers the teams of `functions` with a stated number of ranks to loops, if possible. With `open`, also
/// lowers the teams of default size, if possible for all. Teams in the functions `nested`, which are
/// reached from regions, have one rank and stay.
pub(crate) fn to_loops(
    unit: &mut Unit,
    analyses: &mut Analyses,
    functions: &[FuncId],
    nested: &HashSet<FuncId>,
    open: bool,
) -> Teams {
    let asking = match open {
        true => gradus_par::loops_depending_on_team_size(unit, analyses, functions),
        false => None,
    };
    let open = asking.is_some();
    let effects = analyses.effects(unit, functions);
    let waiting = gradus_par::functions_that_wait(unit);
    let mut changed = Vec::new();
    for &func in functions.iter().filter(|func| !nested.contains(func)) {
        if let Some(body) = unit.functions[func].body.take() {
            let made = lower_body_teams(unit, func, &body, &waiting, &effects, true);
            changed.extend(made.loops.then_some(func));
            unit.functions[func].body = Some(Box::new(made.body));
        }
    }
    let mut others: Vec<(FuncId, Body)> = Vec::new();
    let mut all = true;
    for &func in functions {
        let Some(body) = unit.functions[func].body.take() else {
            continue;
        };
        if gradus_par::teams(unit, &body, false).is_empty() {
            unit.functions[func].body = Some(body);
            continue;
        }
        if open && all && !nested.contains(&func) {
            let made = lower_body_teams(unit, func, &body, &waiting, &effects, false);
            all &= made.all;
            others.push((func, made.body));
        }
        all &= open && !nested.contains(&func);
        unit.functions[func].body = Some(body);
    }
    if all && !others.is_empty() {
        for (func, body) in others {
            unit.functions[func].body = Some(Box::new(body));
            changed.push(func);
        }
        for (func, op) in asking.into_iter().flatten() {
            if let Some(mut body) = unit.functions[func].body.take() {
                gradus_par::guard_by_team_size(unit, &mut body, op);
                unit.functions[func].body = Some(body);
            }
            changed.push(func);
        }
        changed.sort_unstable();
        changed.dedup();
    }
    Teams { changed, all }
}

/// A body with some teams lowered to loops.
struct LoweredTeams {
    body: Body,
    /// True if any team was lowered, and true if all were.
    loops: bool,
    all: bool,
}

/// Lowers the teams of a body to loops, if possible: teams with a stated number of ranks, or teams of
/// default size.
fn lower_body_teams(
    unit: &mut Unit,
    func: FuncId,
    body: &Body,
    waiting: &HashSet<FuncId>,
    effects: &Effects,
    stated: bool,
) -> LoweredTeams {
    let mut made = LoweredTeams {
        body: body.clone(),
        loops: false,
        all: true,
    };
    for team in gradus_par::teams(unit, body, stated) {
        let before = made.body.clone();
        let body = &mut made.body;
        gradus_par::inline_into_team(unit, body, func, team, waiting);
        let is_cut = gradus_par::team_to_rank_code(unit, body, team, waiting)
            && gradus_gpu::team_to_loops(unit, body, func, team, effects);
        if !is_cut {
            made.body = before;
        }
        made.loops |= is_cut;
        made.all &= is_cut;
    }
    made
}
