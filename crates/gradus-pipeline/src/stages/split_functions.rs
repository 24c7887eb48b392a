//! Splits long derivatives, for which LLVM's compile time is superlinear.

use crate::run::{Run, StagePass, StageRun, Stop};
use gradus_analysis::Stage;
use gradus_edit::SplitLimits;
use gradus_ir::{FuncId, Unit};

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "split-functions",
    stage: Stage::Unit,
    switch: None,
    about: "splits functions that are too long for LLVM's passes",
    run: StageRun::Step,
};

/// Size limits for splitting: LLVM's compile time is superlinear from about `whole` ops on; `piece` is well
/// below.
const SPLIT_LIMITS: SplitLimits = SplitLimits {
    whole_ops_max: 6000,
    piece_ops_max: 2000,
};

/// Splits long derivatives, unless the derivatives may be differentiated again. Split-off functions are appended to
/// `functions`.
pub(crate) fn split_functions(
    run: &mut Run<'_>,
    unit: &mut Unit,
    functions: &mut Vec<FuncId>,
) -> Result<(), Stop> {
    run.pass(&PASS, |run| {
        if !run.request.may_be_read_again() {
            split_long_derivatives(unit, functions);
        }
        run.after_unit(&PASS, unit)
    })
}

fn split_long_derivatives(unit: &mut Unit, functions: &mut Vec<FuncId>) {
    for func in functions.clone() {
        if unit.functions[func].defined {
            continue;
        }
        if let Some(mut body) = unit.functions[func].body.take() {
            functions.extend(gradus_edit::cut(unit, func, &mut body, SPLIT_LIMITS));
            unit.functions[func].body = Some(body);
        }
    }
}
