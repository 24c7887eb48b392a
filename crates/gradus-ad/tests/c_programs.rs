//! Derivatives of C functions that cover every part of the engine, checked three ways at several optimisation
//! levels of the input.

use crate::support::check_three_ways;

macro_rules! programs {
    ($($name:ident: $n:literal, $source:literal;)*) => { $(
        #[test]
        fn $name() {
            check_three_ways($source, $n);
        }
    )* };
}

programs! {
    straight_line: 3, "#include <math.h>
        double f(int n, double *x, double s) {
            double a = x[0] * x[1] + sin(s), b = exp(a) / (1 + x[2] * x[2]);
            return sqrt(b) * log(1 + a * a) - s / x[1] + pow(x[0], 3) + fabs(x[1] - 0.5); }";
    sum: 5, "double f(int n, double *x, double s) {
            double r = 0; for (int i = 0; i < n; i++) r += x[i] * x[i] * s; return r; }";
    product: 5, "double f(int n, double *x, double s) {
            double r = s; for (int i = 0; i < n; i++) r *= x[i]; return r; }";
    nested_loops: 4, "double f(int n, double *x, double s) {
            double r = 0;
            for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) { double d = x[i] - s * x[j]; r += d * d * d; }
            return r; }";
    triangular: 5, "double f(int n, double *x, double s) {
            double r = 0;
            for (int i = 0; i < n; i++) { double p = s; for (int j = 0; j < i; j++) { p = p * x[j] + x[i]; } r += p * p; }
            return r; }";
    // A row varies only in length with t: the array has the length of the longest row and is allocated once,
    // before t.
    kept_in_rows_of_a_loop_passed_over: 5, "double f(int n, double *x, double s) {
            double r = 0;
            for (int t = 0; t < n; t++) for (int h = 0; h < n - 2; h++) {
                double p = 0;
                for (int u = 0; u <= t; u++) for (int i = 0; i < 400; i++) p += x[(h * 3 + u + i) % n] * (s + 0.001 * i);
                r += 0.001 * p * p; }
            for (int k = 0; k < n; k++) x[k] = 0;
            return r; }";
    // The length of the longest row is unknown before t: arrays are allocated per iteration. Rows are long
    // enough for a premature release to cause reuse of the memory.
    kept_in_rows_of_uneven_length: 5, "double f(int n, double *x, double s) {
            double r = 0;
            for (int t = 0; t < n; t++) for (int h = 0; h < n - 2; h++) {
                double p = 0;
                for (int u = 0; u <= t * t % 7; u++) for (int i = 0; i < 400; i++) p += x[(h * 3 + u + i) % n] * (s + 0.001 * i);
                r += 0.001 * p * p; }
            for (int k = 0; k < n; k++) x[k] = 0;
            return r; }";
    // Structs with a flexible array member, copied and reallocated as a whole: floats, pointers and integers
    // in the head, structs and pointers in the array.
    heads_before_arrays: 6, "#include <stdlib.h>
        #include <string.h>
        typedef struct Row { struct Row *next; double scale; int n; double d[]; } Row;
        typedef struct { int n; struct { double x; int id; } p[]; } Points;
        typedef struct { int n; double *of[]; } Rows;
        static Row *row(Row *next, int n, double scale) {
            Row *r = malloc(sizeof(Row) + n * sizeof(double)); r->next = next; r->n = n; r->scale = scale; return r; }
        static Row *copy(const Row *r) {
            if (!r) return 0;
            size_t bytes = sizeof(Row) + r->n * sizeof(double);
            Row *w = malloc(bytes); memcpy(w, r, bytes); w->next = copy(r->next); return w; }
        static Points *push(Points *v, double x, int id) {
            int n = v ? v->n : 0; v = realloc(v, sizeof(Points) + (n + 1) * sizeof v->p[0]);
            v->n = n + 1; v->p[n].x = x; v->p[n].id = id; return v; }
        static Rows *keep(Rows *v, double *at) {
            int n = v ? v->n : 0; v = realloc(v, sizeof(Rows) + (n + 1) * sizeof v->of[0]);
            v->n = n + 1; v->of[n] = at; return v; }
        double f(int n, double *x, double s) {
            Row *list = 0; Points *points = 0; Rows *rows = 0; double r = 0;
            for (int i = 0; i < n; i++) {
                list = row(list, i + 1, s * x[i]); points = push(points, x[i] * x[i], i * 3 % n);
                for (int j = 0; j <= i; j++) list->d[j] = x[i] * x[j];
                rows = keep(rows, list->d); }
            Row *twin = copy(list);
            for (Row *a = list, *b = twin; a; a = a->next, b = b->next)
                for (int j = 0; j < a->n; j++) { b->d[j] *= a->d[0] * b->scale; r += b->d[j] * a->d[j] + b->scale; }
            for (int i = 0; i < points->n; i++) r += points->p[i].x * x[points->p[i].id] * rows->of[i][i];
            free(points); free(rows);
            while (list) { Row *t = list->next; free(list); list = t; }
            while (twin) { Row *t = twin->next; free(twin); twin = t; }
            return r; }";
    // The start of a row is the end of the previous row. If the program changes the lengths later, they must
    // be saved.
    rows_that_begin_where_others_end: 6, "#include <stdlib.h>
        double f(int n, double *x, double s) {
            int *row = malloc((n + 1) * sizeof *row); double r = 0;
            for (int i = 0; i <= n; i++) row[i] = i * (i + 1) / 2 % (n - 1) + i;
            for (int t = 0; t < 3; t++) for (int i = 0; i < n; i++) { double p = s;
                for (int e = row[i]; e < row[i + 1]; e++) p = p * x[e % n] + 0.1 * e;
                r += p * p; }
            free(row);
            return r; }";
    rows_whose_ends_are_changed_later: 6, "#include <stdlib.h>
        double f(int n, double *x, double s) {
            int *row = malloc((n + 1) * sizeof *row); double r = 0;
            for (int i = 0; i <= n; i++) row[i] = i * (i + 1) / 2 % (n - 1) + i;
            for (int t = 0; t < 3; t++) {
                for (int i = 0; i < n; i++) { double p = s;
                    for (int e = row[i]; e < row[i + 1]; e++) p = p * x[e % n] + 0.1 * e;
                    r += p * p; }
                for (int i = 0; i <= n; i++) row[i] += t * i % 3; }
            free(row);
            return r; }";
    // Sums read by their own updates only: nothing but their adjoints remains in the derivative.
    sums_of_steps_beside_the_result: 4, "#include <stdlib.h>
        double f(int n, double *x, double s) {
            double *sum = malloc(n * sizeof *sum), *d = malloc(n * sizeof *d), r = 0;
            if (!sum || !d) abort();
            for (int i = 0; i < n; i++) { sum[i] = 0; d[i] = x[i]; }
            for (int t = 0; t < 4; t++) {
                double q = 0;
                for (int i = 0; i < n; i++) { sum[i] += s * d[i]; q += d[i] * d[(i + 1) % n]; }
                for (int i = 0; i < n; i++) d[i] = d[i] * (1 - 0.1 * q) + 0.01 * t; }
            for (int i = 0; i < n; i++) r += x[i] * sum[i];
            free(sum); free(d);
            return r; }";
    // The state before each step is long enough for a piecewise copy by the reading loop. The loop also reads
    // the last row, and pieces beyond the piece of the last iteration.
    copied_in_pieces: 3, "#include <stdlib.h>
        double f(int n, double *x, double s) {
            const int w = 96; double *u = malloc(w * w * sizeof *u), *v = malloc(w * w * sizeof *v), r = 0;
            for (int i = 0; i < w * w; i++) u[i] = v[i] = x[i % n] * (1 + 0.0001 * i);
            for (int t = 0; t < 3; t++) {
                for (int i = 1; i < w - 1; i++) for (int j = 1; j < w - 1; j++) { int c = i * w + j;
                    v[c] = u[c] + 0.1 * s * (u[c - w] * u[c - 1] - u[c] * u[c + w + 1]); }
                double *swap = u; u = v; v = swap; }
            for (int i = 0; i < w * w; i++) r += 0.001 * u[i] * u[i];
            free(u); free(v); return r; }";
    // A square root in an arm whose result is always used, and a square root of a negative number that no
    // later iteration selects.
    roots_that_leave_arms: 4, "#include <math.h>
        double f(int n, double *x, double s) {
            double r = s, last = 1;
            for (int i = 0; i < n; i++) {
                double q = x[i] * x[i], a;
                if (q > 0.01) { double w = sqrt(q); a = sin(w) / w; } else a = 1 - q / 6;
                r += a * s + (x[i] > 9 ? last : x[i] * s);
                last = r > 0 ? sqrt(x[i] - 9) : 1; }
            return r; }";
    // Local arrays, filled by loops with long iterations, become SSA values; an array with an unknown index
    // stays in memory.
    arrays_of_an_element: 4, "#include <math.h>
        double f(int n, double *x, double s) {
            double m[4][8], h[4], g[4], r = 0;
            const double w[12] = {1, -1, 0.5, 0.25, -0.5, 1, 1, -1, 0.75, 1, -0.25, 2};
            for (int e = 0; e < n; e++) {
                double c[8]; for (int j = 0; j < 8; j++) c[j] = x[(e + j) % n] * (1 + 0.1 * j);
                for (int i = 0; i < 4; i++) {
                    double a = 0, b = 0, d = 0;
                    for (int j = 0; j < 8; j++) { a += c[j] * w[i + j % 4]; b += c[j] * c[j] * w[i + j % 5]; d += c[j] * w[i + j % 6] * s; }
                    for (int j = 0; j < 8; j++) m[i][j] = w[(i + j) % 12] - 0.1 * (c[j] * a + d * b);
                    g[i] = sin(a) * b; }
                for (int i = 0; i < 4; i++) { h[i] = 0; for (int j = 0; j < 8; j++) h[i] += m[i][j] * c[7 - j]; }
                for (int j = 0; j < 8; j++) r += (m[0][j] * h[0] + m[1][j] * h[1] + m[2][j] * h[2] + m[3][j] * h[3]) * x[j % n];
                r += g[(int) (e * s) & 3] * h[e & 3]; x[e] = 0.5 * x[e] + 0.01 * h[1]; }
            return r; }";
    // The same split derivative on disjoint and on overlapping memory.
    versions_of_two_sweeps: 4, "__attribute__((noinline)) static void rows(double *out, const double *in, int n, double s) {
            for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) {
                double a = 0; for (int k = 0; k < n; k++) a += in[i * n + k] * in[k * n + j] * s;
                out[i * n + j] = a / (1 + a * a); } }
        double f(int n, double *x, double s) {
            double t[64], u[64];
            for (int i = 0; i < n * n + 2; i++) t[i] = x[i % n] * (1 + 0.1 * i);
            for (int k = 0; k < 3; k++) {
                rows(u, t, n, s); rows(t + k, t, n, s);
                for (int i = 0; i < n * n; i++) t[i] = 0.5 * t[i] + u[i]; }
            double r = 0; for (int i = 0; i < n * n; i++) r += t[i] * u[i]; return r; }";
    branches: 5, "double f(int n, double *x, double s) {
            double r = s;
            for (int i = 0; i < n; i++) { if (x[i] > 0.9) r = r * x[i] + 1; else if (i & 1) r += x[i] * s; else r -= r * r * 0.1; }
            return r; }";
    early_exit: 6, "double f(int n, double *x, double s) {
            double r = s; int i = 0;
            for (i = 0; i < n; i++) { r *= 1 + 0.3 * x[i]; if (r > 2.5) break; r += x[i]; }
            return r * r + i; }";
    data_dependent: 4, "double f(int n, double *x, double s) {
            double r = s + x[0]; int k = 0;
            while (r < 20) { r = r * 1.3 + x[k % n] * r; k++; }
            return r; }";
    // Snapshots of constant size, taken in all iterations of two loops or in none: one array holds them. The
    // first reading loop of each group reads everything read by the other loops.
    copies_side_by_side: 5, "#include <stdlib.h>
        double f(int n, double *x, double s) {
            double *t = malloc(n * sizeof *t), r = 0;
            for (int k = 0; k < 3; k++) for (int q = 0; q < n; q++) {
                for (int i = 0; i < n; i++) t[i] = x[i] * s - x[q] * (k + 1);
                double a = 0, b = 0;
                for (int i = 0; i < n; i++) a += t[i] * t[i];
                for (int j = 0; j < n; j++) for (int i = j; i < n; i++) b += t[j] * x[i];
                r += a * b; }
            for (int i = 0; i < n; i++) x[i] = 0;
            free(t); return 0.1 * r; }";
    // The first loop reads less than the second one, and the second loop runs in some iterations only.
    copies_of_more_than_the_first_loop_reads: 5, "#include <stdlib.h>
        double f(int n, double *x, double s) {
            double *t = malloc(n * sizeof *t), r = 0;
            for (int k = 0; k < 4; k++) {
                for (int i = 0; i < n; i++) t[i] = x[i] * s + k;
                double a = 0, b = 0;
                if (x[k] > 1.01) {
                    for (int i = 0; i < n - 1; i++) a += t[i] * t[i];
                    for (int i = 0; i < n; i++) b += t[n - 1 - i] * x[i] * t[i]; }
                r += a * b + a; }
            for (int i = 0; i < n; i++) x[i] = 0;
            free(t); return 0.1 * r; }";
    // The direction of conjugate gradients: used, under a branch, and then updated in place. One snapshot
    // suffices.
    used_and_then_changed_in_place: 5, "#include <stdlib.h>
        double f(int n, double *x, double s) {
            double *p = malloc(n * sizeof *p), *q = malloc(n * sizeof *q), r = 0;
            for (int i = 0; i < n; i++) { p[i] = x[i]; q[i] = s; }
            for (int k = 0; k < 3; k++) {
                double a = 0;
                if (n > 2) {
                    for (int i = 0; i < n; i++) q[i] += p[(i * 2 + k) % n] * p[i];
                    for (int i = 0; i < n; i++) a += p[i] * q[i]; }
                r += a;
                for (int i = 0; i < n; i++) p[i] = 0.3 * q[i] + (0.1 * a + s) * p[i]; }
            for (int i = 0; i < n; i++) { r += p[i]; x[i] = 0; }
            free(p); free(q); return r; }";
    // Updated in place before the read, or read by neighbours: no earlier snapshot serves.
    changed_in_place_too_early: 6, "#include <stdlib.h>
        #include <math.h>
        double f(int n, double *x, double s) {
            double *p = malloc(n * sizeof *p), r = 0;
            for (int i = 0; i < n; i++) p[i] = x[i];
            for (int k = 0; k < 3; k++) {
                double a = 0;
                for (int i = 0; i < n; i++) a += p[i] * p[i];
                r += 0.1 * a;
                for (int i = 0; i < n; i++) { p[i] = p[i] * s + 0.1 * a; r += p[i] * p[i]; }
                for (int i = 1; i < n; i++) { r += p[i - 1] * p[i]; p[i] = sqrt(p[i] * p[i] + 0.1 * p[i - 1]); }
                for (int i = 0; i < n; i++) p[i / 2] = p[i / 2] * p[i] * 0.5 + s; }
            for (int i = 0; i < n; i++) { r += p[i]; x[i] = 0; }
            free(p); return r; }";
    // The first loop overwrites elements that it does not read, and the second loop reads all elements.
    a_copy_before_the_loop_that_writes_the_rest: 3, "#include <stdlib.h>
        double f(int n, double *x, double s) {
            double *p = malloc(8 * sizeof *p), r = 0;
            for (int i = 0; i < 8; i++) p[i] = x[i % n];
            for (int k = 0; k < 3; k++) {
                for (int i = 0; i < 4; i++) { r += p[i] * p[i]; p[i + 4] = 0.5 * x[i % n] * p[i] + s * k; }
                for (int i = 0; i < 8; i++) r += p[i] * p[i] * p[i];
                for (int i = 0; i < 8; i++) p[i] = s * x[i % n] + k * 0.2; }
            for (int i = 0; i < n; i++) x[i] = 0;
            free(p); return r; }";
    // Each iteration fills two arrays, one of them in two steps, before it reads them: the iteration works on
    // the tape.
    arrays_of_each_iteration: 5, "#include <stdlib.h>
        double f(int n, double *x, double s) {
            double *t = malloc(n * sizeof *t), u[6], r = s;
            for (int k = 0; k < 3; k++) {
                for (int i = 0; i < n; i++) t[i] = x[i] * r + 0.1 * k;
                for (int i = 0; i < 6; i++) u[i] = x[i % n] - r;
                for (int i = 0; i < n; i++) for (int j = i; j < n; j++) u[j] += t[i] * x[j];
                double a = 0;
                for (int i = 0; i < n; i++) a += t[i] * t[n - 1 - i] * u[i] * u[i + 1];
                r = 0.2 * a / (1 + a * a) + 0.3 * r; }
            free(t); return r; }";
    // Variants of the previous test. One array is updated again after the reads. One array is written from
    // the second iteration on. One array is written under a condition, and reads see values of the previous
    // iteration. One array is accessed through an address from outside.
    arrays_that_iterations_share: 5, "#include <stdlib.h>
        double f(int n, double *x, double s) {
            double *t = malloc(n * sizeof *t), *u = malloc(n * sizeof *u), *v = malloc(n * sizeof *v), r = s;
            double w[8], *last = w + n;
            for (int i = 0; i < n; i++) { u[i] = x[i]; v[i] = s; }
            for (int k = 0; k < 4; k++) {
                for (int i = 0; i < n; i++) t[i] = x[i] * r + 0.1 * k;
                if (k > 0) for (int i = 0; i < n; i++) u[i] = t[i] * 0.5;
                for (int i = 0; i < n; i++) if (x[i] > 1.01) v[i] = t[i] + 0.1 * k;
                for (double *p = w; p < last; p++) *p = r * x[p - w];
                double a = 0;
                for (int i = 0; i < n; i++) a += t[i] * t[i] * u[i] * v[i] * v[n - 1 - i] * w[i];
                for (int i = 0; i < n; i++) t[i] = a * x[i];
                for (int i = 0; i < n; i++) a += t[i] * t[i] * 0.1;
                r = 0.2 * a / (1 + a * a) + 0.3 * r + last[-1] * last[-1] * 0.01; }
            free(t); free(u); free(v); return r; }";
    overwritten: 6, "double f(int n, double *x, double s) {
            double t[8]; for (int i = 0; i < n; i++) t[i] = x[i] * s;
            for (int k = 0; k < 3; k++) for (int i = 1; i < n; i++) t[i] = t[i] * t[i - 1] + 0.5 * t[i];
            double r = 0; for (int i = 0; i < n; i++) r += t[i]; return r; }";
    parts_of_which_the_second_is_empty: 8, "double f(int n, double *x, double s) {
            double y[8], r = 0;
            int m = n & ~3;
            for (int i = 0; i < m; i++) y[i] = x[i] * x[i];
            for (int i = m; i < n; i++) y[i] = x[i] * x[i] * s;
            for (int i = 0; i < n; i++) { r += y[i] * y[i] * s; x[i] = y[i] * 0.5; }
            return r; }";
    parts_of_which_the_first_is_empty: 3, "double f(int n, double *x, double s) {
            double y[8], r = 0;
            int m = n & ~3;
            for (int i = 0; i < m; i++) y[i] = x[i] * x[i];
            for (int i = m; i < n; i++) y[i] = x[i] * x[i] * s;
            for (int i = 0; i < n; i++) { r += y[i] * y[i] * s; x[i] = y[i] * 0.5; }
            return r; }";
    parts_of_which_none_is_empty: 7, "double f(int n, double *x, double s) {
            double y[8], r = 0;
            int m = n & ~3;
            for (int i = 0; i < m; i++) y[i] = x[i] * x[i];
            for (int i = m; i < n; i++) y[i] = x[i] * x[i] * s;
            for (int i = 0; i < n; i++) { r += y[i] * y[i] * s; x[i] = y[i] * 0.5; }
            return r; }";
    in_place: 5, "double f(int n, double *x, double s) {
            double r = 0; for (int k = 0; k < 3; k++) for (int i = 0; i < n; i++) { r += x[i] * s; x[i] = x[i] * x[i] * 0.5; }
            for (int k = 0; k < n; k++) x[k] = 0; return r; }";
    heap: 6, "#include <stdlib.h>
        double f(int n, double *x, double s) {
            double *u = malloc(n * sizeof *u), *v = malloc(n * sizeof *v);
            for (int i = 0; i < n; i++) { u[i] = x[i]; v[i] = 0; }
            for (int k = 0; k < 4; k++) {
                for (int i = 0; i < n; i++) v[i] = u[i] + 0.1 * s * u[i] * (i ? u[i - 1] : 0);
                double *t = u; u = v; v = t; }
            double r = 0; for (int i = 0; i < n; i++) r += u[i] * u[i];
            free(u); free(v); return r; }";
    returned_blocks: 4, "#include <stdlib.h>
        struct pair { double *a, *b; };
        __attribute__((noinline)) static struct pair *make(int n, double *x, double s) {
            struct pair *p = malloc(sizeof *p); p->a = malloc(n * sizeof(double)); p->b = malloc(n * sizeof(double)); double *a = p->a, *b = p->b;
            for (int i = 0; i < n; i++) a[i] = x[i] * s; for (int i = 0; i < n; i++) b[i] = a[i] * a[n - 1 - i]; return p; }
        __attribute__((noinline)) static double use(int n, struct pair *p, double s) {
            double r = 0; for (int i = 0; i < n; i++) { r += p->a[i] * p->b[i]; p->a[i] = s; p->b[i] = 0.1 * r * s; } return r; }
        double f(int n, double *x, double s) {
            struct pair *p = make(n, x, s); double r = use(n, p, s) + use(n, p, x[0]); free(p->a); free(p->b); free(p); return r; }";
    copies: 4, "#include <string.h>
        double f(int n, double *x, double s) {
            double t[4], u[4]; memcpy(t, x, sizeof t); memset(u, 0, sizeof u);
            for (int i = 0; i < n; i++) t[i] *= s; memmove(u + 1, t, 2 * sizeof *t); memcpy(&u[0], &t[3], 8);
            double r = 1; for (int i = 0; i < n; i++) r += u[i] * t[i] * t[0]; return r; }";
    structures_moved: 6, "#include <string.h>
        struct p { double *a; double b; int k; };
        static double sum(struct p *q, int n) { double r = 0; for (int i = 0; i < n; i++) r += (i + 1) * (i + 2) * *q[i].a * q[i].b * (1 + q[i].k); return r; }
        double f(int n, double *x, double s) {
            struct p q[8], t[8]; double y[8];
            for (int i = 0; i < 8; i++) { y[i] = x[i % n] * s + i; q[i] = t[i] = (struct p){ &y[i], y[i] * x[(i + 1) % n], i }; }
            memmove(q + 1, q, 7 * sizeof *q); memmove(t, t + 1, 7 * sizeof *t);
            double r = sum(q, 8) - 2 * sum(t, 8);
            memmove(q, q + 2, n * sizeof *q); memmove(t + 2, t, n * sizeof *t);
            return r + sum(q, 8) * sum(t, 8); }";
    structures_in_order: 7, "#include <stdlib.h>
        #include <string.h>
        struct p { double *a; double b; int k; float c; };
        double f(int n, double *x, double s) {
            double *y = malloc(n * sizeof *y); int m = 0, capacity = 2;
            struct p *q = malloc(capacity * sizeof *q);
            for (int i = 0; i < n; i++) {
                y[i] = x[i] * s + i; int at = (i * 5) % (m + 1);
                if (m == capacity) { capacity = capacity * 3 / 2; q = realloc(q, capacity * sizeof *q); }
                memmove(q + at + 1, q + at, (m - at) * sizeof *q);
                q[at].a = &y[i]; q[at].b = x[i] * x[0]; q[at].k = i; q[at].c = i % 3; m++;
                if (i % 4 == 3) { m--; memmove(q, q + 1, m * sizeof *q); } }
            struct p *t = malloc(m * sizeof *t); memcpy(t, q, m * sizeof *t);
            double r = 0; for (int i = 0; i < m; i++) { q[i].b = 0; r += (i + 1) * (i + 2) * *t[i].a * t[i].b * (1 + t[i].k) * t[i].c; }
            free(q); free(t); free(y); return r; }";
    structs: 4, "struct p { double a; int k; double b; };
        static double g(struct p *q, double s) { q->a = q->a * q->b + s; q->k++; return q->a * q->k; }
        double f(int n, double *x, double s) {
            struct p q[4]; for (int i = 0; i < n; i++) { q[i].a = x[i]; q[i].b = s * i; q[i].k = i; }
            double r = 0; for (int i = 0; i < n; i++) { r += g(&q[i], x[0]); r += g(&q[i], r); } return r; }";
    calls: 4, "__attribute__((noinline)) static double g(const double *x, int n, double s) {
            double r = 0; for (int i = 0; i < n; i++) r += x[i] * x[i] * s; return r; }
        __attribute__((noinline)) static void h(double *y, const double *x, int n, double *s) {
            for (int i = 0; i < n; i++) y[i] = x[i] * *s; *s *= 2; }
        double f(int n, double *x, double s) {
            double y[4], t = s; h(y, x, n, &t); double a = g(y, n, t); h(y, y, n, &a); return g(y, n, s) * a; }";
    recursion: 4, "__attribute__((noinline)) static double g(const double *x, int n, double s) {
            if (n == 0) return s; double a = g(x + 1, n - 1, s * x[0]); return a * x[0] + g(x + 1, n - 1, a); }
        double f(int n, double *x, double s) { return g(x, n, s); }";
    switches: 6, "double f(int n, double *x, double s) {
            double r = 1; for (int i = 0; i < n; i++) switch (i % 4) { case 0: r *= x[i]; break; case 1: r += s; case 2: r -= x[i] * r; break; default: r = r * r; }
            return r; }";
    pointers_to_pointers: 4, "#include <stdlib.h>
        double f(int n, double *x, double s) {
            double **rows = malloc(n * sizeof *rows);
            for (int i = 0; i < n; i++) { rows[i] = malloc(2 * sizeof(double)); rows[i][0] = x[i]; rows[i][1] = s * i; }
            double r = 0; for (int i = 0; i < n; i++) { rows[i][0] *= rows[(i + 1) % n][1]; r += rows[i][0] * rows[i][0]; }
            for (int i = 0; i < n; i++) free(rows[i]); free(rows); return r; }";
    linked_list: 5, "#include <stdlib.h>
        struct node { double v; struct node *next; };
        double f(int n, double *x, double s) {
            struct node *head = 0;
            for (int i = 0; i < n; i++) { struct node *e = malloc(sizeof *e); e->v = x[i] * s; e->next = head; head = e; }
            double r = 1; for (struct node *e = head; e; e = e->next) r = r * e->v + e->v;
            while (head) { struct node *e = head->next; free(head); head = e; } return r; }";
    select_at_zero: 3, "double f(int n, double *x, double s) {
            double z = x[1] - x[1] , a = z != 0 ? x[0] / z : s; return a * x[2] + (z > 0 ? __builtin_sqrt(z) : x[0]); }";
    logarithm_behind_a_select: 4, "#include <math.h>
        double f(int n, double *x, double s) {
            double z = (n & 1) * (1.0 + s * s), q = 0.5 * log(z) + 0.1 / z, u = (q + 1) * s;
            return x[0] * s + (z > 0 ? q : 0) * x[1] + (z > 0.5 ? (x[2] > 0 ? u : s) : x[3]); }";
    float_bits: 3, "#include <string.h>
        #include <stdint.h>
        double f(int n, double *x, double s) {
            int64_t b; double t = x[0] * s, u; memcpy(&b, &t, 8); memcpy(&u, &b, 8);
            float g = (float)x[1]; return u * u + x[2] + 0 * g; }";
    globals: 3, "static double table[3] = {1, 2, 3}; static double state;
        double f(int n, double *x, double s) {
            state = s; double r = 0; for (int i = 0; i < n; i++) { state = state * x[i] + table[i]; r += state; } return r; }";
    by_value: 4, "struct big { double a[3]; int k; double b; };
        __attribute__((noinline)) static double g(struct big q, double s) { q.a[0] *= s; q.b += q.a[0] * q.a[1]; return q.b * q.a[2] + q.k; }
        double f(int n, double *x, double s) {
            struct big q = {{x[0], x[1], x[2]}, 3, s}; double r = g(q, x[3]); return r + g(q, r) + q.a[0] * q.b; }";
    by_value_in_a_loop: 4, "struct big { double a; double v[2]; int k; double b; };
        __attribute__((noinline)) static double g(struct big q, double s) { q.a = 0.5 * q.a * s; return 0.3 * q.a + 0.2 * q.v[q.k & 1] * q.b + 0.1 * s; }
        double f(int n, double *x, double s) {
            double r = 0; for (int i = 0; i < n; i++) for (int k = 0; k < 3; k++) {
                struct big q = {x[i], {s, 0.5}, k, s}; q.b = 0.5 * r + 0.5 * q.a; r = 0.5 * r + 0.4 * g(q, x[i]); }
            return r; }";
    struct_copies: 4, "struct node { double v; struct node *next; int k; double w; };
        __attribute__((noinline)) static void twist(struct node *a, struct node *b) { struct node t = *a; *a = *b; *b = t; a->v *= t.w; }
        double f(int n, double *x, double s) {
            struct node a = {x[0], 0, 1, x[1]}, b = {x[2], &a, 2, s}; a.next = &b; twist(&a, &b);
            double r = 0; struct node *p = &a; for (int i = 0; i < n; i++) { r += p->v * p->w * x[i] + p->k; p = p->next; } return r; }";
    swapped_buffers: 5, "double f(int n, double *x, double s) {
            double a[5], b[5], *p = a, *q = b; for (int i = 0; i < n; i++) { a[i] = x[i]; b[i] = s; }
            for (int k = 0; k < 3; k++) { for (int i = 0; i < n; i++) q[i] = p[i] * p[(i + 1) % n] + s * q[i]; double *t = p; p = q; q = t; if (p[0] > 1.0) { p[1] *= 0.5; } }
            double r = 0; for (int i = 0; i < n; i++) r += p[i] * q[i]; return r; }";
    both_ways_out: 5, "double f(int n, double *x, double s) {
            double r = 1; for (int i = 0; i < n; i++) { for (int j = 0; j < n; j++) { if (x[j] * r > 4) goto done; r += x[i] * s; if (r < 0.1) return r * s; } r *= 0.9; }
            done: return r * r; }";
    math_outputs: 3, "#define _GNU_SOURCE
        #include <math.h>
        double f(int n, double *x, double s) { double a, b, c; int e; sincos(x[0] * s, &a, &b); c = modf(x[1] * 3.3, &a); double m = frexp(x[2], &e); return a * b + c * s + m * ldexp(s, e) + hypot(x[0], s) + atan2(x[1], s) + cbrt(x[2]); }";
}

