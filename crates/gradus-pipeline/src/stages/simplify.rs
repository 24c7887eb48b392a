//! Simplifies bodies before differentiation, and parallel code before lowering.

use crate::Request;
use crate::reports::parallel::ParallelChanges;
use crate::reports::parallel_loops::{ParallelLoopChange, ParallelLoops};
use crate::requests::Root;
use crate::requests::custom_derivatives::CustomDerivatives;
use crate::run::{Run, StagePass, StageRun, Stop};
use gradus_analysis::{AliasOptions, Analyses, CallGraph, PassContext, Stage};
use gradus_ir::{FuncId, Unit};
use std::collections::HashSet;
use std::rc::Rc;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "simplify",
    stage: Stage::Unit,
    switch: Some("simplify"),
    about: "simplifies bodies before differentiation, and parallel code before lowering",
    run: StageRun::Step,
};

/// Simplifies the bodies reached by a root that were not simplified before.
pub(crate) fn simplify_reached(
    run: &mut Run<'_>,
    unit: &mut Unit,
    root: &Root,
    rules: &CustomDerivatives,
    prepared: &mut HashSet<FuncId>,
) -> Result<(), Stop> {
    let closure = run.analyses.call_graph(unit, &[root.variant.func]);
    let functions = closure.functions().iter().copied();
    let fresh: Vec<FuncId> = functions.filter(|f| prepared.insert(*f)).collect();
    if fresh.is_empty() {
        return Ok(());
    }
    run.pass(&PASS, |run| {
        accesses_to_plain(unit, &fresh, run.is_serial);
        let all = !run.skips(&PASS);
        let kept = |func| rules.has(func);
        normalize_primals(unit, &mut run.analyses, &closure, &fresh, all, kept);
        run.after_unit(&PASS, unit)
    })
}

/// Turns volatile accesses of private stack slots into plain accesses, and in serial programs all volatile and atomic
/// accesses of floats.
fn accesses_to_plain(unit: &mut Unit, functions: &[FuncId], is_serial: bool) {
    for &func in functions {
        if let Some(mut body) = unit.functions[func].body.take() {
            gradus_edit::volatile_slots_to_plain(unit, &mut body);
            if is_serial {
                gradus_edit::float_accesses_to_plain(unit, &mut body);
            }
            unit.functions[func].body = Some(body);
        }
    }
}

/// Normalises the primals of a closure for differentiation: invokes are separated, math functions with output
/// pointers become single-result ops, counted loops become `for`, and code is simplified. With `all` false,
/// only transformations required by differentiation run. Functions for which `kept` holds stay calls.
fn normalize_primals(
    unit: &mut Unit,
    analyses: &mut Analyses,
    closure: &Rc<CallGraph>,
    functions: &[FuncId],
    all: bool,
    kept: impl Fn(FuncId) -> bool,
) {
    let rules = gradus_ad::calculus::address_taken_rules(unit);
    for &func in functions {
        if let Some(mut body) = unit.functions[func].body.take() {
            gradus_edit::normalize_invokes(unit, &mut body);
            gradus_edit::casts_to_loads(unit, &mut body);
            gradus_edit::memalign_to_aligned_alloc(unit, &mut body);
            gradus_ad::calculus::compare_with_library(unit, &mut body, &rules);
            gradus_ad::calculus::legalize_calls(unit, &mut body);
            gradus_ad::expand_by_value(unit, func, &mut body);
            unit.functions[func].body = Some(body);
        }
    }
    if all {
        gradus_simplify::inline_straight_line_functions(unit, closure, functions, kept);
    }
    let effects = analyses.effects_over(unit, closure);
    let alias = AliasOptions::default();
    for &func in functions {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let facts = PassContext {
            function: Some(func),
            effects: &effects,
            alias: &alias,
        };
        match all {
            true => {
                gradus_simplify::simplify(unit, &mut body, &facts);
            }
            false => {
                gradus_edit::loops_to_fors(unit, &mut body);
            }
        }
        gradus_edit::expose_exit_conditions(unit, &mut body);
        gradus_edit::expose_final_values(unit, &mut body);
        unit.functions[func].body = Some(body);
    }
}

