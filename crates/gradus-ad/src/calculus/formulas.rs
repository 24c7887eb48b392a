//! The formula page: per op, the product of a seed `d` with each partial derivative.
//!
//! A formula is `d · ∂y/∂aᵢ` in terms of the arguments `a b c`, the result `y` and the seed `d`, as one
//! expression in its cheapest form. Formulas are linear in `d`; `None` is a gap (see [`MISSING_DERIVATIVES`]).
//!
//! A quotient multiplies the seed by the reciprocal of the divisor. The reciprocal does not depend on the
//! seed, can be hoisted out of loops in which the divisor is invariant, and is shared by all quotients with
//! one divisor.

use super::complex;
use crate::calculus::expr::Expr;
use gradus_ir::BinaryOp;
use gradus_ir::FloatPredicate::{Oeq, Ogt, Olt};
use gradus_ir::externals::{ComplexFn, MathFn};
use gradus_ir::mutant::{Mutant, is_planted};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, LOG2_E, LOG10_E, PI};

/// Float functions without a derivative.
pub const MISSING_DERIVATIVES: &[MathFn] = &[];

/// The function that an op computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// A floating-point operation.
    Binary(BinaryOp),
    Neg,
    /// Conversion between float formats.
    Convert,
    /// A function whose result is locally constant.
    LocallyConstant,
    Math(MathFn),
    /// `a → {sin a, cos a}`.
    Sincos,
    /// `a → {sin πa, cos πa}`.
    Sincospi,
    /// `a → {fraction, whole}`.
    Modf,
    /// `a → {fraction, exponent}`.
    Frexp,
    /// `a + ib, c + id → {re, im}`.
    ComplexMul,
    /// `a + ib, c + id → {re, im}`.
    ComplexDiv,
    /// Any other function of one or two complex numbers: `→ {re, im}`.
    Complex(ComplexFn),
}

/// Inputs of a rule: arguments, results and seed of an op.
pub(super) struct RuleInputs<'p> {
    /// Arguments; compile-time constants are numbers.
    pub(super) args: Vec<Expr<'p>>,
    /// The result, or the members of a struct result.
    pub(super) results: Vec<Expr<'p>>,
    /// The seed.
    pub(super) seed: Expr<'p>,
}

impl Function {
    /// Returns the number of members of the result.
    pub(super) fn results(self) -> usize {
        use Function::*;
        match self {
            Sincos | Sincospi | Modf | Frexp | ComplexMul | ComplexDiv | Complex(_) => 2,
            Binary(_) | Neg | Convert | LocallyConstant | Math(_) => 1,
        }
    }

    /// Returns `d · ∂resultⱼ/∂argᵢ`.
    pub(super) fn times_partial<'p>(
        self,
        i: usize,
        j: usize,
        g: &RuleInputs<'p>,
    ) -> Option<Expr<'p>> {
        let (a, y, d) = (g.args[0], g.results[0], g.seed);
        Some(match (self, i) {
            (Function::Binary(op), _) => return binary(op, i, g),
            (Function::Neg, _) => -d,
            (Function::Convert, _) => d,
            (Function::LocallyConstant, _) => d.num(0.0),
            (Function::Math(f), _) => return math(f, i, g),
            (Function::Sincos | Function::Sincospi, _) => {
                let scale = if self == Function::Sincos { 1.0 } else { PI };
                match j {
                    0 => scale * d * g.results[1],
                    _ => -(scale * d * g.results[0]),
                }
            }
            (Function::Modf, _) => match j {
                0 => d,
                _ => d.num(0.0),
            },
            // fraction = a · 2^−exponent, with a locally constant exponent: the partial is fraction / a.
            (Function::Frexp, _) => match j {
                0 => a.select(Oeq, a.num(0.0), d, d * (y / a)),
                _ => d.num(0.0),
            },
            (Function::ComplexMul, _) => complex_mul(i, j, g),
            (Function::ComplexDiv, _) => complex_div(i, j, g),
            (Function::Complex(f), _) => return complex::times_partial(f, i, j, g),
        })
    }
}

/// Returns `d · ∂y/∂aᵢ` of a floating-point operation; `None` for operations on integers.
fn binary<'p>(op: BinaryOp, i: usize, g: &RuleInputs<'p>) -> Option<Expr<'p>> {
    use BinaryOp::*;
    let (a, b, y, d) = (g.args[0], g.args[1], g.results[0], g.seed);
    Some(match (op, i) {
        (FAdd, _) => d,
        (FSub, 0) => d,
        (FSub, _) => -d,
        (FMul, 0) if is_planted(Mutant::ProductPartialsSwapped) => d * a,
        (FMul, 0) => d * b,
        (FMul, _) => d * a,
        (FDiv, 0) => divide_seed(d, b),
        (FDiv, _) if is_planted(Mutant::QuotientSign) => divide_seed(d, b) * y,
        (FDiv, _) if a.constant() == Some(1.0) => -(d * y * y),
        (FDiv, _) => -(divide_seed(d, b) * y),
        (FRem, _) => return math(MathFn::Fmod, i, g),
        // A gap: the test of all operations fails.
        _ => return None,
    })
}

