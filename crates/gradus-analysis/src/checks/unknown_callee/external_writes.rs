//! External writes to active memory: a call of an external function without active arguments may still
//! write globals visible to other files. It may also call back an escaped function of the program (a signal
//! handler, a callback). Such writes have no known derivative.

use crate::activity::memory::{MemoryActivity, ShadowPresence};
use crate::call_graph::{CallSite, Callee};
use crate::cfg::no_return::NoReturnRegions;
use crate::checks::finding::Finding;
use crate::checks::request::RequestFacts;
use crate::checks::unknown_callee::flang_advice::flang_advice;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSetId, MemoryOrigin};
use crate::view::View;
use gradus_ir::externals::{ExternalFn, blas_advice, is_thread_function};
use gradus_ir::{AttrValue, Body, Code, Diagnostic, FuncId, Linkage, Op, Unit};
use std::collections::HashSet;

/// What a program with explicit threads can use.
const THREADS_REMEDY: &str = "use OpenMP, the functions of `gradus/parallel.h`, or a serial loop";

/// Returns a diagnostic for each external function that may modify active memory, at its first call, and
/// for each indirect call of a possibly external function.
pub(crate) fn check(request: &RequestFacts<'_>) -> Vec<Finding> {
    let list = diagnostics(request.facts, request.classes).into_iter();
    list.map(Finding::without_position).collect()
}

fn diagnostics(facts: View<'_>, classes: &MemoryActivity) -> Vec<Diagnostic> {
    let mut list = false_statements(facts, classes);
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
                    list.push(diagnostic(
                        facts.unit,
                        (func, body, site.op),
                        callee,
                        &changed,
                    ));
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
        let function = &facts.unit.functions[func];
        let name = function.display_name();
        writes_active_memory(facts, classes, func).then(|| format!("`{name}` writes this memory"))
    })
}

/// Returns true if a function, or a function that it calls, stores to active memory.
fn writes_active_memory(facts: View<'_>, classes: &MemoryActivity, func: FuncId) -> bool {
    let (mut seen, mut work) = (HashSet::from([func]), vec![func]);
    while let Some(func) = work.pop() {
        let body = facts.unit.functions[func].body.as_deref();
        let Some(body) = body.filter(|_| facts.closure.contains(func)) else {
            // Not an error: a function outside the call graph is unknown code, and reported as such.
            continue;
        };
        let stores = |op| stores_to_active_set(facts, classes, func, body, op);
        if body.walk(body.root()).any(stores) {
            return true;
        }
        for site in facts.closure.calls_in(func) {
            let callees = match site.callee {
                Callee::Inside(callee) => vec![callee],
                Callee::Indirect(_) => facts.memory.callees(func, site.op).to_vec(),
                Callee::Outside(_) | Callee::Foreign => Vec::new(),
            };
            work.extend(callees.into_iter().filter(|callee| seen.insert(*callee)));
        }
    }
    false
}

/// Returns a diagnostic for each function that the program declares inactive, and that receives a function which
/// writes active memory: it may call this function.
fn false_statements(facts: View<'_>, classes: &MemoryActivity) -> Vec<Diagnostic> {
    let mut list = Vec::new();
    let mut told = HashSet::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        let lost = NoReturnRegions::of(facts.unit, body);
        for site in facts.closure.calls_in(func) {
            let Callee::Outside(callee) = site.callee else {
                continue;
            };
            let is_stated = facts.unit.known(callee) == Some(ExternalFn::Inactive);
            if !is_stated || lost.contains(body, site.op) || told.contains(&callee) {
                continue;
            }
            let callback = callbacks(facts, func, body, site.op)
                .into_iter()
                .find(|callback| writes_active_memory(facts, classes, *callback));
            if let Some(callback) = callback {
                told.insert(callee);
                list.push(false_statement(
                    facts.unit,
                    (func, body, site.op),
                    callee,
                    callback,
                ));
            }
        }
    }
    list
}

/// Returns the functions whose addresses a call passes.
fn callbacks(facts: View<'_>, func: FuncId, body: &Body, op: Op) -> Vec<FuncId> {
    let args = facts.unit.call_args(body, op).into_iter();
    let targets = args.flat_map(|arg| facts.memory.targets(func, arg));
    let origins = targets.flat_map(|at| facts.memory.get(at.class).origins.iter());
    let functions = origins.filter_map(|origin| match *origin {
        MemoryOrigin::Function(func) => Some(func),
        _ => None,
    });
    functions.collect()
}

fn false_statement(
    unit: &Unit,
    at: (FuncId, &Body, Op),
    callee: FuncId,
    callback: FuncId,
) -> Diagnostic {
    let (func, body, op) = at;
    let (stated, writer) = (
        unit.functions[callee].display_name(),
        unit.functions[callback].display_name(),
    );
    let message = format!(
        "`{stated}` is declared inactive, but may call `{writer}`, which writes active memory"
    );
    let remedy = match is_thread_function(&unit.functions[callee].name) {
        true => THREADS_REMEDY.to_owned(),
        false => format!(
            "remove the declaration, and compile the file that defines `{stated}` together with this one"
        ),
    };
    Diagnostic::error(Code::UnknownCallee, message)
        .in_function(unit.functions[func].display_name())
        .at(unit.span(body.ops[op].loc), "here")
        .help(remedy)
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

fn diagnostic(
    unit: &Unit,
    at: (FuncId, &Body, Op),
    callee: Option<FuncId>,
    changed: &str,
) -> Diagnostic {
    let (func, body, op) = at;
    let named = |func| unit.functions[func].display_name();
    let is_of_threads =
        callee.is_some_and(|callee| is_thread_function(&unit.functions[callee].name));
    let (what, remedy) = match callee.map(named) {
        Some(name) if is_of_threads => (
            format!("`{name}` belongs to explicit threads, which have no derivative,"),
            THREADS_REMEDY.to_owned(),
        ),
        Some(name) => (
            format!("`{name}` has no body in this program"),
            flang_advice(name).or_else(|| blas_advice(name)).unwrap_or_else(|| format!(
                "compile the file that defines `{name}` together with this one, make the variable `static`, or declare by `GRADUS_INACTIVE({name})` that `{name}` modifies no active memory"
            )),
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
