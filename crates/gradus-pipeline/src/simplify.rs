//! Which simplifications run before and after differentiation, in what order.

use gradus_ir::{FuncId, Unit};

/// Brings primals into the form that differentiation reads best: functions with two results become ops
/// with one, counted loops become `for`s.
pub(crate) fn primals(unit: &mut Unit, functions: &[FuncId]) {
    for &func in functions {
        if let Some(mut body) = unit.functions[func].body.take() {
            gradus_ad::calculus::expand_outputs(unit, &mut body);
            gradus_edit::loops_to_fors(unit, &mut body);
            unit.functions[func].body = Some(body);
        }
    }
}

/// Removes what differentiation left behind.
pub(crate) fn derivatives(unit: &mut Unit, functions: &[FuncId]) {
    for &func in functions {
        if let Some(mut body) = unit.functions[func].body.take() {
            gradus_edit::sweep_dead(unit, &mut body);
            unit.functions[func].body = Some(body);
        }
    }
}
