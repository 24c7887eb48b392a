//! Rewrites integer operations on float bits into float operations.
//!
//! - Sign manipulation by masks becomes `fneg`, `fabs`, `copysign`, or the form of [`signs`].
//! - An integer load, select or store used only for float bits becomes a float load, select or store, also
//!   under a mask.
//! - The bits of a vector element are extracted from the float vector.

use crate::scalar::constants::{float_constant, integer_splat};
use crate::scalar::sign_masks;
use crate::scalar::signs;
use crate::scalar::signs::Loads;
use gradus_analysis::PassContext;
use gradus_edit::remove_dead_defs;
use gradus_ir::{
    AttrSet, BinaryOp, Body, Builder, CastOp, FloatKind, Op, OpKind, Type, TypeId, Unit, Value,
};

/// Rewrites all such idioms of a body.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    let ops: Vec<Op> = body.walk(body.root()).collect();
    let mut changed = false;
    for op in ops {
        if body.parent(op).is_none() {
            continue;
        }
        changed |= match body.kind(op) {
            OpKind::Cast(CastOp::BitCast) => rewrite_bitcast(unit, body, op),
            OpKind::ExtractElement => rewrite_extract_element(unit, body, op),
            OpKind::Select => rewrite_select(unit, body, op),
            OpKind::Load(_) => rewrite_load(unit, body, op),
            OpKind::Store(_) => {
                rewrite_store(unit, body, op) || rewrite_masked_store(unit, body, op)
            }
            _ => false,
        };
    }
    changed
}

/// Returns the bit width of `ty` if `ty` is the scalar type `float` or `double`.
fn scalar_float_bits(unit: &Unit, ty: TypeId) -> Option<u32> {
    match unit.types.get(ty) {
        Type::Float(kind @ (FloatKind::F32 | FloatKind::F64)) => Some(kind.bits()),
        _ => None,
    }
}

/// Rewrites `bitcast (mask of bitcast x)` to float operations on x.
fn rewrite_bitcast(unit: &mut Unit, body: &mut Body, op: Op) -> bool {
    let result = body.result(op);
    let ty = body.ty(result);
    let loc = body.ops[op].loc;
    let scalar = scalar_float_bits(unit, ty);
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.set_insertion_before(op);
    let source = b.body.operand(op, 0);
    let new = match scalar {
        Some(bits) => float_from_bits(&mut b, source, ty, bits),
        None => sign_masks::of_bits(&mut b, source, ty),
    };
    let Some(new) = new.or_else(|| signs::of_bits(&mut b, source, ty, Loads::AreNumbers)) else {
        return false;
    };
    body.replace_uses(result, new);
    remove_dead_defs(unit, body, [result]);
    true
}

/// Returns the float whose bits are `value`, by float operations.
fn float_from_bits(b: &mut Builder, value: Value, ty: TypeId, bits: u32) -> Option<Value> {
    use BinaryOp::{And, Or, Xor};
    let sign = 1u128 << (bits - 1);
    let op = b.body.def_op(value)?;
    let OpKind::Binary(binary @ (And | Or | Xor)) = *b.body.kind(op) else {
        return None;
    };
    let (x, y) = (b.body.operand(op, 0), b.body.operand(op, 1));
    let Some((mask, _)) = integer_splat(b.unit, b.body, y) else {
        return match_copysign(b, binary, (x, y), ty, sign);
    };
    let (absolute, negated) = match binary {
        And if mask == sign - 1 => (true, false),
        Xor if mask == sign => (false, true),
        Or if mask == sign => (true, true),
        _ => return None,
    };
    let mut number = float_source(b, x, ty)?;
    if absolute {
        number = call_math(b, "fabs", ty, &[number]);
    }
    Some(if negated { b.fneg(number) } else { number })
}

