//! Privatisation: adds of all iterations of a loop to the same locations become plain adds to chunk-private
//! arrays, which are summed after the loop.
//!
//! Concurrent iterations that read the same values add to the same adjoint locations. An atomic add takes
//! tens of times as long as a plain add and moves the cache line between cores. If the locations are
//! loop-invariant, each chunk of the loop adds to a private array without atomics.
//!
//! 1. The loop is independent, and every iteration executes the add equally often: only loops and branches on
//!    loop-invariant values enclose the add within the loop. No other access may then touch the location
//!    during the loop, because such an access would race with the add of another iteration. A run-time test
//!    excludes loops with a single iteration.
//! 2. The address is computed by speculatable ops from outside values and the indices of nested loops with
//!    loop-invariant trip counts. The private array has an element for each combination of these indices.
//! 3. The loop becomes an independent loop over at most [`PARTS`] chunks around a serial loop over a chunk's
//!    iterations. The number of chunks depends only on the trip count, and chunks are summed in order. The
//!    sums therefore have the same bits for any number of threads.
//! 4. A location whose sum over all chunks is zero is not accessed.
//! 5. A run-time test checks profitability: enough adds, and small arrays.
//!
//! Runs after differentiation.

use super::{
    MOST_OPS, all_in, at_most, computed, free_function, is_independent, is_sum, iterations, looks,
    narrow, owner, quotient, replace, slice, wide,
};
use crate::Facts;
use crate::loops::unswitch::second_form;
use gradus_edit::ValueMap;
use gradus_ir::{
    AttrSet, BinaryOp, Body, Builder, CastOp, Flags, FloatKind, FloatPredicate, FuncId,
    IntPredicate, LocId, Op, OpKind, Type, TypeId, Unit, Value,
};
use std::collections::HashSet;

/// Maximum number of chunks of a loop.
const PARTS: i64 = 32;
/// Maximum size of a chunk's private arrays in bytes.
const MOST_BYTES: i64 = 1 << 19;
/// Minimum number of executed adds to privatise a loop.
pub const PARTS_PAY: i64 = 1 << 15;
/// Cap of trip counts, to exclude overflow in sums of products of three counts. An array of that many
/// elements exceeds the size limit.
const MOST_TRIPS: i64 = 1 << 17;
const MOST_DIMS: usize = 3;
const MOST_SUMS: usize = 256;
const LINE_BYTES: i64 = 64;

/// Privatises the adds of all such loops of a body; returns whether there were any.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &Facts) -> bool {
    !private_sums(unit, body, PARTS_PAY).is_empty()
}

