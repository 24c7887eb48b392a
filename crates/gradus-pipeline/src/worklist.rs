//! The worklist of derivatives: every root, and the variants of callees required by each.
//!
//! A root is emitted once every callee of its primal has a body; a derivative requested inside another is
//! therefore emitted first (forward over reverse). Within a root, variants are emitted in the order of the
//! requirements. A variant is declared before its body exists, so recursion needs no special case.
//! Diagnostics of all roots are gathered before the run stops.

use crate::derivative_thunks;
use crate::derivative_thunks::Census;
use crate::in_kernels;
use crate::requests::custom_derivatives;
use crate::requests::custom_derivatives::CustomDerivatives;
use crate::requests::{Root, Roots};
use crate::run::{Run, Stop};
use crate::stages::parallelize::{DETERMINISTIC_REASON, remarks};
use crate::stages::simplify;
use crate::switches;
use gradus_ad::{ConcurrencySummary, Derived, Mode, ProgramFacts, Report, Variant, differentiate};
use gradus_analysis::{CallGraph, Callee};
use gradus_ir::{Body, Code, Diagnostic, FuncId, Unit};
use std::collections::{BTreeSet, HashMap, HashSet};

/// An emitted derivative, for the report.
#[derive(Clone, Debug)]
pub(crate) struct DerivativeRecord {
    /// The variant.
    pub variant: Variant,
    /// The function.
    pub func: FuncId,
    /// The decisions.
    pub report: Report,
    /// The number of scatter loops turned into gather loops.
    pub gather_loops: usize,
    /// The pairs of parameters compared by a run-time alias check ([`Derived::disjoint_pairs`]).
    pub checked_pairs: Vec<(usize, usize)>,
}

/// Emits all roots and their required variants. Returns the derivatives of each root, in the order of the
/// roots, the root itself first.
pub(crate) fn differentiate_all(
    run: &mut Run<'_>,
    unit: &mut Unit,
    roots: &Roots,
    rules: &CustomDerivatives,
) -> Result<Vec<Vec<DerivativeRecord>>, Stop> {
    let mut made: Vec<Vec<DerivativeRecord>> = vec![Vec::new(); roots.list.len()];
    let mut pending: Vec<usize> = (0..roots.list.len()).collect();
    let (mut prepared, mut failed) = (HashSet::new(), false);
    while !pending.is_empty() {
        let ready = ready_roots(unit, roots, &pending);
        if ready.is_empty() {
            return Err(run.refuse(cycle(unit, &roots.list[pending[0]])));
        }
        pending.retain(|at| !ready.contains(at));
        for at in ready {
            let root = &roots.list[at];
            simplify_reached(run, unit, root, rules, &mut prepared)?;
            Roots::take_variant_symbol(unit, root);
            let winners = find_winners(run, unit, root)?;
            let mut plain = copy_lists(run, unit, root)?;
            // Restored last: a body changed by both passes returns to the state before either.
            plain.extend(winners);
            let list = make(run, unit, root, rules);
            for (func, body) in plain {
                unit.functions[func].body = Some(body);
            }
            match list {
                Ok(list) => {
                    let functions: Vec<FuncId> = list.iter().map(|m| m.func).collect();
                    run.pass("dead-derivative-code", |run| {
                        simplify::clean_derivatives(unit, &functions);
                        run.after_unit("dead-derivative-code", unit)
                    })?;
                    Roots::release_variant_symbols(unit, &functions);
                    made[at] = list;
                }
                Err(Stop) => {
                    Roots::release_variant_symbols(unit, &[root.func]);
                    failed = true;
                }
            }
        }
        if failed {
            return Err(Stop);
        }
    }
    run.pass("unswitch", |run| {
        let functions: Vec<FuncId> = made.iter().flatten().map(|m| m.func).collect();
        simplify::unswitch(unit, &functions);
        run.after_unit("unswitch", unit)
    })?;
    plain_adds(run, unit, &mut made)?;
    gather(run, unit, &mut made)?;
    jam(run, unit, &made)?;
    short_rows(run, unit, &made)?;
    stagger(run, unit, &made)?;
    Ok(made)
}

