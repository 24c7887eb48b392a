//! Loops with indirect loads through index arrays, and their gradients: with a gathered copy if nothing
//! clobbers the array, without a copy if the loop's writes alias it, in serial and in parallel programs.

use crate::support::{accepts, folder, succeeds, text, write};
use std::path::Path;
use std::process::Command;

/// Prints, for each memory layout, the distance between the gradient and finite differences. Layouts beyond
/// the last argument cause races on several threads.
const PROGRAM: &str = "
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
enum { N = 48 };
static __attribute__((noinline)) void corners(long n, const int *list, const double *t, double *out, double *some,
                                              double limit) {
#pragma omp parallel for
  for (long i = 0; i < n; i++) {
    const int *c = list + 8 * i;
    double a = t[c[0]] * t[c[1]] - t[c[2]] * t[c[3]], b = t[c[4]] * t[c[5] + 1] - t[c[6]] * t[c[7]];
    out[i] = 0.3 * a * b + 0.1 * t[c[0]] * t[c[7]];
    if (out[i] > limit) some[2 * i] = sin(a) * b;
  }
}
static __attribute__((noinline)) void scatter(long n, const int *list, const double *t, double *to, double limit) {
  for (long i = 0; i < n; i++) {
    const int *c = list + 8 * i;
    double a = t[c[0]] * t[c[1]], b = t[c[2]] * t[c[3]];
    if (a < limit) { to[c[2]] += 0.01 * a * b; to[c[5]] -= 0.01 * sin(b); }
  }
}
double f(const double *x, const int *list, int way) {
  double *block = malloc(6 * N * sizeof *block), *t = block, *out, *some, *to, r = 0;
  for (int i = 0; i < 6 * N; i++) block[i] = x[i % N] * (1 + 0.001 * i);
  out = way == 0 ? block + 4 * N : way == 1 ? block + N + 1 : way == 2 ? block + N : block + N / 2;
  some = way == 4 ? block + 1 : block + 2 * N + 1;
  to = way == 5 ? block + 3 : block + 5 * N;
  for (int s = 0; s < 3; s++) {
    corners(N, list, t, out, some, 0.05);
    scatter(N, list, t, to, 0.8);
    for (int i = 0; i < N; i++) t[i] = 0.9 * t[i] + 0.1 * out[i] + 0.05 * some[2 * i] + 0.02 * to[i];
  }
  for (int i = 0; i < 6 * N; i++) r += block[i] * block[i];
  free(block);
  return r;
}
int main(int argc, char **argv) {
  static double x[N], g[N]; static int list[8 * N];
  for (int i = 0; i < N; i++) x[i] = 0.6 + 0.4 * sin(i * 1.7);
  for (int i = 0; i < 8 * N; i++) list[i] = (i / 8 + i % 8 * 5 + i % 3) % N;
  for (int way = 0; way <= atoi(argv[1]) && argc > 1; way++) {
    for (int i = 0; i < N; i++) g[i] = 0;
    __enzyme_autodiff((void *)f, enzyme_dup, x, g, enzyme_const, list, enzyme_const, way);
    double worst = 0, sum = 0;
    for (int i = 0; i < N; i++) {
      double old = x[i], h = 1e-6;
      x[i] = old + h; double up = f(x, list, way);
      x[i] = old - h; double down = f(x, list, way);
      x[i] = old;
      worst = fmax(worst, fabs(g[i] - (up - down) / (2 * h)) / fmax(1, fabs(g[i])));
      sum += g[i] * (i + 1);
    }
    printf(\"%.17g %.3g\\n\", sum, worst);
  }
}
";

/// The memory layouts: all, and those without races.
const ALL: &str = "5";
const NO_RACE: &str = "1";

fn build(folder: &Path, options: &[&str]) {
    std::fs::write(folder.join("program.c"), PROGRAM).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command
        .arg("cc")
        .args(options)
        .args(["program.c", "-o", "program", "-lm"]);
    succeeds(command.current_dir(folder));
}

/// Returns a sum of the gradient for each layout.
fn gradients(folder: &Path, ways: &str, workers: u32) -> Vec<f64> {
    let mut command = Command::new(folder.join("program"));
    command.arg(ways);
    command.env("GRADUS_NUM_THREADS", workers.to_string());
    command.env("GRADUS_FORCE_FORK", "1");
    let said = text(&succeeds(&mut command).stdout);
    let lines = said.lines().enumerate().map(|(way, line)| {
        let mut words = line.split_whitespace().map(|w| w.parse::<f64>());
        let (sum, far) = (words.next(), words.next());
        let far = far.expect("two numbers").expect("a number");
        assert!(far < 1e-7, "way {way}: {far} from differences");
        sum.expect("a number").expect("a number")
    });
    lines.collect()
}

fn same(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-12 * x.abs().max(1.0), "{x} and {y}");
    }
}

