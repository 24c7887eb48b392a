//! Singular points, at which forward and reverse mode agree but finite differences do not, and rounding
//! errors of both modes.
//!
//! Take a program that compares two numbers equal at a point, and nowhere around. At the point the program
//! takes a path taken nowhere else (`x == y / 2 ? x : y / 2` at zero). The derivative at the point is that
//! of the path, and finite differences never see it. Such a point is isolated. Two conditions must hold,
//! neither derived from the derivative itself:
//!
//! 1. around the point, without accidental equality, forward mode, reverse mode and finite differences
//!    agree at each of several places;
//! 2. at the point, the derivative is that of the path: the interpreter records the result of each
//!    comparison, and takes finite differences of the program with all comparisons fixed. If the path has a
//!    kink there (`fabs` of zero), the derivative lies between the one-sided slopes.
//!
//! A formula that is wrong at such a point only fails the second condition.
//!
//! A point is steep if the program oscillates within any step of finite differences, by less than they
//! resolve: the scaled sine of a large multiple, or an iterated map that separates close points. For
//! comparison, each smooth function, product and quotient of the program is replaced by its tangent line or
//! plane, with slopes measured by the interpreter at the function itself. At the point and at places
//! around, the derivatives must agree with finite differences of the linearised program. A wrong derivative
//! of a function, or a wrong sum, fails this test.

use crate::oracle::check::{
    Line, Vector, differences, differences_over, one_sided_slopes, pattern, products, stencil,
};
use gradus_interp::ReplayMode;

/// Returns a program's outputs at the second point along the path taken at the first; `None` if impossible.
pub(crate) type Followed<'f> =
    &'f dyn Fn(&Vector, &Vector, ReplayMode) -> Result<Option<Vector>, String>;

/// The distance of the places around a point: less than any step of finite differences.
const NEIGHBOUR_DISTANCE: f64 = 0.7e-5;
/// The number of places in random directions, besides those before and behind the point.
const NEIGHBOUR_COUNT: u64 = 6;

/// Returns true if a point is isolated.
///
/// # Errors
/// A failure around the point.
pub(crate) fn is_isolated(line: &Line, followed: Option<Followed>) -> Result<bool, String> {
    let Some(followed) = followed else {
        return Ok(false);
    };
    let y_tan = line.forward_with_dot_test()?;
    let way = |at: &Vector| followed(line.x, at, ReplayMode::Exact);
    let held = match differences(line, &way)? {
        Some(d) => line.forward_mode_distance(&y_tan, &d).is_none(),
        None => is_between_slopes(line, &y_tan, &way)?,
    };
    if !held {
        return Ok(false);
    }
    agrees_at_all(&neighbours(line), line, |there| there.differences())
}

/// Step sizes for linearised programs: a single kink on the path, of `fabs` or of a conversion, makes
/// larger steps useless.
const LINEARIZED_STEPS: [f64; 6] = [1e-3, 3e-4, 1e-5, 3e-6, 1e-6, 3e-7];

/// Returns true if a point is steep.
///
/// # Errors
/// A failure at the point or around it.
pub(crate) fn is_steep(line: &Line, followed: Option<Followed>) -> Result<bool, String> {
    let Some(followed) = followed else {
        return Ok(false);
    };
    let mut all = neighbours(line);
    all.push(*line.x);
    agrees_at_all(&all, line, |there| {
        let way = |at: &Vector| followed(there.x, at, ReplayMode::Linearized);
        differences_over(&LINEARIZED_STEPS, there, &way)
    })
}

/// Returns places around a point.
fn neighbours(line: &Line) -> Vec<Vector> {
    let along = |sign: f64| line.x_tan.map(|t| sign * t);
    let aside = [along(1.0), along(-1.0)];
    let random = (0..NEIGHBOUR_COUNT).map(|place| pattern(5000 + place));
    let all = aside.into_iter().chain(random);
    all.map(|direction| std::array::from_fn(|i| line.x[i] + NEIGHBOUR_DISTANCE * direction[i]))
        .collect()
}