/// Turns scatter loops into gather loops after all derivatives are emitted: differentiation reads plain
/// loops.
fn gather(
    run: &mut Run<'_>,
    unit: &mut Unit,
    made: &mut [Vec<DerivativeRecord>],
) -> Result<(), Stop> {
    if run
        .request
        .options
        .off
        .iter()
        .any(|o| o == "scatter-to-gather")
    {
        return Ok(());
    }
    run.pass("scatter-to-gather", |run| {
        let functions: Vec<FuncId> = made.iter().flatten().map(|m| m.func).collect();
        let gathered = simplify::gather(unit, &functions);
        for (made, count) in made.iter_mut().flatten().zip(gathered) {
            made.gather_loops = count;
        }
        run.after_unit("scatter-to-gather", unit)
    })
}

/// Replaces atomic adds in parallel loops by plain adds, after the last differentiation.
fn plain_adds(
    run: &mut Run<'_>,
    unit: &mut Unit,
    made: &mut [Vec<DerivativeRecord>],
) -> Result<(), Stop> {
    if run.request.may_be_read_again() {
        return Ok(());
    }
    let passes: [(
        &str,
        fn(&mut Unit, &[FuncId], bool) -> Vec<simplify::Locations>,
    ); 2] = [
        ("privatize-adds", simplify::private_sums),
        ("two-phase-adds", simplify::rounds),
    ];
    let few = run.request.options.few_adds;
    for (way, (name, pass)) in passes.into_iter().enumerate() {
        if run.request.options.off.iter().any(|o| o == name) {
            continue;
        }
        run.pass(name, |run| {
            let functions: Vec<FuncId> = made.iter().flatten().map(|m| m.func).collect();
            let adds = pass(unit, &functions, few);
            for (made, adds) in made.iter_mut().flatten().zip(adds) {
                let spans = adds.into_iter().filter_map(|loc| unit.span(loc));
                let lines: Vec<u32> = spans.map(|span| span.line).collect();
                made.report.move_atomic_adds(&lines, way);
            }
            run.after_unit(name, unit)
        })?;
    }
    Ok(())
}

/// Unrolls and jams serial reductions of derivatives, after all are emitted.
fn jam(run: &mut Run<'_>, unit: &mut Unit, made: &[Vec<DerivativeRecord>]) -> Result<(), Stop> {
    if run
        .request
        .options
        .off
        .iter()
        .any(|o| o == "unroll-and-jam")
    {
        return Ok(());
    }
    run.pass("unroll-and-jam", |run| {
        let functions: Vec<FuncId> = made.iter().flatten().map(|m| m.func).collect();
        simplify::jam(unit, &functions);
        run.after_unit("unroll-and-jam", unit)
    })
}

/// Versions short update loops, after the last differentiation.
fn short_rows(
    run: &mut Run<'_>,
    unit: &mut Unit,
    made: &[Vec<DerivativeRecord>],
) -> Result<(), Stop> {
    let off = run
        .request
        .options
        .off
        .iter()
        .any(|o| o == "short-trip-versioning");
    if off || run.request.may_be_read_again() {
        return Ok(());
    }
    run.pass("short-trip-versioning", |run| {
        let functions: Vec<FuncId> = made.iter().flatten().map(|m| m.func).collect();
        simplify::short_rows(unit, &functions);
        run.after_unit("short-trip-versioning", unit)
    })
}

/// Staggers the shadows of large blocks, after the last differentiation.
fn stagger(run: &mut Run<'_>, unit: &mut Unit, made: &[Vec<DerivativeRecord>]) -> Result<(), Stop> {
    let off = run
        .request
        .options
        .off
        .iter()
        .any(|o| o == "stagger-allocations");
    if off || run.request.may_be_read_again() {
        return Ok(());
    }
    run.pass("stagger-allocations", |run| {
        let functions: Vec<FuncId> = made.iter().flatten().map(|m| m.func).collect();
        simplify::stagger(unit, &functions);
        run.after_unit("stagger-allocations", unit)
    })
}

/// Returns the pending roots whose primals reach no root without a body.
fn ready_roots(unit: &Unit, roots: &Roots, pending: &[usize]) -> Vec<usize> {
    let missing: HashSet<FuncId> = pending.iter().map(|at| roots.list[*at].func).collect();
    let mut known: HashMap<FuncId, bool> = HashMap::new();
    let mut is_ready = |primal: FuncId| {
        *known.entry(primal).or_insert_with(|| {
            let closure = CallGraph::of(unit, &[primal]);
            let calls = closure
                .functions()
                .iter()
                .flat_map(|f| closure.calls_in(*f));
            let mut outside = calls.filter_map(|site| match site.callee {
                Callee::Outside(func) => Some(func),
                _ => None,
            });
            !outside.any(|func| missing.contains(&func))
        })
    };
    let candidates = pending.iter().copied();
    candidates
        .filter(|at| is_ready(roots.list[*at].variant.func))
        .collect()
}

