//! Converts a while loop: `loop { A; if c { B; again } else { E; exit } }` becomes `for { A; B }; A; E`.
//!
//! The conversion preserves the execution order A B A B … A E. `A` is duplicated, hence must consist of
//! removable ops. `E` executes once and moves after the loop.

use crate::facts::effects::{is_removable, may_not_complete};
use crate::loops::induction;
use crate::loops::induction::{Induction, Scope, strip_negations};
use crate::loops::to_for::{AfterLoop, ConvertedLoop, NewFor};
use crate::loops::trip_count_ops::{TestPosition, emit_trip_count};
use crate::rewrite::clone::{ValueMap, clone_op_within};
use crate::rewrite::trivial_dce::remove_dead_defs;
use gradus_ir::integers::int_value;
use gradus_ir::{BinaryOp, Body, Builder, Definition, Op, OpKind, Region, Unit, Value};

/// Maximum number of ops before the test, and in the exiting arm.
const OPS_MAX: usize = 64;

/// Parts of a loop with a branch at its end.
struct WhileLoop {
    region: Region,
    repeat: Op,
    branch: Op,
    /// Continuing arm, and the truth value of the condition that selects the arm.
    continue_arm: Region,
    continue_value: bool,
    exit_arm: Region,
}

/// Matches a loop as A, a branch, and a terminator whose condition is false in exactly one arm. Also returns
/// the continuation condition of the other arm, `None` if the other arm always continues.
fn match_while_loop(unit: &Unit, body: &Body, op: Op) -> Option<(WhileLoop, Option<Value>, bool)> {
    let region = *body.op_regions(op).first()?;
    let repeat = body.last(region)?;
    if !matches!(body.kind(repeat), OpKind::Repeat) {
        return None;
    }
    let branch = body.prev(repeat)?;
    if !matches!(body.kind(branch), OpKind::If) {
        return None;
    }
    let (again, truth) = strip_negations(unit, body, body.operand(repeat, 0), true);
    let arms = body.op_regions(branch);
    let made = |go: usize| WhileLoop {
        region,
        repeat,
        branch,
        continue_arm: arms[go],
        continue_value: go == 0,
        exit_arm: arms[1 - go],
    };
    if again == body.operand(branch, 0) {
        return Some((made(usize::from(!truth)), None, truth));
    }
    let Definition::Result(from, index) = body.values[again].def else {
        return None;
    };
    if from != branch {
        return None;
    }
    let said = |arm: usize| Some(body.operand(body.yield_of(arms[arm])?, index as usize));
    let (yes, no) = (said(0)?, said(1)?);
    let leaves = |v: Value| int_value(unit, body, v).is_some_and(|(c, _)| (c == 1) != truth);
    if leaves(no) {
        Some((made(0), Some(yes), truth))
    } else if leaves(yes) {
        Some((made(1), Some(no), truth))
    } else {
        None
    }
}

/// Returns the value of the branch result `value` in the arm `region`; other values are unchanged.
fn value_in_arm(body: &Body, branch: Op, region: Region, value: Value) -> Value {
    match (body.values[value].def, body.last(region)) {
        (Definition::Result(op, index), Some(last)) if op == branch => {
            body.operand(last, index as usize)
        }
        _ => value,
    }
}

impl WhileLoop {
    fn ops(body: &Body, region: Region) -> Vec<Op> {
        body.ops_in(region).take(OPS_MAX + 1).collect()
    }
    /// Returns the ops before the branch if they may be duplicated.
    fn duplicable_head(&self, unit: &Unit, body: &Body) -> Option<Vec<Op>> {
        let ops = body.ops_in(self.region);
        let head: Vec<Op> = ops
            .take_while(|&o| o != self.branch)
            .take(OPS_MAX + 1)
            .collect();
        let fine = head.len() <= OPS_MAX
            && head.iter().all(|&o| {
                is_removable(unit, body, o) && !matches!(body.kind(o), OpKind::Alloca(_))
            });
        fine.then_some(head)
    }
    /// Returns the ops of the exiting arm if they are few and have no regions.
    fn plain_exit_arm(&self, body: &Body) -> Option<Vec<Op>> {
        let mut ops = Self::ops(body, self.exit_arm);
        let fine = ops.len() <= OPS_MAX && ops.iter().all(|&o| body.op_regions(o).is_empty());
        ops.pop();
        fine.then_some(ops)
    }
    fn scope(&self) -> Scope {
        Scope {
            region: self.region,
            arm: Some(self.continue_arm),
        }
    }
    fn inductions(&self, unit: &Unit, body: &Body, op: Op) -> Vec<Option<Induction>> {
        let initial: Vec<Value> = body.operands(op).collect();
        let next = self.next_values(body, initial.len());
        induction::inductions(unit, body, self.scope(), &initial, &next)
    }
    fn next_values(&self, body: &Body, carried: usize) -> Vec<Value> {
        let values = body.operands(self.repeat).skip(1).take(carried);
        values
            .map(|v| value_in_arm(body, self.branch, self.continue_arm, v))
            .collect()
    }
}

