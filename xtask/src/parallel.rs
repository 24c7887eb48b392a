//! `cargo xtask bench --parallel`: times of parallel programs, compared with their serial code.
//!
//! A program of `bench/parallel` prints its name, the microseconds and the processor time of its kernel. Clang
//! compiles the program serially and with OpenMP, and `gradus cc` compiles both forms. A program of
//! `bench/parallel/cilk` uses `gradus/cilk.h`. Clang compiles the serial form, `gradus cc` the parallel one;
//! OpenMP tasks, oneTBB (if installed) and Rust with rayon are compared. A program of `bench/parallel/cuda`
//! holds its serial code under `SERIAL`; clang compiles that code as C++, `gradus nvcc` the kernels.
//!
//! Runs are interleaved and the smallest time counts, since other processes use the machine. If a source has a
//! part for `BY_HAND`, the serial time is the smaller of the times with and without the hand-written
//! optimisation. Rows that miss a limit follow each table.
//!
//! # Invariants
//! All builds print equal text besides the times; otherwise the command fails.

use crate::gradus;
use crate::process::{self, Failure, Outcome};
use crate::table::Table;
use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Runs of each program.
const RUNS: usize = 9;
/// A program that takes more microseconds runs once.
const LONG_US: f64 = 1e6;

/// Compiler of a program, with its form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Build {
    Serial,
    ByHand,
    OpenMp,
    Gradus,
    GradusOpenMp,
    SerialOfKernels,
    GradusKernels,
    OpenMpTasks,
    OneTbb,
    Rayon,
}

impl Build {
    /// Returns the compiler's options, without the options that the source requires.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Build::Serial | Build::Gradus | Build::Rayon => &["-O3", "-fno-math-errno"],
            Build::ByHand => &["-O3", "-fno-math-errno", "-DBY_HAND"],
            Build::OpenMp | Build::GradusOpenMp => &["-O3", "-fno-math-errno", "-fopenmp"],
            Build::SerialOfKernels => &["-O3", "-march=native", "-DSERIAL", "-xc++"],
            Build::GradusKernels => &["-O3"],
            Build::OpenMpTasks => &["-O3", "-fno-math-errno", "-fopenmp", "-DOPENMP_TASKS"],
            Build::OneTbb => &[
                "-O3",
                "-fno-math-errno",
                "-DONE_TBB",
                "-ltbb",
                "-lstdc++",
                "-xc++",
            ],
        }
    }

    /// Returns the subcommand of `gradus` that compiles the program.
    fn driver(self) -> Option<&'static str> {
        match self {
            Build::Gradus | Build::GradusOpenMp => Some("cc"),
            Build::GradusKernels => Some("nvcc"),
            _ => None,
        }
    }
}

/// Column of a table: a build and its environment.
struct Way {
    title: &'static str,
    build: Build,
    workers: &'static str,
    forced: bool,
}

const fn way(title: &'static str, build: Build, workers: &'static str) -> Way {
    Way {
        title,
        build,
        workers,
        forced: false,
    }
}

impl Way {
    /// Returns the column with every fork executed as a task.
    const fn forced(mut self) -> Way {
        self.forced = true;
        self
    }
}

// table
const OPENMP: &[Way] = &[
    way("serial (us)", Build::Serial, "1"),
    way("gradus, 1", Build::GradusOpenMp, "1"),
    way("forced", Build::GradusOpenMp, "1").forced(),
    way("gradus, 2", Build::GradusOpenMp, "2"),
    way("by hand", Build::ByHand, "1"),
    way("clang OpenMP, 1", Build::OpenMp, "1"),
];

// table
const WORDS: &[Way] = &[
    way("serial (us)", Build::Serial, "1"),
    way("gradus, 1", Build::Gradus, "1"),
    way("forced", Build::Gradus, "1").forced(),
    way("gradus, 2", Build::Gradus, "2"),
    way("OpenMP tasks, 1", Build::OpenMpTasks, "1"),
    way("2", Build::OpenMpTasks, "2"),
    way("oneTBB, 1", Build::OneTbb, "1"),
    way("2", Build::OneTbb, "2"),
    way("rayon, 1", Build::Rayon, "1"),
    way("2", Build::Rayon, "2"),
];

// table
const KERNELS: &[Way] = &[
    way("serial (us)", Build::SerialOfKernels, "1"),
    way("gradus, 1", Build::GradusKernels, "1"),
    way("forced", Build::GradusKernels, "1").forced(),
    way("gradus, 2", Build::GradusKernels, "2"),
];

