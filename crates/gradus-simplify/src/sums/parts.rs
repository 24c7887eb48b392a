//! Sums that all iterations of a loop add to become sums of a few parts of it, which are added up behind it.
//!
//! Iterations that run at once and read the same numbers add to the same places in a derivative: an atomic add each,
//! which takes tens of times as long as a plain one, and sends the cache line from one processor to the other. Where
//! the places do not change from iteration to iteration, each part of the loop adds to an array of its own, plainly.
//!
//! 1. The loop's iterations are independent, and every one comes by the add as often as every other: between loop
//!    and add stand only loops and branches on what is known before. So nobody reads or writes the place otherwise
//!    while the loop runs, as another iteration, which adds there, would race with that: a loop of one iteration
//!    stays as it is, by a test at run time.
//! 2. The address is computed, by operations that can be done anywhere, from what is there before the loop and from
//!    indices of loops inside of it, whose lengths are known before. The part's array has an element for each
//!    combination of these indices.
//! 3. The loop becomes one over at most [`PARTS`] parts, which are as independent, around a plain loop over a part's
//!    iterations. How many there are follows from the loop's length alone, and they are added up in their order: the
//!    sums have the same bits for any number of threads.
//! 4. What a part never added to is zero, and its place is not touched.
//! 5. It pays, by a test at run time: there are enough adds, and the arrays are small.
//!
//! Place: after differentiation, when no derivative is made of the body any more.

use super::{
    MOST_OPS, all_in, at_most, computed, free_function, is_independent, is_sum, iterations, looks,
    narrow, owner, quotient, replace, slice, wide,
};
use crate::Facts;
use crate::unswitch::second_form;
use gradus_edit::ValueMap;
use gradus_ir::{
    AttrSet, BinaryOp, Body, Builder, CastOp, Flags, FloatKind, FloatPredicate, FuncId,
    IntPredicate, LocId, Op, OpKind, Type, TypeId, Unit, Value,
};
use std::collections::HashSet;

/// Into so many parts a loop comes apart at most.
const PARTS: i64 = 32;
/// A part's arrays take at most so many bytes.
const MOST_BYTES: i64 = 1 << 19;
/// Loops with fewer adds at run time stay as they are.
pub const PARTS_PAY: i64 = 1 << 15;
/// Counts are taken for no more than this, so that products of three, added up, do not overflow; an array of so many
/// numbers is too long.
const MOST_TRIPS: i64 = 1 << 17;
const MOST_DIMS: usize = 3;
const MOST_SUMS: usize = 256;
const LINE_BYTES: i64 = 64;

/// Gives all such loops of a body their parts; says whether there are any.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &Facts) -> bool {
    !private_sums(unit, body, PARTS_PAY).is_empty()
}

/// As the pass does, for loops that make `least` adds when they run; gives where the adds stand that have a plain form
/// now.
pub fn private_sums(unit: &mut Unit, body: &mut Body, least: i64) -> Vec<Option<LocId>> {
    let Some(allocate) = gradus_edit::aligned_alloc(unit) else {
        return Vec::new();
    };
    let loops: Vec<Op> = body
        .walk(body.root())
        .filter(|op| is_independent(body, *op))
        .collect();
    let (mut given, mut done) = (Vec::new(), HashSet::new());
    for lp in loops {
        let mut around = std::iter::successors(owner(body, lp), |op| owner(body, *op));
        let sums = match around.any(|op| done.contains(&op)) {
            true => Vec::new(),
            false => sums(unit, body, lp),
        };
        if sums.is_empty() {
            continue;
        }
        given.extend(sums.iter().map(|sum| body.ops[sum.op].loc));
        done.insert(lp);
        in_parts(unit, body, lp, &sums, (allocate, least));
    }
    given
}

/// An add that may go to parts.
struct Sum {
    op: Op,
    /// The loops inside whose indices its address is computed from, the outermost first.
    dims: Vec<Op>,
    /// All loops around it, up to the parallel one.
    around: Vec<Op>,
    ty: TypeId,
    bytes: i64,
}

