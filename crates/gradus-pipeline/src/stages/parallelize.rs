//! The parallel part of the pipeline: early pipeline → import → raise → simplify → gpu → lower → export.
//!
//! The pass works on functions with calls of a parallel runtime and on everything reachable. A region that
//! cannot be raised stays unchanged. A program without such calls is left alone.

use crate::compile::early_parallel;
use crate::inlining::{into_loops, policy};
use crate::reports::parallel::ParallelChanges;
use crate::reports::{kernels, parallel};
use crate::requests::calls::{calls_with_named_functions, is_interface_name, replace_marker_loads};
use crate::run::{Run, Stop};
use crate::stages::lower_teams;
use crate::stages::simplify::ParallelSimplify;
use crate::wire::reply::Output;
use crate::{OutputKind, ParallelTarget};
use gradus_analysis::{CallGraph, Effects};
use gradus_ir::externals::{
    ExternalFn, GpuFn, KERNEL_PREFIX, OpenMpFn, SHARED_DYNAMIC_PREFIX, SHARED_PREFIX, lookup,
};
use gradus_ir::{
    Body, Code, Diagnostic, Flags, FuncId, Linkage, LocId, Op, OpKind, Severity, Unit,
};
use gradus_llvm::{Host, Imported};
use gradus_par::{ForkDecision, ThreadCountAnswers};
use gradus_raise::{Orphans, Outcome, Raised, Reason, RegionRecord};
use std::collections::HashSet;

/// Returns true if a name belongs to a parallel runtime.
fn is_parallel_name(name: &str) -> bool {
    matches!(
        lookup(name),
        Some(ExternalFn::OpenMp(_) | ExternalFn::Fork(_) | ExternalFn::Kernel(GpuFn::Launch))
    )
}

/// Returns true if the program has parallel code.
pub(crate) fn has_parallel_code(host: &Host) -> bool {
    !host.functions_that_use(&is_parallel_name).is_empty()
}

/// Raises, simplifies and lowers the program's parallel code.
pub(crate) fn parallel(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    if !has_parallel_code(host) {
        return Ok(());
    }
    early_parallel(run, host)?;
    let (mut imported, roots) = run.pass("import", |run| import(run, host))?;
    let unit = &mut imported.unit;
    let mut raised = run.pass("raise", |run| {
        let raised = raise(unit, &Orphans::LeaveUnraised);
        run.after_unit("raise", unit)?;
        Ok(raised)
    })?;
    run.add_diagnostics(raised.remarks())?;
    refused_launches(run, &imported, &mut raised)?;
    let unit = &mut imported.unit;
    let mut happened = ParallelChanges::default();
    if raised.changed.is_empty() {
        report(run, unit, &raised, &happened);
        return Ok(());
    }
    let mut changed = raised.changed.clone();
    run.pass("simplify", |run| {
        let closure = CallGraph::of(unit, &roots);
        let others: Vec<FuncId> = roots
            .iter()
            .copied()
            .filter(|f| !changed.contains(f))
            .collect();
        let callers = policy::take_in(unit, &closure, &changed, &others);
        changed.extend(callers);
        record_late_folds(unit, &mut raised, &changed);
        let mut short = ParallelSimplify::of(run.request);
        short.moves = is_reported(run).then(Vec::new);
        short.simplify_with_callees(unit, &closure, &changed);
        fuse(run, unit, &changed, &mut short, &mut happened);
        happened.moves = short.moves.unwrap_or_default();
        run.after_unit("simplify", unit)
    })?;
    lower_kernels(run, unit, &changed, true)?;
    let functions = run.pass("lower", |run| {
        let (functions, forks) = lower(run, unit, &changed)?;
        happened.forks = forks;
        Ok(functions)
    })?;
    report(run, unit, &raised, &happened);
    run.pass("export", |run| {
        run.value_or_stop(host.export(unit, &functions))?;
        host.drop_kernels();
        run.add_diagnostics(queries_outside_kernels(host))?;
        run.value_or_stop(host.verify())?;
        run.after_host("export", host)
    })
}

