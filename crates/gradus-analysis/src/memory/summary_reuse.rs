//! Reuse of function summaries: after an edit, functions whose bodies and callees are as before keep their summaries.
//!
//! A component of the call graph keeps its summaries if it had the same functions before, none of them has changed, and
//! each call meets the same effects: those of an equal summary, or of an external function that has not changed. A
//! changed function whose summary stays equal does not outdate its callers.

use crate::call_graph::{CallGraph, Component};
use crate::memory::effects::Effects;
use crate::memory::summaries;
use gradus_ir::{FuncId, Unit};
use std::collections::{HashMap, HashSet};

/// Effects that were computed before some edits.
pub(crate) struct EarlierEffects<'a> {
    /// The call graph by which they were computed.
    pub graph: &'a CallGraph,
    /// The effects.
    pub effects: &'a Effects,
    /// Returns true if a function has not changed since.
    pub is_unchanged: &'a dyn Fn(FuncId) -> bool,
    /// Returns true if nothing has changed since except the contents of the function's body.
    pub keeps_interface: &'a dyn Fn(FuncId) -> bool,
}

/// Computes [`Effects::of`].
pub(crate) fn effects(unit: &Unit, closure: &CallGraph, earlier: &EarlierEffects<'_>) -> Effects {
    let reuse = SummaryReuse {
        unit,
        closure,
        earlier,
        places: places(earlier.graph),
    };
    let mut effects = Effects::default();
    for component in closure.components() {
        match reuse.keeps_summaries(&effects, component) {
            true => reuse.copy(&mut effects, component),
            false => summaries::component(unit, closure, &mut effects, component),
        }
    }
    effects
}

/// Returns the position of each function's component, callees before callers.
fn places(graph: &CallGraph) -> HashMap<FuncId, usize> {
    let components = graph.components().iter().enumerate();
    let places = |(place, component): (usize, &Component)| {
        let functions = component.functions.clone().into_iter();
        functions.map(move |func| (func, place))
    };
    components.flat_map(places).collect()
}

struct SummaryReuse<'a> {
    unit: &'a Unit,
    closure: &'a CallGraph,
    earlier: &'a EarlierEffects<'a>,
    /// The positions of the earlier components.
    places: HashMap<FuncId, usize>,
}

impl SummaryReuse<'_> {
    /// Returns true if the summaries of a component are the earlier ones. `effects` has the summaries of earlier components.
    fn keeps_summaries(&self, effects: &Effects, component: &Component) -> bool {
        let first = component.functions.first();
        let Some(&place) = first.and_then(|func| self.places.get(func)) else {
            // Not an error: the functions are new.
            return false;
        };
        self.earlier.graph.components()[place] == *component
            && component.functions.iter().all(|&func| {
                (self.earlier.is_unchanged)(func)
                    && (!component.recursive || self.has_equal_callers(func))
                    && self.meets_equal_callees(effects, func, place)
            })
    }

    /// Returns true if a function has the callers that it had before. The callers in a component decide the order of its
    /// iteration.
    fn has_equal_callers(&self, func: FuncId) -> bool {
        self.closure.calls_of(func) == self.earlier.graph.calls_of(func)
    }

    /// Returns true if each call in a body meets the effects that it met before.
    fn meets_equal_callees(&self, effects: &Effects, func: FuncId, place: usize) -> bool {
        let Some(body) = self.unit.functions[func].body.as_deref() else {
            // Not an error: a pass has taken the body out, and the function has no summary.
            return true;
        };
        let mut seen = HashSet::new();
        let ops = body.walk(body.root());
        let callees = ops.filter_map(|op| self.unit.callee(body, op));
        callees
            .filter(|callee| seen.insert(*callee))
            .all(|callee| self.is_equal_callee(effects, callee, place))
    }

    fn is_equal_callee(&self, effects: &Effects, callee: FuncId, place: usize) -> bool {
        let before = self.places.get(&callee);
        if before == Some(&place) {
            // The members of a recursive component are unchanged.
            return true;
        }
        let is_known = before.is_some_and(|before| *before < place);
        let earlier = self.earlier.effects.of_function(callee);
        effects.of_function(callee) == earlier.filter(|_| is_known)
            && (self.earlier.keeps_interface)(callee)
    }

    fn copy(&self, effects: &mut Effects, component: &Component) {
        for &func in &component.functions {
            if let Some(summary) = self.earlier.effects.of_function(func) {
                effects.set(func, summary.clone());
            }
        }
    }
}
