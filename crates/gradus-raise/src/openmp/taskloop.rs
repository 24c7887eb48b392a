//! Taskloops become parallel loops over chunks.
//!
//! Each chunk is a task: it calls the task's function for a range of iterations, with the captures in private
//! memory. Without a clause the number of chunks is large enough for sharing, and the parallel loop is
//! partitioned by profitability. With a clause the chunks are as requested, each a task, because the program
//! may rely on them. `firstprivate` copies of a chunk persist from iteration to iteration, and iterations of a
//! chunk may conflict in memory. The iterations of a chunk:
//! - `grainsize(g)`: `g` or more, in the maximum number of chunks, equal up to one iteration; `strict`: `g`,
//!   and the remainder in the last chunk;
//! - `num_tasks(m)`: `m` chunks, equal up to one iteration.
//!
//! With a false `if` clause, or without an enclosing region, chunks run in order. A `final` clause affects
//! tasks created inside of the chunks.

use super::tasks::{
    DESTRUCTORS, DETACHABLE, SpawnConditions, TaskAllocation, call_task_function,
    decode_allocation, emit_initialized_task, emit_spawn, final_flag, initializing_ops,
    is_derived_from, is_plain_filling, may_have_flags,
};
use crate::report::{RaiseResult, reason};
use gradus_ir::{BinaryOp, Body, Builder, CastOp, FuncId, IntPredicate, Op, OpKind, Unit, Value};

/// The partition clause.
#[derive(Clone, Copy)]
enum PartitionClause {
    /// No clause.
    None,
    /// `grainsize`.
    Grain(Value),
    /// `grainsize(strict: …)`.
    Strict(Value),
    /// `num_tasks`.
    Pieces(Value),
}

/// The maximum number of chunks of a loop without a clause.
const CHUNKS_MAX: i128 = 1024;

/// A taskloop.
struct TaskLoop {
    alloc: Op,
    made: TaskAllocation,
    /// The ops that initialise the task.
    fill: Vec<Op>,
    /// The addresses of the task's bounds.
    bounds: [Value; 2],
    lower: Value,
    upper: Value,
    stride: Value,
    clause: PartitionClause,
    /// True if a task has a flag for the last iteration.
    has_last_flag: bool,
}

/// The execution of chunks.
#[derive(Clone, Copy)]
enum ChunkExecution {
    /// Iterations of a parallel loop.
    AtOnce,
    /// Tasks, possibly without an enclosing region.
    Tasks,
    /// One after the other.
    InOrder,
}

/// Raises the taskloop of `call`; `orphaned` if the loop may run outside of all regions. Returns the task's
/// function.
pub(super) fn raise(
    unit: &mut Unit,
    body: &mut Body,
    alloc: Op,
    call: Op,
    orphaned: bool,
) -> RaiseResult<FuncId> {
    let given = unit.call_args(body, call);
    let found = decode(unit, body, alloc, call).map_err(|text| reason(unit, body, call, text))?;
    let asked = body.as_int(unit, given[3]);
    let flags = unit.call_args(body, alloc)[2];
    let known = body.as_int(unit, flags);
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(call);
    b.loc = b.body.ops[call].loc;
    let serial = final_flag(&mut b, flags, known);
    let pieces = ChunkPartition::of(&mut b, &found);
    let way = match orphaned {
        true => ChunkExecution::Tasks,
        false => ChunkExecution::AtOnce,
    };
    match asked {
        Some(0) => found.emit_chunk_loop(&mut b, &pieces, ChunkExecution::InOrder, serial),
        Some(_) => found.emit_chunk_loop(&mut b, &pieces, way, serial),
        None => {
            let ty = b.body.ty(given[3]);
            let zero = b.int(ty, 0);
            let condition = b.icmp(IntPredicate::Ne, given[3], zero);
            let (_, deferred, otherwise) = b.if_(condition, &[]);
            for (region, way) in [(deferred, way), (otherwise, ChunkExecution::InOrder)] {
                b.set_insertion_end(region);
                found.emit_chunk_loop(&mut b, &pieces, way, serial);
                b.set_insertion_end(region);
                b.yield_(&[]);
            }
        }
    }
    body.erase(call);
    for &op in found.fill.iter().rev() {
        body.erase(op);
    }
    body.erase(alloc);
    Ok(found.made.entry)
}

