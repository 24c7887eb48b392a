//! Stage 2: ADBench's three objectives, on generated data of that suite's sizes, beside gradients written
//! by hand.

use super::Kitchen;
use crate::course::{self, Purpose, Tool};
use crate::process::Outcome;
use crate::table::Table;

/// Workload of the course, sizes, and what it is.
const OBJECTIVES: &[(&str, &[&str], &str)] = &[
    ("gmm", &["10", "25", "1000"], "Gaussian mixture"),
    ("ba", &["49", "7776", "31843"], "bundle adjustment"),
    ("lstm", &["2", "1024", "14"], "LSTM"),
];

/// The largest relative error that is accepted.
const LIMIT: f64 = 1e-8;

/// Measures and prints the table.
///
/// # Errors
/// Where Gradus refuses a program, or a gradient is not the one written by hand.
pub fn run(kitchen: &Kitchen) -> Outcome<()> {
    let gradus = Tool::Gradus(kitchen.gradus.clone());
    let mut table = Table::new(&[
        "objective",
        "sizes",
        "value",
        "gradient norm",
        "largest error",
        "tape (bytes)",
        "gradient / primal",
        "by hand",
    ]);
    let mut wrong = Vec::new();
    for (name, sizes, what) in OBJECTIVES {
        eprintln!("  {what} …");
        let ours = course::build(name, &gradus, Purpose::Run, &kitchen.folder)?;
        let memory = course::build(name, &gradus, Purpose::Memory, &kitchen.folder)?;
        let hand = course::build(name, &Tool::Hand, Purpose::Run, &kitchen.folder)?;
        let (result, reference) = (ours.results(sizes)?, hand.results(sizes)?);
        let error = largest_error(&result.gradient, &reference.gradient);
        if error > LIMIT {
            wrong.push(*what);
        }
        let norm: f64 = result.gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        table.row(vec![
            (*what).into(),
            sizes.join(" "),
            format!("{:.10}", result.value),
            format!("{norm:.10}"),
            format!("{error:.1e}"),
            format!("{:.0}", 1e3 * memory.gradient_heap_kb(sizes)?),
            format!("{:.2}", ours.times(sizes)?.ratio()),
            format!("{:.2}", hand.times(sizes)?.ratio()),
        ]);
    }
    for line in table.to_string().lines() {
        println!("  {line}");
    }
    if wrong.is_empty() {
        println!("  every derivative within {LIMIT:e} of the one written by hand");
        Ok(())
    } else {
        Err(format!("not the gradient written by hand: {}", wrong.join(", ")).into())
    }
}

/// The largest |a - b| relative to the larger, where entries far below the root mean square count against
/// a thousandth of it.
fn largest_error(ours: &[f64], reference: &[f64]) -> f64 {
    if ours.len() != reference.len() {
        return f64::INFINITY;
    }
    let squares: f64 = reference.iter().map(|r| r * r).sum();
    let floor = 1e-3 * (squares / reference.len().max(1) as f64).sqrt();
    let error = |(a, b): (&f64, &f64)| {
        let distance = (a - b).abs();
        let relative = distance / a.abs().max(b.abs()).max(floor);
        if distance == 0.0 {
            0.0
        } else if relative.is_nan() {
            f64::INFINITY // as wrong as can be
        } else {
            relative
        }
    };
    ours.iter().zip(reference).map(error).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_relative_and_sees_what_is_not_a_number() {
        assert_eq!(largest_error(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
        assert!((largest_error(&[1.0, 2.002], &[1.0, 2.0]) - 1e-3).abs() < 1e-6);
        assert!(largest_error(&[1.0, 1e-9], &[1.0, 0.0]) < 1e-5);
        assert_eq!(largest_error(&[f64::NAN, 1.0], &[1.0, 1.0]), f64::INFINITY);
        assert_eq!(largest_error(&[1.0], &[1.0, 2.0]), f64::INFINITY);
    }
}
