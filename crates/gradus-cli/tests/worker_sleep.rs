//! Programs with pauses: sleeping workers are woken, running workers do not delay the exit, and an idle
//! program uses no processor time.
#![cfg(target_os = "linux")]

use crate::support::{folder, succeeds, text};
use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = include_str!("parallel/waits.c");

/// Variants of the program that end normally.
const WAYS: &[&str] = &[
    "idle",
    "pauses",
    "nested",
    "tasks",
    "guest",
    "sizes",
    "forks",
    "barriers",
    "returns",
    "turns",
    "wavefront",
];
/// Variants that end by `exit(7)` while other threads work.
const EXITS: &[&str] = &["exits", "exits_in_team"];

fn run(folder: &Path, way: &str, workers: u32, forces: bool) -> Output {
    // A timeout ends a hang; ten thousand rounds take far less than a scheduler time slice each.
    let limit = if way == "turns" { "20" } else { "120" };
    let mut command = Command::new("timeout");
    command.arg(limit).arg(folder.join("program")).arg(way);
    command.env("OMP_NUM_THREADS", workers.to_string());
    command.env("GRADUS_FORCE_FORK", u32::from(forces).to_string());
    command.output().expect("it starts")
}

#[test]
fn pausing_programs_terminate() {
    let at = folder("worker_sleep");
    std::fs::write(at.join("program.c"), PROGRAM).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args([
        "cc",
        "-O2",
        "-fopenmp",
        "program.c",
        "-o",
        "program",
        "-lm",
        "-lpthread",
    ]);
    succeeds(command.current_dir(&at));
    for (workers, forces) in [(2, true), (3, false), (8, false), (8, true), (1, true)] {
        for way in WAYS.iter().chain(EXITS) {
            let output = run(&at, way, workers, forces);
            let expected = if EXITS.contains(way) { 7 } else { 0 };
            assert!(
                output.status.code() == Some(expected) && text(&output.stdout).ends_with("ok\n"),
                "{way} on {workers} workers: {output:?}"
            );
        }
    }
}
