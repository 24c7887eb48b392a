//! Indirect calls of C library functions: math functions, whose derivatives are rules, and allocators,
//! which have shadows.

use crate::support::{accepts, folder, write};

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
