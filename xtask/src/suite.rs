//! `cargo xtask test`: runs every check, also after a failure; with a name, the tests of one area.
//!
//! # Invariants
//! The last line names the passed and the failed steps.

use crate::area::ExpectedResults;
use crate::process::{self, Failure, Outcome};
use crate::{area, docs, frameworks, gradus, python, setup, tidy, wheel, workspace};
use std::time::Instant;

/// Runs all checks, or the tests of the area NAME.
///
/// # Errors
/// Fails if a check fails, or if no test matches NAME; the failure names all failed checks.
pub fn test(arguments: &[String]) -> Outcome<()> {
    let with_setup = match arguments {
        [] => true,
        [only] if only == "--no-setup" => false,
        [name] if matches!(name.as_str(), "python" | "gradus-python") => return python::run(&[]),
        [name, chosen @ ..] if name == "frameworks" => return frameworks::run(chosen),
        [name] if !name.starts_with('-') => return area::run(name, ExpectedResults::Check),
        _ => {
            return Err(Failure::new(
                "usage: cargo xtask test [NAME | --no-setup]; NAME is a crate, a test file, a folder of case pages, or a part of a test function's name",
            ));
        }
    };
    let mut report = Report::default();
    if with_setup {
        report.step("setup", || setup::run(&[]));
    }
    report.step("tidy", || tidy::run(&[]));
    if cargo_has("fmt") {
        report.step("format", || {
            cargo(&["fmt", "--all", "--check"])?;
            cargo(&["fmt", "--all", "--check", MANIFEST_PATH, RUST_CRATES])
        });
    }
    if cargo_has("clippy") {
        // Lints on mistakes are errors. The formatter and the author decide about style.
        let command = "clippy --workspace --all-targets --quiet --keep-going --";
        let lints = "-D warnings -A clippy::style -A clippy::complexity";
        let lints: Vec<&str> = command.split(' ').chain(lints.split(' ')).collect();
        report.step("clippy", || {
            cargo(&lints)?;
            let own = [
                "clippy",
                MANIFEST_PATH,
                RUST_CRATES,
                "--all-targets",
                "--quiet",
            ];
            cargo(&[&own, &lints[5..]].concat())
        });
    }
    if cargo_has("nextest") {
        let all = [
            "nextest",
            "run",
            "--workspace",
            "--no-fail-fast",
            "--status-level",
            "fail",
        ];
        report.step("tests", || cargo(&all));
        report.step("doc tests", || {
            cargo(&["test", "--workspace", "--doc", "--quiet"])
        });
    } else {
        report.step("tests", || {
            cargo(&["test", "--workspace", "--no-fail-fast"])
        });
    }
    report.step("docs", || docs::run(&[]));
    report.step("python", || python::run(&[]));
    report.step("wheel", || {
        let programs = workspace::target().join("debug").display().to_string();
        wheel::run(&["--from".into(), programs])
    });
    report.close()
}

/// Rewrites the lower half of case pages and the generated pages of the manual: all, or those of the area NAME.
///
/// # Errors
/// Fails if the checks of a page fail (a wrong page is not rewritten), or if no test matches NAME.
pub fn bless(arguments: &[String]) -> Outcome<()> {
    match arguments {
        [] => {
            let mut command = workspace::cargo();
            command
                .env("GRADUS_BLESS", "1")
                .args(["test", "--workspace", "--no-fail-fast"]);
            process::show(&mut command)?;
        }
        [name] => area::run(name, ExpectedResults::Rewrite)?,
        _ => {
            return Err(Failure::new(
                "usage: cargo xtask bless [NAME]; NAME is a crate, a test file, a folder of case pages, or a part of a test function's name",
            ));
        }
    }
    println!("\nReview the changes: git diff");
    Ok(())
}

