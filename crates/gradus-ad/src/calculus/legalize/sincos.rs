//! Fusion of sine and cosine of one angle into one op, `a → {sin a, cos a}`.
//!
//! The derivative of the pair reads only the result of the pair; derivatives of separate calls would compute
//! both functions again. Calls are fused within a region, and no path computes more functions than before.

use crate::calculus::legalize::libm::pair_call;
use gradus_ir::externals::{ExternalFn, MathFn};
use gradus_ir::{Body, Builder, Flags, FloatKind, Op, OpKind, Region, Type, TypeId, Unit, Value};
use std::collections::HashMap;

/// Calls of one angle in one region, in order: 0 for a sine, 1 for a cosine.
type Calls = Vec<(usize, Op)>;

/// Fuses sines and cosines of one angle in one region. Returns the number of pairs.
pub(crate) fn fuse_sincos(unit: &mut Unit, body: &mut Body) -> usize {
    let mut places: HashMap<(Region, Value), usize> = HashMap::new();
    let mut angles: Vec<Calls> = Vec::new();
    for op in body.walk(body.root()) {
        let (Some((member, angle)), Some(region)) =
            (match_sin_or_cos(unit, body, op), body.parent(op))
        else {
            continue;
        };
        let number = *places.entry((region, angle)).or_insert(angles.len());
        if number == angles.len() {
            angles.push(Calls::new());
        }
        angles[number].push((member, op));
    }
    let both = |calls: &Calls| [0, 1].iter().all(|m| calls.iter().any(|(n, _)| n == m));
    angles.retain(both);
    for calls in &angles {
        replace_by_pair(unit, body, calls);
    }
    angles.len()
}

/// Matches a call of sine (0) or cosine (1), and returns the angle.
fn match_sin_or_cos(unit: &Unit, body: &Body, op: Op) -> Option<(usize, Value)> {
    if !matches!(body.kind(op), OpKind::Call(_)) {
        return None;
    }
    let callee = unit.callee(body, op)?;
    let member = match unit.known(callee)? {
        ExternalFn::Math(MathFn::Sin) => 0,
        ExternalFn::Math(MathFn::Cos) => 1,
        _ => return None,
    };
    let angle = *unit.call_args(body, op).first()?;
    suffix(unit, body.ty(angle))?;
    (!unit.is_user_declared(callee)).then_some((member, angle))
}

fn suffix(unit: &Unit, ty: TypeId) -> Option<&'static str> {
    match unit.types.get(ty) {
        Type::Float(FloatKind::F64) => Some("f64"),
        Type::Float(FloatKind::F32) => Some("f32"),
        _ => None,
    }
}

/// Replaces the calls of an angle by members of one pair, at the first call.
fn replace_by_pair(unit: &mut Unit, body: &mut Body, calls: &Calls) {
    let (_, first) = calls[0];
    let angle = unit.call_args(body, first)[0];
    let ty = body.ty(angle);
    let suffix = suffix(unit, ty).unwrap_or_default();
    let flags = calls.iter().map(|(_, op)| body.ops[*op].flags);
    let flags = flags.reduce(Flags::and).unwrap_or_default();
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[first].loc;
    b.set_insertion_before(first);
    let pair = pair_call(&mut b, &format!("llvm.sincos.{suffix}"), angle, ty);
    b.set_flags(pair, flags);
    let members = [b.extract(pair, &[0]), b.extract(pair, &[1])];
    for &(member, call) in calls {
        body.replace_uses(body.result(call), members[member]);
        body.erase(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::math_call;

    #[test]
    fn sine_and_cosine_are_fused() {
        let mut unit = Unit::default();
        let (double, bit) = (unit.types.f64(), unit.types.int(1));
        let mut body = Body::new(&[double, double, bit]);
        let [a, other, condition] = [0, 1, 2].map(|i| body.params()[i]);
        let b = &mut Builder::new(&mut unit, &mut body);
        let cosine = math_call(b, MathFn::Cos, &[a]);
        let (inner, then, otherwise) = b.if_(condition, &[double]);
        let place = b.set_insertion_end(then);
        let elsewhere = math_call(b, MathFn::Sin, &[a]);
        b.yield_(&[elsewhere]);
        b.set_insertion_end(otherwise);
        b.yield_(&[cosine]);
        b.restore_insertion_point(place);
        let inner = b.body.result(inner);
        let sine = math_call(b, MathFn::Sin, &[a]);
        let alone = math_call(b, MathFn::Sin, &[other]);
        let parts = [inner, sine, alone];
        let sum = parts
            .into_iter()
            .fold(cosine, |sum, part| b.fadd(sum, part));
        b.return_(Some(sum));
        assert_eq!(fuse_sincos(&mut unit, &mut body), 1);
        let names = body.walk(body.root()).filter_map(|op| {
            let callee = unit.callee(&body, op)?;
            Some(unit.functions[callee].name.clone())
        });
        let names: Vec<String> = names.collect();
        assert_eq!(names, ["llvm.sincos.f64", "llvm.sin.f64", "llvm.sin.f64"]);
    }
}
