//! External writes to active memory: a call of an external function without active arguments may still
//! write globals visible to other files. It may also call back an escaped function of the program (a signal
//! handler, a callback). Such writes have no known derivative.

use crate::activity::memory::{MemoryActivity, ShadowPresence};
use crate::call_graph::{CallSite, Callee};
use crate::cfg::no_return::NoReturnRegions;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSetId, MemoryOrigin};
use crate::view::View;
use gradus_ir::{AttrValue, Body, Code, Diagnostic, FuncId, Linkage, Op, Unit};
use std::collections::HashSet;

/// Returns a diagnostic for each external function that may modify active memory, at its first call, and
/// for each indirect call of a possibly external function.
pub(crate) fn findings(facts: View<'_>, classes: &MemoryActivity) -> Vec<Diagnostic> {
    let mut list = Vec::new();
    let Some(changed) =
        exported_active_variable(facts, classes).or_else(|| modified_by_callback(facts, classes))
    else {
        return list;
    };
    let mut told = HashSet::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        let lost = NoReturnRegions::of(facts.unit, body);
        for site in facts.closure.calls_in(func) {
            if lost.contains(body, site.op) {
                continue;
            }
            for callee in unseen(facts, classes, body, site) {
                let harmless = !may_write_other_memory(facts.unit, body, site.op, callee);
                if !harmless && (callee.is_none() || told.insert(callee)) {
                    list.push(finding(facts.unit, (func, body, site.op), callee, &changed));
                }
            }
        }
    }
    list
}

