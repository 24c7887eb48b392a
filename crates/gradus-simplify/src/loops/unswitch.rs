//! Loop unswitching on pointer inequality, for innermost and independent loops.
//!
//! A derivative compares loaded pointers with their shadows around each access; mostly all pointers differ.
//! If both pointers are loop-invariant, a single condition selects between a loop without comparisons and the
//! original loop. The loop without comparisons can be vectorised and converted by scatter-to-gather. One
//! condition covers all comparisons of a loop, hence the code size only doubles.

use crate::control::control_flow::replace_by_known_arm;
use gradus_analysis::PassContext;
use gradus_edit::{ValueMap, clone_op_within};
use gradus_ir::{BinaryOp, Body, Builder, IntPredicate, Op, OpKind, Unit, Value};

/// Maximum number of ops in the loop.
const OPS_MAX: usize = 400;

/// Unswitches all such loops of a body.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    unswitch_all(unit, body) > 0
}

/// Runs the pass; returns the number of unswitched loops.
pub fn unswitch_all(unit: &mut Unit, body: &mut Body) -> usize {
    let is_short = |body: &Body, op: Op| nested_ops(body, op).nth(OPS_MAX).is_none();
    let mut independent: Vec<Op> = Vec::new();
    for op in body.walk(body.root()) {
        let inside = |around: &Op| body.is_ancestor(*around, op);
        if body.is_independent(op) && is_short(body, op) && !independent.iter().any(inside) {
            independent.push(op);
        }
    }
    independent.retain(|op| unswitch_loop(unit, body, *op));
    let is_innermost = |op: &Op| {
        body.kind(*op).is_loop()
            && !nested_ops(body, *op)
                .take(OPS_MAX)
                .any(|op| body.kind(op).is_loop())
            && is_short(body, *op)
            && !independent.iter().any(|done| body.is_ancestor(*done, *op))
    };
    let loops: Vec<Op> = body.walk(body.root()).filter(is_innermost).collect();
    let chosen = loops
        .into_iter()
        .filter(|op| unswitch_loop(unit, body, *op));
    independent.len() + chosen.count()
}

/// Returns the ops nested in an op's regions.
fn nested_ops(body: &Body, op: Op) -> impl Iterator<Item = Op> {
    let regions = body.op_regions(op).iter();
    regions.flat_map(|region| body.walk(*region))
}

/// Returns the pointers that an `if` in a loop compares, if both are defined before the loop and the arm for
/// equality is empty.
fn compared_pointers(unit: &Unit, body: &Body, lp: Op, op: Op) -> Option<(Value, Value)> {
    if !matches!(body.kind(op), OpKind::If) {
        return None;
    }
    let condition = body.def_op(body.operand(op, 0))?;
    if !matches!(body.kind(condition), OpKind::ICmp(IntPredicate::Ne)) {
        return None;
    }
    let pair = (body.operand(condition, 0), body.operand(condition, 1));
    let no = body.op_regions(op)[1];
    let idle = body.first(no) == body.last(no);
    let before = |value: Value| {
        !(body.op_regions(lp).iter()).any(|region| body.is_defined_in(value, *region))
    };
    let pointers = unit.types.is_ptr(body.ty(pair.0));
    (idle && pointers && before(pair.0) && before(pair.1)).then_some(pair)
}

fn pointer_comparisons(unit: &Unit, body: &Body, lp: Op) -> Vec<(Op, (Value, Value))> {
    nested_ops(body, lp)
        .filter_map(|op| Some((op, compared_pointers(unit, body, lp, op)?)))
        .collect()
}

fn unswitch_loop(unit: &mut Unit, body: &mut Body, lp: Op) -> bool {
    let mut pairs: Vec<(Value, Value)> = Vec::new();
    for (_, pair) in pointer_comparisons(unit, body, lp) {
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let Some((&(a, b), others)) = pairs.split_first() else {
        return false;
    };
    let mut builder = Builder::new(unit, body);
    builder.loc = builder.body.ops[lp].loc;
    builder.set_insertion_before(lp);
    let mut none = builder.icmp(IntPredicate::Ne, a, b);
    for &(a, b) in others {
        let differ = builder.icmp(IntPredicate::Ne, a, b);
        none = builder.binary(BinaryOp::And, none, differ);
    }
    let plain = version_loop(&mut builder, lp, none);
    for (op, _) in pointer_comparisons(unit, body, plain) {
        let truth = Builder::new(unit, body).bool(true);
        body.set_operand(op, 0, truth);
        replace_by_known_arm(unit, body, op);
    }
    true
}

/// Versions a loop at the builder's insertion point: emits an `if` on `condition` with a copy of the loop in
/// the true arm and the loop in the false arm. Returns the copy.
pub(crate) fn version_loop(b: &mut Builder<'_>, lp: Op, condition: Value) -> Op {
    let results = b.body.results(lp).to_vec();
    let types: Vec<_> = results.iter().map(|v| b.body.ty(*v)).collect();
    let (choice, yes, no) = b.if_(condition, &types);
    let given = b.body.results(choice).to_vec();
    for (&old, &new) in results.iter().zip(&given) {
        b.body.replace_uses(old, new);
    }
    b.body.detach(lp);
    b.body.append(no, lp);
    b.set_insertion_end(no);
    b.yield_(&results);
    b.set_insertion_end(yes);
    let copy = clone_op_within(lp, b, &mut ValueMap::new());
    let copied = b.body.results(copy).to_vec();
    b.yield_(&copied);
    copy
}
