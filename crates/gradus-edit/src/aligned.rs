//! `posix_memalign`, which gives its block through a pointer, as `aligned_alloc`, which returns it.
//!
//! A derivative gives a block its shadow where a value stands for it. Rust's allocator and Eigen's ask for
//! aligned memory in this way.

use gradus_ir::known::{Known, MemoryFn};
use gradus_ir::{AttrSet, Body, Builder, FuncId, IntPredicate, Op, OpKind, Unit};

/// What `posix_memalign` returns where there is no memory (POSIX; Linux's number).
const ENOMEM: i128 = 12;

/// Rewrites calls of `posix_memalign` with a constant alignment that it accepts; gives their number. With
/// others it fails where `aligned_alloc` may not: they stay.
pub fn return_aligned(unit: &mut Unit, body: &mut Body) -> usize {
    let asks = |op: &Op| is_aligned_request(unit, body, *op);
    let calls: Vec<Op> = body.walk(body.root()).filter(asks).collect();
    if calls.is_empty() {
        return 0;
    }
    let Some(allocate) = aligned_alloc(unit) else {
        return 0;
    };
    for &call in &calls {
        rewrite(unit, body, call, allocate);
    }
    calls.len()
}

fn is_aligned_request(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = unit.callee(body, op).and_then(|func| unit.known(func));
    if known != Some(Known::Memory(MemoryFn::PosixMemalign))
        || !matches!(body.kind(op), OpKind::Call(_))
    {
        return false;
    }
    let alignment = unit.call_args(body, op).get(1).copied();
    let alignment = alignment.and_then(|value| body.as_int(unit, value));
    alignment.is_some_and(|bytes| bytes > 0 && bytes % 8 == 0 && bytes & (bytes - 1) == 0)
}

/// The C library's function; `None` where the program has another one of that name.
pub fn aligned_alloc(unit: &mut Unit) -> Option<FuncId> {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    let ty = unit.types.func(ptr, vec![long, long]);
    let func = unit.declare("aligned_alloc", ty, AttrSet::default());
    let known = unit.known(func) == Some(Known::Memory(MemoryFn::AlignedAlloc));
    (known && unit.functions[func].ty == ty).then_some(func)
}

fn rewrite(unit: &mut Unit, body: &mut Body, call: Op, allocate: FuncId) {
    let args = unit.call_args(body, call);
    let (place, result) = (args[0], body.result(call));
    let (ptr, code) = (unit.types.ptr(), body.ty(result));
    let loc = body.ops[call].loc;
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.at_op(call);
    let block = b.call(allocate, &args[1..3]);
    let block = b.body.result(block);
    let null = b.zero(ptr);
    let failed = b.icmp(IntPredicate::Eq, block, null);
    let (_, yes, no) = b.if_(failed, &[]);
    let outside = b.at_end(yes);
    b.yield_(&[]);
    b.at_end(no);
    b.store(block, place);
    b.yield_(&[]);
    b.restore(outside);
    let (none, done) = (b.int(code, ENOMEM), b.int(code, 0));
    let told = b.select(failed, none, done);
    body.replace_uses(result, told);
    body.erase(call);
}
