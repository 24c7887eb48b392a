//! Lowering of grids with cooperative threads: `f.gr_turns(ranks, shared, context)` is the code of one thread,
//! which the runtime calls for each thread on a separate stack (fiber).

use crate::emit::abi::Entry;
use crate::emit::reduction_combine::copied_value;
use crate::lower::Lowering;
use gradus_edit::{
    ValueMap, block_type, captured_values, clone_op, entry_alloca, load_fields, store_fields,
    to_i64, to_index_type,
};
use gradus_ir::{
    AllocaStorage, BarrierScope, BinaryOp, Body, Builder, Flags, FuncId, Op, OpKind, Region,
    TypeId, Value,
};

/// The alignment in bytes of each shared variable.
const LINE_BYTES: u64 = 64;
/// The number of dimensions of a block in its grid, and of a thread in its block.
const DIMS: usize = 3;

/// Returns true for a grid with cooperative threads.
pub(crate) fn is_cooperative(body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Spmd { .. })
        && body.ops[op].flags.has(Flags::COOPERATIVE_THREADS)
}

/// The regions of a grid and of its block.
struct CooperativeGrid {
    outer: Region,
    block: Op,
    inner: Region,
    /// The shared memory of a block.
    shared: Vec<(Op, TypeId)>,
}

impl CooperativeGrid {
    fn of(body: &Body, op: Op) -> Option<CooperativeGrid> {
        let outer = body.op_regions(op)[0];
        let is_block = |op: &Op| matches!(body.kind(*op), OpKind::Spmd { .. });
        let block = body.ops_in(outer).find(is_block)?;
        let shared = body
            .walk(outer)
            .filter_map(|op| Some((op, shared_type(body, op)?)));
        let shared = shared.collect();
        Some(CooperativeGrid {
            outer,
            block,
            inner: body.op_regions(block)[0],
            shared,
        })
    }
}

/// Returns the element type of a shared allocation.
fn shared_type(body: &Body, op: Op) -> Option<TypeId> {
    match body.kind(op) {
        OpKind::Alloca(info) => (info.storage == AllocaStorage::Shared).then_some(info.ty),
        _ => None,
    }
}

impl Lowering<'_> {
    /// Lowers a grid with cooperative threads.
    pub(crate) fn lower_cooperative_grid(&mut self, body: &mut Body, op: Op) {
        let Some(grid) = CooperativeGrid::of(body, op) else {
            unreachable!("a grid of cooperative threads has a block");
        };
        let mut outside = captured_values(body, grid.outer);
        let mut extents: Vec<Value> = body.operands(op).collect();
        for &extent in &extents {
            if body.as_const(extent).is_none() && !outside.contains(&extent) {
                outside.push(extent);
            }
        }
        extents.extend(body.operands(grid.block));
        let thread = self.thread_function(body, &grid, &outside, &extents);
        let b = &mut Builder::new(self.unit, body);
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        let block = block_type(b.unit, b.body, &outside);
        let context = entry_alloca(b, block);
        store_fields(b, block, context, &outside);
        let long = b.unit.types.int(64);
        let sizes = b.unit.types.array(long, extents.len() as u64);
        let sizes = entry_alloca(b, sizes);
        for (index, &extent) in extents.iter().enumerate() {
            let extent = to_i64(b, extent);
            let index = b.i64(index as i64);
            let at = b.addr(long, sizes, index);
            b.store(extent, at);
        }
        let mut bytes = b.i64(0);
        for &(alloca, ty) in &grid.shared {
            let count = b.body.operand(alloca, 0);
            let own = whole_lines(b, ty, count);
            bytes = b.add(bytes, own);
        }
        let (thread, run) = (b.func(thread), Entry::Turns.declare(b.unit));
        b.call(run, &[sizes, bytes, thread, context]);
        b.body.erase(op);
    }

    fn thread_function(
        &mut self,
        source: &Body,
        grid: &CooperativeGrid,
        outside: &[Value],
        extents: &[Value],
    ) -> FuncId {
        let ptr = self.unit.types.ptr();
        let block = block_type(self.unit, source, outside);
        self.outline("turns", None, &[ptr, ptr, ptr], |b| {
            let given = b.body.params().to_vec();
            let values = load_fields(b, block, given[2]);
            let mut map = ValueMap::zip(outside, &values);
            let long = b.unit.types.int(64);
            let params = [grid.outer, grid.inner].map(|r| source.region_params(r).to_vec());
            for (level, params) in params.iter().enumerate() {
                let (ranks, sizes) = params.split_at(DIMS);
                for (dim, &rank) in ranks.iter().enumerate() {
                    let index = b.i64((level * DIMS + dim) as i64);
                    let at = b.addr(long, given[0], index);
                    let value = b.load(long, at);
                    let value = to_index_type(b, value, source.ty(rank));
                    map.set(rank, value);
                }
                for (dim, &size) in sizes.iter().enumerate() {
                    let value = copied_value(b, source, &map, extents[level * DIMS + dim]);
                    map.set(size, value);
                }
            }
            let mut at = b.i64(0);
            for &(alloca, ty) in &grid.shared {
                let memory = b.byte_addr(given[1], at);
                map.set(source.result(alloca), memory);
                let count = copied_value(b, source, &map, source.operand(alloca, 0));
                let own = whole_lines(b, ty, count);
                at = b.add(at, own);
            }
            for region in [grid.outer, grid.inner] {
                let own = |op: &Op| {
                    let end = source.kind(*op).is_terminator();
                    !end && *op != grid.block && shared_type(source, *op).is_none()
                };
                for op in source.ops_in(region).filter(own) {
                    clone_op(source, op, b, &mut map);
                }
            }
            let end = source.last(grid.inner).map(|end| source.kind(end));
            if let Some(OpKind::Unreachable) = end {
                b.op(OpKind::Unreachable, &[], &[], 0);
            } else {
                b.return_(None);
            }
            lower_barriers(b);
        })
    }
}

/// Emits the size of `count` values in bytes, rounded up to whole cache lines.
fn whole_lines(b: &mut Builder<'_>, ty: TypeId, count: Value) -> Value {
    let size = b.unit.layout.size_bytes(b.unit, ty);
    let size = b.i64(size as i64);
    let count = to_i64(b, count);
    let bytes = b.mul(count, size);
    let (less, mask) = (b.i64(LINE_BYTES as i64 - 1), b.i64(-(LINE_BYTES as i64)));
    let most = b.add(bytes, less);
    b.binary(BinaryOp::And, most, mask)
}

/// Lowers the barriers of a thread's code.
fn lower_barriers(b: &mut Builder<'_>) {
    let is_barrier = |op: &Op| matches!(b.body.kind(*op), OpKind::Barrier(_));
    let barriers: Vec<Op> = b.body.walk(b.body.root()).filter(is_barrier).collect();
    let meet = Entry::TurnMeet.declare(b.unit);
    for op in barriers {
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        let of_warp = matches!(b.body.kind(op), OpKind::Barrier(BarrierScope::Warp));
        let of_warp = b.bool(of_warp);
        b.call(meet, &[of_warp]);
        b.body.erase(op);
    }
}
