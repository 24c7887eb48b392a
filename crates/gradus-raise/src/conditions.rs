//! Teams that are of one rank where a condition does not hold (`if` clauses).
//!
//! Where it holds, such a team is as any other, and becomes parallel loops where those would. Where it does not, the
//! program may rely on one thread, which runs the iterations in their order: they may meet in memory then. So the team
//! stands in both arms of a branch, as it would without the clause and as one of one rank. The latter becomes the code
//! of that rank, each shared loop a `for`. It stays a team where what it calls may ask for numbers of threads, make
//! tasks or begin regions, as these are told of the innermost region.

use crate::extents;
use crate::fold::{
    Reach, compared, dissolve, is_unseen, move_home, plan, rank_level, settle, uncast,
};
use crate::openmp::{Step, reason};
use gradus_edit::{ValueMap, clone_op_within};
use gradus_ir::{Body, Builder, Op, OpKind, Unit, Value};

/// The most ops that a team may have to stand there twice.
const MOST_OPS: usize = 5000;

/// Where a team is of one rank for a condition, and would become loops without: puts it into an arm where that holds,
/// and what one rank does into the other. Else says what tells its ranks apart.
pub(crate) fn part(unit: &mut Unit, body: &mut Body, team: Op, reach: &Reach) -> Step {
    let Some(clause) = Clause::of(unit, body, team) else {
        // Not an error: the team has no `if` clause, and stays as it is.
        return Ok(());
    };
    let region = body.op_regions(team)[0];
    let asked = uncast(body, clause.asked);
    if body.walk(region).count() > MOST_OPS {
        let text = "it is too large to stand there twice, with and without its condition";
        return Err(reason(unit, body, team, text));
    }
    plan(unit, body, team, asked, reach)?;
    let alone = clause.part(unit, body, team);
    in_order(unit, body, alone, reach);
    Ok(())
}

/// What an `if` clause makes of the number of ranks.
struct Clause {
    condition: Value,
    /// What the condition is where more than one rank is asked for, and how many are.
    holds: bool,
    asked: Value,
}

impl Clause {
    fn of(unit: &Unit, body: &Body, team: Op) -> Option<Clause> {
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
        Some(Clause {
            condition,
            holds,
            asked,
        })
    }

    /// Puts a team into one arm of a branch and a copy of it that has one rank into the other; gives the copy.
    fn part(self, unit: &mut Unit, body: &mut Body, team: Op) -> Op {
        let mut b = Builder::new(unit, body);
        b.at_op(team);
        b.loc = b.body.ops[team].loc;
        let (_, yes, no) = b.if_(self.condition, &[]);
        let (several, one) = if self.holds { (yes, no) } else { (no, yes) };
        b.at_end(one);
        let copy = clone_op_within(team, &mut b, &mut ValueMap::new());
        let ty = b.body.ty(self.asked);
        let ranks = b.int(ty, 1);
        b.body.set_operand(copy, 0, ranks);
        b.yield_(&[]);
        b.body.detach(team);
        b.body.append(several, team);
        b.body.set_operand(team, 0, self.asked);
        b.at_end(several);
        b.yield_(&[]);
        copy
    }
}

/// Makes a team of one rank the code of that rank, where nothing in it can tell.
fn in_order(unit: &mut Unit, body: &mut Body, team: Op, reach: &Reach) {
    let region = body.op_regions(team)[0];
    let asks = body.walk(region).any(|op| is_unseen(unit, body, op, reach));
    let Ok((shared, _)) = rank_level(unit, body, team, reach) else {
        // Not an error: something tells ranks apart, and a team of one rank stays a team.
        return;
    };
    let fixed = |op: &Op| body.operands(*op).all(|v| body.as_const(v).is_some());
    let own = shared
        .iter()
        .flat_map(|lp| body.ops_in(body.op_regions(*lp)[0]));
    let own = own.filter(|op| matches!(body.kind(*op), OpKind::Alloca(_)));
    let own: Vec<Op> = own.collect();
    let Ok(compared) = compared(unit, body, region, &shared) else {
        // Not an error: the rank or the size is used, and a team of one rank stays a team.
        return;
    };
    if asks || extents::may_work(unit, body, region, reach) || !own.iter().all(fixed) {
        return;
    }
    settle(unit, body, compared);
    for op in own {
        move_home(body, op, team);
    }
    for op in shared {
        run_through(unit, body, op);
    }
    dissolve(body, team);
}

/// Makes a shared loop a `for`.
fn run_through(unit: &mut Unit, body: &mut Body, op: Op) {
    let mut b = Builder::new(unit, body);
    b.at_op(op);
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
