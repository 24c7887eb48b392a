//! Private memory of an iteration: moves slots to the heap before differentiation, and blocks to the stack
//! afterwards.
//!
//! A slot of a parallel iteration is in the frame of the executing function. In the serial projection all
//! iterations have one frame and would share the slot. A heap block allocated and freed in the iteration
//! remains private there, too: differentiation saves the block per iteration, and its shadow belongs to the
//! mirrored iteration. Afterwards, blocks that do not outlive the iteration return to the stack.
//!
//! Only loops with enough work per iteration for an allocation qualify. First, loops over a kernel's blocks,
//! flagged [`Flags::ALLOWS_EQUAL_WRITES`] because iterations may share written memory. Second, loops with inner loops, or
//! with calls of functions that contain loops, calls or many ops.

use gradus_ir::externals::{DERIVATIVE_BLOCK_NAME, ExternalFn, MemoryFn};
use gradus_ir::{AllocaInfo, AllocaStorage, Body, Builder, Flags, Op, OpKind, Unit, Value};

/// The alignment of stack blocks: vectors lie in whole cache lines.
const LINE_BYTES: u32 = 64;
/// The maximum block size on the stack, in kernels (`STACK_BYTES_MAX`) and elsewhere (`SMALL_BYTES_MAX`).
/// Longer blocks stay on the heap.
const STACK_BYTES_MAX: i64 = 1 << 20;
const SMALL_BYTES_MAX: i64 = 1 << 14;

/// Returns true if the loop's iterations are blocks of a kernel.
fn is_block_loop(body: &Body, op: Op) -> bool {
    body.ops[op].flags.has(Flags::ALLOWS_EQUAL_WRITES)
}

/// The minimum number of ops in a function that justifies an allocation.
const MANY_OPS: usize = 50;

/// Returns true if an iteration has enough work for an allocation.
fn is_worth_allocation(unit: &Unit, body: &Body, op: Op) -> bool {
    let is_loop = |body: &Body, op: Op| body.kind(op).is_loop();
    let is_call = |body: &Body, op: Op| {
        let callee = unit.callee(body, op);
        body.kind(op).call_info().is_some() && callee.is_none_or(|f| unit.known(f).is_none())
    };
    let is_long = |op: Op| {
        let callee = unit.callee(body, op).map(|func| &unit.functions[func]);
        let code = callee.and_then(|function| function.body.as_deref());
        code.is_none_or(|code| {
            let mut ops = code.walk(code.root());
            ops.any(|op| is_loop(code, op) || is_call(code, op))
                || code.walk(code.root()).count() >= MANY_OPS
        })
    };
    let is_work = |op: Op| is_loop(body, op) || is_call(body, op) && is_long(op);
    is_block_loop(body, op) || body.walk(body.op_regions(op)[0]).any(is_work)
}

/// Moves all slots of a parallel loop's iterations to heap blocks, if every slot can move.
pub(crate) fn slots_to_heap(unit: &mut Unit, body: &mut Body, op: Op) {
    let region = body.op_regions(op)[0];
    let slots: Vec<Op> = body
        .walk(region)
        .filter(|op| matches!(body.kind(*op), OpKind::Alloca(_)))
        .collect();
    let end = body.yield_of(region);
    let first = body.ops_in(region).find(|op| !slots.contains(op));
    let (Some(end), Some(first)) = (end, first) else {
        // Not an error: the iteration does not reach its end, or is empty.
        return;
    };
    let on_heap = |slot: &Op| {
        body.enclosing_strand(*slot) == region && slot_bytes(unit, body, *slot).is_some()
    };
    if !is_worth_allocation(unit, body, op) || !slots.iter().all(on_heap) {
        return;
    }
    let Some(allocate) = gradus_edit::declare_aligned_alloc(unit) else {
        // Not an error: the program declares an incompatible `aligned_alloc`, and the slots stay on the stack.
        return;
    };
    let free = gradus_edit::declare_free(unit);
    for slot in slots {
        let Some((align_bytes, bytes)) = slot_bytes(unit, body, slot) else {
            continue;
        };
        let mut b = Builder::new(unit, body);
        b.loc = b.body.ops[slot].loc;
        b.set_insertion_before(first);
        let args = [b.i64(align_bytes), b.i64(bytes)];
        let call = b.call(allocate, &args);
        b.body.ops[call].name = Some(DERIVATIVE_BLOCK_NAME.into());
        let (block, old) = (b.body.result(call), b.body.result(slot));
        b.set_insertion_before(end);
        b.call(free, &[block]);
        b.body.replace_uses(old, block);
        b.body.erase(slot);
    }
}

/// Returns alignment and size in bytes of a private slot of known size. The size is a multiple of the
/// alignment, as `aligned_alloc` requires.
fn slot_bytes(unit: &Unit, body: &Body, op: Op) -> Option<(i64, i64)> {
    let OpKind::Alloca(info) = body.kind(op) else {
        return None;
    };
    let own = info.storage == AllocaStorage::Private && !info.inalloca;
    let count = body.as_int(unit, body.operand(op, 0)).filter(|_| own)?;
    let one = i64::try_from(unit.layout.size_bytes(unit, info.ty)).ok()?;
    let align_bytes = i64::from(info.align_bytes.max(LINE_BYTES));
    let bytes = count.checked_mul(one)?.checked_add(align_bytes - 1)?;
    Some((align_bytes, bytes & -align_bytes))
}

