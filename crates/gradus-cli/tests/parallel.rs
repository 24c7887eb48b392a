//! Parallel programs: the outcome of OpenMP regions, unchanged results, and gradients compared with the
//! serial program's and with finite differences.

use crate::support::{folder, shell, succeeds, text};
use std::path::Path;
use std::process::Command;

/// Compiles `source` with `gradus cc` and some options. Returns the compiler's output.
fn compile(folder: &Path, source: &str, options: &[&str]) -> String {
    std::fs::write(folder.join("program.c"), source).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command
        .arg("cc")
        .args(options)
        .args(["program.c", "-o", "program", "-lm"]);
    text(&succeeds(command.current_dir(folder)).stdout)
}

/// Runs the program with this number of workers, every loop forked. Returns the printed numbers.
fn numbers(folder: &Path, workers: u32) -> Vec<f64> {
    let mut command = Command::new(folder.join("program"));
    command.env("GRADUS_NUM_THREADS", workers.to_string());
    command.env("GRADUS_FORCE_FORK", "1");
    let output = succeeds(&mut command);
    let words = text(&output.stdout);
    let numbers = words
        .split_whitespace()
        .map(|w| w.parse().expect("a number"));
    numbers.collect()
}

fn close(a: &[f64], b: &[f64], tolerance: f64, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (x, y) in a.iter().zip(b) {
        let scale = x.abs().max(y.abs()).max(1.0);
        assert!((x - y).abs() <= tolerance * scale, "{what}: {x} and {y}");
    }
}

