//! Programs that stop and go: workers that sleep are woken, workers that are awake keep nobody from ending, and an idle
//! program takes no time of the processor.
#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::process::{Command, Output};
use support::{folder, succeeds, text};

const PROGRAM: &str = include_str!("parallel/waits.c");

/// Ways through the program that end as usual.
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
/// Ways that end by `exit(7)` while others work.
const EXITS: &[&str] = &["exits", "exits_in_team"];

fn run(folder: &Path, way: &str, workers: u32, forces: bool) -> Output {
    // Who waits for ever is ended; ten thousand turns take far less than a moment of the system's for each.
    let limit = if way == "turns" { "20" } else { "120" };
    let mut command = Command::new("timeout");
    command.arg(limit).arg(folder.join("program")).arg(way);
    command.env("OMP_NUM_THREADS", workers.to_string());
    command.env("GRADUS_FORCE_FORK", u32::from(forces).to_string());
    command.output().expect("it starts")
}

#[test]
fn programs_that_stop_and_go_end() {
    let at = folder("waits");
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