/// Matches `(x & ~sign) | (y & sign)`, which is `copysign`.
fn match_copysign(
    b: &mut Builder,
    binary: BinaryOp,
    (x, y): (Value, Value),
    ty: TypeId,
    sign: u128,
) -> Option<Value> {
    if binary != BinaryOp::Or {
        return None;
    }
    let (p, q) = (match_mask(b, x)?, match_mask(b, y)?);
    let (size, from) = match (p.1, q.1) {
        (m, n) if m == sign - 1 && n == sign => (p.0, q.0),
        (n, m) if m == sign - 1 && n == sign => (q.0, p.0),
        _ => return None,
    };
    let (size, from) = (float_source(b, size, ty)?, float_source(b, from, ty)?);
    Some(call_math(b, "copysign", ty, &[size, from]))
}

fn match_mask(b: &Builder, value: Value) -> Option<(Value, u128)> {
    let op = b.body.def_op(value)?;
    if *b.body.kind(op) != OpKind::Binary(BinaryOp::And) {
        return None;
    }
    let mask = integer_splat(b.unit, b.body, b.body.operand(op, 1))?.0;
    Some((b.body.operand(op, 0), mask))
}

/// Returns the float of type `ty` whose bits are `value`: the operand of a bitcast, or a bitcast of a load.
fn float_source(b: &mut Builder, value: Value, ty: TypeId) -> Option<Value> {
    let op = b.body.def_op(value)?;
    if matches!(b.body.kind(op), OpKind::Load(_)) {
        return Some(b.cast(CastOp::BitCast, value, ty));
    }
    let inner = b.body.operands(op).next()?;
    (*b.body.kind(op) == OpKind::Cast(CastOp::BitCast) && b.body.ty(inner) == ty).then_some(inner)
}

/// Emits a call of an LLVM math intrinsic on floats of type `ty`.
fn call_math(b: &mut Builder, name: &str, ty: TypeId, args: &[Value]) -> Value {
    let suffix = if scalar_float_bits(b.unit, ty) == Some(32) {
        "f32"
    } else {
        "f64"
    };
    let signature = b.unit.types.func(ty, vec![ty; args.len()]);
    let func = b.unit.declare(
        &format!("llvm.{name}.{suffix}"),
        signature,
        AttrSet::default(),
    );
    let call = b.call(func, args);
    b.body.result(call)
}

/// Rewrites the extraction of an element from a float vector bitcast to integers of equal width. The rewrite
/// extracts the float and casts its bits; LLVM's optimiser swaps both to save a cast.
fn rewrite_extract_element(unit: &mut Unit, body: &mut Body, op: Op) -> bool {
    let (vector, index) = (body.operand(op, 0), body.operand(op, 1));
    let Some(cast) = body.def_op(vector) else {
        return false;
    };
    if *body.kind(cast) != OpKind::Cast(CastOp::BitCast) {
        return false;
    }
    let numbers = body.operand(cast, 0);
    let lanes = |ty: TypeId| match *unit.types.get(ty) {
        Type::Vector { elem, len, .. } => Some((elem, len)),
        _ => None,
    };
    let (Some((number, count)), Some((_, own))) = (lanes(body.ty(numbers)), lanes(body.ty(vector)))
    else {
        return false;
    };
    if count != own || scalar_float_bits(unit, number).is_none() {
        return false;
    }
    let (result, loc) = (body.result(op), body.ops[op].loc);
    let bits = body.ty(result);
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.set_insertion_before(op);
    let element = b.value(OpKind::ExtractElement, &[numbers, index], number);
    let new = b.cast(CastOp::BitCast, element, bits);
    body.replace_uses(result, new);
    remove_dead_defs(unit, body, [result]);
    true
}

