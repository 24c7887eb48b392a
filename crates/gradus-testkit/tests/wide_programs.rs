//! IR programs through the whole compiler: no wrong derivative, no crash, no hang; and the programs detect
//! faults seeded in the compiler.

use std::process::Command;

fn fuzz(arguments: &[&str]) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_fuzz"))
        .args(arguments)
        .output()
        .expect("the program starts");
    String::from_utf8_lossy(&run.stdout).into_owned()
}

/// Runs programs of a batch; at least `least` must be right.
fn check(seed: &str, count: &str, least: u32) {
    let told = fuzz(&["--ir", "--count", count, "--seed", seed]);
    let right = told.lines().find_map(|l| l.trim().strip_suffix("  ok"));
    let right: u32 = right.and_then(|n| n.trim().parse().ok()).unwrap_or(0);
    let fault =
        |line: &&str| line.contains("WRONG") || line.contains("crash") || line.contains("hang");
    let faults: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("seed "))
        .filter(fault)
        .collect();
    assert!(faults.is_empty() && right >= least, "{right} right\n{told}");
}

/// Batch 43 is differentiated after the early pipeline.
#[test]
fn derivatives_are_right() {
    check("4300", "100", 90);
}

/// Batch 101 is differentiated as written: floats are packed into integers and unpacked by shifts and
/// masks.
#[test]
fn derivatives_are_right_as_written() {
    check("10100", "30", 29);
}

/// Batch 23 goes through LLVM's optimiser after differentiation.
#[test]
fn derivatives_are_right_when_optimised() {
    check("2300", "15", 12);
}

/// Some faults; `cargo xtask fuzz --mutants` seeds all.
#[test]
fn seeded_faults_are_detected() {
    if !cfg!(debug_assertions) {
        return;
    }
    for mutant in ["StoreKeepsAdjoint", "GuardLost", "TanhPartial"] {
        let told = fuzz(&["--mutants", "--mutant", mutant, "--count", "100"]);
        assert!(told.contains("dead after"), "{told}");
    }
}
