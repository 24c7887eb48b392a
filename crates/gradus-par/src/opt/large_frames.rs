//! Large stack frames: moves large allocations of a frame to scratch memory of the runtime.
//!
//! The slots of a kernel block's threads can take megabytes, and a parallel loop runs on any thread, including
//! the program's first. Large allocations made once per call become scratch memory, which each worker reuses
//! for later calls. Small allocations stay on the stack.

use crate::emit::abi::Entry;
use gradus_ir::{AllocaStorage, Body, Builder, Op, OpKind, Unit, Value};

/// An allocation of at least this size is large.
const LARGE_BYTES: i64 = 64 << 10;

/// Moves the large allocations of a body off the frame.
pub(crate) fn large_allocas_to_scratch(unit: &mut Unit, body: &mut Body) {
    let root = body.root();
    let large: Vec<(Op, i64)> = body
        .ops_in(root)
        .filter_map(|op| Some((op, frame_alloca_bytes(unit, body, op)?)))
        .filter(|(_, bytes)| *bytes >= LARGE_BYTES)
        .collect();
    if large.is_empty() {
        return;
    }
    let ends: Vec<Op> = body
        .walk(root)
        .filter(|op| matches!(body.kind(*op), OpKind::Return))
        .collect();
    let (take, give) = (
        Entry::Scratch.declare(unit),
        Entry::ScratchEnd.declare(unit),
    );
    for (op, bytes) in large {
        drop_lifetimes(unit, body, op);
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        let count = b.i64(bytes);
        let call = b.call(take, &[count]);
        let memory: Value = b.body.result(call);
        let old = b.body.result(op);
        b.body.replace_uses(old, memory);
        b.body.erase(op);
        for &end in &ends {
            b.set_insertion_before(end);
            b.call(give, &[memory, count]);
        }
    }
}

/// Removes the lifetime markers of `alloca`: only stack slots may have markers.
fn drop_lifetimes(unit: &Unit, body: &mut Body, alloca: Op) {
    let users: Vec<Op> = body.uses(body.result(alloca)).map(|at| at.op).collect();
    let markers = users
        .into_iter()
        .filter(|op| unit.is_lifetime_marker(body, *op));
    for marker in markers.collect::<Vec<Op>>() {
        body.erase(marker);
    }
}

/// Removes lifetime markers of slots that are in another function's frame after outlining.
pub(crate) fn drop_foreign_lifetimes(unit: &Unit, body: &mut Body) {
    let is_own = |value: Value| {
        let maker = body.def_op(value);
        maker.is_some_and(|op| matches!(body.kind(op), OpKind::Alloca(_)))
    };
    let calls = body.walk(body.root()).filter(|op| {
        let pointer = |op| unit.call_args(body, op).last().copied();
        unit.is_lifetime_marker(body, *op) && !pointer(*op).is_some_and(is_own)
    });
    for marker in calls.collect::<Vec<Op>>() {
        body.erase(marker);
    }
}

/// Returns the size in bytes of an allocation in the frame, if known.
fn frame_alloca_bytes(unit: &Unit, body: &Body, op: Op) -> Option<i64> {
    let OpKind::Alloca(info) = body.kind(op) else {
        return None;
    };
    // Scratch memory is aligned to a cache line.
    let fits = info.storage == AllocaStorage::Frame && info.align_bytes <= 64 && !info.inalloca;
    let count = body.as_int(unit, body.operand(op, 0)).filter(|_| fits)?;
    let one = i64::try_from(unit.layout.size_bytes(unit, info.ty)).ok()?;
    count.checked_mul(one)
}
