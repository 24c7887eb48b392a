//! The parallel part of the order: LLVM's passes → import → raise → simplify → gpu → lower → export.
//!
//! The passes work on functions with calls of a parallel runtime and on everything reachable. A region that cannot
//! be raised stays unchanged. A program without such calls is left alone.

use crate::reports::parallel::ParallelChanges;
use crate::requests::calls::replace_marker_loads;
use crate::run::{Run, Stop};
use crate::stages::export::export_parallel;
use crate::stages::gpu::lower_kernels;
use crate::stages::import::{self, has_parallel_code, import_parallel};
use crate::stages::pre_ad_llvm::optimize_before_raising;
use crate::stages::raise::{record_late_folds, refused_launches};
use crate::stages::serial_projection::{
    self, ParallelPrimals, undifferentiated_parallel_fns, worksharing_gradient_errors,
};
use crate::stages::simplify::{self, ParallelSimplify, fuse};
use crate::stages::{lower, lower_teams, raise};
use gradus_analysis::CallGraph;
use gradus_ir::FuncId;
use gradus_llvm::{Host, Imported};
use gradus_par::ThreadCountAnswers;
use gradus_raise::Orphans;
use std::collections::HashSet;
use std::rc::Rc;

/// Raises, simplifies and lowers the program's parallel code.
pub(super) fn optimize(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    if !has_parallel_code(host) {
        return Ok(());
    }
    optimize_before_raising(run, host)?;
    let (mut imported, roots) = run.pass(&import::PASS, |run| import_parallel(run, host))?;
    let unit = &mut imported.unit;
    let mut raised = run.pass(&raise::PASS, |run| {
        let raised = raise::raise(unit, &Orphans::LeaveUnraised);
        run.after_unit(&raise::PASS, unit)?;
        Ok(raised)
    })?;
    run.add_diagnostics(raised.remarks())?;
    refused_launches(run, &imported, &mut raised)?;
    let unit = &mut imported.unit;
    let mut changes = ParallelChanges::default();
    if raised.changed.is_empty() {
        run.add_parallel_report(unit, &raised, &changes);
        return Ok(());
    }
    let mut changed = raised.changed.clone();
    run.pass(&simplify::PASS, |run| {
        let closure = run.analyses.call_graph(unit, &roots);
        let others: Vec<FuncId> = roots
            .iter()
            .copied()
            .filter(|f| !changed.contains(f))
            .collect();
        let callers = gradus_simplify::inline_parallel_functions(unit, &closure, &changed, &others);
        changed.extend(callers);
        record_late_folds(unit, &mut run.analyses, &mut raised, &changed);
        let mut short = ParallelSimplify::of(run.request);
        short.moves = run.request.report.then(Vec::new);
        short.simplify_with_callees(unit, &mut run.analyses, &closure, &changed);
        fuse(run, unit, &changed, &mut short, &mut changes);
        changes.moves = short.moves.unwrap_or_default();
        run.after_unit(&simplify::PASS, unit)
    })?;
    lower_kernels(run, unit, &changed, true)?;
    let functions = run.pass(&lower::PASS, |run| {
        let (functions, forks) = lower::lower(run, unit, &changed)?;
        changes.forks = forks;
        Ok(functions)
    })?;
    run.add_parallel_report(unit, &raised, &changes);
    export_parallel(run, host, unit, &functions)
}

