//! Memory that carries derivatives and outlives the call, because a global variable keeps its address.
//!
//! Shadows of blocks are made where blocks are made and freed by the return sweep; a global's shadow would
//! then lead to nothing, or the next call would find there what this one left. A block that the program
//! made before, outside of what is differentiated, has no shadow at all. Neither is followed: both are
//! refused. A block that is freed in the closure is taken to be freed in each call.

use crate::activity::{ClassFacts, Facts};
use crate::flow::{self, ValueAccess};
use crate::memory::{ClassId, Origin};
use gradus_ir::{Body, Code, Diagnostic, FuncId, GlobalId, Op, Unit};
use std::collections::{BTreeMap, HashMap};

/// A finding for each such class.
pub(crate) fn findings(facts: Facts<'_>, classes: &ClassFacts) -> Vec<Diagnostic> {
    let kept = kept_by_globals(facts, classes);
    if kept.is_empty() {
        return Vec::new();
    }
    let freed = frees(facts);
    let outlives = |class: ClassId| {
        let origins = &facts.memory.get(class).origins;
        let made = origins.iter().any(|o| matches!(o, Origin::Heap(..)));
        let known = |o: &Origin| {
            matches!(
                o,
                Origin::Argument(..) | Origin::Alloca(..) | Origin::Global(_)
            )
        };
        match made {
            true => !freed.contains_key(&class),
            false => !origins.iter().any(known),
        }
    };
    let refused = kept.into_iter().filter(|(class, _)| outlives(*class));
    refused
        .filter_map(|(class, global)| finding(facts, class, global))
        .collect()
}

/// The classes with active floats that a global's memory points to, and one such global.
fn kept_by_globals(facts: Facts<'_>, classes: &ClassFacts) -> BTreeMap<ClassId, GlobalId> {
    let mut kept = BTreeMap::new();
    for (_, class) in facts.memory.classes() {
        let global = class.origins.iter().find_map(|origin| match origin {
            Origin::Global(global) if !facts.unit.globals[*global].constant => Some(*global),
            _ => None,
        });
        let Some(global) = global else {
            continue;
        };
        for place in class.words.values().filter_map(|word| word.points) {
            if classes.holds_active_floats(place.class) {
                kept.insert(place.class, global);
            }
        }
    }
    kept
}

/// The calls that free blocks, by class.
pub(crate) fn frees(facts: Facts<'_>) -> HashMap<ClassId, Vec<(FuncId, Op)>> {
    let mut frees: HashMap<ClassId, Vec<(FuncId, Op)>> = HashMap::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            if let Some(class) = freed_by(facts, func, body, op) {
                frees.entry(class).or_default().push((func, op));
            }
        }
    }
    frees
}

fn freed_by(facts: Facts<'_>, func: FuncId, body: &Body, op: Op) -> Option<ClassId> {
    let callee = facts.unit.callee(body, op)?;
    let argument = facts.unit.known_effects(callee)?.frees?;
    let args = facts.unit.call_args(body, op);
    facts.memory.class(func, *args.get(usize::from(argument))?)
}

fn finding(facts: Facts<'_>, class: ClassId, global: GlobalId) -> Option<Diagnostic> {
    let (func, body, op) = first_store(facts, class)?;
    let unit: &Unit = facts.unit;
    let function = &unit.functions[func];
    let name = &unit.globals[global].name;
    let message =
        format!("`{name}` keeps memory that carries derivatives from one call to the next");
    Some(
        Diagnostic::error(Code::Outlives, message)
            .in_function(function.source_name.as_ref().unwrap_or(&function.name))
            .at(unit.span(body.ops[op].loc), "here")
            .help(format!(
                "allocate and free it within the function that is differentiated, or pass `{name}` as an argument"
            )),
    )
}

/// The first store of a number into a class.
fn first_store<'a>(facts: Facts<'a>, class: ClassId) -> Option<(FuncId, &'a Body, Op)> {
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            let mut hit = false;
            flow::value_accesses(facts.unit, body, op, |touch| {
                if let ValueAccess::Store { ptr, value } = touch {
                    hit |= facts.memory.class(func, ptr) == Some(class)
                        && facts.words.carries_float(func, value);
                }
            });
            if hit {
                return Some((func, body, op));
            }
        }
    }
    None
}
