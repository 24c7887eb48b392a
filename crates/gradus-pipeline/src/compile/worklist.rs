//! The worklist of derivatives: every root, and the variants of callees required by each.
//!
//! A root is emitted once every callee of its primal has a body; a derivative requested inside another is therefore
//! emitted first (forward over reverse). Diagnostics of all roots are gathered before the run stops. After the last
//! root, the passes on derivatives run in the order of the table.

use crate::passes::PASSES;
use crate::reports::derivative_record::DerivativeRecord;
use crate::requests::custom_derivatives::CustomDerivatives;
use crate::requests::{Root, Roots};
use crate::run::{Run, StageRun, Stop};
use crate::stages::analyze::analyze;
use crate::stages::argminmax::recompute_argminmax;
use crate::stages::dead_derivative_code::remove_dead_code;
use crate::stages::differentiate::emit_variants;
use crate::stages::index_array_copies::copy_index_arrays;
use crate::stages::primal_edits::OriginalBodies;
use crate::stages::simplify::simplify_reached;
use gradus_analysis::{Analyses, Callee, Stage};
use gradus_ir::{Code, Diagnostic, FuncId, Unit};
use std::collections::{HashMap, HashSet};

/// Emits all roots and their required variants. Returns the derivatives of each root, in the order of the
/// roots, the root itself first.
pub(super) fn differentiate_all(
    run: &mut Run<'_>,
    unit: &mut Unit,
    roots: &Roots,
    rules: &CustomDerivatives,
) -> Result<Vec<Vec<DerivativeRecord>>, Stop> {
    let mut made: Vec<Vec<DerivativeRecord>> = vec![Vec::new(); roots.list.len()];
    let mut pending: Vec<usize> = (0..roots.list.len()).collect();
    let (mut prepared, mut failed) = (HashSet::new(), false);
    while !pending.is_empty() {
        let ready = ready_roots(unit, &mut run.analyses, roots, &pending);
        if ready.is_empty() {
            return Err(run.refuse(cycle(unit, &roots.list[pending[0]])));
        }
        pending.retain(|at| !ready.contains(at));
        for at in ready {
            let root = &roots.list[at];
            simplify_reached(run, unit, root, rules, &mut prepared)?;
            Roots::take_variant_symbol(unit, root);
            let mut originals = OriginalBodies::default();
            recompute_argminmax(run, unit, root, &mut originals)?;
            copy_index_arrays(run, unit, root, &mut originals)?;
            let list = emit_root(run, unit, root, rules);
            originals.restore(unit);
            match list {
                Ok(list) => {
                    let functions: Vec<FuncId> = list.iter().map(|m| m.func).collect();
                    remove_dead_code(run, unit, &functions)?;
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
    run_derivative_passes(run, unit, &mut made)?;
    Ok(made)
}

/// Runs the passes on derivatives after all are emitted, except those that the request turns off.
fn run_derivative_passes(
    run: &mut Run<'_>,
    unit: &mut Unit,
    made: &mut [Vec<DerivativeRecord>],
) -> Result<(), Stop> {
    let is_final = !run.request.may_be_read_again();
    for pass in PASSES {
        let StageRun::Derivatives(work) = pass.run else {
            continue;
        };
        let is_late = pass.stage != Stage::FinalDerivative || is_final;
        if is_late && !run.skips(pass) {
            run.pass(pass, |run| {
                work(run, unit, made)?;
                run.after_unit(pass, unit)
            })?;
        }
    }
    Ok(())
}

/// Emits a root and all required variants.
fn emit_root(
    run: &mut Run<'_>,
    unit: &mut Unit,
    root: &Root,
    rules: &CustomDerivatives,
) -> Result<Vec<DerivativeRecord>, Stop> {
    let facts = analyze(run, unit, root)?;
    emit_variants(run, unit, root, &facts, rules)
}

/// Returns the pending roots whose primals reach no root without a body.
fn ready_roots(
    unit: &Unit,
    analyses: &mut Analyses,
    roots: &Roots,
    pending: &[usize],
) -> Vec<usize> {
    let missing: HashSet<FuncId> = pending.iter().map(|at| roots.list[*at].func).collect();
    let mut known: HashMap<FuncId, bool> = HashMap::new();
    let mut is_ready = |primal: FuncId| {
        *known.entry(primal).or_insert_with(|| {
            let closure = analyses.call_graph(unit, &[primal]);
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
    let name = function.display_name();
    let message = format!("the derivative of `{name}` calls itself through a differentiation call");
    Diagnostic::error(Code::BadRequest, message)
        .in_function(name)
        .at(root.span.clone(), "requested here")
}