/// Moves heap blocks that an independent iteration allocates, uses and frees to the stack.
pub(crate) fn blocks_to_stack(unit: &mut Unit, body: &mut Body) {
    let own = |op: &Op| is_block_loop(body, *op) || body.ops[*op].flags.has(Flags::INDEPENDENT);
    let loops: Vec<Op> = body
        .walk(body.root())
        .filter(|op| matches!(body.kind(*op), OpKind::For { .. }) && own(op))
        .collect();
    for op in loops {
        let region = body.op_regions(op)[0];
        let most_bytes = match is_block_loop(body, op) {
            true => STACK_BYTES_MAX,
            false => SMALL_BYTES_MAX,
        };
        let found = body
            .ops_in(region)
            .filter_map(|call| private_block(unit, body, call))
            .filter(|block| block.bytes <= most_bytes);
        let blocks: Vec<HeapBlock> = found.collect();
        for block in blocks {
            put_on_stack(unit, body, &block);
        }
    }
}

/// A heap block that moves to the stack.
struct HeapBlock {
    call: Op,
    free: Op,
    align_bytes: u32,
    bytes: i64,
    zeroed: bool,
}

/// Returns the block of known size allocated by `call`, if freed in the same region and used by accesses only.
fn private_block(unit: &Unit, body: &Body, call: Op) -> Option<HeapBlock> {
    let args = || unit.call_args(body, call);
    let known = |arg: usize| body.as_int(unit, args()[arg]);
    let (align_bytes, bytes, zeroed) = match memory_function(unit, body, call)? {
        MemoryFn::Malloc => (LINE_BYTES, known(0)?, false),
        MemoryFn::AlignedAlloc => (u32::try_from(known(0)?).ok()?, known(1)?, false),
        MemoryFn::Calloc => (LINE_BYTES, known(0)?.checked_mul(known(1)?)?, true),
        _ => return None,
    };
    if bytes < 0 {
        return None;
    }
    let start = body.result(call);
    let (mut work, mut frees) = (vec![start], Vec::new());
    while let Some(address) = work.pop() {
        for at in body.uses(address) {
            match body.kind(at.op) {
                OpKind::Addr { .. } if at.index == 0 => work.push(body.result(at.op)),
                OpKind::Load(_) | OpKind::ICmp(_) => {}
                OpKind::Store(_) if at.index == 1 => {}
                OpKind::AtomicRmw(..) if at.index == 0 => {}
                OpKind::Call(_) if is_free(unit, body, at.op) && address == start => {
                    frees.push(at.op);
                }
                OpKind::Call(_) if only_accesses(unit, body, at.op) => {}
                _ => return None,
            }
        }
    }
    let [free] = frees[..] else { return None };
    (body.parent(free) == body.parent(call)).then_some(HeapBlock {
        call,
        free,
        align_bytes: align_bytes.max(LINE_BYTES),
        bytes,
        zeroed,
    })
}

fn put_on_stack(unit: &mut Unit, body: &mut Body, block: &HeapBlock) {
    let memset = block.zeroed.then(|| gradus_edit::declare_memset(unit));
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[block.call].loc;
    b.set_insertion_before(block.call);
    let (byte, ptr) = (b.unit.types.int(8), b.unit.types.ptr());
    let info = AllocaInfo {
        ty: b.unit.types.array(byte, block.bytes as u64),
        align_bytes: block.align_bytes,
        storage: AllocaStorage::Private,
        inalloca: false,
    };
    let one = b.i64(1);
    let slot: Value = b.value(OpKind::Alloca(info), &[one], ptr);
    if let Some(memset) = memset {
        let (zero, bytes, no) = (b.zero(byte), b.i64(block.bytes), b.bool(false));
        b.call(memset, &[slot, zero, bytes, no]);
    }
    let old = b.body.result(block.call);
    b.body.replace_uses(old, slot);
    b.body.erase(block.free);
    b.body.erase(block.call);
}

fn memory_function(unit: &Unit, body: &Body, op: Op) -> Option<MemoryFn> {
    let callee = unit.callee(body, op)?;
    match (body.kind(op), unit.known(callee)) {
        (OpKind::Call(_), Some(ExternalFn::Memory(function))) => Some(function),
        _ => None,
    }
}

fn is_free(unit: &Unit, body: &Body, op: Op) -> bool {
    memory_function(unit, body, op) == Some(MemoryFn::Free)
}

/// Returns true if the call only reads and writes memory at its addresses, or is a lifetime marker.
fn only_accesses(unit: &Unit, body: &Body, op: Op) -> bool {
    unit.is_lifetime_marker(body, op)
        || matches!(
            memory_function(unit, body, op),
            Some(
                MemoryFn::MemcpyIntrinsic | MemoryFn::MemmoveIntrinsic | MemoryFn::MemsetIntrinsic
            )
        )
}
