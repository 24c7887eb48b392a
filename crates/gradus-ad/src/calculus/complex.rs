//! Formulas of complex functions: `f'(x + iy) = u + iv` in terms of arguments and result.
//!
//! By the Cauchy–Riemann equations, two numbers determine the four partial derivatives of an analytic
//! function. The partials of the real part are `u` and `−v`; the partials of the imaginary part are `v` and
//! `u`. Each formula is `(u, v)`.

use super::formulas::RuleInputs;
use crate::calculus::expr::Expr;
use gradus_ir::externals::{ComplexFn, MathFn};

type Complex<'p> = (Expr<'p>, Expr<'p>);

/// Returns `d · ∂resultⱼ/∂argᵢ`. Arguments alternate between real and imaginary parts.
pub(super) fn times_partial<'p>(
    f: ComplexFn,
    i: usize,
    j: usize,
    g: &RuleInputs<'p>,
) -> Option<Expr<'p>> {
    let z = (g.args[0], *g.args.get(1)?);
    let (u, v) = match (f, i / 2) {
        (ComplexFn::Pow, 0) => {
            let w = (*g.args.get(2)?, *g.args.get(3)?);
            by_base(z, w, (g.results[0], g.results[1]))
        }
        (ComplexFn::Pow, _) => times((g.results[0], g.results[1]), logarithm(z)),
        (_, 0) => derivative(f, z, (g.results[0], g.results[1]))?,
        _ => return None,
    };
    let d = g.seed;
    Some(match (j, i % 2) {
        (0, 0) => d * u,
        (0, _) => -(d * v),
        (_, 0) => d * v,
        (_, _) => d * u,
    })
}

/// Returns `f'` at `z`, where the result of the function is `r`.
// table
fn derivative<'p>(f: ComplexFn, z: Complex<'p>, r: Complex<'p>) -> Option<Complex<'p>> {
    let (x, y) = z;
    let one = (x.num(1.0), x.num(0.0));
    Some(match f {
        ComplexFn::Exp => r,
        ComplexFn::Log => reciprocal(z), // 0: infinite
        ComplexFn::Sqrt => {
            let (u, v) = reciprocal(r); // 0: infinite
            (0.5 * u, 0.5 * v)
        }
        ComplexFn::Sin => cosine(z),
        ComplexFn::Cos => negative(sine(z)),
        ComplexFn::Tan => sum(one, times(r, r)),
        ComplexFn::Sinh => cosine((-y, x)),
        ComplexFn::Cosh => {
            // sinh z = −i sin iz
            let (u, v) = sine((-y, x));
            (v, -u)
        }
        ComplexFn::Tanh => sum(one, negative(times(r, r))),
        ComplexFn::Asin => reciprocal(cosine(r)),
        ComplexFn::Acos => negative(reciprocal(sine(r))),
        ComplexFn::Atan => reciprocal(sum(one, times(z, z))),
        ComplexFn::Asinh => reciprocal(cosine((-r.1, r.0))),
        ComplexFn::Acosh => {
            let (u, v) = sine((-r.1, r.0));
            reciprocal((v, -u))
        }
        ComplexFn::Atanh => reciprocal(sum(one, negative(times(z, z)))),
        ComplexFn::Mul | ComplexFn::Div | ComplexFn::Arg | ComplexFn::Pow => return None,
    })
}

/// Returns `w z^(w−1)`, computed from the power `r`.
fn by_base<'p>(z: Complex<'p>, w: Complex<'p>, r: Complex<'p>) -> Complex<'p> {
    times(times(w, r), reciprocal(z))
}

fn logarithm<'p>((x, y): Complex<'p>) -> Complex<'p> {
    let size = x.call2(MathFn::Hypot, y);
    (size.call(MathFn::Log), y.call2(MathFn::Atan2, x))
}

fn sine<'p>((x, y): Complex<'p>) -> Complex<'p> {
    (
        x.call(MathFn::Sin) * y.call(MathFn::Cosh),
        x.call(MathFn::Cos) * y.call(MathFn::Sinh),
    )
}

fn cosine<'p>((x, y): Complex<'p>) -> Complex<'p> {
    (
        x.call(MathFn::Cos) * y.call(MathFn::Cosh),
        -(x.call(MathFn::Sin) * y.call(MathFn::Sinh)),
    )
}

fn reciprocal<'p>((x, y): Complex<'p>) -> Complex<'p> {
    let norm = x * x + y * y;
    (x / norm, -y / norm)
}

fn times<'p>((a, b): Complex<'p>, (c, d): Complex<'p>) -> Complex<'p> {
    (a * c - b * d, a * d + b * c)
}

fn sum<'p>((a, b): Complex<'p>, (c, d): Complex<'p>) -> Complex<'p> {
    (a + c, b + d)
}

fn negative<'p>((a, b): Complex<'p>) -> Complex<'p> {
    (-a, -b)
}
