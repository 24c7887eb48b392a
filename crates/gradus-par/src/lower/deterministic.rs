//! Deterministic lowering: equal bits for any number of workers. Code that depends on the arrival order of
//! workers runs in program order.
//!
//! Reductions are deterministic by construction: chunk boundaries and combination order depend on the trip
//! count alone. Order-dependent are atomic float sums, uses of an atomic's old value, critical regions and
//! teams. A team has as many ranks as workers, in any order. A team with a stated number of ranks is already a
//! loop over ranks, or keeps its ranks.
//!
//! A parallel op with order-dependent code, or with a call to an order-dependent or unknown function, becomes
//! its serial projection with plain additions, innermost first. Parallel loops around or inside the op without
//! order-dependent code remain.

use crate::emit::serial;
use crate::lower::{serial_fallback, tasks};
use crate::thread_count::{num_threads, order_dependence};
use gradus_ir::{Body, Builder, FuncId, LocId, Op, OpKind, RmwOp, Unit};
use std::collections::HashSet;

/// Makes serial all parallel ops of `functions` whose results may depend on the order of strands. Returns
/// function and location of each.
pub fn serialize_order_dependent(
    unit: &mut Unit,
    functions: &[FuncId],
) -> Vec<(FuncId, Option<LocId>)> {
    let unordered = order_dependence::functions_reaching(unit, &is_order_dependent);
    let asks_final = unit
        .functions
        .ids()
        .any(|func| serial::is_final_query(unit, func));
    let mut serialised = Vec::new();
    for &func in functions {
        // A recursive function is inspected during the transformation, hence a clone.
        let Some(mut body) = unit.functions[func].body.clone() else {
            continue;
        };
        let keeps = num_threads::teams_with_stated_size(unit, &body);
        let forks: Vec<Op> = body
            .walk(body.root())
            .filter(|op| has_concurrent_strands(&body, *op))
            .collect();
        for op in forks.into_iter().rev() {
            let is_team = matches!(body.kind(op), OpKind::Spmd { .. });
            if is_team && keeps.contains(&op) {
                continue;
            }
            let mut inside = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
            if is_team || inside.any(|op| is_order_dependent(unit, &body, op, &unordered)) {
                serialised.push((func, body.ops[op].loc));
                if asks_final {
                    tasks::mark_final_task(&mut Builder::new(unit, &mut body), op);
                }
                serial::lower(unit, &mut body, op);
            }
        }
        serial_fallback::make_between_atomics_plain(unit, &mut body);
        unit.functions[func].body = Some(body);
    }
    serialised
}

/// Returns true if `op` has concurrent strands.
fn has_concurrent_strands(body: &Body, op: Op) -> bool {
    matches!(
        body.kind(op),
        OpKind::ParFor { .. } | OpKind::Spmd { .. } | OpKind::Spawn { .. }
    )
}

/// Returns true if results or memory effects of `op` may depend on the order of concurrent strands.
fn is_order_dependent(unit: &Unit, body: &Body, op: Op, unordered: &HashSet<FuncId>) -> bool {
    match body.kind(op) {
        OpKind::ParFor { .. } | OpKind::Scope | OpKind::Spawn { .. } | OpKind::Sync => false,
        OpKind::AtomicRmw(how, _) => !commutes(*how) || body.has_uses(body.result(op)),
        OpKind::CmpXchg { .. } => true,
        OpKind::Load(access) | OpKind::Store(access) => !access.is_plain(),
        _ => order_dependence::may_order_iterations(unit, body, op, unordered),
    }
}

/// Returns true if the final memory content is independent of the order of `how` operations.
fn commutes(how: RmwOp) -> bool {
    use RmwOp::{Add, And, Max, Min, Or, Sub, UMax, UMin, Xor};
    matches!(how, Add | Sub | And | Or | Xor | Max | Min | UMax | UMin)
}
