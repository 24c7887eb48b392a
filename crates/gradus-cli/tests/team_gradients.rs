//! Gradients of teams: regions whose threads query their numbers or wait at barriers. Each program compares
//! reverse mode, forward mode and finite differences with equal thread counts, and prints the gradient's
//! norm and the derivative along a direction.

use crate::support::{accepts, folder, run, shell, text, write};
use std::path::{Path, PathBuf};

const SOURCE: &str = include_str!("teams/gradients.c");
const ONE_THREAD: &str = "runs this parallel region with one thread";

/// Builds a variant of the program. Returns the folder and the compiler's output.
fn build(name: &str, way: &str, flags: &str) -> (PathBuf, String) {
    let at = folder(name);
    write(&at, "it.c", SOURCE);
    let command =
        format!("gradus cc -g -fopenmp --report=full {flags} -D{way} it.c -o parallel -lm");
    let said = shell(&at, &command);
    (at, text(&said.stdout) + &text(&said.stderr))
}

/// Checks that every run of a program is consistent and, if given, prints `wanted`.
fn all_agree(at: &Path, wanted: Option<&str>, what: &str) {
    for workers in [1, 2, 4] {
        for force in [false, true] {
            let told = run(at, "parallel", "400", workers, force);
            if let Some(wanted) = wanted {
                assert_eq!(told, wanted, "{what}, {workers} workers, forced: {force}");
            }
        }
    }
}

#[test]
fn barrier_teams_have_serial_gradient() {
    for way in [
        "BARRIERS",
        "PARTIAL",
        "STEPS",
        "COPIED",
        "DEALT",
        "CALLED",
        "ASKED",
        "SCATTERED",
    ] {
        for level in ["-O1", "-O2", "-O3"] {
            let (at, said) = build(&format!("team_{}", way.to_lowercase()), way, level);
            assert!(!said.contains(ONE_THREAD), "{way}: {said}");
            accepts(&at, &format!("cc {level} -D{way} it.c -o serial -lm"));
            let serial = run(&at, "serial", "400", 1, false);
            all_agree(&at, Some(&serial), &format!("{way} {level}"));
        }
    }
}

/// A region whose threads have private arrays of run-time length is a team, and releases the arrays at the
/// end. The derivative runs the region with a single thread, and a note says so.
#[test]
fn teams_with_runtime_length_arrays() {
    for level in ["-O1", "-O2", "-O3"] {
        let (at, said) = build("team_lengths", "LENGTHS", level);
        assert!(!said.contains("is not raised"), "{said}");
        accepts(&at, &format!("cc {level} -DLENGTHS it.c -o serial -lm"));
        let serial = run(&at, "serial", "400", 1, false);
        all_agree(&at, Some(&serial), &format!("LENGTHS {level}"));
    }
}

/// Threads compute chunks from their thread numbers, and convert the numbers to floats, like the program's
/// own floats.
#[test]
fn thread_number_chunks_are_parallel() {
    for way in ["PI", "PIECES", "SLOTS", "BESIDE"] {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            let (at, said) = build(&format!("team_{}", way.to_lowercase()), way, level);
            assert!(!said.contains("note["), "{way} {level}: {said}");
            assert!(
                !said.contains("serial in the reverse pass"),
                "{way} {level}: {said}"
            );
            let parallel = said.matches("parallel in the reverse pass").count();
            let wanted = if way == "BESIDE" { 2 } else { 1 };
            assert_eq!(parallel, wanted, "{way} {level}: {said}");
            accepts(&at, &format!("cc {level} -D{way} it.c -o serial -lm"));
            let serial = run(&at, "serial", "400", 1, false);
            all_agree(&at, Some(&serial), &format!("{way} {level}"));
        }
    }
}

/// A loop for a single thread runs on a single thread in the reverse pass, too, for any number of threads
/// at that time.
#[test]
fn single_thread_loop_stays_single() {
    for way in ["ALONE", "TOLD"] {
        let (at, said) = build(&format!("team_{}", way.to_lowercase()), way, "-O2");
        assert!(!said.contains("note["), "{way}: {said}");
        accepts(&at, &format!("cc -O2 -D{way} it.c -o serial -lm"));
        let serial = run(&at, "serial", "400", 1, false);
        all_agree(&at, Some(&serial), way);
    }
}

/// The flags counted by `FLAGS` are distinguished only by their locations.
#[test]
fn thread_count_dependent_gradients() {
    for way in ["FLAGS", "WORK", "SIZED", "MOVED"] {
        let (at, said) = build(&format!("team_{}", way.to_lowercase()), way, "-O2");
        assert!(!said.contains(ONE_THREAD), "{way}: {said}");
        all_agree(&at, None, way);
    }
}

#[test]
fn spin_waiting_team_has_one_thread() {
    let (at, said) = build("team_kept", "KEPT", "-O2");
    assert!(said.contains(ONE_THREAD), "{said}");
    accepts(&at, "cc -O2 -DKEPT it.c -o serial -lm");
    let serial = run(&at, "serial", "400", 1, false);
    all_agree(&at, Some(&serial), "KEPT");
}

#[test]
fn deterministic_team_gradients() {
    for way in ["STEPS", "SIZED"] {
        let name = format!("team_bits_{}", way.to_lowercase());
        let (at, said) = build(&name, way, "-O2 --deterministic");
        assert_eq!(said.contains(ONE_THREAD), way == "STEPS", "{way}: {said}");
        let one = run(&at, "parallel", "400", 1, false);
        all_agree(&at, Some(&one), way);
    }
}

/// Saved values of a loop with a rank-dependent trip count do not make ranks wait for each other.
#[test]
fn rank_dependent_trip_counts() {
    let (at, said) = build("team_own_lengths", "BARRIERS", "-O2");
    assert!(!said.contains("serial in the reverse pass"), "{said}");
    accepts(&at, "cc -O2 -DBARRIERS it.c -o serial -lm");
    let serial = run(&at, "serial", "400", 1, false);
    all_agree(&at, Some(&serial), "BARRIERS");
}

#[test]
fn loops_over_ranks_run_at_once_without_a_race() {
    for way in [
        "PARTIAL", "STEPS", "COPIED", "WORK", "BARRIERS", "PI", "SLOTS", "BESIDE",
    ] {
        let (at, said) = build(
            &format!("team_watched_{}", way.to_lowercase()),
            way,
            "-O1 -fsanitize=thread",
        );
        assert!(
            said.contains("parallel in the reverse pass"),
            "{way}: {said}"
        );
        run(&at, "parallel", "400", 4, true);
    }
}
