//! Tests of every rule: formulas against finite differences, emitted code against formulas, and the
//! predicates on uses, zeros and infinities. A missing derivative fails the test.

mod finiteness;

use super::formulas::Function;
use super::*;
use gradus_ir::{AttrSet, BinaryOp, Builder, CallInfo, FuncId};

/// A function under test, with its argument types as in `MathFn::params`.
struct Case {
    name: String,
    function: Function,
    params: &'static str,
}

fn cases() -> Vec<Case> {
    let mut all: Vec<Case> = (BinaryOp::ALL.iter())
        .filter(|op| op.is_float())
        .map(|op| Case {
            name: op.name().into(),
            function: Function::Binary(*op),
            params: "ff",
        })
        .collect();
    all.push(Case {
        name: "fneg".into(),
        function: Function::Neg,
        params: "f",
    });
    for &f in MathFn::ALL {
        if f.gives_float() && f != MathFn::Nan && !MISSING_DERIVATIVES.contains(&f) {
            all.push(Case {
                name: format!("{f:?}"),
                function: Function::Math(f),
                params: f.params(),
            });
        }
    }
    all
}

impl Case {
    fn value(&self, x: &[f64]) -> f64 {
        match self.function {
            Function::Binary(op) => f64_reference::binary(op, x),
            Function::Neg => -x[0],
            Function::Math(f) => f64_reference::math(f, x),
            other => panic!("{other:?} has a test of its own"),
        }
    }

    /// Returns points within the domain and away from kinks. A function with singular points between the standard
    /// points needs points of its own.
    fn points(&self) -> Vec<Vec<f64>> {
        use MathFn::*;
        let inner: &[f64] = match self.function {
            Function::Math(Asin | Acos | Asinpi | Acospi | Atanh | Erfinv) => {
                &[-0.9, -0.3, 0.2, 0.75]
            }
            Function::Math(Acosh) => &[1.1, 1.7, 4.0, 30.0],
            Function::Math(Log | Log2 | Log10 | Sqrt | Rsqrt | Pow | Y0 | Y1 | Yn) => {
                &[0.3, 1.0, 1.8, 5.25]
            }
            Function::Math(Log1p | Log2p1 | Log10p1) => &[-0.7, -0.1, 0.4, 5.25],
            Function::Math(Tgamma | Lgamma) => &[-2.3, -0.4, 0.3, 1.2, 3.5, 7.75, 20.5],
            Function::Math(Fmod | Remainder) | Function::Binary(BinaryOp::FRem) => {
                &[-5.3, -1.6, 0.7, 2.9, 11.3]
            }
            _ => &[-2.3, -0.4, 0.3, 1.2, 3.7],
        };
        let ints: &[f64] = match self.function {
            Function::Math(Powi) => &[-2.0, 0.0, 1.0, 2.0, 3.0, 5.0, 9.0],
            _ => &[-3.0, 0.0, 1.0, 4.0],
        };
        let mut points = vec![vec![]];
        for kind in self.params.chars() {
            let values = if kind == 'f' { inner } else { ints };
            let extend = |p: &Vec<f64>| {
                let p = p.clone();
                values
                    .iter()
                    .enumerate()
                    .map(move |(k, v)| {
                        let mut q = p.clone();
                        // Offsets keep any two arguments distinct: equal arguments are a kink of minimum and
                        // maximum.
                        q.push(if kind == 'f' {
                            v + 0.01 * (p.len() * k) as f64 + 0.13 * p.len() as f64
                        } else {
                            *v
                        });
                        q
                    })
                    .collect::<Vec<_>>()
            };
            points = points.iter().flat_map(extend).collect();
        }
        points.retain(|point| self.value(point).is_finite());
        assert!(points.len() > 1, "{}: points of the domain", self.name);
        points
    }

