//! Expected results of candle's elementwise kernels.

use super::{BF16, Expected, F8, F16, F32, F64, FP8, I16, I32, I64, Type, U8, U32};

const COUNT: usize = 40;

/// Returns the index of an element of five rows of eight in column-major order.
fn column_major_index(i: usize) -> usize {
    (i % 8) * 5 + i / 8
}

fn seen_turned(values: &[f64]) -> Vec<f64> {
    (0..COUNT).map(|i| values[column_major_index(i)]).collect()
}

fn map(values: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    values.iter().map(|&x| f(x)).collect()
}

/// Returns the expectations for `affine.cu`.
pub fn affine() -> Vec<Expected> {
    let mut expected = Vec::new();
    for ty in [F32, F64, F16, BF16, F8, U8, U32, I16, I32, I64] {
        let x = ty.input(COUNT, 1);
        let f = |x: f64| 3.0 * x + 2.0;
        // Two roundings, of the product and of the sum.
        expected.push(ty.within("affine", map(&x, f), 4.0));
        expected.push(ty.within("affine_strided", map(&seen_turned(&x), f), 4.0));
    }
    expected
}

/// The error function by its power series, for arguments below 2.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..60 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

fn normal(x: f64) -> f64 {
    (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)) / 2.0
}

fn gelu(x: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
    0.5 * x * (1.0 + inner.tanh())
}

fn sign(x: f64) -> f64 {
    f64::from(i8::from(x > 0.0) - i8::from(x < 0.0))
}

fn elu(x: f64) -> f64 {
    if x > 0.0 { x } else { 2.0 * x.exp_m1() }
}