/// Fuses consecutive parallel loops and simplifies the fused loops.
fn fuse(
    run: &Run<'_>,
    unit: &mut Unit,
    changed: &[FuncId],
    short: &mut ParallelSimplify,
    happened: &mut ParallelChanges,
) {
    if run
        .request
        .options
        .off
        .iter()
        .any(|off| off == "loop-fusion")
    {
        return;
    }
    let joined = gradus_par::merge_branches_around_loops(unit, changed);
    short.simplify(unit, &joined);
    happened.fused = gradus_par::fuse_parallel_loops(unit, changed, &short.alias);
    let mut fused: Vec<FuncId> = happened.fused.iter().map(|fused| fused.func).collect();
    fused.dedup();
    short.simplify(unit, &fused);
}

/// Turns teams into parallel loops if inlining made the fold visible. Updates the records of regions no
/// longer run as teams.
fn record_late_folds(unit: &mut Unit, raised: &mut Raised, changed: &[FuncId]) {
    let folded = gradus_raise::fold_again(unit, raised, changed);
    if folded.is_empty() {
        return;
    }
    let roots = unit
        .functions
        .iter()
        .filter(|(_, f)| f.linkage != Linkage::Internal);
    let roots: Vec<FuncId> = roots.map(|(func, _)| func).collect();
    let closure = CallGraph::of(unit, &roots);
    let teams = closure.bodies(unit).flat_map(|(_, body)| {
        let is_team = |op: &Op| matches!(body.kind(*op), OpKind::Spmd { .. });
        let teams = body.walk(body.root()).filter(is_team);
        teams.filter_map(|op| unit.span(body.ops[op].loc))
    });
    let teams: Vec<_> = teams.collect();
    for record in &mut raised.regions {
        let is_loops = |span| folded.contains(span) && !teams.contains(span);
        if matches!(record.outcome, Outcome::Team(_)) && record.span.as_ref().is_some_and(is_loops)
        {
            record.outcome = Outcome::Loops;
        }
    }
}

/// Refuses launches that cannot become grids, together with the reasons that kept the kernels from being
/// imported.
fn refused_launches(
    run: &mut Run<'_>,
    imported: &Imported,
    raised: &mut Raised,
) -> Result<(), Stop> {
    let refused = std::mem::take(&mut raised.refused);
    if refused.is_empty() {
        return Ok(());
    }
    let unread = imported.refused.iter();
    let unread = unread.filter(|(func, _)| unit_name(imported, *func).starts_with(KERNEL_PREFIX));
    let reasons: Vec<_> = unread
        .filter_map(|(func, _)| imported.refusal(*func))
        .collect();
    run.add_diagnostics(match reasons.is_empty() {
        true => refused,
        false => reasons,
    })
}

/// Returns diagnostics for functions that query a thread index or use block memory but were not inlined
/// into a kernel.
fn queries_outside_kernels(host: &Host) -> Vec<Diagnostic> {
    let asks = |name: &str| {
        let of_thread =
            matches!(lookup(name), Some(ExternalFn::Kernel(f)) if f.depends_on_thread());
        of_thread || name.starts_with(SHARED_PREFIX) || name.starts_with(SHARED_DYNAMIC_PREFIX)
    };
    let left = host.functions_that_use(&asks).into_iter();
    let findings = left.map(|name| {
        let shown = host.source_name(&name).unwrap_or(name);
        let message = format!(
            "{shown} uses a thread index or shared memory, but is not inlined into a kernel"
        );
        Diagnostic::error(Code::KernelRefused, message)
            .in_function(shown)
            .help("call the function directly, without a function pointer or recursion")
    });
    findings.collect()
}

fn unit_name(imported: &Imported, func: FuncId) -> &str {
    &imported.unit.functions[func].name
}

