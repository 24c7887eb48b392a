//! Indirect outputs: parameters that lead to written memory through pointers in memory, such as structures
//! and descriptors.
//!
//! LLVM's `readonly` covers only memory reachable from a parameter by address computations. An output with
//! its address in memory (`y->p[i] = …`) is not covered.

use crate::activity::memory::written_alias_sets;
use crate::analyses::Analyses;
use crate::call_graph::CallGraph;
use crate::points_to::alias_sets::AliasSetId;
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
    let behind = |param: &gradus_ir::Value| {
        let sets = memory.alias_sets_of(func, *param).into_iter();
        let mut work: Vec<_> = sets.flat_map(|class| memory.pointees(class)).collect();
        let mut seen = BTreeSet::new();
        while let Some(class) = work.pop() {
            if seen.insert(class) {
                work.extend(memory.pointees(class));
            }
        }
        seen
    };
    let reached: Vec<_> = body.params().iter().map(behind).collect();
    if reached.iter().all(BTreeSet::is_empty) || is_planted(Mutant::IndirectOutputsWithoutShadow) {
        // Not an error: the parameters lead to no pointers in memory.
        return vec![false; reached.len()];
    }
    let words = TypeMap::of(unit, closure, &memory);
    let written = written_alias_sets(View {
        unit,
        closure,
        memory: &memory,
        words: &words,
    });
    let is_written = |seen: &BTreeSet<AliasSetId>| seen.iter().any(|class| written[class.index()]);
    reached.iter().map(is_written).collect()
}
