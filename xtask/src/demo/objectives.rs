//! Stage 2: ADBench's three objectives on generated data of ADBench's sizes, compared with hand-written
//! gradients.

use super::Kitchen;
use crate::course::{self, Purpose, Tool};
use crate::process::Outcome;
use crate::table::Table;

/// Workload of the benchmark suite, sizes, and description.
const OBJECTIVES: &[(&str, &[&str], &str)] = &[
    ("gmm", &["10", "25", "1000"], "Gaussian mixture"),
    ("ba", &["49", "7776", "31843"], "bundle adjustment"),
    ("lstm", &["2", "1024", "14"], "LSTM"),
];

/// Largest accepted relative error.
const LIMIT: f64 = 1e-8;

/// Measures and prints the table.
///
/// # Errors
/// Fails if Gradus refuses a program or if a gradient differs from the hand-written gradient.
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
        let error = course::largest_error(&result.gradient, &reference.gradient);
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
        println!("  every derivative is within {LIMIT:e} of the hand-written derivative");
        Ok(())
    } else {
        Err(format!(
            "different from the hand-written gradient: {}",
            wrong.join(", ")
        )
        .into())
    }
}
