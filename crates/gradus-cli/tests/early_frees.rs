//! Blocks freed by the differentiated function: a free is deferred if the reverse pass reads the block, and
//! stays in place otherwise. Freed memory is filled with garbage.

use crate::support::{accepts, folder, succeeds, text, write};
use std::process::Command;

const PROGRAM: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
enum { N = 12 };
static double *taken(int n) { return malloc(n * sizeof(double)); }

/* One block of a step is linear, one is not. */
static double steps(const double *x, int n)
{
    double u[N], sum = 0;
    memcpy(u, x, n * sizeof *u);
    for (int s = 0; s < 4; s++) {
        double *linear = taken(n), *squares = taken(n);
        for (int i = 0; i < n; i++) linear[i] = 0.5 * u[i] + 0.25 * u[(i + 1) % n];
        for (int i = 0; i < n; i++) squares[i] = linear[i] + 0.1 * s;
        for (int i = 0; i < n; i++) u[i] = linear[n - 1 - i] + 0.1 * squares[i] * squares[i];
        free(linear);
        free(squares);
    }
    for (int i = 0; i < n; i++) sum += u[i];
    return sum;
}
/* Branches look at a block, and what is chosen is linear. */
static double branches(const double *x, int n)
{
    double sum = 0;
    for (int s = 1; s < 5; s++) {
        double *t = taken(n);
        for (int i = 0; i < n; i++) t[i] = s * x[i] - 1;
        for (int i = 0; i < n; i++) sum += t[i] > 0 ? 3 * t[i] : 0.5 * t[i];
        free(t);
    }
    return sum;
}
/* Indices in a block lead to numbers. */
static double indices(const double *x, int n)
{
    double sum = 0;
    for (int s = 1; s < 5; s++) {
        int *to = malloc(n * sizeof *to);
        double *t = taken(n);
        for (int i = 0; i < n; i++) to[i] = (i + s) % n;
        for (int i = 0; i < n; i++) t[to[i]] = s * x[i];
        for (int i = 0; i < n; i++) sum += (i + 1) * t[i];
        free(t);
        free(to);
    }
    return sum;
}
/* Each iteration of a parallel loop has blocks of its own. */
static double at_once(const double *x, int n)
{
    double part[N], sum = 0;
    #pragma omp parallel for
    for (int i = 0; i < n; i++) {
        double *t = taken(n), *v = taken(n);
        for (int j = 0; j < n; j++) t[j] = x[j] * (i + 1), v[j] = x[i] * x[j];
        part[i] = 0;
        for (int j = 0; j < n; j++) part[i] += t[j] + v[j] * v[(j + i) % n];
        free(v);
        free(t);
    }
    for (int i = 0; i < n; i++) sum += part[i];
    return sum;
}
/* A block made before a loop is written anew in each of its iterations. */
static double again(const double *x, int n)
{
    double sum = 0, *t = taken(n), *v = taken(n);
    for (int i = 0; i < n; i++) v[i] = 2 * x[i];
    for (int s = 1; s < 6; s++) {
        for (int i = 0; i < n; i++) t[i] = sin(s * x[i]);
        for (int i = 0; i < n; i++) sum += t[i] * t[n - 1 - i] + v[i];
    }
    free(t);
    free(v);
    return sum;
}
/* What a block held goes on elsewhere. */
static double moved(const double *x, int n)
{
    double sum = 0, *kept = taken(n);
    for (int s = 1; s < 4; s++) {
        double *t = taken(n);
        for (int i = 0; i < n; i++) t[i] = s * x[i];
        memcpy(kept, t, n * sizeof *t);
        free(t);
        for (int i = 0; i < n; i++) sum += kept[i] * kept[i];
    }
    free(kept);
    return sum;
}
typedef double (*Function)(const double *, int);
#define CALLS(f)                                                                                        \
    static void f##_back(const double *x, double *dx, int n)                                            \
    {                                                                                                   \
        __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, n);                               \
    }                                                                                                   \
    static double f##_on(const double *x, const double *v, int n)                                       \
    {                                                                                                   \
        return __enzyme_fwddiff((void *)f, enzyme_dup, x, v, enzyme_const, n);                          \
    }                                                                                                   \
    static void f##_second(const double *x, const double *v, double *dx, double *ddx, int n)            \
    {                                                                                                   \
        __enzyme_fwddiff((void *)f##_back, enzyme_dup, x, v, enzyme_dup, dx, ddx, enzyme_const, n);     \
    }
CALLS(steps) CALLS(branches) CALLS(indices) CALLS(at_once) CALLS(again) CALLS(moved)
#define CHECK(f) check(#f, f, f##_back, f##_on, f##_second)

static void check(const char *name, Function f, void (*back)(const double *, double *, int),
                  double (*on)(const double *, const double *, int),
                  void (*second)(const double *, const double *, double *, double *, int))
{
    double x[N], v[N], up[N], down[N], dx[N] = { 0 }, twice[N] = { 0 }, same[N] = { 0 }, ddx[N] = { 0 };
    double dup[N] = { 0 }, ddown[N] = { 0 }, step = 1e-5, along = 0, worst = 0;
    for (int i = 0; i < N; i++) {
        x[i] = 0.31 + 0.07 * i, v[i] = cos(i);
        up[i] = x[i] + step * v[i], down[i] = x[i] - step * v[i];
    }
    back(x, dx, N);
    back(x, twice, N);
    back(up, dup, N);
    back(down, ddown, N);
    second(x, v, same, ddx, N);
    for (int i = 0; i < N; i++) {
        along += dx[i] * v[i];
        worst = fmax(worst, fmax(fabs(dx[i] - twice[i]), fabs(dx[i] - same[i])));
        worst = fmax(worst, fabs((dup[i] - ddown[i]) / (2 * step) - ddx[i]));
    }
    worst = fmax(worst, fabs(on(x, v, N) - along));
    worst = fmax(worst, fabs((f(up, N) - f(down, N)) / (2 * step) - along));
    printf("%s %s\n", name, worst < 1e-5 ? "right" : "wrong");
}
int main(void)
{
    CHECK(steps);
    CHECK(branches);
    CHECK(indices);
    CHECK(at_once);
    CHECK(again);
    CHECK(moved);
    return 0;
}
"#;

#[test]
fn no_use_after_free() {
    let folder = folder("early_frees");
    write(&folder, "p.c", PROGRAM);
    let right: String = ["steps", "branches", "indices", "at_once", "again", "moved"]
        .map(|name| format!("{name} right\n"))
        .concat();
    for level in 0..=3 {
        accepts(&folder, &format!("cc -O{level} -fopenmp p.c -o p -lm"));
        for workers in ["1", "3"] {
            let mut command = Command::new("timeout");
            command.args(["60", "./p"]).current_dir(&folder);
            command.env("MALLOC_PERTURB_", "165");
            command.env("OMP_NUM_THREADS", workers);
            command.env("GRADUS_FORCE_FORK", "1");
            let said = text(&succeeds(&mut command).stdout);
            assert_eq!(said, right, "-O{level}, {workers}");
        }
    }
}

const REPORTED: &str = r"
#include <math.h>
#include <stdlib.h>
static void smooth(double *u, int n) { for (int i = 1; i + 1 < n; i++) u[i] = u[i] * u[i] + u[i - 1]; }
__attribute__((noinline)) static void twice(double *u, int n) { smooth(u, n); smooth(u, n); }
double f(double *x, int n, int steps)
{
    double sum = 0;
    for (int s = 0; s < steps; s++) {
        double *t = malloc(n * sizeof *t);
        for (int i = 0; i < n; i++) t[i] = sin(x[i]);
        for (int i = 0; i < n; i++) x[i] = t[i] * t[n - 1 - i];
        twice(x, n);
        if (t[0] > 0) free(t);
    }
    for (int i = 0; i < n; i++) sum += x[i];
    return sum;
}
";

#[test]
fn report_names_deferred_frees() {
    let folder = folder("early_frees_report");
    write(&folder, "p.c", REPORTED);
    let said = accepts(&folder, "grad p.c -f f --report=full -o p.o");
    for why in [
        "overwritten later by `twice` in line 13",
        "freed later in line 14",
        "overwritten later in line 4",
    ] {
        assert!(said.contains(why), "{why}\n{said}");
    }
}
