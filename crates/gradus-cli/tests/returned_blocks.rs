//! Blocks that a function makes, works in and gives to its caller: whoever made them is not alone with them.

mod support;

use support::{folder, shell, text, write};

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// A program's lines at each level.
fn printed(test: &str, program: &str) -> Vec<String> {
    let folder = folder(test);
    write(&folder, "program.c", program);
    let run = |level: &str| {
        shell(
            &folder,
            &format!("gradus cc {level} -w program.c -o program -lm"),
        );
        text(&shell(&folder, "./program").stdout)
    };
    LEVELS.map(run).to_vec()
}

/// Each iteration fills the block anew, so that it could work in the copy that it keeps: then nobody would fill the
/// block that the caller reads.
#[test]
fn what_the_caller_reads_is_written() {
    let program = r#"
        #include <gradus.h>
        #include <math.h>
        #include <stdio.h>
        #include <stdlib.h>
        enum { K = 40, N = 6 };
        __attribute__((noinline)) static double *rows(const double *x, double *out) {
          double *d = malloc(K * sizeof *d), s = 0;
          for (int i = 0; i < N; i++) {
            for (int j = 0; j < K; j++) d[j] = x[i] * (j + 1) * x[i] * 0.01;
            for (int j = 0; j < K; j++) s += d[j] * d[(j * 7 + i) % K];
          }
          *out = s;
          return d;
        }
        __attribute__((noinline)) static double squares(const double *d) {
          double s = 0;
          for (int i = 0; i < K; i++) s += d[i] * d[i];
          return s;
        }
        double f(const double *x) {
          double s, *d = rows(x, &s);
          s += squares(d);
          free(d);
          return s;
        }
        int main(void) {
          double x[N], g[N] = {0}, dx[N], up[N], down[N], reverse = 0;
          for (int i = 0; i < N; i++) x[i] = 0.5 + 0.1 * i, dx[i] = 1 + 0.3 * i;
          for (int i = 0; i < N; i++) up[i] = x[i] + 1e-6 * dx[i], down[i] = x[i] - 1e-6 * dx[i];
          gradus_vjp(f, gradus_dup, x, g);
          for (int i = 0; i < N; i++) reverse += g[i] * dx[i];
          double forward = gradus_jvp_double(f, gradus_dup, x, dx);
          double difference = (f(up) - f(down)) / 2e-6;
          printf("%d %d\n", fabs(forward - reverse) < 1e-12 * forward, fabs(forward - difference) < 1e-7 * forward);
        }"#;
    assert_eq!(printed("returned_rows", program), ["1 1\n"; 4]);
}

/// The shadow of a large block begins further on than its memory, where it is freed as it was given. Here another
/// function frees it.
#[test]
fn large_blocks_are_freed_where_they_begin() {
    let program = r#"
        #include <gradus.h>
        #include <stdio.h>
        #include <stdlib.h>
        enum { N = 30000 };
        typedef struct { int n; double *d; } matrix;
        __attribute__((noinline)) static matrix *make(const double *x, int n) {
          matrix *m = malloc(sizeof *m);
          m->n = n;
          m->d = malloc(n * sizeof *m->d);
          for (int i = 0; i < n; i++) m->d[i] = x[i] * x[i];
          return m;
        }
        __attribute__((noinline)) static double squares(const matrix *m) {
          double s = 0;
          for (int i = 0; i < m->n; i++) s += m->d[i] * m->d[i];
          return s;
        }
        __attribute__((noinline)) static void drop(matrix *m) { free(m->d); free(m); }
        double f(const double *x, int n) {
          matrix *m = make(x, n);
          double s = squares(m);
          drop(m);
          return s;
        }
        static double x[N], g[N], dx[N];
        int main(void) {
          for (int i = 0; i < N; i++) x[i] = 1 + i % 3, dx[i] = 1;
          gradus_vjp(f, gradus_dup, x, g, gradus_const, N);
          double forward = gradus_jvp_double(f, gradus_dup, x, dx, gradus_const, N);
          printf("%g %g %g %g\n", g[0], g[1], g[2], forward);
        }"#;
    assert_eq!(
        printed("returned_large", program),
        ["4 32 108 1.44e+06\n"; 4]
    );
}