/// Rewrites a select of float bits to a bitcast of a float select. Each arm must be the bits of a float, a
/// constant, or a value that is bitcast to the float type elsewhere.
fn rewrite_select(unit: &mut Unit, body: &mut Body, op: Op) -> bool {
    let (condition, result) = (body.operand(op, 0), body.result(op));
    let arms = [body.operand(op, 1), body.operand(op, 2)];
    let bits = body.ty(result);
    if !is_scalar_integer(unit, bits) {
        return false;
    }
    let Some(ty) = arms
        .iter()
        .find_map(|arm| bitcast_source_type(unit, body, *arm))
    else {
        return false;
    };
    let known = |arm: Value| {
        bitcast_source_type(unit, body, arm) == Some(ty)
            || integer_splat(unit, body, arm).is_some()
            || body
                .uses(arm)
                .any(|used| bitcast_result_type(body, used.op) == Some(ty))
    };
    if !arms.into_iter().all(known) {
        return false;
    }
    let loc = body.ops[op].loc;
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.set_insertion_before(op);
    let [first, second] = arms.map(|arm| as_float(&mut b, arm, ty));
    let chosen = b.select(condition, first, second);
    let new = b.cast(CastOp::BitCast, chosen, bits);
    body.replace_uses(result, new);
    remove_dead_defs(unit, body, [result]);
    true
}

/// Returns the type of the float whose bits `value` holds by a bitcast.
fn bitcast_source_type(unit: &Unit, body: &Body, value: Value) -> Option<TypeId> {
    let cast = body.def_op(value)?;
    bitcast_result_type(body, cast)?;
    let number = body.ty(body.operand(cast, 0));
    scalar_float_bits(unit, number).map(|_| number)
}

/// Returns the result type if `op` is a bitcast.
fn bitcast_result_type(body: &Body, op: Op) -> Option<TypeId> {
    let is_cast = *body.kind(op) == OpKind::Cast(CastOp::BitCast);
    is_cast.then(|| body.ty(body.result(op)))
}

/// Returns the float of type `ty` with the given bits.
fn as_float(b: &mut Builder<'_>, bits: Value, ty: TypeId) -> Value {
    if bitcast_source_type(b.unit, b.body, bits).is_some()
        && let Some(cast) = b.body.def_op(bits)
    {
        return b.body.operand(cast, 0);
    }
    let constant = integer_splat(b.unit, b.body, bits).and_then(|(n, _)| float_constant(b, ty, n));
    constant.unwrap_or_else(|| b.cast(CastOp::BitCast, bits, ty))
}

/// Rewrites an integer load used only through bitcasts to a float load.
fn rewrite_load(unit: &mut Unit, body: &mut Body, op: Op) -> bool {
    let OpKind::Load(access) = *body.kind(op) else {
        return false;
    };
    let result = body.result(op);
    let uses: Vec<_> = body.uses(result).collect();
    let Some(first) = uses.first().map(|u| u.op) else {
        return false;
    };
    let is_bitcast = |o: Op| *body.kind(o) == OpKind::Cast(CastOp::BitCast);
    if !access.is_plain() || !is_bitcast(first) || !is_scalar_integer(unit, body.ty(result)) {
        return false;
    }
    let ty = body.ty(body.result(first));
    let same = uses
        .iter()
        .all(|u| is_bitcast(u.op) && body.ty(body.result(u.op)) == ty);
    if !same || scalar_float_bits(unit, ty).is_none() {
        return false;
    }
    let ptr = body.operand(op, 0);
    let (loc, meta) = (body.ops[op].loc, body.ops[op].meta);
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.set_insertion_before(op);
    let number = b.value(OpKind::Load(access), &[ptr], ty);
    if let Some(new) = b.body.def_op(number) {
        b.set_meta(new, meta);
    }
    for used in uses {
        let cast = body.result(used.op);
        body.replace_uses(cast, number);
        body.erase(used.op);
    }
    body.erase(op);
    true
}

