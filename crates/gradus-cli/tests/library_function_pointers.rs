//! Indirect calls of C library functions: math functions, whose derivatives are rules, and allocators,
//! which have shadows.

use crate::support::{accepts, folder, succeeds, write};
use std::process::Command;

const PROGRAM: &str = r#"
#include <math.h>
#include <stdlib.h>
typedef double (*one)(double);
typedef double (*two)(double, double);
static double square(double x) { return x * x; }
/* Expressions as trees, whose functions lie in nodes. */
struct node {
    int kind;
    const void *f;
    const struct node *a, *b;
    const double *x;
};
static double value(const struct node *n) {
    switch (n->kind) {
    case 0: return *n->x;
    case 1: return ((one)n->f)(value(n->a));
    default: return ((two)n->f)(value(n->a), value(n->b));
    }
}
__attribute__((noinline)) static double integral(one f, double a, double b, int n) {
    double s = 0, h = (b - a) / n;
    for (int i = 0; i < n; i++)
        s += h / 6 * (f(a + i * h) + 4 * f(a + (i + .5) * h) + f(a + (i + 1) * h));
    return s;
}
double math(const double *x, int k) {
    struct node p = {0, 0, 0, 0, x}, q = {0, 0, 0, 0, x + 1};
    struct node s = {1, k & 1 ? (void *)sin : (void *)square, &p};
    struct node e = {1, (void *)exp, &q}, all = {2, (void *)pow, &e, &s};
    return value(&all) + integral(k & 2 ? cos : square, x[0], x[1], 8) + integral(sqrt, x[0], x[1], 8);
}
/* Memory by what a caller hands in, as libraries of C take it. */
struct hooks {
    void *(*get)(size_t);
    void *(*more)(void *, size_t);
    void (*release)(void *);
};
__attribute__((noinline)) static double work(const struct hooks *by, const double *x, int n) {
    double *p = by->get(n * sizeof *p), s = 0;
    for (int i = 0; i < n; i++)
        p[i] = x[i] * x[i];
    p = by->more(p, 2 * n * sizeof *p);
    for (int i = 0; i < n; i++)
        p[n + i] = p[i] * x[n - 1 - i];
    for (int i = 0; i < 2 * n; i++)
        s += p[i] * p[i] * (i + 1);
    by->release(p);
    return s;
}
static void *own(size_t bytes) { return malloc(bytes + 8); }
static struct hooks usual = {malloc, realloc, free};
void choose(void *(*get)(size_t)) { usual.get = get; }
double memory(const double *x, int n, int k) {
    struct hooks by = {k ? own : malloc, realloc, free};
    return work(&by, x, n) + work(&usual, x, n - 1);
}
"#;

#[test]
fn indirect_library_calls() {
    let at = folder("library_function_pointers");
    write(&at, "called.c", PROGRAM);
    for level in 0..4 {
        for k in 0..4 {
            let line = format!("check called.c -f math --arg x=[0.5,1.2] --arg k={k} -- -O{level}");
            accepts(&at, &line);
        }
        for k in 0..2 {
            let line = format!(
                "check called.c -f memory --arg x=rand(4) --arg n=4 --arg k={k} -- -O{level}"
            );
            accepts(&at, &line);
        }
    }
}

/// A solver hands its callback either its own structure or the user's data, as CVODE does. The structure holds
/// pointers to functions; the data are numbers.
const SOLVER: &str = r#"
#include <stdlib.h>
struct solver {
    double h;
    void *user;
    double (*norm)(const double *);
    int (*jacobian)(double *, double, void *);
    void *data;
    double *y;
};
static double first(const double *y) { return y[0] * y[0]; }
static int own(double *j, double t, void *data) {
    struct solver *s = data;
    *j = t * s->norm(s->y) + s->h;
    return 0;
}
static int users(double *j, double t, void *data) {
    const double *p = data;
    *j = t * p[0] * p[1];
    return 0;
}
static void choose(struct solver *s, int is_own) {
    s->jacobian = is_own ? own : users;
    s->data = is_own ? (void *)s : s->user;
}
double solve(const double *p, int is_own) {
    struct solver *s = calloc(1, sizeof *s);
    s->user = (void *)p;
    s->norm = first;
    s->y = malloc(8);
    *s->y = p[1];
    s->h = p[0];
    choose(s, is_own);
    double j = 0, r = 0;
    for (int i = 0; i < 3; i++) {
        s->jacobian(&j, i, s->data);
        r += j * p[0];
    }
    free(s->y);
    free(s);
    return r;
}
"#;

const SOLVER_MAIN: &str = "#include <math.h>
double solve(const double *, int);
void solve_vjp(const double *, double *, int, double);
int main(void) {
    for (int own = 0; own < 2; own++) {
        double p[2] = {1.3, 0.7}, d[2] = {0};
        solve_vjp(p, d, own, 1);
        for (int i = 0; i < 2; i++) {
            double at = p[i];
            p[i] = at + 1e-5;
            double high = solve(p, own);
            p[i] = at - 1e-5;
            double low = solve(p, own);
            p[i] = at;
            if (fabs((high - low) / 2e-5 - d[i]) > 1e-7) return 1 + i + 2 * own;
        }
    }
    return 0;
}
";

#[test]
fn callback_data_of_the_user_or_of_the_solver() {
    let at = folder("callback_data");
    write(&at, "solver.c", SOLVER);
    write(&at, "main.c", SOLVER_MAIN);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        accepts(
            &at,
            &format!("grad solver.c -f solve -o solver.o -- {level}"),
        );
        accepts(&at, "cc main.c solver.o -lm -o program");
        succeeds(&mut Command::new(at.join("program")));
    }
}