#[test]
fn gathered_copies_unless_clobbered() {
    let at = folder("index_arrays");
    build(&at, &["-O2", "--gradus-without=index-array-copies"]);
    let kept = gradients(&at, ALL, 1);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        build(&at, &[level]);
        same(&gradients(&at, ALL, 1), &kept);
    }
    for level in ["-O1", "-O3"] {
        build(&at, &[level, "-fopenmp"]);
        for workers in [1, 4] {
            same(&gradients(&at, NO_RACE, workers), &kept[..2]);
        }
    }
}

/// Elements with other members besides floats: the floats between two accessed members are not all
/// contents.
const MIXED: &str = "
#include <stdlib.h>
struct node { double x; long id; double v; double *link; };
static __attribute__((noinline)) void step(long n, const int *list, const struct node *t, double *out) {
  for (long i = 0; i < n; i++) {
    const int *c = list + 8 * i;
    double a = t[c[0]].x * t[c[1]].x - t[c[2]].v * t[c[3]].x, b = t[c[4]].x * t[c[5]].v - t[c[6]].x * t[c[7]].v;
    out[i] = 0.3 * a * b + 0.1 * t[c[0]].v * t[c[7]].x;
  }
}
double f(int n, const double *x, const int *list) {
  struct node *t = malloc(n * sizeof *t);
  double *out = malloc(n * sizeof *out), r = 0;
  for (int i = 0; i < n; i++) {
    t[i].x = x[i]; t[i].id = n - 1 - i; t[i].v = 0.5 * x[(i + 1) % n]; t[i].link = out + i * 7 % n;
  }
  for (int s = 0; s < 3; s++) {
    step(n, list, t, out);
    for (int i = 0; i < n; i++) {
      t[i].x = 0.9 * t[i].x + 0.1 * *t[i].link; t[i].v = 0.8 * t[i].v + 0.1 * out[t[i].id];
    }
  }
  for (int i = 0; i < n; i++) r += t[i].x * t[i].v;
  free(t); free(out);
  return r;
}
";

#[test]
fn mixed_elements_are_left_alone() {
    let at = folder("index_arrays-mixed");
    write(&at, "mixed.c", MIXED);
    for level in ["-O0", "-O2"] {
        accepts(
            &at,
            &format!(
                "check mixed.c -f f --arg n=12 --arg x=rand(12) --arg list=randint(96,12) -- {level}"
            ),
        );
    }
}

/// The reverse of a gathered copy updates adjoints shared by iterations: a loop that calls such a function
/// would become serial.
#[test]
fn parallel_callees_are_left_alone() {
    const PARTS: &str = "
__attribute__((noinline)) void step(long n, const int *list, const double *t, double *out) {
  for (long i = 0; i < n; i++) {
    const int *c = list + 8 * i;
    double a = t[c[0]] * t[c[1]] - t[c[2]] * t[c[3]], b = t[c[4]] * t[c[5]] - t[c[6]] * t[c[7]];
    out[i] = 0.3 * a * b;
  }
}
void f(int parts, int n, double *t, const int *list, double *out) {
  for (int s = 0; s < 2; s++) {
#pragma omp parallel for
    for (int p = 0; p < parts; p++) {
      step(n, list, t + p * n, out + p * n);
      for (int i = 0; i < n; i++) t[p * n + i] = 0.9 * t[p * n + i] + 0.1 * out[p * n + i];
    }
  }
}
";
    let at = folder("index_arrays-parts");
    write(&at, "parts.c", PARTS);
    let said = accepts(
        &at,
        "grad parts.c -f f --report=full -o parts.o -- -O2 -fopenmp",
    );
    assert!(
        said.contains("parallel in the reverse pass: the loop in line 12"),
        "{said}"
    );
}

/// Saved values of rows with different lengths have a block per row: no row waits for another.
#[test]
fn variable_length_rows_are_parallel() {
    const ROWS: &str = "
#include <math.h>
#include <stdlib.h>
double f(int n, const double *x) {
  double *y = malloc(n * sizeof *y), s = 0;
  int *begin = malloc((n + 1) * sizeof *begin);
  for (int i = 0; i <= n; i++) begin[i] = 3 * i + i % 4;
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double own = x[i];
    for (int j = begin[i]; j < begin[i + 1]; j++) own = sin(own) * x[j % n] + own;
    y[i] = own * x[i];
  }
  for (int i = 0; i < n; i++) s += y[i];
  free(y); free(begin);
  return s;
}
";
    let at = folder("index_arrays-rows");
    write(&at, "rows.c", ROWS);
    let options = "-- -O2 -fopenmp";
    let said = accepts(
        &at,
        &format!("grad rows.c -f f --report=full -o rows.o {options}"),
    );
    let line = "parallel in the reverse pass: the loop in line 9";
    assert!(said.contains(line), "{said}");
    let arguments = "--arg n=400 --arg x=rand(n)";
    accepts(&at, &format!("check rows.c -f f {arguments} {options}"));
}
