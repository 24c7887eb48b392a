//! Clauses of tasks and of task loops, and queries inside tasks: semantics as in OpenMP, for any number of
//! workers, and as in clang's programs.

use crate::support::{accepts, folder, refuses, shell, succeeds, text, write};
use std::path::Path;
use std::process::Command;

fn run(at: &Path, program: &str, workers: &str, forced: &str) -> String {
    let mut command = Command::new(at.join(program));
    command.env("OMP_NUM_THREADS", workers);
    command.env("GRADUS_FORCE_FORK", forced);
    text(&succeeds(&mut command).stdout)
}

/// Builds a program at every level, with all its regions raised, and compares its output with `wanted` and
/// with the output under OpenMP's library.
fn prints(name: &str, source: &str, wanted: &str) {
    let at = folder(name);
    write(&at, "it.c", source);
    shell(
        &at,
        "clang-22 -O2 -fopenmp -fopenmp-version=51 it.c -o clang",
    );
    assert_eq!(run(&at, "clang", "2", "0"), wanted, "as clang builds it");
    all_raised(&at, "cc -fopenmp-version=51 it.c", wanted);
}

/// Builds a program at every level, with all its regions raised, and runs it with several numbers of
/// workers.
fn all_raised(at: &Path, build: &str, wanted: &str) {
    for level in ["-O1", "-O2", "-O3"] {
        let line = format!("{build} -g {level} -fopenmp --par-report -o ours");
        let said = accepts(at, &line);
        assert!(!said.contains("not raised"), "{said}");
        for workers in ["1", "2", "4"] {
            for forced in ["0", "1"] {
                let told = run(at, "ours", workers, forced);
                assert_eq!(told, wanted, "{level}, {workers} workers, forced: {forced}");
            }
        }
    }
}

/// The program counts the chunks of task loops: number, shortest, longest, and each iteration executed
/// once, in its chunk's order.
#[test]
fn taskloop_chunk_clauses() {
    let wanted = "\
grainsize 1000: 33 30 31 1
strict 1000: 34 10 30 1
num_tasks 1000: 30 33 34 1
collapse 1000: 25 40 40 1
grainsize 10: 1 10 10 1
strict 10: 1 10 10 1
num_tasks 10: 10 1 1 1
collapse 10: 1 10 10 1
grainsize 1000: 1 1000 1000 1
strict 1000: 2 1 999 1
num_tasks 1000: 999 1 2 1
collapse 1000: 25 40 40 1
grainsize 4096: 4096 1 1 1
strict 4096: 4096 1 1 1
num_tasks 4096: 1 4096 4096 1
collapse 4095: 102 40 41 1
grainsize 0: 0 0 0 1
strict 0: 0 0 0 1
num_tasks 0: 0 0 0 1
collapse 0: 0 0 0 1
inside 100: 14 7 8 1
outside 100: 14 7 8 1
5 0
4 0
";
    prints("task-loops", include_str!("tasks/loops.c"), wanted);
}

#[test]
fn final_and_nesting_queries() {
    // Two threads with three each: 300 and 60 for numbers, -1 for nonexistent levels, and so on.
    let wanted = "1 1 0 1 0 10 0\n6360 7386 12 12 3303\n";
    prints("task-final", include_str!("tasks/final.c"), wanted);
}

#[test]
fn firstprivate_task_objects() {
    let at = folder("task-own-objects");
    write(&at, "it.cpp", include_str!("tasks/objects.cpp"));
    shell(&at, "clang++-22 -O1 -fopenmp it.cpp -o clang");
    let wanted = run(&at, "clang", "2", "0");
    all_raised(&at, "c++ it.cpp", &wanted);
    accepts(
        &at,
        "c++ -g -O1 -fsanitize=thread -fopenmp it.cpp -o watched",
    );
    assert_eq!(run(&at, "watched", "3", "1"), wanted);
}

#[test]
fn gradients_of_firstprivate_objects() {
    let at = folder("task-objects-gradient");
    write(&at, "it.cpp", include_str!("tasks/objects_gradient.cpp"));
    accepts(&at, "c++ -O2 it.cpp -o serial");
    let wanted = run(&at, "serial", "1", "0");
    assert!(wanted.ends_with(" 1 1\n"), "{wanted}");
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        accepts(&at, &format!("c++ -g {level} -fopenmp it.cpp -o ours"));
        for forced in ["0", "1"] {
            assert_eq!(run(&at, "ours", "3", forced), wanted, "{level}");
        }
    }
}

/// Code that copies objects with destructors for each chunk of a loop stays with the library, also if a
/// `final` clause makes the flags non-constant.
#[test]
fn firstprivate_objects_are_destroyed() {
    let source = r#"
#include <cstdio>
static int live;
struct Counted {
  int value;
  explicit Counted(int value) : value(value) { live++; }
  Counted(const Counted &other) : value(other.value) { __atomic_add_fetch(&live, 1, 0); }
  ~Counted() { __atomic_sub_fetch(&live, 1, 0); }
};
int main(int argc, char **) {
  int sum = 0;
  {
    Counted one(argc);
#pragma omp parallel
#pragma omp single
    {
#pragma omp task final(argc > 5) firstprivate(one) shared(sum)
      sum += one.value;
#pragma omp taskwait
#pragma omp taskloop final(argc > 5) firstprivate(one) shared(sum) num_tasks(3)
      for (int i = 0; i < 10; i++) {
#pragma omp atomic
        sum += one.value;
      }
    }
  }
  std::printf("%d %d\n", sum, live);
}
"#;
    let at = folder("task-objects");
    write(&at, "it.cpp", source);
    for level in ["-O1", "-O2"] {
        accepts(&at, &format!("c++ {level} -fopenmp it.cpp -o ours"));
        for workers in ["1", "4"] {
            assert_eq!(run(&at, "ours", workers, "1"), "11 0\n", "{level}");
        }
    }
}

/// Tasks of a derivative are not final, and its regions are loops: a query would return another answer
/// there.
#[test]
fn gradients_of_task_queries_refused() {
    let at = folder("task-asked");
    for asked in [
        "omp_in_final()",
        "inside()",
        "omp_get_team_size(1) > 0",
        "omp_get_level() == 1",
    ] {
        let source = format!(
            "#include <omp.h>
__attribute__((noinline)) static int inside(void) {{ return omp_in_final(); }}
double f(const double *x, int n) {{
  double s = 0;
#pragma omp parallel
#pragma omp single
  {{
#pragma omp task shared(s) final(n > 3)
    s = x[0] * ({asked} ? x[1] : x[2]);
#pragma omp taskwait
  }}
  return s;
}}
"
        );
        write(&at, "it.c", &source);
        refuses(&at, "grad it.c -f f -- -O2 -fopenmp", "GRD0011");
    }
}
