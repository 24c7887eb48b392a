//! Rewrites per-lane bit masks of float vectors to float operations: signs are set and cleared, lanes kept or
//! zeroed.

use crate::scalar::constants::{integers, is_poison};
use gradus_ir::{AttrSet, BinaryOp, Builder, CastOp, FloatKind, OpKind, Type, TypeId, Value};

/// Effect of a mask on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Same,
    Negated,
    Absolute,
    NegatedAbsolute,
    Zero,
}

/// Returns the float vector of type `ty` whose bits are `value`, if `value` is a float vector under a
/// constant mask. `None` if the mask has an effect not listed in [`Lane`].
pub(crate) fn of_bits(b: &mut Builder, value: Value, ty: TypeId) -> Option<Value> {
    let (len, bits) = numbers(b, ty)?;
    let op = b.body.def_op(value)?;
    let OpKind::Binary(binary) = *b.body.kind(op) else {
        return None;
    };
    let (masked, mask) = (b.body.operand(op, 0), b.body.operand(op, 1));
    let masks = integers(b.unit, b.body, mask).filter(|masks| masks.len() == len)?;
    // A lane under a poison mask may have any value.
    let lane = |mask: &Option<u128>| mask.map_or(Some(Lane::Same), |m| lane(binary, m, bits));
    let lanes = masks.iter().map(lane).collect::<Option<Vec<Lane>>>()?;
    let number = number_of(b, masked, ty)?;
    let mut made = number;
    for kind in [
        Lane::Negated,
        Lane::Absolute,
        Lane::NegatedAbsolute,
        Lane::Zero,
    ] {
        if lanes.contains(&kind) {
            let other = whole(b, kind, number, ty);
            made = picked(b, made, other, |lane| lanes[lane] == kind, len);
        }
    }
    Some(made)
}

/// Returns the float vector of type `ty` whose bits are `value`: the operand of a bitcast, a shuffle of
/// bitcasts, or a bitcast of a load.
fn number_of(b: &mut Builder, value: Value, ty: TypeId) -> Option<Value> {
    if let Some(number) = uncast(b, value) {
        return (b.body.ty(number) == ty).then_some(number);
    }
    let op = b.body.def_op(value)?;
    let kind = b.body.kind(op).clone();
    match kind {
        OpKind::Shuffle(_) => {}
        OpKind::Load(_) => return Some(b.cast(CastOp::BitCast, value, ty)),
        _ => return None,
    }
    let first = uncast(b, b.body.operand(op, 0))?;
    let from = b.body.ty(first);
    let scalar = |ty| b.unit.types.scalar(ty);
    let second = match uncast(b, b.body.operand(op, 1)) {
        Some(second) => (b.body.ty(second) == from).then_some(second)?,
        None if is_poison(b.unit, b.body, b.body.operand(op, 1)) => first,
        None => return None,
    };
    let same = scalar(from) == scalar(ty);
    same.then(|| b.value(kind, &[first, second], ty))
}

/// Returns the operand of a bitcast.
fn uncast(b: &Builder, value: Value) -> Option<Value> {
    let op = b.body.def_op(value)?;
    let is_cast = *b.body.kind(op) == OpKind::Cast(CastOp::BitCast);
    is_cast.then(|| b.body.operand(op, 0))
}

/// Returns the number of lanes and the element width in bits of a vector of `float` or `double`.
fn numbers(b: &Builder, ty: TypeId) -> Option<(usize, u32)> {
    let &Type::Vector {
        elem,
        len,
        scalable: false,
    } = b.unit.types.get(ty)
    else {
        return None;
    };
    match b.unit.types.get(elem) {
        Type::Float(kind @ (FloatKind::F32 | FloatKind::F64)) => Some((len as usize, kind.bits())),
        _ => None,
    }
}

fn lane(binary: BinaryOp, mask: u128, bits: u32) -> Option<Lane> {
    let sign = 1_u128 << (bits - 1);
    let all = sign | (sign - 1);
    match binary {
        BinaryOp::Xor if mask == 0 => Some(Lane::Same),
        BinaryOp::Xor if mask == sign => Some(Lane::Negated),
        BinaryOp::Or if mask == 0 => Some(Lane::Same),
        BinaryOp::Or if mask == sign => Some(Lane::NegatedAbsolute),
        BinaryOp::And if mask == all => Some(Lane::Same),
        BinaryOp::And if mask == sign - 1 => Some(Lane::Absolute),
        BinaryOp::And if mask == 0 => Some(Lane::Zero),
        _ => None,
    }
}

/// Emits the whole vector under the mask of one lane kind.
fn whole(b: &mut Builder, kind: Lane, number: Value, ty: TypeId) -> Value {
    match kind {
        Lane::Same => number,
        Lane::Negated => b.fneg(number),
        Lane::Zero => b.zero(ty),
        Lane::NegatedAbsolute => {
            let size = whole(b, Lane::Absolute, number, ty);
            b.fneg(size)
        }
        Lane::Absolute => {
            let Some((len, bits)) = numbers(b, ty) else {
                unreachable!("lanes under a mask are numbers");
            };
            let signature = b.unit.types.func(ty, vec![ty]);
            let name = format!("llvm.fabs.v{len}f{bits}");
            let fabs = b.unit.declare(&name, signature, AttrSet::default());
            let call = b.call(fabs, &[number]);
            b.body.result(call)
        }
    }
}

/// Selects the lanes of `other` for which `of_other` holds, and the remaining lanes of `first`.
fn picked(
    b: &mut Builder,
    first: Value,
    other: Value,
    of_other: impl Fn(usize) -> bool,
    len: usize,
) -> Value {
    let ty = b.body.ty(first);
    let from = |lane: usize| i32::try_from(lane + if of_other(lane) { len } else { 0 });
    let lanes: Box<[i32]> = (0..len).map(|lane| from(lane).unwrap_or(0)).collect();
    b.value(OpKind::Shuffle(lanes), &[first, other], ty)
}