/// Returns the record of an op that runs serially, and why.
fn serial_record(unit: &Unit, func: FuncId, body: &Body, op: Op, why: &str) -> RegionRecord {
    let span = unit.span(body.ops[op].loc);
    RegionRecord {
        function: unit.functions[func].name.clone(),
        span: span.clone(),
        outcome: Outcome::Serial(Reason {
            text: why.to_string(),
            span,
        }),
        constructs: Vec::new(),
    }
}

/// Raises all recognised constructs. Loops merely declared independent become parallel if their carried
/// values may be combined in any order.
fn raise(unit: &mut Unit, orphans: &Orphans) -> Raised {
    let mut raised = gradus_raise::raise(unit, orphans);
    for &func in &raised.changed {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        for op in gradus_par::restore(unit, &mut body) {
            let flags = &mut body.ops[op].flags;
            *flags = flags.without(Flags::INDEPENDENT);
            let text = "`gr_for`: an iteration uses a value of another iteration";
            raised
                .regions
                .push(serial_record(unit, func, &body, op, text));
        }
        gradus_par::convert_task_loops(unit, &mut body);
        unit.functions[func].body = Some(body);
    }
    raised
}

/// Lowers the kernels of the changed functions to loops and simplifies the loops. `race_free` assumes no
/// data races between threads; the assumption holds for primal code only, since derivatives have races of
/// their own.
fn lower_kernels(
    run: &mut Run<'_>,
    unit: &mut Unit,
    changed: &[FuncId],
    race_free: bool,
) -> Result<(), Stop> {
    run.pass("gpu", |run| {
        let effects = Effects::of(unit, &CallGraph::of(unit, changed));
        let off = |name: &str| run.request.options.off.iter().any(|o| o == name);
        let options = gradus_gpu::Options {
            race_free,
            remove_barriers: !off("barrier-removal"),
            recompute: !off("min-cut"),
            thread_interchange: !off("thread-interchange"),
            // A derivative would add through both reads.
            clamp_split: race_free && !off("clamp-split"),
            uniform_guards: !off("uniform-guards"),
            // Derivatives save values between launches.
            fuse_launches: race_free && !off("launch-fusion"),
            // A speculative read decides nothing, and has no derivative.
            speculative_search: race_free && !off("speculative-search"),
            sparse_thread_loops: !off("sparse-thread-loops"),
            cooperative_threads: race_free && !off("cooperative-threads"),
            ..gradus_gpu::Options::default()
        };
        let lowered = gradus_gpu::lower(unit, changed, &effects, &options);
        if run.request.emit.contains(&OutputKind::KernelReport) {
            run.early_outputs.push(Output {
                kind: OutputKind::KernelReport,
                bytes: kernels::text(&lowered.kernels).into_bytes(),
            });
        }
        run.add_diagnostics(lowered.diagnostics)?;
        if !lowered.changed.is_empty() {
            let closure = CallGraph::of(unit, &lowered.changed);
            ParallelSimplify::of(run.request).simplify_with_callees(
                unit,
                &closure,
                &lowered.changed,
            );
        }
        run.after_unit("gpu", unit)
    })
}

