//! Functions to be differentiated only at the link: functions that reach a differentiation call whose
//! function is defined in another file.
//!
//! Steps: (1) collect the functions with such a call; (2) propagate backwards over calls, and over
//! functions named by differentiation calls.

use super::{Call, find, function_of};
use gradus_ir::{Body, FuncId, Unit};
use std::collections::{HashMap, HashSet};

/// Returns the functions whose differentiation must wait for the link.
pub(super) fn functions_deferred_to_link(unit: &Unit) -> HashSet<FuncId> {
    let mut found = HashSet::new();
    let mut users: HashMap<FuncId, Vec<FuncId>> = HashMap::new();
    for (site, function) in unit.functions.iter() {
        let Some(body) = function.body.as_deref() else {
            continue;
        };
        for named in named(unit, body, site) {
            let elsewhere = &unit.functions[named];
            if elsewhere.body.is_none() && unit.known(named).is_none() {
                found.insert(site);
            }
            users.entry(named).or_default().push(site);
        }
        for op in body.walk(body.root()) {
            if let Some(callee) = unit.callee(body, op) {
                users.entry(callee).or_default().push(site);
            }
        }
    }
    let mut work: Vec<FuncId> = found.iter().copied().collect();
    while let Some(func) = work.pop() {
        for &user in users.get(&func).map_or(&[][..], Vec::as_slice) {
            if found.insert(user) {
                work.push(user);
            }
        }
    }
    found
}

/// Returns the functions named by the differentiation calls of a body.
fn named(unit: &Unit, body: &Body, site: FuncId) -> Vec<FuncId> {
    let calls = find(unit, body).into_iter();
    calls
        .filter_map(|(op, _)| {
            let call = Call {
                unit,
                body,
                op,
                site,
            };
            let (args, _) = call.arguments();
            function_of(&call, args.first()?.1).ok()
        })
        .collect()
}
