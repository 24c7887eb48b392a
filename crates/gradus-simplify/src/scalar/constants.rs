//! Constants for the folding rules: scalars and vector splats.

use gradus_ir::{Body, Builder, ConstId, ConstKind, FloatKind, Type, TypeId, Unit, Value};

/// Returns the constant common to all lanes of a value.
fn splat_constant(unit: &Unit, body: &Body, value: Value) -> Option<(ConstId, ConstKind)> {
    let id = body.as_const(value)?;
    match &unit.constant(id).kind {
        ConstKind::Aggregate(lanes) if is_vector(unit, body.ty(value)) => {
            let first = *lanes.first()?;
            let same = lanes.iter().all(|l| *l == first);
            same.then(|| (first, unit.constant(first).kind.clone()))
        }
        kind => Some((id, kind.clone())),
    }
}

fn is_vector(unit: &Unit, ty: TypeId) -> bool {
    matches!(unit.types.get(ty), Type::Vector { .. })
}

/// Returns the splat or scalar value (zero-extended) of an integer constant, and its width in bits.
pub(crate) fn integer_splat(unit: &Unit, body: &Body, value: Value) -> Option<(u128, u32)> {
    let bits = unit.types.int_bits(body.ty(value))?;
    match splat_constant(unit, body, value)?.1 {
        ConstKind::Int(n) if bits <= 128 => Some((n, bits)),
        ConstKind::Zero => Some((0, bits)),
        _ => None,
    }
}

/// Returns the lane values (zero-extended) of an integer vector constant; `None` for a poison or undefined
/// lane.
pub(crate) fn integer_lanes(unit: &Unit, body: &Body, value: Value) -> Option<Vec<Option<u128>>> {
    let ConstKind::Aggregate(lanes) = &unit.constant(body.as_const(value)?).kind else {
        return None;
    };
    let number = |lane: &ConstId| match unit.constant(*lane).kind {
        ConstKind::Int(n) => Some(Some(n)),
        ConstKind::Zero => Some(Some(0)),
        ConstKind::Poison | ConstKind::Undef => Some(None),
        _ => None,
    };
    lanes.iter().map(number).collect()
}

/// Returns the splat or scalar bits of a floating-point constant, and its format.
pub(crate) fn float_bits_splat(
    unit: &Unit,
    body: &Body,
    value: Value,
) -> Option<(u128, FloatKind)> {
    let kind = unit.types.float_kind(body.ty(value))?;
    match splat_constant(unit, body, value)?.1 {
        ConstKind::Float(bits) => Some((bits, kind)),
        ConstKind::Zero => Some((0, kind)),
        _ => None,
    }
}

/// Returns the splat or scalar value of a binary32 or binary64 constant.
pub(crate) fn float_splat(unit: &Unit, body: &Body, value: Value) -> Option<f64> {
    match float_bits_splat(unit, body, value)? {
        (bits, FloatKind::F64) => Some(f64::from_bits(bits as u64)),
        (bits, FloatKind::F32) => Some(f64::from(f32::from_bits(bits as u32))),
        _ => None,
    }
}

/// Returns a constant of type `ty` with the given bits in every lane; `None` for scalable vectors.
pub(crate) fn float_constant(b: &mut Builder, ty: TypeId, bits: u128) -> Option<Value> {
    let scalar = b.unit.types.scalar(ty);
    let elem = b.unit.consts.intern(scalar, ConstKind::Float(bits));
    let id = match *b.unit.types.get(ty) {
        Type::Vector { scalable: true, .. } => return None,
        Type::Vector { len, .. } => {
            let lanes = ConstKind::Aggregate(vec![elem; len as usize]);
            b.unit.consts.intern(ty, lanes)
        }
        _ => elem,
    };
    Some(b.constant(id))
}

/// Returns an integer constant of type `ty` with `n` in every lane; `None` for scalable vectors.
pub(crate) fn integer_constant(b: &mut Builder, ty: TypeId, n: u128) -> Option<Value> {
    match *b.unit.types.get(ty) {
        Type::Vector { scalable: true, .. } => None,
        _ => Some(b.int(ty, n as i128)),
    }
}
