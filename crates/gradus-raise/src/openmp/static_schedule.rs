//! Static schedule: a rank's range of a static loop by arithmetic, as in the runtime.
//!
//! For loops reshaped by an optimiser: the request for the range becomes arithmetic on rank and size, and the
//! loop remains. The ranges equal the ranges of `to_share_for.for static`; loops that rely on equal iterations per
//! rank remain correct.

use crate::openmp::thread_num;
use crate::openmp::worksharing_loops::{decode_schedule, resized};
use crate::report::{RaiseResult, reason};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, Body, Builder, CastOp, IntPredicate, Op, Schedule, Unit, Value};

/// Schedules from this number distribute between teams.
const DISTRIBUTE: i64 = 91;

/// Replaces the request of a static loop by computed bounds.
pub(super) fn compute_bounds(unit: &mut Unit, body: &mut Body, start: Op) -> RaiseResult {
    let args = unit.call_args(body, start);
    let number = args.get(2).and_then(|v| body.as_int(unit, *v));
    let step = args.get(7).and_then(|v| body.as_int(unit, *v));
    let (Some((Schedule::Static, chunked)), Some(1), 9) =
        (number.and_then(decode_schedule), step, args.len())
    else {
        let text = match number {
            Some(DISTRIBUTE..) => "`distribute` is used",
            _ => "this worksharing loop is not recognised",
        };
        return Err(reason(unit, body, start, text));
    };
    let callee = unit.callee(body, start);
    let is_unsigned = callee.is_some_and(|callee| unit.functions[callee].name.ends_with('u'));
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(start);
    b.loc = b.body.ops[start].loc;
    let ty = b.body.ty(args[8]);
    let (lower, upper) = (b.load(ty, args[4]), b.load(ty, args[5]));
    let (rank, size) = (
        thread_num::emit_rank_query(&mut b),
        thread_num::emit_size_query(&mut b),
    );
    let (rank, size) = (resized(&mut b, rank, ty), resized(&mut b, size, ty));
    let part = match chunked {
        true => round_robin(&mut b, (lower, upper), (rank, size), args[8]),
        false => block_range(&mut b, (lower, upper), (rank, size)),
    };
    let part = match is_planted(Mutant::IdleShareWraps) {
        true => part,
        false => inside_of_type(&mut b, part, upper, is_unsigned),
    };
    let int = b.unit.types.int(32);
    let last = b.cast(CastOp::ZExt, part.last, int);
    b.store(last, args[3]);
    b.store(part.lower, args[4]);
    b.store(part.upper, args[5]);
    b.store(part.stride, args[6]);
    body.erase(start);
    Ok(())
}

/// The bounds of a rank's first iterations.
struct RankRange {
    lower: Value,
    upper: Value,
    stride: Value,
    last: Value,
    /// Whether the rank has iterations.
    some: Value,
}

/// Replaces the bounds of a rank without iterations: the index after the last, and the last. If the index type
/// has no index after the last, both bounds move back by one.
fn inside_of_type(b: &mut Builder, part: RankRange, upper: Value, is_unsigned: bool) -> RankRange {
    let ty = b.body.ty(upper);
    let one = b.int(ty, 1);
    let (behind, before) = (b.add(upper, one), b.sub(upper, one));
    let order = match is_unsigned {
        true => IntPredicate::Ugt,
        false => IntPredicate::Sgt,
    };
    let exists = b.icmp(order, behind, upper);
    let first = b.select(exists, behind, upper);
    let last = b.select(exists, upper, before);
    RankRange {
        lower: b.select(part.some, part.lower, first),
        upper: b.select(part.some, part.upper, last),
        ..part
    }
}

/// Emits `[lower + rank · part, lower + (rank + 1) · part)` with `part = ⌈count / size⌉`, clipped to the end.
fn block_range(
    b: &mut Builder,
    (lower, upper): (Value, Value),
    (rank, size): (Value, Value),
) -> RankRange {
    let ty = b.body.ty(lower);
    let one = b.int(ty, 1);
    let span = b.sub(upper, lower);
    let count = b.add(span, one);
    let whole = b.binary(BinaryOp::UDiv, span, size);
    let part = b.add(whole, one);
    let cut = |b: &mut Builder, index: Value| {
        let start = b.mul(index, part);
        let inside = b.icmp(IntPredicate::Ult, start, count);
        b.select(inside, start, count)
    };
    let start = cut(b, rank);
    let following = b.add(rank, one);
    let end = cut(b, following);
    let first = b.add(lower, start);
    let behind = b.add(lower, end);
    let final_ = b.sub(behind, one);
    let whole = b.icmp(IntPredicate::Eq, end, count);
    let some = b.icmp(IntPredicate::Ult, start, end);
    let last = b.binary(BinaryOp::And, whole, some);
    RankRange {
        lower: first,
        upper: final_,
        stride: count,
        last,
        some,
    }
}

/// Emits the first chunk of the rank, and the stride to the next chunk. A chunk is at most as large as the loop.
fn round_robin(
    b: &mut Builder,
    (lower, upper): (Value, Value),
    (rank, size): (Value, Value),
    chunk: Value,
) -> RankRange {
    let ty = b.body.ty(lower);
    let (zero, one) = (b.int(ty, 0), b.int(ty, 1));
    let span = b.sub(upper, lower);
    let positive = b.icmp(IntPredicate::Sgt, chunk, zero);
    let chunk = b.select(positive, chunk, one);
    let within = b.sub(chunk, one);
    let within = smaller(b, within, span);
    let chunk = b.add(within, one);
    let chunks = b.binary(BinaryOp::UDiv, span, chunk);
    let some = b.icmp(IntPredicate::Ule, rank, chunks);
    let skip = b.mul(rank, chunk);
    let first = b.add(lower, skip);
    let left = b.sub(span, skip);
    let more = smaller(b, within, left);
    let final_ = b.add(first, more);
    let stride = b.mul(chunk, size);
    let owner = b.binary(BinaryOp::URem, chunks, size);
    let last = b.icmp(IntPredicate::Eq, owner, rank);
    RankRange {
        lower: first,
        upper: final_,
        stride,
        last,
        some,
    }
}

/// Emits the smaller of two unsigned numbers.
fn smaller(b: &mut Builder, x: Value, y: Value) -> Value {
    let below = b.icmp(IntPredicate::Ult, x, y);
    b.select(below, x, y)
}