/// Returns the unknown callees of a call; `None` in the list stands for an unknown function pointer. An
/// indirect call with active arguments is handled by the derivatives of its callees.
fn unseen(
    facts: View<'_>,
    classes: &MemoryActivity,
    body: &Body,
    site: &CallSite,
) -> Vec<Option<FuncId>> {
    let (func, op) = (site.caller, site.op);
    let nothing_known =
        |func: &FuncId| !facts.closure.contains(*func) && facts.unit.known(*func).is_none();
    match site.callee {
        Callee::Outside(callee) if nothing_known(&callee) => vec![Some(callee)],
        Callee::Indirect(_) if !passes_active_memory(facts, classes, func, body, op) => {
            let callees = facts.memory.callees(func, op).iter().copied();
            let named = callees.filter(nothing_known).map(Some);
            let stranger = facts.memory.may_call_unknown(func, op).then_some(None);
            named.chain(stranger).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns true if a call passes active floats or addresses of active memory.
fn passes_active_memory(
    facts: View<'_>,
    classes: &MemoryActivity,
    func: FuncId,
    body: &Body,
    op: Op,
) -> bool {
    let shadowed = |class: AliasSetId| classes.state(class) != ShadowPresence::Inactive;
    let args = facts.unit.call_args(body, op);
    args.into_iter().any(|arg| {
        classes.value_varied(func, arg) || facts.memory.may_point_into(func, arg, shadowed)
    })
}

/// Returns true if floats of an alias set are active: varied and useful.
fn is_active_set(classes: &MemoryActivity, class: AliasSetId) -> bool {
    classes.holds_active_floats(class) && classes.is_varied(class) && classes.is_useful(class)
}

/// Returns a variable visible to other files that holds active floats or reaches active memory.
fn exported_active_variable(facts: View<'_>, classes: &MemoryActivity) -> Option<String> {
    let unit = facts.unit;
    let mut globals = unit.globals.iter();
    let (_, global) = globals.find(|(id, global)| {
        let open = !global.constant && global.linkage != Linkage::Internal;
        open && facts
            .memory
            .global(*id)
            .is_some_and(|place| reaches_active_set(facts, classes, place.class))
    })?;
    Some(format!("`{}`", global.name))
}

fn reaches_active_set(facts: View<'_>, classes: &MemoryActivity, start: AliasSetId) -> bool {
    let (mut seen, mut work) = (HashSet::from([start]), vec![start]);
    while let Some(class) = work.pop() {
        if is_active_set(classes, class) {
            return true;
        }
        work.extend(
            facts
                .memory
                .pointees(class)
                .into_iter()
                .filter(|next| seen.insert(*next)),
        );
    }
    false
}

/// Returns the active memory modified by a function that escapes to unknown code.
fn modified_by_callback(facts: View<'_>, classes: &MemoryActivity) -> Option<String> {
    let escaped = facts.memory.alias_sets().filter(|(_, class)| class.escaped);
    let origins = escaped.flat_map(|(_, class)| class.origins.iter());
    origins.into_iter().find_map(|origin| {
        let MemoryOrigin::Function(func) = *origin else {
            // Not an error: only functions write memory.
            return None;
        };
        let body = facts.unit.functions[func].body.as_deref()?;
        let writes = facts.closure.contains(func)
            && body
                .walk(body.root())
                .any(|op| stores_to_active_set(facts, classes, func, body, op));
        let function = &facts.unit.functions[func];
        let name = function.display_name();
        writes.then(|| format!("`{name}` writes this memory"))
    })
}

fn stores_to_active_set(
    facts: View<'_>,
    classes: &MemoryActivity,
    func: FuncId,
    body: &Body,
    op: Op,
) -> bool {
    let mut hit = false;
    value_accesses(facts.unit, body, op, |touch| {
        if let ValueAccess::Store { ptr, .. } = touch {
            let is_active = |class| is_active_set(classes, class);
            hit |= facts.memory.may_point_into(func, ptr, is_active);
        }
    });
    hit
}

/// Returns true unless attributes exclude writes to non-argument memory.
fn may_write_other_memory(unit: &Unit, body: &Body, op: Op, callee: Option<FuncId>) -> bool {
    let stated = [
        callee.map(|callee| unit.functions[callee].attrs),
        body.kind(op).call_info().and_then(|i| i.attrs),
    ];
    !stated.into_iter().flatten().any(|id| {
        let attrs = unit.attrs(id);
        let flags = ["readnone", "readonly"];
        // LLVM's encoding of `memory`: two bits (reads, writes) per location; the fourth is all other
        // memory.
        let memory =
            matches!(attrs.function("memory"), Some(AttrValue::Int(bits)) if bits >> 6 & 2 == 0);
        memory || flags.iter().any(|flag| attrs.function(flag).is_some())
    })
}

/// Returns true for functions that start, join and synchronise threads in C, C++ and Rust.
fn belongs_to_threads(symbol: &str) -> bool {
    const STARTS: [&str; 9] = [
        "pthread_",
        "thrd_",
        "mtx_",
        "cnd_",
        "sem_",
        "_ZNSt6thread",
        "_ZNSt3__16thread",
        "_ZNSt18condition_variable",
        "_ZNSt13__future_base",
    ];
    // Rust's mangled names contain the length of each part of the path.
    let is_rust = ["3std6thread", "3std3sys6thread"]
        .iter()
        .any(|part| symbol.contains(part));
    is_rust || STARTS.iter().any(|start| symbol.starts_with(start))
}

fn finding(
    unit: &Unit,
    at: (FuncId, &Body, Op),
    callee: Option<FuncId>,
    changed: &str,
) -> Diagnostic {
    let (func, body, op) = at;
    let named = |func: FuncId| {
        let function = &unit.functions[func];
        function
            .source_name
            .clone()
            .unwrap_or_else(|| function.name.clone())
    };
    let is_of_threads =
        callee.is_some_and(|callee| belongs_to_threads(&unit.functions[callee].name));
    let (what, remedy) = match callee.map(named) {
        Some(name) if is_of_threads => (
            format!("`{name}` belongs to explicit threads, which have no derivative,"),
            "use OpenMP, the functions of `gradus/parallel.h`, or a serial loop".to_owned(),
        ),
        Some(name) => (
            format!("`{name}` has no body in this program"),
            format!(
                "compile the file that defines `{name}` together with this one, make the variable `static`, or declare by `GRADUS_INACTIVE({name})` that `{name}` modifies no active memory"
            ),
        ),
        None => (
            "the target of this indirect call may be an external function".to_owned(),
            "compile the files that define the targets together with this one, or make the variable `static`".to_owned(),
        ),
    };
    let message = format!("{what} and may modify active memory ({changed})");
    Diagnostic::error(Code::UnknownCallee, message)
        .in_function(named(func))
        .at(unit.span(body.ops[op].loc), "here")
        .help(remedy)
}