/// Returns d / b as d · (1 / b). Constants whose reciprocal may overflow or underflow in a format are divided
/// by.
fn divide_seed<'p>(d: Expr<'p>, b: Expr<'p>) -> Expr<'p> {
    let middling = |b: f64| (1e-30..1e30).contains(&b.abs());
    match b.constant() {
        Some(constant) if !middling(constant) => d / b,
        _ => d * (1.0 / b),
    }
}

/// (a + ib)(c + id) = (ac − bd) + i(ad + bc).
fn complex_mul<'p>(i: usize, j: usize, g: &RuleInputs<'p>) -> Expr<'p> {
    let [a, b, c, e] = [0, 1, 2, 3].map(|k| g.args[k]);
    let d = g.seed;
    match (j, i) {
        (0, 0) => d * c,
        (0, 1) => -(d * e),
        (0, 2) => d * a,
        (0, _) => -(d * b),
        (_, 0) => d * e,
        (_, 1) => d * c,
        (_, 2) => d * b,
        (_, _) => d * a,
    }
}

/// For y = (a + ib)/(c + ie): ∂y/∂a = 1/(c + ie) and ∂y/∂c = −y/(c + ie). The partials by the imaginary parts
/// are i times as large.
fn complex_div<'p>(i: usize, j: usize, g: &RuleInputs<'p>) -> Expr<'p> {
    let (c, e, d) = (g.args[2], g.args[3], g.seed);
    let (re, im) = (g.results[0], g.results[1]);
    let norm = c * c + e * e;
    match (j, i) {
        (0, 0) => d * c / norm,
        (0, 1) => d * e / norm,
        (1, 0) => -(d * e) / norm,
        (1, 1) => d * c / norm,
        (0, 2) => -(d * (re * c + im * e)) / norm,
        (0, _) => d * (im * c - re * e) / norm,
        (_, 2) => -(d * (im * c - re * e)) / norm,
        (_, _) => -(d * (re * c + im * e)) / norm,
    }
}

