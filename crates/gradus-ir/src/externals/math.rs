//! Math functions: the C math library, GNU and CUDA names, LLVM intrinsics.

use super::{Effects, ExternalFn, ExternalInfo, Index, Row, Shape};

macro_rules! math {
    ($($(#[$doc:meta])* $id:ident $shape:literal $result:literal
        [$($name:literal),*] $(llvm $stem:literal)? $(, $mark:ident)*;)*) => {
        /// A math function with one result; element-wise on vectors.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum MathFn { $($(#[$doc])* $id),* }

        impl MathFn {
            /// All math functions.
            pub const ALL: &[MathFn] = &[$(MathFn::$id),*];
            /// Returns the name of the C function for binary64, if any.
            pub fn c_name(self) -> Option<&'static str> {
                match self { $(MathFn::$id => [$($name),*].first().copied()),* }
            }
            /// Returns the stem of LLVM's intrinsic (`sin` of `llvm.sin.f64`), if any.
            pub fn intrinsic(self) -> Option<&'static str> {
                match self { $(MathFn::$id => math!(@stem $($stem)?)),* }
            }
            /// Returns the parameter kinds in order: `f` for a float, `i` for an integer, `p` for a pointer.
            pub fn params(self) -> &'static str {
                match self { $(MathFn::$id => $shape),* }
            }
            /// Returns whether the result is a float.
            pub fn gives_float(self) -> bool {
                match self { $(MathFn::$id => $result == 'f'),* }
            }
        }

        const ROWS: &[MathRow] = &[$(MathRow {
            id: MathFn::$id,
            names: &[$($name),*],
            stem: math!(@stem $($stem)?),
            shape: Shape { params: $shape, result: $result },
            marks: &[$(Mark::$mark),*],
        }),*];
    };
    (@stem) => { None };
    (@stem $stem:literal) => { Some($stem) };
}

/// Properties of a row besides the names.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    /// The C function may set errno.
    Errno,
    /// The result carries no derivative: the function is piecewise constant or not numeric.
    Inactive,
}

struct MathRow {
    id: MathFn,
    names: &'static [&'static str],
    stem: Option<&'static str>,
    shape: Shape,
    marks: &'static [Mark],
}