/// Runs the pass on loops that execute at least `least` adds. Returns the locations of the adds that now
/// have a plain version.
pub fn private_sums(unit: &mut Unit, body: &mut Body, least: i64) -> Vec<Option<LocId>> {
    let Some(allocate) = gradus_edit::declare_aligned_alloc(unit) else {
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

/// Add that may be privatised.
struct Sum {
    op: Op,
    /// Nested loops whose indices determine the address, the outermost first.
    dims: Vec<Op>,
    /// All enclosing loops, up to the parallel loop.
    around: Vec<Op>,
    ty: TypeId,
    bytes: i64,
}

/// Returns the adds of a loop that may be privatised; none if an op of the loop could read the sums
/// atomically.
fn sums(unit: &Unit, body: &Body, lp: Op) -> Vec<Sum> {
    let sharing = body.ops[lp].flags.has(Flags::ALLOWS_EQUAL_WRITES);
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
            // Concurrent iterations of a nested independent loop would share the chunk's array.
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

/// Private arrays of all chunks.
struct Arrays {
    sizes: Sizes,
    parts: Value,
    block: Value,
}

/// Sizes of a loop's private arrays, computed before the loop.
struct Sizes {
    /// For each add, the length of each array dimension, and the array's offset.
    lengths: Vec<Vec<Value>>,
    starts: Vec<Value>,
    /// Size of a chunk's arrays in bytes.
    part_bytes: Value,
    /// Run-time test for profitability.
    pays: Value,
}

/// Versions the loop: the chunked loop executes if profitable.
fn in_parts(
    unit: &mut Unit,
    body: &mut Body,
    lp: Op,
    sums: &[Sum],
    (allocate, least): (FuncId, i64),
) {
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[lp].loc;
    b.set_insertion_before(lp);
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
    b.set_insertion_before(whole);
    let trips = wide(&mut b, whole);
    let most = b.i64(PARTS);
    let length = quotient(&mut b, trips, most);
    let parts = quotient(&mut b, trips, length);
    let bytes = b.mul(parts, sizes.part_bytes);
    let line = b.i64(LINE_BYTES);
    let block = b.call(allocate, &[line, bytes]);
    b.body.ops[block].name = Some(gradus_ir::externals::DERIVATIVE_BLOCK_NAME.into());
    let arrays = Arrays {
        sizes,
        parts,
        block: b.body.result(block),
    };
    if let Some(end) = b.body.next(whole) {
        b.set_insertion_before(end);
    }
    for (number, sum) in sums.iter().enumerate() {
        add_up(&mut b, whole, sum, number, &arrays);
    }
    let free = free_function(b.unit);
    b.call(free, &[arrays.block]);
    b.set_insertion_before(whole);
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
        // An empty array takes no space; each array starts at a cache line.
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

/// Replaces `lp` by a loop over chunks around a loop over a chunk's iterations.
fn split(b: &mut Builder<'_>, lp: Op, sums: &[Sum], length: Value, arrays: &Arrays) {
    let sizes = &arrays.sizes;
    let (flags, trips) = (b.body.ops[lp].flags, wide(b, lp));
    let operands: Vec<Value> = b.body.operands(lp).collect();
    let (outer, region) = b.for_(arrays.parts, &operands[1..]);
    b.body.ops[outer].flags = flags;
    b.set_insertion_end(region);
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

/// Replaces an atomic add by a plain add to the chunk's private array at `own`.
fn add_plainly(b: &mut Builder<'_>, sum: &Sum, own: Value, sizes: &Sizes, number: usize) {
    b.set_insertion_before(sum.op);
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

/// Emits the address of an element of an add's array in the chunk memory at `own`.
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

/// After the loop, sums the elements of all chunks and adds each sum to its location.
fn add_up(b: &mut Builder<'_>, lp: Op, sum: &Sum, number: usize, arrays: &Arrays) {
    let sizes = &arrays.sizes;
    let (mut map, mut indices, mut outside) = (ValueMap::new(), Vec::new(), Vec::new());
    for (&at, &length) in sum.dims.iter().zip(&sizes.lengths[number]) {
        let (_, region) = b.for_(length, &[]);
        outside.push(b.set_insertion_end(region));
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
    let back = b.set_insertion_end(region);
    let params = b.body.region_params(region).to_vec();
    let offset = b.mul(params[0], sizes.part_bytes);
    let own = b.byte_addr(arrays.block, offset);
    let at = element(b, own, sum, &indices, sizes, number);
    let value = b.load(sum.ty, at);
    let total = b.fadd(params[1], value);
    b.yield_(&[total]);
    b.restore_insertion_point(back);
    let total = b.body.result(all);
    let added = b.fcmp(FloatPredicate::Une, total, zero);
    let (_, yes, no) = b.if_(added, &[]);
    let back = b.set_insertion_end(no);
    b.yield_(&[]);
    b.set_insertion_end(yes);
    let kind = b.body.kind(sum.op).clone();
    let add = b.op(kind, &[place, total], &[sum.ty], 0);
    b.body.ops[add].flags = b.body.ops[sum.op].flags;
    let meta = b.body.ops[sum.op].meta;
    b.set_meta(add, meta);
    b.yield_(&[]);
    let mut around = std::iter::successors(owner(b.body, lp), |op| owner(b.body, *op));
    if !around.any(|op| is_independent(b.body, op)) {
        gradus_edit::atomic_to_plain(b, add);
    }
    b.restore_insertion_point(back);
    for place in outside.into_iter().rev() {
        b.yield_(&[]);
        b.restore_insertion_point(place);
    }
}

fn fill(unit: &mut Unit) -> FuncId {
    let (ptr, byte, long) = (unit.types.ptr(), unit.types.int(8), unit.types.int(64));
    let (bit, void) = (unit.types.int(1), unit.types.void());
    let ty = unit.types.func(void, vec![ptr, byte, long, bit]);
    unit.declare("llvm.memset.p0.i64", ty, AttrSet::default())
}