/// A function that writes its input, in one buffer or in two: the run-time alias check selects the right
/// version.
#[test]
fn overlapping_arguments() {
    use gradus_ad::{ArgActivity, ResultActivity};
    use gradus_llvm::host::jit::Arg;
    const SOURCE: &str = "void f(int n, double *x, double *y, double s) {
        for (int i = 1; i < n; i++) y[i] = x[i] * x[i - 1] * s; }";
    let args = [
        ArgActivity::Const,
        ArgActivity::Dup,
        ArgActivity::Dup,
        ArgActivity::Active,
    ];
    for flags in crate::support::CLANG_ROUTES {
        let made = crate::support::derive(SOURCE, flags, "f", &args, ResultActivity::Const);
        let compiled = made.unwrap_or_else(|findings| panic!("{findings:#?}"));
        for shift in [0usize, 1, 2, 6] {
            let run = |values: &[f64], s: f64| {
                let mut memory = values.to_vec();
                let at = memory.as_mut_ptr();
                let y = unsafe { at.add(shift) };
                let call = &mut [
                    Arg::Int(5),
                    Arg::Address(at as usize),
                    Arg::Address(y as usize),
                    Arg::F64(s),
                ];
                compiled.jit.call("f", call).expect("runs");
                memory
            };
            let point: Vec<f64> = (0..11).map(|i| 0.5 + 0.1 * f64::from(i)).collect();
            let weights: Vec<f64> = (0..11).map(|i| 1.0 - 0.15 * f64::from(i)).collect();
            let (mut primal, mut adjoint) = (point.clone(), weights.clone());
            let (x, x_adj) = (primal.as_mut_ptr(), adjoint.as_mut_ptr());
            let call = &mut [
                Arg::Int(5),
                Arg::Address(x as usize),
                Arg::Address(x_adj as usize),
                Arg::Address(unsafe { x.add(shift) } as usize),
                Arg::Address(unsafe { x_adj.add(shift) } as usize),
                Arg::F64(0.7),
            ];
            let s_adj = compiled.jit.call(&compiled.vjp, call).expect("runs").f64();
            let value = |values: &[f64], s: f64| -> f64 {
                run(values, s)
                    .iter()
                    .zip(&weights)
                    .map(|(v, w)| v * w)
                    .sum()
            };
            let h = 1e-6;
            for k in 0..point.len() {
                let moved = |t: f64| {
                    let mut values = point.clone();
                    values[k] += t;
                    value(&values, 0.7)
                };
                let difference = (moved(h) - moved(-h)) / (2.0 * h);
                assert!(
                    (difference - adjoint[k]).abs() < 1e-7,
                    "{flags:?} shift {shift} entry {k}"
                );
            }
            let difference = (value(&point, 0.7 + h) - value(&point, 0.7 - h)) / (2.0 * h);
            assert!(
                (difference - s_adj).abs() < 1e-7,
                "{flags:?} shift {shift}: s"
            );
        }
    }
}
