//! Versions short update loops into a scalar and a vectorisable loop.
//!
//! `for j { for i > j { out[i] += l[j][i] * v[j] } }` loads in each outer iteration the values stored by the
//! previous one. Store-to-load forwarding succeeds for equal addresses, but fails for a vector load that
//! starts one element later. Vectorised short inner loops therefore stall until the stores reach the cache,
//! longer than a scalar loop takes. Long inner loops do not stall. The inner loop is duplicated; a scalar
//! copy runs if the trip count is small.
//!
//! 1. The inner `for` contains only pure ops, multiply-adds and plain accesses; its trip count is not constant.
//!    The loop has no carried values, because the latency of its adds would limit a scalar reduction.
//! 2. The loop loads and stores a float at one address. The inner index moves the address by one element. The
//!    index of the enclosing loop moves the address by no multiple of a vector, but by less than a short row.
//!
//! Runs after differentiation and after loop reversal.

use crate::loops::unswitch::version_loop;
use gradus_analysis::{Alias, PassContext, affine};
use gradus_ir::externals::{ExternalFn, MathFn};
use gradus_ir::{Body, Builder, Flags, IntPredicate, Op, OpKind, Region, Type, Unit, Value};

/// Trip counts below the limit are short: both versions break even at 16 to 24.
const TRIPS_SHORT: i64 = 16;
/// Size of the shortest vectors.
const VECTOR_BYTES: i64 = 16;
/// Maximum number of ops in the loop.
const OPS_MAX: usize = 32;

/// Versions such loops of a body; returns whether there were any.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    version_short_loops(unit, body, facts) > 0
}

/// Runs the pass; returns the number of versioned loops.
pub fn version_short_loops(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> usize {
    let mut rows = update_loops(unit, body);
    if rows.is_empty() {
        return 0;
    }
    {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        rows.retain(|row| overlaps_next_iteration(&alias, row));
    }
    for row in &rows {
        emit_version(unit, body, row.inner);
    }
    rows.len()
}

/// Returns whether a body has a loop that updates floats in memory.
pub fn has_update_loops(unit: &Unit, body: &Body) -> bool {
    !update_loops(unit, body).is_empty()
}

/// Loop that updates floats in memory.
struct UpdateLoop {
    inner: Op,
    /// Updated addresses, each with the element size in bytes.
    addresses: Vec<(Value, i64)>,
}

fn update_loops(unit: &Unit, body: &Body) -> Vec<UpdateLoop> {
    let loops = body.walk(body.root());
    loops
        .filter_map(|op| match_update_loop(unit, body, op))
        .collect()
}

fn match_update_loop(unit: &Unit, body: &Body, inner: Op) -> Option<UpdateLoop> {
    if !matches!(body.kind(inner), OpKind::For { trip_max: None }) {
        return None;
    }
    let trips = body.operand(inner, 0);
    let flags = body.ops[inner].flags;
    let settled = flags.has(Flags::INDEPENDENT) || flags.has(Flags::NO_VECTORIZE);
    let wide = unit.types.int_bits(body.ty(trips))? > TRIPS_SHORT.ilog2();
    let carries = !body.results(inner).is_empty();
    if settled || carries || !wide || body.as_int(unit, trips).is_some() {
        return None;
    }
    let region = body.op_regions(inner)[0];
    let mut ops = body.ops_in(region).enumerate();
    let plain = ops.all(|(number, op)| number < OPS_MAX && is_vectorizable(unit, body, op));
    let places = plain.then(|| updated_addresses(unit, body, region))?;
    (!places.is_empty()).then_some(UpdateLoop {
        inner,
        addresses: places,
    })
}

fn is_vectorizable(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Load(access) | OpKind::Store(access) => access.is_plain(),
        OpKind::Yield => true,
        OpKind::Call(_) => {
            let known = unit.known_callee(body, op);
            matches!(known, Some(ExternalFn::Math(MathFn::Fmuladd | MathFn::Fma)))
        }
        _ => body.op_regions(op).is_empty() && gradus_edit::is_pure(unit, body, op),
    }
}

/// Returns the addresses that a region both loads and stores as floats, with the element size in bytes.
fn updated_addresses(unit: &Unit, body: &Body, region: Region) -> Vec<(Value, i64)> {
    let loads = |ptr: Value| {
        let mut ops = body.ops_in(region);
        ops.any(|op| matches!(body.kind(op), OpKind::Load(_)) && body.operand(op, 0) == ptr)
    };
    let stores = body
        .ops_in(region)
        .filter(|op| matches!(body.kind(*op), OpKind::Store(_)));
    let places = stores.filter_map(|op| {
        let (value, ptr) = (body.operand(op, 0), body.operand(op, 1));
        let number = matches!(unit.types.get(body.ty(value)), Type::Float(_));
        let bytes = unit.layout.size_bytes(unit, body.ty(value));
        (number && loads(ptr)).then_some((ptr, bytes as i64))
    });
    places.collect()
}

/// Returns whether the next iteration of the enclosing loop updates overlapping elements at a different
/// vector offset.
fn overlaps_next_iteration(alias: &Alias<'_>, row: &UpdateLoop) -> bool {
    let Some(outer) = alias.nest.enclosing_loop(row.inner) else {
        return false;
    };
    row.addresses.iter().any(|&(ptr, bytes)| {
        let form = affine(alias, ptr, Some(outer));
        let steps = form.and_then(|form| {
            let step = form.constant_step(row.inner)?;
            Some((step, form.constant_step(outer)?))
        });
        steps.is_some_and(|(step, shift)| {
            let overlap = shift.abs() < TRIPS_SHORT * bytes;
            step.abs() == bytes && overlap && shift % VECTOR_BYTES != 0
        })
    })
}

/// Versions a loop: a copy marked as scalar runs if the trip count is small.
fn emit_version(unit: &mut Unit, body: &mut Body, inner: Op) {
    let trips = body.operand(inner, 0);
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[inner].loc;
    b.set_insertion_before(inner);
    let ty = b.body.ty(trips);
    let short = b.int(ty, i128::from(TRIPS_SHORT));
    let few = b.icmp(IntPredicate::Ult, trips, short);
    let copy = version_loop(&mut b, inner, few);
    let flags = body.ops[copy].flags;
    body.ops[copy].flags = flags.with(Flags::NO_VECTORIZE);
}
