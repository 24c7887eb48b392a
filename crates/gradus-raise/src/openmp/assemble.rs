//! Assembly: tasks and regions inline the raised code of their functions.
//!
//! A function follows the functions it inlines. A task has two functions in compiler output: one unpacks the
//! captures, one has the user's code; both are inlined. Then captured variables, passed by address, are
//! promoted to values.
//!
//! # Invariants
//! Raised code inlines raised constructs only. A function whose constructs stay with libomp stays a call, because a
//! raised region has ranks instead of libomp's thread numbers.

use super::survey::{Survey, is_always_inline};
use crate::openmp::parallel_region;
use crate::openmp::parallel_region::OutlinedBodies;
use crate::openmp::{RaisedBody, drop_tbaa_on_captures, fold_thread_numbers, thread_num};
use crate::regions::drop_unused_branch_results;
use crate::report::Reason;
use crate::runtime_calls::RuntimeCalls;
use crate::team_to_parallel_loop;
use gradus_edit::{inline_region_body, promote_slots, remove_dead_ops, split_allocas};
use gradus_ir::externals::OpenMpFn;
use gradus_ir::{Body, Builder, FuncId, Op, OpKind, Unit};
use std::collections::{HashMap, HashSet};

/// The result of the assembly.
#[derive(Debug, Default)]
pub(super) struct Assembled {
    /// The functions with new bodies.
    pub changed: Vec<FuncId>,
    /// The folded regions: the function with the fork, and the outlined function.
    pub folded: HashSet<(FuncId, FuncId)>,
    /// The remaining teams, and the reason why their ranks are distinguished.
    pub with_distinct_ranks: HashMap<(FuncId, FuncId), Reason>,
}

/// Completes all changed bodies and stores them in the unit.
pub(super) fn assemble(
    unit: &mut Unit,
    calls: &RuntimeCalls,
    survey: &Survey,
    mut converted: HashMap<FuncId, RaisedBody>,
) -> Assembled {
    let reach = survey.reach(unit);
    let mut bodies = OutlinedBodies::new();
    let mut done = Assembled::default();
    for func in callees_first(survey) {
        let own = converted
            .remove(&func)
            .or_else(|| body_left_to_caller(unit, survey, func));
        let Some(own) = own else {
            // The function of a region or task without constructs is inlined unchanged.
            if survey.is_outlined_code(func)
                && !survey.is_rejected(func)
                && !survey.is_region_unraised(func)
            {
                let body = unit.functions[func].body.as_deref().cloned();
                if let Some(body) =
                    body.map(|b| inline_wrapped_calls(unit, survey, &bodies, func, b))
                {
                    bodies.insert(func, body);
                }
            }
            continue;
        };
        if survey.is_rejected(func) || survey.is_region_unraised(func) {
            continue;
        }
        let mut body = own.body;
        inline_tasks(unit, &mut body, &bodies, &own.entries);
        let teams = parallel_region::raise(unit, &mut body, calls, &bodies);
        if !survey.is_left_to_caller(func) {
            fold_thread_numbers(unit, &mut body, calls);
        }
        promote_captures(unit, &mut body);
        let folded = team_to_parallel_loop::raise(unit, &mut body, &reach);
        let targets = folded.folded.iter().filter_map(|team| teams.get(team));
        done.folded.extend(targets.map(|target| (func, *target)));
        let ranks = folded.with_distinct_ranks.into_iter();
        let ranks = ranks.filter_map(|(team, why)| Some(((func, *teams.get(&team)?), why)));
        done.with_distinct_ranks.extend(ranks);
        if survey.is_outlined_code(func) {
            let body = inline_wrapped_calls(unit, survey, &bodies, func, body);
            bodies.insert(func, body);
        } else {
            if is_always_inline(unit, func) && !survey.is_left_to_caller(func) {
                bodies.insert(func, body.clone());
            }
            unit.functions[func].body = Some(Box::new(body));
            done.changed.push(func);
        }
    }
    store_called_bodies(unit, &mut done.changed, bodies);
    if !done.changed.is_empty() {
        redirect_in_final_queries(unit, calls, survey, &mut done.changed);
    }
    done
}

