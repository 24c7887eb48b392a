//! Stack arrays of run-time length: gradients read the contents after an iteration released them.

use crate::support::{accepts, folder, write};

const ARRAYS: &str = "#include <alloca.h>
#include <math.h>
double block(const double *x, int n)
{
    double s = 0;
    for (int k = 1; k <= n; k++) {
        double a[k];
        for (int i = 0; i < k; i++)
            a[i] = x[i] * (s + 1);
        for (int i = 0; i < k; i++)
            s += a[i] * a[i] * 0.1;
    }
    return s;
}
double two(const double *x, int n)
{
    double s = 0;
    for (int k = 1; k <= n; k++) {
        double a[k], *b = alloca(k * sizeof *b);
        for (int i = 0; i < k; i++) {
            a[i] = x[i] * (s + 1);
            b[k - 1 - i] = sin(a[i]);
        }
        if (s > 2)
            continue;
        double *p[k];
        for (int i = 0; i < k; i++)
            p[i] = i & 1 ? &a[i] : &b[i];
        for (int i = 0; i < k; i++)
            s += a[i] * b[i] * *p[i];
    }
    return s;
}
static double nested(const double *x, int n, double s)
{
    double row[n];
    for (int i = 0; i < n; i++)
        row[i] = x[i] * s;
    for (int i = 0; i < n; i++) {
        double part[i + 1];
        for (int k = 0; k <= i; k++)
            part[k] = row[k] * row[i];
        s += part[i] * part[0];
    }
    return n > 1 ? nested(row, n - 1, s) : s;
}
double calls(const double *x, int n)
{
    return nested(x, n, 0.5);
}
/* More than a stack would hold at a time. */
double steps(const double *x, int n)
{
    double s = x[0];
    for (int t = 0; t < n; t++) {
        double a[100 + t % 3];
        for (int i = 0; i < 100; i++)
            a[i] = s + x[i & 3];
        s = sin(0.2 * (a[7] + a[t % 100]));
    }
    return s;
}
";

#[test]
fn released_arrays_in_reverse_pass() {
    let at = folder("stack-arrays");
    write(&at, "arrays.c", ARRAYS);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        for function in ["block", "two", "calls"] {
            let line = format!("check arrays.c -f {function} --arg n=6 --arg x=rand(6) -- {level}");
            accepts(&at, &line);
        }
    }
    accepts(
        &at,
        "check arrays.c -f steps --arg n=100000 --arg x=rand(4) -- -O1",
    );
}
