//! Rewrites `posix_memalign`, which stores the address of the allocation, to `declare_aligned_alloc`, which returns
//! the address.
//!
//! AD attaches a shadow to an allocation through the value that represents the allocation. Rust's allocator
//! and Eigen request aligned memory with `posix_memalign`.

use gradus_ir::externals::{ExternalFn, MemoryFn};
use gradus_ir::{AttrSet, Body, Builder, FuncId, IntPredicate, Op, OpKind, Unit};

/// Return code of `posix_memalign` if memory is exhausted (POSIX; Linux's number).
const ENOMEM: i128 = 12;

/// Rewrites calls of `posix_memalign` with a valid constant alignment; returns the number of rewritten calls.
/// Leaves other calls, because `posix_memalign` rejects alignments that `declare_aligned_alloc` may accept.
pub fn memalign_to_aligned_alloc(unit: &mut Unit, body: &mut Body) -> usize {
    let asks = |op: &Op| is_valid_memalign_call(unit, body, *op);
    let calls: Vec<Op> = body.walk(body.root()).filter(asks).collect();
    if calls.is_empty() {
        return 0;
    }
    let Some(allocate) = declare_aligned_alloc(unit) else {
        return 0;
    };
    for &call in &calls {
        rewrite_call(unit, body, call, allocate);
    }
    calls.len()
}

fn is_valid_memalign_call(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = unit.known_callee(body, op);
    if known != Some(ExternalFn::Memory(MemoryFn::PosixMemalign))
        || !matches!(body.kind(op), OpKind::Call(_))
    {
        return false;
    }
    let alignment = unit.call_args(body, op).get(1).copied();
    let alignment = alignment.and_then(|value| body.as_int(unit, value));
    alignment.is_some_and(|bytes| bytes > 0 && bytes % 8 == 0 && bytes & (bytes - 1) == 0)
}

/// Declares the C library's `declare_aligned_alloc`; `None` if the program defines a different function of equal
/// name.
pub fn declare_aligned_alloc(unit: &mut Unit) -> Option<FuncId> {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    let ty = unit.types.func(ptr, vec![long, long]);
    let func = unit.declare("aligned_alloc", ty, AttrSet::default());
    let known = unit.known(func) == Some(ExternalFn::Memory(MemoryFn::AlignedAlloc));
    (known && unit.functions[func].ty == ty).then_some(func)
}

fn rewrite_call(unit: &mut Unit, body: &mut Body, call: Op, allocate: FuncId) {
    let args = unit.call_args(body, call);
    let (place, result) = (args[0], body.result(call));
    let (ptr, code) = (unit.types.ptr(), body.ty(result));
    let loc = body.ops[call].loc;
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.set_insertion_before(call);
    let block = b.call(allocate, &args[1..3]);
    let block = b.body.result(block);
    let null = b.zero(ptr);
    let failed = b.icmp(IntPredicate::Eq, block, null);
    let (_, yes, no) = b.if_(failed, &[]);
    let outside = b.set_insertion_end(yes);
    b.yield_(&[]);
    b.set_insertion_end(no);
    b.store(block, place);
    b.yield_(&[]);
    b.restore_insertion_point(outside);
    let (none, done) = (b.int(code, ENOMEM), b.int(code, 0));
    let told = b.select(failed, none, done);
    body.replace_uses(result, told);
    body.erase(call);
}
