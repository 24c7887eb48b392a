//! `cargo xtask bench --parallel`: parallel programs beside their serial code.
//!
//! A program of `bench/parallel` prints its name and the microseconds of its kernel. It is built serially
//! by clang, with clang's OpenMP, and by `gradus cc`; a program of `bench/parallel/cilk`, in the words of
//! `gradus/cilk.h`, serially by clang and by `gradus cc`. Runs are interleaved and the smallest time
//! counts, since others use the machine too. Invariant: what the programs print beside the time is
//! the same, or the command fails.

use crate::gradus;
use crate::process::{self, Failure, Outcome};
use crate::table::Table;
use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How often each program runs.
const RUNS: usize = 9;

const FLAGS: [&str; 2] = ["-O3", "-fno-math-errno"];

/// A way to build and run a program.
struct Way {
    title: &'static str,
    ours: bool,
    openmp: bool,
    workers: &'static str,
}

const fn way(title: &'static str, ours: bool, openmp: bool, workers: &'static str) -> Way {
    Way {
        title,
        ours,
        openmp,
        workers,
    }
}

// table
const OPENMP: &[Way] = &[
    way("serial (us)", false, false, "1"),
    way("gradus, 1", true, true, "1"),
    way("gradus, 2", true, true, "2"),
    way("clang OpenMP, 1", false, true, "1"),
];

// table
const WORDS: &[Way] = &[
    way("serial (us)", false, false, "1"),
    way("gradus, 1", true, false, "1"),
    way("gradus, 2", true, false, "2"),
];

/// Measures the rows whose names begin with one of the words given, or all.
///
/// # Errors
/// Where a program does not build, or computes something else.
pub fn run(rows: &[String]) -> Outcome<()> {
    let Some(gradus) = gradus::binary()? else {
        return Err(Failure::new(gradus::NOT_THERE_YET));
    };
    for (folder, ways) in [("", OPENMP), ("cilk", WORDS)] {
        let folder = workspace::root().join("bench/parallel").join(folder);
        let mut head: Vec<&str> = vec!["program"];
        head.extend(ways.iter().map(|way| way.title));
        head.extend(["gradus 1 / serial", "what it was that cost"]);
        let mut table = Table::new(&head);
        for source in programs(&folder, rows)? {
            eprintln!("{}", name(&source));
            table.row(row(&gradus, &source, ways)?);
        }
        println!("{table}");
    }
    Ok(())
}

fn name(source: &Path) -> String {
    let stem = source.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// The programs of a folder: what begins with a number, or in `cilk` all.
fn programs(folder: &Path, rows: &[String]) -> Outcome<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|e| e.to_string())?;
    let mut programs: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .filter(|path| has_main(path))
        .filter(|path| rows.is_empty() || rows.iter().any(|row| name(path).starts_with(row)))
        .collect();
    programs.sort();
    Ok(programs)
}

fn has_main(source: &Path) -> bool {
    std::fs::read_to_string(source).is_ok_and(|text| text.contains("int main("))
}

fn row(gradus: &Path, source: &Path, ways: &[Way]) -> Outcome<Vec<String>> {
    let mut programs = Vec::new();
    for (i, way) in ways.iter().enumerate() {
        programs.push(build(gradus, source, way, i)?);
    }
    let mut best = vec![f64::INFINITY; ways.len()];
    let mut said = None;
    for _ in 0..RUNS {
        for (i, way) in ways.iter().enumerate() {
            // Weeks, for some of clang's.
            if i > 2 && best[i].is_finite() {
                continue;
            }
            let (time, rest) = times(&programs[i], way)?;
            best[i] = best[i].min(time);
            let first = said.get_or_insert_with(|| rest.clone());
            if *first != rest {
                let what = format!("{}: {first} and {rest}", name(source));
                return Err(Failure::new(what));
            }
        }
    }
    let mut cells = vec![name(source)];
    cells.extend(best.iter().map(|time| format!("{time:.3}")));
    cells.push(format!("{:.2}", best[1] / best[0]));
    let text = std::fs::read_to_string(source).unwrap_or_default();
    let cause = text.lines().next().and_then(|l| l.strip_prefix("// "));
    cells.push(cause.unwrap_or_default().to_string());
    Ok(cells)
}

fn build(gradus: &Path, source: &Path, way: &Way, number: usize) -> Outcome<PathBuf> {
    let folder = workspace::target().join("parallel-bench");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let program = folder.join(format!("{}.{number}", name(source)));
    let mut command = match way.ours {
        true => Command::new(gradus),
        false => Command::new("clang-22"),
    };
    if way.ours {
        command.arg("cc");
    }
    command.args(FLAGS);
    if way.openmp {
        command.arg("-fopenmp");
    }
    command.arg("-I").arg(workspace::root().join("include"));
    command.arg(source);
    let text = std::fs::read_to_string(source).unwrap_or_default();
    let other = source.with_file_name("mag_ext.c");
    if text.contains("// with mag_ext.c") {
        command.arg(other);
    }
    process::capture(command.args(["-w", "-lm", "-o"]).arg(&program))?;
    Ok(program)
}

/// The microseconds that a run prints, and what else it prints.
fn times(program: &Path, way: &Way) -> Outcome<(f64, String)> {
    let mut command = Command::new(program);
    command.env("OMP_NUM_THREADS", way.workers);
    command.env("GRADUS_NUM_THREADS", way.workers);
    let said = process::capture(&mut command)?;
    let (mut time, mut rest) = (None, String::new());
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, number, "us"] => time = number.parse().ok(),
            _ => rest.push_str(line),
        }
    }
    let time = time.ok_or_else(|| Failure::new(format!("{said:?} holds no time")))?;
    Ok((time, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kin of the acceptance programs say what cost them their speed; there are enough of them.
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
