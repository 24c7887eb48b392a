//! Indirect outputs: parameters that lead to written memory through pointers in memory, such as structures
//! and descriptors.
//!
//! LLVM's `readonly` covers only memory reachable from a parameter by address computations. An output with
//! its address in memory (`y->p[i] = …`) is not covered.

use crate::activity::memory::written_alias_sets;
use crate::analyses::Analyses;
use crate::call_graph::CallGraph;
use crate::type_analysis::type_map::TypeMap;
use crate::view::View;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Entity, FuncId, Unit};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Returns, per parameter of `func`, true if `closure` writes floats to memory that is reachable from the
/// parameter through at least one pointer in memory.
pub fn indirect_outputs(
    unit: &Unit,
    analyses: &mut Analyses,
    closure: &Rc<CallGraph>,
    func: FuncId,
) -> Vec<bool> {
    let Some(body) = unit.functions[func].body.as_deref() else {
        // Not an error: a function without a body is refused.
        return Vec::new();
    };
    let memory = analyses.alias_sets(unit, closure);
    let words = TypeMap::of(unit, closure, &memory);
    let facts = View {
        unit,
        closure,
        memory: &memory,
        words: &words,
    };
    let written = written_alias_sets(facts);
    let behind = |param: &gradus_ir::Value| {
        if is_planted(Mutant::IndirectOutputsWithoutShadow) {
            return false;
        }
        let sets = memory.alias_sets_of(func, *param).into_iter();
        let mut work: Vec<_> = sets.flat_map(|class| memory.pointees(class)).collect();
        let mut seen = BTreeSet::new();
        while let Some(class) = work.pop() {
            if seen.insert(class) {
                work.extend(memory.pointees(class));
            }
        }
        seen.iter().any(|class| written[class.index()])
    };
    body.params().iter().map(behind).collect()
}
