//! Loops over the threads of a block, and per-thread memory between two thread loops. Ranks of a team count
//! as threads; their loops are parallel loops.

use crate::Options;
use gradus_edit::declare_aligned_alloc;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    AllocaInfo, AllocaStorage, AttrSet, BinaryOp, Body, Builder, CastOp, Flags, IntPredicate, Op,
    OpKind, ReduceOp, SpmdKind, TypeId, Unit, Value,
};

/// The threads of a block.
#[derive(Debug)]
pub(crate) struct Threads {
    /// Number of threads per dimension, fastest first, with the constant if known.
    extents: Vec<(Value, Option<u64>)>,
    /// Region parameters that are ranks. The remaining region parameters are `sizes`.
    pub ranks: Vec<Value>,
    /// Region parameters that are sizes.
    pub sizes: Vec<Value>,
    /// Number of threads for which memory is allocated, a multiple of the warp size.
    capacity: u64,
    /// The team, if the threads are ranks of a team.
    team: Option<Op>,
}

/// A running thread.
#[derive(Debug)]
pub(crate) struct Thread {
    /// Rank in each dimension.
    pub ranks: Vec<Value>,
    /// Linear thread index in the block, 64 bits.
    pub number: Value,
}

/// Thread order of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadOrder {
    /// Serial, in index order.
    Serial,
    /// Any order, or in parallel.
    Parallel,
    /// Only threads with rank 0 in the given dimension.
    RankZero(usize),
}

impl Threads {
    /// Reads the extents of an `spmd block`.
    pub fn of(unit: &Unit, body: &Body, block: Op, options: &Options) -> Threads {
        let known = |v: Value| body.as_int(unit, v).and_then(|n| u64::try_from(n).ok());
        let extents: Vec<_> = body.operands(block).map(|v| (v, known(v))).collect();
        let params = body.region_params(body.op_regions(block)[0]);
        let (ranks, sizes) = params.split_at(extents.len());
        let product = |sum: u64, extent: &(Value, Option<u64>)| sum.checked_mul(extent.1?);
        let capacity = extents.iter().try_fold(1u64, product);
        let capacity = capacity.unwrap_or(options.max_threads).max(1);
        Threads {
            ranks: ranks.to_vec(),
            sizes: sizes.to_vec(),
            capacity: capacity.next_multiple_of(WARP_SIZE),
            extents,
            team: is_team(body, block).then_some(block),
        }
    }

    /// The extent of each dimension.
    pub fn extents(&self) -> impl Iterator<Item = Value> + '_ {
        self.extents.iter().map(|(extent, _)| *extent)
    }

    /// Emits a loop nest over all threads, first dimension innermost, that carries `initial`. `fill` emits
    /// the innermost body and returns the next carried values. The builder returns to its place. Returns the
    /// final carried values.
    pub fn for_each_thread(
        &self,
        b: &mut Builder<'_>,
        initial: &[Value],
        run: ThreadOrder,
        fill: impl FnOnce(&mut Builder<'_>, &Thread, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let mut loops = Vec::new();
        let mut ranks = Vec::new();
        let mut carried = initial.to_vec();
        for (dim, &(extent, known)) in self.extents.iter().enumerate().rev() {
            if known == Some(1) || run == ThreadOrder::RankZero(dim) {
                let ty = b.body.ty(extent);
                ranks.push(b.int(ty, 0));
                continue;
            }
            if self.team.is_some() {
                let reductions: Vec<(ReduceOp, Value)> = carried
                    .iter()
                    .map(|value| (reduction_of(b, *value), *value))
                    .collect();
                let (nest, region) = b.par_for(extent, &reductions, None);
                ranks.push(b.body.region_params(region)[0]);
                loops.push((nest, b.set_insertion_end(region)));
                continue;
            }
            let (nest, region) = b.for_(extent, &carried);
            if run == ThreadOrder::Parallel {
                b.body.ops[nest].flags = Flags::INDEPENDENT;
            }
            let params = b.body.region_params(region).to_vec();
            ranks.push(params[0]);
            carried = params[1..].to_vec();
            loops.push((nest, b.set_insertion_end(region)));
        }
        ranks.reverse();
        let number = self.linear_index(b, &ranks);
        let thread = Thread { ranks, number };
        let mut results = fill(b, &thread, &carried);
        for (nest, place) in loops.into_iter().rev() {
            b.yield_(&results);
            b.restore_insertion_point(place);
            results = b.body.results(nest).to_vec();
        }
        results
    }

    fn linear_index(&self, b: &mut Builder<'_>, ranks: &[Value]) -> Value {
        let mut number = None;
        for (&rank, &(extent, known)) in ranks.iter().zip(&self.extents).rev() {
            let rank = zext_to_i64(b, rank);
            number = match number {
                None if known == Some(1) => None,
                None => Some(rank),
                Some(above) => {
                    let extent = zext_to_i64(b, extent);
                    let above = b.mul(above, extent);
                    b.set_flags(above, Flags::NUW.with(Flags::NSW));
                    let sum = b.add(above, rank);
                    b.set_flags(sum, Flags::NUW.with(Flags::NSW));
                    Some(sum)
                }
            };
        }
        match number {
            Some(number) => number,
            None => b.i64(0),
        }
    }
}

