//! Which functions may put the iterations that call them in an order, or tell them apart.
//!
//! A loop may run its iterations at once where the program said so, but the serial projection drops what
//! the program relied on beside that: locks, and the numbers of threads. In the loop itself they are
//! seen; in what it calls they are looked for here, before anything is projected.

use gradus_ir::known::{Known, OpenMpFn, SystemFn};
use gradus_ir::{Body, FuncId, Op, OpKind, Unit};
use std::collections::HashSet;

/// What is asked of an op of a body; the functions are those of which it is known already.
type Asked<'a> = &'a dyn Fn(&Unit, &Body, Op, &HashSet<FuncId>) -> bool;

/// The functions of a unit that may, by themselves or by what they call.
pub(crate) fn ordered(unit: &Unit) -> HashSet<FuncId> {
    closed(unit, &orders)
}

/// The functions that hold an op of which something is so, by themselves or by what they call.
pub(crate) fn closed(unit: &Unit, asked: Asked<'_>) -> HashSet<FuncId> {
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

/// Whether an op may order the threads that come to it, or tell them apart; `ordered` are functions
/// that do.
pub(crate) fn orders(unit: &Unit, body: &Body, op: Op, ordered: &HashSet<FuncId>) -> bool {
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
                    Known::Math(_)
                    | Known::MathOut(_)
                    | Known::Complex(_)
                    | Known::Marker(_)
                    | Known::Integer(_)
                    | Known::Reduce(_)
                    | Known::Masked(_)
                    | Known::Memory(_)
                    // It is the same number for all iterations.
                    | Known::OpenMp(OpenMpFn::Ranks)
                    // Which of several iterations ends the program is not said, in the program either.
                    | Known::System(SystemFn::Exit | SystemFn::AssertFail),
                ) => false,
                Some(_) => true,
                None => unit.functions[callee].body.is_none() || ordered.contains(&callee),
            }
        }
    }
}
