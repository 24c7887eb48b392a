//! The same bits for any number of workers: what depends on the order in which workers come somewhere runs
//! in the program's order.
//!
//! Reductions have the same bits by themselves: the library cuts and combines them by the number of
//! iterations alone. What has not is an atomic sum of floats, whatever uses what an atomic operation found,
//! a locked region, and a team, whose ranks are as many as there are workers, or come in any order. A team that is
//! to have a stated number of ranks is a loop over them by now, or keeps them. Another parallel op that holds such a
//! thing, or calls what does or is not known, becomes its serial projection, innermost ones first, and
//! adds plainly; parallel loops around and inside that hold none stay.

use crate::{alone, ordered, serial, sized, tasks};
use gradus_ir::{Body, Builder, FuncId, LocId, Op, OpKind, RmwOp, Unit};
use std::collections::HashSet;

/// Makes all parallel ops of `functions` serial whose results may depend on the order of their strands; gives
/// each one's function and place.
pub fn keep_order(unit: &mut Unit, functions: &[FuncId]) -> Vec<(FuncId, Option<LocId>)> {
    let unordered = ordered::closed(unit, &depends);
    let asks_final = unit
        .functions
        .ids()
        .any(|func| serial::is_final_question(unit, func));
    let mut serialised = Vec::new();
    for &func in functions {
        // A function that calls itself is looked at while it is worked on.
        let Some(mut body) = unit.functions[func].body.clone() else {
            continue;
        };
        let keeps = sized::sized(unit, &body);
        let forks: Vec<Op> = body
            .walk(body.root())
            .filter(|op| forks(&body, *op))
            .collect();
        for op in forks.into_iter().rev() {
            let is_team = matches!(body.kind(op), OpKind::Spmd { .. });
            if is_team && keeps.contains(&op) {
                continue;
            }
            let mut inside = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
            if is_team || inside.any(|op| depends(unit, &body, op, &unordered)) {
                serialised.push((func, body.ops[op].loc));
                if asks_final {
                    tasks::begin_final(&mut Builder::new(unit, &mut body), op);
                }
                serial::lower(unit, &mut body, op);
            }
        }
        alone::make_plain(unit, &mut body);
        unit.functions[func].body = Some(body);
    }
    serialised
}

/// Whether an op has strands that run at the same time.
fn forks(body: &Body, op: Op) -> bool {
    matches!(
        body.kind(op),
        OpKind::ParFor { .. } | OpKind::Spmd { .. } | OpKind::Spawn { .. }
    )
}

/// Whether what an op gives, or leaves in memory, may depend on which of several strands comes first.
fn depends(unit: &Unit, body: &Body, op: Op, unordered: &HashSet<FuncId>) -> bool {
    match body.kind(op) {
        OpKind::ParFor { .. } | OpKind::Scope | OpKind::Spawn { .. } | OpKind::Sync => false,
        OpKind::AtomicRmw(how, _) => !commutes(*how) || body.has_uses(body.result(op)),
        OpKind::CmpXchg { .. } => true,
        OpKind::Load(access) | OpKind::Store(access) => !access.is_plain(),
        _ => ordered::orders(unit, body, op, unordered),
    }
}

/// Whether memory is the same in the end in whatever order such operations come.
fn commutes(how: RmwOp) -> bool {
    use RmwOp::{Add, And, Max, Min, Or, Sub, UMax, UMin, Xor};
    matches!(how, Add | Sub | And | Or | Xor | Max | Min | UMax | UMin)
}