/// Rewrites a store of float bits as an integer to a float store.
fn rewrite_store(unit: &Unit, body: &mut Body, op: Op) -> bool {
    let OpKind::Store(access) = *body.kind(op) else {
        return false;
    };
    let bits = body.operand(op, 0);
    let Some(cast) = body.def_op(bits) else {
        return false;
    };
    if !access.is_plain()
        || *body.kind(cast) != OpKind::Cast(CastOp::BitCast)
        || !is_scalar_integer(unit, body.ty(bits))
    {
        return false;
    }
    let number = body.operand(cast, 0);
    if scalar_float_bits(unit, body.ty(number)).is_none() {
        return false;
    }
    body.set_operand(op, 0, number);
    remove_dead_defs(unit, body, [bits]);
    true
}

/// Rewrites an integer load, mask and store to float operations. LLVM's optimiser leaves no cast between load
/// and store; accesses and address types of either location show that the memory holds floats.
fn rewrite_masked_store(unit: &mut Unit, body: &mut Body, op: Op) -> bool {
    let OpKind::Store(access) = *body.kind(op) else {
        return false;
    };
    let (bits, place) = (body.operand(op, 0), body.operand(op, 1));
    let Some(mask) = body.def_op(bits).filter(|_| access.is_plain()) else {
        return false;
    };
    let Some(number) = float_type_of_width(unit, body.ty(bits)) else {
        return false;
    };
    if !matches!(body.kind(mask), OpKind::Binary(_)) {
        return false;
    }
    let scalar = unit.types.scalar(number);
    let loaded = body.def_op(body.operand(mask, 0));
    if let Some(load) = loaded.filter(|op| matches!(body.kind(*op), OpKind::Load(_)))
        && !is_observed_as_float(unit, body, body.operand(load, 0), scalar)
        && !is_observed_as_float(unit, body, place, scalar)
    {
        return false;
    }
    let loads = match is_observed_as_float(unit, body, place, scalar) {
        true => Loads::AreNumbers,
        false => Loads::AreIntegers,
    };
    let (loc, width) = (body.ops[mask].loc, scalar_float_bits(unit, number));
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.set_insertion_before(op);
    let new = match width {
        Some(width) => float_from_bits(&mut b, bits, number, width),
        None => sign_masks::of_bits(&mut b, bits, number),
    };
    let Some(new) = new.or_else(|| signs::of_bits(&mut b, bits, number, loads)) else {
        return false;
    };
    body.set_operand(op, 0, new);
    remove_dead_defs(unit, body, [bits]);
    true
}

/// Returns the float type with the width of integer type `ty`.
fn float_type_of_width(unit: &mut Unit, ty: TypeId) -> Option<TypeId> {
    let kind = match unit.types.int_bits(ty)? {
        32 => FloatKind::F32,
        64 => FloatKind::F64,
        _ => return None,
    };
    let scalar = unit.types.float(kind);
    match *unit.types.get(ty) {
        Type::Vector {
            len,
            scalable: false,
            ..
        } => Some(unit.types.vector(scalar, len)),
        Type::Vector { .. } => None,
        _ => Some(scalar),
    }
}

/// Returns whether the memory at `place` is observed to hold floats of type `number`: by the element type of
/// its address, or by accesses or addresses based on `place`.
fn is_observed_as_float(unit: &Unit, body: &Body, place: Value, number: TypeId) -> bool {
    let counted = |op: Op| matches!(*body.kind(op), OpKind::Addr { source } if source == number);
    let mut at = place;
    while let Some(op) = body.def_op(at).filter(|op| is_address(body, *op)) {
        if counted(op) {
            return true;
        }
        at = body.operand(op, 0);
    }
    let accessed = |ty: TypeId| unit.types.scalar(ty) == number;
    body.uses(place).any(|used| match body.kind(used.op) {
        OpKind::Load(_) => accessed(body.ty(body.result(used.op))),
        OpKind::Store(_) => used.index == 1 && accessed(body.ty(body.operand(used.op, 0))),
        _ => used.index == 0 && counted(used.op),
    })
}

fn is_address(body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Addr { .. })
}

fn is_scalar_integer(unit: &Unit, ty: TypeId) -> bool {
    matches!(unit.types.get(ty), Type::Int(_))
}