/// The adds of a loop that may go to parts; none where anything in the loop could read atomically what they add.
fn sums(unit: &Unit, body: &Body, lp: Op) -> Vec<Sum> {
    let sharing = body.ops[lp].flags.has(Flags::SHARING);
    let long = all_in(body, lp).nth(MOST_OPS).is_some();
    if sharing || long || all_in(body, lp).any(|op| looks(body, op)) {
        return Vec::new();
    }
    let adds = all_in(body, lp).filter(|op| is_sum(body, *op));
    let mut sums: Vec<Sum> = adds.filter_map(|op| sum(unit, body, lp, op)).collect();
    sums.truncate(MOST_SUMS);
    sums
}

fn sum(unit: &Unit, body: &Body, lp: Op, op: Op) -> Option<Sum> {
    let ty = body.ty(body.result(op));
    let bytes = match unit.types.get(ty) {
        Type::Float(FloatKind::F64) => 8,
        Type::Float(FloatKind::F32) => 4,
        _ => return None,
    };
    let mut around = Vec::new();
    let up = std::iter::successors(owner(body, op), |op| owner(body, *op));
    for at in up.take_while(|at| *at != lp) {
        let steady = slice(unit, body, lp, body.operands(at).next()?)?
            .dims
            .is_empty();
        match body.kind(at) {
            // Iterations of another loop that run at once would share a part.
            OpKind::For { .. } if steady && !is_independent(body, at) => around.push(at),
            OpKind::If if steady => {}
            _ => return None,
        }
    }
    let mut dims = slice(unit, body, lp, body.operand(op, 0))?.dims;
    let inside = dims.iter().all(|at| around.contains(at));
    dims.sort_by_key(|at| std::cmp::Reverse(around.iter().position(|other| other == at)));
    (inside && dims.len() <= MOST_DIMS).then_some(Sum {
        op,
        dims,
        around,
        ty,
        bytes,
    })
}

/// The arrays of all parts.
struct Arrays {
    sizes: Sizes,
    parts: Value,
    block: Value,
}

/// Sizes of a loop's arrays, made before it.
struct Sizes {
    /// By add: how long each of its dimensions is, and where its array begins.
    lengths: Vec<Vec<Value>>,
    starts: Vec<Value>,
    /// The bytes of a part.
    part_bytes: Value,
    /// Whether to.
    pays: Value,
}

/// Puts the loop of parts beside the one that stands there.
fn in_parts(
    unit: &mut Unit,
    body: &mut Body,
    lp: Op,
    sums: &[Sum],
    (allocate, least): (FuncId, i64),
) {
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[lp].loc;
    b.at_op(lp);
    let sizes = sizes(&mut b, lp, sums, least);
    let old: Vec<Op> = all_in(b.body, lp).collect();
    let whole = second_form(&mut b, lp, sizes.pays);
    let new: Vec<Op> = all_in(b.body, whole).collect();
    let copy = |op: &Op| old.iter().position(|o| o == op).map_or(*op, |at| new[at]);
    let of_copy = |sum: &Sum| Sum {
        op: copy(&sum.op),
        dims: sum.dims.iter().map(copy).collect(),
        around: sum.around.iter().map(copy).collect(),
        ..*sum
    };
    let sums: Vec<Sum> = sums.iter().map(of_copy).collect();
    b.at_op(whole);
    let trips = wide(&mut b, whole);
    let most = b.i64(PARTS);
    let length = quotient(&mut b, trips, most);
    let parts = quotient(&mut b, trips, length);
    let bytes = b.mul(parts, sizes.part_bytes);
    let line = b.i64(LINE_BYTES);
    let block = b.call(allocate, &[line, bytes]);
    b.body.ops[block].name = Some(gradus_ir::known::OWN_BLOCK.into());
    let arrays = Arrays {
        sizes,
        parts,
        block: b.body.result(block),
    };
    if let Some(end) = b.body.next(whole) {
        b.at_op(end);
    }
    for (number, sum) in sums.iter().enumerate() {
        add_up(&mut b, whole, sum, number, &arrays);
    }
    let free = free_function(b.unit);
    b.call(free, &[arrays.block]);
    b.at_op(whole);
    split(&mut b, whole, &sums, length, &arrays);
}

