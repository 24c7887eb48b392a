//! Rewrites per-lane bit masks of float vectors to float operations: signs are set and cleared, lanes kept or
//! zeroed.

use crate::scalar::constants::integer_lanes;
use gradus_ir::{AttrSet, BinaryOp, Builder, CastOp, FloatKind, OpKind, Type, TypeId, Value};

/// Effect of a mask on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneEffect {
    Same,
    Negated,
    Absolute,
    NegatedAbsolute,
    Zero,
}

/// Returns the float vector of type `ty` whose bits are `value`, if `value` is a float vector under a
/// constant mask. `None` if the mask has an effect not listed in [`LaneEffect`].
pub(crate) fn of_bits(b: &mut Builder, value: Value, ty: TypeId) -> Option<Value> {
    let (len, bits) = float_vector_shape(b, ty)?;
    let op = b.body.def_op(value)?;
    let OpKind::Binary(binary) = *b.body.kind(op) else {
        return None;
    };
    let (masked, mask) = (b.body.operand(op, 0), b.body.operand(op, 1));
    let masks = integer_lanes(b.unit, b.body, mask).filter(|masks| masks.len() == len)?;
    // A lane under a poison mask may have any value.
    let lane =
        |mask: &Option<u128>| mask.map_or(Some(LaneEffect::Same), |m| lane_effect(binary, m, bits));
    let lanes = masks
        .iter()
        .map(lane)
        .collect::<Option<Vec<LaneEffect>>>()?;
    let number = float_source(b, masked, ty)?;
    let mut made = number;
    for kind in [
        LaneEffect::Negated,
        LaneEffect::Absolute,
        LaneEffect::NegatedAbsolute,
        LaneEffect::Zero,
    ] {
        if lanes.contains(&kind) {
            let other = apply_to_all_lanes(b, kind, number, ty);
            made = shuffle_lanes(b, made, other, |lane| lanes[lane] == kind, len);
        }
    }
    Some(made)
}

/// Returns the float vector of type `ty` whose bits are `value`: the operand of a bitcast, a shuffle of
/// bitcasts, or a bitcast of a load.
fn float_source(b: &mut Builder, value: Value, ty: TypeId) -> Option<Value> {
    if let Some(number) = b.body.cast_operand(value, CastOp::BitCast) {
        return (b.body.ty(number) == ty).then_some(number);
    }
    let op = b.body.def_op(value)?;
    let kind = b.body.kind(op).clone();
    match kind {
        OpKind::Shuffle(_) => {}
        OpKind::Load(_) => return Some(b.cast(CastOp::BitCast, value, ty)),
        _ => return None,
    }
    let first = b
        .body
        .cast_operand(b.body.operand(op, 0), CastOp::BitCast)?;
    let from = b.body.ty(first);
    let scalar = |ty| b.unit.types.scalar(ty);
    let second = match b.body.cast_operand(b.body.operand(op, 1), CastOp::BitCast) {
        Some(second) => (b.body.ty(second) == from).then_some(second)?,
        None if b.body.is_poison(b.unit, b.body.operand(op, 1)) => first,
        None => return None,
    };
    let same = scalar(from) == scalar(ty);
    same.then(|| b.value(kind, &[first, second], ty))
}

/// Returns the number of lanes and the element width in bits of a vector of `float` or `double`.
fn float_vector_shape(b: &Builder, ty: TypeId) -> Option<(usize, u32)> {
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

fn lane_effect(binary: BinaryOp, mask: u128, bits: u32) -> Option<LaneEffect> {
    let sign = 1_u128 << (bits - 1);
    let all = sign | (sign - 1);
    match binary {
        BinaryOp::Xor if mask == 0 => Some(LaneEffect::Same),
        BinaryOp::Xor if mask == sign => Some(LaneEffect::Negated),
        BinaryOp::Or if mask == 0 => Some(LaneEffect::Same),
        BinaryOp::Or if mask == sign => Some(LaneEffect::NegatedAbsolute),
        BinaryOp::And if mask == all => Some(LaneEffect::Same),
        BinaryOp::And if mask == sign - 1 => Some(LaneEffect::Absolute),
        BinaryOp::And if mask == 0 => Some(LaneEffect::Zero),
        _ => None,
    }
}

/// Emits the whole vector under the mask of one lane kind.
fn apply_to_all_lanes(b: &mut Builder, kind: LaneEffect, number: Value, ty: TypeId) -> Value {
    match kind {
        LaneEffect::Same => number,
        LaneEffect::Negated => b.fneg(number),
        LaneEffect::Zero => b.zero(ty),
        LaneEffect::NegatedAbsolute => {
            let size = apply_to_all_lanes(b, LaneEffect::Absolute, number, ty);
            b.fneg(size)
        }
        LaneEffect::Absolute => {
            let Some((len, bits)) = float_vector_shape(b, ty) else {
                unreachable!("lanes under a sign mask are floats");
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
fn shuffle_lanes(
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
