//! Tests of the finiteness of partials and results: the class of each function against values at singular points.

use super::cases;
use crate::calculus::f64_reference;

/// Points at which partials may be infinite or NaN.
const SINGULAR_POINTS: [f64; 14] = [
    0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 0.25, 710.0, -745.0, 1100.0, 5e-324, 400.0, -3.0,
];

/// Points at and around poles and branch points, within the range in which sums and products do not overflow.
const MODERATE_POINTS: &[f64] = &[
    -2000.0, -3.0, -1.5, -1.0, -0.0, 0.0, 0.5, 1.0, 1.5, 3.0, 2000.0,
];

#[test]
fn infinite_partials_are_predicted() {
    for case in cases() {
        let (_, _, _, rule) = case.rule();
        for i in rule.float_args() {
            let mut blown = None;
            let mut visit = |point: &[f64]| {
                let y = case.value(point);
                let product = f64_reference::formula(&rule.formulas[i][0], point, &[y], 0.0);
                if !product.is_finite() {
                    blown = Some(point.to_vec());
                }
            };
            match case.params.len() {
                1 => SINGULAR_POINTS.iter().for_each(|a| visit(&[*a])),
                2 => SINGULAR_POINTS
                    .iter()
                    .for_each(|a| SINGULAR_POINTS.iter().for_each(|b| visit(&[*a, *b]))),
                _ => SINGULAR_POINTS.iter().for_each(|a| visit(&[*a, -*a, 2.0])),
            }
            assert_eq!(
                rule.maybe_infinite(i),
                blown.is_some(),
                "{} by argument {i}, at {blown:?}",
                case.name
            );
        }
    }
}

/// The class of a function states whether a result is finite. Infinities and NaN at 0, ±1, their neighbours and ±2000
/// are no overflow of a sum or product.
#[test]
fn infinite_results_are_predicted() {
    for case in cases() {
        let points: Vec<Vec<f64>> = match case.params {
            "f" => MODERATE_POINTS.iter().map(|a| vec![*a]).collect(),
            "ff" => (MODERATE_POINTS.iter())
                .flat_map(|a| MODERATE_POINTS.iter().map(|b| vec![*a, *b]))
                .collect(),
            // Not an error: integer arguments (`ldexp`) have other singular points.
            _ => continue,
        };
        let infinite = points.into_iter().find(|x| !case.value(x).is_finite());
        let (_, _, _, rule) = case.rule();
        assert_eq!(
            rule.result_maybe_infinite(),
            infinite.is_some(),
            "{} at {infinite:?}",
            case.name
        );
    }
}
