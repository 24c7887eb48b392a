//! Callbacks: functions of the program that a function without a body receives and may call, such as the comparison of
//! `qsort`. The derivative calls them as they are, so that they must not change memory with derivatives.

use crate::call_graph::Callee;
use crate::checks::variant::{CallFacts, VariantFacts};
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSetId, MemoryOrigin};
use gradus_ir::{Body, FuncId, Op};
use std::collections::HashSet;

/// Returns true if a function among the arguments of a call, or a function that it calls, may change memory with
/// derivatives.
pub(super) fn change_active_memory(variant: &VariantFacts<'_>, call: &CallFacts) -> bool {
    let facts = variant.facts;
    let mut work: Vec<FuncId> = Vec::new();
    for arg in &call.args {
        for set in facts.memory.alias_sets_of(variant.func, *arg) {
            let origins = facts.memory.get(set).origins.iter();
            work.extend(origins.filter_map(|origin| match origin {
                MemoryOrigin::Function(func) => Some(*func),
                _ => None,
            }));
        }
    }
    let mut seen: HashSet<FuncId> = work.iter().copied().collect();
    while let Some(func) = work.pop() {
        let Some(body) = facts.unit.functions[func].body.as_deref() else {
            // The check of functions without a body decides.
            continue;
        };
        let mut ops = body.walk(body.root());
        if ops.any(|op| changes_active_memory(variant, func, body, op)) {
            return true;
        }
        for site in facts.closure.calls_in(func) {
            let found = match site.callee {
                Callee::Inside(callee) => vec![callee],
                Callee::Indirect(_) => facts.memory.callees(func, site.op).to_vec(),
                Callee::Outside(_) | Callee::Foreign => Vec::new(),
            };
            work.extend(found.into_iter().filter(|callee| seen.insert(*callee)));
        }
    }
    false
}

/// Returns true if an op of a callback may write to memory with derivatives, its own variables excepted, or may free it.
fn changes_active_memory(variant: &VariantFacts<'_>, func: FuncId, body: &Body, op: Op) -> bool {
    let facts = variant.facts;
    let is_own = |class: AliasSetId| {
        let origins = &facts.memory.get(class).origins;
        let is_local = |o: &MemoryOrigin| matches!(o, MemoryOrigin::Alloca(of, _) if *of == func);
        !origins.is_empty() && origins.iter().all(is_local)
    };
    let is_active = |class: AliasSetId| !is_own(class) && variant.reaches_floats(class);
    let mut changes = false;
    value_accesses(facts.unit, body, op, |access| {
        if let ValueAccess::Store { ptr, .. } = access {
            changes |= facts.memory.may_point_into(func, ptr, is_active);
        }
    });
    let effects = facts
        .unit
        .callee(body, op)
        .and_then(|callee| facts.unit.known_effects(callee));
    let Some(effects) = effects else {
        // Not an error: the op calls no known function.
        return changes;
    };
    let args = facts.unit.call_args(body, op);
    let is_written = |number: usize| {
        effects.writes.argument(number) || effects.frees.map(usize::from) == Some(number)
    };
    changes
        || args.iter().enumerate().any(|(number, arg)| {
            is_written(number) && facts.memory.may_point_into(func, *arg, is_active)
        })
}
