//! Unroll-and-jam for latency-bound serial reductions.
//!
//! `for o { s = b[o]; for i { s += w[o][i] * x[i] }; y[o] = s }` must add in program order, hence each
//! addition waits for the previous one. Sums of neighbouring outer iterations are independent. Four sums
//! share one inner loop, each in its original order, and common loads execute once.
//!
//! 1. The outer `for` has no carried values and contains one inner `for` with an invariant trip count. The
//!    inner loop contains pure ops and loads, and carries one or two sums without `reassoc` (LLVM vectorises
//!    sums with `reassoc`).
//! 2. Writes of the outer loop after the inner loop do not alias reads of other iterations before or in the
//!    inner loop, because these reads now come first.
//! 3. The transformed loop iterates over blocks of four; the original loop executes the remainder.
//!
//! Source: unroll-and-jam (Callahan, Carr, Kennedy, *Improving register allocation for subscripted
//! variables*, 1990), restricted to sums.

use gradus_analysis::{Alias, PassContext};
use gradus_edit::{ValueMap, clone_op_within, clone_ops_within};
use gradus_ir::externals::{ExternalFn, MathFn};
use gradus_ir::{BinaryOp, Body, Builder, Flags, Op, OpKind, Region, Type, Unit, Value};

/// Log2 of the number of interleaved iterations.
const INTERLEAVED_LOG2: u32 = 2;
const INTERLEAVED: u32 = 1 << INTERLEAVED_LOG2;
/// Limits: sums and ops of an inner loop, and ops of the outer loop. Registers and code size are bounded.
const SUMS_MAX: usize = 2;
const INNER_OPS_MAX: usize = 16;
const OUTER_OPS_MAX: usize = 40;
/// Loops with a trip count known not to exceed the limit are unchanged.
const SHORT_TRIPS_MAX: u64 = 2 * INTERLEAVED as u64;

/// Interleaves loops if profitable; returns whether there were any.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    unroll_and_jam(unit, body, facts) > 0
}