/// Returns whether an `spmd` is a team.
pub(crate) fn is_team(body: &Body, op: Op) -> bool {
    matches!(
        body.kind(op),
        OpKind::Spmd {
            kind: SpmdKind::Team,
            ..
        }
    )
}

/// The reduction of a carried value over a team's ranks: `or` for masks, unsigned maximum for numbers.
fn reduction_of(b: &Builder<'_>, value: Value) -> ReduceOp {
    match b.unit.types.int_bits(b.body.ty(value)) {
        Some(1) => ReduceOp::Or,
        _ => ReduceOp::UMax,
    }
}

/// Threads per warp.
pub(crate) const WARP_SIZE: u64 = 32;

/// Zero-extends or truncates an unsigned integer to 64 bits.
pub(crate) fn zext_to_i64(b: &mut Builder<'_>, value: Value) -> Value {
    match b.body.as_int(b.unit, value) {
        Some(n) => b.i64(n),
        None => gradus_edit::to_i64(b, value),
    }
}

/// Memory with an element for every thread of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    base: Value,
    /// Type of the stored value.
    ty: TypeId,
    /// Type in memory: a truth value occupies a byte.
    memory: TypeId,
}

impl Slot {
    /// Allocates a `ty` per thread at the insertion point (for a team, around the team).
    pub fn new(b: &mut Builder<'_>, threads: &Threads, ty: TypeId) -> Slot {
        let memory = match b.unit.types.int_bits(ty) {
            Some(1) => b.unit.types.int(8),
            _ => ty,
        };
        let base = match threads.team {
            None => private_memory(b, memory, threads.capacity, None),
            Some(team) => rank_memory(b, threads, team, memory),
        };
        Slot { base, ty, memory }
    }
    /// Same as [`Slot::new`], but allocates at the start of the region that contains the block.
    pub fn new_before_block(b: &mut Builder<'_>, block: Op, threads: &Threads, ty: TypeId) -> Slot {
        if threads.team.is_some() {
            return Slot::new(b, threads, ty);
        }
        let region = b.body.parent(block);
        let first = region.and_then(|region| b.body.first(region));
        let back = b.set_insertion_before(first.unwrap_or(block));
        let slot = Slot::new(b, threads, ty);
        b.restore_insertion_point(back);
        slot
    }
    /// Returns whether both slots are the same memory.
    pub fn is_same_memory(&self, other: &Slot) -> bool {
        self.base == other.base
    }
    /// Loads the value of a thread.
    pub fn load(&self, b: &mut Builder<'_>, thread: &Thread) -> Value {
        let at = b.addr(self.memory, self.base, thread.number);
        let value = b.load(self.memory, at);
        if self.memory == self.ty {
            return value;
        }
        let zero = b.zero(self.memory);
        b.icmp(IntPredicate::Ne, value, zero)
    }
    /// Stores the value of a thread.
    pub fn store(&self, b: &mut Builder<'_>, thread: &Thread, value: Value) {
        let value = b.cast(CastOp::ZExt, value, self.memory);
        let at = b.addr(self.memory, self.base, thread.number);
        b.store(value, at);
    }
}

/// Private allocations of all threads of a block, contiguous.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadRows {
    base: Value,
    row: TypeId,
}

impl ThreadRows {
    /// Allocates, for each thread, `count` times the memory of `info`.
    pub fn new(
        b: &mut Builder<'_>,
        threads: &Threads,
        info: &AllocaInfo,
        count: u64,
    ) -> ThreadRows {
        let row = match count {
            1 => info.ty,
            _ => b.unit.types.array(info.ty, count),
        };
        if let Some(team) = threads.team {
            let bytes = b.unit.layout.size_bytes(b.unit, row);
            let byte = b.unit.types.int(8);
            let lines = bytes.next_multiple_of(info.align_bytes.max(CACHE_LINE_BYTES).into());
            let row = b.unit.types.array(byte, lines);
            let base = rank_memory(b, threads, team, row);
            return ThreadRows { base, row };
        }
        let base = private_memory(b, row, threads.capacity, Some(info.align_bytes));
        ThreadRows { base, row }
    }
    /// The address of a thread's row.
    pub fn at(&self, b: &mut Builder<'_>, thread: &Thread) -> Value {
        b.addr(self.row, self.base, thread.number)
    }
}