/// Simplification of parallel code.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParallelSimplify {
    /// The facts used by alias analysis.
    pub alias: AliasOptions,
    /// Changes to parallel loops, if recorded.
    pub moves: Option<Vec<ParallelLoopChange>>,
}

impl ParallelSimplify {
    /// Creates the simplification from a request's options.
    pub(crate) fn of(request: &Request) -> ParallelSimplify {
        let trusted = !request.options.off.iter().any(|off| off == "race-freedom");
        ParallelSimplify {
            alias: AliasOptions {
                race_free: trusted,
                ..AliasOptions::default()
            },
            moves: None,
        }
    }

    /// Simplifies parallel code, across parallel ops. Callees are simplified first, because their short
    /// form shows best whether a function returns and which memory it reads. Small functions are inlined
    /// after all hoisting of calls out of loops and regions.
    pub(crate) fn simplify_with_callees(
        &mut self,
        unit: &mut Unit,
        analyses: &mut Analyses,
        closure: &Rc<CallGraph>,
        functions: &[FuncId],
    ) {
        let called = closure.bodies(unit).map(|(func, _)| func);
        let called: Vec<FuncId> = called.filter(|func| !functions.contains(func)).collect();
        self.simplify_functions(unit, analyses, closure, &called);
        self.simplify_functions(unit, analyses, closure, functions);
        let shorter = gradus_simplify::inline_small_functions(unit, closure, functions);
        self.simplify_functions(unit, analyses, closure, &shorter);
    }

    /// Simplifies functions as [`ParallelSimplify::simplify_with_callees`] does, but leaves callees alone.
    pub(crate) fn simplify(
        &mut self,
        unit: &mut Unit,
        analyses: &mut Analyses,
        functions: &[FuncId],
    ) {
        let closure = analyses.call_graph(unit, functions);
        self.simplify_functions(unit, analyses, &closure, functions);
    }

    /// Simplifies functions of a closure.
    fn simplify_functions(
        &mut self,
        unit: &mut Unit,
        analyses: &mut Analyses,
        closure: &Rc<CallGraph>,
        functions: &[FuncId],
    ) {
        if functions.is_empty() {
            // Not an error: nothing is left to simplify.
            return;
        }
        let effects = analyses.effects_over(unit, closure);
        for &func in functions {
            let Some(mut body) = unit.functions[func].body.take() else {
                continue;
            };
            let before = self.moves.is_some().then(|| ParallelLoops::of(unit, &body));
            let facts = PassContext {
                function: Some(func),
                effects: &effects,
                alias: &self.alias,
            };
            gradus_simplify::simplify_for_execution(unit, &mut body, &facts);
            if let (Some(moves), Some(before)) = (&mut self.moves, before) {
                moves.extend(before.changes_since(&body));
            }
            unit.functions[func].body = Some(body);
        }
    }
}

/// Fuses consecutive parallel loops and simplifies the fused loops.
pub(crate) fn fuse(
    run: &mut Run<'_>,
    unit: &mut Unit,
    changed: &[FuncId],
    short: &mut ParallelSimplify,
    changes: &mut ParallelChanges,
) {
    if run.is_off("loop-fusion") {
        return;
    }
    let joined = gradus_par::merge_branches_around_loops(unit, changed);
    short.simplify(unit, &mut run.analyses, &joined);
    changes.fused = gradus_par::fuse_parallel_loops(unit, &mut run.analyses, changed, &short.alias);
    let mut fused: Vec<FuncId> = changes.fused.iter().map(|fused| fused.func).collect();
    fused.dedup();
    short.simplify(unit, &mut run.analyses, &fused);
}