/// Returns `d · ∂y/∂aᵢ` of a math function. `b` and `c` are the second and third argument.
// table
fn math<'p>(f: MathFn, i: usize, g: &RuleInputs<'p>) -> Option<Expr<'p>> {
    use MathFn::*;
    let (a, y, d) = (g.args[0], g.results[0], g.seed);
    let b = g.args.get(1).copied().unwrap_or(a);
    let (zero, one) = (d.num(0.0), d.num(1.0));
    Some(match f {
        Sin => d * a.call(Cos),
        Cos => -(d * a.call(Sin)),
        Tan => d * (1.0 + y * y),
        Sinpi => d * (PI * a.call(Cospi)),
        Cospi => -(d * (PI * a.call(Sinpi))),
        Tanpi => d * (PI * (1.0 + y * y)),
        Asin => d / ((1.0 - a) * (1.0 + a)).call(Sqrt), // ±1: infinite
        Acos => -d / ((1.0 - a) * (1.0 + a)).call(Sqrt), // ±1: infinite
        Atan => d / (1.0 + a * a),
        Atan2 if i == 0 => d * b / (a * a + b * b), // origin: NaN
        Atan2 => -(d * a) / (a * a + b * b),
        Asinpi => d / (PI * ((1.0 - a) * (1.0 + a)).call(Sqrt)), // ±1: infinite
        Acospi => -d / (PI * ((1.0 - a) * (1.0 + a)).call(Sqrt)), // ±1: infinite
        Atanpi => d / (PI * (1.0 + a * a)),
        Atan2pi if i == 0 => d * b / (PI * (a * a + b * b)), // origin: NaN
        Atan2pi => -(d * a) / (PI * (a * a + b * b)),
        Sinh => d * a.call(Cosh),
        Cosh => d * a.call(Sinh),
        Tanh if is_planted(Mutant::TanhPartial) => d * (1.0 + y * y),
        Tanh => d * (1.0 - y * y),
        Asinh => d / (a * a + 1.0).call(Sqrt),
        Acosh => d / ((a - 1.0) * (a + 1.0)).call(Sqrt), // 1: infinite
        Atanh => d / ((1.0 - a) * (1.0 + a)),            // ±1: infinite
        Exp => d * y,
        Exp2 => d * (LN_2 * y),
        Exp10 => d * (LN_10 * y),
        Expm1 => d * (y + 1.0),
        Exp2m1 => d * (LN_2 * (y + 1.0)),
        Exp10m1 => d * (LN_10 * (y + 1.0)),
        Log => divide_seed(d, a), // 0: infinite
        Log2 => d * LOG2_E / a,
        Log10 => d * LOG10_E / a,
        Log1p => d / (1.0 + a),
        Log2p1 => d * LOG2_E / (1.0 + a),
        Log10p1 => d * LOG10_E / (1.0 + a),
        Sqrt => d * (0.5 * (1.0 / y)), // 0: infinite
        Rsqrt => -0.5 * d * y / a,
        Cbrt => d / (3.0 * y * y), // 0: infinite
        Pow if i == 0 => pow_by_base(a, b, y, d),
        // log 0 · 0: a power of zero is constant in its exponent
        Pow => a.select(Oeq, zero, zero, d * y * a.call(Log)),
        Powi => powi(a, b, d),
        Hypot if i == 0 => d / y * a, // origin: NaN
        Hypot => d / y * b,
        Fabs => d * one.call2(Copysign, a), // 0: the sign of the zero
        Copysign if i == 0 => d * (one.call2(Copysign, a) * one.call2(Copysign, b)),
        Copysign => zero,
        Minnum | Minimum | MinimumNum => extremum(Olt, i, g),
        Maxnum | Maximum | MaximumNum => extremum(Ogt, i, g),
        Fdim if i == 0 => a.select(Ogt, b, d, zero),
        Fdim => a.select(Ogt, b, -d, zero),
        Fma | Fmuladd => match i {
            0 => d * b,
            1 => d * a,
            _ => d,
        },
        Fmod | Remainder if i == 0 => d,
        Fmod | Remainder => -(d * ((a - y) / b).call(Rint)), // the quotient, an integer
        Erf => d * (FRAC_2_SQRT_PI * (-(a * a)).call(Exp)),
        Erfc => -(d * (FRAC_2_SQRT_PI * (-(a * a)).call(Exp))),
        Erfinv => d * ((y * y).call(Exp) / FRAC_2_SQRT_PI),
        Tgamma => d * (y * a.digamma()),
        Lgamma => d * a.digamma(),
        J0 => -(d * a.call(J1)),
        J1 => d * a.select(Oeq, zero, d.num(0.5), a.call(J0) - y / a),
        Jn => d * (0.5 * (b.int_call(Jn, 0, -1) - b.int_call(Jn, 0, 1))),
        Y0 => -(d * a.call(Y1)),
        Y1 => d * (a.call(Y0) - y / a),
        Yn => d * (0.5 * (b.int_call(Yn, 0, -1) - b.int_call(Yn, 0, 1))),
        Ldexp | Scalbn => d.call_int(f, 1, 0),
        Nextafter if i == 0 => d,
        Canonicalize | ArithmeticFence => d,
        Floor | Ceil | Trunc | Rint | Nearbyint | Round | RoundEven => zero, // also at the steps
        Nextafter | Lrint | Llrint | Lround | Llround | Ilogb | Logb | IsClass | Classify
        | FptosiSat | FptouiSat | Nan => zero,
    })
}

/// Returns b·a^(b−1). A small constant integer exponent becomes a product: x³ yields 3·x·x. A variable
/// exponent that happens to be 0 yields 0 even at a = 0.
fn pow_by_base<'p>(a: Expr<'p>, b: Expr<'p>, y: Expr<'p>, d: Expr<'p>) -> Expr<'p> {
    match b.constant() {
        Some(0.5) => d * (0.5 * (1.0 / y)),
        Some(n) => small_power(a, n, d).unwrap_or_else(|| d * (n * a.call2(MathFn::Pow, b - 1.0))),
        None => {
            let partial = b * a.call2(MathFn::Pow, b - 1.0);
            d * b.select(Oeq, b.num(0.0), b.num(0.0), partial)
        }
    }
}

/// Returns n·a^(n−1).
fn powi<'p>(a: Expr<'p>, n: Expr<'p>, d: Expr<'p>) -> Expr<'p> {
    let power = a.call_int(MathFn::Powi, 1, -1);
    match n.constant() {
        Some(n) => small_power(a, n, d).unwrap_or_else(|| d * (n * power)),
        None => {
            let n = a.float_of(1);
            d * n.select(Oeq, n.num(0.0), n.num(0.0), n * power)
        }
    }
}

/// Returns `d·n·a^(n−1)` as a product for n = 0 … 4.
fn small_power<'p>(a: Expr<'p>, n: f64, d: Expr<'p>) -> Option<Expr<'p>> {
    Some(match n {
        0.0 => d.num(0.0),
        1.0 => d,
        2.0 => d * (2.0 * a),
        3.0 => d * (3.0 * a * a),
        4.0 => d * (4.0 * a * (a * a)),
        _ => return None,
    })
}