/// Emits a private allocation of `count` elements for each iteration of the enclosing parallel loop.
pub(crate) fn private_memory(
    b: &mut Builder<'_>,
    element: TypeId,
    count: u64,
    align_bytes: Option<u32>,
) -> Value {
    let natural = b.unit.layout.align_bytes(b.unit, element) as u32;
    let ty = b.unit.types.array(element, count);
    let info = AllocaInfo {
        ty,
        align_bytes: align_bytes
            .unwrap_or(natural)
            .max(natural)
            .max(CACHE_LINE_BYTES),
        storage: AllocaStorage::Private,
        inalloca: false,
    };
    let (one, ptr) = (b.i64(1), b.unit.types.ptr());
    b.value(OpKind::Alloca(info), &[one], ptr)
}

/// Allocates an element per rank of a team, live from the team's start to its end. The memory comes from the
/// heap, aligned to a cache line, because the number of ranks is known at run time only.
fn rank_memory(b: &mut Builder<'_>, threads: &Threads, team: Op, element: TypeId) -> Value {
    let (extent, _) = threads.extents[0];
    let number = b.body.def_op(extent).and_then(|op| b.body.next(op));
    let back = b.set_insertion_before(number.unwrap_or(team));
    let bytes = b.unit.layout.size_bytes(b.unit, element).max(1);
    let (line, bytes) = (i64::from(CACHE_LINE_BYTES), b.i64(bytes as i64));
    let ranks = zext_to_i64(b, extent);
    let bytes = b.mul(ranks, bytes);
    let (more, mask, line) = (b.i64(line - 1), b.i64(-line), b.i64(line));
    let bytes = b.add(bytes, more);
    let bytes = b.binary(BinaryOp::And, bytes, mask);
    let (block, base) = aligned_block(b, line, bytes);
    let free = gradus_edit::declare_free(b.unit);
    let Some(behind) = b.body.next(team) else {
        unreachable!("a terminator follows a team");
    };
    b.set_insertion_before(behind);
    b.call(free, &[block]);
    b.restore_insertion_point(back);
    base
}

/// Allocates `bytes` bytes, aligned to `line` bytes. Returns the block to free, and the aligned address in the
/// block. If the program has an `aligned_alloc` of its own, `malloc` yields a larger block.
fn aligned_block(b: &mut Builder<'_>, line: Value, bytes: Value) -> (Value, Value) {
    if let Some(allocate) = declare_aligned_alloc(b.unit) {
        let call = b.call(allocate, &[line, bytes]);
        let block = b.body.result(call);
        return (block, block);
    }
    let (ptr, long, byte) = (
        b.unit.types.ptr(),
        b.unit.types.int(64),
        b.unit.types.int(8),
    );
    let allocate = b.unit.types.func(ptr, vec![long]);
    let allocate = b.unit.declare("malloc", allocate, AttrSet::default());
    let more = b.add(bytes, line);
    let call = b.call(allocate, &[more]);
    let block = b.body.result(call);
    let address = b.cast(CastOp::PtrToInt, block, long);
    let one = b.i64(1);
    let mask = b.sub(line, one);
    let past = b.binary(BinaryOp::And, address, mask);
    let gap = b.sub(line, past);
    (block, b.addr(byte, block, gap))
}

/// A cache line, in bytes: stored values are accessed as whole vectors.
const CACHE_LINE_BYTES: u32 = 64;

/// Replaces an allocation shared by the threads of a block by private memory of one block: the known size,
/// or the upper bound for an unknown size.
pub(crate) fn block_memory(b: &mut Builder<'_>, alloca: Op, options: &Options) -> Value {
    let OpKind::Alloca(info) = *b.body.kind(alloca) else {
        unreachable!("only allocas are shared memory");
    };
    let count = b.body.operand(alloca, 0);
    let known = b
        .body
        .as_int(b.unit, count)
        .and_then(|n| u64::try_from(n).ok());
    let size = b.unit.layout.size_bytes(b.unit, info.ty).max(1);
    let most = match is_planted(Mutant::DynamicSharedSizeIgnored) {
        true => 1,
        false => options.max_shared_bytes / size,
    };
    let count = known.unwrap_or(most).max(1);
    private_memory(b, info.ty, count, Some(info.align_bytes))
}