// table
math! {
    /// Sine.
    Sin "f" 'f' ["sin"] llvm "sin", Errno;
    /// Cosine.
    Cos "f" 'f' ["cos"] llvm "cos", Errno;
    /// Tangent.
    Tan "f" 'f' ["tan"] llvm "tan", Errno;
    /// sin(πa).
    Sinpi "f" 'f' ["sinpi"], Errno;
    /// cos(πa).
    Cospi "f" 'f' ["cospi"], Errno;
    /// tan(πa).
    Tanpi "f" 'f' ["tanpi"], Errno;
    /// Arc sine.
    Asin "f" 'f' ["asin"] llvm "asin", Errno;
    /// Arc cosine.
    Acos "f" 'f' ["acos"] llvm "acos", Errno;
    /// Arc tangent.
    Atan "f" 'f' ["atan"] llvm "atan";
    /// The angle of the point (second argument, first argument).
    Atan2 "ff" 'f' ["atan2"] llvm "atan2", Errno;
    /// asin(a) / π.
    Asinpi "f" 'f' ["asinpi"], Errno;
    /// acos(a) / π.
    Acospi "f" 'f' ["acospi"], Errno;
    /// atan(a) / π.
    Atanpi "f" 'f' ["atanpi"], Errno;
    /// The angle of the point (second argument, first argument), divided by π.
    Atan2pi "ff" 'f' ["atan2pi"], Errno;
    /// Hyperbolic sine.
    Sinh "f" 'f' ["sinh"] llvm "sinh", Errno;
    /// Hyperbolic cosine.
    Cosh "f" 'f' ["cosh"] llvm "cosh", Errno;
    /// Hyperbolic tangent.
    Tanh "f" 'f' ["tanh"] llvm "tanh", Errno;
    /// Inverse hyperbolic sine.
    Asinh "f" 'f' ["asinh"];
    /// Inverse hyperbolic cosine.
    Acosh "f" 'f' ["acosh"], Errno;
    /// Inverse hyperbolic tangent.
    Atanh "f" 'f' ["atanh"], Errno;
    /// e to the power of a.
    Exp "f" 'f' ["exp"] llvm "exp", Errno;
    /// 2 to the power of a.
    Exp2 "f" 'f' ["exp2"] llvm "exp2", Errno;
    /// 10 to the power of a.
    Exp10 "f" 'f' ["exp10", "pow10", "__exp10"] llvm "exp10", Errno;
    /// exp(a) − 1.
    Expm1 "f" 'f' ["expm1"], Errno;
    /// 2 to the power of a, minus 1.
    Exp2m1 "f" 'f' ["exp2m1"], Errno;
    /// 10 to the power of a, minus 1.
    Exp10m1 "f" 'f' ["exp10m1"], Errno;
    /// Natural logarithm.
    Log "f" 'f' ["log"] llvm "log", Errno;
    /// Logarithm to base 2.
    Log2 "f" 'f' ["log2"] llvm "log2", Errno;
    /// Logarithm to base 10.
    Log10 "f" 'f' ["log10"] llvm "log10", Errno;
    /// log(1 + a).
    Log1p "f" 'f' ["log1p", "logp1"], Errno;
    /// log₂(1 + a).
    Log2p1 "f" 'f' ["log2p1"], Errno;
    /// log₁₀(1 + a).
    Log10p1 "f" 'f' ["log10p1"], Errno;
    /// Square root.
    Sqrt "f" 'f' ["sqrt"] llvm "sqrt", Errno;
    /// Reciprocal square root.
    Rsqrt "f" 'f' ["rsqrt"], Errno;
    /// Cube root.
    Cbrt "f" 'f' ["cbrt"];
    /// a to the power of b.
    Pow "ff" 'f' ["pow"] llvm "pow", Errno;
    /// a to the power of an integer.
    Powi "fi" 'f' [] llvm "powi";
    /// √(a² + b²).
    Hypot "ff" 'f' ["hypot", "cabs"], Errno;
    /// Magnitude.
    Fabs "f" 'f' ["fabs"] llvm "fabs";
    /// The magnitude of a with the sign of b.
    Copysign "ff" 'f' ["copysign"] llvm "copysign";
    /// The minimum; if one operand is NaN, the other operand.
    Minnum "ff" 'f' ["fmin"] llvm "minnum";
    /// The maximum; if one operand is NaN, the other operand.
    Maxnum "ff" 'f' ["fmax"] llvm "maxnum";
    /// The minimum; NaN if an operand is NaN.
    Minimum "ff" 'f' ["fminimum"] llvm "minimum";
    /// The maximum; NaN if an operand is NaN.
    Maximum "ff" 'f' ["fmaximum"] llvm "maximum";
    /// The minimum with −0 < +0; if one operand is NaN, the other operand.
    MinimumNum "ff" 'f' ["fminimum_num"] llvm "minimumnum";
    /// The maximum with −0 < +0; if one operand is NaN, the other operand.
    MaximumNum "ff" 'f' ["fmaximum_num"] llvm "maximumnum";
    /// max(a − b, 0).
    Fdim "ff" 'f' ["fdim"], Errno;
    /// The greatest integer ≤ a.
    Floor "f" 'f' ["floor"] llvm "floor", Inactive;
    /// The least integer ≥ a.
    Ceil "f" 'f' ["ceil"] llvm "ceil", Inactive;
    /// The integer part.
    Trunc "f" 'f' ["trunc"] llvm "trunc", Inactive;
    /// The nearest integer, in the current rounding mode.
    Rint "f" 'f' ["rint"] llvm "rint", Inactive;
    /// The nearest integer, in the current rounding mode, without the inexact exception.
    Nearbyint "f" 'f' ["nearbyint"] llvm "nearbyint", Inactive;
    /// The nearest integer, halves away from zero.
    Round "f" 'f' ["round"] llvm "round", Inactive;
    /// The nearest integer, halves to even.
    RoundEven "f" 'f' ["roundeven"] llvm "roundeven", Inactive;
    /// The nearest integer as `long`, in the current rounding mode.
    Lrint "f" 'i' ["lrint"] llvm "lrint", Errno, Inactive;
    /// The nearest integer as `long long`, in the current rounding mode.
    Llrint "f" 'i' ["llrint"] llvm "llrint", Errno, Inactive;
    /// The nearest integer as `long`, halves away from zero.
    Lround "f" 'i' ["lround"] llvm "lround", Errno, Inactive;
    /// The nearest integer as `long long`, halves away from zero.
    Llround "f" 'i' ["llround"] llvm "llround", Errno, Inactive;
    /// a·b + c, rounded once.
    Fma "fff" 'f' ["fma"] llvm "fma";
    /// a·b + c, rounded once or twice.
    Fmuladd "fff" 'f' [] llvm "fmuladd";
    /// a − b·trunc(a/b).
    Fmod "ff" 'f' ["fmod"], Errno;
    /// a − b·rint(a/b).
    Remainder "ff" 'f' ["remainder", "drem"], Errno;
    /// The error function.
    Erf "f" 'f' ["erf"];
    /// 1 − erf(a).
    Erfc "f" 'f' ["erfc"], Errno;
    /// The inverse of erf.
    Erfinv "f" 'f' ["erfinv"], Errno;
    /// The gamma function.
    Tgamma "f" 'f' ["tgamma"], Errno;
    /// log |Γ(a)|.
    Lgamma "f" 'f' ["lgamma", "gamma"], Errno;
    /// The Bessel function J₀.
    J0 "f" 'f' ["j0"], Errno;
    /// The Bessel function J₁.
    J1 "f" 'f' ["j1"], Errno;
    /// The Bessel function Jₙ of the second argument.
    Jn "if" 'f' ["jn"], Errno;
    /// The Bessel function Y₀.
    Y0 "f" 'f' ["y0"], Errno;
    /// The Bessel function Y₁.
    Y1 "f" 'f' ["y1"], Errno;
    /// The Bessel function Yₙ of the second argument.
    Yn "if" 'f' ["yn"], Errno;
    /// a·2ⁿ.
    Ldexp "fi" 'f' ["ldexp"] llvm "ldexp", Errno;
    /// a·rⁿ for the machine's radix r.
    Scalbn "fi" 'f' ["scalbn", "scalbln"], Errno;
    /// The exponent, as an integer.
    Ilogb "f" 'i' ["ilogb"], Errno, Inactive;
    /// The exponent, as a float.
    Logb "f" 'f' ["logb"], Errno, Inactive;
    /// The next representable number after a in the direction of b.
    Nextafter "ff" 'f' ["nextafter", "nexttoward"], Errno;
    /// Quiets a signalling NaN; may flush a denormal.
    Canonicalize "f" 'f' [] llvm "canonicalize";
    /// Returns the argument; a barrier for reassociation.
    ArithmeticFence "f" 'f' [] llvm "arithmetic.fence";
    /// `llvm.is.fpclass`: tests the class of a number.
    IsClass "fi" 'i' [] llvm "is.fpclass", Inactive;
    /// A class test of the C library.
    Classify "f" 'i' ["__fpclassify", "__isnan", "isnan", "__isinf", "isinf", "__finite", "finite",
        "__signbit", "__issignaling"], Inactive;
    /// Saturating conversion to a signed integer.
    FptosiSat "f" 'i' [] llvm "fptosi.sat", Inactive;
    /// Saturating conversion to an unsigned integer.
    FptouiSat "f" 'i' [] llvm "fptoui.sat", Inactive;
    /// A NaN.
    Nan "p" 'f' ["nan"], Inactive;
}

