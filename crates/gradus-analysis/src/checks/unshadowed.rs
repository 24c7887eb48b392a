//! Active values stored to memory without a shadow and read back: diagnostics with the memory's origin and
//! a remedy.

use crate::activity::memory::MemoryActivity;
use crate::call_graph::{CallSite, Callee};
use crate::checks::findings::{at, name_of};
use crate::checks::persistent_memory;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSetId, MemoryOrigin};
use crate::view::View;
use gradus_ir::{Body, Code, Diagnostic, FuncId, GlobalId, Linkage, Op, Unit, Value};
use std::collections::HashSet;

/// Provenance of an alias set, as far as known.
#[derive(Clone, Copy)]
pub(crate) struct Provenance {
    /// A global that cannot have a shadow in this unit.
    pub barred: Option<GlobalId>,
    /// True if no object of the set has a shadow.
    pub bare: bool,
    /// True if the set is reachable from a const argument and from no argument with a shadow.
    pub promised: bool,
}

/// Reports active values that are stored to memory without a shadow and read back.
pub(crate) fn memory_diagnostics(
    facts: View<'_>,
    classes: &MemoryActivity,
    source: impl Fn(AliasSetId) -> Provenance,
) -> Vec<Diagnostic> {
    let mut list = Vec::new();
    let mut told = HashSet::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            value_accesses(facts.unit, body, op, |touch| {
                let ValueAccess::Store { ptr, value } = touch else {
                    // Not an error: a load writes no memory.
                    return;
                };
                if !classes.value_varied(func, value) || !facts.words.carries_float(func, value) {
                    // Not an error: the value has no derivative to lose.
                    return;
                }
                for class in facts.memory.alias_sets_of(func, ptr) {
                    let from = source(class);
                    let read_back =
                        || classes.is_useful(class) || may_alias_exported(facts, classes, class);
                    let refused = from.barred.is_some() || from.bare && read_back();
                    if refused && told.insert(class) {
                        list.push(unshadowed_store(facts, func, body, op, class, from.barred));
                    } else if from.promised && told.insert(class) {
                        let others = facts.memory.alias_sets().map(|(other, _)| other);
                        let mut read = others
                            .filter(|other| source(*other).promised && classes.is_useful(*other));
                        if read.any(|other| may_alias(facts, class, other)) {
                            list.push(possible_const_alias(facts.unit, func, body, op));
                        }
                    }
                }
            });
        }
    }
    list
}

/// Returns true if memory from an unknown callee may be an exported global that is read later. An unknown
/// callee can access every exported variable.
fn may_alias_exported(facts: View<'_>, classes: &MemoryActivity, class: AliasSetId) -> bool {
    let origins = &facts.memory.get(class).origins;
    let is_unseen =
        |o: &MemoryOrigin| matches!(o, MemoryOrigin::External(..) | MemoryOrigin::Unknown);
    let is_exported = |global: &GlobalId| {
        let variable = &facts.unit.globals[*global];
        !variable.constant && variable.linkage != Linkage::Internal
    };
    let is_read = |global: &GlobalId| {
        let other = facts.memory.global(*global).map(|place| place.class);
        other.is_some_and(|other| {
            classes.is_useful(other) && persistent_memory::share_float_type(facts, class, other)
        })
    };
    let mut globals = facts.closure.globals().iter();
    origins.iter().any(is_unseen) && globals.any(|global| is_exported(global) && is_read(global))
}

/// Returns the diagnostic for a result with a requested shadow that may lead to floats without a shadow.
/// The shadow of such a pointer is the pointer itself: the caller would read primal values as derivatives.
pub(crate) fn unshadowed_result(facts: View<'_>, root: FuncId, class: AliasSetId) -> Diagnostic {
    let unit = facts.unit;
    let name = name_of(unit, root);
    let origins = &facts.memory.get(class).origins;
    let variable = origins.iter().find_map(|origin| match origin {
        MemoryOrigin::Global(global) => Some(&unit.globals[*global].name),
        _ => None,
    });
    let behind = match variable {
        Some(variable) => format!("`{variable}`, a variable without a shadow"),
        None => "memory without a shadow".to_string(),
    };
    let message = format!(
        "a shadow is requested for the result of `{name}`, but the result may point to {behind}"
    );
    Diagnostic::error(Code::BadRequest, message)
        .in_function(name)
        .at(unit.functions[root].span.clone(), "defined here")
        .help("mark the argument that points to the memory as dup, or the result as `enzyme_const_return`")
}

/// Returns the warning for a read that may alias a value stored to const memory.
fn possible_const_alias(unit: &Unit, func: FuncId, body: &Body, op: Op) -> Diagnostic {
    let message = "active values are stored in memory of a const argument, and the result depends on memory of const arguments; a read that aliases the store has the derivative zero";
    Diagnostic::warning(Code::ZeroDerivative, message)
        .in_function(name_of(unit, func))
        .at(unit.span(body.ops[op].loc), "stored here")
        .help("mark the argument as dup and pass a shadow; if the memory does not alias, no change is required")
}

/// Returns true if two alias sets may alias through pointers stored before the call. Two direct arguments
/// do not count, because the caller knows whether they alias.
fn may_alias(facts: View<'_>, a: AliasSetId, b: AliasSetId) -> bool {
    let named = |class: AliasSetId| {
        let origins = &facts.memory.get(class).origins;
        origins
            .iter()
            .any(|origin| matches!(origin, MemoryOrigin::Argument(..)))
    };
    a != b && !(named(a) && named(b)) && persistent_memory::share_float_type(facts, a, b)
}