/// Returns true if the derivatives at all places agree with an oracle.
fn agrees_at_all(
    places: &[Vector],
    line: &Line,
    oracle: impl Fn(&Line) -> Result<Option<Vector>, String>,
) -> Result<bool, String> {
    for x in places {
        let there = Line { x, ..*line };
        let y_tan = there.forward_with_dot_test()?;
        if oracle(&there)?.is_none_or(|d| there.forward_mode_distance(&y_tan, &d).is_some()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns true if the derivatives lie between the one-sided slopes of the path.
fn is_between_slopes(
    line: &Line,
    y_tan: &Vector,
    way: &dyn Fn(&Vector) -> Result<Option<Vector>, String>,
) -> Result<bool, String> {
    const STEP: f64 = 3e-5;
    let Some(found) = stencil(line, STEP, way)? else {
        return Ok(false);
    };
    let [below, above] = one_sided_slopes(found, STEP);
    Ok((0..y_tan.len()).all(|i| {
        let near = line.tolerance() * below[i].abs().max(above[i].abs()).max(1e-2);
        let (low, high) = (below[i].min(above[i]), below[i].max(above[i]));
        (low - near..=high + near).contains(&y_tan[i])
    }))
}

/// The number of points whose coordinates differ in the last bits.
const NEIGHBOURS: u64 = 12;
/// The distance of such points, relative to the coordinates: large enough for early rounding errors, e.g.
/// in `1 - 4 * x * x` near a half, to change.
const LAST_BITS: f64 = 64.0 * f64::EPSILON;
/// The maximum effect of rounding, relative to the sums of both modes.
const ROUNDING_MAX: f64 = 1e-9;

/// Returns the discrepancy between forward and reverse mode caused by rounding alone: the products ⟨ȳ, Jẋ⟩
/// and ⟨Jᵀȳ, ẋ⟩ are computed at inputs that differ in the last bits, with equal derivatives up to rounding.
/// `size` is that of the sums of both modes.
///
/// # Errors
/// A failure there.
pub(crate) fn rounding(line: &Line, size: f64) -> Result<f64, String> {
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for neighbour in 0..NEIGHBOURS {
        let bits = pattern(7000 + neighbour);
        let x: Vector = std::array::from_fn(|i| line.x[i] * (1.0 + LAST_BITS * bits[i]));
        let (_, y_tan) = line.runner.forward(&x, line.x_tan)?;
        let (_, x_adj) = line.runner.reverse(&x, line.y_adj)?;
        let both = [products(line.y_adj, &y_tan), products(&x_adj, line.x_tan)];
        for (i, terms) in both.iter().enumerate() {
            let sum: f64 = terms.iter().sum();
            low[i] = low[i].min(sum);
            high[i] = high[i].max(sum);
        }
    }
    let spread = (high[0] - low[0]) + (high[1] - low[1]);
    Ok(match spread.is_finite() {
        true => spread.min(ROUNDING_MAX * size),
        false => 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::check::{Runner, check_all_points};
    use crate::oracle::ir_check::{bitcode, run_along_path};
    use crate::run::compiled_module::{Loaded, Module, Subject, compile_derivatives};
    use crate::{Verdict, WideProgram, WideRoute, check_unit, wide_unit};
    use gradus_ir::Unit;
    use gradus_pipeline::{Level, Options};
    use std::collections::BTreeSet;

    /// x or half of it: the branch taken at equality has another slope than its surroundings.
    const EQUAL: &str = "  %a = load %x -> f64\n  %h = fmul 0.5, %a\n  %c = fcmp une %a, %h\n  \
         %r = select %c, %a, %h\n  %t = fadd %r, %s\n  return %t\n";

    fn program(body: &str) -> WideProgram {
        WideProgram {
            text: format!("func @f_1(%n: i64, %x: ptr, %s: f64) -> f64 new {{\n{body}}}\n"),
            function: "f_1".into(),
            contents: BTreeSet::new(),
            single: false,
        }
    }

    fn verdict(body: &str) -> Verdict {
        let programs = [program(body)];
        let unit = wide_unit(&programs).unwrap();
        let found = check_unit(&unit, &programs, &WideRoute::default()).unwrap();
        found.into_iter().next().unwrap()
    }

    #[test]
    fn equality_branch_is_isolated() {
        let found = verdict(EQUAL);
        assert!(matches!(found, Verdict::Isolated(_)), "{found:?}");
        let smooth = "  %a = load %x -> f64\n  %t = fadd %a, %s\n  return %t\n";
        assert_eq!(verdict(smooth), Verdict::Right);
    }

    /// A wave with a slope of at most 1/100, not resolved by any step of finite differences.
    fn wave(height: &str) -> String {
        format!(
            "  %a = load %x -> f64\n  %b = fmul %a, 1000000000.0\n  %c = call @sin(%b)\n  \
             %d = fmul %c, {height}\n  %t = fadd %d, %s\n  return %t\n"
        )
    }

    #[test]
    fn unresolved_waves_are_steep() {
        let found = verdict(&wave("0.00000000001"));
        assert!(matches!(found, Verdict::Oscillating(_)), "{found:?}");
    }

    /// The logistic map, forty times: close points separate by a factor of about 1.6 to the power of forty.
    fn logistic_map(height: &str) -> String {
        format!(
            "  %a = load %x -> f64\n  %b = fmul %a, %a\n  %c = fadd %b, 0.2\n  \
             %e = for %i < 40 iter(%y = %c) {{\n    %l = fsub 1.0, %y\n    %m = fmul %y, %l\n    \
             %z = fmul %m, 3.9\n    yield %z\n  }}\n  \
             %d = fmul %e, {height}\n  %t = fadd %d, %s\n  return %t\n"
        )
    }

    #[test]
    fn chaotic_maps_are_steep() {
        let found = verdict(&logistic_map("0.0000000001"));
        assert!(matches!(found, Verdict::Oscillating(_)), "{found:?}");
    }

    /// The derivatives of a program are combined with a program of another height: an error of 1/100.
    #[test]
    fn a_wrong_slope_of_a_wave_is_wrong() {
        wrong_by_a_hundredth(&wave("0.00000000001"), &wave("0.0000000000101"));
    }

    #[test]
    fn a_wrong_slope_of_a_map_is_wrong() {
        wrong_by_a_hundredth(
            &logistic_map("0.0000000001"),
            &logistic_map("0.000000000101"),
        );
    }

    fn wrong_by_a_hundredth(own: &str, other: &str) {
        let subjects = subjects();
        let own = wide_unit(&[program(own)]).unwrap();
        let loaded = loaded(&own, &subjects);
        let runner = Runner::new(&loaded, 0, &subjects[0]).unwrap();
        let judged = |unit: &Unit| {
            let along = |of: &Vector, at: &Vector, curves| {
                run_along_path(unit, &subjects[0], of, at, curves)
            };
            check_all_points(&runner, false, Some(&along))
        };
        assert!(matches!(judged(&own), Ok(Verdict::Oscillating(_))));
        let other = wide_unit(&[program(other)]).unwrap();
        assert!(judged(&other).is_err());
    }

    fn subjects() -> [Subject; 1] {
        [Subject {
            function: "f_1".into(),
            single: false,
        }]
    }

    fn loaded(unit: &Unit, subjects: &[Subject]) -> Loaded {
        let module = Module {
            bytes: &bitcode(unit).unwrap(),
            subjects,
            blamed: &|_| None,
            shown: &|_| String::new(),
            options: Options::default(),
            level: Level::O0,
        };
        compile_derivatives(&module)
            .unwrap()
            .0
            .unwrap()
            .load(None)
            .unwrap()
    }

    /// A derivative that differs from the path's slope is wrong; at a kink, a derivative outside of the
    /// one-sided slopes.
    #[test]
    fn slope_must_match_path() {
        let unit = wide_unit(&[program(EQUAL)]).unwrap();
        let subjects = subjects();
        let loaded = loaded(&unit, &subjects);
        let runner = Runner::new(&loaded, 0, &subjects[0]).unwrap();
        let way = |below: f64, above: f64| {
            move |_: &Vector, at: &Vector, _: ReplayMode| {
                let slope = if at[0] < 0.0 { below } else { above };
                let mut outputs: Vector =
                    std::array::from_fn(|i| if i == 0 { 0.0 } else { at[i - 1] });
                outputs[0] = slope * at[0] + at[at.len() - 1];
                Ok(Some(outputs))
            }
        };
        for (below, above, holds) in [
            (0.5, 0.5, true),
            (0.4, 0.4, false),
            (0.4, 0.9, true),
            (0.6, 0.9, false),
        ] {
            let found = check_all_points(&runner, false, Some(&way(below, above)));
            match holds {
                true => assert!(
                    matches!(found, Ok(Verdict::Isolated(_))),
                    "{below} {above} {found:?}"
                ),
                false => assert!(found.is_err(), "{below} {above} {found:?}"),
            }
        }
        assert!(check_all_points(&runner, false, None).is_err());
    }
}
