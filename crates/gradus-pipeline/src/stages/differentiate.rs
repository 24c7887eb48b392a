//! Emits the derivative of a root and the variants of callees that the derivative requires.
//!
//! Variants are emitted in the order of the requirements. A variant is declared before its body exists, hence
//! recursion needs no special case.

use crate::reports::derivative_record::DerivativeRecord;
use crate::reports::serialized::{DETERMINISTIC_REASON, remarks};
use crate::requests::Root;
use crate::requests::custom_derivatives::{CustomDerivatives, CustomVariant};
use crate::requests::in_kernels::conflict_error;
use crate::run::{Run, StagePass, StageRun, Stop};
use gradus_ad::{
    ConcurrencySummary, Derived, ProgramFacts, Report, Variant, VariantCaps, differentiate,
};
use gradus_analysis::Stage;
use gradus_ir::{FuncId, Unit};
use std::collections::{BTreeSet, HashMap};

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "differentiate",
    stage: Stage::Primal,
    switch: None,
    about: "emits derivatives",
    run: StageRun::Step,
};

/// Emits a root and all required variants.
pub(crate) fn emit_variants(
    run: &mut Run<'_>,
    unit: &mut Unit,
    root: &Root,
    facts: &ProgramFacts,
    rules: &CustomDerivatives,
) -> Result<Vec<DerivativeRecord>, Stop> {
    run.pass(&PASS, |run| {
        let made = variants(run, unit, root, facts, rules)?;
        run.after_unit(&PASS, unit)?;
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
    let options = run.ad_options.clone();
    let mut work = vec![root.variant.clone()];
    let mut seen: BTreeSet<Variant> = work.iter().cloned().collect();
    let mut caps = VariantCaps::default();
    let (mut made, mut beside, mut findings) = (Vec::new(), Vec::new(), Vec::new());
    let (mut next, mut alone) = (0, Vec::new());
    while let Some(variant) = work.get(next).cloned() {
        next += 1;
        let function = &unit.functions[variant.func];
        let name = function.display_name();
        run.begin_subject(name, next, work.len());
        let own = match rules.library.make(unit, &variant) {
            // The rules add atomically if required.
            Some(func) => Some(Ok(thunk_record((func, Vec::new()), false))),
            // Adds in the program's own code are plain.
            None => rules.make(unit, &variant).map(|made| {
                made.map(|made| thunk_record(made, true))
                    .map_err(|finding| vec![finding])
            }),
        };
        let derived = match own {
            Some(made) => made,
            // The root itself is the requested variant.
            None => match caps.replacement_for(unit, &variant).filter(|_| next > 1) {
                Some(general) => {
                    let func = gradus_ad::emit_thunk(unit, &variant, &general);
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
    run.begin_subject("", 0, 0);
    let apart = gradus_ad::settle(unit, &beside);
    if findings.is_empty() && root.variant.concurrent && !apart.contains(&made[0].func) {
        findings.push(conflict_error(unit, &root.variant, alone.first()));
    }
    version_forks(run, unit, &made)?;
    for one in &mut made {
        if let Some(body) = unit.functions[one.func].body.as_deref() {
            one.report.settle(body);
        }
    }
    match findings.is_empty() {
        true => Ok(made),
        false => Err(run.refuse_at(root.span.as_ref(), findings)),
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
fn thunk_record((func, needs): CustomVariant, exclusive: bool) -> Derived {
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
