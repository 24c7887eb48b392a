//! Replaces parallel ops by their serial projection before differentiation, and refuses programs whose derivative
//! would depend on the number of threads.
//!
//! Place in the flow: after `lower-teams`, as a part of the row `raise`.

use crate::reports::serialized::remarks;
use crate::requests::calls::{calls_with_named_functions, is_interface_name};
use crate::run::{Run, Stop};
use crate::stages::raise;
use gradus_analysis::{Analyses, CallGraph};
use gradus_ir::externals::{ExternalFn, OpenMpFn};
use gradus_ir::{Body, Code, Diagnostic, FuncId, LocId, Op, Unit};
use gradus_llvm::Host;
use gradus_par::ThreadCountAnswers;
use std::collections::HashSet;

/// The functions with parallel ops of a program to differentiate.
pub(crate) struct ParallelPrimals<'a> {
    /// The call graph of the primals.
    pub closure: &'a CallGraph,
    /// The functions with parallel ops.
    pub changed: &'a [FuncId],
    /// The functions reached from regions.
    pub nested: &'a HashSet<FuncId>,
    /// The replies to thread-count queries.
    pub answers: ThreadCountAnswers,
}

/// Replaces the parallel ops of the primals by their serial projection. `one_thread` are the remarks if teams have
/// one thread. Returns the functions for [`gradus_par::redirect_to_serial_clones`].
pub(crate) fn project(
    run: &mut Run<'_>,
    unit: &mut Unit,
    primals: &ParallelPrimals<'_>,
    one_thread: Option<Vec<Diagnostic>>,
) -> Result<HashSet<FuncId>, Stop> {
    let closure = primals.closure;
    run.pass(&raise::PASS, |run| {
        run.add_diagnostics(one_thread.unwrap_or_default())?;
        refuse_nested(run, unit, primals.changed, |func| {
            closure.contains(func) && primals.nested.contains(&func)
        })?;
        gradus_par::inline_into_parallel_loops(unit, primals.changed);
        let teams = gradus_par::stated_teams_to_loops(unit, primals.changed);
        let derived = teams.iter().filter(|(func, _)| closure.contains(*func));
        let refused = derived.map(|team| sized_team_error(unit, team)).collect();
        run.add_diagnostics(refused)?;
        let is_left = |func: &FuncId| teams.iter().all(|(team, _)| team != func);
        let changed: Vec<FuncId> = primals.changed.iter().copied().filter(is_left).collect();
        form_atomic_adds(unit, closure.functions());
        let projected = gradus_par::project(unit, &changed, primals.answers);
        report_thread_count_uses(run, unit, &projected, closure)?;
        run.after_unit(&raise::PASS, unit)?;
        Ok(projected.one_thread_functions)
    })
}

/// Reports the loops that a query for the thread count makes serial, and refuses differentiated functions in which
/// the count has unknown uses.
fn report_thread_count_uses(
    run: &mut Run<'_>,
    unit: &Unit,
    projected: &gradus_par::Serialized,
    closure: &CallGraph,
) -> Result<(), Stop> {
    let message = "a derivative runs this loop serially: the loop depends on the number of threads, and thread-count queries return one in a derivative";
    run.add_diagnostics(remarks(unit, &projected.serial, message))?;
    let derived = |places: &[(FuncId, Option<LocId>)]| -> Vec<(FuncId, Option<LocId>)> {
        let inside = places.iter().filter(|(func, _)| closure.contains(*func));
        inside.copied().collect()
    };
    let teams = derived(&projected.by_address);
    let errors = teams
        .iter()
        .map(|team| thread_count_pointer_error(unit, team));
    run.add_diagnostics(errors.collect())?;
    let calls = derived(&projected.unknown_calls);
    let errors = calls
        .iter()
        .map(|call| unknown_callee_thread_count_error(unit, call));
    run.add_diagnostics(errors.collect())?;
    let marks = derived(&projected.external_sentinels);
    let errors = marks.iter().map(|mark| counted_threads_error(unit, mark));
    run.add_diagnostics(errors.collect())
}

