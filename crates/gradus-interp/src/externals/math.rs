//! Floating-point functions: Rust's methods, which call the C library, and the crate `libm` for functions
//! missing in Rust.

use crate::bytecode::code::CallSite;
use crate::externals::{Outcome, defined_arg};
use crate::state::linearized_replay::{ReplayState, SmoothOp};
use crate::state::machine::Machine;
use crate::trap::{Eval, TrapKind, fault};
use crate::values::arith::{apply_fast_math_flags, maximum};
use crate::values::float::{from_f64, to_f64};
use crate::values::value::Value;
use crate::values::value_layout::{Num, Shape};
use gradus_ir::FloatKind;
use gradus_ir::externals::{MathFn, MultiResultMathFn};

impl Machine<'_> {
    pub(crate) fn math(&mut self, id: MathFn, site: &CallSite, args: &[Value]) -> Eval<Outcome> {
        let Some((_, result)) = &site.result else {
            return Ok(Outcome::Nothing);
        };
        let shapes: Vec<Option<Num>> = site
            .arg_shapes
            .iter()
            .map(|s| s.as_ref().and_then(Shape::num))
            .collect();
        let mut one =
            |values: &[Value]| scalar(&mut self.replay, id, &shapes, result, site, values);
        let Some(len) = result.lanes() else {
            return one(args).map(Outcome::Value);
        };
        let lanes = (0..len).map(|i| {
            let values: Vec<Value> = args
                .iter()
                .enumerate()
                .map(
                    |(n, v)| match site.arg_shapes[n].as_ref().and_then(Shape::lanes) {
                        Some(_) => v.lane(i),
                        None => v.clone(),
                    },
                )
                .collect();
            one(&values)
        });
        Ok(Outcome::Value(Value::Elements(lanes.collect::<Eval<_>>()?)))
    }

    pub(crate) fn math_out(
        &mut self,
        id: MultiResultMathFn,
        site: &CallSite,
        args: &[Value],
    ) -> Eval<Outcome> {
        use MultiResultMathFn::*;
        let shape = site.arg_shapes.first().and_then(|s| s.as_ref());
        let Some(Shape::Num(Num::Float(kind))) = shape else {
            return fault(TrapKind::Unsupported, "a two-result function of a vector");
        };
        let kind = *kind;
        let size = kind.bits() as usize / 8;
        let x = to_f64(kind, defined_arg(args, 0)?)?;
        let float = |x: f64| from_f64(kind, x).map(Value::Bits);
        let (fraction, exponent) = libm::frexp(x);
        let (first, second) = match id {
            Sincos | SincosPair => (x.sin(), x.cos()),
            SincospiPair => {
                let angle = x % 2.0 * std::f64::consts::PI;
                (angle.sin(), angle.cos())
            }
            Modf | ModfPair if x.is_infinite() => (0.0f64.copysign(x), x),
            Modf | ModfPair => ((x - x.trunc()).copysign(x), x.trunc()),
            Frexp | FrexpPair => (fraction, f64::from(exponent)),
            LgammaR => {
                let (value, sign) = libm::lgamma_r(x);
                (value, f64::from(sign))
            }
            Remquo => {
                let (value, quotient) = libm::remquo(x, to_f64(kind, defined_arg(args, 1)?)?);
                (value, f64::from(quotient))
            }
        };
        let int = Value::Bits(u64::from(second as i32 as u32));
        match id {
            Sincos => {
                self.store_result(defined_arg(args, 1)?, size, &float(first)?)?;
                self.store_result(defined_arg(args, 2)?, size, &float(second)?)?;
                Ok(Outcome::Nothing)
            }
            Modf => {
                self.store_result(defined_arg(args, 1)?, size, &float(second)?)?;
                float(first).map(Outcome::Value)
            }
            Frexp | LgammaR => {
                self.store_result(defined_arg(args, 1)?, 4, &int)?;
                float(first).map(Outcome::Value)
            }
            Remquo => {
                self.store_result(defined_arg(args, 2)?, 4, &int)?;
                float(first).map(Outcome::Value)
            }
            FrexpPair => Ok(Outcome::Value(Value::Elements([float(first)?, int].into()))),
            SincosPair | SincospiPair | ModfPair => Ok(Outcome::Value(Value::Elements(
                [float(first)?, float(second)?].into(),
            ))),
        }
    }
}

