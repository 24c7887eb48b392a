//! `--deterministic`: reductions and adjoint sums are bitwise independent of the number of workers, also
//! for programs that add in arrival order of threads. Loops serialised for determinism are reported.

use crate::support::{folder, succeeds, text};
use std::path::Path;
use std::process::Command;

/// Sums whose last digits depend on the order of additions.
const PROGRAM: &str = "
#include <math.h>
#include <stdio.h>
enum { N = 100000, PARTS = 64 };
static double x[N], x_adj[N], sums[PARTS], locked[PARTS], of_ranks[PARTS];
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double f(const double *x, int n) {
  double s = 0;
#pragma omp parallel for reduction(+ : s)
  for (int i = 0; i < n; i++) s += sin(x[(i * 7) % 64] * x[i]) * x[(i * 13 + 5) % 640];
  return s;
}
static __attribute__((noinline)) void add(double *s, double v) {
#pragma omp critical
  *s += v;
}
static __attribute__((noinline)) void add_up(void) {
#pragma omp parallel for
  for (int i = 0; i < N; i++) {
#pragma omp atomic
    sums[i % 3] += x[i] * 1.1;
  }
#pragma omp parallel for
  for (int i = 0; i < N; i++) add(&locked[i % 5], x[i] * 1.1);
#pragma omp parallel
  {
    double mine[PARTS] = {0};
#pragma omp for nowait
    for (int i = 0; i < N; i++) mine[i % 7] += x[i] * 1.1;
    for (int k = 0; k < 7; k++) {
#pragma omp atomic
      of_ranks[k] += mine[k];
    }
  }
}
int main(void) {
  for (int i = 0; i < N; i++) x[i] = sin(i * 1.7) * exp(i % 37 - 18);
  double s = 0;
  __enzyme_autodiff((void *)f, enzyme_dup, x, x_adj, enzyme_const, N);
  add_up();
#pragma omp parallel for reduction(+ : s)
  for (int i = 0; i < N; i++) s += x[i] * 1.1;
  printf(\"%a\\n\", s);
  for (int i = 0; i < 640; i++) printf(\"%a\\n\", x_adj[i]);
  for (int k = 0; k < PARTS; k++) printf(\"%a %a %a\\n\", sums[k], locked[k], of_ranks[k]);
}
";

/// Returns the program's output, with every loop forked.
fn run(folder: &Path, workers: u32) -> String {
    let mut command = Command::new(folder.join("program"));
    command.env("GRADUS_NUM_THREADS", workers.to_string());
    command.env("GRADUS_FORCE_FORK", "1");
    text(&succeeds(&mut command).stdout)
}

#[test]
fn bits_are_the_same_for_any_number_of_workers() {
    let folder = folder("sums");
    std::fs::write(folder.join("program.c"), PROGRAM).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args(["cc", "-O2", "-g", "-fopenmp", "--deterministic"]);
    command.args(["program.c", "-o", "program", "-lm"]);
    let said = text(&succeeds(command.current_dir(&folder)).stderr);
    // The loops with an atomic sum and with a lock, the team, and the loop of the gradient.
    for (function, count) in [("add_up", 3), ("f", 1)] {
        let place = format!("in function `{function}`");
        let notes = said
            .split("note[GRD0036]")
            .filter(|n| n.contains("--deterministic"));
        let told = notes.filter(|n| n.contains(&place)).count();
        assert_eq!(told, count, "{said}");
    }
    let one = run(&folder, 1);
    for workers in [2, 4, 8, 8, 8] {
        assert!(run(&folder, workers) == one, "{workers} workers");
    }
}

#[test]
fn gradient_bits_are_deterministic() {
    let folder = folder("gradients");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parallel/sums.c");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args(["cc", "-O2", "-w", "-fopenmp", "--deterministic"]);
    command.args([source, "-o", "program", "-lm"]);
    succeeds(command.current_dir(&folder));
    let one = run(&folder, 1);
    assert!(one.lines().count() > 20_000, "{one}");
    for workers in [2, 4, 8, 8] {
        assert!(run(&folder, workers) == one, "{workers} workers");
    }
}

/// Recursive tasks, spawned by a function that also requests the derivative of another function.
#[test]
fn requesting_functions_order_tasks() {
    let folder = folder("asking");
    let source = "
#include <stdio.h>
extern int enzyme_out;
double __enzyme_autodiff(void *, ...);
static double acc;
static double square(double a) { return a * a; }
__attribute__((noinline)) void add(const double *x, int n) {
  if (n <= 4) {
    for (int i = 0; i < n; i++) {
#pragma omp atomic
      acc += x[i];
    }
    return;
  }
#pragma omp task
  add(x, n / 2);
#pragma omp task
  add(x + n / 2, n - n / 2);
#pragma omp taskwait
}
int main(void) {
  static double x[20000];
  for (int i = 0; i < 20000; i++) x[i] = 1.0 / (i + 1);
#pragma omp parallel
#pragma omp single
  add(x, 20000);
  printf(\"%a %g\\n\", acc, __enzyme_autodiff((void *)square, enzyme_out, 3.0));
}
";
    std::fs::write(folder.join("program.c"), source).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args(["cc", "-O2", "-w", "-fopenmp", "--deterministic"]);
    command.args(["program.c", "-o", "program"]);
    succeeds(command.current_dir(&folder));
    let one = run(&folder, 1);
    for workers in [2, 4, 8, 8] {
        assert_eq!(run(&folder, workers), one, "{workers} workers");
    }
}

/// A loop with a dynamic schedule around a loop whose length is loaded: without an order of threads, both
/// are serial.
#[test]
fn dynamic_loops_with_inner_loops_have_gradients() {
    let folder = folder("dynamic");
    let source = "
#include <stdio.h>
extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
void f(const double *x, double *y, const int *len, int n) {
#pragma omp parallel for schedule(dynamic, 1)
  for (int k = 0; k < n; k++)
    for (int i = 0; i < len[k]; i++) y[8 * k + i] = x[8 * k + i] * x[8 * k + i];
}
int main(void) {
  double x[40], y[40], dx[40] = {0}, dy[40], sum = 0;
  int len[5] = {8, 7, 6, 5, 4};
  for (int i = 0; i < 40; i++) x[i] = i, dy[i] = 1;
  __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, len, enzyme_const, 5);
  for (int i = 0; i < 40; i++) sum += dx[i];
  printf(\"%g\\n\", sum);
}
";
    std::fs::write(folder.join("program.c"), source).expect("written");
    for level in ["-O0", "-O2"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
        command.args(["cc", level, "-w", "-fopenmp", "--deterministic"]);
        command.args(["program.c", "-o", "program", "-lm"]);
        succeeds(command.current_dir(&folder));
        for workers in [1, 4] {
            // Twice the numbers from 8 · k on: 28 + 77 + 111 + 130 + 134.
            assert_eq!(run(&folder, workers), "960\n", "{level}, {workers} workers");
        }
    }
}

/// A recursion over a linked tree whose reverse pass adds to memory read by both tasks: a fixed order of
/// additions, instead of plain adds for few workers and atomic adds for many.
#[test]
fn recursive_task_gradients_ordered() {
    let folder = folder("tree");
    let source = "
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
typedef struct node { double v; struct node *left, *right; } node;
static node *build(const double *x, int lo, int hi) {
  if (lo >= hi) return 0;
  node *made = malloc(sizeof *made);
  int m = (lo + hi) / 2;
  made->v = x[m] * x[m], made->left = build(x, lo, m), made->right = build(x, m + 1, hi);
  return made;
}
static double sum(node *at, double w) {
  if (!at) return 0;
  double a, b;
#pragma omp task shared(a)
  a = sum(at->left, w * at->v);
#pragma omp task shared(b)
  b = sum(at->right, w + at->v);
#pragma omp taskwait
  return at->v * w + a * 0.5 + b * 0.25;
}
void f(double *x, double *y, int n) {
#pragma omp parallel
#pragma omp single
  *y = sum(build(x, 0, n), x[0]);
}
int main(void) {
  enum { N = 4000 };
  static double x[N], dx[N];
  double y, dy = 1.3;
  for (int i = 0; i < N; i++) x[i] = 0.3 + 0.6 * sin(1.7 * i);
  __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_dup, &y, &dy, enzyme_const, N);
  for (int i = 0; i < N; i++) printf(\"%a\\n\", dx[i]);
}
";
    std::fs::write(folder.join("program.c"), source).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args(["cc", "-O2", "-g", "-w", "-fopenmp", "--deterministic"]);
    command.args(["program.c", "-o", "program", "-lm"]);
    let said = text(&succeeds(command.current_dir(&folder)).stderr);
    // Only the reverse pass is serial: the results of other tasks are private.
    assert_eq!(said.matches("note[GRD0036]").count(), 1, "{said}");
    let forced = run(&folder, 1);
    for workers in ["1", "2", "4", "8"] {
        let mut command = Command::new(folder.join("program"));
        command.env("GRADUS_NUM_THREADS", workers);
        let told = text(&succeeds(&mut command).stdout);
        assert!(told == forced, "{workers} workers");
    }
}

/// Loops serialised for their order use plain adds.
#[test]
fn serialized_loops_add_plainly() {
    let folder = folder("plain");
    let source = "
double f(const double *x, int n) {
  double s = 0;
#pragma omp parallel for reduction(+ : s)
  for (int i = 0; i < n; i++) s += x[i] * x[(i * 7) % 64];
  return s;
}
";
    std::fs::write(folder.join("f.c"), source).expect("written");
    let atomics = |option: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
        command.args(["grad", "f.c", "-f", "f", "--emit", "llvm", "-o", "f.ll"]);
        command.args(option).args(["--", "-O2", "-fopenmp"]);
        succeeds(command.current_dir(&folder));
        let made = std::fs::read_to_string(folder.join("f.ll")).expect("written");
        assert!(made.contains("define") && made.contains("f_vjp"), "{made}");
        made.matches("atomicrmw fadd").count()
    };
    assert!(atomics(&[]) > 0);
    assert_eq!(atomics(&["--deterministic"]), 0);
}
