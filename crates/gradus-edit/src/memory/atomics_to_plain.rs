//! Turns atomic operations without concurrent accesses into plain operations.

use crate::facts::reduction_ops::combine;
use gradus_ir::{
    Access, Builder, IntPredicate, MetaId, Op, OpKind, ReduceOp, RmwOp, TypeId, Value,
};

/// Replaces an atomic update of a float, or an exchange, by a load and a store; leaves other ops unchanged.
pub fn atomic_to_plain(b: &mut Builder<'_>, op: Op) {
    let OpKind::AtomicRmw(kind, access) = *b.body.kind(op) else {
        // Not an error: the op is no atomic update.
        return;
    };
    let update: fn(&mut Builder<'_>, Value, Value) -> Value = match kind {
        RmwOp::Xchg => |_, _, given| given,
        RmwOp::FAdd => |b, old, given| b.fadd(old, given),
        RmwOp::FSub => |b, old, given| b.fsub(old, given),
        RmwOp::FMax => |b, old, given| combine(b, ReduceOp::FMax, old, given),
        RmwOp::FMin => |b, old, given| combine(b, ReduceOp::FMin, old, given),
        RmwOp::FMaximum => |b, old, given| combine(b, ReduceOp::FMaximum, old, given),
        RmwOp::FMinimum => |b, old, given| combine(b, ReduceOp::FMinimum, old, given),
        // Not an error: an update of an integer.
        _ => return,
    };
    let (at, given, old) = (
        b.body.operand(op, 0),
        b.body.operand(op, 1),
        b.body.result(op),
    );
    let ty = b.body.ty(old);
    let mut plain = PlainAccess::before(b, op, access);
    let value = plain.load(at, ty);
    let after = update(plain.b, value, given);
    plain.store(after, at);
    b.body.replace_uses(old, value);
    b.body.erase(op);
}

/// Replaces a compare-and-exchange by a load, a comparison and a conditional store; leaves other ops unchanged. The
/// exchange does not fail spuriously.
pub fn exchange_to_plain(b: &mut Builder<'_>, op: Op) {
    let OpKind::CmpXchg { access, .. } = *b.body.kind(op) else {
        // Not an error: the op is no compare-and-exchange.
        return;
    };
    let [at, expected, new] = [0, 1, 2].map(|index| b.body.operand(op, index));
    let result = b.body.result(op);
    let (pair, ty) = (b.body.ty(result), b.body.ty(expected));
    let mut plain = PlainAccess::before(b, op, access);
    let old = plain.load(at, ty);
    let is_equal = plain.b.icmp(IntPredicate::Eq, old, expected);
    let (_, then, otherwise) = plain.b.if_(is_equal, &[]);
    let place = plain.b.set_insertion_end(then);
    plain.store(new, at);
    plain.b.yield_(&[]);
    plain.b.set_insertion_end(otherwise);
    plain.b.yield_(&[]);
    plain.b.restore_insertion_point(place);
    let none = plain.b.poison(pair);
    let first = OpKind::InsertValue(Box::new([0]));
    let with_old = plain.b.value(first, &[none, old], pair);
    let second = OpKind::InsertValue(Box::new([1]));
    let both = plain.b.value(second, &[with_old, is_equal], pair);
    b.body.replace_uses(result, both);
    b.body.erase(op);
}

/// Emits plain accesses in place of an atomic op.
struct PlainAccess<'b, 'u> {
    b: &'b mut Builder<'u>,
    access: Access,
    meta: Option<MetaId>,
}

impl<'b, 'u> PlainAccess<'b, 'u> {
    fn before(b: &'b mut Builder<'u>, op: Op, access: Access) -> Self {
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        let meta = b.body.ops[op].meta;
        let access = Access::plain(access.align_bytes);
        PlainAccess { b, access, meta }
    }
    fn load(&mut self, at: Value, ty: TypeId) -> Value {
        let op = self.b.op(OpKind::Load(self.access), &[at], &[ty], 0);
        self.b.set_meta(op, self.meta);
        self.b.body.result(op)
    }
    fn store(&mut self, value: Value, at: Value) {
        let op = self.b.op(OpKind::Store(self.access), &[value, at], &[], 0);
        self.b.set_meta(op, self.meta);
    }
}