/// Turns loops that emulate atomic adds into atomic ops: an atomic read in a loop looks like waiting for
/// another thread.
fn form_atomic_adds(unit: &mut Unit, functions: &[FuncId]) {
    for &func in functions {
        if let Some(mut body) = unit.functions[func].body.take() {
            gradus_ad::calculus::recognize_atomic_add(unit, &mut body);
            unit.functions[func].body = Some(body);
        }
    }
}

/// Returns the functions with parallel ops that are run but not differentiated: their parallel ops stay.
/// Excluded are functions that request derivatives inside parallel ops. The list is empty if the program
/// queries the maximum number of threads, as differentiated code sees a single thread.
pub(crate) fn undifferentiated_parallel_fns(
    unit: &Unit,
    differentiated: &CallGraph,
    changed: &[FuncId],
) -> Vec<FuncId> {
    let bodies = || unit.functions.iter().filter_map(|(_, f)| f.body.as_deref());
    let asks = |body: &Body| {
        let callees = body
            .walk(body.root())
            .filter_map(|op| unit.callee(body, op));
        callees
            .filter_map(|f| unit.known(f))
            .any(|known| known == ExternalFn::OpenMp(OpenMpFn::MaxThreads))
    };
    if bodies().any(asks) {
        return Vec::new();
    }
    let is_only_run = |func: &FuncId| {
        let body = unit.functions[*func].body.as_deref();
        !differentiated.contains(*func)
            && body.is_some_and(|body| !has_request_in_parallel_op(unit, body))
    };
    changed.iter().copied().filter(is_only_run).collect()
}

/// Returns true if a body requests a derivative inside a parallel op.
fn has_request_in_parallel_op(unit: &Unit, body: &Body) -> bool {
    let owner = |op: &Op| body.owner(body.parent(*op)?);
    let asks = |op: &Op| {
        let callee = unit.callee(body, *op);
        callee.is_some_and(|f| is_interface_name(&unit.functions[f].name))
    };
    body.walk(body.root()).filter(asks).any(|op| {
        std::iter::successors(owner(&op), owner).any(|around| body.kind(around).is_parallel())
    })
}

/// Returns the functions run by the program's regions.
pub(crate) fn run_in_regions(host: &Host) -> Vec<String> {
    // Conditional regions, and regions with teams, use separate runtime calls.
    let begins = |name: &str| name.starts_with("__kmpc_fork_");
    let begun = host.functions_passed_to(&begins);
    let begun: Vec<&str> = begun.iter().map(String::as_str).collect();
    host.closure(&begun)
}

/// Returns diagnostics for calls in regions that request the derivative of a worksharing function: each
/// thread would compute the whole derivative.
pub(crate) fn worksharing_gradient_errors(
    unit: &Unit,
    analyses: &mut Analyses,
    closure: &CallGraph,
    in_regions: &[String],
) -> Vec<Diagnostic> {
    let shares: HashSet<FuncId> = closure
        .bodies(unit)
        .filter(|(_, body)| gradus_par::has_orphaned_worksharing(body))
        .map(|(func, _)| func)
        .collect();
    let mut findings = Vec::new();
    let asking = in_regions.iter().filter_map(|name| unit.function(name));
    for func in asking.filter(|_| !shares.is_empty()) {
        let function = &unit.functions[func];
        let Some(body) = function.body.as_deref() else {
            continue;
        };
        for (op, named) in calls_with_named_functions(unit, body) {
            let reached = analyses.call_graph(unit, &named);
            if reached.functions().iter().any(|f| shares.contains(f)) {
                let name = function.display_name();
                let message = "a worksharing function is differentiated inside a parallel region; each thread would compute the whole gradient";
                findings.push(
                    Diagnostic::error(Code::OpenMp, message)
                        .in_function(name)
                        .at(unit.span(body.ops[op].loc), "requested here")
                        .help("request the derivative outside the region, of a function that contains the region; or distribute the work outside the function, and differentiate the part of each thread"),
                );
            }
        }
    }
    findings
}

