//! Inlines functions into parallel loops whose iterations consist of a single call, before differentiation.
//!
//! The derivative of a called function does not see the loop: all its adds to shared shadows are atomic,
//! and overlap of the arguments' memory can only be tested in every iteration. In the loop's own body,
//! analysis decides both: memory read by every iteration is not written by any, and adds of all iterations
//! to an address form a reduction.

use gradus_edit::inline_call;
use gradus_ir::{Body, FuncId, Linkage, Op, OpKind, Unit};

/// Maximum number of ops of an inlined function, and of the loop besides the call.
const INLINED_OPS_MAX: usize = 1500;
const OTHER_OPS_MAX: usize = 12;
/// Maximum depth of nested calls to inline, from the loop inwards.
const CALL_DEPTH_MAX: usize = 3;

/// Inlines callees into the parallel loops of `functions`.
pub fn inline_into_parallel_loops(unit: &mut Unit, functions: &[FuncId]) {
    for &func in functions {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        for _ in 0..CALL_DEPTH_MAX {
            let loops = body.walk(body.root());
            let calls: Vec<(Op, FuncId)> =
                loops.filter_map(|lp| only_call(unit, &body, lp)).collect();
            let taken = calls.into_iter().filter(|&(call, callee)| {
                let code = inlinable_body(unit, callee);
                code.is_some_and(|code| inline_call(unit, &mut body, call, callee, &code).is_ok())
            });
            if taken.count() == 0 {
                break;
            }
        }
        unit.functions[func].body = Some(body);
    }
}

/// Returns the call of a defined function if the call makes up nearly all of a parallel loop's iteration.
fn only_call(unit: &Unit, body: &Body, lp: Op) -> Option<(Op, FuncId)> {
    if !matches!(body.kind(lp), OpKind::ParFor { .. }) {
        return None;
    }
    let inside: Vec<Op> = body
        .walk(body.op_regions(lp)[0])
        .take(OTHER_OPS_MAX + 2)
        .collect();
    let own = |op: &Op| {
        let callee = unit.callee(body, *op)?;
        unit.functions[callee].body.as_ref()?;
        Some((*op, callee))
    };
    let mut calls = inside.iter().filter_map(own);
    let call = calls.next().filter(|_| calls.next().is_none())?;
    (inside.len() <= OTHER_OPS_MAX + 1).then_some(call)
}

/// Returns the body of a function suited for inlining.
fn inlinable_body(unit: &Unit, func: FuncId) -> Option<Body> {
    let function = &unit.functions[func];
    let body = function.body.as_deref()?;
    let own = matches!(function.linkage, Linkage::Internal | Linkage::LinkOnceOdr);
    let short = body.walk(body.root()).nth(INLINED_OPS_MAX).is_none();
    let asked = unit.attrs(function.attrs).function("noinline").is_some();
    let plain = |op: Op| !body.kind(op).is_parallel() && unit.callee(body, op) != Some(func);
    let fits = own && short && !asked && body.walk(body.root()).all(plain);
    fits.then(|| body.clone())
}
