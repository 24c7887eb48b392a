//! Derivatives of C functions in single precision, alone and mixed with double precision. Both modes must
//! agree with each other and with the double-precision program, which is checked three ways.
//!
//! In the sources, `REAL` is the precision under test.

use crate::support::check_single_precision;

macro_rules! programs {
    ($($name:ident: $n:literal, $source:literal;)*) => { $(
        #[test]
        fn $name() {
            check_single_precision($source, $n);
        }
    )* };
}

programs! {
    straight_line: 3, "#include <tgmath.h>
        REAL f(int n, REAL *x, REAL s) {
            REAL a = x[0] * x[1] + sin(s), b = exp(a) / (1 + x[2] * x[2]);
            return sqrt(b) * log(1 + a * a) - s / x[1] + pow(x[0], (REAL)3) + fabs(x[1] - (REAL)0.5); }";
    stencil: 8, "#include <stdlib.h>
        static void step(int n, REAL s, const REAL *k, const REAL *u, REAL *next) {
            for (int i = 1; i < n - 1; i++)
                next[i] = u[i] + s * (REAL)0.1 * ((k[i] + k[i - 1]) * (u[i - 1] - u[i]) + (k[i] + k[i + 1]) * (u[i + 1] - u[i])); }
        REAL f(int n, REAL *x, REAL s) {
            REAL *u = malloc(n * sizeof *u), *v = malloc(n * sizeof *v), r = 0;
            for (int i = 0; i < n; i++) u[i] = v[i] = x[i] * x[i];
            for (int t = 0; t < 4; t++) { step(n, s, x, u, v); REAL *swap = u; u = v; v = swap; }
            for (int i = 0; i < n; i++) r += u[i] * (i + 1);
            free(u); free(v); return r; }";
    layers: 6, "#include <tgmath.h>
        static void dense(int in, int out, const REAL *w, const REAL *a, REAL *b) {
            for (int o = 0; o < out; o++) { REAL sum = w[o]; for (int i = 0; i < in; i++) sum += w[o + i] * a[i]; b[o] = tanh(sum); } }
        REAL f(int n, REAL *x, REAL s) {
            REAL a[3] = {s, 1, -s}, b[3], top, sum = 0;
            dense(3, 3, x, a, b); dense(3, 3, x + 1, b, a); top = fmax(a[0], fmax(a[1], a[2]));
            for (int i = 0; i < 3; i++) sum += exp(a[i] - top);
            return top + log(sum) - a[1] + n * s; }";
    sum_in_double: 7, "REAL f(int n, REAL *x, REAL s) {
            double sum = 0; for (int i = 0; i < n; i++) sum += (double)x[i] * x[i] * s; return (REAL)(sum / n); }";
    double_state: 5, "#include <math.h>
        struct state { REAL v; double e; int k; REAL w; };
        REAL f(int n, REAL *x, REAL s) {
            struct state q = {s, 1, 0, x[0]};
            for (int i = 0; i < n; i++) { q.e += q.v * x[i]; q.v = (REAL)(q.e * 0.25) + q.w; q.w *= x[i]; q.k++; }
            return (REAL)(q.e * q.k) + q.v; }";
    widened_array: 6, "#include <math.h>
        REAL f(int n, REAL *x, REAL s) {
            double wide[6]; for (int i = 0; i < n; i++) wide[i] = exp(0.3 * x[i]);
            REAL r = 0; for (int i = 1; i < n; i++) { wide[i] = wide[i] * wide[i - 1] * s; r += (REAL)wide[i] * x[i - 1]; }
            return r; }";
    in_place: 6, "REAL f(int n, REAL *x, REAL s) {
            REAL t[8], r = 0; for (int i = 0; i < n; i++) t[i] = x[i] * s;
            for (int k = 0; k < 3; k++) for (int i = 1; i < n; i++) t[i] = (REAL)0.4 * t[i] * t[i - 1] + (REAL)0.5 * t[i];
            for (int i = 0; i < n; i++) r += t[i]; return r; }";
    norm: 5, "#include <tgmath.h>
        static REAL mag(int n, const REAL *x) { REAL q = 0; for (int i = 0; i < n; i++) q += x[i] * x[i]; return sqrt(q); }
        REAL f(int n, REAL *x, REAL s) {
            REAL y[5], r = 0; for (int i = 0; i < n; i++) y[i] = x[i] / mag(n, x);
            for (int i = 0; i < n; i++) r += y[i] * y[i] * y[i] * s; return r; }";
    early_exit: 6, "REAL f(int n, REAL *x, REAL s) {
            REAL r = s; int i = 0;
            for (i = 0; i < n; i++) { r *= 1 + (REAL)0.3 * x[i]; if (r > (REAL)2.5) break; r += x[i]; }
            return r * r + i; }";
    copied: 4, "#include <string.h>
        REAL f(int n, REAL *x, REAL s) {
            REAL t[4], u[4]; memcpy(t, x, sizeof t); memset(u, 0, sizeof u);
            for (int i = 0; i < n; i++) t[i] *= s;
            memmove(u + 1, t, 3 * sizeof *t); memcpy(&u[0], &t[3], sizeof *t);
            REAL r = 1; for (int i = 0; i < n; i++) r += u[i] * t[i] * t[0]; return r; }";
}
