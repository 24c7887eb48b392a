//! Atomic float additions under ThreadSanitizer.
//!
//! ThreadSanitizer instruments every access except an atomic update of a float, and misses races with plain
//! accesses. In instrumented functions the updates become compare-exchange loops, which ThreadSanitizer does
//! instrument.

use gradus_ir::{
    Access, Atomicity, BinaryOp, Body, Builder, CastOp, FloatKind, FuncId, Op, OpKind, RmwOp, Type,
    TypeId, Unit,
};

/// Returns true if ThreadSanitizer instruments the function, or the function from which `func` is derived.
pub(crate) fn is_tsan_instrumented(unit: &Unit, func: FuncId) -> bool {
    unit.origin_has_attribute(func, "sanitize_thread")
}

/// Replaces atomic float additions of a body by compare-exchange loops.
pub(crate) fn float_sums_to_cmpxchg(unit: &mut Unit, body: &mut Body) {
    for op in body.walk(body.root()).collect::<Vec<Op>>() {
        let OpKind::AtomicRmw(sum @ (RmwOp::FAdd | RmwOp::FSub), access) = body.kind(op).clone()
        else {
            continue;
        };
        let sum = match sum {
            RmwOp::FAdd => BinaryOp::FAdd,
            _ => BinaryOp::FSub,
        };
        let bits = match unit.types.get(body.ty(body.result(op))) {
            Type::Float(FloatKind::F32) => 32,
            Type::Float(FloatKind::F64) => 64,
            _ => continue,
        };
        let bits = unit.types.intern(Type::Int(bits));
        emit_cmpxchg_loop(unit, body, op, sum, access, bits);
    }
}

fn emit_cmpxchg_loop(
    unit: &mut Unit,
    body: &mut Body,
    op: Op,
    sum: BinaryOp,
    access: Access,
    bits: TypeId,
) {
    let (ptr, value) = (body.operand(op, 0), body.operand(op, 1));
    let (float, loc, meta) = (body.ty(value), body.ops[op].loc, body.ops[op].meta);
    let bit = unit.types.intern(Type::Int(1));
    let pair = unit.types.intern(Type::Struct {
        name: None,
        fields: vec![bits, bit],
        packed: false,
    });
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(op);
    b.loc = loc;
    // A wrong initial guess costs one iteration.
    let guess = b.zero(bits);
    let (lp, region) = b.loop_(&[guess], &[float]);
    let old = b.body.region_params(region)[0];
    b.set_insertion_end(region);
    let before = b.cast(CastOp::BitCast, old, float);
    let after = b.binary(sum, before, value);
    let after = b.cast(CastOp::BitCast, after, bits);
    let kind = OpKind::CmpXchg {
        failure: Atomicity::Monotonic,
        access,
        weak: false,
    };
    let found = b.op(kind, &[ptr, old, after], &[pair], 0);
    b.set_meta(found, meta);
    let found = b.body.result(found);
    let (seen, done) = (b.extract(found, &[0]), b.extract(found, &[1]));
    let yes = b.bool(true);
    let again = b.binary(BinaryOp::Xor, done, yes);
    b.repeat(again, &[seen], &[before]);
    let (result, before) = (body.result(op), body.result(lp));
    body.replace_uses(result, before);
    body.erase(op);
}