/// Prepares parallel code for differentiation.
///
/// Loop-invariant code is hoisted out of parallel loops; otherwise the derivatives would compute it in each
/// iteration, too. Parallel ops then become their serial projection. Loops with independent iterations keep
/// a flag, also in derivatives. Launches in differentiated code (`primals` and everything reachable) become
/// loops, too, with kernels split at barriers. Functions in `held` have registrations and stay functions.
/// `in_regions` are the functions run by regions. Returns the functions for
/// [`gradus_par::redirect_to_serial_clones`].
pub(crate) fn project(
    run: &mut Run<'_>,
    imported: &mut Imported,
    primals: &[FuncId],
    held: &[String],
    in_regions: &[String],
) -> Result<HashSet<FuncId>, Stop> {
    replace_marker_loads(&mut imported.unit);
    // A function that merely requests derivatives may be called by a team elsewhere.
    let orphans = CallGraph::of(&imported.unit, primals);
    let orphans = Orphans::RaiseOf(orphans.functions().iter().copied().collect());
    let raised = raise(&mut imported.unit, &orphans);
    let closure = CallGraph::of(&imported.unit, primals);
    run.add_diagnostics(worksharing_gradient_errors(
        &imported.unit,
        &closure,
        in_regions,
    ))?;
    let mut changed = raised.changed.clone();
    let only_run = undifferentiated_parallel_fns(&imported.unit, &closure, &changed);
    let name = |func: &FuncId| unit_name(imported, *func);
    let of_one = raised.one_thread_remarks(&only_run.iter().map(name).collect());
    run.pass("raise", |run| run.add_diagnostics(raised.remarks()))?;
    run.raised = raised;
    changed.retain(|func| !only_run.contains(func));
    run.pass("simplify", |run| {
        let off = run.request.options.off.iter().any(|o| o == "simplify");
        if !off && !changed.is_empty() {
            let open = changed.iter().copied();
            let open = open.filter(|func| !held.contains(&imported.unit.functions[*func].name));
            let open: Vec<FuncId> = open.collect();
            let callers = policy::take_in_short(&mut imported.unit, &closure, &open);
            let fresh = callers.into_iter().filter(|func| !changed.contains(func));
            changed.extend(fresh.collect::<Vec<FuncId>>());
            let closure = CallGraph::of(&imported.unit, &changed);
            ParallelSimplify::of(run.request).simplify_with_callees(
                &mut imported.unit,
                &closure,
                &changed,
            );
        }
        run.after_unit("simplify", &imported.unit)
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
    let teams = run.pass("lower-teams", |run| {
        let teams = lower_teams::to_loops(unit, &changed, &nested, !deterministic);
        if !teams.changed.is_empty() {
            let closure = CallGraph::of(unit, &teams.changed);
            ParallelSimplify::of(run.request).simplify_with_callees(unit, &closure, &teams.changed);
        }
        run.after_unit("lower-teams", unit)?;
        Ok(teams)
    })?;
    let answers = match (deterministic, teams.all) {
        (true, _) => ThreadCountAnswers::One,
        (_, true) => ThreadCountAnswers::Exact,
        _ => ThreadCountAnswers::OneWhereTeams,
    };
    run.pass("raise", |run| {
        if !teams.all {
            run.add_diagnostics(of_one)?;
        }
        refuse_nested(run, unit, &changed, |func| {
            closure.contains(func) && nested.contains(&func)
        })?;
        into_loops::take_in(unit, &changed);
        let teams = gradus_par::stated_teams_to_loops(unit, &changed);
        let derived = teams.iter().filter(|(func, _)| closure.contains(*func));
        let refused = derived.map(|team| sized_team_error(unit, team)).collect();
        run.add_diagnostics(refused)?;
        changed.retain(|func| teams.iter().all(|(team, _)| team != func));
        form_atomic_adds(unit, closure.functions());
        let projected = gradus_par::project(unit, &changed, answers);
        report_thread_count_uses(run, unit, &projected, &closure)?;
        run.after_unit("raise", unit)?;
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
fn undifferentiated_parallel_fns(
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

/// Lowers parallel code after differentiation: independent loops become parallel again, then calls of the
/// runtime library. Returns `functions` and the functions emitted by lowering.
pub(crate) fn lower_parallel(
    run: &mut Run<'_>,
    unit: &mut Unit,
    functions: &[FuncId],
) -> Result<Vec<FuncId>, Stop> {
    run.pass("lower", |run| {
        // Includes functions that are merely run, and functions with forks: a task is not deleted later for
        // an unused result.
        let is_parallel = |func: &FuncId| {
            let body = unit.functions[*func].body.as_deref();
            body.is_some_and(|body| {
                let mut ops = body.walk(body.root());
                ops.any(|op| body.kind(op).is_parallel() || gradus_par::is_fork(unit, body, op))
            })
        };
        let parallel: Vec<FuncId> = functions.iter().copied().filter(is_parallel).collect();
        ParallelSimplify::of(run.request).simplify(unit, &parallel);
        let mut serial_loops = Vec::new();
        for &func in functions {
            if let Some(mut body) = unit.functions[func].body.take() {
                let text = "an iteration uses a value of another iteration";
                let stay = gradus_par::restore(unit, &mut body).into_iter();
                serial_loops.extend(stay.map(|op| serial_record(unit, func, &body, op, text)));
                unit.functions[func].body = Some(body);
            }
        }
        let (functions, forks) = lower(run, unit, functions)?;
        let mut raised = std::mem::take(&mut run.raised);
        raised.regions.extend(serial_loops);
        let name = |func: &FuncId| unit.functions[*func].name.as_str();
        let names: HashSet<&str> = functions.iter().map(name).collect();
        // Regions of functions with preserved bodies are raised again, with the rest of the program.
        let is_told = |region: &RegionRecord| names.contains(region.function.as_str());
        raised.regions.retain(is_told);
        let happened = ParallelChanges {
            forks,
            ..ParallelChanges::default()
        };
        report(run, unit, &raised, &happened);
        Ok(functions)
    })
}

/// Imports the functions that call a parallel runtime, and their callers, with everything reachable.
/// Returns the unit and these functions.
fn import(run: &mut Run<'_>, host: &mut Host) -> Result<(Imported, Vec<FuncId>), Stop> {
    let users: HashSet<String> = host
        .functions_that_use(&is_parallel_name)
        .into_iter()
        .collect();
    let callers = host.functions_that_use(&|name| users.contains(name));
    let defined = host.defined_functions();
    let kernels = defined
        .iter()
        .filter(|name| name.starts_with(KERNEL_PREFIX));
    let names = users.iter().chain(&callers).chain(kernels);
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let imported = run.value_or_stop(host.import(&names))?;
    run.after_unit("import", &imported.unit)?;
    let roots = names.iter().filter_map(|name| imported.unit.function(name));
    let roots = roots.collect();
    Ok((imported, roots))
}

/// Lowers the parallel ops of the changed functions. Returns all functions to export, and the fork
/// conditions of loops.
fn lower(
    run: &mut Run<'_>,
    unit: &mut Unit,
    changed: &[FuncId],
) -> Result<(Vec<FuncId>, Vec<ForkDecision>), Stop> {
    if run.request.options.deterministic {
        // Forks call copies of functions reachable from here.
        let reached = CallGraph::of(unit, changed).functions().to_vec();
        let teams = gradus_par::stated_teams_to_loops(unit, &reached);
        let message = "this region stays parallel in spite of `--deterministic`: the threads of the `num_threads` clause wait for each other or share work, and the result may depend on the order of threads";
        run.add_diagnostics(remarks(unit, &teams, message))?;
        let serialised = gradus_par::serialize_order_dependent(unit, &reached);
        run.add_diagnostics(remarks(unit, &serialised, DETERMINISTIC_REASON))?;
    }
    let options = gradus_par::Options {
        target: match run.request.options.target {
            ParallelTarget::Runtime | ParallelTarget::OpenMp => gradus_par::Target::Runtime,
            ParallelTarget::Words => gradus_par::Target::Intrinsics,
        },
        race_free: ParallelSimplify::of(run.request).alias.race_free,
        ..gradus_par::Options::default()
    };
    let lowered = gradus_par::lower(unit, changed, &options);
    let functions: Vec<FuncId> = changed.iter().copied().chain(lowered.made).collect();
    let broken = functions
        .iter()
        .flat_map(|func| gradus_ir::verify_function(unit, *func));
    run.add_diagnostics(broken.collect())?;
    run.after_unit("lower", unit)?;
    Ok((functions, lowered.forks))
}

/// Returns the diagnostic for a region whose threads cannot be ordered into serial code.
fn sized_team_error(unit: &Unit, (func, loc): &(FuncId, Option<LocId>)) -> Diagnostic {
    let function = &unit.functions[*func];
    let name = function.source_name.as_ref().unwrap_or(&function.name);
    let message = "this region has a `num_threads` clause, and the threads wait for each other or share work, but a derivative would run the region with one thread";
    Diagnostic::error(Code::OpenMp, message)
        .in_function(name)
        .at(unit.span(*loc), "here")
        .help("remove `num_threads` if the program is correct with one thread, or distribute all work by `omp for`")
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
fn worksharing_gradient_errors(
    unit: &Unit,
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
            let reached = CallGraph::of(unit, &named);
            if reached.functions().iter().any(|f| shares.contains(f)) {
                let name = function.source_name.as_ref().unwrap_or(&function.name);
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

/// Turns launches in differentiated code into loops. Returns the functions that changed.
fn launches_to_loops(
    run: &mut Run<'_>,
    imported: &mut Imported,
    closure: &CallGraph,
) -> Result<Vec<FuncId>, Stop> {
    let mut launches = gradus_raise::raise_launches(&mut imported.unit, closure.functions());
    refused_launches(run, imported, &mut launches)?;
    let unit = &mut imported.unit;
    if !launches.changed.is_empty() {
        run.pass("simplify", |run| {
            ParallelSimplify::of(run.request).simplify_with_callees(
                unit,
                closure,
                &launches.changed,
            );
            run.after_unit("simplify", unit)
        })?;
        lower_kernels(run, unit, &launches.changed, false)?;
    }
    Ok(launches.changed)
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

/// Returns the diagnostic for a region that has one thread when nested, and `num_threads` threads
/// otherwise.
fn nested_team_error(unit: &Unit, (func, loc): &(FuncId, Option<LocId>)) -> Diagnostic {
    let function = &unit.functions[*func];
    let name = function.source_name.as_ref().unwrap_or(&function.name);
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
    let name = function.source_name.as_ref().unwrap_or(&function.name);
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
    let name = function.source_name.as_ref().unwrap_or(&function.name);
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
    let name = function.source_name.as_ref().unwrap_or(&function.name);
    let message = "each thread of the region writes a separate location here, and the program may count the writes, but a derivative would run the region with one thread";
    Diagnostic::error(Code::OpenMp, message)
        .in_function(name)
        .at(unit.span(*loc), "here")
        .help("query the number of threads by `omp_get_num_threads`, or remove the synchronisation of the region's threads (`flush`, atomic reads, tasks)")
}

/// The reason for serial execution under `--deterministic`.
pub(crate) const DETERMINISTIC_REASON: &str = "this runs serially (`--deterministic`): the result may depend on the order of threads, due to an atomic update, a lock, the number of threads or an unknown call";

/// Returns remarks on serialised ops, with the reason.
pub(crate) fn remarks(
    unit: &Unit,
    serialised: &[(FuncId, Option<LocId>)],
    message: &str,
) -> Vec<Diagnostic> {
    let remark = |(func, loc): &(FuncId, Option<LocId>)| {
        let function = &unit.functions[*func];
        let name = function.source_name.as_ref().unwrap_or(&function.name);
        let finding = Diagnostic {
            severity: Severity::Note,
            ..Diagnostic::warning(Code::ParallelNotRaised, message.to_string())
        };
        finding.in_function(name).at(unit.span(*loc), "here")
    };
    serialised.iter().map(remark).collect()
}

fn is_reported(run: &Run<'_>) -> bool {
    run.request.emit.contains(&OutputKind::ParallelReport)
}

/// Appends the outcome of each region, by source line, to the parallel report.
fn report(run: &mut Run<'_>, unit: &Unit, raised: &Raised, happened: &ParallelChanges) {
    if !is_reported(run) {
        return;
    }
    let bytes = parallel::text(unit, raised, happened).into_bytes();
    let kind = OutputKind::ParallelReport;
    match run.early_outputs.iter_mut().find(|o| o.kind == kind) {
        Some(output) => output.bytes.extend(bytes),
        None => run.early_outputs.push(Output { kind, bytes }),
    }
}