/// Runs PROGRAMS random programs, from SEED on, through every pass and the three-way check. A failing program
/// is reduced and printed.
///
/// # Errors
/// Fails if a program fails.
pub fn fuzz(arguments: &[String]) -> Outcome<()> {
    if arguments.first().is_some_and(|word| word == "--cuda") {
        return fuzz_cuda(&arguments[1..]);
    }
    if arguments.first().is_some_and(|word| word.starts_with("--")) {
        let mut command = workspace::cargo();
        command.args(["run", "--quiet", "--profile", "fuzz"]);
        command.args(["--package", "gradus-testkit", "--bin", "fuzz", "--"]);
        command.args(arguments);
        let links = ["--tsan", "--shares", "--mutants"];
        if arguments.iter().any(|word| links.contains(&word.as_str())) {
            // Most seeded faults are found without the linker.
            match gradus::binary()? {
                Some(gradus) => drop(command.arg("--linker").arg(gradus)),
                None if arguments.iter().any(|word| word == "--mutants") => {}
                None => return Err(Failure::new(gradus::NOT_THERE_YET)),
            }
        }
        return process::show(&mut command);
    }
    let number = |i: usize, otherwise: &str| match arguments.get(i) {
        None => Ok(otherwise.to_owned()),
        Some(n) if n.parse::<u64>().is_ok() => Ok(n.clone()),
        Some(_) => Err(Failure::new(
            "usage: cargo xtask fuzz [PROGRAMS [SEED]], or for C: cargo xtask fuzz --count N [--seed S], for IR programs --ir, for fork-join programs --parallel [--tsan], for kernels --kernels, for CUDA sources --cuda, for call graphs of worksharing functions --shares, for points-to analyses --points-to, for mutants --mutants",
        )),
    };
    let mut command = workspace::cargo();
    command
        .env("GRADUS_FUZZ", number(0, "10000")?)
        .env("GRADUS_FUZZ_SEED", number(1, "0")?);
    command.env("GRADUS_FUZZ_REDUCE", "1");
    command.args([
        "test",
        "--release",
        "--package",
        "gradus-testkit",
        "--test",
        "main",
        "fuzz::",
        "--",
        "--nocapture",
    ]);
    process::show(&mut command)
}

/// Runs random CUDA kernels: `--count N`, `--seed S`.
fn fuzz_cuda(arguments: &[String]) -> Outcome<()> {
    let mut command = workspace::cargo();
    for pair in arguments.chunks(2) {
        let (name, number) = match pair {
            [word, number] if word == "--count" => ("GRADUS_FUZZ", number),
            [word, number] if word == "--seed" => ("GRADUS_FUZZ_SEED", number),
            _ => {
                return Err(Failure::new(
                    "usage: cargo xtask fuzz --cuda [--count N] [--seed S]",
                ));
            }
        };
        command.env(name, number);
    }
    command.args(["test", "--package", "gradus-cli", "--test", "main"]);
    command.arg("cuda_made::");
    process::show(&mut command)
}

#[derive(Default)]
struct Report {
    passed: Vec<String>,
    failed: Vec<&'static str>,
}

impl Report {
    fn step(&mut self, name: &'static str, run: impl FnOnce() -> Outcome<()>) {
        println!("== {name}");
        let start = Instant::now();
        match run() {
            Ok(()) => self
                .passed
                .push(format!("{name} {:.0} s", start.elapsed().as_secs_f64())),
            Err(failure) => {
                println!("== {name} FAILED: {failure}");
                self.failed.push(name);
            }
        }
    }

    fn close(self) -> Outcome<()> {
        println!("\n== passed: {}", self.passed.join(", "));
        if self.failed.is_empty() {
            println!("== all checks passed");
            Ok(())
        } else {
            Err(Failure::new(format!("failed: {}", self.failed.join(", "))))
        }
    }
}

const MANIFEST_PATH: &str = "--manifest-path";
/// The workspace of the crates for Rust programs.
const RUST_CRATES: &str = "rust/Cargo.toml";

fn cargo(arguments: &[&str]) -> Outcome<()> {
    process::show(workspace::cargo().args(arguments))
}

fn cargo_has(name: &str) -> bool {
    process::capture(workspace::cargo().args([name, "--version"])).is_ok()
}
