//! Warp operations: shuffles, votes, and counting barriers, through shared memory.
//!
//! Each operation becomes memory of the block and barriers: every thread writes its operand, barrier, every
//! thread reads the result, barrier, hence the memory can be reused. A warp is 32 consecutive threads, first
//! index fastest; the last warp of a block may be smaller. Every barrier has warp scope; barrier fission splits
//! the code of the whole block at barriers of any scope.

use super::Launch;
use gradus_ir::{
    Access, AllocaInfo, AllocaStorage, Atomicity, BarrierScope, BinaryOp, Body, Builder, CastOp,
    IntPredicate, MAX_BLOCK_THREADS, Op, OpKind, RmwOp, TypeId, Unit, Value,
};

/// The logarithm of the warp size.
const WARP_SHIFT: i128 = 5;

/// The thread's indices within block and warp, as 32-bit values.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadIndices {
    /// The linear thread index in the block.
    pub thread: Value,
    /// The lane.
    pub lane: Value,
}

/// Emits the thread's indices at the start of the block.
pub(super) fn thread_indices(unit: &mut Unit, body: &mut Body, launch: &Launch) -> ThreadIndices {
    let params = body.region_params(launch.block).to_vec();
    let mut b = builder_at_block_start(unit, body, launch);
    let rows = b.mul(params[4], params[2]);
    let row = b.add(rows, params[1]);
    let before = b.mul(row, params[3]);
    let number = b.add(before, params[0]);
    let int = b.unit.types.int(32);
    let thread = b.cast(CastOp::Trunc, number, int);
    let mask = b.int(int, 31);
    let lane = b.binary(BinaryOp::And, thread, mask);
    ThreadIndices { thread, lane }
}

/// The lane selection of a shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shuffle {
    Index,
    Up,
    Down,
    Butterfly,
}

impl Shuffle {
    /// Returns the shuffle of a function name.
    pub fn named(name: &str) -> Option<Shuffle> {
        let form = name.strip_prefix("__gr_shfl_")?.split('_').next()?;
        Some(match form {
            "idx" => Shuffle::Index,
            "up" => Shuffle::Up,
            "down" => Shuffle::Down,
            "bfly" => Shuffle::Butterfly,
            _ => return None,
        })
    }
}

/// Lowers `mask, value, which, clamp → value of that lane`, with the lane selection of PTX `shfl`.
pub(super) fn shuffle(
    unit: &mut Unit,
    body: &mut Body,
    launch: &Launch,
    place: ThreadIndices,
    call: Op,
    how: Shuffle,
) {
    let args = unit.call_args(body, call);
    let ty = body.ty(args[1]);
    let memory = allocate_shared(unit, body, launch, ty, MAX_BLOCK_THREADS.into());
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(call);
    b.loc = b.body.ops[call].loc;
    let own = b.addr(ty, memory, place.thread);
    b.store(args[1], own);
    emit_barrier(&mut b, BarrierScope::Warp);
    let lane = source_lane(&mut b, place.lane, args[2], args[3], how);
    let first = b.sub(place.thread, place.lane);
    let from = b.add(first, lane);
    let other = b.addr(ty, memory, from);
    let value = b.load(ty, other);
    emit_barrier(&mut b, BarrierScope::Warp);
    let result = b.body.result(call);
    b.body.replace_uses(result, value);
    b.body.erase(call);
}

/// Emits the source lane of a shuffle; the own lane if the selected lane is outside of the segment.
fn source_lane(b: &mut Builder, lane: Value, which: Value, clamp: Value, how: Shuffle) -> Value {
    let int = b.body.ty(lane);
    let constant = |b: &mut Builder, n: i128| b.int(int, n);
    let (low, eight, all) = (constant(b, 31), constant(b, 8), constant(b, -1));
    let which = b.binary(BinaryOp::And, which, low);
    let clamped = b.binary(BinaryOp::And, clamp, low);
    let high = b.binary(BinaryOp::LShr, clamp, eight);
    let segment = b.binary(BinaryOp::And, high, low);
    let inner = b.binary(BinaryOp::Xor, segment, all);
    let first = b.binary(BinaryOp::And, lane, segment);
    let rest = b.binary(BinaryOp::And, clamped, inner);
    let bound = b.binary(BinaryOp::Or, first, rest);
    let lane_wanted = match how {
        Shuffle::Up => b.sub(lane, which),
        Shuffle::Down => b.add(lane, which),
        Shuffle::Butterfly => b.binary(BinaryOp::Xor, lane, which),
        Shuffle::Index => {
            let within = b.binary(BinaryOp::And, which, inner);
            b.binary(BinaryOp::Or, first, within)
        }
    };
    let predicate = match how {
        Shuffle::Up => IntPredicate::Sge,
        _ => IntPredicate::Sle,
    };
    let fits = b.icmp(predicate, lane_wanted, bound);
    b.select(fits, lane_wanted, lane)
}