/// Objectives: a name, and the body of `double f(double *x, double *y, long n, double a)`, which reads `x`
/// and may use `y` as scratch memory.
const OBJECTIVES: &[(&str, &str)] = &[
    (
        "a map and a sum",
        "double s = 0;
         #pragma omp parallel for
         for (long i = 0; i < n; i++) y[i] = sin(x[i]) * a;
         #pragma omp parallel for reduction(+ : s)
         for (long i = 0; i < n; i++) s += y[i] * y[i];
         return s;",
    ),
    (
        "a gather from places that several iterations read",
        "double s = 0;
         #pragma omp parallel for schedule(static, 4)
         for (long i = 0; i < n; i++) y[i] = x[i] * a + exp(-x[(i * 7) % n]) + x[0];
         #pragma omp parallel for reduction(+ : s)
         for (long i = 1; i < n; i++) s += y[i] * y[i - 1];
         return s;",
    ),
    (
        "rows, an inner loop, a condition",
        "long m = n / 10; double s = 0;
         #pragma omp parallel for
         for (long i = 0; i < 10; i++) {
           double t = 0;
           for (long j = 0; j < m; j++) t += x[i * m + j] * x[j];
           y[i] = t > 30 ? sqrt(t) : t * a;
         }
         #pragma omp parallel for reduction(+ : s)
         for (long i = 0; i < 10; i++) s += cos(y[i]);
         return s;",
    ),
    (
        "two dimensions at once, updated in place",
        "long m = n / 10; double s = 0;
         #pragma omp parallel for collapse(2)
         for (long i = 0; i < 10; i++)
           for (long j = 0; j < m; j++) y[i * m + j] = x[i * m + j] * (1 + a * i);
         for (int k = 0; k < 3; k++) {
           #pragma omp parallel for
           for (long i = 0; i < n; i++) y[i] = y[i] * y[i] * 0.25 + x[i] * a;
         }
         #pragma omp parallel for reduction(+ : s)
         for (long i = 0; i < n; i++) s += y[i];
         return s;",
    ),
    (
        "a while loop in each iteration",
        "double s = 0;
         #pragma omp parallel for reduction(+ : s)
         for (long i = 0; i < n; i++) {
           double v = x[i] + a;
           while (v > 0.413) v = v * v * 0.4;
           s += v * x[i];
         }
         return s;",
    ),
    (
        "sums of every thread, put together in a critical region",
        "double s = 0, t = x[3];
         #pragma omp parallel
         {
           double mine = 0;
           #pragma omp for
           for (long i = 0; i < n; i++) mine += x[i] * x[i] * a;
           #pragma omp critical
           s += mine;
         }
         return s * t;",
    ),
    (
        "functions that iterations call, with memory of their own and of all",
        "double s = 0;
         #pragma omp parallel for
         for (long i = 0; i < n; i++) y[i] = weighted(x, n, i, a) + x[0];
         #pragma omp parallel for reduction(+ : s)
         for (long i = 0; i < n; i++) s += weighted(y, n, i, a) * square(y[i]);
         return s;",
    ),
    (
        "memory of its own for each iteration, which functions read",
        "double s = 0;
         #pragma omp parallel for firstprivate(a)
         for (long i = 0; i < n; i++) {
           double own[8], other[8];
           for (int k = 0; k < 8; k++) { own[k] = x[(i + k) % n]; other[k] = sin(own[k]) * a; }
           y[i] = weighted(own, 8, 3, a) * weighted(other, 8, 5, a);
         }
         #pragma omp parallel for reduction(+ : s)
         for (long i = 0; i < n; i++) s += y[i] * y[i];
         return s;",
    ),
    (
        "a team with a barrier and a part for one",
        "double s = 0;
         #pragma omp parallel
         {
           #pragma omp for
           for (long i = 0; i < n; i++) y[i] = x[i] * a;
           #pragma omp single
           y[0] = 3 * y[0] * x[1];
           #pragma omp for reduction(+ : s)
           for (long i = 0; i < n; i++) s += sin(y[i]) * y[0];
         }
         return s;",
    ),
    (
        "tasks that are waited for",
        "double s = 0;
         #pragma omp parallel
         #pragma omp single
         s = halves(x, n);
         return s * a;",
    ),
    (
        "parts, some of them empty, again and again",
        "double s = 0;
         #pragma omp parallel for
         for (long i = 0; i < n; i++) y[i] = x[i] * a;
         for (int part = 0; part < 5; part++) {
           int length = part % 2 ? 0 : 7 + part;
           for (int k = 0; k < 3; k++) {
             #pragma omp parallel
             {
               #pragma omp for nowait firstprivate(length)
               for (int i = 0; i < length; i++) y[i] = sin(x[i] + y[i]);
               #pragma omp for firstprivate(length)
               for (int i = 0; i < length; i++) y[i] = y[i] * y[i] + x[i] * a;
             }
           }
         }
         for (long i = 0; i < n; i++) s += y[i];
         return s;",
    ),
    (
        "what each of all threads left",
        "long threads = omp_get_max_threads();
         double left[64], s = 0;
         #pragma omp parallel
         {
           double mine = 0;
           #pragma omp for
           for (long i = 0; i < n; i++) mine += x[i] * x[i] * a;
           left[omp_get_thread_num()] = mine;
         }
         for (long i = 0; i < threads; i++) s += left[i];
         return s;",
    ),
    (
        "sums of every thread in an array of its own",
        "double of_all[7] = {0}, s = 0;
         #pragma omp parallel
         {
           double mine[7] = {0};
           #pragma omp for nowait
           for (long i = 0; i < n; i++) mine[i % 7] += x[i] * x[i] * a;
           for (int k = 0; k < 7; k++) {
             #pragma omp atomic
             of_all[k] += mine[k];
           }
         }
         for (int k = 0; k < 7; k++) s += sin(of_all[k]);
         return s;",
    ),
    (
        "arrays of variable length of iterations",
        "double s = 0;
         #pragma omp parallel for reduction(+ : s)
         for (long i = 0; i < n; i++) {
           double own[i % 5 + 1];
           for (long k = 0; k <= i % 5; k++) own[k] = sin(x[i] * (k + 1)) * x[(i + k) % n];
           for (long k = 1; k <= i % 5; k++) own[k] *= own[k - 1] + a;
           s += own[i % 5];
         }
         return s;",
    ),
    (
        "arrays of variable length of threads",
        "long m = n / 10; double s = 0;
         #pragma omp parallel reduction(+ : s)
         {
           double own[m];
           #pragma omp for
           for (long i = 0; i < n; i++) {
             for (long k = 0; k < m; k++) own[k] = x[i] * x[k] + a;
             y[i] = own[i % m] * own[0];
             s += y[i] * x[i];
           }
         }
         return s;",
    ),
    (
        "blocks of the heap of threads",
        "long m = n / 10; double s = 0;
         #pragma omp parallel
         {
           double *own = malloc(m * sizeof *own);
           #pragma omp for
           for (long i = 0; i < n; i++) {
             for (long k = 0; k < m; k++) own[k] = x[i] * x[k] + a;
             y[i] = own[i % m] * own[0];
           }
           free(own);
         }
         for (long i = 0; i < n; i++) s += y[i] * x[i];
         return s;",
    ),
    (
        "reductions of as much of an array as asked for",
        "long m = n / 10; double s = 0;
         for (long k = 0; k < m; k++) y[k] = 0;
         #pragma omp parallel for reduction(+ : y[:m])
         for (long i = 0; i < n; i++) y[i % m] += sin(x[i] * a);
         for (long k = 0; k < m; k++) s += y[k] * y[k];
         return s;",
    ),
    (
        "functions that lock",
        "double s = 0;
         #pragma omp parallel for
         for (long i = 0; i < n; i++) locked_add(&s, x[i] * x[(i * 3) % n] * a);
         return s;",
    ),
];

