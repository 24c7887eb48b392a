//! Functions with parallel loops, taken in where they are called.
//!
//! A region's code becomes a function of its own that gets what it uses through memory: what its caller
//! knows, constants and functions to call, must be in its place before. So short functions that fork
//! are inlined into their callers while their loops are still ops.

use gradus_edit::inline_call;
use gradus_ir::{Body, FuncId, Linkage, Op, OpKind, Unit};
use std::collections::HashSet;

/// A function of at most this many ops is taken in wherever it is called; a longer one where that is
/// one place.
const SHORT_OPS: usize = 150;

/// Takes the functions with parallel ops among `functions` in where they are called in `callers`; gives
/// the callers that call one of them, whose bodies are new or may move such calls.
pub(crate) fn take_in(unit: &mut Unit, functions: &[FuncId], callers: &[FuncId]) -> Vec<FuncId> {
    let forking: HashSet<FuncId> = functions
        .iter()
        .copied()
        .filter(|func| forks(unit, *func))
        .collect();
    let mut changed = Vec::new();
    for &caller in callers {
        let Some(mut body) = unit.functions[caller].body.take() else {
            continue;
        };
        let calls: Vec<(Op, FuncId)> = body
            .walk(body.root())
            .filter_map(|op| Some((op, unit.callee(&body, op)?)))
            .filter(|(_, callee)| forking.contains(callee))
            .collect();
        for &(op, callee) in &calls {
            let here = calls.iter().filter(|(_, other)| *other == callee).count();
            if let Some(code) = code(unit, callee, here) {
                let _stays_a_call = inline_call(unit, &mut body, op, callee, &code);
            }
        }
        unit.functions[caller].body = Some(body);
        if !calls.is_empty() {
            changed.push(caller);
        }
    }
    changed
}

fn forks(unit: &Unit, func: FuncId) -> bool {
    let body = unit.functions[func].body.as_deref();
    body.is_some_and(|b| b.walk(b.root()).any(|op| b.kind(op).is_parallel()))
}

/// The code of a function, if it is to be taken in by a caller that calls it so many times.
fn code(unit: &Unit, func: FuncId, calls: usize) -> Option<Body> {
    let function = &unit.functions[func];
    let attrs = unit.attrs(function.attrs);
    let body = function.body.as_deref()?;
    let own = matches!(function.linkage, Linkage::Internal | Linkage::LinkOnceOdr);
    let recurs = body
        .walk(body.root())
        .any(|op| unit.callee(body, op) == Some(func));
    let tasks = body
        .walk(body.root())
        .any(|op| matches!(body.kind(op), OpKind::Scope | OpKind::Spawn { .. }));
    let short = calls == 1 || body.walk(body.root()).count() <= SHORT_OPS;
    let fits = own && short && !recurs && !tasks && attrs.function("noinline").is_none();
    fits.then(|| body.clone())
}
