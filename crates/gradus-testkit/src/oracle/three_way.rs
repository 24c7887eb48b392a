//! The three-way check of derivatives: forward against reverse mode by the dot-product test, forward mode
//! against finite differences of the primal.
//!
//! For a function y = F(x) with Jacobian J, the JVP is J·ẋ and the VJP Jᵀ·ȳ. Then |⟨ȳ, Jẋ⟩ − ⟨Jᵀȳ, ẋ⟩| ≤
//! 1e-12·(Σ|ȳᵢ(Jẋ)ᵢ| + Σ|(Jᵀȳ)ⱼẋⱼ|). Fourth-order finite differences, with steps that shrink until the
//! estimates stop improving, agree with Jẋ to 1e-6.

/// x → y.
pub type Primal<'f> = dyn Fn(&[f64]) -> Result<Vec<f64>, String> + 'f;
/// x, and a tangent or an adjoint → the other.
pub type Linear<'f> = dyn Fn(&[f64], &[f64]) -> Result<Vec<f64>, String> + 'f;

/// The functions to run: each takes vectors of fixed lengths, and returns a sentence on failure.
pub struct Functions<'f> {
    /// x → y.
    pub primal: &'f Primal<'f>,
    /// x, ẋ → J·ẋ.
    pub jvp: Option<&'f Linear<'f>>,
    /// x, ȳ → Jᵀ·ȳ.
    pub vjp: Option<&'f Linear<'f>>,
    /// The rounding noise left by cancellation of large terms: smaller results are not compared more
    /// closely. 0 unless the program is known to cancel.
    pub noise: f64,
}

/// The results of a check; all numbers are of the first direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreeWay {
    /// F(x).
    pub value: Vec<f64>,
    /// J·ẋ by forward mode.
    pub forward: Option<Vec<f64>>,
    /// Jᵀ·ȳ by reverse mode.
    pub reverse: Option<Vec<f64>>,
    /// J·ẋ by finite differences.
    pub differences: Vec<f64>,
}

/// The maximum relative error of the dot-product test.
const DOT_TOLERANCE: f64 = 1e-12;
/// The maximum relative error against finite differences.
const DIFFERENCE_TOLERANCE: f64 = 1e-6;
const DIRECTIONS: usize = 3;

/// Checks derivatives at `x` along a few directions.
///
/// # Errors
/// A sentence with the disagreement and its size.
pub fn three_way(functions: &Functions, x: &[f64]) -> Result<ThreeWay, String> {
    let value = (functions.primal)(x)?;
    let mut found = None;
    for direction in 0..DIRECTIONS {
        let seed = direction as u64 * 7919 + 1;
        let x_tan = pattern(x.len(), seed);
        let y_adj = pattern(value.len(), seed + 1);
        let one = along(functions, x, &x_tan, &y_adj, &value)?;
        found.get_or_insert(one);
    }
    Ok(found.unwrap_or_default())
}

fn along(
    functions: &Functions,
    x: &[f64],
    x_tan: &[f64],
    y_adj: &[f64],
    value: &[f64],
) -> Result<ThreeWay, String> {
    let forward = functions.jvp.map(|jvp| jvp(x, x_tan)).transpose()?;
    let reverse = functions.vjp.map(|vjp| vjp(x, y_adj)).transpose()?;
    let differences = differences(functions.primal, x, x_tan)?;
    if let Some(forward) = &forward {
        agree("forward mode", forward, &differences)?;
    }
    if let Some(reverse) = &reverse {
        let tangent = forward.as_ref().unwrap_or(&differences);
        let limit = match forward {
            Some(_) => Limit(DOT_TOLERANCE, functions.noise),
            None => Limit(DIFFERENCE_TOLERANCE, functions.noise),
        };
        dot_test(y_adj, tangent, reverse, x_tan, limit)?;
    }
    Ok(ThreeWay {
        value: value.to_vec(),
        forward,
        reverse,
        differences,
    })
}

/// Returns numbers of size 0.5 to 1.5, of both signs, equal on every machine.
fn pattern(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            // Xorshift (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let size = 0.5 + (state >> 12) as f64 / (1u64 << 52) as f64;
            if state & 1 == 0 { size } else { -size }
        })
        .collect()
}

fn agree(what: &str, own: &[f64], differences: &[f64]) -> Result<(), String> {
    if own.len() != differences.len() {
        return Err(format!(
            "{what} returns {} numbers, expected {}",
            own.len(),
            differences.len()
        ));
    }
    let scale = differences.iter().fold(1e-300f64, |m, d| m.max(d.abs()));
    for (i, (a, b)) in std::iter::zip(own, differences).enumerate() {
        let kind = a.is_finite() == b.is_finite();
        if !kind
            || (b.is_finite() && (a - b).abs() > DIFFERENCE_TOLERANCE * scale.max(a.abs()) + 1e-9)
        {
            return Err(format!(
                "{what} returns {a} for result {i}, finite differences return {b}"
            ));
        }
    }
    Ok(())
}

