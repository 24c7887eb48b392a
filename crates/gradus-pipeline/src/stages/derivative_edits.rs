//! Runs an edit on the bodies of derivatives, with the facts that the edit needs.

use crate::reports::derivative_record::DerivativeRecord;
use gradus_analysis::{AliasOptions, Analyses, PassContext};
use gradus_ir::{Body, FuncId, LocId, Unit};

/// Returns the functions of derivatives.
pub(crate) fn functions_of(made: &[Vec<DerivativeRecord>]) -> Vec<FuncId> {
    made.iter().flatten().map(|made| made.func).collect()
}

/// Source locations of ops.
pub(crate) type Locations = Vec<Option<LocId>>;

/// Edits the atomic adds of derivatives. Enters the adds that became plain into the reports: `schedule` 0 for
/// privatised adds, 1 for adds in phases.
pub(crate) fn edit_adds(
    unit: &mut Unit,
    analyses: &mut Analyses,
    made: &mut [Vec<DerivativeRecord>],
    schedule: usize,
    run: impl Fn(&mut Unit, &mut Body, &PassContext<'_>) -> Locations,
) {
    let adds_atomically = |_: &Unit, body: &Body| gradus_simplify::has_atomic_adds(body);
    let functions = functions_of(made);
    let adds = edited(
        unit,
        analyses,
        &functions,
        adds_atomically,
        run,
        Locations::len,
    );
    for (made, adds) in made.iter_mut().flatten().zip(adds) {
        let spans = adds.into_iter().filter_map(|loc| unit.span(loc));
        let lines: Vec<u32> = spans.map(|span| span.line).collect();
        made.report.move_atomic_adds(&lines, schedule);
    }
}

/// Edits the functions for which `has` holds. Returns the number of edits for each.
pub(crate) fn edit_counted(
    unit: &mut Unit,
    analyses: &mut Analyses,
    functions: &[FuncId],
    has: fn(&Unit, &Body) -> bool,
    run: fn(&mut Unit, &mut Body, &PassContext<'_>) -> usize,
) -> Vec<usize> {
    edited(unit, analyses, functions, has, run, |loops| *loops)
}

/// Edits the functions for which `has` holds. Returns the result of `run` for each; `count` gives the
/// number of edits.
fn edited<R: Clone + Default>(
    unit: &mut Unit,
    analyses: &mut Analyses,
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
    let effects = analyses.effects(unit, functions);
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
pub(crate) fn edit(
    unit: &mut Unit,
    func: FuncId,
    edit: impl FnOnce(&mut Unit, &mut Body) -> usize,
) -> usize {
    let Some(mut body) = unit.functions[func].body.take() else {
        return 0;
    };
    let count = edit(unit, &mut body);
    unit.functions[func].body = Some(body);
    count
}
