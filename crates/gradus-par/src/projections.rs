//! Calls of functions that are differentiated, by derivatives and beside them, where all answers are one.
//!
//! A derivative calls the program's own function where it needs nothing of it but what it does. That one has a team of
//! all threads; the derivative's code was told of one, and would look for what one thread leaves. It calls a copy of
//! the projection instead, and so does the code that asks for derivatives, which was told of one, too.

use crate::asked::asks;
use crate::ordered;
use gradus_ir::{Body, Builder, FuncId, Function, Linkage, Op, OpKind, Unit};
use std::collections::{HashMap, HashSet};

/// The functions that ask how many threads there may be, or have a team, by themselves or by what they call.
pub(crate) fn speaking(unit: &Unit) -> HashSet<FuncId> {
    ordered::closed(unit, &|unit, body, op, known| {
        let callee = unit.callee(body, op);
        asks(unit, body, op)
            || matches!(body.kind(op), OpKind::Spmd { .. })
            || callee.is_some_and(|callee| known.contains(&callee))
    })
}

/// Makes `callers`, and all functions that are not the host's, call copies of the functions in `projected` where these
/// are the host's.
pub fn call_projections(unit: &mut Unit, projected: &HashSet<FuncId>, callers: &[FuncId]) {
    let made = unit.functions.iter();
    let made = made.filter(|(_, f)| f.body.is_some() && !f.defined);
    let mut work: Vec<FuncId> = made.map(|(func, _)| func).collect();
    work.extend(callers);
    let mut copies: HashMap<FuncId, FuncId> = HashMap::new();
    while let Some(func) = work.pop() {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        for (op, callee) in calls(unit, &body, func, projected) {
            let copy = *copies.entry(callee).or_insert_with(|| {
                let copy = copy(unit, callee, (callee == func).then_some(&*body));
                work.push(copy);
                copy
            });
            let target = Builder::new(unit, &mut body).func(copy);
            body.set_operand(op, 0, target);
        }
        unit.functions[func].body = Some(body);
    }
}

/// The calls of such functions in a body.
fn calls(unit: &Unit, body: &Body, func: FuncId, projected: &HashSet<FuncId>) -> Vec<(Op, FuncId)> {
    let of_copy = |op: Op| {
        let callee = unit.callee(body, op)?;
        let function = &unit.functions[callee];
        let is_there = function.body.is_some() || callee == func;
        let taken = function.defined && is_there && projected.contains(&callee);
        taken.then_some((op, callee))
    };
    body.walk(body.root()).filter_map(of_copy).collect()
}

/// A copy of a function; `body` is its body where that is taken out.
fn copy(unit: &mut Unit, func: FuncId, body: Option<&Body>) -> FuncId {
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