/// Functions called by objectives.
const CALLED: &str = "
    static __attribute__((noinline)) double square(double v) { return v * v; }
    static __attribute__((noinline)) double weighted(const double *x, long n, long i, double a) {
      double own[3] = {x[i], x[(i * 7) % n], x[0]}, t = 0;
      for (int k = 0; k < 3; k++) t += own[k] * own[(k + i) % 3] * (k + a);
      return t;
    }
    static double halves(const double *x, long n) {
      if (n < 10) {
        double s = 0;
        for (long i = 0; i < n; i++) s += sin(x[i]);
        return s;
      }
      double first, second;
      #pragma omp task shared(first)
      first = halves(x, n / 2);
      second = halves(x + n / 2, n - n / 2);
      #pragma omp taskwait
      return first * second + first;
    }
    static __attribute__((noinline)) void locked_add(double *s, double v) {
      #pragma omp critical
      *s += v;
    }";

/// Returns a program that prints the value of an objective, the derivative by `a`, and the gradient by `x`.
fn program(objective: &str) -> String {
    format!(
        "#include <math.h>
         #include <stdio.h>
         #include <stdlib.h>
         #ifdef _OPENMP
         #include <omp.h>
         #else
         static int omp_get_max_threads(void) {{ return 1; }}
         static int omp_get_thread_num(void) {{ return 0; }}
         #endif
         extern int enzyme_dup, enzyme_const;
         double __enzyme_autodiff(void *, ...);
         {CALLED}
         double f(double *x, double *y, long n, double a) {{ {objective} }}
         int main(int argc, char **argv) {{
           long n = 60;
           double *x = malloc(8 * n), *dx = calloc(n, 8), *y = calloc(n, 8), *dy = calloc(n, 8);
           for (long i = 0; i < n; i++) x[i] = 0.3 + 0.02 * i;
           printf(\"%.17g\\n\", f(x, y, n, 0.7));
         #ifdef DIFFERENCES
           double e = 1e-6;
           printf(\"%.17g\\n\", (f(x, y, n, 0.7 + e) - f(x, y, n, 0.7 - e)) / (2 * e));
           for (long i = 0; i < n; i++) {{
             double old = x[i];
             x[i] = old + e; double up = f(x, y, n, 0.7);
             x[i] = old - e; double down = f(x, y, n, 0.7);
             x[i] = old;
             printf(\"%.17g\\n\", (up - down) / (2 * e));
           }}
         #else
           printf(\"%.17g\\n\", __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, n, 0.7));
           for (long i = 0; i < n; i++) printf(\"%.17g\\n\", dx[i]);
         #endif
         }}"
    )
}

#[test]
fn parallel_gradients_equal_serial() {
    for (name, objective) in OBJECTIVES {
        let folder = folder(&name.replace(' ', "_"));
        let source = program(objective);
        compile(&folder, &source, &["-O1", "-DDIFFERENCES"]);
        let differences = numbers(&folder, 1);
        compile(&folder, &source, &["-O2"]);
        let serial = numbers(&folder, 1);
        // The rounding error of the value, divided by the step.
        let noise = 1e-15 * serial[0].abs() / 1e-6;
        let what = format!("{name}: serial and differences");
        close(&serial, &differences, 2e-7 + noise, &what);
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            compile(&folder, &source, &[level, "-fopenmp"]);
            for workers in [1, 3] {
                let what = format!("{name}: parallel and serial, {level}, {workers} workers");
                close(&numbers(&folder, workers), &serial, 1e-10, &what);
            }
        }
    }
}

/// Checks the number of forking loops in each program's derivative, and the number of teams. Loops of the
/// forward and reverse passes are parallel loops of the runtime library, also if iterations call functions;
/// with locks, none is.
#[test]
fn gradients_of_parallel_loops_are_parallel() {
    let forks = |name: &str| {
        let objective = OBJECTIVES.iter().find(|(n, _)| *n == name);
        let (_, objective) = objective.expect("it is listed");
        let folder = folder(&format!("forks_{}", name.replace(' ', "_")));
        std::fs::write(folder.join("program.c"), program(objective)).expect("written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
        command.args([
            "grad",
            "program.c",
            "-f",
            "f",
            "--emit",
            "llvm",
            "-o",
            "f.ll",
        ]);
        command.args(["--", "-O2", "-fopenmp"]);
        succeeds(command.current_dir(&folder));
        let code = std::fs::read_to_string(folder.join("f.ll")).expect("written");
        let (mut inside, mut bodies, mut forks) = (false, 0, 0);
        for line in code.lines() {
            if line.starts_with("define") {
                inside = line.contains("vjp");
                bodies += usize::from(inside);
            }
            let forks_here = line.contains("@gr_for(") || line.contains("@gr_reduce(");
            forks += usize::from(inside && forks_here && line.contains("call "));
        }
        assert!(bodies > 0, "{name}");
        let teams = code.matches("call void @gr_team(").count();
        (forks, teams)
    };
    // The function itself is compiled from the normalised form for differentiation: its sum is a reduction
    // there, too.
    let (forked, teams) = forks("a map and a sum");
    assert!(forked >= 6 && teams == 0, "{forked} {teams}");
    let (forked, teams) =
        forks("functions that iterations call, with memory of their own and of all");
    assert!(forked >= 4 && teams == 0, "{forked} {teams}");
    // Private memory makes the loop serial; its sum is unused, and its reverse pass forks.
    let (forked, teams) = forks("memory of its own for each iteration, which functions read");
    assert!(forked >= 1 && teams == 0, "{forked} {teams}");
    // From code optimised by clang, with the branch of the single thread inverted.
    let (forked, teams) = forks("a team with a barrier and a part for one");
    assert!(forked >= 8 && teams == 0, "{forked} {teams}");
    assert_eq!(forks("functions that lock").0, 0);
}

/// The plain and the atomic adds of a parallel reverse pass, and the number of reductions.
#[test]
fn adds_to_adjoints_are_reported_with_their_lines() {
    let folder = folder("adds");
    let source = "\
#include <math.h>
__attribute__((noinline)) static double other(const double *y, long n, long i) { return y[(i * 7) % n]; }
double f(const double *x, double *y, long n, double a) {
  double s = 0;
#pragma omp parallel for
  for (long i = 0; i < n; i++)
    y[i] = x[(i * 7) % n] * a;
#pragma omp parallel for reduction(+ : s)
  for (long i = 0; i < n; i++)
    s += y[i] * y[i];
#pragma omp parallel for
  for (long i = 0; i < n; i++) {
#pragma omp critical
    s += exp(y[i]);
  }
#pragma omp parallel for reduction(+ : s)
  for (long i = 0; i < n; i++)
    s += y[i] * other(y, n, i);
  return s;
}
";
    std::fs::write(folder.join("program.c"), source).expect("written");
    let said = shell(
        &folder,
        "gradus grad program.c -f f --report=full -o f.o -- -O2 -g -fopenmp",
    );
    let said = text(&said.stdout);
    for line in [
        "parallel in the reverse pass: the loop in line 6; adjoint additions: 1 atomic (line 7), 1 by reduction",
        "parallel in the reverse pass: the loop in line 9; adjoint additions: 1 plain (line 10), 1 by reduction",
        // A callee adds to the memory at other indices.
        "parallel in the reverse pass: the loop in line 17; adjoint additions: 1 atomic (line 18)",
    ] {
        assert!(said.contains(line), "{said}");
    }
    assert!(
        !said.contains("parallel in the reverse pass: the loop in line 12"),
        "{said}"
    );
}

/// No atomic add exists for 80-bit floats: the loop is serial in the reverse pass, and all its adds are
/// plain, including adds to other memory and in callees.
#[test]
fn serial_reverse_loops_add_plainly() {
    let folder = folder("alone");
    let source = "\
struct atom { int kind; long double x; };
__attribute__((noinline)) static double of(const struct atom *a, const double *y, long i) { return a[i].x * y[i]; }
double f(const struct atom *a, const double *y, long n) {
  double s = 0;
#pragma omp parallel for reduction(+ : s)
  for (long i = 0; i < n; i++)
    s += of(a, y, (i * 7) % n) * y[(i * 5) % n];
  return s;
}
";
    std::fs::write(folder.join("program.c"), source).expect("written");
    let said = shell(
        &folder,
        "gradus grad program.c -f f --report=full --emit llvm -o f.ll -- -O2 -g -fopenmp",
    );
    let said = text(&said.stdout);
    let line = "serial in the reverse pass: the parallel loop in line 6; adjoint additions: 1 plain (line 7)";
    assert!(said.contains(line), "{said}");
    let made = std::fs::read_to_string(folder.join("f.ll")).expect("written");
    assert!(!made.contains("atomicrmw"), "{made}");
}

#[test]
fn every_region_is_reported_with_its_line() {
    let folder = folder("regions");
    let source = "
void twice(double *x, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; i++) x[i] *= 2;
}
double fold(double *x, long n) {
  double s = 0;
#pragma omp parallel for ordered
  for (long i = 0; i < n; i++) {
#pragma omp ordered
    s = s * 0.5 + x[i];
  }
  return s;
}
#include <stdio.h>
int main(void) { double x[3] = {1, 2, 3}; twice(x, 3); printf(\"%g\\n\", fold(x, 3)); }
";
    let said = compile(&folder, source, &["-O2", "-fopenmp", "--par-report"]);
    assert!(said.contains("program.c:3: raised"), "{said}");
    assert!(said.contains("program.c:8: not raised"), "{said}");
    assert_eq!(numbers(&folder, 2), [8.5]);
}

/// An indirect callee may query its thread number, until inlining makes the callee known.
#[test]
fn inlined_callbacks_give_loops() {
    let folder = folder("handed");
    let source = "
#include <omp.h>
#include <stdio.h>
static double square(double x) { return x * x + 1; }
static double ranked(double x) { return x + 0 * omp_get_thread_num(); }
static inline void each(double *x, long n, double (*g)(double)) {
#pragma omp parallel for
  for (long i = 0; i < n; i++) x[i] = g(x[i]);
}
static inline double total(double *x, long n, double (*g)(double)) {
  double s = 0;
#pragma omp parallel for reduction(+ : s)
  for (long i = 0; i < n; i++) s += g(x[i]);
  return s;
}
static inline void ranks(double *x, long n, double (*g)(double)) {
#pragma omp parallel for
  for (long i = 0; i < n; i++) x[i] = g(x[i]);
}
int main(void) {
  double x[3] = {1, 2, 3};
  each(x, 3, square);
  ranks(x, 3, ranked);
  printf(\"%g %g %g %g\\n\", x[0], x[1], x[2], total(x, 3, square));
}
";
    let said = compile(&folder, source, &["-O2", "-fopenmp", "--par-report"]);
    assert!(
        said.contains("program.c:7: raised to parallel loops"),
        "{said}"
    );
    assert!(
        said.contains("program.c:12: raised to parallel loops"),
        "{said}"
    );
    assert!(said.contains("program.c:17: raised to a team"), "{said}");
    for workers in [1, 3] {
        assert_eq!(numbers(&folder, workers), [2.0, 5.0, 10.0, 132.0]);
    }
}

/// The derivative of a team that cannot be split at its barriers runs a single thread: a diagnostic reports
/// the region's line.
#[test]
fn single_thread_team_is_reported() {
    let folder = folder("team_of_one");
    let source = "
#include <omp.h>
double f(double *x, long n) {
  double s = 0, part[64] = {0};
#pragma omp parallel
  {
    int t = omp_get_thread_num();
#pragma omp for
    for (long i = 0; i < n; i++) part[t] += x[i] * x[i];
    WAIT
  }
  for (int t = 0; t < 64; t++) s += part[t];
  return s;
}
";
    let cut = source.replace("WAIT", "");
    std::fs::write(folder.join("f.c"), cut).expect("written");
    let said = shell(&folder, "gradus grad f.c -f f -o f.o -- -O2 -fopenmp");
    assert!(!text(&said.stderr).contains("GRD0036"), "{said:?}");
    let source = source.replace("WAIT", "_Pragma(\"omp flush\") s += 0;");
    std::fs::write(folder.join("f.c"), source).expect("written");
    let said = shell(&folder, "gradus grad f.c -f f -o f.o -- -O2 -fopenmp");
    let said = text(&said.stderr) + &text(&said.stdout);
    assert!(said.contains("GRD0036"), "{said}");
    assert!(said.contains("f.c:5"), "{said}");
    assert!(said.contains("with one thread"), "{said}");
}

/// Handlers in a region whose function has none: the personality function is set along with them.
#[test]
fn code_with_handlers_is_raised() {
    let folder = folder("handlers");
    let source = "
#include <cstdio>
#include <vector>
struct Noted { int *left; ~Noted() { ++*left; } };
__attribute__((noinline)) double half(double x) { if (x < 0) throw 1; return x / 2; }
void all(double *x, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; i++) {
    int left = 0;
    { Noted noted{&left}; x[i] = half(x[i]); }
    x[i] += left;
  }
}
int main() {
  std::vector<double> x(100, 3);
  all(x.data(), 100);
  double s = 0;
  for (double v : x) s += v;
  std::printf(\"%g\\n\", s);
}
";
    std::fs::write(folder.join("program.cpp"), source).expect("written");
    let said = shell(
        &folder,
        "gradus c++ -O3 -fopenmp --par-report program.cpp -o program",
    );
    let said = text(&said.stdout);
    assert!(said.contains("raised to parallel loops"), "{said}");
    assert_eq!(numbers(&folder, 3), [250.0]);
}

/// A program that allocates memory for the reported number of threads, and reads each thread's result.
#[test]
fn thread_count_matches_query() {
    let folder = folder("told");
    let source = "
        #include <omp.h>
        #include <stdio.h>
        int main(void) {
          int threads = omp_get_max_threads(), left[64];
          for (int i = 0; i < 64; i++) left[i] = -1;
          #pragma omp parallel
          {
            int most = 0;
            #pragma omp for
            for (int i = 0; i < 1000; i++) if (i > most) most = i;
            left[omp_get_thread_num()] = most;
          }
          int all = 1;
          for (int i = 0; i < threads; i++) all = all && left[i] >= 0;
          printf(\"%d %d\\n\", threads, all);
        }";
    compile(&folder, source, &["-O2", "-fopenmp"]);
    for workers in [1, 2, 3] {
        assert_eq!(numbers(&folder, workers), [f64::from(workers), 1.0]);
    }
}

/// A task's local variables are private, also if a rank of a team creates the task.
#[test]
fn team_tasks_have_private_memory() {
    let folder = folder("own_memory");
    let source = "
        #include <omp.h>
        #include <stdio.h>
        static double out[64];
        static int seen[64];
        __attribute__((noinline)) void fill(double *t, int k) { for (int i = 0; i < 16; i++) t[i] = k + i; }
        __attribute__((noinline)) double total(const double *t) {
          double sum = 0;
          for (int r = 0; r < 500; r++) for (int i = 0; i < 16; i++) sum += t[i];
          return sum;
        }
        int main(void) {
          int wrong = 0;
          for (int r = 0; r < 8; r++) {
            #pragma omp parallel
            {
              seen[omp_get_thread_num()] += 1;
              #pragma omp single
              for (int k = 0; k < 64; k++) {
                #pragma omp task firstprivate(k)
                { double own[16]; fill(own, k); out[k] = total(own); }
              }
            }
            for (int k = 0; k < 64; k++) wrong += out[k] != 500.0 * (16 * k + 120);
          }
          printf(\"%d\\n\", wrong);
        }";
    for level in ["-O0", "-O2"] {
        compile(&folder, source, &[level, "-fopenmp"]);
        for workers in [1, 2, 4] {
            assert_eq!(numbers(&folder, workers), [0.0], "{level}, {workers}");
        }
    }
}

/// A region that is not differentiated has all its threads, also in a function that requests a derivative.
#[test]
fn primal_regions_keep_all_threads() {
    let folder = folder("beside");
    let source = "
        #include <omp.h>
        #include <stdio.h>
        extern int enzyme_dup, enzyme_const;
        double __enzyme_autodiff(void *, ...);
        static double square(double x) { return x * x; }
        static double sum(int n, const double *x) {
          double s = 0;
          #pragma omp parallel for reduction(+ : s)
          for (int i = 0; i < n; i++) s += x[i] * x[i];
          return s;
        }
        static int seen[64];
        static double a[1000], d[1000], slopes[10];
        __attribute__((noinline)) void slope(void) {
          #pragma omp parallel for
          for (int i = 0; i < 10; i++) slopes[i] = __enzyme_autodiff((void *)square, (double)i);
        }
        int main(void) {
          #pragma omp parallel
          {
            seen[omp_get_thread_num()]++;
            #pragma omp for schedule(dynamic)
            for (int i = 0; i < 1000; i++) a[i] = i * 0.5;
          }
          int ranks = 0;
          for (int i = 0; i < 64; i++) ranks += seen[i] > 0;
          slope();
          __enzyme_autodiff((void *)sum, enzyme_const, 1000, enzyme_dup, a, d);
          printf(\"%d %g %g %g\\n\", ranks, a[999], slopes[9], d[999]);
        }";
    for level in ["-O0", "-O2"] {
        compile(&folder, source, &[level, "-fopenmp"]);
        for workers in [1, 2, 3] {
            let expected = [f64::from(workers), 499.5, 18.0, 999.0];
            assert_eq!(numbers(&folder, workers), expected, "{level}");
        }
    }
}

/// Thread queries from another file, with worksharing there: the answers fit the execution, for any mix of
/// compilers.
#[test]
fn thread_queries_across_files() {
    let folder = folder("two_files");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parallel");
    for name in ["main.c", "other.c"] {
        std::fs::copy(sources.join(name), folder.join(name)).expect("copied");
    }
    let ways: &[&[&str]] = &[
        &["gradus cc -O2 -fopenmp main.c other.c -o program"],
        &[
            "clang-22 -O2 -fopenmp -c other.c -o other.o",
            "gradus cc -O2 -fopenmp main.c other.o -o program",
        ],
        &[
            "clang-22 -O2 -fopenmp -c main.c -o main.o",
            "gradus cc -O2 -fopenmp main.o other.c -o program",
        ],
        &[
            "clang-22 -O2 -fopenmp -shared -fPIC other.c -o libother.so",
            "gradus cc -O2 -fopenmp main.c ./libother.so -o program",
        ],
    ];
    for way in ways {
        for command in *way {
            shell(&folder, command);
        }
        for (workers, forced) in [("1", "1"), ("2", "0"), ("4", "0"), ("4", "1")] {
            let mut command = Command::new(folder.join("program"));
            command.env("OMP_NUM_THREADS", workers);
            command.env("GRADUS_FORCE_FORK", forced);
            command.current_dir(&folder);
            let said = text(&succeeds(&mut command).stdout);
            assert_eq!(
                said, "right\n",
                "{way:?}, {workers} workers, forced {forced}"
            );
        }
    }
}