impl MathRow {
    fn effects(&self, intrinsic: bool) -> Effects {
        let has = |mark| self.marks.contains(&mark);
        let mut effects = Effects::PURE;
        effects.writes.errno = has(Mark::Errno) && !intrinsic;
        effects.inactive = has(Mark::Inactive);
        if self.shape.params == "p" {
            effects = effects.reading(&[0]);
        }
        effects
    }
}

/// Functions with names that ISO C does not reserve, or reserves since C23 only: a program may define a function with
/// such a name.
// table
const UNRESERVED: &[MathFn] = &[
    MathFn::J0,
    MathFn::J1,
    MathFn::Jn,
    MathFn::Y0,
    MathFn::Y1,
    MathFn::Yn,
    MathFn::Erfinv,
    MathFn::Sinpi,
    MathFn::Cospi,
    MathFn::Tanpi,
    MathFn::Asinpi,
    MathFn::Acospi,
    MathFn::Atanpi,
    MathFn::Atan2pi,
    MathFn::Exp2m1,
    MathFn::Exp10m1,
    MathFn::Log2p1,
    MathFn::Log10p1,
    MathFn::Rsqrt,
];
/// Unreserved alternative names of rows with a reserved first name.
const UNRESERVED_NAMES: &[&str] = &["drem", "gamma", "logp1", "pow10"];

