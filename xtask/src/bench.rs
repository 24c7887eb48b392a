//! `cargo xtask bench`: times of the benchmark suite with hand-written gradients and with gradients by Gradus,
//! in one run.
//!
//! Compared programs are launched in turn, several times, and the smallest time of each counts. Load on the
//! machine slows some launches and speeds up none.
//!
//! # Invariants
//! A ratio enters a geometric mean only if the gradient passed the driver's check.

use crate::course::{self, Program, Purpose, Times, Tool};
use crate::driver_overhead;
use crate::gradus;
use crate::parallel;
use crate::process::{Failure, Outcome};
use crate::switches;
use crate::table::Table;
use crate::workspace;

/// Problem of the benchmark suite: the workload, its sizes, and the target ratio of gradient to primal.
pub struct Problem {
    /// Name of the workload.
    pub name: &'static str,
    /// Sizes, in the driver's order.
    pub sizes: &'static [&'static str],
    /// Target ratio of gradient to primal.
    pub aim: f64,
}

const fn problem(name: &'static str, sizes: &'static [&'static str], aim: f64) -> Problem {
    Problem { name, sizes, aim }
}

// table
const COURSE: &[Problem] = &[
    problem("gmm", &["10", "25", "1000"], 1.6),
    problem("ba", &["49", "2000", "10000"], 3.2),
    problem("lstm", &["2", "256", "14"], 1.9),
    problem("lstm", &["2", "1024", "14"], 1.9),
    problem("bruss", &["32"], 1.3),
    problem("bruss", &["256"], 1.6),
    problem("rk4", &["40", "1000"], 5.0),
    problem("fft", &["1024"], 2.3),
    problem("fft", &["65536"], 2.3),
    problem("nbody", &["64", "20"], 2.4),
    problem("stencil", &["512", "50"], 3.3),
    problem("mlp", &["784", "128", "64", "10", "32"], 1.2),
    problem("cg", &["64", "40"], 2.8),
];

/// Launches of each program.
const LAUNCHES: usize = 5;

/// Figures of one tool on one problem.
struct Figures {
    /// Smallest times of all launches.
    times: Times,
    /// Smallest time of the primal over all launches of the program with aligned functions, in microseconds.
    primal_us: f64,
    /// Largest relative error against finite differences.
    error: f64,
    /// True if the driver accepts the error.
    right: bool,
    /// Peak of the heap in a gradient, in KB.
    heap_kb: f64,
}

/// Programs built for one problem with one tool.
struct Built {
    program: Program,
    aligned: Program,
    memory: Program,
}

/// Runs the benchmark suite, or the rows of the named workloads, and prints the table.
///
/// # Errors
/// Fails if a gradient is wrong or if a workload is unknown.
pub fn run(arguments: &[String]) -> Outcome<()> {
    if let Some(("--parallel", rows)) = arguments.split_first().map(|(a, b)| (a.as_str(), b)) {
        return parallel::run(rows);
    }
    if arguments == ["--drivers"] {
        return driver_overhead::run();
    }
    if arguments == ["--switches"] {
        return switches::run();
    }
    for name in arguments {
        if !COURSE.iter().any(|p| p.name == name) {
            return Err(Failure::new(format!(
                "no workload `{name}` in the benchmark suite"
            )));
        }
    }
    let gradus = Tool::named("gradus")?;
    let mut table = Table::new(&[
        "workload",
        "primal clang (us)",
        "primal gradus (us)",
        "gradus / clang",
        "hand / primal",
        "gradus / primal",
        "aim",
        "error",
        "heap hand (KB)",
        "heap gradus (KB)",
        "",
    ]);
    let (mut hand_ratios, mut gradus_ratios, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let rows: Vec<&Problem> = COURSE
        .iter()
        .filter(|p| arguments.is_empty() || arguments.iter().any(|a| a == p.name))
        .collect();
    for (i, problem) in rows.iter().enumerate() {
        eprintln!(
            "{}/{} {} {}",
            i + 1,
            rows.len(),
            problem.name,
            problem.sizes.join(" ")
        );
        let hand = build(problem, &Tool::Hand)?;
        let ours = gradus.as_ref().map(|tool| build(problem, tool));
        let (hand, ours) = match ours {
            Some(Ok(ours)) => {
                let [hand, ours] = measure(problem, [&hand, &ours])?;
                (hand, Some(Ok(ours)))
            }
            refused => {
                let [hand] = measure(problem, [&hand])?;
                (hand, refused.and_then(Result::err).map(Err))
            }
        };
        hand_ratios.push(hand.times.ratio());
        if let Some(Ok(figures)) = &ours {
            if figures.right {
                gradus_ratios.push(figures.times.ratio());
            } else {
                wrong.push(problem.name);
            }
        }
        table.row(row(problem, &hand, ours));
    }
    println!("{table}");
    println!(
        "geometric mean of gradient / primal: hand {}, gradus {}",
        mean(&hand_ratios),
        mean(&gradus_ratios)
    );
    println!(
        "({} of {} gradients are right; ratios of wrong gradients are excluded)",
        gradus_ratios.len(),
        rows.len()
    );
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!(
            "wrong gradients: {}",
            wrong.join(", ")
        )))
    }
}

