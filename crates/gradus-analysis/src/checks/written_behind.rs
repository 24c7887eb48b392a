//! Indirect outputs: parameters that lead to written memory through pointers in memory, such as structures
//! and descriptors.
//!
//! LLVM's `readonly` covers only memory reachable from a parameter by address computations. An output with
//! its address in memory (`y->p[i] = …`) is not covered.

use crate::activity::memory::{Facts, written_classes};
use crate::call_graph::Closure;
use crate::points_to::alias_sets::Memory;
use crate::type_analysis::type_map::Words;
use gradus_ir::{Entity, FuncId, Unit};
use std::collections::BTreeSet;

/// Returns, per parameter of `func`, true if `closure` writes floats to memory that is reachable from the
/// parameter through at least one pointer in memory.
pub fn written_behind(unit: &Unit, closure: &Closure, func: FuncId) -> Vec<bool> {
    let Some(body) = unit.functions[func].body.as_deref() else {
        // Not an error: a function without a body is refused.
        return Vec::new();
    };
    let memory = Memory::of(unit, closure);
    let words = Words::of(unit, closure, &memory);
    let facts = Facts {
        unit,
        closure,
        memory: &memory,
        words: &words,
    };
    let written = written_classes(facts);
    let behind = |param: &gradus_ir::Value| {
        let places = memory.places(func, *param).iter().flatten();
        let mut work: Vec<_> = places
            .flat_map(|place| memory.stored(place.class))
            .collect();
        let mut seen = BTreeSet::new();
        while let Some(class) = work.pop() {
            if seen.insert(class) {
                work.extend(memory.stored(class));
            }
        }
        seen.iter().any(|class| written[class.index()])
    };
    body.params().iter().map(behind).collect()
}
