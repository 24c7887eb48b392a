//! Dependency sets: `gradus grad --mode dependencies`.

use crate::support::{accepts, folder, refuses, shell, write};

/// A function with one output per way of a set through a program. The inputs are eight numbers.
const WAYS: &str = r#"
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
typedef double pair __attribute__((vector_size(16)));
struct point { double a, b; };
static double table[4];
static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static struct point swapped(struct point p) { return (struct point){p.b, p.a}; }
static double through(double (*law)(double), double x) { return law(x); }
void ways(const double *x, double *y, int n) {
    int out = 0;
    y[out++] = x[0] * x[1] + 3;
    y[out++] = fmax(x[2], x[3]);
    y[out++] = floor(x[0]) + x[4];
    y[out++] = fmin(x[6], x[7]);
    y[out++] = (float)x[1] * 2.0f;
    y[out++] = (double)((long double)x[2] * x[3]);
    y[out++] = through(n > 2 ? sin : cos, x[7]);
    y[out++] = fma(x[0], x[1], x[2]);
    y[out++] = pow(x[3], 2) + round(x[4]);
    y[out++] = fabs(x[5]) + copysign(x[6], x[7]);
    y[out++] = creal(cexp(x[0] + I * x[1]));
    pair p = {x[2], x[3]}, q = {x[4], x[5]};
    pair r = p * q;
    y[out++] = r[1];
    struct point s = swapped((struct point){x[6], x[7]});
    y[out++] = s.a;
    for (int i = 0; i < 4; i++) table[i] = x[i + 1] * x[i];
    y[out++] = table[n % 4];
    double *t = calloc(8, sizeof *t);
    memcpy(t, x, 8 * sizeof *t);
    for (int i = 1; i < 4; i++) t[i] += t[i - 1];
    y[out++] = t[2];
    t[2] = 1;
    y[out++] = t[2];
    qsort(t + 4, 4, sizeof *t, by_value);
    y[out++] = t[4];
    free(t);
    unsigned long bits;
    memcpy(&bits, &x[6], 8);
    double copy;
    memcpy(&copy, &bits, 8);
    y[out++] = copy;
    double sum = 0;
    for (int i = 0; i < 8; i++) sum += x[i];
    y[out++] = sum;
    y[out++] = hypot(x[0], x[7]) * (int)x[3];
}
float narrow(const float *x, double wide) { return x[0] * x[2] + (float)wide; }
"#;

/// The calls, and the sets: bit k stands for input k.
const MAIN: &str = r#"
#include "ways.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
static double single(int k) {
    unsigned long bits = 0x3ffUL << 52 | 1UL << k;
    double set;
    memcpy(&set, &bits, 8);
    return set;
}
static unsigned long members(double set) {
    unsigned long bits;
    memcpy(&bits, &set, 8);
    if (bits == 0) return 0;
    if (bits >> 52 != 0x3ff) return ~0UL;
    return bits & ((1UL << 44) - 1);
}
int main(void) {
    const unsigned long wanted[] = {3, 0xc, 0x10, 0xc0, 2, 0xc, 0x80, 7, 8, 0x60, 3, 0x28, 0x80, 3, 7, 0, 0x80, 0x40, 0xff, 0x81};
    int count = sizeof wanted / sizeof *wanted, wrong = 0;
    /* Sets in the lower half of the fraction, in the upper half, and across the halves. */
    for (int shift = 0; shift < 36; shift += 12) {
        double x[8] = {1.5, 2, 3.5, 4, -5, 6, 7, -8}, x_dep[8], y[32], y_dep[32];
        for (int i = 0; i < 8; i++) x_dep[i] = single(i + shift);
        memset(y_dep, 0, sizeof y_dep);
        ways_dep(x, x_dep, y, y_dep, 8);
        for (int k = 0; k < count; k++) {
            unsigned long want = wanted[k] << shift;
            /* A number that passes through `float` has both halves. */
            if (k == 4) want |= shift < 22 ? want << 22 : want >> 22;
            if (members(y_dep[k]) != want) {
                printf("shift %d, output %d: %lx, not %lx\n", shift, k, members(y_dep[k]), want);
                wrong = 1;
            }
        }
    }
    float v[3] = {1, 2, 3}, v_dep[3];
    for (int i = 0; i < 3; i++) v_dep[i] = 1 + ldexpf(1, i - 23);
    float set = narrow_dep(v, v_dep, 4.0, single(30)), want = 1 + ldexpf(1 | 4 | 1 << 8, -23);
    if (set != want) wrong = 1, printf("narrow: %a, not %a\n", set, want);
    return wrong;
}
"#;