/// Builds the programs of one problem with one tool.
fn build(problem: &Problem, tool: &Tool) -> Outcome<Built> {
    let folder = workspace::target().join("course");
    let build = |purpose| course::build(problem.name, tool, purpose, &folder);
    Ok(Built {
        program: build(Purpose::Run)?,
        aligned: build(Purpose::Primal)?,
        memory: build(Purpose::Memory)?,
    })
}

/// Checks the gradients of several tools on a problem, then measures the programs in turn.
fn measure<const N: usize>(problem: &Problem, tools: [&Built; N]) -> Outcome<[Figures; N]> {
    let least = f64::INFINITY;
    let mut times = [Times {
        primal_us: least,
        gradient_us: least,
    }; N];
    let mut primals = [least; N];
    for _ in 0..LAUNCHES {
        for (tool, (times, primal_us)) in tools.iter().zip(times.iter_mut().zip(&mut primals)) {
            *primal_us = primal_us.min(tool.aligned.primal_us(problem.sizes)?);
            let launch = tool.program.times(problem.sizes)?;
            times.primal_us = times.primal_us.min(launch.primal_us);
            times.gradient_us = times.gradient_us.min(launch.gradient_us);
        }
    }
    let mut figures = Vec::new();
    for (tool, (times, primal_us)) in tools.iter().zip(times.into_iter().zip(primals)) {
        let check = tool.program.check(problem.sizes)?;
        figures.push(Figures {
            times,
            primal_us,
            error: check.error,
            right: check.right,
            heap_kb: tool.memory.gradient_heap_kb(problem.sizes)?,
        });
    }
    figures
        .try_into()
        .map_err(|_| Failure::new("the measurement of a tool is missing"))
}

fn row(problem: &Problem, hand: &Figures, ours: Option<Outcome<Figures>>) -> Vec<String> {
    let mut cells = vec![format!("{} {}", problem.name, problem.sizes.join(" "))];
    let aim = format!("{}", problem.aim);
    let hand_heap = format!("{:.1}", hand.heap_kb);
    let (clang_us, hand_ratio) = (
        format!("{:.1}", hand.primal_us),
        format!("{:.2}", hand.times.ratio()),
    );
    match ours {
        Some(Ok(f)) => cells.extend([
            clang_us,
            format!("{:.1}", f.primal_us),
            format!("{:.3}", f.primal_us / hand.primal_us),
            hand_ratio,
            format!("{:.2}", f.times.ratio()),
            aim,
            format!("{:.1e}", f.error),
            hand_heap,
            format!("{:.1}", f.heap_kb),
            if f.right { "ok" } else { "WRONG" }.into(),
        ]),
        other => {
            let why = other.map_or(gradus::NOT_THERE_YET.to_owned(), |r| {
                r.err().map_or(String::new(), |failure| failure.to_string())
            });
            let none = String::new;
            cells.extend([
                clang_us,
                none(),
                none(),
                hand_ratio,
                none(),
                aim,
                none(),
                hand_heap,
                none(),
                why,
            ]);
        }
    }
    cells
}

/// Returns the geometric mean as text.
fn mean(ratios: &[f64]) -> String {
    if ratios.is_empty() {
        return gradus::NOT_THERE_YET.into();
    }
    let logs: f64 = ratios.iter().map(|r| r.ln()).sum();
    format!("{:.2}", (logs / ratios.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_geometric() {
        assert_eq!(mean(&[1.0, 4.0]), "2.00");
        assert_eq!(mean(&[]), "not available");
    }

    #[test]
    fn every_workload_of_the_course_is_measured() {
        let folder = workspace::root().join("bench");
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            if let Some(name) = file.strip_suffix("_hand.c") {
                assert!(COURSE.iter().any(|p| p.name == name), "{name}");
            }
        }
    }
}
