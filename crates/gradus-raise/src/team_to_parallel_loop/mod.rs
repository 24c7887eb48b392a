//! Folding of teams to parallel loops: a team whose ranks only execute worksharing loops becomes a sequence of
//! parallel loops.
//!
//! One rank is a legal execution of a team, and iterations of a worksharing loop may run in any order, also
//! concurrently. The region of a team may therefore replace the team, executed by one thread, with every
//! `to_share_for.for` as a `par.for`. The rules: rank and size are unused, code outside of worksharing loops has equal
//! effects on every rank, and iterations that now run concurrently do not share private memory of a rank:
//! - memory that an iteration initialises (by a first write or a lifetime start) is privatised to the
//!   iteration;
//! - memory that iterations only read is shared;
//! - memory that starts from an identity, accumulates in the loop and is combined under a lock afterwards is a
//!   reduction: each iteration contributes its accumulation from the identity.
//!
//! A team whose entire work is in `single` regions is the work itself. A team with an `if` clause is versioned
//! ([`if_clause`]).
//!
//! Steps: [`fold_plan`] checks the rules, [`mod@par_for`] converts worksharing loops, [`inline_team`] replaces the team.
//!
//! Any other team stays a team. Barriers vanish with the team: code before and after runs in order.

mod fold_plan;
mod if_clause;
mod inline_team;
mod par_for;

use crate::reach::Reach;
use crate::report::Reason;
use crate::{atomics, reductions, region_extent};
use fold_plan::{FoldPlan, plan_fold, requested_ranks};
use gradus_edit::{promote_slots, remove_dead_ops};
use gradus_ir::{Body, Op, OpKind, SpmdKind, Unit};
use inline_team::{inline_team_body, settle};
use par_for::par_for;

/// The outcome for the teams of a body.
#[derive(Default)]
pub(crate) struct FoldedTeams {
    /// Teams that became loops.
    pub folded: Vec<Op>,
    /// Remaining teams, and the op that distinguishes their ranks.
    pub with_distinct_ranks: Vec<(Op, Reason)>,
}

/// Folds all teams of a body that qualify, inner teams first.
pub(crate) fn raise(unit: &mut Unit, body: &mut Body, reach: &Reach) -> FoldedTeams {
    let mut teams: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| {
            let team = OpKind::Spmd {
                kind: SpmdKind::Team,
                dims: 1,
            };
            *body.kind(op) == team
        })
        .collect();
    teams.reverse();
    let mut done = FoldedTeams::default();
    for team in teams {
        let parted = if_clause::part(unit, body, team, reach);
        match parted.and_then(|()| plan_fold(unit, body, team, requested_ranks(body, team), reach))
        {
            Ok(plan) => {
                done.folded.push(team);
                region_extent::mark_region_extent(unit, body, team, reach);
                fold(unit, body, team, plan, reach);
            }
            Err(why) => done.with_distinct_ranks.push((team, why)),
        }
    }
    if !done.folded.is_empty() {
        atomics::raise(unit, body);
        promote_slots(unit, body);
        reductions::drop_neutral(unit, body);
        remove_dead_ops(unit, body);
    }
    done
}

/// Folds a team by its plan.
fn fold(unit: &mut Unit, body: &mut Body, team: Op, plan: FoldPlan, reach: &Reach) {
    settle(unit, body, plan.compared);
    for (op, reductions, own) in plan.loops {
        for own in own {
            own.take_in(unit, body, op);
        }
        par_for(unit, body, op, &reductions, reach);
    }
    inline_team_body(body, team);
}