/// Evaluates one lane.
fn scalar(
    way: &mut ReplayState,
    id: MathFn,
    shapes: &[Option<Num>],
    result: &Shape,
    site: &CallSite,
    values: &[Value],
) -> Eval<Value> {
    if values.contains(&Value::Poison) {
        return Ok(Value::Poison);
    }
    if let Some(value) = sign_bit_function(id, shapes, values) {
        return Ok(value);
    }
    if id == MathFn::IsClass
        && let Some(value) = is_class(shapes, values)
    {
        return Ok(value);
    }
    let mut x = [0.0; 3];
    let mut n = [0i64; 3];
    let mut kind = FloatKind::F64;
    for (i, value) in values.iter().enumerate().take(3) {
        let Value::Bits(bits) = value else {
            return match value {
                Value::Wide(_) => fault(TrapKind::Unsupported, "arithmetic wider than binary64"),
                _ => Ok(Value::UNDEF),
            };
        };
        match shapes.get(i).copied().flatten() {
            Some(Num::Float(own)) => {
                kind = own;
                x[i] = to_f64(own, *bits)?;
            }
            Some(Num::Int(width)) => n[i] = ((bits << (64 - width)) as i64) >> (64 - width),
            None => return fault(TrapKind::BadCall, "arithmetic on an aggregate"),
        }
    }
    match result.num() {
        Some(Num::Int(width)) => to_integer(id, x[0], width),
        Some(Num::Float(to)) => {
            let y = match kind {
                FloatKind::F32 => match float32(id, x.map(|x| x as f32)) {
                    Some(y) => Some(f64::from(y)),
                    None => math_value(id, x, n),
                },
                FloatKind::F64 => {
                    way.smooth_result(SmoothOp::Call(id), x, &|x| math_value(id, x, n))?
                }
                _ => math_value(id, x, n),
            };
            let Some(y) = y else {
                return fault(
                    TrapKind::Unsupported,
                    "an unsupported function of the C library",
                );
            };
            let operands = &x[..values.len().min(3)];
            Ok(apply_fast_math_flags(
                site.flags,
                operands,
                y,
                from_f64(to, y)?,
            ))
        }
        None => fault(
            TrapKind::BadCall,
            "the result of arithmetic is an aggregate",
        ),
    }
}

/// Evaluates functions of the sign bit; the functions preserve NaN payloads.
fn sign_bit_function(id: MathFn, shapes: &[Option<Num>], values: &[Value]) -> Option<Value> {
    let width = shapes.first().copied().flatten()?.bits();
    let sign = 1u128 << (width - 1);
    let a = values.first()?.wide()?;
    Some(match id {
        MathFn::Fabs => Value::number(width, a & !sign),
        MathFn::Copysign => Value::number(width, (a & !sign) | (values.get(1)?.wide()? & sign)),
        MathFn::ArithmeticFence => values[0].clone(),
        _ => return None,
    })
}

