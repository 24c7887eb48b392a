//! Puts together what was raised function by function: tasks and regions take in the code that they run.
//!
//! Order: a function after those that it takes in. A task's function is two in compilers' output, one
//! that unpacks and one with the user's code; both are taken in. Then captured variables, which the
//! compiler passed by address, become values.

use super::calls::Calls;
use super::fork::{self, Bodies};
use super::survey::{Survey, is_wrapped};
use super::{Converted, answer_numbers, ranks, untype_words};
use crate::fold;
use crate::regions::drop_unused;
use crate::report::Reason;
use gradus_edit::{promote_slots, split_allocas, sweep_dead, take_in};
use gradus_ir::known::OpenMpFn;
use gradus_ir::{Body, Builder, FuncId, Op, OpKind, Unit};
use std::collections::{HashMap, HashSet};

/// What was put together.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// The functions with new bodies.
    pub changed: Vec<FuncId>,
    /// The regions that have no ranks any more: the function that began each, and what it runs.
    pub folded: HashSet<(FuncId, FuncId)>,
    /// Why the others have some.
    pub told_apart: HashMap<(FuncId, FuncId), Reason>,
}

/// Finishes all bodies that may change and puts them into the unit.
pub(super) fn together(
    unit: &mut Unit,
    calls: &Calls,
    survey: &Survey,
    mut converted: HashMap<FuncId, Converted>,
) -> Together {
    let reach = survey.reach(unit);
    let mut bodies = Bodies::new();
    let mut done = Together::default();
    for func in order(survey) {
        let own = converted.remove(&func).or_else(|| left(unit, survey, func));
        let Some(own) = own else {
            // A region's or task's function without constructs of its own is taken in as it is.
            if survey.is_part(func) && !survey.is_held(func) && !survey.is_kept(func) {
                let body = unit.functions[func].body.as_deref().cloned();
                if let Some(body) = body.map(|b| unpacked(unit, &bodies, func, b)) {
                    bodies.insert(func, body);
                }
            }
            continue;
        };
        if survey.is_held(func) || survey.is_kept(func) {
            continue;
        }
        let mut body = own.body;
        take_in_tasks(unit, &mut body, &bodies, &own.entries);
        let teams = fork::raise(unit, &mut body, calls, &bodies);
        if !survey.is_left(func) {
            answer_numbers(unit, &mut body, calls);
        }
        tidy(unit, &mut body);
        let folded = fold::raise(unit, &mut body, &reach);
        let targets = folded.folded.iter().filter_map(|team| teams.get(team));
        done.folded.extend(targets.map(|target| (func, *target)));
        let ranks = folded.told_apart.into_iter();
        let ranks = ranks.filter_map(|(team, why)| Some(((func, *teams.get(&team)?), why)));
        done.told_apart.extend(ranks);
        if survey.is_part(func) {
            let body = unpacked(unit, &bodies, func, body);
            bodies.insert(func, body);
        } else {
            if is_wrapped(unit, func) {
                bodies.insert(func, body.clone());
            }
            unit.functions[func].body = Some(Box::new(body));
            done.changed.push(func);
        }
    }
    called(unit, &mut done.changed, bodies);
    if !done.changed.is_empty() {
        ask_of_tasks(unit, calls, survey, &mut done.changed);
    }
    done
}

/// Whether a final task runs it is asked of our library: an optimiser takes the other one's answer to be the same all
/// over a function, where tasks are functions.
fn ask_of_tasks(unit: &mut Unit, calls: &Calls, survey: &Survey, changed: &mut Vec<FuncId>) {
    let with_bodies = unit.functions.iter().filter(|(_, f)| f.body.is_some());
    let functions: Vec<FuncId> = with_bodies.map(|(func, _)| func).collect();
    for func in functions.into_iter().filter(|func| !survey.is_held(*func)) {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let asks = calls.of_kind(unit, &body, OpenMpFn::InFinal);
        if !asks.is_empty() && !changed.contains(&func) {
            changed.push(func);
        }
        for op in asks {
            let mut b = Builder::new(unit, &mut body);
            b.at_op(op);
            b.loc = b.body.ops[op].loc;
            let answer = ranks::ask(&mut b, "gr_in_final");
            for result in b.body.results(op).to_vec() {
                b.body.replace_uses(result, answer);
            }
            b.body.erase(op);
        }
        unit.functions[func].body = Some(body);
    }
}

