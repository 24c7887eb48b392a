//! Gradients of parallel loops over sparse matrix rows: the saved values of an iteration are in the tail
//! slot of the tape array for short rows, and in a heap block for long rows.

use crate::support::{accepts, folder, run, write};

/// Rows of 0 to 11 entries. Their operands are overwritten later, and hence saved.
const PROGRAM: &str = r#"
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
void __enzyme_fwddiff(void *, ...);
enum { N = 600, MOST = 11 * N };

static void product(int n, int *row, int *col, double *v, double *x, double *out)
{
    #pragma omp parallel for
    for (int i = 0; i < n; i++) {
        double s = 0;
        for (int k = row[i]; k < row[i + 1]; k++)
            s += sin(v[k]) * x[col[k]] * x[col[k]];
        out[i] = s;
    }
    #pragma omp parallel for
    for (int k = 0; k < row[n]; k++) {
        v[k] *= 0.5;
        col[k] = 0;
    }
}
double total(int n, int *row, int *col, double *v, double *x, double *out)
{
    product(n, row, col, v, x, out);
    double t = 0;
    for (int i = 0; i < n; i++)
        t += out[i] * out[i];
    for (int k = 0; k < row[n]; k++)
        t += v[k] * v[k] * v[k];
    return t;
}
void gradient(int n, int *row, int *col, double *v, double *dv, double *x, double *dx, double *out, double *dout)
{
    __enzyme_autodiff((void *)total, enzyme_const, n, enzyme_const, row, enzyme_const, col, enzyme_dup, v, dv,
                      enzyme_dup, x, dx, enzyme_dup, out, dout);
}
static int row[N + 1], col[MOST];
static double v[MOST], x[N], out[N], dout[N];
static void fill(double step)
{
    for (int k = 0; k < MOST; k++) {
        col[k] = k * 13 % N;
        v[k] = 0.3 + 0.001 * (k % 100) + step * (1 - k % 2);
    }
    for (int i = 0; i < N; i++) {
        row[i + 1] = row[i] + i * 7 % 12;
        x[i] = 1 + 0.01 * (i % 17) + step * (1 + i % 3);
        out[i] = dout[i] = 0;
    }
}
static double value(double step)
{
    fill(step);
    return total(N, row, col, v, x, out);
}
static void gradient_at(double step, double *dv, double *dx)
{
    for (int k = 0; k < MOST; k++)
        dv[k] = 0;
    for (int i = 0; i < N; i++)
        dx[i] = 0;
    fill(step);
    gradient(N, row, col, v, dv, x, dx, out, dout);
}
static double along(const double *dv, const double *dx)
{
    double sum = 0;
    for (int k = 0; k < row[N]; k++)
        sum += dv[k] * (1 - k % 2);
    for (int i = 0; i < N; i++)
        sum += dx[i] * (1 + i % 3);
    return sum;
}
static int near(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(b); }
int main(void)
{
    static double dv[MOST], dx[N], lower[MOST], lower_x[N], upper[MOST], upper_x[N];
    double h = 1e-5;
    gradient_at(0, dv, dx);
    int first = near(along(dv, dx), (value(h) - value(-h)) / (2 * h));
    gradient_at(-h, lower, lower_x);
    /* The long rows of ten runs take half a megabyte. */
    size_t before = mallinfo2().uordblks;
    for (int again = 0; again < 10; again++)
        gradient_at(h, upper, upper_x);
    int given_back = mallinfo2().uordblks < before + 100000;
    static double vt[MOST], xt[N], dvt[MOST], dxt[N], outt[N], doutt[N];
    for (int k = 0; k < MOST; k++)
        vt[k] = 1 - k % 2, dv[k] = 0;
    for (int i = 0; i < N; i++)
        xt[i] = 1 + i % 3, dx[i] = 0;
    fill(0);
    __enzyme_fwddiff((void *)gradient, enzyme_const, N, enzyme_const, row, enzyme_const, col, enzyme_dup, v, vt,
                     enzyme_dup, dv, dvt, enzyme_dup, x, xt, enzyme_dup, dx, dxt, enzyme_dup, out, outt, enzyme_dup,
                     dout, doutt);
    int second = near(along(dvt, dxt), (along(upper, upper_x) - along(lower, lower_x)) / (2 * h));
    printf("%d %d %d %.9g\n", first, given_back, second, along(dv, dx));
}
"#;

#[test]
fn short_rows_inline_long_rows_heap() {
    let folder = folder("inline_tape_slots");
    write(&folder, "rows.c", PROGRAM);
    for level in 0..4 {
        let line = format!("cc -O{level} -fopenmp rows.c -o rows -lm");
        accepts(&folder, &line);
        let serial = accepts(&folder, &format!("cc -O{level} -w rows.c -o serial -lm"));
        assert_eq!(serial, "");
        let expected = run(&folder, "serial", "", 1, false);
        assert!(expected.starts_with("1 1 1 "), "-O{level}: {expected}");
        for (workers, force) in [(1, false), (2, false), (4, false), (4, true)] {
            let said = run(&folder, "rows", "", workers, force);
            assert_eq!(said, expected, "-O{level}, {workers} workers");
        }
    }
}