/// Evaluates functions that round once in binary32.
fn float32(id: MathFn, x: [f32; 3]) -> Option<f32> {
    use MathFn::*;
    let [a, b, c] = x;
    Some(match id {
        Sin => a.sin(),
        Cos => a.cos(),
        Tan => a.tan(),
        Asin => a.asin(),
        Acos => a.acos(),
        Atan => a.atan(),
        Atan2 => a.atan2(b),
        Sinh => a.sinh(),
        Cosh => a.cosh(),
        Tanh => a.tanh(),
        Exp => a.exp(),
        Exp2 => a.exp2(),
        Expm1 => a.exp_m1(),
        Log => a.ln(),
        Log2 => a.log2(),
        Log10 => a.log10(),
        Log1p => a.ln_1p(),
        Sqrt => a.sqrt(),
        Cbrt => a.cbrt(),
        Pow => a.powf(b),
        Hypot => a.hypot(b),
        Fma | Fmuladd => a.mul_add(b, c),
        Nextafter => libm::nextafterf(a, b),
        Erf => libm::erff(a),
        Erfc => libm::erfcf(a),
        _ => return None,
    })
}

/// Returns the value of a function in binary64, with arguments `x`, or `n` for integers; `None` for a function
/// without semantics in binary64.
// table
pub fn math_value(id: MathFn, x: [f64; 3], n: [i64; 3]) -> Option<f64> {
    use MathFn::*;
    use std::f64::consts::{LN_2, LN_10, PI};
    let [a, b, c] = x;
    let exponent = |n: i64| n.clamp(-10_000, 10_000) as i32;
    Some(match id {
        Sin => a.sin(),
        Cos => a.cos(),
        Tan => a.tan(),
        Sinpi => (a % 2.0 * PI).sin(),
        Cospi => (a % 2.0 * PI).cos(),
        Tanpi => (a % 1.0 * PI).tan(),
        Asin => a.asin(),
        Acos => a.acos(),
        Atan => a.atan(),
        Atan2 => a.atan2(b),
        Asinpi => a.asin() / PI,
        Acospi => a.acos() / PI,
        Atanpi => a.atan() / PI,
        Atan2pi => a.atan2(b) / PI,
        Sinh => a.sinh(),
        Cosh => a.cosh(),
        Tanh => a.tanh(),
        Asinh => libm::asinh(a),
        Acosh => libm::acosh(a),
        Atanh => libm::atanh(a),
        Exp => a.exp(),
        Exp2 => a.exp2(),
        Exp10 => libm::exp10(a),
        Expm1 => a.exp_m1(),
        Exp2m1 => (LN_2 * a).exp_m1(),
        Exp10m1 => (LN_10 * a).exp_m1(),
        Log => a.ln(),
        Log2 => a.log2(),
        Log10 => a.log10(),
        Log1p => a.ln_1p(),
        Log2p1 => a.ln_1p() / LN_2,
        Log10p1 => a.ln_1p() / LN_10,
        Sqrt => a.sqrt(),
        Rsqrt => 1.0 / a.sqrt(),
        Cbrt => a.cbrt(),
        Pow => a.powf(b),
        Powi => a.powi(exponent(n[1])),
        Hypot => a.hypot(b),
        Fabs => a.abs(),
        Copysign => a.copysign(b),
        Minnum => a.min(b),
        Maxnum => a.max(b),
        Minimum => -maximum(-a, -b),
        Maximum => maximum(a, b),
        MinimumNum if a.is_nan() => b,
        MinimumNum if b.is_nan() => a,
        MinimumNum => -maximum(-a, -b),
        MaximumNum if a.is_nan() => b,
        MaximumNum if b.is_nan() => a,
        MaximumNum => maximum(a, b),
        Fdim => libm::fdim(a, b),
        Floor => a.floor(),
        Ceil => a.ceil(),
        Trunc => a.trunc(),
        Rint | Nearbyint | RoundEven => a.round_ties_even(),
        Round => a.round(),
        Fma => a.mul_add(b, c),
        Fmuladd => a * b + c,
        Fmod => a % b,
        Remainder => libm::remainder(a, b),
        Erf => libm::erf(a),
        Erfc => libm::erfc(a),
        Tgamma => libm::tgamma(a),
        Lgamma => libm::lgamma(a),
        J0 => libm::j0(a),
        J1 => libm::j1(a),
        Jn => libm::jn(exponent(n[0]), b),
        Y0 => libm::y0(a),
        Y1 => libm::y1(a),
        Yn => libm::yn(exponent(n[0]), b),
        Ldexp | Scalbn => libm::ldexp(a, exponent(n[1])),
        Logb if a == 0.0 => f64::NEG_INFINITY,
        Logb if !a.is_finite() => a.abs(),
        Logb => f64::from(libm::ilogb(a)),
        Nextafter => libm::nextafter(a, b),
        Canonicalize | ArithmeticFence => a,
        Erfinv | Lrint | Llrint | Lround | Llround | Ilogb | IsClass | Classify | FptosiSat
        | FptouiSat | Nan => return None,
    })
}

