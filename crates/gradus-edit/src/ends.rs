//! What a loop's last iteration leaves of the values that it carries.
//!
//! A `for` gives it; a `loop` gives only what its `repeat` names. Who runs the iterations backwards starts
//! from there.

use gradus_ir::{BinaryOp, Body, Op, OpKind, Unit, Value};

/// Gives every `loop`, as results, the next values of those carried ones that are made by a sum, a difference
/// or an address computation; gives the number of results added. They have no uses yet: what sweeps dead
/// results takes them away.
pub fn keep_ends(unit: &Unit, body: &mut Body) -> usize {
    let loops: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::Loop { .. }))
        .collect();
    let mut added = 0;
    for lp in loops {
        let region = body.op_regions(lp)[0];
        let Some(end) = body
            .last(region)
            .filter(|end| *body.kind(*end) == OpKind::Repeat)
        else {
            continue;
        };
        let carried = body.region_params(region).len();
        let steps = |value: &Value| {
            let op = body.def_op(*value).map(|op| body.kind(op));
            let made = matches!(
                op,
                Some(
                    OpKind::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Xor)
                        | OpKind::Addr { .. }
                )
            );
            let ty = body.ty(*value);
            made && (unit.types.is_ptr(ty) || unit.types.int_bits(ty).is_some())
        };
        let operands: Vec<Value> = body.operands(end).collect();
        let (next, given) = operands[1..].split_at(carried);
        let missing: Vec<Value> = next
            .iter()
            .copied()
            .filter(|value| !given.contains(value) && steps(value))
            .collect();
        for value in missing {
            body.add_operand(end, value);
            body.add_result(lp, body.ty(value));
            added += 1;
        }
    }
    added
}
