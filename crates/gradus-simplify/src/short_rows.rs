//! Short rows that the next row updates again, a place further on, are updated one number at a time.
//!
//! `for j { for i > j { out[i] += l[j][i] * v[j] } }` reads in each row what the row before wrote. A
//! processor hands what a store waits to write to a load of the same bytes, but not to one that
//! begins a number further on: vectors of short rows wait until the row before is in the cache, for
//! longer than the numbers one by one take. Long rows are there by then. So the inner loop stands twice,
//! and the one that is not vectorised runs where the row is short.
//!
//! 1. The inner `for` holds pure ops, products with sums and plain accesses only, and its number of runs is not
//!    a constant. It carries nothing: sums that may be regrouped would wait for themselves.
//! 2. It loads a number and stores one at the same address, which its index moves by one number and the
//!    index of the `for` around by no whole vector, but by less than a short row.
//!
//! Place: when no derivative is made of the body any more, after loops were turned round.

use crate::Facts;
use crate::unswitch::second_form;
use gradus_analysis::{Alias, affine};
use gradus_ir::known::{Known, MathFn};
use gradus_ir::{Body, Builder, Flags, IntPredicate, Op, OpKind, Region, Type, Unit, Value};

/// Rows of fewer numbers are short: at 16 to 24 both ways take as long.
const SHORT: i64 = 16;
/// The bytes of the shortest vectors.
const VECTOR_BYTES: i64 = 16;
/// Loops of more ops are left as they are.
const OPS: usize = 32;

/// Gives such loops of a body their second form; says whether there are any.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &Facts) -> bool {
    short_rows(unit, body, facts) > 0
}

/// As the pass does; gives the number of loops.
pub fn short_rows(unit: &mut Unit, body: &mut Body, facts: &Facts) -> usize {
    let mut rows = updates(unit, body);
    if rows.is_empty() {
        return 0;
    }
    {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        rows.retain(|row| meets_next(&alias, row));
    }
    for row in &rows {
        choose(unit, body, row.inner);
    }
    rows.len()
}

/// Whether a body has a loop that updates numbers in memory.
pub fn updates_rows(unit: &Unit, body: &Body) -> bool {
    !updates(unit, body).is_empty()
}

/// A loop that updates numbers in memory.
struct Row {
    inner: Op,
    /// Where, and the bytes of a number.
    places: Vec<(Value, i64)>,
}

fn updates(unit: &Unit, body: &Body) -> Vec<Row> {
    let loops = body.walk(body.root());
    loops.filter_map(|op| row(unit, body, op)).collect()
}

fn row(unit: &Unit, body: &Body, inner: Op) -> Option<Row> {
    if !matches!(body.kind(inner), OpKind::For { trip_max: None }) {
        return None;
    }
    let trips = body.operand(inner, 0);
    let flags = body.ops[inner].flags;
    let settled = flags.has(Flags::INDEPENDENT) || flags.has(Flags::SCALAR);
    let wide = unit.types.int_bits(body.ty(trips))? > SHORT.ilog2();
    let carries = !body.results(inner).is_empty();
    if settled || carries || !wide || body.as_int(unit, trips).is_some() {
        return None;
    }
    let region = body.op_regions(inner)[0];
    let mut ops = body.ops_in(region).enumerate();
    let plain = ops.all(|(number, op)| number < OPS && may_be_a_vector(unit, body, op));
    let places = plain.then(|| places(unit, body, region))?;
    (!places.is_empty()).then_some(Row { inner, places })
}

fn may_be_a_vector(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Load(access) | OpKind::Store(access) => access.is_plain(),
        OpKind::Yield => true,
        OpKind::Call(_) => {
            let known = unit.callee(body, op).and_then(|func| unit.known(func));
            matches!(known, Some(Known::Math(MathFn::Fmuladd | MathFn::Fma)))
        }
        _ => body.op_regions(op).is_empty() && gradus_edit::is_pure(unit, body, op),
    }
}

/// The addresses at which a region both loads and stores a number.
fn places(unit: &Unit, body: &Body, region: Region) -> Vec<(Value, i64)> {
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

/// Whether the next iteration of the loop around updates some of the same numbers, elsewhere in its vectors.
fn meets_next(alias: &Alias<'_>, row: &Row) -> bool {
    let Some(outer) = alias.nest.enclosing_loop(row.inner) else {
        return false;
    };
    row.places.iter().any(|&(ptr, bytes)| {
        let form = affine(alias, ptr, Some(outer));
        let steps = form.and_then(|form| {
            let step = form.constant_step(row.inner)?;
            Some((step, form.constant_step(outer)?))
        });
        steps.is_some_and(|(step, shift)| {
            let overlap = shift.abs() < SHORT * bytes;
            step.abs() == bytes && overlap && shift % VECTOR_BYTES != 0
        })
    })
}

/// Lets a form that is not vectorised run where a loop has few runs.
fn choose(unit: &mut Unit, body: &mut Body, inner: Op) {
    let trips = body.operand(inner, 0);
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[inner].loc;
    b.at_op(inner);
    let ty = b.body.ty(trips);
    let short = b.int(ty, i128::from(SHORT));
    let few = b.icmp(IntPredicate::Ult, trips, short);
    let copy = second_form(&mut b, inner, few);
    let flags = body.ops[copy].flags;
    body.ops[copy].flags = flags.with(Flags::SCALAR);
}