/// Returns the inductions of a loop with its test at the top.
pub(crate) fn inductions(unit: &Unit, body: &Body, op: Op) -> Option<Vec<Option<Induction>>> {
    let (parts, _, _) = match_while_loop(unit, body, op)?;
    Some(parts.inductions(unit, body, op))
}

/// Converts a loop with a counted test at the top to a `for`. Carried values at the positions `own` stay
/// carried.
pub(crate) fn convert(
    unit: &mut Unit,
    body: &mut Body,
    op: Op,
    own: &[usize],
) -> Option<ConvertedLoop> {
    let (parts, says, truth) = match_while_loop(unit, body, op)?;
    let known = |v: Value| int_value(unit, body, v).is_some_and(|(c, _)| (c == 1) == truth);
    let goes_on = says.is_none_or(known);
    let (head, tail) = (
        parts.duplicable_head(unit, body)?,
        parts.plain_exit_arm(body)?,
    );
    if !goes_on {
        return None;
    }
    let mut found = parts.inductions(unit, body, op);
    own.iter().for_each(|&k| found[k] = None);
    let carried = found.len();
    let condition = body.operand(parts.branch, 0);
    let test = induction::counted_test(
        unit,
        body,
        parts.scope(),
        &found,
        condition,
        parts.continue_value,
    )?;
    let leaves = may_not_complete(unit, body, parts.continue_arm);
    let outside = body.parent(op)?;
    let loc = body.ops[op].loc;
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.set_insertion_before(op);
    let trips = emit_trip_count(&mut b, &test, TestPosition::Top, outside, leaves)?;
    let shape = NewFor::new(&mut b, op, trips.value, &found, &[]);
    let after = AfterLoop {
        found: &found,
        trips,
    };
    emit_after_loop(&mut b, op, &parts, &shape, &after, (&head, &tail));
    move_into_for(&mut b, &parts, &shape, trips, carried);
    body.erase(op);
    Some(ConvertedLoop {
        op: shape.op,
        trips,
    })
}

/// Emits A and E after the loop and replaces the loop's results.
fn emit_after_loop(
    b: &mut Builder,
    op: Op,
    parts: &WhileLoop,
    shape: &NewFor,
    after: &AfterLoop,
    (head, tail): (&[Op], &[Op]),
) {
    let mut map = ValueMap::new();
    let params = b.body.region_params(parts.region).to_vec();
    for (k, param) in params.into_iter().enumerate() {
        let last = match shape.carried_index[k] {
            Some(at) => b.body.results(shape.op)[at],
            None => after.final_value(b, k),
        };
        map.set(param, last);
    }
    let mut copies = Vec::new();
    for &inner in head.iter().chain(tail) {
        copies.push(clone_op_within(inner, b, &mut map));
    }
    let carried = b.body.operand_count(op);
    for index in 0..b.body.results(op).len() {
        let said = b.body.operand(parts.repeat, 1 + carried + index);
        let said = value_in_arm(b.body, parts.branch, parts.exit_arm, said);
        let result = b.body.results(op)[index];
        b.body.replace_uses(result, map.get_or_same(said));
    }
    let values: Vec<Value> = copies
        .iter()
        .flat_map(|&c| b.body.results(c).to_vec())
        .collect();
    remove_dead_defs(b.unit, b.body, values);
}

