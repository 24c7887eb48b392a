//! Blocks allocated by a function, used as workspace, and returned to the caller: the allocating function
//! has no exclusive access.

use crate::support::{folder, shell, text, write};

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// Returns a program's output at each level.
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

/// Each iteration fills the block again and could work in the snapshot instead; the block read by the
/// caller would then stay unfilled.
#[test]
fn returned_block_is_filled() {
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

/// The shadow of a large block is staggered and freed with its original address. Here another function
/// frees it.
#[test]
fn staggered_blocks_free_original() {
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

/// Checks programs that differ in allocation, release, and the body of `f`: forward against reverse mode,
/// and against finite differences.
fn check_gradients(test: &str, making: &str, f: &str) {
    let program = format!(
        r#"
        #include <gradus.h>
        #include <math.h>
        #include <stdio.h>
        #include <stdlib.h>
        enum {{ N = 12 }};
        #define APART __attribute__((noinline)) static
        {making}
        double f(const double *x) {{ {f} }}
        int main(void) {{
          double x[N], g[N] = {{0}}, dx[N], up[N], down[N], reverse = 0;
          for (int i = 0; i < N; i++) x[i] = 0.3 + 0.5 * sin(i * 1.7), dx[i] = 1 + 0.1 * i;
          for (int i = 0; i < N; i++) up[i] = x[i] + 1e-5 * dx[i], down[i] = x[i] - 1e-5 * dx[i];
          gradus_vjp(f, gradus_dup, x, g);
          for (int i = 0; i < N; i++) reverse += g[i] * dx[i];
          double forward = gradus_jvp_double(f, gradus_dup, x, dx);
          double difference = (f(up) - f(down)) / 2e-5;
          printf("%d %d\n", fabs(forward - reverse) < 1e-12 * fabs(forward),
                 fabs(forward - difference) < 1e-6 * fabs(forward));
        }}"#
    );
    assert_eq!(printed(test, &program), ["1 1\n"; 4], "{f}");
}

/// The caller reaches the block by its name and through a pointer stored in it.
#[test]
fn self_referential_block() {
    let making = "typedef struct { double *a; double d[]; } block;
        APART block *make(void) {
          block *b = malloc(sizeof *b + N * sizeof(double));
          b->a = b->d;
          return b;
        }";
    let fill = "block *b = make();
        double s = 0;
        for (int i = 0; i < N; i++) b->a[i] = sin(x[i]);
        for (int i = 0; i < N; i++) s += b->a[i] * b->a[i] * b->a[i];";
    let overwritten = format!("{fill} for (int i = 0; i < N; i++) b->d[i] = 0; return s;");
    check_gradients("returned_overwritten", making, &overwritten);
    check_gradients(
        "returned_freed",
        making,
        &format!("{fill} free(b); return s;"),
    );
}

/// Nodes point to each other.
#[test]
fn cyclic_blocks() {
    let making = "typedef struct node { struct node *other; double v; } node;
        APART node *pair(void) {
          node *a = malloc(sizeof *a), *b = malloc(sizeof *b);
          a->other = b;
          b->other = a;
          return a;
        }";
    let f = "node *a = pair();
        double s = 0;
        for (int i = 0; i < N; i++) {
          a->v = sin(x[i]);
          a->other->v = cos(x[i]) * a->v;
          s += a->v * a->v * a->other->v;
          a->other->other->v = 2;
          s += a->v * a->other->v * a->other->v;
        }
        free(a->other);
        free(a);
        return s;";
    check_gradients("returned_pair", making, f);
}

/// The word before an aligned block holds its original address, read for `free`.
#[test]
fn block_with_original_address() {
    let making = "APART double *take(size_t bytes) {
          char *block = malloc(bytes + 72);
          char *at = (char *)(((unsigned long)block + 8 + 63) & ~63ul);
          ((void **)at)[-1] = block;
          return (double *)at;
        }
        APART void give(double *at) { free(((void **)at)[-1]); }";
    let f = "double *u = take(N * sizeof *u), s = 0;
        for (int i = 0; i < N; i++) u[i] = exp(-x[i] * x[i]);
        for (int i = 0; i < N; i++) s += u[i] * u[i] * u[i];
        give(u);
        double *v = take(N * sizeof *v);
        for (int i = 0; i < N; i++) v[i] = sin(x[i]) * s;
        for (int i = 0; i < N; i++) s += v[i] * v[N - 1 - i];
        give(v);
        return s;";
    check_gradients("returned_aligned", making, f);
}

/// A returned block points to an array of the caller, otherwise believed exclusive.
#[test]
fn block_with_caller_pointer() {
    let making = "typedef struct { double *a; } view;
        APART view *look(double *a) {
          view *v = malloc(sizeof *v);
          v->a = a;
          return v;
        }";
    let f = "double own[N], s = 0;
        view *v = look(own);
        for (int i = 0; i < N; i++) v->a[i] = sin(x[i]);
        for (int i = 0; i < N; i++) s += own[i] * own[i] * own[i];
        for (int i = 0; i < N; i++) v->a[i] = 0.5 * x[i];
        for (int i = 0; i < N; i++) s += own[i] * own[i];
        for (int i = 0; i < N; i++) v->a[i] = 0;
        free(v);
        return s;";
    check_gradients("returned_view", making, f);
}