/// Replaces `omp_in_final` by our runtime's query: an optimiser assumes one result of libomp's query per
/// function, where tasks are separate functions.
fn redirect_in_final_queries(
    unit: &mut Unit,
    calls: &RuntimeCalls,
    survey: &Survey,
    changed: &mut Vec<FuncId>,
) {
    let with_bodies = unit.functions.iter().filter(|(_, f)| f.body.is_some());
    let functions: Vec<FuncId> = with_bodies.map(|(func, _)| func).collect();
    for func in functions
        .into_iter()
        .filter(|func| !survey.is_rejected(*func))
    {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let asks = calls.of_kind(unit, &body, OpenMpFn::InFinal);
        if !asks.is_empty() && !changed.contains(&func) {
            changed.push(func);
        }
        for op in asks {
            let mut b = Builder::new(unit, &mut body);
            b.set_insertion_before(op);
            b.loc = b.body.ops[op].loc;
            let answer = thread_num::emit_query(&mut b, "gr_in_final");
            for result in b.body.results(op).to_vec() {
                b.body.replace_uses(result, answer);
            }
            b.body.erase(op);
        }
        unit.functions[func].body = Some(body);
    }
}

/// Returns the body of a function left to its calling team but with raised regions: the regions are raised, and
/// worksharing stays with libomp.
fn body_left_to_caller(unit: &Unit, survey: &Survey, func: FuncId) -> Option<RaisedBody> {
    let raised = survey.is_left_to_caller(func)
        && !survey.is_rejected(func)
        && survey.has_raised_regions(func);
    let body = unit.functions[func].body.as_deref().filter(|_| raised)?;
    let mut body = body.clone();
    drop_tbaa_on_captures(&mut body);
    Some(RaisedBody {
        body,
        entries: Vec::new(),
    })
}

/// Stores the bodies of region and task functions that could not be inlined and are still called.
fn store_called_bodies(unit: &mut Unit, changed: &mut Vec<FuncId>, mut bodies: OutlinedBodies) {
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

/// Returns all functions with constructs and their inlined functions, callees first.
fn callees_first(survey: &Survey) -> Vec<FuncId> {
    let mut done = Vec::new();
    let mut begun: HashSet<FuncId> = HashSet::new();
    for root in survey.functions() {
        let mut stack = vec![(root, false)];
        while let Some((func, finished)) = stack.pop() {
            if finished {
                done.push(func);
            } else if begun.insert(func) {
                stack.push((func, true));
                stack.extend(
                    survey
                        .inlined_functions(func)
                        .into_iter()
                        .map(|f| (f, false)),
                );
            }
        }
    }
    done
}

/// Inlines the wrapped functions called by a task or region function: raised code, and functions without constructs.
fn inline_wrapped_calls(
    unit: &mut Unit,
    survey: &Survey,
    bodies: &OutlinedBodies,
    func: FuncId,
    mut body: Body,
) -> Body {
    // A callee's calls are known after inlining only.
    for _ in 0..3 {
        let calls: Vec<(Op, FuncId)> = body
            .walk(body.root())
            .filter_map(|op| Some((op, unit.callee(&body, op)?)))
            .filter(|(_, callee)| *callee != func && is_always_inline(unit, *callee))
            .collect();
        for (op, callee) in calls {
            let code = match bodies.get(&callee) {
                Some(code) => Some(code.clone()),
                None if survey.has_constructs(callee) => None,
                None => unit.functions[callee].body.as_deref().cloned(),
            };
            if let Some(code) = code {
                let _stays_a_call = inline_region_body(unit, &mut body, op, callee, &code);
            }
        }
    }
    promote_captures(unit, &mut body);
    body
}

fn inline_tasks(unit: &mut Unit, body: &mut Body, bodies: &OutlinedBodies, entries: &[FuncId]) {
    let entries: HashSet<FuncId> = entries.iter().copied().collect();
    let calls: Vec<(Op, FuncId)> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::Call(_)))
        .filter_map(|op| Some((op, unit.callee(body, op)?)))
        .filter(|(_, callee)| entries.contains(callee))
        .collect();
    for (op, callee) in calls {
        if let Some(code) = bodies.get(&callee) {
            let _stays_a_call = inline_region_body(unit, body, op, callee, code);
        }
    }
}

/// Promotes captured variables to values and removes dead code.
fn promote_captures(unit: &mut Unit, body: &mut Body) {
    // A promoted slot may hold the address of the next promotable slot.
    for _ in 0..4 {
        split_allocas(unit, body);
        let promoted = promote_slots(unit, body);
        drop_unused_branch_results(unit, body);
        remove_dead_ops(unit, body);
        if promoted == 0 {
            break;
        }
    }
}
