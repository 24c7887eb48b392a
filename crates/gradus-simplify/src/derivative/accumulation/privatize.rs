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
//! 3. The loop becomes an independent loop over at most [`CHUNKS_MAX`] chunks around a serial loop over a chunk's
//!    iterations. The number of chunks depends only on the trip count, and chunks are summed in order. The
//!    sums therefore have the same bits for any number of threads.
//! 4. A location whose sum over all chunks is zero is not accessed.
//! 5. A run-time test checks profitability: enough adds, and small arrays.
//!
//! Runs after differentiation.

use super::{
    OPS_MAX, all_in, compute_value, emit_ceil_div, emit_min_remaining, index_like, is_atomic_add,
    may_observe_atomics, move_iterations, replace_loop, trip_count_i64, value_slice,
};
use crate::loops::unswitch::version_loop;
use gradus_analysis::PassContext;
use gradus_edit::ValueMap;
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Flags, FloatKind, FloatPredicate, FuncId, IntPredicate, LocId,
    Op, OpKind, Type, TypeId, Unit, Value,
};
use std::collections::HashSet;

/// Maximum number of chunks of a loop.
const CHUNKS_MAX: i64 = 32;
/// Maximum size of a chunk's private arrays in bytes.
const CHUNK_BYTES_MAX: i64 = 1 << 19;
/// Minimum number of executed adds to privatise a loop.
pub const PRIVATIZE_ADDS_MIN: i64 = 1 << 15;
/// Cap of trip counts, to exclude overflow in sums of products of three counts. An array of that many
/// elements exceeds the size limit.
const TRIPS_CAP: i64 = 1 << 17;
const DIMS_MAX: usize = 3;
const ADDS_MAX: usize = 256;
const LINE_BYTES: i64 = 64;

/// Privatises the adds of all such loops of a body; returns whether there were any.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    !privatize_adds(unit, body, PRIVATIZE_ADDS_MIN).is_empty()
}

/// Runs the pass on loops that execute at least `least` adds. Returns the locations of the adds that now
/// have a plain version.
pub fn privatize_adds(unit: &mut Unit, body: &mut Body, least: i64) -> Vec<Option<LocId>> {
    let Some(allocate) = gradus_edit::declare_aligned_alloc(unit) else {
        return Vec::new();
    };
    let loops: Vec<Op> = body
        .walk(body.root())
        .filter(|op| body.is_independent(*op))
        .collect();
    let (mut given, mut done) = (Vec::new(), HashSet::new());
    for lp in loops {
        let is_done = body.ancestors(lp).any(|op| done.contains(&op));
        let sums = match is_done {
            true => Vec::new(),
            false => privatizable_adds(unit, body, lp),
        };
        if sums.is_empty() {
            continue;
        }
        given.extend(sums.iter().map(|sum| body.ops[sum.op].loc));
        done.insert(lp);
        version_privatized(unit, body, lp, &sums, (allocate, least));
    }
    given
}

/// Add that may be privatised.
struct PrivatizableAdd {
    op: Op,
    /// Nested loops whose indices determine the address, the outermost first.
    dims: Vec<Op>,
    /// All enclosing loops, up to the parallel loop.
    enclosing_loops: Vec<Op>,
    ty: TypeId,
    bytes: i64,
}

/// Returns the adds of a loop that may be privatised; none if an op of the loop could read the sums
/// atomically.
fn privatizable_adds(unit: &Unit, body: &Body, lp: Op) -> Vec<PrivatizableAdd> {
    let sharing = body.ops[lp].flags.has(Flags::ALLOWS_EQUAL_WRITES);
    let long = all_in(body, lp).nth(OPS_MAX).is_some();
    if sharing || long || all_in(body, lp).any(|op| may_observe_atomics(body, op)) {
        return Vec::new();
    }
    let adds = all_in(body, lp).filter(|op| is_atomic_add(body, *op));
    let mut sums: Vec<PrivatizableAdd> = adds
        .filter_map(|op| match_add(unit, body, lp, op))
        .collect();
    sums.truncate(ADDS_MAX);
    sums
}