    /// Builds a body that computes the function once, on parameters of type `float` and `i32`. Returns the
    /// body and the op.
    fn body(&self, unit: &mut Unit, float: TypeId) -> (Body, Op) {
        let int = unit.types.int(32);
        let types: Vec<TypeId> = (self.params.chars())
            .map(|c| if c == 'f' { float } else { int })
            .collect();
        let mut body = Body::new(&types);
        let args = body.params().to_vec();
        let func = self.declare(unit, float, &types);
        let b = &mut Builder::new(unit, &mut body);
        let kind = match self.function {
            Function::Binary(op) => OpKind::Binary(op),
            Function::Neg => OpKind::FNeg,
            _ => {
                let func = func.expect("a function");
                let signature = b.unit.functions[func].ty;
                let callee = b.func(func);
                let op = b.call_with(CallInfo::plain(signature), callee, &args);
                return (body, op);
            }
        };
        let op = b.op(kind, &args, &[float], 0);
        (body, op)
    }

    fn declare(&self, unit: &mut Unit, float: TypeId, types: &[TypeId]) -> Option<FuncId> {
        let Function::Math(f) = self.function else {
            return None;
        };
        let ty = unit.types.func(float, types.to_vec());
        let name = match (f.c_name(), f.intrinsic()) {
            (Some(name), _) => name.to_string(),
            (None, stem) => format!(
                "llvm.{}.f64{}",
                stem?,
                if types.len() > 1 && f == MathFn::Powi {
                    ".i32"
                } else {
                    ""
                }
            ),
        };
        Some(unit.declare(&name, ty, AttrSet::default()))
    }

    fn rule(&self) -> (Unit, Body, Op, Rule) {
        let mut unit = Unit::default();
        let float = unit.types.f64();
        let (body, op) = self.body(&mut unit, float);
        let rule = rule(&unit, &body, op);
        let rule = rule.unwrap_or_else(|| panic!("{} has no derivative", self.name));
        (unit, body, op, rule)
    }
}

