//! `cargo xtask levels`: derivatives of the benchmark suite at every optimisation level, with debug
//! information, under -ffast-math, and from bitcode that clang has optimised. All builds must agree.
//!
//! The reference is the hand-written gradient, on small problems; every entry is compared. The driver's check
//! by finite differences also runs.

use crate::course::{self, Build, Purpose, Tool};
use crate::process::{Failure, Outcome};
use crate::table::Table;
use crate::workspace;

/// Workload and sizes.
const PROBLEMS: &[(&str, &[&str])] = &[
    ("gmm", &["3", "4", "20"]),
    ("ba", &["3", "5", "10"]),
    ("lstm", &["2", "10", "4"]),
    ("bruss", &["8"]),
    ("rk4", &["8", "20"]),
    ("fft", &["32"]),
    ("nbody", &["6", "5"]),
    ("stencil", &["12", "5"]),
    ("mlp", &["12", "8", "6", "4", "3"]),
    ("cg", &["6", "10"]),
];

/// Build options, and the largest accepted error relative to the hand-written gradient.
struct Level {
    build: Build<'static>,
    limit: f64,
}

const fn level(
    label: &'static str,
    flags: &'static [&'static str],
    bitcode: bool,
    limit: f64,
) -> Level {
    Level {
        build: Build {
            label,
            flags,
            bitcode,
            purpose: Purpose::Run,
        },
        limit,
    }
}

const LEVELS: &[Level] = &[
    level("-O0", &["-O0"], false, 1e-9),
    level("-O1", &["-O1"], false, 1e-9),
    level("-O2", &["-O2"], false, 1e-9),
    level("-O3", &["-O3"], false, 1e-9),
    level("-O0-g", &["-O0", "-g"], false, 1e-9),
    level("-O3-g", &["-O3", "-g"], false, 1e-9),
    level("-bc-O3", &["-O3"], true, 1e-9),
    level("-fast", &["-O3", "-ffast-math"], false, 1e-6),
];

/// Builds and compares all workloads, or the named workloads, and prints the table.
///
/// # Errors
/// Fails if a program is refused or if a derivative differs.
pub fn run(arguments: &[String]) -> Outcome<()> {
    if let Some(name) = arguments
        .iter()
        .find(|a| !PROBLEMS.iter().any(|(name, _)| name == a))
    {
        return Err(Failure::new(format!(
            "no workload `{name}` in the benchmark suite"
        )));
    }
    let Some(tool) = Tool::named("gradus")? else {
        return Err(Failure::new("this clone does not build `gradus`"));
    };
    let mut head = vec!["workload"];
    head.extend(LEVELS.iter().map(|l| l.build.label.trim_start_matches('-')));
    let mut table = Table::new(&head);
    let mut failed = 0;
    let mut notes = Vec::new();
    for (name, sizes) in PROBLEMS
        .iter()
        .filter(|(name, _)| arguments.is_empty() || arguments.iter().any(|a| a == name))
    {
        eprintln!("{name} …");
        let mut row = vec![format!("{name} {}", sizes.join(" "))];
        for level in LEVELS {
            match compare(name, sizes, &tool, level) {
                Ok(error) if error <= level.limit => row.push(format!("{error:.0e}")),
                Ok(error) => {
                    failed += 1;
                    row.push(format!("WRONG {error:.0e}"));
                }
                Err(failure) => {
                    failed += 1;
                    notes.push(format!("{name} {}: {failure}", level.build.label));
                    row.push("refused".into());
                }
            }
        }
        table.row(row);
    }
    println!("{table}");
    for note in &notes {
        println!("{note}");
    }
    match failed {
        0 => Ok(()),
        n => Err(Failure::new(format!("{n} builds have a wrong derivative"))),
    }
}

/// Returns the largest error of a build's derivatives relative to the hand-written derivatives.
fn compare(name: &str, sizes: &[&str], tool: &Tool, level: &Level) -> Outcome<f64> {
    let folder = workspace::target().join("levels");
    let hand = course::build(name, &Tool::Hand, Purpose::Run, &folder)?.results(sizes)?;
    let program = course::build_as(name, tool, level.build, &folder)?;
    let ours = program.results(sizes)?;
    if !program.check(sizes)?.right {
        return Ok(f64::INFINITY);
    }
    Ok(course::largest_error(&ours.gradient, &hand.gradient))
}
