//! Active values stored to memory without a shadow and read back, with the memory's origin.
//!
//! Several checks read the list: the origin decides the code.

use crate::activity::memory::MemoryActivity;
use crate::call_graph::{CallSite, Callee};
use crate::checks::finding::at;
use crate::checks::outlives::persistent_memory::share_float_type;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSetId, MemoryOrigin};
use crate::view::View;
use gradus_ir::{Body, Code, Diagnostic, FuncId, GlobalId, Linkage, Op, Unit, Value};
use std::collections::HashSet;

/// A store of active floats to memory without a shadow.
pub(crate) struct UnshadowedStore<'a> {
    pub func: FuncId,
    pub body: &'a Body,
    pub op: Op,
    pub destination: Destination,
}

/// Origin of the memory without a shadow.
#[derive(Clone, Copy)]
pub(crate) enum Destination {
    /// A thread-local variable.
    ThreadLocal(GlobalId),
    /// A variable that another file defines.
    OtherFile(GlobalId),
    /// The result of an unknown function.
    Allocator(CallSite, FuncId),
    /// The result of an indirect call without a known target.
    IndirectAllocator(CallSite),
    /// A const argument of a function, by position.
    Argument(FuncId, usize),
    /// Memory of another origin.
    Other,
    /// Memory of a const argument, while a read of other const memory may alias the store.
    ConstAlias,
}

/// Provenance of an alias set, as far as known.
#[derive(Clone, Copy)]
struct Provenance {
    /// A global that cannot have a shadow in this unit.
    barred: Option<GlobalId>,
    /// True if no object of the set has a shadow.
    bare: bool,
    /// True if the set is reachable from a const argument and from no argument with a shadow.
    promised: bool,
}

impl Provenance {
    fn of(classes: &MemoryActivity, class: AliasSetId) -> Provenance {
        // A pointer into a shadow group with a shadow has a shadow, or a run-time test decides.
        let group = classes.group_provenance(class);
        Provenance {
            barred: classes.provenance(class).barred,
            bare: group.constant && !group.dup && !group.allocated_inside,
            promised: group.promised && !group.dup,
        }
    }
}

/// Returns the stores of active values to memory without a shadow that is read back: the first per alias set.
pub(crate) fn unshadowed_stores<'a>(
    facts: View<'a>,
    classes: &MemoryActivity,
) -> Vec<UnshadowedStore<'a>> {
    let source = |class| Provenance::of(classes, class);
    let mut list = Vec::new();
    let mut told = HashSet::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            let mut found = |destination| {
                list.push(UnshadowedStore {
                    func,
                    body,
                    op,
                    destination,
                });
            };
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
                        found(destination(facts, (func, body, op), class, from.barred));
                    } else if from.promised && told.insert(class) {
                        let others = facts.memory.alias_sets().map(|(other, _)| other);
                        let mut read = others
                            .filter(|other| source(*other).promised && classes.is_useful(*other));
                        if read.any(|other| may_alias(facts, class, other)) {
                            found(Destination::ConstAlias);
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
        other.is_some_and(|other| classes.is_useful(other) && share_float_type(facts, class, other))
    };
    let mut globals = facts.closure.globals().iter();
    origins.iter().any(is_unseen) && globals.any(|global| is_exported(global) && is_read(global))
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
    a != b && !(named(a) && named(b)) && share_float_type(facts, a, b)
}

/// Returns the origin of the memory behind a store. `barred` is a global of the alias set that cannot have a shadow.
fn destination(
    facts: View<'_>,
    store: (FuncId, &Body, Op),
    class: AliasSetId,
    barred: Option<GlobalId>,
) -> Destination {
    let unit = facts.unit;
    if let Some(global) = barred {
        return match unit.globals[global].thread_local {
            true => Destination::ThreadLocal(global),
            false => Destination::OtherFile(global),
        };
    }
    if let Some(site) = allocation(facts, store, class) {
        return match site.callee {
            Callee::Outside(callee) => Destination::Allocator(site, callee),
            _ => Destination::IndirectAllocator(site),
        };
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
        Some((root, index)) => Destination::Argument(root, index),
        None => Destination::Other,
    }
}

impl UnshadowedStore<'_> {
    /// Returns an error at the store.
    pub fn error(&self, unit: &Unit, code: Code, message: impl Into<String>) -> Diagnostic {
        at(unit, self.func, self.body, self.op, code, message)
    }

    /// Returns an error at the call that returns the memory.
    pub fn error_at_allocation(
        &self,
        unit: &Unit,
        site: CallSite,
        code: Code,
        message: impl Into<String>,
    ) -> Diagnostic {
        let Some(caller) = unit.functions[site.caller].body.as_deref() else {
            unreachable!("a call lies in a body");
        };
        let error = at(unit, site.caller, caller, site.op, code, message);
        match unit.span(self.body.ops[self.op].loc) {
            Some(place) => error.note(format!(
                "the values are stored at {}:{}",
                place.file, place.line
            )),
            None => error,
        }
    }
}

/// Returns a call of an unknown function that returns a pointer into an alias set: an allocator without source.
fn allocation(
    facts: View<'_>,
    (func, body, store): (FuncId, &Body, Op),
    class: AliasSetId,
) -> Option<CallSite> {
    let sites = facts.closure.bodies(facts.unit);
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
    Some(**site)
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