fn cycle(unit: &Unit, root: &Root) -> Diagnostic {
    let function = &unit.functions[root.variant.func];
    let name = function.source_name.as_ref().unwrap_or(&function.name);
    let message = format!("the derivative of `{name}` calls itself through a differentiation call");
    Diagnostic::error(Code::BadRequest, message)
        .in_function(name)
        .at(root.span.clone(), "requested here")
}

/// Simplifies the bodies reached by a root that were not simplified before.
fn simplify_reached(
    run: &mut Run<'_>,
    unit: &mut Unit,
    root: &Root,
    rules: &CustomDerivatives,
    prepared: &mut HashSet<FuncId>,
) -> Result<(), Stop> {
    let closure = CallGraph::of(unit, &[root.variant.func]);
    let functions = closure.functions().iter().copied();
    let fresh: Vec<FuncId> = functions.filter(|f| prepared.insert(*f)).collect();
    if fresh.is_empty() {
        return Ok(());
    }
    run.pass("simplify", |run| {
        let all = !run.request.options.off.iter().any(|o| o == "simplify");
        simplify::normalize_primals(unit, &closure, &fresh, all, |func| rules.has(func));
        run.after_unit("simplify", unit)
    })
}

/// Recomputes the results of min/max reductions by the selected iteration, for a root's derivative only.
/// Returns the original bodies.
fn find_winners(
    run: &mut Run<'_>,
    unit: &mut Unit,
    root: &Root,
) -> Result<Vec<(FuncId, Box<Body>)>, Stop> {
    if run.request.options.off.iter().any(|o| o == "argminmax") {
        return Ok(Vec::new());
    }
    let closure = CallGraph::of(unit, &[root.variant.func]);
    let mut plain = Vec::new();
    run.pass("argminmax", |run| {
        plain = simplify::winners(unit, &closure);
        run.after_unit("argminmax", unit)
    })?;
    Ok(plain)
}

/// Replaces indirect reads by reads of gathered copies, for a root's derivative only. Returns the original
/// bodies.
fn copy_lists(
    run: &mut Run<'_>,
    unit: &mut Unit,
    root: &Root,
) -> Result<Vec<(FuncId, Box<Body>)>, Stop> {
    let off = run
        .request
        .options
        .off
        .iter()
        .any(|o| o == "index-array-copies");
    if off || root.variant.mode == Mode::Forward {
        return Ok(Vec::new());
    }
    let closure = CallGraph::of(unit, &[root.variant.func]);
    let combined = (root.variant.mode == Mode::Combined).then_some(root.variant.func);
    let mut plain = Vec::new();
    run.pass("index-array-copies", |run| {
        plain = simplify::lists(unit, &closure, combined);
        run.after_unit("index-array-copies", unit)
    })?;
    Ok(plain)
}

/// Emits a root and all required variants.
fn make(
    run: &mut Run<'_>,
    unit: &mut Unit,
    root: &Root,
    rules: &CustomDerivatives,
) -> Result<Vec<DerivativeRecord>, Stop> {
    let asked = gradus_ad::Root {
        func: root.variant.func,
        args: root.variant.args.clone(),
        result: root.variant.result,
    };
    let refused = in_kernels::collective_op_errors(unit, &root.variant);
    if !refused.is_empty() {
        return Err(stop_at_request(run, root, refused));
    }
    let facts = run.pass("analyze", |run| match ProgramFacts::of(unit, &asked) {
        Ok(facts) => Ok(facts),
        Err(findings) => Err(stop_at_request(run, root, findings)),
    })?;
    let warnings = run.refused_unless_allowed(facts.warnings());
    run.add_diagnostics(warnings)?;
    run.pass("differentiate", |run| {
        let made = variants(run, unit, root, &facts, rules)?;
        run.after_unit("differentiate", unit)?;
        Ok(made)
    })
}

