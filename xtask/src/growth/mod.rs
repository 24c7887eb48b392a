//! `cargo xtask growth`: growth of the compile time with the size of the program.
//!
//! Programs have n, 2n and 4n statements, calls, branches or exits. The compile time must grow in proportion,
//! and must stay within three times clang's time for the program with a hand-written gradient. Twenty thousand
//! early exits and a chain of five thousand calls must compile.
//!
//! Times are processor times; a short compilation runs twice and the smaller time counts. The table also holds
//! clang's time for the primal alone and for the hand-written gradient. Clang's -O3 is quadratic in the length
//! of a block with thousands of statements; the table omits a hand-written gradient beyond the time limit. The
//! command runs every gradient and checks a directional difference.

mod programs;

use crate::gradus;
use crate::process::{self, Failure, Outcome};
use crate::table::Table;
use crate::workspace;
use programs::{FAMILIES, Family, program};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Largest ratio of compile times between a program and one of half the size.
const GROWTH_MAX: f64 = 2.3;
/// Largest ratio of the compile time to clang's time with a hand-written gradient.
const RATIO_MAX: f64 = 3.0;
const LIMIT: Duration = Duration::from_secs(600);
/// Time limit on clang's compilation of a hand-written gradient.
const BY_HAND_LIMIT: Duration = Duration::from_secs(20);
/// A compilation of more seconds is measured once.
const SHORT: f64 = 2.0;

/// Compiles all families, or the named families, and prints the table.
///
/// # Errors
/// Fails if a program does not compile, has a wrong gradient, or exceeds a limit.
pub fn run(arguments: &[String]) -> Outcome<()> {
    let Some(gradus) = gradus::binary()? else {
        return Err(Failure::new("this clone does not build `gradus`"));
    };
    let folder = workspace::target().join("growth");
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
    let mut table = Table::new(&[
        "program",
        "n",
        "gradus (s)",
        "per doubling",
        "clang, by hand (s)",
        "per doubling",
        "ratio",
        "clang, primal alone (s)",
        "ratio",
        "",
    ]);
    let mut failed = Vec::new();
    for family in FAMILIES
        .iter()
        .filter(|f| arguments.is_empty() || arguments.iter().any(|a| a == f.name))
    {
        let mut before = None;
        for k in 0..=family.doublings {
            let n = family.size << k;
            eprintln!("{} {n} …", family.name);
            let times = measure(family, n, &gradus, &folder)?;
            let verdict = verdict(&times, before.as_ref());
            if verdict != "ok" {
                failed.push(format!("{} {n}", family.name));
            }
            table.row(row(family, n, &times, before.as_ref(), verdict));
            before = Some(times);
        }
    }
    println!("{table}");
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("failed: {}", failed.join(", "))))
    }
}

/// Compile times of one program, in seconds.
struct Times {
    gradus: Outcome<f64>,
    /// `None` if clang exceeds the time limit.
    by_hand: Option<f64>,
    primal: f64,
}

impl Times {
    fn growth(&self, before: Option<&Times>) -> Option<f64> {
        let before = before?.gradus.as_ref().ok()?;
        Some(self.gradus.as_ref().ok()? / before)
    }
}

fn measure(family: &Family, n: usize, gradus: &Path, folder: &Path) -> Outcome<Times> {
    let source: PathBuf = folder.join(format!("{}-{n}.c", family.name.replace(' ', "-")));
    std::fs::write(&source, program(family, n)).map_err(|e| Failure::new(e.to_string()))?;
    let clang = |what: &str, limit| {
        compile_time(Command::new(workspace::clang()).arg(what), &source, limit)
    };
    let primal = clang("-DPRIMAL", LIMIT)?;
    let by_hand = clang("-DBY_HAND", BY_HAND_LIMIT).ok();
    if by_hand.is_some() {
        check(&source)?;
    }
    let gradus = compile_time(Command::new(gradus).arg("cc"), &source, LIMIT)
        .and_then(|time| check(&source).map(|()| time));
    Ok(Times {
        gradus,
        by_hand,
        primal,
    })
}

fn verdict(times: &Times, before: Option<&Times>) -> String {
    let time = match &times.gradus {
        Ok(time) => time,
        Err(failure) => return failure.to_string(),
    };
    let fast = times.growth(before).is_some_and(|g| g > GROWTH_MAX);
    let long = times.by_hand.is_some_and(|t| time / t > RATIO_MAX);
    match (fast, long) {
        (true, _) => "grows too fast".into(),
        (_, true) => "takes too long".into(),
        _ => "ok".into(),
    }
}

fn row(
    family: &Family,
    n: usize,
    times: &Times,
    before: Option<&Times>,
    verdict: String,
) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.2}"));
    let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    let gradus = times.gradus.as_ref().ok().copied();
    vec![
        family.name.into(),
        n.to_string(),
        number(gradus),
        number(times.growth(before)),
        number(times.by_hand),
        number(ratio(times.by_hand, before.and_then(|b| b.by_hand))),
        number(ratio(gradus, times.by_hand)),
        number(Some(times.primal)),
        number(ratio(gradus, Some(times.primal))),
        verdict,
    ]
}

/// Compiles a source at -O3 and returns the processor seconds of the faster of two compilations. The program is
/// written next to the source.
fn compile_time(compiler: &mut Command, source: &Path, limit: Duration) -> Outcome<f64> {
    compiler
        .args(["-w", "-O3", "-fbracket-depth=100000"])
        .arg(source)
        .args(["-lm", "-o"])
        .arg(source.with_extension(""));
    let mut best = f64::INFINITY;
    for _ in 0..2 {
        let (done, seconds) = process::processor_time(compiler, limit)?;
        if !done.succeeded() {
            return Err(Failure::new(format!(
                "{}: {}",
                done.ending(),
                gradus::reason(&done.stderr)
            )));
        }
        best = best.min(seconds);
        if best > SHORT {
            break;
        }
    }
    Ok(best)
}

fn check(source: &Path) -> Outcome<()> {
    let done = process::within(&mut Command::new(source.with_extension("")), LIMIT)?;
    if done.succeeded() {
        Ok(())
    } else {
        Err(Failure::new(format!(
            "the gradient program: {} {}",
            done.ending(),
            done.stdout.trim()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_a_program_whose_gradient_by_hand_is_right() {
        let folder = workspace::target().join("growth-test");
        std::fs::create_dir_all(&folder).unwrap();
        for family in FAMILIES {
            let source = folder.join(format!("{}.c", family.name.replace(' ', "-")));
            std::fs::write(&source, program(family, 20)).unwrap();
            for what in ["-DPRIMAL", "-DBY_HAND"] {
                compile_time(Command::new(workspace::clang()).arg(what), &source, LIMIT).unwrap();
                check(&source).unwrap();
            }
        }
    }
}