/// Moves A and B into the `for`.
fn move_into_for(
    b: &mut Builder,
    parts: &WhileLoop,
    shape: &NewFor,
    trips: crate::loops::trip_count_ops::TripCount,
    carried: usize,
) {
    let inner = shape.region;
    b.body.detach(parts.repeat);
    b.body.detach(parts.branch);
    b.body.move_ops(parts.region, inner);
    let last = b.body.last(parts.continue_arm);
    b.body.move_ops(parts.continue_arm, inner);
    shape.replace_params(b, parts.region, trips);
    let mut yields = Vec::new();
    for k in (0..carried).filter(|&k| shape.carried_index[k].is_some()) {
        let value = b.body.operand(parts.repeat, 1 + k);
        yields.push(match (b.body.values[value].def, last) {
            (Definition::Result(op, index), Some(last)) if op == parts.branch => {
                b.body.operand(last, index as usize)
            }
            _ => value,
        });
    }
    let mut loose: Vec<Value> = last.into_iter().flat_map(|l| b.body.operands(l)).collect();
    loose.extend(b.body.operands(parts.branch));
    b.body.erase(parts.repeat);
    b.body.erase(parts.branch);
    if let Some(last) = last {
        b.body.erase(last);
    }
    b.set_insertion_end(inner);
    b.yield_(&yields);
    remove_dead_defs(b.unit, b.body, loose);
}

/// Sets or lowers `trip_max` of a loop from a counted exit with constant bounds.
pub(crate) fn set_trip_max_by_extra_exit(unit: &mut Unit, body: &mut Body, op: Op) {
    let Some(runs) = extra_exit_bound(unit, body, op) else {
        // Not an error: no exit has constant bounds, and no trip count bound is known.
        return;
    };
    if let OpKind::Loop { trip_max } = &mut body.ops[op].kind {
        *trip_max = Some(trip_max.map_or(runs, |known| known.min(runs)));
    }
}

fn extra_exit_bound(unit: &mut Unit, body: &mut Body, op: Op) -> Option<u64> {
    let region = body.op_regions(op)[0];
    let repeat = body.last(region)?;
    let initial: Vec<Value> = body.operands(op).collect();
    let mut candidates = Vec::new();
    let bottom = Scope { region, arm: None };
    let own: Vec<Value> = body.operands(repeat).skip(1).take(initial.len()).collect();
    let conjuncts = conjuncts(unit, body, body.operand(repeat, 0));
    for (value, truth) in conjuncts {
        candidates.push((bottom, own.clone(), value, truth, TestPosition::Bottom));
    }
    if let Some((parts, says, truth)) = match_while_loop(unit, body, op) {
        let next = parts.next_values(body, initial.len());
        let scope = Scope {
            region,
            arm: Some(parts.continue_arm),
        };
        let condition = body.operand(parts.branch, 0);
        candidates
            .extend(says.map(|says| (scope, next.clone(), says, truth, TestPosition::Bottom)));
        candidates.push((
            scope,
            next,
            condition,
            parts.continue_value,
            TestPosition::Top,
        ));
    }
    let outside = body.parent(op)?;
    let mut best = None;
    for (scope, next, again, truth, place) in candidates {
        let found = induction::inductions(unit, body, scope, &initial, &next);
        let test = induction::counted_test(unit, body, scope, &found, again, truth);
        let constant = |v: Value| int_value(unit, body, v).is_some();
        let Some(test) = test.filter(|t| constant(t.start) && constant(t.bound)) else {
            continue;
        };
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(op);
        let Some(trips) = emit_trip_count(&mut b, &test, place, outside, true) else {
            continue;
        };
        let runs = int_value(unit, body, trips.value)
            .and_then(|(n, _)| u64::try_from(n).ok())
            .and_then(|n| n.checked_add(u64::from(place == TestPosition::Top)));
        best = runs.into_iter().chain(best).min();
    }
    best
}

/// Returns the truth values that must all hold for `value` to hold.
fn conjuncts(unit: &Unit, body: &Body, value: Value) -> Vec<(Value, bool)> {
    let mut open = vec![(value, true)];
    let mut found = Vec::new();
    while let Some((value, truth)) = open.pop() {
        let (value, truth) = strip_negations(unit, body, value, truth);
        let Some(op) = body.def_op(value) else {
            continue;
        };
        let operand = |i: usize| body.operand(op, i);
        let is = |i: usize, n: u128| int_value(unit, body, operand(i)).is_some_and(|c| c.0 == n);
        match body.kind(op) {
            _ if found.len() + open.len() > 16 => {}
            OpKind::Binary(BinaryOp::And) if truth => {
                open.extend([(operand(0), true), (operand(1), true)]);
            }
            OpKind::Binary(BinaryOp::Or) if !truth => {
                open.extend([(operand(0), false), (operand(1), false)]);
            }
            OpKind::Select if truth && is(2, 0) => {
                open.extend([(operand(0), true), (operand(1), true)]);
            }
            OpKind::Select if !truth && is(1, 1) => {
                open.extend([(operand(0), false), (operand(2), false)]);
            }
            _ => found.push((value, truth)),
        }
    }
    found
}
