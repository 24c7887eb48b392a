//! Parallel loops from independent loops: a `for` flagged independent becomes a `par.for` if its carried values
//! are reorderable reductions (sums, products, min/max).
//!
//! The region computes an iteration's contribution once the identity replaces the carried value
//! ([`gradus_edit::carried_value`] classifies carried values).

use crate::prepare_ad::iteration_private_memory;
use crate::prepare_ad::tasks_as_loops::ForkLoop;
use gradus_edit::{CarriedValue, ReductionKind, carried_value};
use gradus_ir::{Body, Builder, Op, Unit, Value};

/// Turns the independent loops of a body into parallel loops and tasks, if legal. Returns the loops that
/// remain, because a carried value is no reduction. Private blocks of iterations move to the stack.
pub fn restore(unit: &mut Unit, body: &mut Body) -> Vec<Op> {
    iteration_private_memory::blocks_to_stack(unit, body);
    let mut stay = Vec::new();
    while let Some(op) = next_independent_loop(body, &stay) {
        let reduced = |index: usize| match carried_value(unit, body, op, index) {
            Some(CarriedValue::Reduced(ReductionKind::By(kind))) => Some(kind),
            _ => None,
        };
        if let Some(fork) = ForkLoop::of(unit, body, op, reduced) {
            fork.to_task(unit, body);
        } else if let Some(carried) = carried_reductions(unit, body, op) {
            for_to_par_for(unit, body, op, &carried);
        } else {
            stay.push(op);
        }
    }
    stay
}

/// Returns the next independent loop from the outside in, because inner loops are cloned with forks.
fn next_independent_loop(body: &Body, stay: &[Op]) -> Option<Op> {
    let marked = |op: &Op| body.is_independent(*op) && !stay.contains(op);
    body.walk(body.root()).find(marked)
}

/// Classifies the carried values of a loop; `None` if a carried value is no reduction.
fn carried_reductions(unit: &Unit, body: &Body, op: Op) -> Option<Vec<CarriedValue>> {
    let count = body.operand_count(op) - 1;
    (0..count)
        .map(|index| carried_value(unit, body, op, index))
        .collect()
}

fn for_to_par_for(unit: &mut Unit, body: &mut Body, op: Op, carried: &[CarriedValue]) {
    let region = body.op_regions(op)[0];
    let operands: Vec<Value> = body.operands(op).collect();
    let params = body.region_params(region).to_vec();
    let results = body.results(op).to_vec();
    let b = &mut Builder::new(unit, body);
    b.loc = b.body.ops[op].loc;
    b.set_insertion_before(op);
    let (mut begun, mut kinds, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    for (i, how) in carried.iter().enumerate() {
        let (start, param) = (operands[i + 1], params[i + 1]);
        let CarriedValue::Reduced(kind) = *how else {
            b.body.replace_uses(param, start);
            b.body.replace_uses(results[i], start);
            continue;
        };
        let Some(first) = kind.identity(b, start) else {
            unreachable!("a `for` has no user-defined reduction");
        };
        b.body.replace_uses(param, first);
        begun.push((kind.op(), start));
        kinds.push((kind, start));
        taken.push(i);
    }
    let (new, into) = b.par_for(operands[0], &begun, None);
    for (kind, start) in kinds {
        kind.add_combiner_region(b, new, start);
    }
    let index = b.body.region_params(into)[0];
    b.body.replace_uses(params[0], index);
    b.body.move_ops(region, into);
    if let Some(end) = b.body.last(into) {
        let given: Vec<Value> = taken.iter().map(|i| b.body.operand(end, *i)).collect();
        b.body.set_operands(end, &given);
    }
    for (at, i) in taken.into_iter().enumerate() {
        let value = b.body.results(new)[at];
        b.body.replace_uses(results[i], value);
    }
    b.body.erase(op);
}