/// Decodes a taskloop.
fn decode(unit: &Unit, body: &Body, alloc: Op, call: Op) -> Result<TaskLoop, &'static str> {
    let given = unit.call_args(body, call);
    const UNKNOWN: &str = "the allocation or the runtime call of this `taskloop` is not recognised";
    const TAKEN: &str = "the captured variables of this `taskloop` are not recognised";
    let last = match given.len() {
        11 => Some((None, given[10])),
        12 => Some((Some(given[10]), given[11])),
        _ => None,
    };
    let (strict, duplicate) = last.ok_or(UNKNOWN)?;
    let made = decode_allocation(unit, body, alloc).ok_or(UNKNOWN)?;
    if may_have_flags(
        unit,
        body,
        unit.call_args(body, alloc)[2],
        DESTRUCTORS | DETACHABLE,
    ) {
        return Err(
            "the tasks of this `taskloop` capture objects with destructors, or are detached",
        );
    }
    let fill = initializing_ops(unit, body, alloc, call).ok_or(TAKEN)?;
    let stored = |address: Value| {
        let is_store = |op: &&Op| {
            matches!(body.kind(**op), OpKind::Store(_)) && body.operand(**op, 1) == address
        };
        let store = fill.iter().rev().find(is_store);
        store.map(|&op| body.operand(op, 0)).ok_or(TAKEN)
    };
    if !fill.iter().all(|&op| is_plain_filling(unit, body, op)) {
        return Err(TAKEN);
    }
    // The function that duplicates a task for a chunk also sets the flag for the last chunk.
    let tells_last = !body.is_null(unit, duplicate);
    if tells_last && !is_derived_from(body, given[5], body.result(alloc)) {
        return Err("the last-iteration flag of this `taskloop` is not recognised");
    }
    let stride = match body.def_op(given[6]).filter(|op| fill.contains(op)) {
        Some(load) => stored(body.operand(load, 0))?,
        None => given[6],
    };
    let is_strict = strict.is_some_and(|strict| body.as_int(unit, strict) != Some(0));
    let clause = match body.as_int(unit, given[8]) {
        Some(0) => PartitionClause::None,
        Some(1) if is_strict => PartitionClause::Strict(given[9]),
        Some(1) => PartitionClause::Grain(given[9]),
        Some(2) => PartitionClause::Pieces(given[9]),
        _ => return Err(UNKNOWN),
    };
    let (lower, upper) = (stored(given[4])?, stored(given[5])?);
    let ty = body.ty(lower);
    let alike = [upper, stride, given[9]].iter().all(|v| body.ty(*v) == ty);
    alike.then_some(()).ok_or(UNKNOWN)?;
    Ok(TaskLoop {
        alloc,
        made,
        fill,
        bounds: [given[4], given[5]],
        lower,
        upper,
        stride,
        clause,
        has_last_flag: tells_last,
    })
}

// ---- partition into chunks ----------------------------------------------------------------------

/// The partition of a loop into chunks.
struct ChunkPartition {
    count: Value,
    of_each: ChunkLength,
}

/// The number of iterations of a chunk.
#[derive(Clone, Copy)]
enum ChunkLength {
    /// The shorter length, the longer length, and the number of longer chunks, which come first.
    Even(Value, Value, Value),
    /// The chunk length, and the trip count that clips the last chunk.
    Fixed(Value, Value),
}

impl ChunkPartition {
    fn of(b: &mut Builder<'_>, lp: &TaskLoop) -> ChunkPartition {
        let trips = emit_trip_count(b, lp);
        let ty = b.body.ty(trips);
        let zero = b.int(ty, 0);
        let count = match lp.clause {
            PartitionClause::None => {
                let most = b.int(ty, CHUNKS_MAX);
                unsigned_min(b, most, trips)
            }
            PartitionClause::Grain(grain) => {
                let grain = at_least_one(b, grain);
                let whole = b.binary(BinaryOp::UDiv, trips, grain);
                let some = at_least_one(b, whole);
                let none = b.icmp(IntPredicate::Eq, trips, zero);
                b.select(none, zero, some)
            }
            PartitionClause::Strict(grain) => {
                let grain = at_least_one(b, grain);
                let whole = b.binary(BinaryOp::UDiv, trips, grain);
                let left = b.binary(BinaryOp::URem, trips, grain);
                let more = b.icmp(IntPredicate::Ne, left, zero);
                let more = b.cast(CastOp::ZExt, more, ty);
                return ChunkPartition {
                    count: b.add(whole, more),
                    of_each: ChunkLength::Fixed(grain, trips),
                };
            }
            PartitionClause::Pieces(wanted) => {
                let wanted = at_least_one(b, wanted);
                unsigned_min(b, wanted, trips)
            }
        };
        let by = at_least_one(b, count);
        let each = b.binary(BinaryOp::UDiv, trips, by);
        let more = b.binary(BinaryOp::URem, trips, by);
        let one = b.int(ty, 1);
        let longer = b.add(each, one);
        ChunkPartition {
            count,
            of_each: ChunkLength::Even(each, longer, more),
        }
    }