/// Refuses derivatives of regions with a `num_threads` clause in functions reached from other regions.
fn refuse_nested(
    run: &mut Run<'_>,
    unit: &Unit,
    changed: &[FuncId],
    is_nested: impl Fn(FuncId) -> bool,
) -> Result<(), Stop> {
    let teams = gradus_par::teams_with_stated_size(unit, changed);
    let inner = teams.iter().filter(|(func, _)| is_nested(*func));
    run.add_diagnostics(inner.map(|team| nested_team_error(unit, team)).collect())
}

/// Returns the diagnostic for a region whose threads cannot be ordered into serial code.
fn sized_team_error(unit: &Unit, (func, loc): &(FuncId, Option<LocId>)) -> Diagnostic {
    let function = &unit.functions[*func];
    let name = function.display_name();
    let message = "this region has a `num_threads` clause, and the threads wait for each other or share work, but a derivative would run the region with one thread";
    Diagnostic::error(Code::OpenMp, message)
        .in_function(name)
        .at(unit.span(*loc), "here")
        .help("remove `num_threads` if the program is correct with one thread, or distribute all work by `omp for`")
}

/// Returns the diagnostic for a region that has one thread when nested, and `num_threads` threads
/// otherwise.
fn nested_team_error(unit: &Unit, (func, loc): &(FuncId, Option<LocId>)) -> Diagnostic {
    let function = &unit.functions[*func];
    let name = function.display_name();
    let message = "this region has a `num_threads` clause, which has no effect in a nested region, and a derivative cannot determine whether the region is nested";
    Diagnostic::error(Code::OpenMp, message)
        .in_function(name)
        .at(unit.span(*loc), "here")
        .help("distribute the work by `omp for`, remove `num_threads`, or call the function outside other regions")
}

/// Returns the diagnostic for a region with one thread in a derivative while the program reads the full
/// thread count through a function pointer.
fn thread_count_pointer_error(unit: &Unit, (func, loc): &(FuncId, Option<LocId>)) -> Diagnostic {
    let function = &unit.functions[*func];
    let name = function.display_name();
    let message = "a derivative would run this region with one thread, but the program takes the address of `omp_get_max_threads` and may read the full number of threads";
    Diagnostic::error(Code::OpenMp, message)
        .in_function(name)
        .at(unit.span(*loc), "here")
        .help("call `omp_get_max_threads` directly")
}

/// Returns the diagnostic for an unknown callee that may return the full thread count while regions have
/// one thread in a derivative.
fn unknown_callee_thread_count_error(
    unit: &Unit,
    (func, loc): &(FuncId, Option<LocId>),
) -> Diagnostic {
    let function = &unit.functions[*func];
    let name = function.display_name();
    let message = "this unknown function may return the number of threads, but a derivative runs a region of this program with one thread; the program would read results of threads that did not run";
    Diagnostic::error(Code::OpenMp, message)
        .in_function(name)
        .at(unit.span(*loc), "here")
        .help("compile the file of the function together with this file, or remove the synchronisation of the region's threads (`flush`, atomic reads, tasks)")
}

/// Returns the diagnostic for a region with one thread in a derivative while the program may count the
/// threads by their writes.
fn counted_threads_error(unit: &Unit, (func, loc): &(FuncId, Option<LocId>)) -> Diagnostic {
    let function = &unit.functions[*func];
    let name = function.display_name();
    let message = "each thread of the region writes a separate location here, and the program may count the writes, but a derivative would run the region with one thread";
    Diagnostic::error(Code::OpenMp, message)
        .in_function(name)
        .at(unit.span(*loc), "here")
        .help("query the number of threads by `omp_get_num_threads`, or remove the synchronisation of the region's threads (`flush`, atomic reads, tasks)")
}
