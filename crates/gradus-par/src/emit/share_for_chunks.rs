//! Chunks of a worksharing loop that one rank runs: a range of iterations, and round-robin distribution.
//!
//! Lowering of a team and the rank loops before differentiation distribute a static schedule by this code.

use gradus_edit::to_index_type;
use gradus_ir::{BinaryOp, Builder, Flags, IntPredicate, Op, Value};

/// Emits a loop of `length` iterations from `start` with the worksharing loop's region.
pub(crate) fn emit_range(b: &mut Builder<'_>, op: Op, start: Value, length: Value) {
    let region = b.body.op_regions(op)[0];
    let (_, inner) = b.for_(length, &[]);
    let own = b.body.region_params(inner)[0];
    let back = b.set_insertion_end(inner);
    let index = b.add(start, own);
    b.set_flags(index, Flags::NUW.with(Flags::NSW));
    let param = b.body.region_params(region)[0];
    let ty = b.body.ty(param);
    let index = to_index_type(b, index, ty);
    b.body.replace_uses(param, index);
    b.body.move_ops(region, inner);
    b.restore_insertion_point(back);
}

/// Emits round-robin chunks of the rank.
pub(crate) fn round_robin_chunks(
    b: &mut Builder<'_>,
    (rank, size): (Value, Value),
    op: Op,
    trips: Value,
    chunk: Value,
) {
    let one = b.i64(1);
    let chunk = at_least(b, chunk, one);
    let less = b.binary(BinaryOp::Sub, chunk, one);
    let sum = b.add(trips, less);
    let chunks = b.binary(BinaryOp::UDiv, sum, chunk);
    // Chunks rank, rank + size, …: their number.
    let less = b.binary(BinaryOp::Sub, size, one);
    let less = b.binary(BinaryOp::Sub, less, rank);
    let sum = b.add(chunks, less);
    let own = b.binary(BinaryOp::UDiv, sum, size);
    let (_, outer) = b.for_(own, &[]);
    let number = b.body.region_params(outer)[0];
    let back = b.set_insertion_end(outer);
    let number = b.mul(number, size);
    let number = b.add(number, rank);
    let start = b.mul(number, chunk);
    let left = b.binary(BinaryOp::Sub, trips, start);
    let all = b.icmp(IntPredicate::Ult, chunk, left);
    let length = b.select(all, chunk, left);
    emit_range(b, op, start, length);
    b.yield_(&[]);
    b.restore_insertion_point(back);
}

/// Emits the maximum of two unsigned numbers.
pub(crate) fn at_least(b: &mut Builder<'_>, value: Value, least: Value) -> Value {
    let more = b.icmp(IntPredicate::Ugt, value, least);
    b.select(more, value, least)
}