#[test]
fn sets_of_all_kinds_of_ops() {
    let at = folder("dependency_sets");
    write(&at, "ways.c", WAYS);
    write(&at, "main.c", MAIN);
    for level in ["-O0", "-O1", "-O2", "-O3", "-O3 -ffast-math"] {
        let wrt = "-f ways -f narrow --mode dependencies";
        accepts(&at, &format!("grad ways.c {wrt} -o ways.o -- {level}"));
        shell(&at, "cc main.c ways.o -lm -o main");
        shell(&at, "./main");
    }
    let header = std::fs::read_to_string(at.join("ways.h")).expect("a header");
    assert!(header.contains("Dependency sets of void ways("), "{header}");
    assert!(
        header.contains("x_dep, y_dep: the sets of the preceding arguments"),
        "{header}"
    );
    assert!(header.contains("the set of the result"), "{header}");
}

#[test]
fn sets_of_several_batch_elements_and_of_a_gradient() {
    let at = folder("dependency_sets_of_a_gradient");
    let program = "double f(const double *x, int n) { double s = 0;
        for (int i = 0; i + 1 < n; i++) s += x[i] * x[i] * x[i + 1];
        return s; }";
    write(&at, "f.c", program);
    let main = r#"
#include "f.h"
#include <math.h>
#include <stdio.h>
int main(void) {
    double x[4] = {1, 2, 3, 4}, sets[2][4] = {{0}}, adj[4] = {0}, found[2][4] = {{0}};
    for (int i = 0; i < 4; i++) sets[i / 2][i] = 1 + ldexp(1, i % 2 - 52);
    f_vjp_dep(x, sets[0], sets[1], adj, found[0], found[1], 4, 1.0);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) printf("%g ", found[k][i] ? ldexp(found[k][i] - 1, 52) : 0);
    puts("");
}
"#;
    write(&at, "main.c", main);
    accepts(&at, "grad f.c -f f --wrt x --emit bc -o f.bc");
    accepts(
        &at,
        "grad f.bc -f f_vjp --mode dependencies --width 2 --wrt x,x_adj -o f.o",
    );
    shell(&at, "cc main.c f.o -lm -o main");
    let said = String::from_utf8(shell(&at, "./main").stdout).expect("text");
    assert_eq!(
        said.trim(),
        "3 0 3 1 2 3 0 1",
        "the Hessian is tridiagonal, without the last diagonal"
    );
}

#[test]
fn a_registered_derivative_is_refused() {
    let at = folder("dependency_sets_registered");
    let program = "double g(double a) { return a * a; }
double g_jvp(double a, double da) { return 2 * a * da; }
void *__enzyme_register_derivative_g[2] = {(void *)g, (void *)g_jvp};
double f(const double *x) { return g(x[0]); }";
    write(&at, "f.c", program);
    accepts(&at, "grad f.c -f f --mode forward -o f.o");
    let said = refuses(&at, "grad f.c -f f --mode dependencies -o f.o", "GRD0017");
    assert!(
        said.contains("the dependencies of `g` are unknown"),
        "{said}"
    );
}

#[test]
fn half_precision_is_refused() {
    let at = folder("dependency_sets_half");
    write(
        &at,
        "f.c",
        "double f(double a) { _Float16 h = a; return h * h; }",
    );
    let said = refuses(&at, "grad f.c -f f --mode dependencies -o f.o", "GRD0006");
    assert!(
        said.contains("dependency sets do not support the type"),
        "{said}"
    );
}