/// Evaluates functions with an integer result.
fn to_integer(id: MathFn, x: f64, width: u32) -> Eval<Value> {
    use MathFn::*;
    let rounded = |x: f64| match (-(2f64.powi(63))..2f64.powi(63)).contains(&x) {
        true => Ok(Value::number(
            width,
            x as i64 as u128 & crate::values::arith::mask(width),
        )),
        false => Ok(Value::UNDEF),
    };
    let power = |n: u32| 2f64.powi(n as i32);
    match id {
        Lrint | Llrint => rounded(x.round_ties_even()),
        Lround | Llround => rounded(x.round()),
        Ilogb => rounded(f64::from(libm::ilogb(x))),
        FptosiSat if width <= 64 => {
            let most = (crate::values::arith::mask(width) >> 1) as i128;
            let n = if x >= power(width - 1) {
                most
            } else {
                (x as i128).max(-most - 1)
            };
            Ok(Value::number(
                width,
                n as u128 & crate::values::arith::mask(width),
            ))
        }
        FptouiSat if width <= 64 => Ok(Value::number(
            width,
            (x as u128).min(crate::values::arith::mask(width)),
        )),
        _ => fault(
            TrapKind::Unsupported,
            "an unsupported function of the C library",
        ),
    }
}

/// Evaluates `llvm.is.fpclass` on the bits of the operand's own format: a conversion to binary64 quiets NaNs, and
/// subnormal numbers become normal. Returns `None` for formats wider than binary64 and undefined operands.
fn is_class(shapes: &[Option<Num>], values: &[Value]) -> Option<Value> {
    let Num::Float(kind) = shapes.first().copied().flatten()? else {
        // Not an error: the caller reports an operand without a class.
        return None;
    };
    let (fraction_bits, exponent_bits) = match kind {
        FloatKind::F16 => (10, 5),
        FloatKind::BF16 => (7, 8),
        FloatKind::F32 => (23, 8),
        FloatKind::F64 => (52, 11),
        FloatKind::X86F80 | FloatKind::F128 | FloatKind::PpcF128 => return None,
    };
    let (bits, wanted) = (values.first()?.bits()?, values.get(1)?.bits()?);
    Some(Value::bool(
        class(bits, fraction_bits, exponent_bits) & wanted != 0,
    ))
}

/// Returns LLVM's `is.fpclass` bit for a number of an IEEE format.
fn class(bits: u64, fraction_bits: u32, exponent_bits: u32) -> u64 {
    let fraction = bits & ((1 << fraction_bits) - 1);
    let exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    let negative = bits >> (fraction_bits + exponent_bits) & 1 == 1;
    let is_greatest = exponent == (1 << exponent_bits) - 1;
    let bit = match (is_greatest, exponent, fraction) {
        // A quiet NaN has the first fraction bit.
        (true, _, 1..) => return 1 << (fraction >> (fraction_bits - 1)),
        (true, ..) => 3,
        (false, 0, 0) => 0,
        (false, 0, _) => 1,
        (false, ..) => 2,
    };
    // The negative classes precede the positive ones in reverse order, from bit 2 to bit 9.
    1 << if negative { 5 - bit } else { 6 + bit }
}
