//! Turns atomic operations without concurrent accesses into plain operations.

use gradus_ir::{Access, Builder, Op, OpKind, RmwOp};

/// Replaces an atomic floating-point add or an exchange by a load and a store; leaves other ops unchanged.
pub fn atomic_to_plain(b: &mut Builder<'_>, op: Op) {
    let OpKind::AtomicRmw(kind @ (RmwOp::FAdd | RmwOp::Xchg), access) = *b.body.kind(op) else {
        // Not an error: the op is neither an atomic floating-point add nor an exchange.
        return;
    };
    let (at, given, old) = (
        b.body.operand(op, 0),
        b.body.operand(op, 1),
        b.body.result(op),
    );
    let ty = b.body.ty(old);
    b.set_insertion_before(op);
    b.loc = b.body.ops[op].loc;
    let meta = b.body.ops[op].meta;
    let plain = Access::plain(access.align_bytes);
    let before = b.op(OpKind::Load(plain), &[at], &[ty], 0);
    let value = b.body.result(before);
    let after = match kind {
        RmwOp::FAdd => b.fadd(value, given),
        _ => given,
    };
    let write = b.op(OpKind::Store(plain), &[after, at], &[], 0);
    for op in [before, write] {
        b.set_meta(op, meta);
    }
    b.body.replace_uses(old, value);
    b.body.erase(op);
}
