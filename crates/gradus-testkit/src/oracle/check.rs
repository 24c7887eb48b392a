//! Compares the derivatives of compiled programs with each other and with finite differences.
//!
//! The outputs of a program are its result and `x` after the call, the inputs `x` and `s`. Three conditions
//! hold per point and direction:
//!
//! 1. |⟨ȳ, Jẋ⟩ − ⟨Jᵀȳ, ẋ⟩| ≤ 1e-12 of the sum of the terms' sizes (1e-5 if numbers pass through `float`);
//! 2. the primal results returned by the derivatives equal the primal's;
//! 3. J·ẋ agrees with finite differences, if finite differences converge over step sizes and on both sides.
//!
//! `singularities` treats points without convergence.

use crate::generate::CELLS;
use crate::oracle::singularities;
use crate::oracle::singularities::Followed;
use crate::run::compiled_module::{Loaded, Subject};
use crate::run::verdict::Verdict;
use gradus_llvm::host::jit::{Arg, Jit};
use gradus_pipeline::{Derivative, Role};

/// Inputs: the cells of `x`, then `s`. Outputs: the result, then the cells.
pub(crate) type Vector = [f64; CELLS + 1];

/// A program and its derivatives, loaded into this process.
pub(crate) struct Runner<'c> {
    jit: &'c Jit,
    function: &'c str,
    pub vjp: &'c Derivative,
    pub jvp: &'c Derivative,
}

impl<'c> Runner<'c> {
    /// Returns the runner of program `i` of a module.
    pub fn new(loaded: &'c Loaded, i: usize, subject: &'c Subject) -> Result<Self, String> {
        let (vjp, jvp) = loaded.derivatives[i]
            .as_ref()
            .ok_or("the module has no derivatives")?;
        Ok(Runner {
            jit: &loaded.jit,
            function: &subject.function,
            vjp,
            jvp,
        })
    }
}

/// Checks a program's derivatives at every point. `followed` runs the program along the path taken at
/// another point.
pub(crate) fn check_all_points(
    runner: &Runner,
    single: bool,
    followed: Option<Followed>,
) -> Result<Verdict, String> {
    let mut found = Verdict::Right;
    for (point, x) in points().iter().enumerate() {
        for direction in 0..3 {
            let (x_tan, y_adj) = directions(point as u64, direction);
            let line = Line {
                runner,
                x,
                x_tan: &x_tan,
                y_adj: &y_adj,
                single,
            };
            let told = |why| format!("point {point}, direction {direction}: {why}");
            let Some(why) = line.forward_mode_error().map_err(told)? else {
                continue;
            };
            let own = if singularities::is_isolated(&line, followed).map_err(told)? {
                Verdict::Isolated(told(why))
            } else if singularities::is_steep(&line, followed).map_err(told)? {
                Verdict::Oscillating(told(why))
            } else {
                return Err(told(why));
            };
            if found == Verdict::Right {
                found = own;
            }
        }
    }
    Ok(found)
}

/// Returns a tangent of the inputs and a cotangent of the outputs.
pub(crate) fn directions(point: u64, direction: u64) -> (Vector, Vector) {
    let number = 10 * point + direction;
    (pattern(number), pattern(1000 + number))
}

/// An ordinary point, and a point with zeros and equal numbers.
pub(crate) fn points() -> [Vector; 2] {
    let mut ordinary = [0.0; CELLS + 1];
    for (i, x) in ordinary.iter_mut().enumerate() {
        *x = 0.37 * ((i * 7 + 3) % 5) as f64 - 0.61 + 0.013 * i as f64;
    }
    [ordinary, [0.0, 1.0, -1.0, 0.5, 0.5, 0.0, -0.25, 1.0, 0.5]]
}

/// Returns numbers of size 0.5 to 1.5, of both signs.
pub(crate) fn pattern(seed: u64) -> Vector {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::array::from_fn(|_| {
        // Xorshift (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let size = 0.5 + (state >> 12) as f64 / (1u64 << 52) as f64;
        if state & 1 == 0 { size } else { -size }
    })
}

/// A point, a tangent and a cotangent, and the program whose derivatives are checked there.
#[derive(Clone, Copy)]
pub(crate) struct Line<'l, 'c> {
    pub runner: &'l Runner<'c>,
    pub x: &'l Vector,
    pub x_tan: &'l Vector,
    pub y_adj: &'l Vector,
    pub single: bool,
}

impl Line<'_, '_> {
    /// The tolerance between results and finite differences.
    pub fn tolerance(&self) -> f64 {
        if self.single { 2e-3 } else { 1e-5 }
    }

