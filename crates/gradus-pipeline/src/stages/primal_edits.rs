//! Edits of primals that hold for the derivatives of one root only, with the original bodies for undoing.

use gradus_analysis::{AliasOptions, Analyses, CallGraph, PassContext};
use gradus_ir::{Body, FuncId, Unit};
use std::rc::Rc;

/// The bodies of functions before edits that hold for one root.
#[derive(Default)]
#[must_use]
pub(crate) struct OriginalBodies {
    bodies: Vec<(FuncId, Box<Body>)>,
}

impl OriginalBodies {
    /// Restores the bodies. A body saved several times returns to the state saved first.
    pub(crate) fn restore(self, unit: &mut Unit) {
        for (func, body) in self.bodies.into_iter().rev() {
            unit.functions[func].body = Some(body);
        }
    }
}

/// Edits functions by a pass that returns the number of edits, and saves the bodies of changed functions.
pub(crate) fn edit_for_derivatives(
    unit: &mut Unit,
    analyses: &mut Analyses,
    closure: &Rc<CallGraph>,
    functions: Vec<FuncId>,
    originals: &mut OriginalBodies,
    run: impl Fn(&mut Unit, &mut Body, &PassContext<'_>) -> usize,
) {
    if functions.is_empty() {
        // Not an error: no function has code for the pass.
        return;
    }
    let effects = analyses.effects_over(unit, closure);
    let alias = AliasOptions::default();
    for func in functions {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let facts = PassContext {
            function: Some(func),
            effects: &effects,
            alias: &alias,
        };
        let before = body.clone();
        if run(unit, &mut body, &facts) > 0 {
            originals.bodies.push((func, before));
        }
        unit.functions[func].body = Some(body);
    }
}
