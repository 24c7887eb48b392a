//! Grid-stride normalisation: loops in which threads step by a uniform stride get a common counter.
//!
//! ```text
//! loop iter(i = t) { if i < n { … a[i] … } repeat i < n, i + s }
//!     →   loop iter(k = 0) { i = t + k·s; if i < n { … a[i] … } repeat i < n, k + 1 }
//! ```
//!
//! Each thread's index is then the sum of its first index and a uniform value. The accesses of neighbouring
//! threads are visibly contiguous after thread interchange. Arithmetic stays in the integer's width, and
//! wraps like the original sum.
//!
//! Place: before [`crate::fission`], which selects these loops in [`crate::fission::thread_interchange`].

use crate::addresses::thread_strides::{ThreadStrides, ValueStride};
use crate::blocks::arms::live_terminator;
use crate::blocks::blocks_to_lower;
use crate::{Options, PassOutcome};
use gradus_analysis::PassContext;
use gradus_ir::{BinaryOp, Body, Builder, Op, OpKind, Unit, Value};

/// Runs the pass.
pub(crate) fn run(
    unit: &mut Unit,
    body: &mut Body,
    _facts: &PassContext,
    options: &Options,
) -> PassOutcome {
    let mut found = Vec::new();
    if options.thread_interchange {
        for block in blocks_to_lower(body) {
            let steps = ThreadStrides::of(unit, body, block);
            let region = body.op_regions(block)[0];
            found.extend(
                body.walk(region)
                    .flat_map(|op| uniform_increments(unit, body, &steps, op)),
            );
        }
    }
    for stride in found {
        carry_counter(unit, body, &stride);
    }
    PassOutcome::default()
}

/// A loop-carried value with a uniform increment.
#[derive(Clone, Copy, Debug)]
struct UniformIncrement {
    lp: Op,
    /// Number of the carried value.
    index: usize,
    by: Value,
}

fn uniform_increments(
    unit: &Unit,
    body: &Body,
    steps: &ThreadStrides,
    lp: Op,
) -> Vec<UniformIncrement> {
    let OpKind::Loop { .. } = body.kind(lp) else {
        return Vec::new();
    };
    let region = body.op_regions(lp)[0];
    let Some(end) = live_terminator(body, region) else {
        // Not an error: a loop without a next iteration has no stride.
        return Vec::new();
    };
    let stride = |index: usize| {
        let param = body.region_params(region)[index];
        let first = steps.get(body.operand(lp, index))[0];
        let next = body.def_op(body.operands(end).nth(index + 1)?)?;
        let adds = matches!(body.kind(next), OpKind::Binary(BinaryOp::Add));
        let side = (0..2).find(|i| adds && body.operand(next, *i) == param)?;
        let by = increment_if_continues(
            unit,
            body,
            body.operand(next, 1 - side),
            body.operand(end, 0),
        );
        let common = !body.is_defined_in(by, region) && steps.get(by)[0] == ValueStride::None;
        (common && first == ValueStride::Const(1)).then_some(UniformIncrement { lp, index, by })
    };
    (0..body.operand_count(lp)).filter_map(stride).collect()
}

/// The increment if the loop continues: `by` of `again ? by : 0`.
fn increment_if_continues(unit: &Unit, body: &Body, by: Value, again: Value) -> Value {
    let select = body
        .def_op(by)
        .filter(|op| matches!(body.kind(*op), OpKind::Select));
    let chosen = select.filter(|op| {
        body.operand(*op, 0) == again && body.as_int(unit, body.operand(*op, 2)) == Some(0)
    });
    chosen.map_or(by, |op| body.operand(op, 1))
}

/// Carries the iteration number instead of the sum.
fn carry_counter(unit: &mut Unit, body: &mut Body, stride: &UniformIncrement) {
    let region = body.op_regions(stride.lp)[0];
    let param = body.region_params(region)[stride.index];
    let initial = body.operand(stride.lp, stride.index);
    let (Some(first), Some(end)) = (body.first(region), body.last(region)) else {
        unreachable!("a verified region has a terminator");
    };
    let b = &mut Builder::new(unit, body);
    b.loc = b.body.ops[stride.lp].loc;
    let ty = b.body.ty(param);
    b.set_insertion_before(first);
    // Existing uses are redirected to the sum; uses created below refer to the counter.
    let place = b.binary(BinaryOp::Add, initial, initial);
    b.body.replace_uses(param, place);
    if let Some(sum) = b.body.def_op(place) {
        b.set_insertion_before(sum);
        let far = b.mul(param, stride.by);
        b.body.set_operand(sum, 1, far);
    }
    b.set_insertion_before(end);
    let one = b.int(ty, 1);
    let next = b.add(param, one);
    b.body.set_operand(end, stride.index + 1, next);
    let zero = b.zero(ty);
    b.body.set_operand(stride.lp, stride.index, zero);
}
