//! The digamma function ψ, emitted as a GIR function because no C library has it.
//!
//! Arguments a ≤ 0 are reflected: ψ(a) = ψ(1 − a) − π/tan(πa), where a is first reduced to the distance from
//! the nearest integer. The recurrence ψ(z) = ψ(z + 1) − 1/z then raises z to at least 10. There the
//! asymptotic series ln z − 1/2z − Σ B₂ₖ/(2k z²ᵏ) is summed up to k = 7 (Abramowitz and Stegun 6.3.18). The
//! first omitted term is below 5e-17. The body consists of differentiable ops.

use super::build::math_call;
use gradus_ir::externals::MathFn;
use gradus_ir::{
    Body, Builder, CastOp, FloatKind, FloatPredicate, FuncId, Linkage, Type, TypeId, Unit, Value,
};

const NAME: &str = "__gradus1_digamma";

/// Lower bound of the argument of the asymptotic series.
const SERIES_MIN: f64 = 10.0;

/// B₂ₖ/2k for k = 1 … 7.
const SERIES: [f64; 7] = [
    1.0 / 12.0,
    -1.0 / 120.0,
    1.0 / 252.0,
    -1.0 / 240.0,
    1.0 / 132.0,
    -691.0 / 32760.0,
    1.0 / 12.0,
];

/// Returns true if ψ can be called on floats of type `ty`.
pub(super) fn is_supported(unit: &Unit, ty: TypeId) -> bool {
    matches!(
        unit.types.get(ty),
        Type::Float(FloatKind::F64 | FloatKind::F32 | FloatKind::F16 | FloatKind::BF16)
    )
}

/// Emits ψ(a), computed in binary64.
pub(super) fn emit_call(b: &mut Builder<'_>, a: Value) -> Value {
    let ty = b.body.ty(a);
    let double = b.unit.types.f64();
    let func = function(b.unit);
    let wide = b.cast(CastOp::FPExt, a, double);
    let op = b.call(func, &[wide]);
    let value = b.body.result(op);
    b.cast(CastOp::FPTrunc, value, ty)
}

fn function(unit: &mut Unit) -> FuncId {
    if let Some(func) = unit.function(NAME) {
        return func;
    }
    let double = unit.types.f64();
    let ty = unit.types.func(double, vec![double]);
    let body = body(unit, double);
    let func = unit.define(NAME.into(), ty, Linkage::LinkOnceOdr, body);
    let function = &mut unit.functions[func];
    function.param_names = vec![Some("a".into())];
    function.source_name = Some("digamma".into());
    func
}

fn body(unit: &mut Unit, double: TypeId) -> Body {
    let mut body = Body::new(&[double]);
    let a = body.params()[0];
    let b = &mut Builder::new(unit, &mut body);
    let (zero, one) = (b.float(double, 0.0), b.float(double, 1.0));
    let negative = b.fcmp(FloatPredicate::Ole, a, zero);
    let (op, reflect, keep) = b.if_(negative, &[double, double]);
    let place = b.set_insertion_end(reflect);
    let mirrored = b.fsub(one, a);
    let nearest = math_call(b, MathFn::Rint, &[a]);
    let distance = b.fsub(a, nearest);
    let pi = b.float(double, std::f64::consts::PI);
    let angle = b.fmul(pi, distance);
    let tangent = math_call(b, MathFn::Tan, &[angle]);
    let ratio = b.fdiv(pi, tangent);
    let correction = b.fneg(ratio);
    b.yield_(&[mirrored, correction]);
    b.set_insertion_end(keep);
    b.yield_(&[a, zero]);
    b.restore_insertion_point(place);
    let (z, start) = (b.body.results(op)[0], b.body.results(op)[1]);
    let (z, sum) = emit_recurrence(b, double, z, start);
    let far = series(b, double, z);
    let value = b.fadd(sum, far);
    b.return_(Some(value));
    body
}

/// Emits the recurrence: returns z + n ≥ 10 and `start` − Σ 1/(z + i) over i < n.
fn emit_recurrence(b: &mut Builder<'_>, double: TypeId, z: Value, start: Value) -> (Value, Value) {
    let (far, one) = (b.float(double, SERIES_MIN), b.float(double, 1.0));
    let near = b.fcmp(FloatPredicate::Olt, z, far);
    let missing = b.fsub(far, z);
    let missing = math_call(b, MathFn::Ceil, &[missing]);
    let none = b.float(double, 0.0);
    let missing = b.select(near, missing, none);
    let i64 = b.unit.types.int(64);
    let trips = b.cast(CastOp::FPToSI, missing, i64);
    let (op, region) = b.for_(trips, &[z, start]);
    let place = b.set_insertion_end(region);
    let (z, sum) = (
        b.body.region_params(region)[1],
        b.body.region_params(region)[2],
    );
    let term = b.fdiv(one, z);
    let sum = b.fsub(sum, term);
    let z = b.fadd(z, one);
    b.yield_(&[z, sum]);
    b.restore_insertion_point(place);
    (b.body.results(op)[0], b.body.results(op)[1])
}

/// Emits ln z − 1/2z − Σ B₂ₖ/(2k z²ᵏ).
fn series(b: &mut Builder<'_>, double: TypeId, z: Value) -> Value {
    let one = b.float(double, 1.0);
    let inverse = b.fdiv(one, z);
    let square = b.fmul(inverse, inverse);
    let mut sum = b.float(double, SERIES[SERIES.len() - 1]);
    for coefficient in SERIES[..SERIES.len() - 1].iter().rev() {
        let product = b.fmul(sum, square);
        let coefficient = b.float(double, *coefficient);
        sum = b.fadd(product, coefficient);
    }
    let tail = b.fmul(sum, square);
    let half = b.float(double, 0.5);
    let middle = b.fmul(half, inverse);
    let log = math_call(b, MathFn::Log, &[z]);
    let value = b.fsub(log, middle);
    b.fsub(value, tail)
}
