//! Static schedule: a rank's range of a static loop by arithmetic, as in the runtime.
//!
//! For loops reshaped by an optimiser: the request for the range becomes arithmetic on rank and size, and the
//! loop remains. The ranges equal the ranges of `to_share_for.for static`; loops that rely on equal iterations per
//! rank remain correct.

use crate::openmp::thread_num;
use crate::openmp::worksharing_loops::{decode_schedule, resized};
use crate::report::{RaiseResult, reason};
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
    let int = b.unit.types.int(32);
    let last = b.cast(CastOp::ZExt, part.last, int);
    b.store(last, args[3]);
    b.store(part.lower, args[4]);
    b.store(part.upper, args[5]);
    b.store(part.stride, args[6]);
    body.erase(start);
    Ok(())
}

struct RankRange {
    lower: Value,
    upper: Value,
    stride: Value,
    last: Value,
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
    }
}

/// Emits the first chunk of the rank, and the stride to the next chunk.
fn round_robin(
    b: &mut Builder,
    (lower, upper): (Value, Value),
    (rank, size): (Value, Value),
    chunk: Value,
) -> RankRange {
    let ty = b.body.ty(lower);
    let (zero, one) = (b.int(ty, 0), b.int(ty, 1));
    let positive = b.icmp(IntPredicate::Sgt, chunk, zero);
    let chunk = b.select(positive, chunk, one);
    let skip = b.mul(rank, chunk);
    let first = b.add(lower, skip);
    let behind = b.add(first, chunk);
    let final_ = b.sub(behind, one);
    let stride = b.mul(chunk, size);
    let span = b.sub(upper, lower);
    let chunks = b.binary(BinaryOp::UDiv, span, chunk);
    let owner = b.binary(BinaryOp::URem, chunks, size);
    let last = b.icmp(IntPredicate::Eq, owner, rank);
    RankRange {
        lower: first,
        upper: final_,
        stride,
        last,
    }
}
