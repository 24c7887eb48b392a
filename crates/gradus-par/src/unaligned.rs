//! Atomic sums at addresses that need not be aligned: members of packed structures.
//!
//! No instruction adds at once across the border of a cache line. Whether an address is aligned is asked at run time;
//! where it is not, the sum is taken under a lock that all such sums of the program share. An address is one or the
//! other for all that add there, as they add numbers of one type.

use crate::abi::{self, Entry};
use gradus_ir::{BinaryOp, Body, Builder, CastOp, IntPredicate, Op, OpKind, RmwOp, Unit};

/// The lock's name, among those of critical regions.
const LOCK: &str = "gradus.unaligned";

/// Has the sums of a body that may not be aligned ask.
pub(crate) fn lower(unit: &mut Unit, body: &mut Body) {
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
            ask(unit, body, op, bytes);
        }
    }
}

fn ask(unit: &mut Unit, body: &mut Body, op: Op, bytes: u64) {
    let mut b = Builder::new(unit, body);
    b.at_op(op);
    b.loc = b.body.ops[op].loc;
    let (place, value) = (b.body.operand(op, 0), b.body.operand(op, 1));
    let OpKind::AtomicRmw(sum, access) = *b.body.kind(op) else {
        unreachable!("only atomic updates ask for their alignment");
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
    b.at_end(yes);
    add(&mut b, bytes as u32);
    b.yield_(&[]);
    b.at_end(no);
    let lock = abi::lock(&mut b, LOCK);
    let (take, give) = (Entry::Lock.declare(b.unit), Entry::Unlock.declare(b.unit));
    b.call(take, &[lock]);
    let alone = add(&mut b, access.align_bytes);
    b.call(give, &[lock]);
    b.yield_(&[]);
    gradus_edit::make_plain(&mut b, alone);
    b.body.erase(op);
}