    /// Returns the disagreement between forward mode and finite differences, if any.
    ///
    /// # Errors
    /// Failures independent of finite differences.
    fn forward_mode_error(&self) -> Result<Option<String>, String> {
        let y_tan = self.forward_with_dot_test()?;
        Ok(match self.differences()? {
            Some(d) => self.forward_mode_distance(&y_tan, &d),
            None => None,
        })
    }

    /// Returns the distance between forward mode and finite differences, if beyond the tolerance.
    pub fn forward_mode_distance(&self, y_tan: &Vector, d: &Vector) -> Option<String> {
        let what = "forward mode compared with finite differences";
        same(what, y_tan, d, self.tolerance()).err()
    }

    /// Returns J·ẋ, after the dot test with reverse mode and a comparison of both primal results with the
    /// program's.
    pub fn forward_with_dot_test(&self) -> Result<Vector, String> {
        let value = self.runner.primal(self.x)?;
        let (value_jvp, y_tan) = self.runner.forward(self.x, self.x_tan)?;
        let (value_vjp, x_adj) = self.runner.reverse(self.x, self.y_adj)?;
        if value.iter().any(|v| !v.is_finite()) {
            return Err(format!("the program itself returns {value:?}"));
        }
        let loose = if self.single { 1e-5 } else { 1e-13 };
        same(
            "the primal value returned with the JVP",
            &value_jvp,
            &value,
            loose,
        )?;
        let beside = "the primal value returned with the VJP";
        same(beside, &value_vjp[..1], &value[..1], loose)?;
        let (out, back) = (products(self.y_adj, &y_tan), products(&x_adj, self.x_tan));
        let (left, right): (f64, f64) = (out.iter().sum(), back.iter().sum());
        let size: f64 = out.iter().chain(&back).map(|p| p.abs()).sum();
        let limit = if self.single { 1e-5 } else { 1e-12 };
        let apart = (left - right).abs();
        if apart <= limit * size + 1e-14 || apart <= singularities::rounding(self, size)? {
            return Ok(y_tan);
        }
        let differences = self.differences()?;
        Err(format!(
            "forward {left:e}, reverse {right:e}, finite differences {:?}",
            differences.map(|d| products(self.y_adj, &d).iter().sum::<f64>())
        ))
    }

    /// Returns J·ẋ by finite differences of the program, if they converge.
    pub fn differences(&self) -> Result<Option<Vector>, String> {
        differences(self, &|x| self.runner.primal(x).map(Some))
    }
}

pub(crate) fn products(a: &Vector, b: &Vector) -> Vector {
    std::array::from_fn(|i| a[i] * b[i])
}

fn same(what: &str, own: &[f64], other: &[f64], tolerance: f64) -> Result<(), String> {
    let scale = other.iter().fold(1e-2, |m: f64, d| m.max(d.abs()));
    let apart = |(a, b): (&f64, &f64)| (a - b).abs().is_nan() || (a - b).abs() > tolerance * scale;
    match std::iter::zip(own, other).position(apart) {
        Some(i) => Err(format!(
            "{what}: output {i} is {:e}, expected {:e}",
            own[i], other[i]
        )),
        None => Ok(()),
    }
}

/// Returns J·ẋ by fourth-order finite differences if two steps and both sides agree; `None` otherwise, or
/// if `primal` returns `None`.
pub(crate) fn differences(
    line: &Line,
    primal: &dyn Fn(&Vector) -> Result<Option<Vector>, String>,
) -> Result<Option<Vector>, String> {
    match line.single {
        true => differences_over(&[1e-2, 5e-3], line, primal),
        false => differences_over(&[1e-3, 3e-4, 1e-4, 3e-5], line, primal),
    }
}

/// Like [`differences`], over given steps.
pub(crate) fn differences_over(
    steps: &[f64],
    line: &Line,
    primal: &dyn Fn(&Vector) -> Result<Option<Vector>, String>,
) -> Result<Option<Vector>, String> {
    let agreed = line.tolerance() / 10.0;
    let mut last: Option<Vector> = None;
    for &h in steps {
        let Some(found) = stencil(line, h, primal)? else {
            return Ok(None);
        };
        let [a, b, _, c, d] = found;
        let next: Vector =
            std::array::from_fn(|i| (a[i] - 8.0 * b[i] + 8.0 * c[i] - d[i]) / (12.0 * h));
        let [below, above] = one_sided_slopes(found, h);
        let smooth = same("", &below, &above, line.tolerance() / 2.0).is_ok();
        let steady = last.is_some_and(|last| same("", &last, &next, agreed).is_ok());
        if smooth && steady {
            return Ok(Some(next));
        }
        last = Some(next);
    }
    Ok(None)
}