fn sizes(b: &mut Builder<'_>, lp: Op, sums: &[Sum], least: i64) -> Sizes {
    let most = b.i64(MOST_TRIPS);
    let trips = |b: &mut Builder<'_>, at: Op| {
        let count = b.body.operand(at, 0);
        let count = computed(b, lp, count, &mut ValueMap::new());
        let long = b.unit.types.int(64);
        let count = match b.body.ty(count) == long {
            true => count,
            false => b.cast(CastOp::ZExt, count, long),
        };
        let less = b.icmp(IntPredicate::Ult, count, most);
        b.select(less, count, most)
    };
    let (mut lengths, mut starts) = (Vec::new(), Vec::new());
    let (mut part_bytes, mut adds) = (b.i64(0), b.i64(0));
    for sum in sums {
        let own: Vec<Value> = sum.dims.iter().map(|at| trips(b, *at)).collect();
        let mut bytes = b.i64(sum.bytes);
        for &length in &own {
            bytes = b.mul(bytes, length);
        }
        let mut times = b.i64(1);
        for &at in sum.around.iter().take(MOST_DIMS - 1) {
            let count = trips(b, at);
            times = b.mul(times, count);
        }
        // An array of no elements needs no place; each begins a cache line.
        let (line, mask) = (b.i64(LINE_BYTES - 1), b.i64(-LINE_BYTES));
        let whole = b.add(bytes, line);
        let whole = b.binary(BinaryOp::And, whole, mask);
        starts.push(part_bytes);
        part_bytes = b.add(part_bytes, whole);
        adds = b.add(adds, times);
        lengths.push(own);
    }
    let count = wide(b, lp);
    let less = b.icmp(IntPredicate::Ult, count, most);
    let capped = b.select(less, count, most);
    let all = b.mul(adds, capped);
    let (least, largest, two) = (b.i64(least), b.i64(MOST_BYTES), b.i64(2));
    let conditions = [
        b.icmp(IntPredicate::Uge, all, least),
        b.icmp(IntPredicate::Ult, part_bytes, largest),
        b.icmp(IntPredicate::Uge, count, two),
    ];
    let bit = b.unit.types.int(1);
    let settled = conditions.map(|one| b.value(OpKind::Freeze, &[one], bit));
    let pays = b.binary(BinaryOp::And, settled[0], settled[1]);
    let pays = b.binary(BinaryOp::And, pays, settled[2]);
    Sizes {
        lengths,
        starts,
        part_bytes,
        pays,
    }
}

/// The loop over parts around one over a part's iterations, in place of `lp`.
fn split(b: &mut Builder<'_>, lp: Op, sums: &[Sum], length: Value, arrays: &Arrays) {
    let sizes = &arrays.sizes;
    let (flags, trips) = (b.body.ops[lp].flags, wide(b, lp));
    let operands: Vec<Value> = b.body.operands(lp).collect();
    let (outer, region) = b.for_(arrays.parts, &operands[1..]);
    b.body.ops[outer].flags = flags;
    b.at_end(region);
    let params = b.body.region_params(region).to_vec();
    let offset = b.mul(params[0], sizes.part_bytes);
    let own = b.byte_addr(arrays.block, offset);
    let fill = fill(b.unit);
    let byte = b.unit.types.int(8);
    let (zero, no) = (b.zero(byte), b.bool(false));
    b.call(fill, &[own, zero, sizes.part_bytes, no]);
    let first = b.mul(params[0], length);
    let count = at_most(b, trips, first, length);
    let inner = iterations(b, lp, [first, count], &params[1..]);
    let given = b.body.results(inner).to_vec();
    b.yield_(&given);
    for (number, sum) in sums.iter().enumerate() {
        add_plainly(b, sum, own, sizes, number);
    }
    replace(b, lp, outer);
}

