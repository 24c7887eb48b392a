//! Trivial dead-code elimination: erases removable ops whose results have no uses.

use crate::facts::effects::is_removable;
use gradus_ir::{Body, Op, Unit, Value};

/// Erases all dead ops without regions in the body; returns the number of erased ops.
///
/// Walks once from the last op to the first, hence visits users before their operands' definitions.
pub fn remove_dead_ops(unit: &Unit, body: &mut Body) -> usize {
    let all: Vec<Op> = body.walk(body.root()).collect();
    let mut erased = 0;
    for op in all.into_iter().rev() {
        if is_dead(unit, body, op) {
            body.erase(op);
            erased += 1;
        }
    }
    erased
}

/// Erases the ops that define `values` if dead, then transitively the definitions of their operands.
pub fn remove_dead_defs(unit: &Unit, body: &mut Body, values: impl IntoIterator<Item = Value>) {
    let mut open: Vec<Op> = values.into_iter().filter_map(|v| body.def_op(v)).collect();
    while let Some(op) = open.pop() {
        if body.parent(op).is_some() && is_dead(unit, body, op) {
            let operands: Vec<Value> = body.operands(op).collect();
            body.erase(op);
            open.extend(operands.into_iter().filter_map(|v| body.def_op(v)));
        }
    }
}

fn is_dead(unit: &Unit, body: &Body, op: Op) -> bool {
    !body.results(op).is_empty()
        && body.results(op).iter().all(|&v| !body.has_uses(v))
        && is_removable(unit, body, op)
}