/// A function that is left to the team which calls it, with regions of its own: these are raised, and what it shares
/// between the ranks of that team stays with the run time.
fn left(unit: &Unit, survey: &Survey, func: FuncId) -> Option<Converted> {
    let raised = survey.is_left(func) && !survey.is_held(func) && survey.has_raised(func);
    let body = unit.functions[func].body.as_deref().filter(|_| raised)?;
    let mut body = body.clone();
    untype_words(&mut body);
    Some(Converted {
        body,
        entries: Vec::new(),
    })
}

/// Functions of regions and tasks that could not be taken in are called: they get their bodies.
fn called(unit: &mut Unit, changed: &mut Vec<FuncId>, mut bodies: Bodies) {
    let mut known: HashSet<FuncId> = changed.iter().copied().collect();
    let mut next = 0;
    while let Some(func) = changed.get(next).copied() {
        next += 1;
        let Some(body) = &unit.functions[func].body else {
            continue;
        };
        let callees: Vec<FuncId> = body
            .walk(body.root())
            .filter_map(|op| unit.callee(body, op))
            .collect();
        for callee in callees {
            if known.insert(callee)
                && let Some(body) = bodies.remove(&callee)
            {
                unit.functions[callee].body = Some(Box::new(body));
                changed.push(callee);
            }
        }
    }
}

/// All functions with constructs, and those taken in, callees first.
fn order(survey: &Survey) -> Vec<FuncId> {
    let mut done = Vec::new();
    let mut begun: HashSet<FuncId> = HashSet::new();
    for root in survey.functions() {
        let mut stack = vec![(root, false)];
        while let Some((func, finished)) = stack.pop() {
            if finished {
                done.push(func);
            } else if begun.insert(func) {
                stack.push((func, true));
                stack.extend(survey.takes_in(func).into_iter().map(|f| (f, false)));
            }
        }
    }
    done
}

/// The functions of tasks take in what they call to do the work.
fn unpacked(unit: &mut Unit, bodies: &Bodies, func: FuncId, mut body: Body) -> Body {
    // What is called in turn is only known once the caller is taken in.
    for _ in 0..3 {
        let calls: Vec<(Op, FuncId)> = body
            .walk(body.root())
            .filter_map(|op| Some((op, unit.callee(&body, op)?)))
            .filter(|(_, callee)| *callee != func && is_wrapped(unit, *callee))
            .collect();
        for (op, callee) in calls {
            let code = match bodies.get(&callee) {
                Some(code) => Some(code.clone()),
                None => unit.functions[callee].body.as_deref().cloned(),
            };
            if let Some(code) = code {
                let _stays_a_call = take_in(unit, &mut body, op, callee, &code);
            }
        }
    }
    tidy(unit, &mut body);
    body
}

fn take_in_tasks(unit: &mut Unit, body: &mut Body, bodies: &Bodies, entries: &[FuncId]) {
    let entries: HashSet<FuncId> = entries.iter().copied().collect();
    let calls: Vec<(Op, FuncId)> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::Call(_)))
        .filter_map(|op| Some((op, unit.callee(body, op)?)))
        .filter(|(_, callee)| entries.contains(callee))
        .collect();
    for (op, callee) in calls {
        if let Some(code) = bodies.get(&callee) {
            let _stays_a_call = take_in(unit, body, op, callee, code);
        }
    }
}

/// Captured variables become values, and what nobody uses goes.
fn tidy(unit: &mut Unit, body: &mut Body) {
    // What is promoted may hold the address of what can be promoted next.
    for _ in 0..4 {
        split_allocas(unit, body);
        let promoted = promote_slots(unit, body);
        drop_unused(unit, body);
        sweep_dead(unit, body);
        if promoted == 0 {
            break;
        }
    }
}
