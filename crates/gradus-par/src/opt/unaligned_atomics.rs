//! Unaligned atomic float additions: members of packed structs.
//!
//! No instruction adds atomically across a cache line boundary. A run-time test checks the alignment; a
//! misaligned addition runs under a lock shared by all such additions of the program. All additions at one
//! address agree on the test, because they have one type.

use crate::emit::abi;
use crate::emit::abi::Entry;
use gradus_ir::{BinaryOp, Body, Builder, CastOp, IntPredicate, Op, OpKind, RmwOp, Unit};

/// The name of the lock among critical regions.
const LOCK: &str = "gradus.unaligned";

/// Adds the alignment test to possibly misaligned atomic additions of a body.
pub(crate) fn split_by_alignment(unit: &mut Unit, body: &mut Body) {
    let sums: Vec<Op> = body
        .walk(body.root())
        .filter(|op| matches!(body.kind(*op), OpKind::AtomicRmw(RmwOp::FAdd, _)))
        .collect();
    for op in sums {
        let OpKind::AtomicRmw(_, access) = *body.kind(op) else {
            continue;
        };
        let bytes = unit.layout.store_bytes(unit, body.ty(body.result(op)));
        if u64::from(access.align_bytes) < bytes && !body.has_uses(body.result(op)) {
            add_alignment_test(unit, body, op, bytes);
        }
    }
}

fn add_alignment_test(unit: &mut Unit, body: &mut Body, op: Op, bytes: u64) {
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(op);
    b.loc = b.body.ops[op].loc;
    let (place, value) = (b.body.operand(op, 0), b.body.operand(op, 1));
    let OpKind::AtomicRmw(sum, access) = *b.body.kind(op) else {
        unreachable!("only atomic updates get an alignment test");
    };
    let (ty, flags, meta) = (b.body.ty(value), b.body.ops[op].flags, b.body.ops[op].meta);
    let long = b.unit.types.int(64);
    let address = b.cast(CastOp::PtrToInt, place, long);
    let low = b.int(long, i128::from(bytes - 1));
    let rest = b.binary(BinaryOp::And, address, low);
    let zero = b.i64(0);
    let aligned = b.icmp(IntPredicate::Eq, rest, zero);
    let (_, yes, no) = b.if_(aligned, &[]);
    let add = |b: &mut Builder<'_>, align_bytes| {
        let mut access = access;
        access.align_bytes = align_bytes;
        let made = b.op(OpKind::AtomicRmw(sum, access), &[place, value], &[ty], 0);
        b.body.ops[made].flags = flags;
        b.set_meta(made, meta);
        made
    };
    b.set_insertion_end(yes);
    add(&mut b, bytes as u32);
    b.yield_(&[]);
    b.set_insertion_end(no);
    let lock = abi::lock_address(&mut b, LOCK);
    let (take, give) = (Entry::Lock.declare(b.unit), Entry::Unlock.declare(b.unit));
    b.call(take, &[lock]);
    let alone = add(&mut b, access.align_bytes);
    b.call(give, &[lock]);
    b.yield_(&[]);
    gradus_edit::atomic_to_plain(&mut b, alone);
    b.body.erase(op);
}