/// Returns the results of `primal` two steps and one step below a point, at the point, and above; `None` if
/// `primal` returns `None`.
pub(crate) fn stencil(
    line: &Line,
    h: f64,
    primal: &dyn Fn(&Vector) -> Result<Option<Vector>, String>,
) -> Result<Option<[Vector; 5]>, String> {
    let mut found = [[0.0; CELLS + 1]; 5];
    for (own, steps) in found.iter_mut().zip([-2.0, -1.0, 0.0, 1.0, 2.0]) {
        let at = std::array::from_fn(|i| line.x[i] + steps * h * line.x_tan[i]);
        match primal(&at)? {
            Some(numbers) => *own = numbers,
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// Returns the slopes below and above a point by second-order finite differences of the results of
/// [`stencil`].
pub(crate) fn one_sided_slopes(found: [Vector; 5], h: f64) -> [Vector; 2] {
    let [a, b, middle, c, d] = found;
    [
        std::array::from_fn(|i| (3.0 * middle[i] - 4.0 * b[i] + a[i]) / (2.0 * h)),
        std::array::from_fn(|i| (4.0 * c[i] - 3.0 * middle[i] - d[i]) / (2.0 * h)),
    ]
}

impl Runner<'_> {
    pub fn primal(&self, x: &Vector) -> Result<Vector, String> {
        let mut cells = x[..CELLS].to_vec();
        let mut args = [
            Arg::Int(CELLS as i64),
            Arg::F64s(&mut cells),
            Arg::F64(x[CELLS]),
        ];
        let result = self.jit.call(self.function, &mut args);
        let result = result.map_err(|d| d.message)?.f64();
        Ok(joined(result, &cells))
    }

    /// Returns the primal outputs, and J·ẋ.
    pub fn forward(&self, x: &Vector, x_tan: &Vector) -> Result<(Vector, Vector), String> {
        let (mut cells, mut tangents) = (x[..CELLS].to_vec(), x_tan[..CELLS].to_vec());
        let scalars = [x[CELLS], x_tan[CELLS]];
        let results = self.call(self.jvp, &mut cells, &mut tangents, scalars)?;
        Ok((joined(results[0], &cells), joined(results[1], &tangents)))
    }

    /// Returns the primal outputs, and Jᵀ·ȳ in the order of the inputs.
    pub fn reverse(&self, x: &Vector, y_adj: &Vector) -> Result<(Vector, Vector), String> {
        let (mut cells, mut adjoints) = (x[..CELLS].to_vec(), y_adj[1..].to_vec());
        let scalars = [x[CELLS], y_adj[0]];
        let results = self.call(self.vjp, &mut cells, &mut adjoints, scalars)?;
        adjoints.push(results[1]);
        let inputs = std::array::from_fn(|i| adjoints[i]);
        Ok((joined(results[0], &cells), inputs))
    }

    /// Calls a derivative. Returns the primal result and the other result.
    fn call(
        &self,
        derivative: &Derivative,
        cells: &mut [f64],
        beside: &mut [f64],
        [s, other]: [f64; 2],
    ) -> Result<[f64; 2], String> {
        let (mut cells, mut beside) = (Some(cells), Some(beside));
        let mut args = Vec::new();
        for argument in &derivative.arguments {
            args.push(match argument.role {
                Role::Inactive(0) => Arg::Int(CELLS as i64),
                Role::Active(1) => Arg::F64s(cells.take().ok_or("`x` occurs twice")?),
                Role::Shadow(1, _) => {
                    Arg::F64s(beside.take().ok_or("the shadow of `x` occurs twice")?)
                }
                Role::Active(2) => Arg::F64(s),
                Role::Shadow(2, _) | Role::Cotangent(_) => Arg::F64(other),
                role => return Err(format!("unexpected argument role {role:?}")),
            });
        }
        let result = self.jit.call(&derivative.name, &mut args);
        let result = result.map_err(|d| d.message)?;
        let mut both = [f64::NAN; 2];
        for (i, part) in derivative.results.iter().enumerate() {
            let index = usize::from(part.role != Role::PrimalResult);
            both[index] = result.f64_at(i);
        }
        Ok(both)
    }
}

fn joined(result: f64, cells: &[f64]) -> Vector {
    std::array::from_fn(|i| if i == 0 { result } else { cells[i - 1] })
}
