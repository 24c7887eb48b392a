//! The order of simplifications before and after differentiation.

use crate::Request;
use crate::inlining::policy;
use crate::reports::parallel_loops::{ParallelLoopChange, ParallelLoops};
use gradus_analysis::{AliasOptions, CallGraph, Effects};
use gradus_ir::{Body, Flags, FuncId, LocId, Op, OpKind, Region, Unit};
use gradus_simplify::PassContext;
use std::collections::HashSet;

/// Normalises the primals of a closure for differentiation: invokes are separated, math functions with output
/// pointers become single-result ops, counted loops become `for`, and code is simplified. With `all` false,
/// only transformations required by differentiation run. Functions for which `kept` holds stay calls.
pub(crate) fn normalize_primals(
    unit: &mut Unit,
    closure: &CallGraph,
    functions: &[FuncId],
    all: bool,
    kept: impl Fn(FuncId) -> bool,
) {
    let rules = gradus_ad::calculus::address_taken_rules(unit);
    for &func in functions {
        if let Some(mut body) = unit.functions[func].body.take() {
            gradus_edit::normalize_invokes(unit, &mut body);
            gradus_edit::volatile_slots_to_plain(unit, &mut body);
            gradus_edit::memalign_to_aligned_alloc(unit, &mut body);
            gradus_ad::calculus::compare_with_library(unit, &mut body, &rules);
            gradus_ad::calculus::legalize_calls(unit, &mut body);
            gradus_ad::expand_by_value(unit, func, &mut body);
            unit.functions[func].body = Some(body);
        }
    }
    if all {
        policy::take_in_straight(unit, closure, functions, kept);
    }
    let effects = Effects::of(unit, closure);
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
            false => loops(unit, &mut body),
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
        closure: &CallGraph,
        functions: &[FuncId],
    ) {
        let called = closure.bodies(unit).map(|(func, _)| func);
        let called: Vec<FuncId> = called.filter(|func| !functions.contains(func)).collect();
        self.simplify_functions(unit, closure, &called);
        self.simplify_functions(unit, closure, functions);
        let shorter = policy::take_in_small(unit, closure, functions);
        self.simplify_functions(unit, closure, &shorter);
    }

    /// Simplifies functions as [`ParallelSimplify::simplify_with_callees`] does, but leaves callees alone.
    pub(crate) fn simplify(&mut self, unit: &mut Unit, functions: &[FuncId]) {
        let closure = CallGraph::of(unit, functions);
        self.simplify_functions(unit, &closure, functions);
    }

    /// Simplifies functions of a closure.
    fn simplify_functions(&mut self, unit: &mut Unit, closure: &CallGraph, functions: &[FuncId]) {
        let effects = Effects::of(unit, closure);
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

fn loops(unit: &mut Unit, body: &mut Body) {
    gradus_edit::loops_to_fors(unit, body);
}

/// Removes dead code of differentiation, including code that only computed an unused primal result.
pub(crate) fn clean_derivatives(unit: &mut Unit, functions: &[FuncId]) {
    for &func in functions {
        edit(unit, func, |unit, body| {
            gradus_edit::remove_dead_ops(unit, body)
        });
    }
    edit_counted(
        unit,
        functions,
        gradus_simplify::allocates_memory,
        gradus_simplify::remove_dead_memory,
    );
}

/// Computes common subexpressions of inlined code once.
pub(crate) fn cse_inlined(unit: &mut Unit, func: FuncId) {
    const ORDER: &[&str] = &[
        "promote",
        "cse",
        "load-forwarding",
        "cse",
        "load-forwarding",
        "cse",
        "load-forwarding",
        "cse",
        "dce",
    ];
    let effects = Effects::of(unit, &CallGraph::of(unit, &[func]));
    let alias = AliasOptions::default();
    edit(unit, func, |unit, body| {
        let facts = PassContext {
            function: Some(func),
            effects: &effects,
            alias: &alias,
        };
        let passes = ORDER.iter().filter_map(|name| gradus_simplify::pass(name));
        passes.filter(|pass| (pass.run)(unit, body, &facts)).count()
    });
}

/// Replaces indirect reads in loops of a closure by reads of gathered copies. Returns the original bodies.
/// Memory read by `combined` is not overwritten between its end and the reverse pass. Functions called by
/// iterations of parallel loops are left alone: the reverse of a copy updates adjoints that other
/// iterations may update.
pub(crate) fn lists(
    unit: &mut Unit,
    closure: &CallGraph,
    combined: Option<FuncId>,
) -> Vec<(FuncId, Box<Body>)> {
    let has_lists = |(_, body): &(FuncId, &Body)| gradus_simplify::has_indirect_loads(unit, body);
    let mut found: Vec<FuncId> = closure
        .bodies(unit)
        .filter(has_lists)
        .map(|(f, _)| f)
        .collect();
    if !found.is_empty() {
        let at_once = concurrent_functions(unit, closure);
        found.retain(|func| !at_once.contains(func));
    }
    for_derivatives(unit, closure, found, |unit, body, facts| {
        gradus_simplify::copy_index_arrays(unit, body, facts, combined != facts.function)
    })
}

/// Recomputes the results of min/max reductions in loops of a closure by the selected iteration
/// (argmin/argmax). Returns the original bodies.
pub(crate) fn winners(unit: &mut Unit, closure: &CallGraph) -> Vec<(FuncId, Box<Body>)> {
    let has_winners = |(_, body): &(FuncId, &Body)| gradus_simplify::has_argminmax(unit, body);
    let found = closure.bodies(unit).filter(has_winners);
    let found = found.map(|(func, _)| func).collect();
    for_derivatives(unit, closure, found, gradus_simplify::recompute_argminmax)
}

/// Edits functions for differentiation only. Returns the changed functions' original bodies.
fn for_derivatives(
    unit: &mut Unit,
    closure: &CallGraph,
    functions: Vec<FuncId>,
    run: impl Fn(&mut Unit, &mut Body, &PassContext<'_>) -> usize,
) -> Vec<(FuncId, Box<Body>)> {
    if functions.is_empty() {
        return Vec::new();
    }
    let effects = Effects::of(unit, closure);
    let alias = AliasOptions::default();
    let mut plain = Vec::new();
    for func in functions {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let facts = PassContext {
            function: Some(func),
            effects: &effects,
            alias: &alias,
        };
        let before = body.clone();
        if run(unit, &mut body, &facts) > 0 {
            plain.push((func, before));
        }
        unit.functions[func].body = Some(body);
    }
    plain
}

/// Returns the functions that may run several times concurrently: callees of parallel loops' iterations,
/// transitively.
fn concurrent_functions(unit: &Unit, closure: &CallGraph) -> HashSet<FuncId> {
    let calls = |body: &Body, region: Region| -> Vec<FuncId> {
        let callees = body.walk(region).filter_map(|op| unit.callee(body, op));
        callees.collect()
    };
    let mut open = Vec::new();
    for (_, body) in closure.bodies(unit) {
        let independent = |op: &Op| {
            let lp = matches!(body.kind(*op), OpKind::For { .. });
            lp && body.ops[*op].flags.has(Flags::INDEPENDENT)
        };
        for lp in body.walk(body.root()).filter(independent) {
            open.extend(calls(body, body.op_regions(lp)[0]));
        }
    }
    let mut found = HashSet::new();
    while let Some(func) = open.pop() {
        if found.insert(func)
            && let Some(body) = unit.functions[func].body.as_deref()
        {
            open.extend(calls(body, body.root()));
        }
    }
    found
}

/// Unswitches loops that test whether pointers equal their shadows.
pub(crate) fn unswitch(unit: &mut Unit, functions: &[FuncId]) {
    for &func in functions {
        edit(unit, func, |unit, body| {
            let loops = gradus_simplify::unswitch_all(unit, body);
            if loops > 0 {
                gradus_edit::remove_dead_ops(unit, body);
            }
            loops
        });
    }
}

/// Turns scatter loops into gather loops. Returns the number of loops for each function.
pub(crate) fn gather(unit: &mut Unit, functions: &[FuncId]) -> Vec<usize> {
    edit_counted(
        unit,
        functions,
        gradus_simplify::has_scatter_loops,
        gradus_simplify::scatter_to_gather,
    )
}

/// Source locations of ops.
pub(crate) type Locations = Vec<Option<LocId>>;

/// Privatises atomic adds of parallel loops per chunk. Returns the adds' source locations for each
/// function.
pub(crate) fn private_sums(unit: &mut Unit, functions: &[FuncId], few: bool) -> Vec<Locations> {
    let least = if few {
        1
    } else {
        gradus_simplify::PRIVATIZE_ADDS_MIN
    };
    edit_adds(unit, functions, |unit, body, _| {
        gradus_simplify::privatize_adds(unit, body, least)
    })
}

/// Turns parallel loops with conflicts between neighbouring iterations into two-phase schedules. Returns
/// the adds' source locations for each function.
pub(crate) fn rounds(unit: &mut Unit, functions: &[FuncId], few: bool) -> Vec<Locations> {
    let least = if few {
        1
    } else {
        gradus_simplify::PHASES_ADDS_MIN
    };
    edit_adds(unit, functions, |unit, body, facts| {
        gradus_simplify::schedule_in_phases(unit, body, facts, least)
    })
}

/// Edits the atomic adds of functions. Returns the source locations of adds that became plain, for each
/// function.
fn edit_adds(
    unit: &mut Unit,
    functions: &[FuncId],
    run: impl Fn(&mut Unit, &mut Body, &PassContext<'_>) -> Locations,
) -> Vec<Locations> {
    let sums_up = |_: &Unit, body: &Body| gradus_simplify::has_atomic_adds(body);
    edited(unit, functions, sums_up, run, Locations::len)
}

/// Unrolls and jams serial reductions. Returns the number of loops for each function.
pub(crate) fn jam(unit: &mut Unit, functions: &[FuncId]) -> Vec<usize> {
    edit_counted(
        unit,
        functions,
        gradus_simplify::has_serial_reduction_nest,
        gradus_simplify::unroll_and_jam,
    )
}

/// Versions update loops over array rows that the next outer iteration updates again: short rows run in a
/// loop that is not vectorised. Returns the number of loops for each function.
pub(crate) fn short_rows(unit: &mut Unit, functions: &[FuncId]) -> Vec<usize> {
    edit_counted(
        unit,
        functions,
        gradus_simplify::has_update_loops,
        gradus_simplify::version_short_loops,
    )
}

/// Staggers allocations: shadows of large blocks start at page offsets different from the blocks'. Returns
/// the number of blocks for each function.
pub(crate) fn stagger(unit: &mut Unit, functions: &[FuncId]) -> Vec<usize> {
    edit_counted(
        unit,
        functions,
        gradus_simplify::has_large_zeroed_allocations,
        gradus_simplify::stagger_allocations,
    )
}

/// Edits the functions for which `has` holds. Returns the number of edits for each.
fn edit_counted(
    unit: &mut Unit,
    functions: &[FuncId],
    has: fn(&Unit, &Body) -> bool,
    run: fn(&mut Unit, &mut Body, &PassContext<'_>) -> usize,
) -> Vec<usize> {
    edited(unit, functions, has, run, |loops| *loops)
}

/// Edits the functions for which `has` holds. Returns the result of `run` for each; `count` gives the
/// number of edits.
fn edited<R: Clone + Default>(
    unit: &mut Unit,
    functions: &[FuncId],
    has: impl Fn(&Unit, &Body) -> bool,
    run: impl Fn(&mut Unit, &mut Body, &PassContext<'_>) -> R,
    count: impl Fn(&R) -> usize,
) -> Vec<R> {
    let has_some = |&func: &FuncId| {
        let body = unit.functions[func].body.as_ref();
        body.is_some_and(|body| has(unit, body))
    };
    if !functions.iter().any(has_some) {
        return vec![R::default(); functions.len()];
    }
    let effects = Effects::of(unit, &CallGraph::of(unit, functions));
    let alias = AliasOptions::default();
    let edits = functions.iter().map(|&func| {
        let facts = PassContext {
            function: Some(func),
            effects: &effects,
            alias: &alias,
        };
        let mut told = R::default();
        edit(unit, func, |unit, body| {
            if has(unit, body) {
                told = run(unit, body, &facts);
            }
            if count(&told) > 0 {
                gradus_edit::remove_dead_ops(unit, body);
            }
            count(&told)
        });
        told
    });
    edits.collect()
}

/// Edits the body of a function, if it has one.
fn edit(unit: &mut Unit, func: FuncId, edit: impl FnOnce(&mut Unit, &mut Body) -> usize) -> usize {
    let Some(mut body) = unit.functions[func].body.take() else {
        return 0;
    };
    let count = edit(unit, &mut body);
    unit.functions[func].body = Some(body);
    count
}
