//! Unknown callees that receive active memory. The contents and types of the memory are unknown after the
//! call. Diagnostics about memory contents are therefore attributed to the callees. Regions that stay with
//! OpenMP's library are treated alike, because the library passes shared variables as integers.

use crate::activity::memory::{ClassFacts, ClassState, Facts};
use crate::call_graph::Callee;
use gradus_ir::{Body, Code, Diagnostic, FuncId, Op, Severity};
use std::collections::BTreeSet;

/// Adds the possible unknown callees to diagnostics about memory contents. If the callee is itself refused,
/// the diagnostics about contents are redundant and are removed.
pub(crate) fn blame(facts: Facts<'_>, classes: &ClassFacts, findings: &mut Vec<Diagnostic>) {
    let about_memory = |d: &Diagnostic| matches!(d.code, Code::UnknownMemoryType | Code::FloatBits);
    if !findings.iter().any(about_memory) {
        return;
    }
    if findings.iter().any(|d| d.code == Code::OpenMp) {
        findings.retain(|d| !about_memory(d));
        return;
    }
    let names = names(facts, classes);
    if names.is_empty() {
        return;
    }
    let list: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let refuses_one = |d: &Diagnostic| {
        d.code == Code::UnknownCallee
            && d.severity == Severity::Error
            && list.iter().any(|name| d.message.starts_with(name))
    };
    if findings.iter().any(refuses_one) {
        findings.retain(|d| !about_memory(d));
        return;
    }
    let list = list.join(", ");
    for finding in findings.iter_mut().filter(|d| about_memory(d)) {
        finding.notes.push(format!(
            "active memory is handed to code that is not seen, which may do this or anything else with it: {list}"
        ));
        finding.help = Some(format!(
            "compile the files that define {list} together with this one"
        ));
    }
}

/// Returns the names of the unknown callees that receive active memory.
fn names(facts: Facts<'_>, classes: &ClassFacts) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for site in facts.closure.calls_in(func) {
            let Callee::Outside(callee) = site.callee else {
                continue;
            };
            let unknown = facts.unit.known(callee).is_none();
            if unknown && sees_active_memory(facts, classes, func, body, site.op) {
                names.insert(facts.unit.functions[callee].name.clone());
            }
        }
    }
    names
}

fn sees_active_memory(
    facts: Facts<'_>,
    classes: &ClassFacts,
    func: FuncId,
    body: &Body,
    op: Op,
) -> bool {
    let args = facts.unit.call_args(body, op);
    args.into_iter().any(|arg| {
        let class = facts.memory.class(func, arg);
        class.is_some_and(|class| {
            facts.memory.get(class).escaped && classes.state(class) != ClassState::Inactive
        })
    })
}