/// The tolerance: relative to the terms, and absolute.
#[derive(Clone, Copy)]
struct Limit(f64, f64);

fn dot_test(
    y_adj: &[f64],
    y_tan: &[f64],
    x_adj: &[f64],
    x_tan: &[f64],
    limit: Limit,
) -> Result<(), String> {
    if x_adj.len() != x_tan.len() {
        return Err(format!(
            "reverse mode returns {} numbers, expected {}",
            x_adj.len(),
            x_tan.len()
        ));
    }
    let products =
        |a: &[f64], b: &[f64]| -> Vec<f64> { std::iter::zip(a, b).map(|(a, b)| a * b).collect() };
    let (out, back) = (products(y_adj, y_tan), products(x_adj, x_tan));
    let (left, right): (f64, f64) = (out.iter().sum(), back.iter().sum());
    let size: f64 = out.iter().chain(&back).map(|p| p.abs()).sum();
    if !left.is_finite() || !right.is_finite() {
        let same = left.is_nan() == right.is_nan() && left.is_infinite() == right.is_infinite();
        return match same {
            true => Ok(()),
            false => Err(format!(
                "the dot-product test fails: forward {left}, reverse {right}"
            )),
        };
    }
    match (left - right).abs() <= limit.0 * size + limit.1 + 1e-300 {
        true => Ok(()),
        false => Err(format!(
            "the dot-product test fails: forward {left}, reverse {right}, magnitude of the terms {size}"
        )),
    }
}

/// Fourth-order central differences along a direction; the step shrinks until two consecutive estimates
/// stop converging.
fn differences(primal: &Primal, x: &[f64], x_tan: &[f64]) -> Result<Vec<f64>, String> {
    let at = |h: f64| -> Result<Vec<f64>, String> {
        let moved: Vec<f64> = std::iter::zip(x, x_tan).map(|(x, d)| x + h * d).collect();
        primal(&moved)
    };
    let estimate = |h: f64| -> Result<Vec<f64>, String> {
        let (a, b, c, d) = (at(-2.0 * h)?, at(-h)?, at(h)?, at(2.0 * h)?);
        Ok((0..a.len())
            .map(|i| (a[i] - 8.0 * b[i] + 8.0 * c[i] - d[i]) / (12.0 * h))
            .collect())
    };
    let mut best = estimate(1e-2)?;
    let mut gap = f64::INFINITY;
    let mut last = best.clone();
    for power in 1..=10 {
        let next = estimate(1e-2 / 3f64.powi(power))?;
        let moved = std::iter::zip(&last, &next)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        if moved < gap || gap.is_nan() {
            gap = moved;
            best = next.clone();
        }
        last = next;
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn primal(x: &[f64]) -> Result<Vec<f64>, String> {
        Ok(vec![x[0] * x[1].sin(), x[1].exp() + x[0]])
    }
    fn jvp(x: &[f64], d: &[f64]) -> Result<Vec<f64>, String> {
        Ok(vec![
            d[0] * x[1].sin() + x[0] * x[1].cos() * d[1],
            x[1].exp() * d[1] + d[0],
        ])
    }
    fn vjp(x: &[f64], y: &[f64]) -> Result<Vec<f64>, String> {
        Ok(vec![
            y[0] * x[1].sin() + y[1],
            y[0] * x[0] * x[1].cos() + y[1] * x[1].exp(),
        ])
    }

    #[test]
    fn right_derivatives_agree() {
        let functions = Functions {
            primal: &primal,
            jvp: Some(&jvp),
            vjp: Some(&vjp),
            noise: 0.0,
        };
        let found = three_way(&functions, &[1.3, 0.4]).unwrap();
        assert_eq!(found.value.len(), 2);
        assert_eq!(found.reverse.map(|r| r.len()), Some(2));
        let alone = Functions {
            jvp: None,
            ..functions
        };
        three_way(&alone, &[1.3, 0.4]).unwrap();
    }

    #[test]
    fn wrong_derivatives_are_found() {
        let wrong_forward = |x: &[f64], d: &[f64]| Ok(vec![d[0] * x[1].sin(), x[1].exp() * d[1]]);
        let wrong_back = |x: &[f64], y: &[f64]| {
            let mut back = vjp(x, y)?;
            back[1] *= 1.0 + 1e-9;
            Ok(back)
        };
        let functions = Functions {
            primal: &primal,
            jvp: Some(&wrong_forward),
            vjp: None,
            noise: 0.0,
        };
        let error = three_way(&functions, &[1.3, 0.4]).unwrap_err();
        assert!(error.contains("forward mode"), "{error}");
        let functions = Functions {
            primal: &primal,
            jvp: Some(&jvp),
            vjp: Some(&wrong_back),
            noise: 0.0,
        };
        let error = three_way(&functions, &[1.3, 0.4]).unwrap_err();
        assert!(error.contains("dot-product"), "{error}");
    }
}