/// An add of a part goes to its own array, which begins at `own`.
fn add_plainly(b: &mut Builder<'_>, sum: &Sum, own: Value, sizes: &Sizes, number: usize) {
    b.at_op(sum.op);
    b.loc = b.body.ops[sum.op].loc;
    let index = |at: &Op| b.body.region_params(b.body.op_regions(*at)[0])[0];
    let indices: Vec<Value> = sum.dims.iter().map(index).collect();
    let place = element(b, own, sum, &indices, sizes, number);
    let (value, meta) = (b.body.operand(sum.op, 1), b.body.ops[sum.op].meta);
    let before = b.load(sum.ty, place);
    let after = b.fadd(before, value);
    let write = b.store(after, place);
    for op in b.body.def_op(before).into_iter().chain([write]) {
        b.set_meta(op, meta);
    }
    b.body.erase(sum.op);
}

/// The element of an add's array in the part that begins at `own`.
fn element(
    b: &mut Builder<'_>,
    own: Value,
    sum: &Sum,
    indices: &[Value],
    sizes: &Sizes,
    number: usize,
) -> Value {
    let long = b.unit.types.int(64);
    let mut at = b.i64(0);
    for (&index, &length) in indices.iter().zip(&sizes.lengths[number]) {
        let index = match b.body.ty(index) == long {
            true => index,
            false => b.cast(CastOp::ZExt, index, long),
        };
        at = b.mul(at, length);
        at = b.add(at, index);
    }
    let size = b.i64(sum.bytes);
    let bytes = b.mul(at, size);
    let bytes = b.add(sizes.starts[number], bytes);
    b.byte_addr(own, bytes)
}

/// Behind the loop: what all parts have for a place is added to it.
fn add_up(b: &mut Builder<'_>, lp: Op, sum: &Sum, number: usize, arrays: &Arrays) {
    let sizes = &arrays.sizes;
    let (mut map, mut indices, mut outside) = (ValueMap::new(), Vec::new(), Vec::new());
    for (&at, &length) in sum.dims.iter().zip(&sizes.lengths[number]) {
        let (_, region) = b.for_(length, &[]);
        outside.push(b.at_end(region));
        let index = b.body.region_params(region)[0];
        let old = b.body.region_params(b.body.op_regions(at)[0])[0];
        let short = narrow(b, index, old);
        map.set(old, short);
        indices.push(index);
    }
    let pointer = b.body.operand(sum.op, 0);
    let place = computed(b, lp, pointer, &mut map);
    let zero = b.zero(sum.ty);
    let (all, region) = b.for_(arrays.parts, &[zero]);
    let back = b.at_end(region);
    let params = b.body.region_params(region).to_vec();
    let offset = b.mul(params[0], sizes.part_bytes);
    let own = b.byte_addr(arrays.block, offset);
    let at = element(b, own, sum, &indices, sizes, number);
    let value = b.load(sum.ty, at);
    let total = b.fadd(params[1], value);
    b.yield_(&[total]);
    b.restore(back);
    let total = b.body.result(all);
    let added = b.fcmp(FloatPredicate::Une, total, zero);
    let (_, yes, no) = b.if_(added, &[]);
    let back = b.at_end(no);
    b.yield_(&[]);
    b.at_end(yes);
    let kind = b.body.kind(sum.op).clone();
    let add = b.op(kind, &[place, total], &[sum.ty], 0);
    b.body.ops[add].flags = b.body.ops[sum.op].flags;
    let meta = b.body.ops[sum.op].meta;
    b.set_meta(add, meta);
    b.yield_(&[]);
    let mut around = std::iter::successors(owner(b.body, lp), |op| owner(b.body, *op));
    if !around.any(|op| is_independent(b.body, op)) {
        gradus_edit::make_plain(b, add);
    }
    b.restore(back);
    for place in outside.into_iter().rev() {
        b.yield_(&[]);
        b.restore(place);
    }
}

fn fill(unit: &mut Unit) -> FuncId {
    let (ptr, byte, long) = (unit.types.ptr(), unit.types.int(8), unit.types.int(64));
    let (bit, void) = (unit.types.int(1), unit.types.void());
    let ty = unit.types.func(void, vec![ptr, byte, long, bit]);
    unit.declare("llvm.memset.p0.i64", ty, AttrSet::default())
}