fn match_add(unit: &Unit, body: &Body, lp: Op, op: Op) -> Option<PrivatizableAdd> {
    let ty = body.ty(body.result(op));
    let bytes = match unit.types.get(ty) {
        Type::Float(FloatKind::F64) => 8,
        Type::Float(FloatKind::F32) => 4,
        _ => return None,
    };
    let mut around = Vec::new();
    for at in body.ancestors(op).take_while(|at| *at != lp) {
        let steady = value_slice(unit, body, lp, body.operands(at).next()?)?
            .loops
            .is_empty();
        match body.kind(at) {
            // Concurrent iterations of a nested independent loop would share the chunk's array.
            OpKind::For { .. } if steady && !body.is_independent(at) => around.push(at),
            OpKind::If if steady => {}
            _ => return None,
        }
    }
    let mut dims = value_slice(unit, body, lp, body.operand(op, 0))?.loops;
    let inside = dims.iter().all(|at| around.contains(at));
    dims.sort_by_key(|at| std::cmp::Reverse(around.iter().position(|other| other == at)));
    (inside && dims.len() <= DIMS_MAX).then_some(PrivatizableAdd {
        op,
        dims,
        enclosing_loops: around,
        ty,
        bytes,
    })
}

/// Private arrays of all chunks.
struct PrivateArrays {
    sizes: ArraySizes,
    chunks: Value,
    block: Value,
}

/// Sizes of a loop's private arrays, computed before the loop.
struct ArraySizes {
    /// For each add, the length of each array dimension, and the array's offset.
    lengths: Vec<Vec<Value>>,
    starts: Vec<Value>,
    /// Size of a chunk's arrays in bytes.
    chunk_bytes: Value,
    /// Run-time test for profitability.
    is_profitable: Value,
}

/// Versions the loop: the chunked loop executes if profitable.
fn version_privatized(
    unit: &mut Unit,
    body: &mut Body,
    lp: Op,
    sums: &[PrivatizableAdd],
    (allocate, least): (FuncId, i64),
) {
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[lp].loc;
    b.set_insertion_before(lp);
    let sizes = emit_sizes(&mut b, lp, sums, least);
    let old: Vec<Op> = all_in(b.body, lp).collect();
    let whole = version_loop(&mut b, lp, sizes.is_profitable);
    let new: Vec<Op> = all_in(b.body, whole).collect();
    let copy = |op: &Op| old.iter().position(|o| o == op).map_or(*op, |at| new[at]);
    let of_copy = |sum: &PrivatizableAdd| PrivatizableAdd {
        op: copy(&sum.op),
        dims: sum.dims.iter().map(copy).collect(),
        enclosing_loops: sum.enclosing_loops.iter().map(copy).collect(),
        ..*sum
    };
    let sums: Vec<PrivatizableAdd> = sums.iter().map(of_copy).collect();
    b.set_insertion_before(whole);
    let trips = trip_count_i64(&mut b, whole);
    let most = b.i64(CHUNKS_MAX);
    let length = emit_ceil_div(&mut b, trips, most);
    let parts = emit_ceil_div(&mut b, trips, length);
    let bytes = b.mul(parts, sizes.chunk_bytes);
    let line = b.i64(LINE_BYTES);
    let block = b.call(allocate, &[line, bytes]);
    b.body.ops[block].name = Some(gradus_ir::externals::DERIVATIVE_BLOCK_NAME.into());
    let arrays = PrivateArrays {
        sizes,
        chunks: parts,
        block: b.body.result(block),
    };
    if let Some(end) = b.body.next(whole) {
        b.set_insertion_before(end);
    }
    for (number, sum) in sums.iter().enumerate() {
        emit_final_sums(&mut b, whole, sum, number, &arrays);
    }
    let free = gradus_edit::declare_free(b.unit);
    b.call(free, &[arrays.block]);
    b.set_insertion_before(whole);
    emit_chunk_loops(&mut b, whole, &sums, length, &arrays);
}