/// Returns the partial of a minimum or maximum: the whole seed goes to the selected argument. Ties select the
/// first of two variable arguments, and a constant before a variable argument.
fn extremum<'p>(wins: gradus_ir::FloatPredicate, i: usize, g: &RuleInputs<'p>) -> Expr<'p> {
    let (a, b, y, d) = (g.args[0], g.args[1], g.results[0], g.seed);
    let zero = d.num(0.0);
    if i == 0 && b.constant().is_some() {
        return a.select(wins, b, d, zero);
    }
    if i == 1 && a.constant().is_some() {
        return b.select(wins, a, d, zero);
    }
    match i {
        0 => y.select(Oeq, a, d, zero),
        _ => y.select(Oeq, a, zero, d),
    }
}

/// The finiteness of a function and of its partials at finite arguments, apart from overflow of sums and products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finite {
    /// Result and partials are finite.
    All,
    /// The result is finite.
    Result,
    /// The partials are finite.
    Partials,
    /// All are finite if the second argument is not zero. The partial by the first argument is finite anyway.
    NonzeroDivisor,
    /// All are finite if the second argument is not zero.
    Quotient,
    /// Neither is always finite.
    Nothing,
}

/// Returns the finiteness of a floating-point operation. Tests compare the list with values at singular points.
fn binary_finiteness(op: BinaryOp) -> Finite {
    use BinaryOp::*;
    match op {
        FAdd | FSub | FMul => Finite::All,
        FDiv => Finite::Quotient,
        FRem => Finite::NonzeroDivisor,
        // An operation without a class has no known bound.
        _ => Finite::Nothing,
    }
}

/// Returns the finiteness of a math function. Tests compare the list with values at singular points.
fn math_finiteness(f: MathFn) -> Finite {
    use MathFn::*;
    match f {
        Sin | Cos | Tan | Sinpi | Cospi | Atan | Atanpi | Tanh | Asinh | Fabs | Copysign
        | Minnum | Maxnum | Minimum | Maximum | MinimumNum | MaximumNum | Fdim | Floor | Ceil
        | Trunc | Rint | Nearbyint | Round | RoundEven | Lrint | Llrint | Lround | Llround
        | Fma | Fmuladd | Erf | Erfc | J0 | J1 | Jn | Ilogb | Nextafter | Canonicalize
        | ArithmeticFence | IsClass | Classify | FptosiSat | FptouiSat => Finite::All,
        Atan2 | Atan2pi | Cbrt | Hypot => Finite::Result,
        Ldexp | Scalbn | Logb | Nan => Finite::Partials,
        Fmod | Remainder => Finite::NonzeroDivisor,
        Tanpi | Asin | Acos | Asinpi | Acospi | Exp2m1 | Exp10m1 | Log2p1 | Log10p1 | Sinh
        | Cosh | Acosh | Atanh | Exp | Exp2 | Exp10 | Expm1 | Log | Log2 | Log10 | Log1p | Sqrt
        | Rsqrt | Pow | Powi | Erfinv | Tgamma | Lgamma | Y0 | Y1 | Yn => Finite::Nothing,
    }
}

impl Finite {
    /// Returns the finiteness of a function.
    fn of(f: Function) -> Finite {
        use Function::*;
        match f {
            Neg | Convert | LocallyConstant | Sincos | Sincospi | Modf | Frexp | ComplexMul => {
                Finite::All
            }
            ComplexDiv | Complex(_) => Finite::Nothing,
            Binary(op) => binary_finiteness(op),
            Math(f) => math_finiteness(f),
        }
    }
}

/// Returns true if `∂y/∂aᵢ` is finite wherever all arguments are, apart from overflow of products.
/// `nonzero(k)` states that argument k is a non-zero number.
pub(super) fn always_finite(f: Function, i: usize, nonzero: &dyn Fn(usize) -> bool) -> bool {
    match Finite::of(f) {
        Finite::All | Finite::Partials => true,
        Finite::NonzeroDivisor => i == 0 || nonzero(1),
        Finite::Quotient => nonzero(1),
        Finite::Result | Finite::Nothing => false,
    }
}

/// Returns true if the result may be infinite or NaN although all arguments are finite, apart from overflow
/// of sums and products.
pub(super) fn result_may_be_infinite(f: Function, nonzero: &dyn Fn(usize) -> bool) -> bool {
    match Finite::of(f) {
        Finite::All | Finite::Result => false,
        Finite::NonzeroDivisor | Finite::Quotient => !nonzero(1),
        Finite::Partials | Finite::Nothing => true,
    }
}