/// The result of a vote over the participating threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    /// A bit per lane with a true predicate.
    Ballot,
    /// True for any lane, for all lanes.
    Any,
    All,
    /// The number of threads of the block with a true predicate; any; all.
    Count,
    BlockAny,
    BlockAll,
}

impl Vote {
    fn of_warp(self) -> bool {
        matches!(self, Vote::Ballot | Vote::Any | Vote::All)
    }
}

/// Lowers a vote on the `i1` predicate `holds`; `mask` selects the participating lanes.
pub(super) fn lower_vote(
    unit: &mut Unit,
    body: &mut Body,
    launch: &Launch,
    place: ThreadIndices,
    call: Op,
    (question, mask, holds): (Vote, Option<Value>, Option<Value>),
) {
    let int = unit.types.int(32);
    let (words, scope) = match question.of_warp() {
        true => (
            u64::from(MAX_BLOCK_THREADS >> WARP_SHIFT),
            BarrierScope::Warp,
        ),
        false => (1, BarrierScope::Block),
    };
    let memory = allocate_shared(unit, body, launch, int, words);
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(call);
    b.loc = b.body.ops[call].loc;
    let word = match question.of_warp() {
        true => {
            let shift = b.int(int, WARP_SHIFT);
            let warp = b.binary(BinaryOp::LShr, place.thread, shift);
            b.addr(int, memory, warp)
        }
        false => memory,
    };
    let said = vote_operand(&mut b, question, holds);
    let zero = b.int(int, 0);
    b.store(zero, word);
    emit_barrier(&mut b, scope);
    let (op, said) = match question.of_warp() {
        true => (RmwOp::Or, b.binary(BinaryOp::Shl, said, place.lane)),
        false => (RmwOp::Add, said),
    };
    let access = Access {
        order: Atomicity::Monotonic,
        ..Access::plain(4)
    };
    b.value(OpKind::AtomicRmw(op, access), &[word, said], int);
    emit_barrier(&mut b, scope);
    let mut answer = b.load(int, word);
    emit_barrier(&mut b, scope);
    if let Some(mask) = mask {
        answer = b.binary(BinaryOp::And, answer, mask);
    }
    let answer = match question {
        Vote::Ballot | Vote::Count => answer,
        Vote::Any | Vote::BlockAny => b.icmp(IntPredicate::Ne, answer, zero),
        Vote::All | Vote::BlockAll => b.icmp(IntPredicate::Eq, answer, zero),
    };
    let result = b.body.result(call);
    b.body.replace_uses(result, answer);
    b.body.erase(call);
}

/// Emits the thread's contribution: the predicate, negated for votes over all.
fn vote_operand(b: &mut Builder, question: Vote, holds: Option<Value>) -> Value {
    let int = b.unit.types.int(32);
    let Some(holds) = holds else {
        return b.int(int, 1);
    };
    let says = match question {
        Vote::All | Vote::BlockAll => {
            let yes = b.bool(true);
            b.binary(BinaryOp::Xor, holds, yes)
        }
        _ => holds,
    };
    b.cast(CastOp::ZExt, says, int)
}

fn emit_barrier(b: &mut Builder, scope: BarrierScope) {
    b.op(OpKind::Barrier(scope), &[], &[], 0);
}

/// Returns a builder at the start of a launch's block.
fn builder_at_block_start<'a>(
    unit: &'a mut Unit,
    body: &'a mut Body,
    launch: &Launch,
) -> Builder<'a> {
    let first = body.first(launch.block);
    let mut b = Builder::new(unit, body);
    match first {
        Some(first) => b.set_insertion_before(first),
        None => b.set_insertion_end(launch.block),
    };
    b
}

/// Allocates shared memory of the block for `count` values.
fn allocate_shared(
    unit: &mut Unit,
    body: &mut Body,
    launch: &Launch,
    ty: TypeId,
    count: u64,
) -> Value {
    let mut b = builder_at_block_start(unit, body, launch);
    let info = AllocaInfo {
        ty: b.unit.types.array(ty, count),
        align_bytes: b.unit.layout.align_bytes(b.unit, ty) as u32,
        storage: AllocaStorage::Shared,
        inalloca: false,
    };
    let (one, ptr) = (b.i64(1), b.unit.types.ptr());
    b.value(OpKind::Alloca(info), &[one], ptr)
}
