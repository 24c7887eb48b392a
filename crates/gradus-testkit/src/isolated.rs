//! Points where forward and reverse mode agree and differences do not, and rounding that both suffer.
//!
//! A program that compares two numbers which are equal at a point, and nowhere around it, takes a way there
//! that it takes nowhere else (`x == y / 2 ? x : y / 2` at zero): its derivative at the point is that of
//! this way, and differences never see it. Such a point is isolated. Two things must hold, and neither is
//! told by the derivative itself:
//!
//! 1. around the point, where nothing is equal by chance, forward mode, reverse mode and differences agree,
//!    at every one of several places;
//! 2. at the point, the derivative is that of the way: the interpreter notes there what each comparison
//!    gives, and takes differences of the program with all comparisons held to that. Where the way has a
//!    kink there (`fabs` of zero), the derivative lies between its slopes to both sides.
//!
//! A formula that is wrong at such a point alone fails the second.
//!
//! A point is steep where the program goes up and down within any step of differences, by less than they
//! see: the sine of a large multiple, made small, or a map that is taken again and again and parts what is
//! close. There, and at places around it, the derivative must be that of the program in which each smooth
//! function, product and quotient is the straight line or plane that touches it, with slopes that the
//! interpreter measures at the function itself. A wrong derivative of a function, or a wrong sum, fails that.

use crate::check::{
    Line, Numbers, around, differences, differences_over, pattern, products, sides,
};
use gradus_interp::Curves;

/// What a program gives at the second point when it takes the way that it took at the first; nothing where
/// it cannot.
pub(crate) type Followed<'f> =
    &'f dyn Fn(&Numbers, &Numbers, Curves) -> Result<Option<Numbers>, String>;

/// How far the places around a point are from it: less than any step of differences.
const ASIDE: f64 = 0.7e-5;
/// How many there are in random directions, beside those before and behind the point.
const PLACES: u64 = 6;

/// Whether a point is isolated.
///
/// # Errors
/// What goes wrong around it.
pub(crate) fn is_isolated(line: &Line, followed: Option<Followed>) -> Result<bool, String> {
    let Some(followed) = followed else {
        return Ok(false);
    };
    let y_tan = line.dotted()?;
    let way = |at: &Numbers| followed(line.x, at, Curves::Kept);
    let held = match differences(line, &way)? {
        Some(d) => line.apart(&y_tan, &d).is_none(),
        None => is_in_kink(line, &y_tan, &way)?,
    };
    if !held {
        return Ok(false);
    }
    everywhere(&places(line), line, |there| there.differences())
}

/// Steps of programs where nothing is bent: one kink on the way, of `fabs` or of a conversion, and the larger
/// ones do not tell.
const STRAIGHT_STEPS: [f64; 6] = [1e-3, 3e-4, 1e-5, 3e-6, 1e-6, 3e-7];

/// Whether a point is steep.
///
/// # Errors
/// What goes wrong there or around it.
pub(crate) fn is_steep(line: &Line, followed: Option<Followed>) -> Result<bool, String> {
    let Some(followed) = followed else {
        return Ok(false);
    };
    let mut all = places(line);
    all.push(*line.x);
    everywhere(&all, line, |there| {
        let way = |at: &Numbers| followed(there.x, at, Curves::Straight);
        differences_over(&STRAIGHT_STEPS, there, &way)
    })
}

/// Places around a point.
fn places(line: &Line) -> Vec<Numbers> {
    let along = |sign: f64| line.x_tan.map(|t| sign * t);
    let aside = [along(1.0), along(-1.0)];
    let random = (0..PLACES).map(|place| pattern(5000 + place));
    let all = aside.into_iter().chain(random);
    all.map(|direction| std::array::from_fn(|i| line.x[i] + ASIDE * direction[i]))
        .collect()
}