    /// Emits the numbers of the first and last iteration of a chunk.
    fn range(&self, b: &mut Builder<'_>, piece: Value) -> (Value, Value) {
        let ty = b.body.ty(piece);
        let one = b.int(ty, 1);
        let (first, length) = match self.of_each {
            ChunkLength::Even(each, longer, more) => {
                let whole = b.mul(piece, each);
                let before = unsigned_min(b, piece, more);
                let is_longer = b.icmp(IntPredicate::Ult, piece, more);
                (b.add(whole, before), b.select(is_longer, longer, each))
            }
            ChunkLength::Fixed(each, trips) => {
                let first = b.mul(piece, each);
                let left = b.sub(trips, first);
                (first, unsigned_min(b, each, left))
            }
        };
        let end = b.add(first, length);
        (first, b.sub(end, one))
    }
}

/// Emits the trip count.
fn emit_trip_count(b: &mut Builder<'_>, lp: &TaskLoop) -> Value {
    let ty = b.body.ty(lp.lower);
    let zero = b.int(ty, 0);
    let span = b.sub(lp.upper, lp.lower);
    let reach = b.add(span, lp.stride);
    let trips = match b.body.as_int(b.unit, lp.stride) {
        Some(1) => reach,
        _ => b.binary(BinaryOp::SDiv, reach, lp.stride),
    };
    let some = b.icmp(IntPredicate::Sgt, trips, zero);
    b.select(some, trips, zero)
}

fn at_least_one(b: &mut Builder<'_>, value: Value) -> Value {
    if b.body.as_int(b.unit, value).is_some_and(|n| n > 0) {
        return value;
    }
    let ty = b.body.ty(value);
    let (zero, one) = (b.int(ty, 0), b.int(ty, 1));
    let none = b.icmp(IntPredicate::Eq, value, zero);
    b.select(none, one, value)
}

/// Emits the unsigned minimum.
fn unsigned_min(b: &mut Builder<'_>, first: Value, second: Value) -> Value {
    let is_first = b.icmp(IntPredicate::Ult, first, second);
    b.select(is_first, first, second)
}

// ---- the loop over chunks -----------------------------------------------------------------------

impl TaskLoop {
    /// Emits the loop over chunks at the builder's position.
    fn emit_chunk_loop(
        &self,
        b: &mut Builder<'_>,
        pieces: &ChunkPartition,
        way: ChunkExecution,
        serial: Option<Value>,
    ) {
        // A requested chunk is large enough for a task.
        let worth = (!matches!(self.clause, PartitionClause::None)).then_some(1);
        let piece = begin_chunk_loop(b, pieces.count, way, serial, worth);
        let (memory, map) =
            emit_initialized_task(b, self.alloc, self.made.size, self.made.shared, &self.fill);
        let [low, high] = self.bounds.map(|at| map.get_or_same(at));
        let (first, last) = pieces.range(b, piece);
        for (number, at) in [(first, low), (last, high)] {
            let steps = b.mul(number, self.stride);
            let bound = b.add(self.lower, steps);
            b.store(bound, at);
        }
        if self.has_last_flag {
            // After the bounds: the stride and the flag for the last chunk.
            let offset = b.i64(16);
            let flag = b.byte_addr(high, offset);
            let ty = b.body.ty(piece);
            let one = b.int(ty, 1);
            let next = b.add(piece, one);
            let is_last = b.icmp(IntPredicate::Eq, next, pieces.count);
            let int = b.unit.types.int(32);
            let is_last = b.cast(CastOp::ZExt, is_last, int);
            b.store(is_last, flag);
        }
        call_task_function(b, self.made.entry, memory);
        b.yield_(&[]);
    }
}

/// Emits a loop over chunks and moves the builder to the code of a chunk. Returns the chunk's number.
fn begin_chunk_loop(
    b: &mut Builder<'_>,
    count: Value,
    way: ChunkExecution,
    serial: Option<Value>,
    worth: Option<u64>,
) -> Value {
    let never = Some(b.bool(false));
    let task: Option<SpawnConditions> = match way {
        ChunkExecution::Tasks => Some((None, serial)),
        ChunkExecution::InOrder => Some((never, serial)),
        ChunkExecution::AtOnce => serial.map(|_| (never, serial)),
    };
    if !matches!(way, ChunkExecution::AtOnce) {
        let scope = b.op(OpKind::Scope, &[], &[], 1);
        let all = b.body.op_regions(scope)[0];
        b.set_insertion_end(all);
        let end = b.yield_(&[]);
        b.set_insertion_before(end);
    }
    let (_, region) = match way {
        ChunkExecution::AtOnce => b.par_for(count, &[], worth),
        ChunkExecution::Tasks | ChunkExecution::InOrder => b.for_(count, &[]),
    };
    b.set_insertion_end(region);
    if let Some(conditions) = task {
        let end = b.yield_(&[]);
        b.set_insertion_before(end);
        emit_spawn(b, conditions);
    }
    b.body.region_params(region)[0]
}