fn emit_sizes(b: &mut Builder<'_>, lp: Op, sums: &[PrivatizableAdd], least: i64) -> ArraySizes {
    let most = b.i64(TRIPS_CAP);
    let capped_trip_count = |b: &mut Builder<'_>, at: Op| {
        let count = b.body.operand(at, 0);
        let count = compute_value(b, lp, count, &mut ValueMap::new());
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
        let own: Vec<Value> = sum
            .dims
            .iter()
            .map(|at| capped_trip_count(b, *at))
            .collect();
        let mut bytes = b.i64(sum.bytes);
        for &length in &own {
            bytes = b.mul(bytes, length);
        }
        let mut times = b.i64(1);
        for &at in sum.enclosing_loops.iter().take(DIMS_MAX - 1) {
            let count = capped_trip_count(b, at);
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
    let count = trip_count_i64(b, lp);
    let less = b.icmp(IntPredicate::Ult, count, most);
    let capped = b.select(less, count, most);
    let all = b.mul(adds, capped);
    let (least, largest, two) = (b.i64(least), b.i64(CHUNK_BYTES_MAX), b.i64(2));
    let conditions = [
        b.icmp(IntPredicate::Uge, all, least),
        b.icmp(IntPredicate::Ult, part_bytes, largest),
        b.icmp(IntPredicate::Uge, count, two),
    ];
    let bit = b.unit.types.int(1);
    let settled = conditions.map(|one| b.value(OpKind::Freeze, &[one], bit));
    let pays = b.binary(BinaryOp::And, settled[0], settled[1]);
    let pays = b.binary(BinaryOp::And, pays, settled[2]);
    ArraySizes {
        lengths,
        starts,
        chunk_bytes: part_bytes,
        is_profitable: pays,
    }
}

/// Replaces `lp` by a loop over chunks around a loop over a chunk's iterations.
fn emit_chunk_loops(
    b: &mut Builder<'_>,
    lp: Op,
    sums: &[PrivatizableAdd],
    length: Value,
    arrays: &PrivateArrays,
) {
    let sizes = &arrays.sizes;
    let (flags, trips) = (b.body.ops[lp].flags, trip_count_i64(b, lp));
    let operands: Vec<Value> = b.body.operands(lp).collect();
    let (outer, region) = b.for_(arrays.chunks, &operands[1..]);
    b.body.ops[outer].flags = flags;
    b.set_insertion_end(region);
    let params = b.body.region_params(region).to_vec();
    let offset = b.mul(params[0], sizes.chunk_bytes);
    let own = b.byte_addr(arrays.block, offset);
    let fill = gradus_edit::declare_memset(b.unit);
    let byte = b.unit.types.int(8);
    let (zero, no) = (b.zero(byte), b.bool(false));
    b.call(fill, &[own, zero, sizes.chunk_bytes, no]);
    let first = b.mul(params[0], length);
    let count = emit_min_remaining(b, trips, first, length);
    let inner = move_iterations(b, lp, [first, count], &params[1..]);
    let given = b.body.results(inner).to_vec();
    b.yield_(&given);
    for (number, sum) in sums.iter().enumerate() {
        add_to_private_array(b, sum, own, sizes, number);
    }
    replace_loop(b, lp, outer);
}

/// Replaces an atomic add by a plain add to the chunk's private array at `own`.
fn add_to_private_array(
    b: &mut Builder<'_>,
    sum: &PrivatizableAdd,
    own: Value,
    sizes: &ArraySizes,
    number: usize,
) {
    b.set_insertion_before(sum.op);
    b.loc = b.body.ops[sum.op].loc;
    let index = |at: &Op| b.body.region_params(b.body.op_regions(*at)[0])[0];
    let indices: Vec<Value> = sum.dims.iter().map(index).collect();
    let place = element_address(b, own, sum, &indices, sizes, number);
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
fn element_address(
    b: &mut Builder<'_>,
    own: Value,
    sum: &PrivatizableAdd,
    indices: &[Value],
    sizes: &ArraySizes,
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
fn emit_final_sums(
    b: &mut Builder<'_>,
    lp: Op,
    sum: &PrivatizableAdd,
    number: usize,
    arrays: &PrivateArrays,
) {
    let sizes = &arrays.sizes;
    let (mut map, mut indices, mut outside) = (ValueMap::new(), Vec::new(), Vec::new());
    for (&at, &length) in sum.dims.iter().zip(&sizes.lengths[number]) {
        let (_, region) = b.for_(length, &[]);
        outside.push(b.set_insertion_end(region));
        let index = b.body.region_params(region)[0];
        let old = b.body.region_params(b.body.op_regions(at)[0])[0];
        let short = index_like(b, index, old);
        map.set(old, short);
        indices.push(index);
    }
    let pointer = b.body.operand(sum.op, 0);
    let place = compute_value(b, lp, pointer, &mut map);
    let zero = b.zero(sum.ty);
    let (all, region) = b.for_(arrays.chunks, &[zero]);
    let back = b.set_insertion_end(region);
    let params = b.body.region_params(region).to_vec();
    let offset = b.mul(params[0], sizes.chunk_bytes);
    let own = b.byte_addr(arrays.block, offset);
    let at = element_address(b, own, sum, &indices, sizes, number);
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
    let is_concurrent = (b.body.ancestors(lp)).any(|op| b.body.is_independent(op));
    if !is_concurrent {
        gradus_edit::atomic_to_plain(b, add);
    }
    b.restore_insertion_point(back);
    for place in outside.into_iter().rev() {
        b.yield_(&[]);
        b.restore_insertion_point(place);
    }
}