/// Indices into the tables of columns.
const SERIAL: usize = 0;
const ONE: usize = 1;
const FORCED: usize = 2;
const TWO: usize = 3;

/// Smallest time and smallest processor time of all runs, in microseconds.
#[derive(Clone, Copy)]
struct Times {
    wall: f64,
    cpu: f64,
}

impl Times {
    const NONE: Times = Times {
        wall: f64::INFINITY,
        cpu: f64::INFINITY,
    };

    fn least(self, other: Times) -> Times {
        Times {
            wall: self.wall.min(other.wall),
            cpu: self.cpu.min(other.cpu),
        }
    }
}

/// Limit on the ratio of a column's time to the serial time.
struct Limit {
    title: &'static str,
    most: f64,
    /// Smallest serial time, in microseconds, at which the limit applies.
    from: f64,
    ratio: fn(&[Times], Times) -> f64,
}

// table
const LIMITS: [Limit; 4] = [
    Limit {
        title: "1 / serial",
        most: 1.05,
        from: 0.0,
        ratio: |times, serial| times[ONE].wall / serial.wall,
    },
    Limit {
        title: "forced / serial",
        most: 1.05,
        from: 1000.0,
        ratio: |times, serial| times[FORCED].wall / serial.wall,
    },
    Limit {
        title: "processor time of 2 / serial",
        most: 1.10,
        from: 1.0,
        ratio: |times, serial| times[TWO].cpu / serial.cpu,
    },
    Limit {
        title: "2 / serial",
        most: 0.6,
        from: 1000.0,
        ratio: |times, serial| times[TWO].wall / serial.wall,
    },
];

/// Measures the rows whose names begin with a given word, or all rows.
///
/// # Errors
/// Fails if a program does not build or prints a different result.
pub fn run(rows: &[String]) -> Outcome<()> {
    let Some(gradus) = gradus::binary()? else {
        return Err(Failure::new(gradus::NOT_THERE_YET));
    };
    for (folder, ways) in [("", OPENMP), ("cilk", WORDS), ("cuda", KERNELS)] {
        let folder = workspace::root().join("bench/parallel").join(folder);
        let mut head: Vec<&str> = vec!["program"];
        head.extend(ways.iter().map(|way| way.title));
        head.extend(LIMITS.iter().map(|limit| limit.title));
        head.push("cause of the cost");
        let mut table = Table::new(&head);
        let mut missed = vec![Vec::new(); LIMITS.len()];
        for source in programs(&folder, rows)? {
            eprintln!("{}", name(&source));
            table.row(row(&gradus, &source, ways, &mut missed)?);
        }
        println!("{table}");
        for (limit, rows) in std::iter::zip(&LIMITS, missed) {
            if !rows.is_empty() {
                let (title, most) = (limit.title, limit.most);
                println!("{title} above {most}: {}", rows.join(", "));
            }
        }
    }
    Ok(())
}

fn name(source: &Path) -> String {
    let stem = source.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Returns the programs of a folder.
fn programs(folder: &Path, rows: &[String]) -> Outcome<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|e| e.to_string())?;
    let mut programs: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "c" || e == "cu"))
        .filter(|path| has_main(path))
        .filter(|path| rows.is_empty() || rows.iter().any(|row| name(path).starts_with(row)))
        .collect();
    programs.sort();
    Ok(programs)
}

fn has_main(source: &Path) -> bool {
    std::fs::read_to_string(source).is_ok_and(|text| text.contains("int main("))
}

fn row(
    gradus: &Path,
    source: &Path,
    ways: &[Way],
    missed: &mut [Vec<String>],
) -> Outcome<Vec<String>> {
    let text = std::fs::read_to_string(source).map_err(|e| e.to_string())?;
    let best = measure(gradus, source, &text, ways)?;
    let mut serial = best[SERIAL];
    for (way, times) in std::iter::zip(ways, &best) {
        if way.build == Build::ByHand {
            serial = serial.least(*times);
        }
    }
    let mut cells = vec![name(source)];
    cells.extend(best.iter().map(|times| match times.wall {
        f64::INFINITY => String::new(),
        wall => format!("{wall:.3}"),
    }));
    for (limit, missed) in std::iter::zip(&LIMITS, missed) {
        let ratio = (limit.ratio)(&best, serial);
        cells.push(format!("{ratio:.2}"));
        if serial.wall >= limit.from && ratio > limit.most {
            missed.push(format!("{} {ratio:.2}", name(source)));
        }
    }
    let cause = text.lines().next().and_then(|l| l.strip_prefix("// "));
    cells.push(cause.unwrap_or_default().to_string());
    Ok(cells)
}

