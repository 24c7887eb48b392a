//! Floating-point numbers handled as integers become what is meant: signs set, cleared and copied by
//! masks are `fneg`, `fabs`, `copysign`; an integer loaded or stored only for its floating-point bits
//! is loaded or stored as such; the bits of an element are those of a vector's number.

use crate::Facts;
use crate::literals::integer;
use crate::masks;
use gradus_edit::sweep_from;
use gradus_ir::{
    AttrSet, BinaryOp, Body, Builder, CastOp, FloatKind, Op, OpKind, Type, TypeId, Unit, Value,
};

/// Rewrites all such idioms of a body.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &Facts) -> bool {
    let ops: Vec<Op> = body.walk(body.root()).collect();
    let mut changed = false;
    for op in ops {
        if body.parent(op).is_none() {
            continue;
        }
        changed |= match body.kind(op) {
            OpKind::Cast(CastOp::BitCast) => bits_to_float(unit, body, op),
            OpKind::ExtractElement => element_as_float(unit, body, op),
            OpKind::Load(_) => load_as_float(unit, body, op),
            OpKind::Store(_) => store_as_float(unit, body, op),
            _ => false,
        };
    }
    changed
}

/// The type `float` or `double` and its width, for scalars.
fn plain_float(unit: &Unit, ty: TypeId) -> Option<u32> {
    match unit.types.get(ty) {
        Type::Float(kind @ (FloatKind::F32 | FloatKind::F64)) => Some(kind.bits()),
        _ => None,
    }
}

/// `bitcast (mask of bitcast x)` as a function of x.
fn bits_to_float(unit: &mut Unit, body: &mut Body, op: Op) -> bool {
    let result = body.result(op);
    let ty = body.ty(result);
    let loc = body.ops[op].loc;
    let scalar = plain_float(unit, ty);
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.at_op(op);
    let source = b.body.operand(op, 0);
    let new = match scalar {
        Some(bits) => of_bits(&mut b, source, ty, bits),
        None => masks::of_bits(&mut b, source, ty),
    };
    let Some(new) = new else {
        return false;
    };
    body.replace_uses(result, new);
    sweep_from(unit, body, [result]);
    true
}

/// The floating-point number of which an integer is the bits, by ops on numbers.
fn of_bits(b: &mut Builder, value: Value, ty: TypeId, bits: u32) -> Option<Value> {
    use BinaryOp::{And, Or, Xor};
    let sign = 1u128 << (bits - 1);
    let op = b.body.def_op(value)?;
    let OpKind::Binary(binary @ (And | Or | Xor)) = *b.body.kind(op) else {
        return None;
    };
    let (x, y) = (b.body.operand(op, 0), b.body.operand(op, 1));
    let Some((mask, _)) = integer(b.unit, b.body, y) else {
        return copied_sign(b, binary, (x, y), ty, sign);
    };
    let x = from_float(b, x, ty)?;
    match binary {
        And if mask == sign - 1 => Some(math(b, "fabs", ty, &[x])),
        Xor if mask == sign => Some(b.fneg(x)),
        Or if mask == sign => {
            let size = math(b, "fabs", ty, &[x]);
            Some(b.fneg(size))
        }
        _ => None,
    }
}

/// `(x & ~sign) | (y & sign)`.
fn copied_sign(
    b: &mut Builder,
    binary: BinaryOp,
    (x, y): (Value, Value),
    ty: TypeId,
    sign: u128,
) -> Option<Value> {
    if binary != BinaryOp::Or {
        return None;
    }
    let (p, q) = (masked(b, x)?, masked(b, y)?);
    let (size, from) = match (p.1, q.1) {
        (m, n) if m == sign - 1 && n == sign => (p.0, q.0),
        (n, m) if m == sign - 1 && n == sign => (q.0, p.0),
        _ => return None,
    };
    let (size, from) = (from_float(b, size, ty)?, from_float(b, from, ty)?);
    Some(math(b, "copysign", ty, &[size, from]))
}

fn masked(b: &Builder, value: Value) -> Option<(Value, u128)> {
    let op = b.body.def_op(value)?;
    if *b.body.kind(op) != OpKind::Binary(BinaryOp::And) {
        return None;
    }
    let mask = integer(b.unit, b.body, b.body.operand(op, 1))?.0;
    Some((b.body.operand(op, 0), mask))
}

/// The number of type `ty` whose bits an integer is.
fn from_float(b: &Builder, value: Value, ty: TypeId) -> Option<Value> {
    let op = b.body.def_op(value)?;
    let inner = b.body.operands(op).next()?;
    (*b.body.kind(op) == OpKind::Cast(CastOp::BitCast) && b.body.ty(inner) == ty).then_some(inner)
}

/// A call of one of LLVM's math functions on numbers of type `ty`.
fn math(b: &mut Builder, name: &str, ty: TypeId, args: &[Value]) -> Value {
    let suffix = if plain_float(b.unit, ty) == Some(32) {
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

/// An element of a vector of numbers that is taken for a vector of integers of their size: the bits of the
/// number that lies there. Optimisers exchange the two to spare a cast.
fn element_as_float(unit: &mut Unit, body: &mut Body, op: Op) -> bool {
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
    if count != own || plain_float(unit, number).is_none() {
        return false;
    }
    let (result, loc) = (body.result(op), body.ops[op].loc);
    let bits = body.ty(result);
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.at_op(op);
    let element = b.value(OpKind::ExtractElement, &[numbers, index], number);
    let new = b.cast(CastOp::BitCast, element, bits);
    body.replace_uses(result, new);
    sweep_from(unit, body, [result]);
    true
}

/// An integer load of which only the bits as a number are used.
fn load_as_float(unit: &mut Unit, body: &mut Body, op: Op) -> bool {
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
    if !same || plain_float(unit, ty).is_none() {
        return false;
    }
    let ptr = body.operand(op, 0);
    let (loc, meta) = (body.ops[op].loc, body.ops[op].meta);
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.at_op(op);
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

/// The bits of a number stored as an integer.
fn store_as_float(unit: &Unit, body: &mut Body, op: Op) -> bool {
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
    if plain_float(unit, body.ty(number)).is_none() {
        return false;
    }
    body.set_operand(op, 0, number);
    sweep_from(unit, body, [bits]);
    true
}

fn is_scalar_integer(unit: &Unit, ty: TypeId) -> bool {
    matches!(unit.types.get(ty), Type::Int(_))
}
