//! Gradients of tasks. Each program compares reverse mode, forward mode and finite differences, and prints
//! the gradient's norm and the derivative along a direction.

use crate::support::{accepts, folder, shell, succeeds, text, write};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("tasks/gradients.c");
const PARALLEL: &str = "parallel in the reverse pass";

/// Builds a variant of the program. Returns the folder and the compiler's output.
fn build(name: &str, way: &str, flags: &str) -> (PathBuf, String) {
    let at = folder(name);
    write(&at, "it.c", SOURCE);
    let command =
        format!("gradus cc -g -fopenmp --report=full {flags} -D{way} it.c -o parallel -lm");
    let said = shell(&at, &command);
    (at, text(&said.stdout) + &text(&said.stderr))
}

fn run(at: &Path, program: &str, workers: u32, force: bool) -> String {
    let mut command = Command::new(at.join(program));
    command.arg("400");
    command.env("GRADUS_NUM_THREADS", workers.to_string());
    command.env("TSAN_OPTIONS", "exitcode=66 halt_on_error=1");
    if force {
        command.env("GRADUS_FORCE_FORK", "1");
    }
    text(&succeeds(&mut command).stdout)
}

/// Checks that every run of a program prints its serial output.
fn are_as_serial(at: &Path, way: &str, level: &str) {
    accepts(at, &format!("cc {level} -D{way} it.c -o serial -lm"));
    let serial = run(at, "serial", 1, false);
    for workers in [1, 2, 4] {
        for force in [false, true] {
            let told = run(at, "parallel", workers, force);
            assert_eq!(
                told, serial,
                "{way} {level}, {workers} workers, forced: {force}"
            );
        }
    }
}

#[test]
fn parent_code_gradient_is_parallel() {
    for way in [
        "HALVES",
        "OPENMP",
        "WRITES",
        "THREE",
        "LISTED",
        "CONDITION",
        "INVERTED",
    ] {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            let (at, said) = build(&format!("task_{}", way.to_lowercase()), way, level);
            assert!(said.contains(PARALLEL), "{way} {level}: {said}");
            are_as_serial(&at, way, level);
        }
    }
}

#[test]
fn locked_tasks_are_serial_in_gradient() {
    let (at, said) = build("task_locked", "LOCKED", "-O2");
    assert!(!said.contains(PARALLEL), "{said}");
    are_as_serial(&at, "LOCKED", "-O2");
}

#[test]
fn final_task_children_keep_order() {
    for level in ["-O1", "-O2"] {
        let (at, said) = build("task_final", "FINAL", level);
        assert!(!said.contains(PARALLEL), "{said}");
        are_as_serial(&at, "FINAL", level);
    }
}

#[test]
fn orphaned_tasks_keep_order() {
    for level in ["-O1", "-O2"] {
        let (at, said) = build("task_outside", "OUTSIDE", level);
        assert!(!said.contains(PARALLEL), "{said}");
        are_as_serial(&at, "OUTSIDE", level);
    }
}

#[test]
fn tasks_of_derivatives_run_at_once_without_a_race() {
    for way in ["HALVES", "WRITES", "THREE", "LISTED", "CONDITION"] {
        let name = format!("task_watched_{}", way.to_lowercase());
        let (at, said) = build(&name, way, "-O1 -fsanitize=thread");
        assert!(said.contains(PARALLEL), "{way}: {said}");
        run(&at, "parallel", 4, true);
    }
}

#[test]
fn the_same_bits_come_for_any_number_of_workers() {
    let (at, _) = build("task_bits", "HALVES", "-O2 --deterministic");
    let one = run(&at, "parallel", 1, false);
    for (workers, force) in [(2, false), (4, true)] {
        assert_eq!(
            run(&at, "parallel", workers, force),
            one,
            "{workers} workers"
        );
    }
}

/// The check's driver links the runtime library; its names must not shadow the library's.
#[test]
fn check_of_tasks_with_thread_queries() {
    let at = folder("asked");
    let source = "
#include <omp.h>
void f(const double *x, double *y, int n) {
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < n; i++) {
#pragma omp task firstprivate(i)
    y[i] = x[i] * x[i] * (omp_get_thread_num() >= 0 ? 2.0 : 1.0);
  }
}
";
    write(&at, "asked.c", source);
    let line = "check asked.c -f f --arg n=10 --arg x=rand(n) --arg y=zeros(n) -- -O2 -fopenmp";
    let said = accepts(&at, line);
    assert!(said.contains("the derivative is right"), "{said}");
}
