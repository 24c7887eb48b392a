//! Active memory that code which is not seen can change: a call of an outside function that is handed
//! nothing active may still write to variables that other files see, or lead back to a function of the
//! program that was handed out (a handler of signals, a callback). What it does there has a derivative that
//! nobody knows.

use crate::activity::{ClassFacts, Facts};
use crate::closure::Callee;
use crate::flow::{self, ValueAccess};
use crate::lost::Lost;
use crate::memory::{ClassId, Origin};
use gradus_ir::{AttrValue, Body, Code, Diagnostic, FuncId, Linkage, Op, Unit};
use std::collections::HashSet;

/// A finding for each outside function that may change active memory, at the first of its calls.
pub(crate) fn findings(facts: Facts<'_>, classes: &ClassFacts) -> Vec<Diagnostic> {
    let mut list = Vec::new();
    let Some(changed) =
        changed_variable(facts, classes).or_else(|| changed_by_way_back(facts, classes))
    else {
        return list;
    };
    let mut told = HashSet::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        let lost = Lost::of(facts.unit, body);
        for op in body.walk(body.root()) {
            let Some(Callee::Outside(callee)) = facts.closure.callee(facts.unit, body, op) else {
                continue;
            };
            let harmless = facts.unit.known(callee).is_some()
                || lost.contains(body, op)
                || !may_write_anything(facts.unit, body, op, callee);
            if !harmless && told.insert(callee) {
                list.push(finding(facts.unit, (func, body, op), callee, &changed));
            }
        }
    }
    list
}

/// Whether floats of a class depend on the inputs and the outputs on them.
fn is_at_stake(classes: &ClassFacts, class: ClassId) -> bool {
    classes.holds_active_floats(class) && classes.is_varied(class) && classes.is_useful(class)
}

/// A variable that other files see and that holds active numbers or leads to them.
fn changed_variable(facts: Facts<'_>, classes: &ClassFacts) -> Option<String> {
    let unit = facts.unit;
    let mut globals = unit.globals.iter();
    let (_, global) = globals.find(|(id, global)| {
        let open = !global.constant && global.linkage != Linkage::Internal;
        open && facts
            .memory
            .global(*id)
            .is_some_and(|place| leads_to_stake(facts, classes, place.class))
    })?;
    Some(format!("`{}`", global.name))
}

fn leads_to_stake(facts: Facts<'_>, classes: &ClassFacts, start: ClassId) -> bool {
    let (mut seen, mut work) = (HashSet::from([start]), vec![start]);
    while let Some(class) = work.pop() {
        if is_at_stake(classes, class) {
            return true;
        }
        work.extend(
            facts
                .memory
                .stored(class)
                .into_iter()
                .filter(|next| seen.insert(*next)),
        );
    }
    false
}

/// What a function that was handed to code that is not seen changes.
fn changed_by_way_back(facts: Facts<'_>, classes: &ClassFacts) -> Option<String> {
    let escaped = facts.memory.classes().filter(|(_, class)| class.escaped);
    let origins = escaped.flat_map(|(_, class)| class.origins.iter());
    origins.into_iter().find_map(|origin| {
        let Origin::Function(func) = *origin else {
            return None;
        };
        let body = facts.unit.functions[func].body.as_deref()?;
        let writes = facts.closure.contains(func)
            && body
                .walk(body.root())
                .any(|op| stores_at_stake(facts, classes, func, body, op));
        let function = &facts.unit.functions[func];
        let name = function.source_name.as_ref().unwrap_or(&function.name);
        writes.then(|| format!("what `{name}` writes"))
    })
}

fn stores_at_stake(
    facts: Facts<'_>,
    classes: &ClassFacts,
    func: FuncId,
    body: &Body,
    op: Op,
) -> bool {
    let mut hit = false;
    flow::value_accesses(facts.unit, body, op, |touch| {
        if let ValueAccess::Store { ptr, .. } = touch {
            let class = facts.memory.class(func, ptr);
            hit |= class.is_some_and(|class| is_at_stake(classes, class));
        }
    });
    hit
}

/// Whether nothing is stated that keeps a function from writing to memory other than its arguments'.
fn may_write_anything(unit: &Unit, body: &Body, op: Op, callee: FuncId) -> bool {
    let info = body.kind(op).call_info();
    let stated = [
        Some(unit.functions[callee].attrs),
        info.and_then(|i| i.attrs),
    ];
    !stated.into_iter().flatten().any(|id| {
        let attrs = unit.attrs(id);
        let flags = ["readnone", "readonly"];
        // LLVM's encoding of `memory`: two bits (reads, writes) per location; the fourth is all other memory.
        let memory =
            matches!(attrs.function("memory"), Some(AttrValue::Int(bits)) if bits >> 6 & 2 == 0);
        memory || flags.iter().any(|flag| attrs.function(flag).is_some())
    })
}

fn finding(unit: &Unit, at: (FuncId, &Body, Op), callee: FuncId, changed: &str) -> Diagnostic {
    let (func, body, op) = at;
    let named = |func: FuncId| {
        let function = &unit.functions[func];
        function
            .source_name
            .clone()
            .unwrap_or_else(|| function.name.clone())
    };
    let name = named(callee);
    let message =
        format!("`{name}` is not seen, and may change {changed}, which carries derivatives");
    Diagnostic::error(Code::UnknownCallee, message)
        .in_function(named(func))
        .at(unit.span(body.ops[op].loc), "here")
        .help(format!(
            "compile the file that defines `{name}` together with this one, make the variable `static`, or state by `GRADUS_INACTIVE({name})` that it changes no such memory"
        ))
}