/// Whether the derivatives at all of some places are what an oracle says.
fn everywhere(
    places: &[Numbers],
    line: &Line,
    oracle: impl Fn(&Line) -> Result<Option<Numbers>, String>,
) -> Result<bool, String> {
    for x in places {
        let there = Line { x, ..*line };
        let y_tan = there.dotted()?;
        if oracle(&there)?.is_none_or(|d| there.apart(&y_tan, &d).is_some()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether derivatives lie between the slopes that the way has to both sides of the point.
fn is_in_kink(
    line: &Line,
    y_tan: &Numbers,
    way: &dyn Fn(&Numbers) -> Result<Option<Numbers>, String>,
) -> Result<bool, String> {
    const STEP: f64 = 3e-5;
    let Some(found) = around(line, STEP, way)? else {
        return Ok(false);
    };
    let [below, above] = sides(found, STEP);
    Ok((0..y_tan.len()).all(|i| {
        let near = line.tolerance() * below[i].abs().max(above[i].abs()).max(1e-2);
        let (low, high) = (below[i].min(above[i]), below[i].max(above[i]));
        (low - near..=high + near).contains(&y_tan[i])
    }))
}

/// Points whose coordinates differ in their last bits.
const NEIGHBOURS: u64 = 12;
/// How far they are from each other, relative to their coordinates: far enough that what is rounded first,
/// such as `1 - 4 * x * x` near a half, is rounded anew.
const LAST_BITS: f64 = 64.0 * f64::EPSILON;
/// What rounding may do at most, relative to the sums of both modes.
const MOST: f64 = 1e-9;

/// How far rounding alone takes forward from reverse mode: the two products ⟨ȳ, Jẋ⟩ and ⟨Jᵀȳ, ẋ⟩ are taken
/// where the last bits of the inputs differ, where the derivative is the same but for rounding. `size` is
/// that of the sums of both modes.
///
/// # Errors
/// What goes wrong there.
pub(crate) fn rounding(line: &Line, size: f64) -> Result<f64, String> {
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for neighbour in 0..NEIGHBOURS {
        let bits = pattern(7000 + neighbour);
        let x: Numbers = std::array::from_fn(|i| line.x[i] * (1.0 + LAST_BITS * bits[i]));
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
        true => spread.min(MOST * size),
        false => 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Runner, checked};
    use crate::ir_check::{bitcode, followed};
    use crate::made::{Loaded, Module, Subject, make};
    use crate::{Verdict, Way, WideProgram, check_unit, wide_unit};
    use gradus_ir::Unit;
    use gradus_pipeline::{Level, Options};
    use std::collections::BTreeSet;

    /// x or half of it: what is taken where they are equal has another slope than all around.
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
        let found = check_unit(&unit, &programs, &Way::default()).unwrap();
        found.into_iter().next().unwrap()
    }

    #[test]
    fn what_runs_only_where_numbers_are_equal_is_isolated() {
        let found = verdict(EQUAL);
        assert!(matches!(found, Verdict::Isolated(_)), "{found:?}");
        let smooth = "  %a = load %x -> f64\n  %t = fadd %a, %s\n  return %t\n";
        assert_eq!(verdict(smooth), Verdict::Right);
    }

    /// Its slope is a hundredth at most; no step of differences sees the wave.
    fn wave(height: &str) -> String {
        format!(
            "  %a = load %x -> f64\n  %b = fmul %a, 1000000000.0\n  %c = call @sin(%b)\n  \
             %d = fmul %c, {height}\n  %t = fadd %d, %s\n  return %t\n"
        )
    }

    #[test]
    fn waves_that_differences_do_not_see_are_steep() {
        let found = verdict(&wave("0.00000000001"));
        assert!(matches!(found, Verdict::Steep(_)), "{found:?}");
    }

    /// The logistic map, forty times: points that are close part, by the power of forty of some 1.6.
    fn chaos(height: &str) -> String {
        format!(
            "  %a = load %x -> f64\n  %b = fmul %a, %a\n  %c = fadd %b, 0.2\n  \
             %e = for %i < 40 iter(%y = %c) {{\n    %l = fsub 1.0, %y\n    %m = fmul %y, %l\n    \
             %z = fmul %m, 3.9\n    yield %z\n  }}\n  \
             %d = fmul %e, {height}\n  %t = fadd %d, %s\n  return %t\n"
        )
    }

    #[test]
    fn maps_that_part_what_is_close_are_steep() {
        let found = verdict(&chaos("0.0000000001"));
        assert!(matches!(found, Verdict::Steep(_)), "{found:?}");
    }

    /// The derivatives of one program, where the program is that of another height: an error of a hundredth.
    #[test]
    fn a_wrong_slope_of_a_wave_is_wrong() {
        wrong_by_a_hundredth(&wave("0.00000000001"), &wave("0.0000000000101"));
    }

    #[test]
    fn a_wrong_slope_of_a_map_is_wrong() {
        wrong_by_a_hundredth(&chaos("0.0000000001"), &chaos("0.000000000101"));
    }

    fn wrong_by_a_hundredth(own: &str, other: &str) {
        let subjects = subjects();
        let own = wide_unit(&[program(own)]).unwrap();
        let loaded = loaded(&own, &subjects);
        let runner = Runner::new(&loaded, 0, &subjects[0]).unwrap();
        let judged = |unit: &Unit| {
            let along =
                |of: &Numbers, at: &Numbers, curves| followed(unit, &subjects[0], of, at, curves);
            checked(&runner, false, Some(&along))
        };
        assert!(matches!(judged(&own), Ok(Verdict::Steep(_))));
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
        make(&module).unwrap().0.unwrap().load(None).unwrap()
    }

    /// Where the way taken at the point has another slope than the derivatives say, they are wrong; at a
    /// kink, where they do not lie between its slopes to both sides.
    #[test]
    fn a_slope_that_is_not_that_of_the_way_is_wrong() {
        let unit = wide_unit(&[program(EQUAL)]).unwrap();
        let subjects = subjects();
        let loaded = loaded(&unit, &subjects);
        let runner = Runner::new(&loaded, 0, &subjects[0]).unwrap();
        let way = |below: f64, above: f64| {
            move |_: &Numbers, at: &Numbers, _: Curves| {
                let slope = if at[0] < 0.0 { below } else { above };
                let mut outputs: Numbers =
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
            let found = checked(&runner, false, Some(&way(below, above)));
            match holds {
                true => assert!(
                    matches!(found, Ok(Verdict::Isolated(_))),
                    "{below} {above} {found:?}"
                ),
                false => assert!(found.is_err(), "{below} {above} {found:?}"),
            }
        }
        assert!(checked(&runner, false, None).is_err());
    }
}