fn unshadowed_store(
    facts: View<'_>,
    func: FuncId,
    body: &Body,
    op: Op,
    class: AliasSetId,
    barred: Option<GlobalId>,
) -> Diagnostic {
    let unit = facts.unit;
    if let Some(global) = barred {
        let variable = &unit.globals[global];
        let name = &variable.name;
        return if variable.thread_local {
            let message = format!("active values are stored in the thread-local variable `{name}`");
            at(unit, func, body, op, Code::ThreadLocalGlobal, message).help(format!(
                "pass `{name}` as an argument, or remove the thread-local storage class"
            ))
        } else {
            let message =
                format!("active values are stored in `{name}`, a variable of another file");
            at(unit, func, body, op, Code::ExternalGlobal, message).help(format!(
                "compile the file that defines `{name}` together with this one"
            ))
        };
    }
    if let Some(finding) = from_allocator(facts, (func, body, op), class) {
        return finding;
    }
    let origins = &facts.memory.get(class).origins;
    let is_pointer = |root: FuncId, index: usize| {
        let params = unit.param_types(unit.functions[root].ty);
        params.get(index).is_some_and(|ty| unit.types.is_ptr(*ty))
    };
    let argument = origins.iter().find_map(|o| match o {
        MemoryOrigin::Argument(func, index) if is_pointer(*func, *index as usize) => {
            Some((*func, *index as usize))
        }
        _ => None,
    });
    match argument {
        Some((root, index)) => {
            let names = &unit.functions[root].param_names;
            let name = names.get(index).cloned().flatten();
            let name = name.unwrap_or_else(|| format!("argument {}", index + 1));
            let message = format!(
                "active values are stored in memory of `{name}`, a const argument, and read back"
            );
            at(unit, func, body, op, Code::BadRequest, message)
                .help(format!("mark `{name}` as dup and pass a shadow"))
        }
        None => {
            let message = "active values are stored in memory without a shadow, and read back";
            at(unit, func, body, op, Code::BadRequest, message.to_string())
                .note("the memory is reachable from a const argument or comes from an external function")
                .help("mark the argument that points to the memory as dup")
        }
    }
}

/// Returns the diagnostic for memory from an unknown callee: an allocator without source.
fn from_allocator(
    facts: View<'_>,
    (func, body, store): (FuncId, &Body, Op),
    class: AliasSetId,
) -> Option<Diagnostic> {
    let unit = facts.unit;
    let sites = facts.closure.bodies(unit);
    let sites = sites.flat_map(|(func, _)| facts.closure.calls_in(func));
    let givers: Vec<&CallSite> = sites
        .filter(|site| returns_into(facts, class, site))
        .collect();
    // Prefers the call whose result is the base of the store's address.
    let base = base_of(body, body.operand(store, 1));
    let direct = |site: &&&CallSite| {
        site.caller == func && base.is_some() && body.call_result(site.op) == base
    };
    let site = givers.iter().find(direct).or_else(|| givers.first())?;
    let caller = unit.functions[site.caller].body.as_deref()?;
    let (code, message, help) = match site.callee {
        Callee::Outside(callee) => {
            let name = name_of(unit, callee);
            (
                Code::UnknownCallee,
                format!(
                    "active values are stored in memory from `{name}`, an external function"
                ),
                format!(
                    "compile the file that defines `{name}` together with this one, or register `{name}` as an allocator with `__enzyme_allocation_like`"
                ),
            )
        }
        _ => (
            Code::UnknownIndirectTarget,
            "active values are stored in memory from an indirect call without a known target".into(),
            "compile the file that defines the target together with this one, or directly call an allocator that is registered with `__enzyme_allocation_like`".into(),
        ),
    };
    let place = unit.span(body.ops[store].loc);
    let finding = at(unit, site.caller, caller, site.op, code, message).help(help);
    Some(match place {
        Some(place) => finding.note(format!(
            "the values are stored at {}:{}",
            place.file, place.line
        )),
        None => finding,
    })
}

/// Returns true if a call of an unknown function returns a pointer into an alias set.
fn returns_into(facts: View<'_>, class: AliasSetId, site: &CallSite) -> bool {
    let unit = facts.unit;
    let not_seen = match site.callee {
        Callee::Outside(callee) => unit.known(callee).is_none(),
        Callee::Indirect(_) => {
            let callees = facts.memory.callees(site.caller, site.op);
            callees.is_empty() && facts.memory.may_call_unknown(site.caller, site.op)
        }
        Callee::Inside(_) | Callee::Foreign => false,
    };
    let body = unit.functions[site.caller].body.as_deref();
    let result = body.and_then(|body| body.call_result(site.op));
    not_seen
        && result.is_some_and(|result| {
            facts.words.carries_pointer(site.caller, result)
                && (facts.memory).may_point_into(site.caller, result, |other| other == class)
        })
}

/// Returns the call result from which an address is computed by offsets.
fn base_of(body: &Body, address: Value) -> Option<Value> {
    let base = body.address_base(address);
    body.kind(body.def_op(base)?).call_info().map(|_| base)
}