type Function = (&'static str, fn(f64) -> f64);

/// Functions with a single rounding.
const PLAIN: &[Function] = &[
    ("uneg", |x| -x),
    ("urecip", |x| 1.0 / x),
    ("uexp", f64::exp),
    ("ulog", f64::ln),
    ("usin", f64::sin),
    ("ucos", f64::cos),
    ("utanh", f64::tanh),
    ("uerf", erf),
    ("uceil", f64::ceil),
    ("ufloor", f64::floor),
    ("uround", f64::round),
    ("unormcdf", normal),
    ("uabs", f64::abs),
    ("usqr", |x| x * x),
    ("usqrt", f64::sqrt),
    ("urelu", |x| x.max(0.0)),
    ("usign", sign),
    ("upowf", |x| x * x),
];

/// Functions with several roundings.
const COMPOSED: &[Function] = &[
    ("ugelu", gelu),
    ("ugelu_erf", |x| x * normal(x)),
    ("usilu", |x| x / (1.0 + (-x).exp())),
    ("usigmoid", |x| 1.0 / (1.0 + (-x).exp())),
    ("uelu", elu),
];

/// Returns the expectations for `unary.cu`.
pub fn unary() -> Vec<Expected> {
    let mut expected = Vec::new();
    for ty in [F32, F64, F16, BF16, FP8] {
        let x = ty.input(COUNT, 1);
        for (name, f) in PLAIN {
            expected.push(ty.expects(name, map(&x, f)));
        }
        for (name, f) in COMPOSED {
            expected.push(ty.within(name, map(&x, f), 8.0));
        }
    }
    for ty in [U8, I64, BF16] {
        expected.push(ty.expects("ucopy", ty.input(COUNT, 1)));
    }
    expected
}

type Operation = (&'static str, fn(f64, f64) -> f64);

const SUMS: &[Operation] = &[
    ("badd", |x, y| x + y),
    ("bmul", |x, y| x * y),
    ("bsub", |x, y| x - y),
];
const ORDERS: &[Operation] = &[
    ("bmaximum", f64::max),
    ("bminimum", f64::min),
    ("eq", |x, y| f64::from(x == y)),
    ("ne", |x, y| f64::from(x != y)),
    ("lt", |x, y| f64::from(x < y)),
    ("le", |x, y| f64::from(x <= y)),
    ("gt", |x, y| f64::from(x > y)),
    ("ge", |x, y| f64::from(x >= y)),
];

/// Returns the expectations for `binary.cu`.
pub fn binary() -> Vec<Expected> {
    let mut expected = Vec::new();
    let mut all = |ty: Type, operations: &[Operation]| {
        let (x, y) = (ty.input(COUNT, 1), ty.input(COUNT, 2));
        for (name, f) in operations {
            let pairs = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(&x, &y)| f(x, y)).collect();
            expected.push(ty.expects(name, pairs(&x, &y)));
            expected.push(ty.expects(&format!("{name}_right"), pairs(&x, &seen_turned(&y))));
            expected.push(ty.expects(&format!("{name}_left"), pairs(&seen_turned(&x), &y)));
        }
    };
    for ty in [F32, F64, F16, BF16, F8] {
        all(ty, SUMS);
        all(ty, &[("bdiv", |x, y| x / y)]);
        all(ty, ORDERS);
    }
    for ty in [U8, U32, I64] {
        all(ty, SUMS);
    }
    all(U8, ORDERS);
    all(I64, ORDERS);
    expected
}

/// Decodes an 8-bit float: four exponent bits, three fraction bits, no infinities.
fn eight_bits(code: u8) -> f64 {
    let (exponent, digits) = (i32::from(code >> 3 & 15), f64::from(code & 7));
    let size = match (code & 0x7f, exponent) {
        (0x7f, _) => f64::NAN,
        (_, 0) => digits * 2f64.powi(-9),
        _ => (8.0 + digits) * 2f64.powi(exponent - 10),
    };
    if code & 0x80 == 0 { size } else { -size }
}

/// Rounds to the nearest 8-bit float, ties to even; saturates.
fn to_eight_bits(x: f64) -> f64 {
    let far = |code: &u8| (eight_bits(*code) - x.abs()).abs();
    let by_distance = |a: &u8, b: &u8| far(a).total_cmp(&far(b)).then((a % 2).cmp(&(b % 2)));
    let nearest = (0..0x7f).min_by(by_distance).unwrap_or(0);
    eight_bits(nearest).copysign(x)
}

/// Returns the expectations for `cast.cu`.
pub fn cast() -> Vec<Expected> {
    let mut expected = Vec::new();
    for (from, to) in [
        (F32, F64),
        (F64, F32),
        (F32, F16),
        (F16, F32),
        (F32, BF16),
        (BF16, F32),
        (F32, F8),
        (F8, F32),
        (U8, F32),
        (U8, F16),
        (U32, BF16),
        (U8, F8),
        (I64, U8),
    ] {
        let x = from.input(COUNT, 1);
        let x = match to.suffix {
            "f8_e4m3" => map(&x, to_eight_bits),
            _ => x,
        };
        let name = |form: &str| format!("{form}_{}_{}", from.suffix, to.suffix);
        expected.push(Expected::exact(name("cast"), x.clone()));
        expected.push(Expected::exact(name("cast_strided"), seen_turned(&x)));
    }
    let all = (0..=255).map(eight_bits).collect();
    expected.push(Expected::exact("eight_bits".into(), all));
    let between = |i: i32| f64::from(if i % 2 == 0 { i * i } else { -i * i }) / 32768.0;
    let narrow = (0..4096).map(|i| to_eight_bits(between(i))).collect();
    expected.push(Expected::exact("to_eight_bits".into(), narrow));
    expected
}

/// Returns the expectations for `ternary.cu`.
pub fn ternary() -> Vec<Expected> {
    let mut expected = Vec::new();
    for (ids, ty) in [
        ("u8", F32),
        ("u32", F64),
        ("i64", F16),
        ("u8", BF16),
        ("i16", FP8),
        ("i64", I64),
        ("u32", U8),
    ] {
        let (x, y) = (ty.input(COUNT, 1), ty.input(COUNT, 2));
        let choose = |x: &[f64]| {
            let chosen = (0..COUNT).map(|i| if i % 3 == 0 { x[i] } else { y[i] });
            chosen.collect()
        };
        expected.push(ty.expects(&format!("where_{ids}"), choose(&x)));
        expected.push(ty.expects(&format!("where_strided_{ids}"), choose(&seen_turned(&x))));
    }
    expected
}

/// Returns the expectations for `fill.cu`.
pub fn fill() -> Vec<Expected> {
    let mut expected = Vec::new();
    for ty in [F32, F64, F16, BF16, F8, U8, U32, I64] {
        let x = ty.input(COUNT, 1);
        let mut y = vec![3.0; COUNT];
        expected.push(ty.expects("fill", y.clone()));
        for row in 0..4 {
            y[row * 10..row * 10 + 5].copy_from_slice(&x[row * 8..row * 8 + 5]);
        }
        expected.push(ty.expects("copy2d", y.clone()));
        for row in 0..5 {
            y[row * 4] = 1.0;
            y[row * 4 + 20] = 1.0;
        }
        expected.push(ty.expects("const_set", y));
    }
    expected
}
