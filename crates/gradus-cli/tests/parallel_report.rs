//! `--par-report`: the outcome of each parallel loop, by source line, and the effect of switches.

use crate::support::{folder, shell, text};
use std::path::Path;

const PROGRAM: &str = "
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static double mag(const double *a, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += a[i] * a[i];
  return sqrt(s);
}
__attribute__((noinline)) void normalise(double *out, const double *in, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; i++) out[i] = in[i] / mag(in, n);
}
__attribute__((noinline)) void twice(double *restrict o, const double *restrict a, long n) {
  double *t = malloc(n * 8), *never = malloc(n * 8);
#pragma omp parallel for
  for (long i = 0; i < n; i++) t[i] = a[i] * 2;
#pragma omp parallel for
  for (long i = 0; i < n; i++) never[i] = exp(a[i]);
#pragma omp parallel for
  for (long i = 0; i < n; i++) o[i] += t[i];
  free(t);
  free(never);
}
__attribute__((noinline)) void turned(double *restrict o, double *restrict t, long n) {
#pragma omp parallel
  {
#pragma omp for
    for (long i = 0; i < n; i++) t[i] = i;
#pragma omp for
    for (long i = 0; i < n; i++) o[i] = t[n - 1 - i];
  }
}
__attribute__((noinline)) void columns(double *out, const double *a, long n, long m) {
#pragma omp parallel for
  for (long j = 0; j < n; j++) {
    double s = out[j];
    for (long i = 0; i < m; i++) s = s / 2 + a[i * n + j];
    out[j] = s;
  }
}
int main(void) {
  double a[100], o[100], t[100], few[4] = {1, 2, 3, 4};
  for (int i = 0; i < 100; i++) a[i] = i % 3;
  normalise(o, a, 100);
  twice(o, a, 100);
  double s = 0;
  for (int i = 0; i < 100; i++) s += o[i];
  turned(o, t, 100);
#pragma omp parallel for
  for (int i = 0; i < 4; i++) few[i] += o[i];
  double rows[100][70], sums[70], right[70];
  for (int i = 0; i < 7000; i++) rows[i / 70][i % 70] = i % 11;
  for (int j = 0; j < 70; j++) sums[j] = right[j] = j;
  columns(sums, &rows[0][0], 70, 100);
  int wrong = 0;
  for (int j = 0; j < 70; j++) {
    for (int i = 0; i < 100; i++) right[j] = right[j] / 2 + rows[i][j];
    wrong += right[j] != sums[j];
  }
  printf(\"%.6f %g %g %d\\n\", s, few[0], few[3], wrong);
}
";

/// Returns the report, and the program's output on three workers with every loop forked.
fn report_and_output(folder: &Path, options: &str) -> (String, String) {
    std::fs::write(folder.join("program.c"), PROGRAM).expect("written");
    let flags = "-O2 -fno-math-errno -fopenmp --par-report";
    let command = format!("gradus cc {flags} {options} program.c -o program -lm");
    let report = text(&shell(folder, &command).stdout);
    let run = shell(
        folder,
        "env GRADUS_NUM_THREADS=3 GRADUS_FORCE_FORK=1 ./program",
    );
    (report, text(&run.stdout))
}

/// Returns the lines below the construct of a source line.
fn below(report: &str, line: u32) -> Vec<&str> {
    let head = format!("    line {line}: ");
    let mut lines = report.lines().skip_while(|l| !l.starts_with(&head));
    assert!(lines.next().is_some(), "no line {line} in\n{report}");
    let own = lines.take_while(|l| l.starts_with("        "));
    own.map(str::trim).collect()
}

#[test]
fn report_lists_loop_changes() {
    let (report, printed) = report_and_output(&folder("par_report"), "");
    assert_eq!(printed, "205.707140 100 100 0\n");
    let call = "call of mag in line 12 hoisted out of the loop";
    assert!(below(&report, 11).contains(&call), "{report}");
    assert_eq!(
        below(&report, 18),
        ["deleted: the loop is empty, or the results are unused"]
    );
    let one = |line: u32| format!("fused with the loop in line {line}");
    assert!(below(&report, 16).contains(&one(20).as_str()), "{report}");
    assert!(below(&report, 20).contains(&one(16).as_str()), "{report}");
    let from = |line: &&str| line.starts_with("forks from ");
    assert!(below(&report, 16).iter().any(from), "{report}");
    for line in [28, 30] {
        let joined = below(&report, line)
            .iter()
            .any(|l| l.contains("fused with"));
        assert!(!joined, "line {line} in\n{report}");
    }
    let small = ["runs serially: too little work for a fork"];
    assert_eq!(below(&report, 50), small);
    let columns = "interchanged with the inner loop: contiguous access across columns";
    assert!(below(&report, 35).contains(&columns), "{report}");
}

#[test]
fn switches_disable_passes() {
    let (report, printed) =
        report_and_output(&folder("par_fusion"), "--gradus-without=loop-fusion");
    assert_eq!(printed, "205.707140 100 100 0\n");
    assert!(!report.contains("fused with"), "{report}");
    assert!(report.contains("out of the loop"), "{report}");
    let (report, printed) =
        report_and_output(&folder("par_races"), "--gradus-without=race-freedom");
    assert_eq!(printed, "205.707140 100 100 0\n");
    assert!(!report.contains("fused with"), "{report}");
    assert!(!report.contains("out of the loop"), "{report}");
    assert!(!report.contains("interchanged"), "{report}");
}

/// A function that requests a derivative is reported like any other, once.
#[test]
fn regions_in_requesting_functions() {
    let folder = folder("parallel_report_derivatives");
    let program = "
#include <gradus.h>
#include <gradus/parallel.h>
static double square(double a) { return a * a; }
__attribute__((noinline)) void twice(double *x, int n) {
  if (n <= 4) {
    for (int i = 0; i < n; i++) x[i] *= 2;
    return;
  }
  gr_spawn twice(x, n / 2);
  twice(x + n / 2, n - n / 2);
  gr_sync();
}
int main(void) {
  static double x[2000];
#pragma omp parallel for
  for (int i = 0; i < 2000; i++) x[i] = i;
  twice(x, 2000);
  return gradus_vjp_double(square, gradus_out, x[3]) != 12;
}
";
    crate::support::write(&folder, "program.c", program);
    let line = "gradus cc -O2 -fopenmp --par-report program.c -o program";
    let said = text(&shell(&folder, line).stdout);
    shell(&folder, "./program");
    for (line, what) in [
        (10, "raised as orphaned constructs"),
        (16, "raised to parallel loops and tasks"),
    ] {
        let told = said.matches(&format!("program.c:{line}: {what}\n")).count();
        assert_eq!(told, 1, "{said}");
    }
}

/// Each region is reported once, with and without debug information.
#[test]
fn reasons_for_teams_are_reported() {
    let folder = folder("parallel_report_teams");
    let program = "
int use(const double *t);
void loops(double *a, int n) {
  double t[40];
#pragma omp parallel private(t)
  {
    for (int k = 0; k < 40; k++) t[k] = k;
#pragma omp for schedule(static, 4)
    for (int i = 0; i < n; i++) {
      if (a[i] > 0) t[1] = a[i];
      a[i] = use(t);
    }
  }
#pragma omp parallel for schedule(static, 4)
  for (int i = 0; i < n; i++) a[i] = i;
}
";
    crate::support::write(&folder, "program.c", program);
    for debug in ["", "-g"] {
        let line = format!("gradus cc -O2 -fopenmp {debug} --par-report -c program.c");
        let said = text(&shell(&folder, &line).stdout);
        let team = "program.c:5: raised to a team of ranks: ";
        assert!(said.starts_with(team), "{said}");
        assert!(said.contains("\n    line 8: for\n"), "{said}");
        assert!(said.contains("program.c:14: raised to parallel"), "{said}");
        assert_eq!(said.matches("raised").count(), 2, "{debug}: {said}");
    }
    let line = "gradus cc -O2 -fopenmp -g --par-report -c program.c";
    let said = text(&shell(&folder, line).stdout);
    assert!(said.contains(" (line 11)\n"), "{said}");
}

/// The report names the reason why a region stays with OpenMP's library.
#[test]
fn unknown_functions_are_named() {
    let folder = folder("report_unknown");
    let program = "
int omp_get_place_num(void);
void places(int *a, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) a[i] = omp_get_place_num();
}
";
    std::fs::write(folder.join("places.c"), program).expect("written");
    let said = shell(&folder, "gradus cc -O2 -fopenmp --par-report -c places.c");
    let said = text(&said.stdout) + &text(&said.stderr);
    let wanted = "the unknown OpenMP runtime function `omp_get_place_num` is called";
    assert!(said.contains(wanted), "{said}");
}

/// A loop with few iterations and sections that call functions of unknown cost are worth a fork.
#[test]
fn calls_of_unknown_cost_fork() {
    let folder = folder("parallel_report_any_time");
    let source = "
        #include <stdio.h>
        #include <unistd.h>
        double slow(int i);
        void few(double *x) {
        #pragma omp parallel for
          for (int i = 0; i < 2; i++) x[i] = slow(i);
        #pragma omp parallel sections
          {
        #pragma omp section
            x[2] = slow(2);
        #pragma omp section
            x[3] = slow(3);
          }
        #pragma omp parallel for
          for (int i = 0; i < 2; i++) { usleep(1000); x[i] += 1; }
        #pragma omp parallel for
          for (int i = 0; i < 2; i++) x[i] += x[i + 2];
        }";
    std::fs::write(folder.join("program.c"), source).expect("written");
    let command = "gradus cc -O2 -fopenmp --par-report -c program.c -o program.o";
    let report = text(&shell(&folder, command).stdout);
    for line in [6, 8, 15] {
        assert_eq!(
            below(&report, line),
            ["forks always: enough work for a fork"],
            "{report}"
        );
    }
    let small = ["runs serially: too little work for a fork"];
    assert_eq!(below(&report, 17), small);
}