/// Program to start, with its argument.
struct Program(PathBuf, Option<String>);

/// Measures a program in each column; returns [`Times::NONE`] for a column without a build.
fn measure(gradus: &Path, source: &Path, text: &str, ways: &[Way]) -> Outcome<Vec<Times>> {
    let mut programs = Vec::new();
    for way in ways {
        programs.push(match way.build {
            Build::ByHand if !text.contains("BY_HAND") => None,
            Build::OneTbb if !has_tbb() => None,
            Build::Rayon => Some(Program(rayon()?, Some(name(source)))),
            by => Some(Program(build(gradus, source, text, by)?, None)),
        });
    }
    let mut best = vec![Times::NONE; ways.len()];
    let mut said = None;
    for round in 0..RUNS {
        for (i, way) in ways.iter().enumerate() {
            let again = round == 0 || best[i].wall < LONG_US;
            let Some(program) = programs[i].as_ref().filter(|_| again) else {
                continue;
            };
            let (times, rest) = times(program, way)?;
            best[i] = best[i].least(times);
            let first = said.get_or_insert_with(|| rest.clone());
            if *first != rest {
                let what = format!("{}: {first} and {rest}", name(source));
                return Err(Failure::new(what));
            }
        }
    }
    Ok(best)
}

/// Returns whether oneTBB's headers are installed; reports missing headers once.
fn has_tbb() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| {
        let mut look = Command::new("clang-22");
        look.args(["-fsyntax-only", "-include", "oneapi/tbb/task_group.h"]);
        let there = process::capture(look.args(["-xc++", "/dev/null"])).is_ok();
        if !there {
            eprintln!("oneTBB is missing (Debian: libtbb-dev); the columns of oneTBB stay empty");
        }
        there
    })
}

/// Builds the programs of `cilk` in Rust.
fn rayon() -> Outcome<PathBuf> {
    let mut build = workspace::cargo();
    build.args(["build", "--quiet", "--release", "--package", "gradus-rt"]);
    process::show(build.args(["--example", "rayon"]))?;
    Ok(workspace::target().join("release/examples/rayon"))
}

fn build(gradus: &Path, source: &Path, text: &str, by: Build) -> Outcome<PathBuf> {
    let folder = workspace::target().join("parallel-bench");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let mut command = match by.driver() {
        Some(driver) => {
            let mut command = Command::new(gradus);
            command.arg(driver);
            command
        }
        None => Command::new("clang-22"),
    };
    command.args(by.flags());
    command.arg("-I").arg(workspace::root().join("include"));
    command.arg(source);
    if text.contains("// with mag_ext.c") {
        command.arg(source.with_file_name("mag_ext.c"));
    }
    let program = folder.join(format!("{}.{}", name(source), by as usize));
    process::capture(command.args(["-w", "-lm", "-o"]).arg(&program))?;
    Ok(program)
}

/// Runs a program and returns the printed times and the remaining output.
fn times(program: &Program, way: &Way) -> Outcome<(Times, String)> {
    let Program(path, argument) = program;
    let mut command = Command::new(path);
    command.args(argument);
    for runtime in ["OMP", "GRADUS", "RAYON"] {
        command.env(format!("{runtime}_NUM_THREADS"), way.workers);
    }
    if way.forced {
        command.env("GRADUS_FORCE_FORK", "1");
    }
    let said = process::capture(&mut command)?;
    let (mut times, mut rest) = (None, String::new());
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, wall, "us", cpu, "us"] => {
                let parsed = (wall.parse(), cpu.parse());
                times = match parsed {
                    (Ok(wall), Ok(cpu)) => Some(Times { wall, cpu }),
                    _ => None,
                };
            }
            _ => rest.push_str(line),
        }
    }
    let times = times.ok_or_else(|| Failure::new(format!("{said:?} contains no time")))?;
    Ok((times, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each variant of an acceptance program states the cause of its slowdown, and enough variants exist.
    #[test]
    fn every_further_row_names_its_cause() {
        let folder = workspace::root().join("bench/parallel");
        let mut causes = std::collections::HashSet::new();
        let mut count = 0;
        for source in programs(&folder, &[]).unwrap() {
            let text = std::fs::read_to_string(&source).unwrap();
            let cause = text.lines().next().and_then(|l| l.strip_prefix("// "));
            count += 1;
            assert!(cause.is_some(), "{} names no cause", source.display());
            causes.extend(cause.map(str::to_owned));
        }
        assert!(count >= 58 && causes.len() >= 12, "{count}, {causes:?}");
    }
}
