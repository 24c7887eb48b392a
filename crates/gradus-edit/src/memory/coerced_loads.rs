//! Turns a float that becomes an address, or an address that becomes a float, into a load of its own.
//!
//! LLVM's optimiser replaces a load by an earlier load of the same memory in another type, and casts the value: a word
//! of a union, first read as a `double`, becomes an address by a cast. The shadow of the address lies in shadow memory,
//! not in the number. A second load of the same memory reads both.

use gradus_ir::{Body, Builder, CastOp, Op, OpKind, Unit, Value};

/// Replaces such casts by loads; returns the number of replaced casts.
pub fn casts_to_loads(unit: &mut Unit, body: &mut Body) -> usize {
    let casts = body.walk(body.root());
    let found: Vec<(Op, Op)> = casts
        .filter_map(|cast| Some((cast, coerced_load(unit, body, cast)?)))
        .collect();
    for &(cast, load) in &found {
        let result = body.result(cast);
        let (kind, ptr) = (body.kind(load).clone(), body.operand(load, 0));
        let (ty, loc) = (body.ty(result), body.ops[load].loc);
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(load);
        b.loc = loc;
        let value = b.value(kind, &[ptr], ty);
        body.replace_uses(result, value);
        body.erase(cast);
    }
    found.len()
}

/// Returns the load whose value a cast turns from a float into an address, or the other way round.
fn coerced_load(unit: &Unit, body: &Body, cast: Op) -> Option<Op> {
    let is_float = |value: Value| unit.types.float_kind(body.ty(value)).is_some();
    let outer = body.def_op(body.operands(cast).next()?)?;
    let inner = match (body.kind(cast), body.kind(outer)) {
        (OpKind::Cast(CastOp::IntToPtr), OpKind::Cast(CastOp::BitCast)) => body.operand(outer, 0),
        (OpKind::Cast(CastOp::BitCast), OpKind::Cast(CastOp::PtrToInt)) => body.operand(outer, 0),
        _ => return None,
    };
    let crosses = match body.kind(cast) {
        OpKind::Cast(CastOp::IntToPtr) => is_float(inner),
        _ => is_float(body.result(cast)),
    };
    let load = body.def_op(inner).filter(|_| crosses)?;
    matches!(body.kind(load), OpKind::Load(access) if access.is_plain()).then_some(load)
}
