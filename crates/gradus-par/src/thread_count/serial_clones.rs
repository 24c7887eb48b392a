//! Serial clones: redirects calls of differentiated functions from derivatives and their callers, if all
//! thread-count queries return one.
//!
//! A derivative calls the original function if only side effects and result are required. The original has a
//! team of all threads, but the derivative's code sees one thread and expects the memory state left by one
//! thread. The derivative therefore calls a clone of the serial projection. Code that requests derivatives sees
//! one thread, too, and calls the clone.

use crate::thread_count::order_dependence;
use crate::thread_count::queries::queries_max_threads;
use gradus_ir::{Body, Builder, FuncId, Function, Linkage, Op, OpKind, Unit};
use std::collections::{HashMap, HashSet};

/// Returns the functions that query the maximum number of threads or have a team, directly or by a callee.
pub(crate) fn functions_with_teams_or_queries(unit: &Unit) -> HashSet<FuncId> {
    order_dependence::functions_reaching(unit, &|unit, body, op, known| {
        let callee = unit.callee(body, op);
        queries_max_threads(unit, body, op)
            || matches!(body.kind(op), OpKind::Spmd { .. })
            || callee.is_some_and(|callee| known.contains(&callee))
    })
}

/// Redirects calls in `callers`, and in all generated functions, from host functions in `projected` to clones.
pub fn redirect_to_serial_clones(unit: &mut Unit, projected: &HashSet<FuncId>, callers: &[FuncId]) {
    let made = unit.functions.iter();
    let made = made.filter(|(_, f)| f.body.is_some() && !f.defined);
    let mut work: Vec<FuncId> = made.map(|(func, _)| func).collect();
    work.extend(callers);
    let mut copies: HashMap<FuncId, FuncId> = HashMap::new();
    while let Some(func) = work.pop() {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        for (op, callee) in calls_to_redirect(unit, &body, func, projected) {
            let copy = *copies.entry(callee).or_insert_with(|| {
                let copy = serial_clone(unit, callee, (callee == func).then_some(&*body));
                work.push(copy);
                copy
            });
            let target = Builder::new(unit, &mut body).func(copy);
            body.set_operand(op, 0, target);
        }
        unit.functions[func].body = Some(body);
    }
}

/// Returns the calls to redirect in a body.
fn calls_to_redirect(
    unit: &Unit,
    body: &Body,
    func: FuncId,
    projected: &HashSet<FuncId>,
) -> Vec<(Op, FuncId)> {
    let of_copy = |op: Op| {
        let callee = unit.callee(body, op)?;
        let function = &unit.functions[callee];
        let is_there = function.body.is_some() || callee == func;
        let taken = function.defined && is_there && projected.contains(&callee);
        taken.then_some((op, callee))
    };
    body.walk(body.root()).filter_map(of_copy).collect()
}

/// Clones a function; `body` is its body if the body is currently taken out of the unit.
fn serial_clone(unit: &mut Unit, func: FuncId, body: Option<&Body>) -> FuncId {
    let function = unit.functions[func].clone();
    let name = unit.fresh_name(&format!("{}.gr_one", function.name));
    let body = function.body.or_else(|| body.cloned().map(Box::new));
    unit.add_function(Function {
        name,
        linkage: Linkage::Internal,
        defined: false,
        body,
        derived_from: Some(func),
        ..function
    })
}
