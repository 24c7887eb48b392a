//! `cargo xtask roundtrip`: sqlite and zlib through the IR and back (`gradus cc --restructure-all`), compared
//! with clang. Results must be equal, and the run time must stay within a limit.
//!
//! Runs are interleaved and the fastest run of each build counts, hence load on the machine affects both builds
//! alike.

use crate::gradus;
use crate::process::{self, Failure, Finished, Outcome};
use crate::sources::{self, Shipped};
use crate::table::Table;
use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Library, its compiled sources, and a program that exercises the library.
struct Subject {
    name: &'static str,
    shipped: Shipped,
    sources: &'static [&'static str],
    flags: &'static [&'static str],
    work: &'static str,
}

const SUBJECTS: &[Subject] = &[
    Subject {
        name: "zlib",
        shipped: sources::ZLIB,
        sources: &[
            "adler32.c",
            "compress.c",
            "crc32.c",
            "deflate.c",
            "infback.c",
            "inffast.c",
            "inflate.c",
            "inftrees.c",
            "trees.c",
            "uncompr.c",
            "zutil.c",
        ],
        flags: &[],
        work: include_str!("zlib_work.c"),
    },
    Subject {
        name: "sqlite",
        shipped: sources::SQLITE,
        sources: &["sqlite3.c"],
        flags: &["-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION"],
        work: include_str!("sqlite_work.c"),
    },
];

const RUNS: usize = 9;
/// Largest ratio of the run time to clang's.
const LIMIT: f64 = 1.02;
const BUILD_LIMIT: Duration = Duration::from_secs(900);
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Builds both programs, compares the results, and prints the table.
///
/// # Errors
/// Fails if results differ or if the restructured program exceeds the limit.
pub fn run(arguments: &[String]) -> Outcome<()> {
    if let Some(name) = arguments
        .iter()
        .find(|a| !SUBJECTS.iter().any(|s| s.name == *a))
    {
        return Err(Failure::new(format!(
            "unknown library `{name}`: expected zlib or sqlite"
        )));
    }
    let Some(gradus) = gradus::binary()? else {
        return Err(Failure::new("this clone does not build `gradus`"));
    };
    let mut table = Table::new(&[
        "program",
        "clang (s)",
        "restructured (s)",
        "ratio",
        "compile clang (s)",
        "gradus (s)",
        "",
    ]);
    let mut failed = Vec::new();
    for subject in SUBJECTS
        .iter()
        .filter(|s| arguments.is_empty() || arguments.iter().any(|a| a == s.name))
    {
        eprintln!("{} …", subject.name);
        match compare(subject, &gradus) {
            Ok(row) => {
                if row.verdict != "ok" {
                    failed.push(subject.name);
                }
                table.row(row.cells(subject.name));
            }
            Err(failure) => {
                failed.push(subject.name);
                let none = String::new;
                table.row(vec![
                    subject.name.into(),
                    none(),
                    none(),
                    none(),
                    none(),
                    none(),
                    failure.to_string(),
                ]);
            }
        }
    }
    println!("{table}");
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("failed: {}", failed.join(", "))))
    }
}

struct Row {
    run: [f64; 2],
    build: [f64; 2],
    verdict: String,
}

impl Row {
    fn cells(&self, name: &str) -> Vec<String> {
        let seconds = |s: f64| format!("{s:.3}");
        vec![
            name.into(),
            seconds(self.run[0]),
            seconds(self.run[1]),
            format!("{:.3}", self.run[1] / self.run[0]),
            seconds(self.build[0]),
            seconds(self.build[1]),
            self.verdict.clone(),
        ]
    }
}

fn compare(subject: &Subject, gradus: &Path) -> Outcome<Row> {
    let sources = subject.shipped.locate()?;
    let folder = workspace::target().join("roundtrip");
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
    let work = folder.join(format!("{}_work.c", subject.name));
    std::fs::write(&work, subject.work)
        .map_err(|e| Failure::new(format!("{}: {e}", work.display())))?;
    let clang = folder.join(format!("{}-clang", subject.name));
    let ours = folder.join(format!("{}-restructured", subject.name));
    let build = |compiler: &mut Command, program: &Path| {
        compiler
            .args(["-w", "-O2"])
            .args(subject.flags)
            .arg("-I")
            .arg(&sources);
        compiler
            .args(subject.sources.iter().map(|s| sources.join(s)))
            .arg(&work)
            .args(["-lm", "-o"])
            .arg(program);
        let start = Instant::now();
        let done = process::within(compiler, BUILD_LIMIT)?;
        if !done.succeeded() {
            return Err(Failure::new(format!(
                "{}: {}",
                done.ending(),
                gradus::reason(&done.stderr)
            )));
        }
        // Functions that `gradus` left unchanged, with the reason.
        for line in done.stderr.lines() {
            println!("{}: {line}", subject.name);
        }
        Ok(start.elapsed().as_secs_f64())
    };
    let by_clang = build(&mut Command::new(workspace::clang()), &clang)?;
    let by_gradus = build(
        Command::new(gradus).args(["cc", "--restructure-all"]),
        &ours,
    )?;
    let mut run = [f64::INFINITY; 2];
    let mut hashes = [None, None];
    for _ in 0..RUNS {
        for (i, program) in [&clang, &ours].into_iter().enumerate() {
            let (hash, seconds) = work_done(program)?;
            run[i] = run[i].min(seconds);
            hashes[i] = Some(hash);
        }
    }
    let verdict = if hashes[0] != hashes[1] {
        "DIFFERENT RESULTS".to_owned()
    } else if run[1] > LIMIT * run[0] {
        format!("slower than {LIMIT}×")
    } else {
        "ok".to_owned()
    };
    Ok(Row {
        run,
        build: [by_clang, by_gradus],
        verdict,
    })
}

/// Returns the hash and the seconds that a work program prints.
fn work_done(program: &PathBuf) -> Outcome<(String, f64)> {
    let done = process::within(&mut Command::new(program), RUN_LIMIT)?;
    read_work(&done)
        .ok_or_else(|| Failure::new(format!("{}: {}", program.display(), done.ending())))
}

fn read_work(done: &Finished) -> Option<(String, f64)> {
    let after = |label: &str| {
        done.stdout
            .lines()
            .find_map(|line| line.strip_prefix(label))
            .map(str::trim)
    };
    let hash = after("hash ").filter(|_| done.succeeded())?.to_owned();
    Some((hash, after("seconds ")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_work_prints_is_read_and_a_failure_is_not() {
        let ran = |script: &str| {
            read_work(&process::within(Command::new("sh").args(["-c", script]), RUN_LIMIT).unwrap())
        };
        assert_eq!(
            ran("echo hash 1f; echo seconds 0.5"),
            Some(("1f".into(), 0.5))
        );
        assert_eq!(ran("echo hash 1f; echo seconds 0.5; exit 1"), None);
        assert_eq!(ran("echo seconds 0.5"), None);
    }
}
