//! Unknown callees that receive active memory. The contents and types of the memory are unknown after the
//! call. Diagnostics about memory contents are therefore attributed to the callees. Regions that stay with
//! OpenMP's library are treated alike, because the library passes shared variables as integers.

use crate::activity::memory::{MemoryActivity, ShadowPresence};
use crate::call_graph::Callee;
use crate::view::View;
use gradus_ir::{Body, Code, Diagnostic, FuncId, Op, Severity};
use std::collections::BTreeSet;

/// Adds the possible unknown callees to diagnostics about memory contents. If the callee is itself refused,
/// the diagnostics about contents are redundant and are removed.
pub(crate) fn attribute_to_unknown_callees(
    facts: View<'_>,
    classes: &MemoryActivity,
    findings: &mut Vec<Diagnostic>,
) {
    let about_memory = |d: &Diagnostic| matches!(d.code, Code::UnknownMemoryType | Code::FloatBits);
    if !findings.iter().any(about_memory) {
        return;
    }
    if findings.iter().any(|d| d.code == Code::OpenMp) {
        findings.retain(|d| !about_memory(d));
        return;
    }
    let names = names_of_unknown_callees(facts, classes);
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
            "active memory escapes to functions without a body in this program, and the functions may access the memory in any way: {list}"
        ));
        finding.help = Some(format!(
            "compile the files that define {list} together with this one"
        ));
    }
}

/// Returns the names of the unknown callees that receive active memory.
fn names_of_unknown_callees(facts: View<'_>, classes: &MemoryActivity) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for site in facts.closure.calls_in(func) {
            let Callee::Outside(callee) = site.callee else {
                continue;
            };
            let unknown = facts.unit.known(callee).is_none();
            if unknown && receives_active_memory(facts, classes, func, body, site.op) {
                names.insert(facts.unit.functions[callee].name.clone());
            }
        }
    }
    names
}

fn receives_active_memory(
    facts: View<'_>,
    classes: &MemoryActivity,
    func: FuncId,
    body: &Body,
    op: Op,
) -> bool {
    let args = facts.unit.call_args(body, op);
    args.into_iter().any(|arg| {
        facts.memory.may_point_into(func, arg, |class| {
            facts.memory.get(class).escaped && classes.state(class) != ShadowPresence::Inactive
        })
    })
}
