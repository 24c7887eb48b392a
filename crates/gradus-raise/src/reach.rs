//! Reachability of code that distinguishes ranks, waits, spins or is unknown: call graph summaries and the
//! properties of single ops.
//!
//! Place: the survey fills [`Reach`] from the properties of single ops; folding of teams queries ops, which
//! combines the op's own property with the summary of its callee.

use gradus_ir::externals::{ExternalFn, OpenMpFn};
use gradus_ir::{Body, Definition, FuncId, Op, OpKind, Unit};
use std::collections::HashSet;

/// Call graph summaries of functions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// Functions that reach code that distinguishes ranks, or unknown code.
    pub distinguishing: HashSet<FuncId>,
    /// True if a function pointer may point to a function in `speaking`.
    pub pointer_may_distinguish: bool,
    /// Functions that reach tasks or regions.
    pub with_tasks_or_regions: HashSet<FuncId>,
    /// Functions that reach code that may query rank and size, or share work between ranks.
    pub reaching_unknown: HashSet<FuncId>,
    /// Functions that reach code that may wait for another thread.
    pub waiting: HashSet<FuncId>,
    /// Functions that reach a spin loop on memory written by another thread.
    pub spinning: HashSet<FuncId>,
    /// Functions that reach atomic updates or locks.
    pub updating_or_locking: HashSet<FuncId>,
    /// Functions that reach heap allocation.
    pub allocating: HashSet<FuncId>,
}

/// Returns true if `op` queries rank or size, directly or by a callee, or calls an unknown function.
pub(crate) fn may_distinguish_ranks(unit: &Unit, body: &Body, op: Op, reach: &Reach) -> bool {
    if body.kind(op).call_info().is_none() {
        return false;
    }
    match unit.callee(body, op) {
        Some(func) => {
            reach.distinguishing.contains(&func) || unit.openmp_callee(body, op).is_some()
        }
        None => reach.pointer_may_distinguish,
    }
}

/// Returns true if `op` reaches code without a body and without a known name. Every rank must execute such a
/// call.
pub(crate) fn reaches_unknown(unit: &Unit, body: &Body, op: Op, reach: &Reach) -> bool {
    let leads = |func| reach.reaching_unknown.contains(&func);
    calls_unknown(unit, body, op) || unit.callee(body, op).is_some_and(leads)
}

/// Returns true if `op` may wait for another thread, directly or by a callee: waiting requires a separate
/// thread.
pub(crate) fn waits(unit: &Unit, body: &Body, op: Op, reach: &Reach) -> bool {
    let leads = |func| reach.waiting.contains(&func);
    let waits = may_call_waiting(unit, body, op) || rereads_in_loop(unit, body, op);
    waits || unit.callee(body, op).is_some_and(leads)
}

/// Returns true if `op` reaches a spin loop on memory written by another thread.
pub(crate) fn reaches_spin_wait(unit: &Unit, body: &Body, op: Op, reach: &Reach) -> bool {
    let leads = |func| reach.spinning.contains(&func);
    may_spin(unit, body, op) || unit.callee(body, op).is_some_and(leads)
}

/// Returns true if `op` calls code without a body and without a known name: any query is possible.
pub(crate) fn calls_unknown(unit: &Unit, body: &Body, op: Op) -> bool {
    body.kind(op).call_info().is_some()
        && unit
            .callee(body, op)
            .is_none_or(|func| unit.functions[func].body.is_none() && unit.known(func).is_none())
}

/// Returns true if `op` calls a system or MPI function that may wait for another thread.
pub(crate) fn may_call_waiting(unit: &Unit, body: &Body, op: Op) -> bool {
    let waits = |func| {
        matches!(
            unit.known(func),
            Some(ExternalFn::System(_) | ExternalFn::Mpi)
        ) && unit
            .known_effects(func)
            .is_some_and(|effects| effects.may_block)
    };
    unit.callee(body, op).is_some_and(waits)
}

/// Returns true if `op` reads in a loop a location that another thread may write: a possible spin wait.
/// Included are loops controlled by values read in a critical region or by a callee with atomic loads.
pub(crate) fn rereads_in_loop(unit: &Unit, body: &Body, op: Op) -> bool {
    let is_loop = |op: &Op| matches!(body.kind(*op), OpKind::Loop { .. });
    let mut around = body.ancestors(op).filter(is_loop);
    if is_atomic_load(body, op) {
        return around.next().is_some();
    }
    let callee = unit.callee(body, op);
    let asks = match callee.and_then(|func| unit.functions[func].body.as_deref()) {
        Some(code) => code
            .walk(code.root())
            .any(|op| is_atomic_load(code, op) || is_critical(unit, code, op)),
        None => is_critical(unit, body, op),
    };
    asks && around.any(|lp| condition_reads_memory(unit, body, lp))
}

/// Returns true if a loop may spin on memory written by another thread, directly or by a callee with atomic
/// loads.
pub(crate) fn may_spin(unit: &Unit, body: &Body, lp: Op) -> bool {
    let reads_atomically = |op: Op| {
        let callee = unit.callee(body, op);
        let code = callee.and_then(|func| unit.functions[func].body.as_deref());
        code.is_some_and(|code| code.walk(code.root()).any(|op| is_atomic_load(code, op)))
    };
    let asks = || body.walk(body.op_regions(lp)[0]).any(reads_atomically);
    matches!(body.kind(lp), OpKind::Loop { .. })
        && (gradus_edit::may_spin(unit, body, lp)
            || condition_reads_memory(unit, body, lp) && asks())
}

fn is_atomic_load(body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Load(access) if !access.is_plain())
}

fn is_critical(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = || unit.known_callee(body, op);
    matches!(body.kind(op), OpKind::Critical(_))
        || known() == Some(ExternalFn::OpenMp(OpenMpFn::Critical))
}

/// Returns true if the loop condition depends on more than arithmetic on local values.
fn condition_reads_memory(unit: &Unit, body: &Body, lp: Op) -> bool {
    let region = body.op_regions(lp)[0];
    let end = body.last(region);
    let Some(end) = end.filter(|end| matches!(body.kind(*end), OpKind::Repeat)) else {
        return false;
    };
    let (mut open, mut seen) = (vec![body.operand(end, 0)], HashSet::new());
    while let Some(value) = open.pop() {
        let inside = body.is_defined_in(value, region);
        if !inside || !seen.insert(value) {
            continue;
        }
        match body.values[value].def {
            Definition::Param(at, index) if at == region => {
                open.push(body.operand(end, 1 + index as usize));
            }
            Definition::Result(op, index) if matches!(body.kind(op), OpKind::If) => {
                let arms = body.op_regions(op).iter().filter_map(|arm| body.last(*arm));
                let arms = arms.filter(|end| matches!(body.kind(*end), OpKind::Yield));
                open.extend(arms.map(|end| body.operand(end, index as usize)));
                open.push(body.operand(op, 0));
            }
            Definition::Result(op, _) if gradus_edit::is_pure(unit, body, op) => {
                open.extend(body.operands(op));
            }
            _ => return true,
        }
    }
    false
}
