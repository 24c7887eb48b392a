//! The `if` clause of a team: versions a team that has one rank if a condition is false.
//!
//! If the condition holds, the team is an ordinary team and becomes parallel loops if possible. Otherwise the
//! program may rely on one thread, which runs iterations in order, and iterations may conflict in memory. The
//! team is therefore cloned into both arms of a branch: once without the clause and once with one rank. The
//! one-rank clone becomes the code of its rank, each worksharing loop a `for`. The clone stays a team if a
//! callee may query thread numbers, create tasks or begin regions, because a callee observes the innermost
//! region.

use super::fold_plan::{plan_fold, rank_comparisons, strip_casts, team_level_ops};
use super::inline_team::{inline_team_body, move_to_enclosing_strand, settle};
use crate::reach::{Reach, reaches_unknown};
use crate::region_extent;
use crate::report::{RaiseResult, reason};
use gradus_edit::{ValueMap, clone_op_within};
use gradus_ir::{Body, Builder, Op, OpKind, Unit, Value};

/// The maximum number of ops in a team to be cloned.
const CLONED_OPS_MAX: usize = 5000;

/// Versions a team with an `if` clause that would become loops without the clause. Returns the op that
/// distinguishes the ranks otherwise.
pub(super) fn part(unit: &mut Unit, body: &mut Body, team: Op, reach: &Reach) -> RaiseResult {
    let Some(clause) = IfClause::of(unit, body, team) else {
        // Not an error: the team has no `if` clause, and remains unchanged.
        return Ok(());
    };
    let region = body.op_regions(team)[0];
    let asked = strip_casts(body, clause.requested_ranks);
    if body.walk(region).count() > CLONED_OPS_MAX {
        let text = "the region is too large to duplicate for the `if` clause";
        return Err(reason(unit, body, team, text));
    }
    plan_fold(unit, body, team, asked, reach)?;
    let alone = clause.clone_into_arms(unit, body, team);
    serialize_team(unit, body, alone, reach);
    Ok(())
}

/// The number of ranks as determined by an `if` clause.
struct IfClause {
    condition: Value,
    /// The value of the condition for which `asked` ranks are requested.
    holds: bool,
    requested_ranks: Value,
}

impl IfClause {
    fn of(unit: &Unit, body: &Body, team: Op) -> Option<IfClause> {
        let select = body.def_op(body.operand(team, 0))?;
        if !matches!(body.kind(select), OpKind::Select) {
            return None;
        }
        let [condition, yes, no] = [0, 1, 2].map(|index| body.operand(select, index));
        let is_one = |value: Value| body.as_int(unit, value) == Some(1);
        let (holds, asked) = match (is_one(yes), is_one(no)) {
            (false, true) => (true, yes),
            (true, false) => (false, no),
            _ => return None,
        };
        Some(IfClause {
            condition,
            holds,
            requested_ranks: asked,
        })
    }

    /// Clones a team into the arms of a branch; returns the clone with one rank.
    fn clone_into_arms(self, unit: &mut Unit, body: &mut Body, team: Op) -> Op {
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(team);
        b.loc = b.body.ops[team].loc;
        let (_, yes, no) = b.if_(self.condition, &[]);
        let (several, one) = if self.holds { (yes, no) } else { (no, yes) };
        b.set_insertion_end(one);
        let copy = clone_op_within(team, &mut b, &mut ValueMap::new());
        let ty = b.body.ty(self.requested_ranks);
        let ranks = b.int(ty, 1);
        b.body.set_operand(copy, 0, ranks);
        b.yield_(&[]);
        b.body.detach(team);
        b.body.append(several, team);
        b.body.set_operand(team, 0, self.requested_ranks);
        b.set_insertion_end(several);
        b.yield_(&[]);
        copy
    }
}

/// Inlines a team of one rank, if the difference is unobservable.
fn serialize_team(unit: &mut Unit, body: &mut Body, team: Op, reach: &Reach) {
    let region = body.op_regions(team)[0];
    let asks = body
        .walk(region)
        .any(|op| reaches_unknown(unit, body, op, reach));
    let Ok((shared, _)) = team_level_ops(unit, body, team, reach) else {
        // Not an error: an op distinguishes ranks, and a team of one rank stays a team.
        return;
    };
    let fixed = |op: &Op| body.operands(*op).all(|v| body.as_const(v).is_some());
    let own = shared
        .iter()
        .flat_map(|lp| body.ops_in(body.op_regions(*lp)[0]));
    let own = own.filter(|op| matches!(body.kind(*op), OpKind::Alloca(_)));
    let own: Vec<Op> = own.collect();
    let Ok(compared) = rank_comparisons(unit, body, region, &shared) else {
        // Not an error: rank or size is used, and a team of one rank stays a team.
        return;
    };
    if asks
        || region_extent::may_reach_tasks_or_regions(unit, body, region, reach)
        || !own.iter().all(fixed)
    {
        return;
    }
    settle(unit, body, compared);
    for op in own {
        move_to_enclosing_strand(body, op, team);
    }
    for op in shared {
        share_for_to_for(unit, body, op);
    }
    inline_team_body(body, team);
}

/// Turns a worksharing loop into a `for`.
fn share_for_to_for(unit: &mut Unit, body: &mut Body, op: Op) {
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(op);
    b.loc = b.body.ops[op].loc;
    let trips = b.body.operand(op, 0);
    let (_, into) = b.for_(trips, &[]);
    let index = b.body.region_params(into)[0];
    let from = b.body.op_regions(op)[0];
    let old = b.body.region_params(from)[0];
    b.body.replace_uses(old, index);
    b.body.move_ops(from, into);
    b.body.erase(op);
}
