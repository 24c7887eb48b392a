//! ThreadSanitizer sees the forks and joins of the runtime library. Programs without a race run clean,
//! gradients included. A race is reported with its line: a race of the program, and a race in a gradient
//! whose atomic adds were made plain by a seeded fault.

use crate::support::{folder, shell, text};
use gradus_ir::mutant::{Mutant, plant};
use gradus_pipeline::{CallsTask, Input, Level, Options, OutputKind, Request, Task, compile};
use gradus_testkit::{
    ForkJoinProgram, ForkJoinWay, Verdict, check_sanitized, fork_join_program, fork_join_unit,
    seed_races,
};
use std::path::{Path, PathBuf};
use std::process::Command;

const SANITIZED: &str = "-g -O1 -w -fopenmp -fsanitize=thread";

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parallel")
}

/// Returns the sanitizer's first report on `program` with four workers and every loop forked, if any.
fn report(folder: &Path) -> Option<String> {
    let mut command = Command::new(folder.join("program"));
    command.env("OMP_NUM_THREADS", "4");
    command.env("GRADUS_FORCE_FORK", "1");
    command.env("TSAN_OPTIONS", "exitcode=66 halt_on_error=1");
    let output = command.output().expect("it starts");
    let said = text(&output.stderr);
    match output.status.code() {
        Some(0) => None,
        Some(66) => Some(said),
        code => panic!("{code:?}\n{said}"),
    }
}

fn builds(folder: &Path, source: &Path, options: &str) {
    let source = source.display();
    let line = format!("gradus cc {SANITIZED} {options} {source} -o program -lm");
    shell(folder, &line);
}

#[test]
fn programs_without_a_race_run_clean() {
    let folder = folder("clean");
    builds(&folder, &sources().join("shared.c"), "");
    assert_eq!(report(&folder), None);
    let markers = sources().join("markers.c");
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
    builds(&folder, &markers, include);
    assert_eq!(report(&folder), None);
}

#[test]
fn a_race_is_told_with_its_line() {
    let folder = folder("race");
    let source = sources().join("shared.c");
    let code = std::fs::read_to_string(&source).expect("it is there");
    let line = code.lines().position(|l| l.contains("y[i / 2]"));
    let place = format!("shared.c:{}", line.expect("the race") + 1);
    builds(&folder, &source, "-DRACE");
    let said = report(&folder).expect("a race is told");
    assert!(said.contains(&place), "{said}");
}

/// The sanitizer alone does not recognise atomic sums of floats.
#[test]
fn a_race_with_an_atomic_sum_is_told() {
    let folder = folder("atomic_sum");
    let source = "\
#include <stdio.h>
int main(void) {
  static double sums[8];
  for (int round = 0; round < 60; round++) {
#pragma omp parallel for
    for (long i = 0; i < 20000; i++) {
#pragma omp atomic
      sums[i % 8] += i;
      if (i == 10007)
        sums[3] += 1;
    }
  }
  printf(\"%g\\n\", sums[0]);
}
";
    let program = folder.join("program.c");
    std::fs::write(&program, source).expect("written");
    builds(&folder, &program, "");
    let said = report(&folder).expect("a race is told");
    assert!(
        said.contains("program.c:8") && said.contains("program.c:10"),
        "{said}"
    );
    let apart = source.replace("sums[3] += 1", "puts(\"\")");
    std::fs::write(&program, apart).expect("written");
    builds(&folder, &program, "");
    assert_eq!(report(&folder), None);
}

/// A gradient whose reverse pass adds to memory read by several iterations.
const GRADIENT: &str = "
#include <math.h>
#include <stdio.h>
enum { N = 20000 };
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
static double x[N], x_adj[N], y[N], y_adj[N];
double f(double *x, double *y, long n) {
  double s = 0;
#pragma omp parallel for
  for (long i = 0; i < n; i++) y[i] = sin(x[i] * x[(i * 7) % n]) + x[0];
#pragma omp parallel for reduction(+ : s)
  for (long i = 0; i < n; i++) s += y[i] * y[i];
  return s;
}
int main(void) {
  for (long i = 0; i < N; i++) x[i] = 0.3 + 0.00001 * i;
  for (int round = 0; round < 60; round++)
    __enzyme_autodiff((void *)f, enzyme_dup, x, x_adj, enzyme_dup, y, y_adj, enzyme_const, (long)N);
  printf(\"%g\\n\", x_adj[0]);
}
";

/// Builds the gradient by the pipeline in this process, with a seeded fault.
fn builds_gradient(folder: &Path, fault: Option<Mutant>) {
    std::fs::write(folder.join("program.c"), GRADIENT).expect("written");
    let bitcode = "-Xclang -disable-llvm-passes -emit-llvm -c program.c -o program.bc";
    shell(folder, &format!("clang-22 {SANITIZED} {bitcode}"));
    let bytes = std::fs::read(folder.join("program.bc")).expect("bitcode");
    let request = Request {
        inputs: vec![Input::new("program.bc", bytes)],
        task: Task::Calls(CallsTask::default()),
        level: Level::O1,
        report: false,
        emit: vec![OutputKind::Bitcode],
        options: Options {
            skip_late: true,
            parallel: true,
            ..Options::default()
        },
    };
    plant(fault);
    let reply = compile(&request);
    plant(None);
    let made = reply.output(OutputKind::Bitcode);
    let made = made.unwrap_or_else(|| panic!("{:?}", reply.diagnostics));
    std::fs::write(folder.join("made.bc"), made).expect("written");
    shell(
        folder,
        "clang-22 -g -O1 -fsanitize=thread -c -x ir made.bc -o made.o",
    );
    shell(
        folder,
        &format!("gradus cc {SANITIZED} made.o -o program -lm"),
    );
}

#[test]
fn gradients_run_clean() {
    let folder = folder("gradient");
    builds_gradient(&folder, None);
    assert_eq!(report(&folder), None);
}

#[test]
fn a_plain_add_to_shared_memory_is_told() {
    let folder = folder("plain_add");
    builds_gradient(&folder, Some(Mutant::SharedAddPlain));
    let said = report(&folder).expect("a race is told");
    assert!(said.contains("program.c:11"), "{said}");
}

/// Returns the verdicts on random fork-join programs with atomic updates; with `racy` the updates are made
/// plain.
fn random_programs(folder: &Path, racy: bool) -> Vec<Verdict> {
    let updates = |p: &ForkJoinProgram| p.features.contains("atomic update");
    let programs = (0..).map(fork_join_program).filter(updates);
    let programs: Vec<_> = programs.take(12).collect();
    let mut unit = fork_join_unit(&programs).expect("the programs follow the rules");
    if racy {
        seed_races(&mut unit);
    }
    let gradus = Path::new(env!("CARGO_BIN_EXE_gradus"));
    let verdicts = check_sanitized(&unit, &programs, &ForkJoinWay::of(1), gradus, folder);
    verdicts.expect("they are built")
}

/// `cargo xtask fuzz --parallel --tsan --count N` does long runs.
#[test]
fn random_programs_run_clean() {
    let verdicts = random_programs(&folder("random"), false);
    assert!(
        verdicts.iter().all(|v| *v == Verdict::Right),
        "{verdicts:?}"
    );
}

#[test]
fn races_of_random_programs_are_told() {
    let told = |verdict: &&Verdict| match verdict {
        Verdict::Wrong(why) => why.contains("ThreadSanitizer: data race"),
        _ => false,
    };
    let verdicts = random_programs(&folder("random_races"), true);
    assert!(verdicts.iter().any(|v| told(&v)), "{verdicts:?}");
}