/// Prepares parallel code for differentiation.
///
/// Loop-invariant code is hoisted out of parallel loops; otherwise the derivatives would compute it in each
/// iteration, too. Parallel ops then become their serial projection. Loops with independent iterations keep
/// a flag, also in derivatives. Launches in differentiated code (`primals` and everything reachable) become
/// loops, too, with kernels split at barriers. Functions in `held` have registrations and stay functions.
/// `in_regions` are the functions run by regions. Returns the functions for
/// [`gradus_par::redirect_to_serial_clones`].
pub(super) fn project(
    run: &mut Run<'_>,
    imported: &mut Imported,
    primals: &[FuncId],
    held: &[String],
    in_regions: &[String],
) -> Result<HashSet<FuncId>, Stop> {
    replace_marker_loads(&mut imported.unit);
    // A function that merely requests derivatives may be called by a team elsewhere.
    let orphans = run.analyses.call_graph(&imported.unit, primals);
    let orphans = Orphans::RaiseOf(orphans.functions().iter().copied().collect());
    let raised = raise::raise(&mut imported.unit, &orphans);
    let closure = run.analyses.call_graph(&imported.unit, primals);
    let (unit, analyses) = (&imported.unit, &mut run.analyses);
    let errors = worksharing_gradient_errors(unit, analyses, &closure, in_regions);
    run.add_diagnostics(errors)?;
    let mut changed = raised.changed.clone();
    let only_run = undifferentiated_parallel_fns(&imported.unit, &closure, &changed);
    let name = |func: &FuncId| imported.unit.functions[*func].name.as_str();
    let of_one = raised.one_thread_remarks(&only_run.iter().map(name).collect());
    run.pass(&raise::PASS, |run| run.add_diagnostics(raised.remarks()))?;
    run.raised = raised;
    changed.retain(|func| !only_run.contains(func));
    run.pass(&simplify::PASS, |run| {
        let off = run.skips(&simplify::PASS);
        if !off && !changed.is_empty() {
            let open = changed.iter().copied();
            let open = open.filter(|func| !held.contains(&imported.unit.functions[*func].name));
            let open: Vec<FuncId> = open.collect();
            let callers = gradus_simplify::inline_parallel_functions_in_loops(
                &mut imported.unit,
                &closure,
                &open,
            );
            let fresh = callers.into_iter().filter(|func| !changed.contains(func));
            changed.extend(fresh.collect::<Vec<FuncId>>());
            let closure = run.analyses.call_graph(&imported.unit, &changed);
            ParallelSimplify::of(run.request).simplify_with_callees(
                &mut imported.unit,
                &mut run.analyses,
                &closure,
                &changed,
            );
        }
        run.after_unit(&simplify::PASS, &imported.unit)
    })?;
    changed.extend(launches_to_loops(run, imported, &closure)?);
    let unit = &mut imported.unit;
    let apart = changed
        .iter()
        .copied()
        .filter(|func| !closure.contains(*func));
    let entries: Vec<FuncId> = primals.iter().copied().chain(apart).collect();
    let nested = gradus_par::reachable_from_regions(unit);
    gradus_par::resolve_orphans(unit, &changed, &entries);
    let deterministic = run.request.options.deterministic;
    let teams = run.pass(&lower_teams::PASS, |run| {
        let teams =
            lower_teams::to_loops(unit, &mut run.analyses, &changed, &nested, !deterministic);
        if !teams.changed.is_empty() {
            let closure = run.analyses.call_graph(unit, &teams.changed);
            ParallelSimplify::of(run.request).simplify_with_callees(
                unit,
                &mut run.analyses,
                &closure,
                &teams.changed,
            );
        }
        run.after_unit(&lower_teams::PASS, unit)?;
        Ok(teams)
    })?;
    let answers = match (deterministic, teams.all) {
        (true, _) => ThreadCountAnswers::One,
        (_, true) => ThreadCountAnswers::Exact,
        _ => ThreadCountAnswers::OneWhereTeams,
    };
    let primals = ParallelPrimals {
        closure: &closure,
        changed: &changed,
        nested: &nested,
        answers,
    };
    serial_projection::project(run, unit, &primals, (!teams.all).then_some(of_one))
}

/// Turns launches in differentiated code into loops. Returns the functions that changed.
fn launches_to_loops(
    run: &mut Run<'_>,
    imported: &mut Imported,
    closure: &Rc<CallGraph>,
) -> Result<Vec<FuncId>, Stop> {
    let mut launches = gradus_raise::raise_launches(&mut imported.unit, closure.functions());
    refused_launches(run, imported, &mut launches)?;
    let unit = &mut imported.unit;
    if !launches.changed.is_empty() {
        run.pass(&simplify::PASS, |run| {
            ParallelSimplify::of(run.request).simplify_with_callees(
                unit,
                &mut run.analyses,
                closure,
                &launches.changed,
            );
            run.after_unit(&simplify::PASS, unit)
        })?;
        lower_kernels(run, unit, &launches.changed, false)?;
    }
    Ok(launches.changed)
}
