//! Replaces indirect reads in loops by reads of gathered copies, for the derivatives of one root.
//!
//! Memory read by a combined derivative is not overwritten between the end of the primal and the reverse pass.
//! Functions called by iterations of parallel loops are left alone: the reverse of a copy updates adjoints that
//! other iterations may update.

use crate::requests::Root;
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::primal_edits::{OriginalBodies, edit_for_derivatives};
use gradus_ad::Mode;
use gradus_analysis::{CallGraph, PassContext, Stage};
use gradus_ir::{Body, Flags, FuncId, Op, OpKind, Region, Unit};
use std::collections::HashSet;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "index-array-copies",
    stage: Stage::Primal,
    switch: Some("index-array-copies"),
    about: "copies arrays that loops read through index arrays",
    run: StageRun::Step,
};

/// Edits the primals of a root. The original bodies are added to `originals`.
pub(crate) fn copy_index_arrays(
    run: &mut Run<'_>,
    unit: &mut Unit,
    root: &Root,
    originals: &mut OriginalBodies,
) -> Result<(), Stop> {
    if run.skips(&PASS) || root.variant.mode == Mode::Forward {
        return Ok(());
    }
    let closure = run.analyses.call_graph(unit, &[root.variant.func]);
    let combined = (root.variant.mode == Mode::Combined).then_some(root.variant.func);
    run.pass(&PASS, |run| {
        let reads_indirectly =
            |(_, body): &(FuncId, &Body)| gradus_simplify::has_indirect_loads(unit, body);
        let found = closure.bodies(unit).filter(reads_indirectly);
        let mut found: Vec<FuncId> = found.map(|(func, _)| func).collect();
        if !found.is_empty() {
            let concurrent = concurrent_functions(unit, &closure);
            found.retain(|func| !concurrent.contains(func));
        }
        let pass = |unit: &mut Unit, body: &mut Body, facts: &PassContext<'_>| {
            gradus_simplify::copy_index_arrays(unit, body, facts, combined != facts.function)
        };
        edit_for_derivatives(unit, &mut run.analyses, &closure, found, originals, pass);
        run.after_unit(&PASS, unit)
    })
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
