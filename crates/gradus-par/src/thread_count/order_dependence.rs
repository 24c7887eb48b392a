//! Order dependence: functions that may order or distinguish calling iterations.
//!
//! A parallel loop may run concurrently, but the serial projection drops locks and thread numbers, on which the
//! program also relied. The loop's own region is checked directly; callees are summarised here, before any
//! projection.

use gradus_ir::externals::{ExternalFn, OpenMpFn, SystemFn};
use gradus_ir::{Body, FuncId, Op, OpKind, Unit};
use std::collections::HashSet;

/// A predicate on an op. The set holds the functions known to satisfy the predicate.
type OpPredicate<'a> = &'a dyn Fn(&Unit, &Body, Op, &HashSet<FuncId>) -> bool;

/// Returns the functions that may order their callers' iterations, directly or by a callee.
pub(crate) fn order_dependent_functions(unit: &Unit) -> HashSet<FuncId> {
    functions_reaching(unit, &may_order_iterations)
}

/// Returns the functions with an op that satisfies `asked`, directly or by a callee, as a least fixpoint.
pub(crate) fn functions_reaching(unit: &Unit, asked: OpPredicate<'_>) -> HashSet<FuncId> {
    let with_bodies = unit.functions.iter().filter(|(_, f)| f.body.is_some());
    let mut open: Vec<FuncId> = with_bodies.map(|(func, _)| func).collect();
    let mut ordered: HashSet<FuncId> = HashSet::new();
    loop {
        let before = ordered.len();
        open.retain(|&func| {
            let orders = unit.functions[func].body.as_ref().is_none_or(|body| {
                let mut ops = body.walk(body.root());
                ops.any(|op| asked(unit, body, op, &ordered))
            });
            if orders {
                ordered.insert(func);
            }
            !orders
        });
        if ordered.len() == before {
            return ordered;
        }
    }
}

/// Returns true if `op` may order or distinguish threads; `ordered` holds the functions that do.
pub(crate) fn may_order_iterations(
    unit: &Unit,
    body: &Body,
    op: Op,
    ordered: &HashSet<FuncId>,
) -> bool {
    match body.kind(op) {
        OpKind::ParFor { .. } => false,
        kind if kind.is_parallel() => true,
        kind if kind.call_info().is_none() => false,
        _ => {
            let Some(callee) = unit.callee(body, op) else {
                return true;
            };
            match unit.known(callee) {
                Some(
                    ExternalFn::Math(_)
                    | ExternalFn::MathOut(_)
                    | ExternalFn::Complex(_)
                    | ExternalFn::Marker(_)
                    | ExternalFn::Integer(_)
                    | ExternalFn::Reduce(_)
                    | ExternalFn::Masked(_)
                    | ExternalFn::Memory(_)
                    // Equal for all iterations.
                    | ExternalFn::OpenMp(OpenMpFn::RequestedTeamSize)
                    // The program does not state either which of several iterations terminates the program.
                    | ExternalFn::System(SystemFn::Exit | SystemFn::AssertFail),
                ) => false,
                Some(_) => true,
                None => unit.functions[callee].body.is_none() || ordered.contains(&callee),
            }
        }
    }
}