/// Computes a derivative by Richardson extrapolation of central differences.
fn difference(f: impl Fn(f64) -> f64, x: f64) -> f64 {
    let central = |h: f64| (f(x + h) - f(x - h)) / (2.0 * h);
    let h = 1e-3 * x.abs().max(0.1);
    let (one, two, four) = (central(h), central(h / 2.0), central(h / 4.0));
    let (a, b) = ((4.0 * two - one) / 3.0, (4.0 * four - two) / 3.0);
    (16.0 * b - a) / 15.0
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

#[test]
fn every_derivative_agrees_with_differences() {
    for case in cases() {
        let (_, _, _, rule) = case.rule();
        let (mut tried, step) = (
            0,
            matches!(case.function, Function::Math(MathFn::Nextafter)),
        );
        for point in case.points() {
            let y = case.value(&point);
            for i in rule.float_args().filter(|_| y.is_finite()) {
                let along = |t: f64| {
                    let mut p = point.clone();
                    p[i] = t;
                    case.value(&p)
                };
                let expected = difference(along, point[i]);
                if !expected.is_finite() {
                    continue;
                }
                let got = f64_reference::formula(&rule.formulas[i][0], &point, &[y], 1.0);
                let tolerance = if step { 1e-6 } else { 3e-8 };
                assert!(
                    close(got, expected, tolerance),
                    "{} by argument {i} at {point:?}: {got}, differences say {expected}",
                    case.name
                );
                tried += 1;
            }
        }
        assert!(tried > 2, "{}: {tried} points", case.name);
    }
}

#[test]
fn code_agrees_with_formula() {
    for case in cases() {
        for point in case.points() {
            let (mut unit, mut body, op, rule) = case.rule();
            let args: Vec<Option<Value>> = body.params().iter().copied().map(Some).collect();
            let result = Some(body.result(op));
            let float = unit.types.f64();
            let y = case.value(&point);
            let mut expected = 0.0;
            let b = &mut Builder::new(&mut unit, &mut body);
            let seeds = [0.75, -1.5, 0.5];
            let tangents: Vec<Option<Value>> = (0..args.len())
                .map(|i| Some(b.float(float, seeds[i])))
                .collect();
            let mut adjoints = Vec::new();
            for i in rule.float_args() {
                let seed = tangents[i].expect("just made");
                let adjoint = rule.build_adjoint(b, i, &args, result, seed);
                let value = f64_reference::formula(&rule.formulas[i][0], &point, &[y], seeds[i]);
                assert_eq!(adjoint.is_none(), rule.zero(i), "{}", case.name);
                adjoints.extend(adjoint.map(|a| (a, value)));
                expected += value;
            }
            let tangent = rule.build_tangent(b, &args, result, &tangents);
            for (got, value) in adjoints {
                let got = f64_reference::run(&unit, &body, &point, got);
                assert!(
                    same(got, value),
                    "{} at {point:?}: {got} {value}",
                    case.name
                );
            }
            let got = tangent.map_or(0.0, |t| f64_reference::run(&unit, &body, &point, t));
            assert!(
                same(got, expected),
                "{} at {point:?}: {got} {expected}",
                case.name
            );
        }
    }
}

fn same(a: f64, b: f64) -> bool {
    a.is_nan() && b.is_nan() || a == b || close(a, b, 1e-13)
}

#[test]
fn uses_are_sufficient_and_exact() {
    for case in cases() {
        let (_, _, _, rule) = case.rule();
        for i in rule.float_args() {
            let uses = rule.uses(i);
            for k in 0..rule.arg_count() {
                let named = rule.formulas[i].iter().any(|f| {
                    f.live_nodes()
                        .any(|(_, n)| *n == Node::Arg(k) || n.int_arg() == Some(k))
                });
                assert_eq!(uses.arg(k), named, "{}", case.name);
            }
            assert!(!rule.zero(i) || uses.is_none(), "{}", case.name);
        }
    }
}

/// Returns number and kinds of the ops that are built for `∂pow(x, n)/∂x` with seed one.
fn power_ops(n: f64) -> (usize, Vec<String>) {
    let mut unit = Unit::default();
    let float = unit.types.f64();
    let ty = unit.types.func(float, vec![float, float]);
    let pow = unit.declare("pow", ty, AttrSet::default());
    let mut body = Body::new(&[float]);
    let x = body.params()[0];
    let b = &mut Builder::new(&mut unit, &mut body);
    let n = b.float(float, n);
    let op = b.call(pow, &[x, n]);
    let rule = rule(b.unit, b.body, op).expect("pow has a rule");
    assert!(!rule.maybe_infinite(0));
    assert_eq!(rule.uses(0).result, false);
    let one = b.float(float, 1.0);
    rule.build_adjoint(b, 0, &[Some(x), None], None, one);
    let built = |o: &Op| *o != op;
    let ops = body.ops_in(body.root()).filter(built);
    let kinds: Vec<String> = ops.map(|o| format!("{:?}", body.kind(o))).collect();
    (kinds.len(), kinds)
}

#[test]
fn cube_needs_two_products() {
    let (count, kinds) = power_ops(3.0);
    assert_eq!(count, 2, "{kinds:?}");
    assert!(kinds.iter().all(|k| k == "Binary(FMul)"), "{kinds:?}");
    assert_eq!(power_ops(2.0).0, 1);
    assert_eq!(power_ops(1.0).0, 0);
}

#[test]
fn only_variable_divisor_is_infinite() {
    let mut unit = Unit::default();
    let float = unit.types.f64();
    let mut body = Body::new(&[float, float]);
    let (x, z) = (body.params()[0], body.params()[1]);
    let b = &mut Builder::new(&mut unit, &mut body);
    let three = b.float(float, 3.0);
    let by_number = b.fdiv(x, three);
    let by_variable = b.fdiv(x, z);
    let rule_of = |v| rule(&unit, &body, body.def_op(v).expect("an op")).expect("a rule");
    assert!(!rule_of(by_number).maybe_infinite(0));
    assert!(rule_of(by_number).uses(0).is_none());
    assert!(rule_of(by_variable).maybe_infinite(0));
    let uses = rule_of(by_variable).uses(1);
    assert!(uses.result && uses.arg(1) && !uses.arg(0));
}

#[test]
fn seeds_are_converted_between_formats() {
    let mut unit = Unit::default();
    let (double, single) = (unit.types.f64(), unit.types.float(FloatKind::F32));
    let mut body = Body::new(&[single]);
    let x = body.params()[0];
    let b = &mut Builder::new(&mut unit, &mut body);
    let wide = b.cast(CastOp::FPExt, x, double);
    let rule = rule(b.unit, b.body, b.body.def_op(wide).expect("a cast")).expect("a rule");
    let seed = b.float(double, 1.0);
    let adjoint = rule
        .build_adjoint(b, 0, &[None], None, seed)
        .expect("not zero");
    assert_eq!(b.body.ty(adjoint), single);
    let seed = b.float(single, 1.0);
    let tangent = rule
        .build_tangent(b, &[None], None, &[Some(seed)])
        .expect("not zero");
    assert_eq!(b.body.ty(tangent), double);
}

#[test]
fn vectors_share_scalar_rules() {
    for case in cases() {
        let Function::Math(f) = case.function else {
            continue;
        };
        let Some(stem) = f.intrinsic() else {
            continue;
        };
        if matches!(f, MathFn::Powi | MathFn::Ldexp) {
            continue;
        }
        let mut unit = Unit::default();
        let single = unit.types.float(FloatKind::F32);
        let lanes = unit.types.vector(single, 4);
        let types = vec![lanes; case.params.len()];
        let ty = unit.types.func(lanes, types.clone());
        let func = unit.declare(&format!("llvm.{stem}.v4f32"), ty, AttrSet::default());
        let mut body = Body::new(&types);
        let args: Vec<Value> = body.params().to_vec();
        let b = &mut Builder::new(&mut unit, &mut body);
        let op = b.call(func, &args);
        let rule = rule(b.unit, b.body, op).unwrap_or_else(|| panic!("{} of vectors", case.name));
        let (args, result) = (
            args.into_iter().map(Some).collect::<Vec<_>>(),
            b.body.result(op),
        );
        for i in rule.float_args() {
            if let Some(a) = rule.build_adjoint(b, i, &args, Some(result), result) {
                assert_eq!(b.body.ty(a), lanes, "{}", case.name);
            }
        }
        for (_, function) in unit.functions.iter() {
            assert!(function.name.ends_with(".v4f32"), "{}", function.name);
        }
    }
}

/// Checks each complex function against finite differences, at a point of its principal branch and without
/// the Cauchy–Riemann equations.
#[test]
fn complex_partials_match_differences() {
    use gradus_ir::externals::ComplexFn::*;
    type C = (f64, f64);
    fn mul(a: C, b: C) -> C {
        (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
    }
    fn div(a: C, b: C) -> C {
        let n = b.0 * b.0 + b.1 * b.1;
        let (re, im) = mul(a, (b.0, -b.1));
        (re / n, im / n)
    }
    fn exp(a: C) -> C {
        (a.0.exp() * a.1.cos(), a.0.exp() * a.1.sin())
    }
    fn log(a: C) -> C {
        (a.0.hypot(a.1).ln(), a.1.atan2(a.0))
    }
    fn sqrt(a: C) -> C {
        let l = log(a);
        exp((0.5 * l.0, 0.5 * l.1))
    }
    fn add(a: C, b: C) -> C {
        (a.0 + b.0, a.1 + b.1)
    }
    fn sinh(a: C) -> C {
        let (p, m) = (exp(a), exp((-a.0, -a.1)));
        (0.5 * (p.0 - m.0), 0.5 * (p.1 - m.1))
    }
    fn cosh(a: C) -> C {
        let (p, m) = (exp(a), exp((-a.0, -a.1)));
        (0.5 * (p.0 + m.0), 0.5 * (p.1 + m.1))
    }
    fn rotate_argument(f: fn(C) -> C, a: C) -> C {
        // f(ia)/i
        let r = f((-a.1, a.0));
        (r.1, -r.0)
    }
    fn asinh(a: C) -> C {
        log(add(a, sqrt(add(mul(a, a), (1.0, 0.0)))))
    }
    fn acosh(a: C) -> C {
        let s = mul(sqrt(add(a, (1.0, 0.0))), sqrt(add(a, (-1.0, 0.0))));
        log(add(a, s))
    }
    fn atanh(a: C) -> C {
        let r = log(div(add((1.0, 0.0), a), add((1.0, 0.0), (-a.0, -a.1))));
        (0.5 * r.0, 0.5 * r.1)
    }
    let one: [(gradus_ir::externals::ComplexFn, fn(C) -> C); 14] = [
        (Exp, exp),
        (Log, log),
        (Sqrt, sqrt),
        (Sin, |z| rotate_argument(sinh, z)),
        (Cos, |z| cosh((-z.1, z.0))),
        (Tan, |z| div(rotate_argument(sinh, z), cosh((-z.1, z.0)))),
        (Sinh, sinh),
        (Cosh, cosh),
        (Tanh, |z| div(sinh(z), cosh(z))),
        (Asin, |z| rotate_argument(asinh, z)),
        (Acos, |z| {
            let r = rotate_argument(asinh, z);
            (std::f64::consts::FRAC_PI_2 - r.0, -r.1)
        }),
        (Atan, |z| rotate_argument(atanh, z)),
        (Asinh, asinh),
        (Atanh, atanh),
    ];
    for (f, value) in one {
        check_complex(f, 2, &|x| value((x[0], x[1])));
    }
    check_complex(Acosh, 2, &|x| acosh((x[0], x[1])));
    check_complex(Pow, 4, &|x| exp(mul((x[2], x[3]), log((x[0], x[1])))));
}

fn check_complex(
    f: gradus_ir::externals::ComplexFn,
    count: usize,
    value: &dyn Fn(&[f64]) -> (f64, f64),
) {
    let double = Unit::default().types.f64();
    let point = [0.7, 0.3, 1.1, 0.4];
    let arg = Argument {
        ty: double,
        constant: None,
        number: None,
        float: true,
    };
    let args = vec![arg; count];
    let parts = |p: &[f64]| {
        let (re, im) = value(p);
        [re, im]
    };
    for i in 0..count {
        let formulas = write(Function::Complex(f), i, &args).expect("a formula");
        for (j, formula) in formulas.iter().enumerate() {
            let along = |t: f64| {
                let mut p = point;
                p[i] = t;
                parts(&p)[j]
            };
            let got = f64_reference::formula(formula, &point[..count], &parts(&point), 1.0);
            let expected = difference(along, point[i]);
            assert!(
                close(got, expected, 1e-7),
                "{f:?} {j} by {i}: {got} {expected}"
            );
        }
    }
}

#[test]
fn pair_partials_match_differences() {
    let pairs: [(Function, usize, fn(&[f64]) -> [f64; 2]); 5] = [
        (Function::Sincos, 1, |x| [x[0].sin(), x[0].cos()]),
        (Function::Sincospi, 1, |x| {
            let (s, c) = (std::f64::consts::PI * x[0]).sin_cos();
            [s, c]
        }),
        (Function::Frexp, 1, |x| {
            let (fraction, exponent) = libm::frexp(x[0]);
            [fraction, f64::from(exponent)]
        }),
        (Function::ComplexMul, 4, |x| {
            [x[0] * x[2] - x[1] * x[3], x[0] * x[3] + x[1] * x[2]]
        }),
        (Function::ComplexDiv, 4, |x| {
            let n = x[2] * x[2] + x[3] * x[3];
            [
                (x[0] * x[2] + x[1] * x[3]) / n,
                (x[1] * x[2] - x[0] * x[3]) / n,
            ]
        }),
    ];
    let double = Unit::default().types.f64();
    let point = [0.7, -1.3, 2.1, 0.4];
    for (function, n, value) in pairs {
        let arg = Argument {
            ty: double,
            constant: None,
            number: None,
            float: true,
        };
        let args = vec![arg; n];
        for i in 0..n {
            let formulas = write(function, i, &args).expect("a formula");
            for (j, formula) in formulas.iter().enumerate() {
                let along = |t: f64| {
                    let mut p = point;
                    p[i] = t;
                    value(&p)[j]
                };
                let got = f64_reference::formula(formula, &point[..n], &value(&point), 1.0);
                let expected = difference(along, point[i]);
                assert!(
                    close(got, expected, 1e-8),
                    "{function:?} {j} by {i}: {got} {expected}"
                );
            }
        }
    }
}

#[test]
fn emitted_digamma_matches_reference() {
    let mut unit = Unit::default();
    let double = unit.types.f64();
    let mut body = Body::new(&[double]);
    let a = body.params()[0];
    let value = digamma::emit_call(&mut Builder::new(&mut unit, &mut body), a);
    for a in [
        -20.3,
        -5.5,
        -0.25,
        1e-3,
        0.3,
        1.0,
        1.4616321449683622,
        2.0,
        9.99,
        10.0,
        33.0,
        1e6,
    ] {
        let got = f64_reference::run(&unit, &body, &[a], value);
        let expected = f64_reference::digamma(a);
        assert!(close(got, expected, 3e-12), "{a}: {got} {expected}");
    }
    // ψ(1) = −γ, ψ(½) = −γ − 2 ln 2.
    let gamma = 0.577_215_664_901_532_9;
    for (a, expected) in [(1.0, -gamma), (0.5, -gamma - 2.0 * 2f64.ln())] {
        let got = f64_reference::run(&unit, &body, &[a], value);
        assert!(close(got, expected, 2e-15), "{a}: {got} {expected}");
    }
}

#[test]
fn out_parameters_become_stores() {
    let mut unit = Unit::default();
    let (double, ptr, void) = (unit.types.f64(), unit.types.ptr(), unit.types.void());
    let sincos = unit.types.func(void, vec![double, ptr, ptr]);
    let sincos = unit.declare("sincos", sincos, AttrSet::default());
    let modf = unit.types.func(double, vec![double, ptr]);
    let modf = unit.declare("modf", modf, AttrSet::default());
    let mut body = Body::new(&[double, ptr, ptr]);
    let (a, p, q) = (body.params()[0], body.params()[1], body.params()[2]);
    let b = &mut Builder::new(&mut unit, &mut body);
    b.call(sincos, &[a, p, q]);
    let op = b.call(modf, &[a, p]);
    let fraction = b.body.result(op);
    b.return_(Some(fraction));
    assert_eq!(legalize_calls(&mut unit, &mut body), 2);
    let stores = body
        .ops_in(body.root())
        .filter(|op| matches!(body.kind(*op), OpKind::Store(_)))
        .count();
    assert_eq!(stores, 3);
    assert_eq!(legalize_calls(&mut unit, &mut body), 0);
}

#[test]
fn reductions_are_scalarized() {
    for (name, start) in [("fmul", true), ("fmax", false), ("fminimum", false)] {
        let mut unit = Unit::default();
        let double = unit.types.f64();
        let four = unit.types.vector(double, 4);
        let params = if start {
            vec![double, four]
        } else {
            vec![four]
        };
        let ty = unit.types.func(double, params.clone());
        let name = format!("llvm.vector.reduce.{name}.v4f64");
        let func = unit.declare(&name, ty, AttrSet::default());
        let mut body = Body::new(&params);
        let args = body.params().to_vec();
        let b = &mut Builder::new(&mut unit, &mut body);
        let op = b.call(func, &args);
        let result = b.body.result(op);
        b.return_(Some(result));
        assert_eq!(legalize_calls(&mut unit, &mut body), 1);
        let ruled = body
            .ops_in(body.root())
            .filter(|op| rule(&unit, &body, *op).is_some());
        assert_eq!(ruled.count(), 3 + usize::from(start), "{name}");
        assert_eq!(
            body.ops_in(body.root()).count(),
            4 + 3 + usize::from(start) + 1,
            "{name}"
        );
    }
}

#[test]
fn realloc_becomes_malloc_copy_free() {
    let mut unit = Unit::default();
    let (ptr, size) = (unit.types.ptr(), unit.types.int(64));
    let ty = unit.types.func(ptr, vec![ptr, size]);
    let func = unit.declare("realloc", ty, AttrSet::default());
    let mut body = Body::new(&[ptr, size]);
    let args = body.params().to_vec();
    let b = &mut Builder::new(&mut unit, &mut body);
    let op = b.call(func, &args);
    let result = b.body.result(op);
    b.return_(Some(result));
    assert_eq!(legalize_calls(&mut unit, &mut body), 1);
    let callees: Vec<&str> = body
        .walk(body.root())
        .filter_map(|op| unit.callee(&body, op))
        .map(|func| unit.functions[func].name.as_str())
        .collect();
    let expected = [
        "malloc",
        "malloc_usable_size",
        "llvm.memcpy.p0.p0.i64",
        "free",
    ];
    assert_eq!(callees, expected);
    let back = body.last(body.root()).map(|op| body.operand(op, 0));
    let first = body.first(body.root()).map(|op| body.result(op));
    assert_eq!(back, first);
}

/// Returns a unit with a constant table of functions, and a body that calls entry `i` of the table on `x`.
fn table_call(constant: bool) -> (Unit, Body) {
    let mut unit = Unit::default();
    let (double, ptr, int) = (unit.types.f64(), unit.types.ptr(), unit.types.int(64));
    let ty = unit.types.func(double, vec![double]);
    let other = unit.types.func(double, vec![double, double]);
    let names = [("sin", ty), ("pow", other), ("exp", ty), ("cos", ty)];
    let functions = names.map(|(name, ty)| unit.declare(name, ty, AttrSet::default()));
    let array = unit.types.array(ptr, 4);
    let relocations = functions
        .iter()
        .enumerate()
        .map(|(k, func)| gradus_ir::Relocation {
            offset_bytes: 8 * k as u64,
            target: gradus_ir::Symbol::Func(*func),
            addend: 0,
        });
    let table = unit.add_global(gradus_ir::Global {
        name: "table".into(),
        ty: array,
        constant,
        thread_local: false,
        defined: true,
        linkage: gradus_ir::Linkage::Internal,
        align_bytes: 8,
        init: Some(gradus_ir::Initializer {
            bytes: vec![0; 32],
            relocations: relocations.collect(),
        }),
        unparsed_symbols: Vec::new(),
        room_bytes: 0,
        derived_from: None,
    });
    let mut body = Body::new(&[double, int]);
    let (x, i) = (body.params()[0], body.params()[1]);
    let kind = ConstKind::Global {
        global: table,
        offset: 0,
    };
    let base = unit.consts.intern(ptr, kind);
    let b = &mut Builder::new(&mut unit, &mut body);
    let base = b.constant(base);
    let address = b.addr(ptr, base, i);
    let callee = b.load(ptr, address);
    let op = b.call_with(CallInfo::plain(ty), callee, &[x]);
    let result = b.body.result(op);
    b.return_(Some(result));
    (unit, body)
}

#[test]
fn constant_table_calls_are_direct() {
    let (mut unit, mut body) = table_call(true);
    assert_eq!(legalize_calls(&mut unit, &mut body), 1);
    let callees: Vec<&str> = body
        .walk(body.root())
        .filter_map(|op| unit.callee(&body, op))
        .map(|func| unit.functions[func].name.as_str())
        .collect();
    assert_eq!(callees, ["sin", "exp", "cos"]);
    let last = body.last(body.root()).expect("a return");
    let result = body.def_op(body.operand(last, 0)).expect("an op");
    assert!(matches!(body.kind(result), OpKind::If));
    let (mut unit, mut body) = table_call(false);
    assert_eq!(legalize_calls(&mut unit, &mut body), 0);
}

#[test]
fn derivatives_page_is_current() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/derivatives.md"
    );
    let now = manual();
    if std::env::var_os("GRADUS_BLESS").is_some() {
        std::fs::write(file, &now).expect("the manual can be written");
    }
    let then = std::fs::read_to_string(file).unwrap_or_default();
    assert_eq!(
        then, now,
        "cargo xtask bless writes docs/reference/derivatives.md anew"
    );
}