/// Interleaves loops if profitable; returns their number.
pub fn unroll_and_jam(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> usize {
    let nests = serial_reduction_nests(unit, body);
    if nests.is_empty() {
        return 0;
    }
    let nests: Vec<Nest> = {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        let mut nests = nests;
        nests.retain(|nest| may_interleave(&alias, facts, nest));
        nests
    };
    for nest in &nests {
        interleave(unit, body, nest);
    }
    nests.len()
}

/// Returns whether a body has a candidate nest.
pub fn has_serial_reduction_nest(unit: &Unit, body: &Body) -> bool {
    !serial_reduction_nests(unit, body).is_empty()
}

/// Outer loop with its single inner loop.
struct Nest {
    outer: Op,
    inner: Op,
}

/// Returns the candidate nests.
fn serial_reduction_nests(unit: &Unit, body: &Body) -> Vec<Nest> {
    let loops = body.walk(body.root());
    loops.filter_map(|op| match_nest(unit, body, op)).collect()
}

fn match_nest(unit: &Unit, body: &Body, outer: Op) -> Option<Nest> {
    let region = long_for_region(unit, body, outer)?;
    let independent = body.ops[outer].flags.has(Flags::INDEPENDENT);
    if independent || !body.results(outer).is_empty() || body.ops_in(region).count() > OUTER_OPS_MAX
    {
        return None;
    }
    let mut inner = None;
    for op in body.ops_in(region) {
        match body.kind(op) {
            OpKind::For { .. } if inner.is_none() => inner = Some(op),
            OpKind::Load(access) => access.is_plain().then_some(())?,
            OpKind::Store(access) => (inner.is_some() && access.is_plain()).then_some(())?,
            OpKind::Yield => {}
            _ => gradus_edit::is_pure(unit, body, op).then_some(())?,
        }
    }
    let inner = inner?;
    let trips = body.operand(inner, 0);
    let varies = |v: Value| body.is_defined_in(v, region);
    (has_only_serial_sums(unit, body, inner)? && !varies(trips)).then_some(Nest { outer, inner })
}

/// Returns the region of a `for` that may have many iterations.
fn long_for_region(unit: &Unit, body: &Body, op: Op) -> Option<Region> {
    let OpKind::For { trip_max } = body.kind(op) else {
        return None;
    };
    let trips = body.operand(op, 0);
    let known = body.as_int(unit, trips).map(|n| n as u64);
    let wide = unit.types.int_bits(body.ty(trips))? > INTERLEAVED_LOG2;
    let few = (*trip_max).or(known).is_some_and(|n| n <= SHORT_TRIPS_MAX);
    (wide && !few).then(|| body.op_regions(op)[0])
}

/// Returns whether a loop contains only serial floating-point sums.
fn has_only_serial_sums(unit: &Unit, body: &Body, inner: Op) -> Option<bool> {
    let region = long_for_region(unit, body, inner)?;
    let sums = &body.region_params(region)[1..];
    if sums.is_empty() || sums.len() > SUMS_MAX || body.ops_in(region).count() > INNER_OPS_MAX {
        return None;
    }
    let plain = body.ops_in(region).all(|op| match body.kind(op) {
        OpKind::Load(access) => access.is_plain(),
        OpKind::Yield => true,
        _ => gradus_edit::is_pure(unit, body, op),
    });
    let next: Vec<Value> = body.operands(body.last(region)?).collect();
    let waits = |(sum, next): (&Value, &Value)| is_serial_sum(unit, body, *sum, *next);
    Some(plain && sums.iter().zip(&next).all(waits))
}

/// Returns whether a carried value is a sum in program order.
fn is_serial_sum(unit: &Unit, body: &Body, sum: Value, next: Value) -> bool {
    let Some(op) = body.def_op(next) else {
        return false;
    };
    let adds = match body.kind(op) {
        OpKind::Binary(BinaryOp::FAdd | BinaryOp::FSub) => body.operands(op).any(|v| v == sum),
        OpKind::Call(_) => {
            let known = unit.known_callee(body, op);
            let fused = matches!(known, Some(ExternalFn::Math(MathFn::Fmuladd | MathFn::Fma)));
            fused && body.operands(op).last() == Some(sum)
        }
        _ => false,
    };
    let single = matches!(unit.types.get(body.ty(sum)), Type::Float(_));
    adds && single && !body.ops[op].flags.has(Flags::REASSOC)
}

/// Returns whether no write after the inner loop aliases an earlier read of any iteration.
fn may_interleave(alias: &Alias<'_>, facts: &PassContext, nest: &Nest) -> bool {
    let (unit, body) = (alias.unit, alias.body);
    let frame = alias.nest.enclosing_loop(nest.outer);
    let region = body.op_regions(nest.outer)[0];
    let after: Vec<Op> = body.ops_after(nest.inner).collect();
    let writes: Vec<_> = after
        .iter()
        .flat_map(|op| facts.effects.of_op(unit, body, *op))
        .filter(|access| access.is_clobber())
        .collect();
    let mut reads = body
        .walk(region)
        .filter(|op| !after.contains(op))
        .flat_map(|op| facts.effects.of_op(unit, body, op));
    reads.all(|read| {
        let mut writes = writes.iter();
        writes.all(|write| !alias.may_alias_within(write, &read, frame))
    })
}

/// Emits a loop over blocks of iterations before the original loop, which executes the remainder.
fn interleave(unit: &mut Unit, body: &mut Body, nest: &Nest) {
    let (outer, inner) = (nest.outer, nest.inner);
    let loc = body.ops[outer].loc;
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.set_insertion_before(outer);
    let trips = b.body.operand(outer, 0);
    let ty = b.body.ty(trips);
    let shift = b.int(ty, i128::from(INTERLEAVED_LOG2));
    let blocks = b.binary(BinaryOp::LShr, trips, shift);
    let (_, block) = b.for_(blocks, &[]);
    let before = b.set_insertion_end(block);
    emit_block(&mut b, block, outer, inner);
    b.yield_(&[]);
    b.restore_insertion_point(before);
    let done = b.binary(BinaryOp::Shl, blocks, shift);
    let rest = b.sub(trips, done);
    let region = b.body.op_regions(outer)[0];
    let index = b.body.region_params(region)[0];
    if let Some(first) = b.body.first(region) {
        b.set_insertion_before(first);
        let moved = b.add(done, index);
        b.body.replace_uses(index, moved);
        if let Some(op) = b.body.def_op(moved) {
            b.body.set_operand(op, 1, index);
        }
    }
    b.body.set_operand(outer, 0, rest);
    b.body.ops[outer].kind = OpKind::For {
        trip_max: Some(u64::from(INTERLEAVED) - 1),
    };
}

/// Emits one block: the ops before the sums for each iteration, the jammed inner loop, the ops after the
/// sums.
fn emit_block(b: &mut Builder<'_>, block: Region, outer: Op, inner: Op) {
    let region = b.body.op_regions(outer)[0];
    let index = b.body.region_params(region)[0];
    let ops: Vec<Op> = b.body.ops_in(region).collect();
    let at = ops.iter().position(|op| *op == inner).unwrap_or(ops.len());
    let (number, ty) = (b.body.region_params(block)[0], b.body.ty(index));
    let shift = b.int(ty, i128::from(INTERLEAVED_LOG2));
    let first = b.binary(BinaryOp::Shl, number, shift);
    let mut maps: Vec<ValueMap> = Vec::new();
    for k in 0..INTERLEAVED {
        let k = b.int(ty, i128::from(k));
        let own = b.add(first, k);
        let mut map = ValueMap::zip(&[index], &[own]);
        for &op in &ops[..at] {
            clone_op_within(op, b, &mut map);
        }
        maps.push(map);
    }
    emit_jammed_loop(b, inner, &mut maps);
    for map in &mut maps {
        for &op in ops[at..].iter().skip(1) {
            if !b.body.kind(op).is_terminator() {
                clone_op_within(op, b, map);
            }
        }
    }
}

/// Emits one inner loop for the sums of all iterations and maps the old results in `maps`.
fn emit_jammed_loop(b: &mut Builder<'_>, inner: Op, maps: &mut [ValueMap]) {
    let region = b.body.op_regions(inner)[0];
    let params = b.body.region_params(region).to_vec();
    let trips = b.body.operand(inner, 0);
    let initial: Vec<Value> = b.body.operands(inner).skip(1).collect();
    let next: Vec<Value> = match b.body.last(region) {
        Some(end) => b.body.operands(end).collect(),
        None => Vec::new(),
    };
    let initial: Vec<Value> = maps
        .iter()
        .flat_map(|map| initial.iter().map(|v| map.get_or_same(*v)))
        .collect();
    let (together, into) = b.for_(trips, &initial);
    let place = b.set_insertion_end(into);
    let own = b.body.region_params(into).to_vec();
    let mut carried = Vec::new();
    for (map, sums) in maps.iter_mut().zip(own[1..].chunks(next.len())) {
        map.set(params[0], own[0]);
        for (old, new) in params[1..].iter().zip(sums) {
            map.set(*old, *new);
        }
        clone_ops_within(region, b, map);
        carried.extend(next.iter().map(|v| map.get_or_same(*v)));
    }
    b.yield_(&carried);
    b.restore_insertion_point(place);
    let results = b.body.results(together).to_vec();
    let old = b.body.results(inner).to_vec();
    for (map, sums) in maps.iter_mut().zip(results.chunks(next.len())) {
        for (old, new) in old.iter().zip(sums) {
            map.set(*old, *new);
        }
    }
}