fn variants(
    run: &mut Run<'_>,
    unit: &mut Unit,
    root: &Root,
    facts: &ProgramFacts,
    rules: &CustomDerivatives,
) -> Result<Vec<DerivativeRecord>, Stop> {
    let options = match switches::options(&run.request.options.off) {
        Ok(options) => options,
        Err(finding) => return Err(run.refuse(finding)),
    };
    let mut work = vec![root.variant.clone()];
    let mut seen: BTreeSet<Variant> = work.iter().cloned().collect();
    let mut census = Census::default();
    let (mut made, mut beside, mut findings) = (Vec::new(), Vec::new(), Vec::new());
    let (mut next, mut alone) = (0, Vec::new());
    while let Some(variant) = work.get(next).cloned() {
        next += 1;
        let derived = match rules.make(unit, &variant) {
            // Adds in the program's own code are plain.
            Some(made) => made
                .map(|made| thunk_record(made, true))
                .map_err(|finding| vec![finding]),
            // The root itself is the requested variant.
            None => match census.replacement_for(unit, &variant).filter(|_| next > 1) {
                Some(general) => {
                    let func = derivative_thunks::emit_thunk(unit, &variant, &general);
                    Ok(thunk_record((func, vec![general]), false))
                }
                None => differentiate(unit, facts, &variant, &options),
            },
        };
        match derived {
            Err(list) => findings.extend(list),
            Ok(Derived {
                func,
                required_variants: needs,
                report,
                exclusive,
                exclusive_cause: alone_for,
                atomics,
                disjoint_pairs: apart,
                warnings,
            }) => {
                alone.extend(exclusive.then_some((variant.func, alone_for)));
                beside.push(ConcurrencySummary {
                    func,
                    concurrent: variant.concurrent,
                    exclusive,
                    atomics,
                });
                run.reply.diagnostics.extend(warnings);
                for need in needs {
                    if seen.insert(need.clone()) {
                        work.push(need);
                    }
                }
                made.push(DerivativeRecord {
                    variant,
                    func,
                    report,
                    gather_loops: 0,
                    checked_pairs: apart,
                });
            }
        }
    }
    let apart = gradus_ad::settle(unit, &beside);
    if findings.is_empty() && root.variant.concurrent && !apart.contains(&made[0].func) {
        findings.push(in_kernels::conflict_error(
            unit,
            &root.variant,
            alone.first(),
        ));
    }
    version_forks(run, unit, &made)?;
    for one in &mut made {
        if let Some(body) = unit.functions[one.func].body.as_deref() {
            one.report.settle(body);
        }
    }
    match findings.is_empty() {
        true => Ok(made),
        false => Err(stop_at_request(run, root, findings)),
    }
}

/// Versions the forks of the derivatives by the worker count, and reports the loops that became serial.
fn version_forks(
    run: &mut Run<'_>,
    unit: &mut Unit,
    made: &[DerivativeRecord],
) -> Result<(), Stop> {
    let funcs: Vec<FuncId> = made.iter().map(|one| one.func).collect();
    let one_order = run.request.options.deterministic;
    let exclusive = exclusive_versions(made);
    let serialised = gradus_par::version_forks_by_worker_count(unit, &funcs, &exclusive, one_order);
    run.add_diagnostics(remarks(unit, &serialised, DETERMINISTIC_REASON))
}

/// Returns for each concurrent derivative the derivative for exclusive runs, if emitted.
fn exclusive_versions(made: &[DerivativeRecord]) -> HashMap<FuncId, FuncId> {
    let others: HashMap<&Variant, FuncId> =
        made.iter().map(|one| (&one.variant, one.func)).collect();
    let beside = made.iter().filter(|one| one.variant.concurrent);
    let pairs = beside.filter_map(|one| {
        let alone = Variant {
            concurrent: false,
            ..one.variant.clone()
        };
        Some((one.func, *others.get(&alone)?))
    });
    pairs.collect()
}

/// Returns the record of a derivative that only calls others.
fn thunk_record((func, needs): custom_derivatives::CustomVariant, exclusive: bool) -> Derived {
    Derived {
        func,
        required_variants: needs,
        report: Report::default(),
        exclusive,
        exclusive_cause: None,
        atomics: Vec::new(),
        disjoint_pairs: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Stops with diagnostics, each labelled with the request's source location.
fn stop_at_request(run: &mut Run<'_>, root: &Root, findings: Vec<Diagnostic>) -> Stop {
    let asked = findings
        .into_iter()
        .map(|finding| match finding.labels.is_empty() {
            true => finding.at(root.span.clone(), "requested here"),
            false => finding,
        });
    let _ = run.add_diagnostics(asked.collect());
    Stop
}