/// Returns whether a program may define a function called `name`, a name of row `id`.
pub(super) fn is_unreserved(name: &str, id: MathFn) -> bool {
    let stem = name.strip_suffix(['f', 'l']).unwrap_or(name);
    // `__nv_sinpi`: names with two underscores belong to implementations.
    !name.starts_with("__")
        && (UNRESERVED.contains(&id)
            || UNRESERVED_NAMES
                .iter()
                .any(|own| *own == stem || *own == name))
}

/// Adds all names of all rows to the index: `sin`, `sinf`, `sinl`, `__sin_finite` …, `__nv_sin`, `llvm.sin`.
pub(super) fn add_rows(index: &mut Index) {
    for row in ROWS {
        let known = ExternalFn::Math(row.id);
        let found = |intrinsic| ExternalInfo {
            known,
            effects: row.effects(intrinsic),
            shape: Some(row.shape),
        };
        if let Some(stem) = row.stem {
            index.intrinsics.insert(stem, found(true));
            index.add_effects(known, row.effects(true));
        }
        for name in row.names {
            for suffix in ["", "f", "l", "f128"] {
                index
                    .symbols
                    .insert(format!("{name}{suffix}"), found(false));
                let finite = format!("__{name}{suffix}_finite");
                index.symbols.insert(finite, found(true));
                index
                    .symbols
                    .insert(format!("__nv_{name}{suffix}"), found(true));
            }
            index.add_effects(known, row.effects(false));
        }
    }
}

/// Math functions with two results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MultiResultMathFn {
    /// `a, *sin, *cos`.
    Sincos,
    /// `a → {sin, cos}`.
    SincosPair,
    /// `a → {sin πa, cos πa}`.
    SincospiPair,
    /// `a, *integral → fraction`.
    Modf,
    /// `a → {fraction, integral}`.
    ModfPair,
    /// `a, *exponent → fraction`.
    Frexp,
    /// `a → {fraction, exponent}`.
    FrexpPair,
    /// `a, *sign → log |Γ(a)|`.
    LgammaR,
    /// `a, b, *quotient → remainder`.
    Remquo,
}

// table
pub(super) const OUT_ROWS: &[Row] = &[
    out(
        &["sincos", "sincosf", "sincosl"],
        MultiResultMathFn::Sincos,
        Effects::PURE.writing(&[1, 2]).errno(),
    ),
    out(
        &["llvm.sincos"],
        MultiResultMathFn::SincosPair,
        Effects::PURE,
    ),
    out(
        &["llvm.sincospi"],
        MultiResultMathFn::SincospiPair,
        Effects::PURE,
    ),
    out(
        &["modf", "modff", "modfl"],
        MultiResultMathFn::Modf,
        Effects::PURE.writing(&[1]),
    ),
    out(&["llvm.modf"], MultiResultMathFn::ModfPair, Effects::PURE),
    out(
        &["frexp", "frexpf", "frexpl"],
        MultiResultMathFn::Frexp,
        Effects::PURE.writing(&[1]),
    ),
    out(&["llvm.frexp"], MultiResultMathFn::FrexpPair, Effects::PURE),
    out(
        &[
            "lgamma_r",
            "lgammaf_r",
            "lgammal_r",
            "__lgamma_r_finite",
            "__lgammaf_r_finite",
        ],
        MultiResultMathFn::LgammaR,
        Effects::PURE.writing(&[1]).errno(),
    ),
    out(
        &["remquo", "remquof", "remquol"],
        MultiResultMathFn::Remquo,
        Effects::PURE.writing(&[2]).errno(),
    ),
];

const fn out(names: &'static [&'static str], id: MultiResultMathFn, effects: Effects) -> Row {
    Row {
        names,
        known: ExternalFn::MathOut(id),
        effects,
    }
}
