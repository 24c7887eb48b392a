//! Exposes the final values of carried values as loop results.
//!
//! A `for` yields the final carried values; a `loop` yields only the results that its `repeat` names. Code
//! that executes the iterations in reverse starts from the final values.

use gradus_ir::{BinaryOp, Body, Op, OpKind, Unit, Value};

/// Adds the next values of carried values as results to every `loop`, if a sum, a difference, an xor or an
/// address computation defines the next value. Returns the number of added results. The new results have no
/// uses; dead-code elimination removes those that stay unused.
pub fn expose_final_values(unit: &Unit, body: &mut Body) -> usize {
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
