//! Gradients of loops that compute a minimum or maximum: the result is recomputed from the selected
//! iteration, in both passes, and the loops are parallel.

use crate::support::{accepts, folder, shell, succeeds, text, write};
use std::path::Path;
use std::process::Command;

/// Each line: the gradient's sums, the directional derivative by forward mode, by reverse mode, and by
/// finite differences.
const PROGRAM: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

/* By the program's own comparison, of a product, with more done beside. */
static double greatest(const double *x, const double *p, long n)
{
    double most = p[0], sum = 0;
    #pragma omp parallel for reduction(max : most) reduction(+ : sum)
    for (long i = 1; i < n; i++) {
        double both = x[i] * x[i - 1] * p[1];
        if (both > most)
            most = both;
        sum += both * both;
    }
    return most * most * p[1] + sum;
}
/* By the library's function, with a branch and a loop inside; the numbers are stored, too. */
static double largest(const double *x, const double *p, long n)
{
    double most = 0, *y = malloc(n * sizeof *y);
    #pragma omp parallel for reduction(max : most)
    for (long i = 0; i < n; i++) {
        double v = 0;
        for (long k = 0; k < 1 + i % 3; k++)
            v += fabs(x[(i + k) % n] - p[0]);
        if (i % 2)
            v = sqrt(1 + v) * p[1];
        y[i] = v;
        most = fmax(most, v);
    }
    double all = 0;
    for (long i = 0; i < n; i++)
        all += y[i] / most;
    free(y);
    return all;
}
/* A softmax whose shift is not taken back. */
static double soft(const double *x, const double *p, long n)
{
    double most = -1e300, sum = 0;
    #pragma omp parallel for reduction(max : most)
    for (long i = 0; i < n; i++)
        most = most > x[i] ? most : x[i];
    #pragma omp parallel for reduction(+ : sum)
    for (long i = 0; i < n; i++)
        sum += exp(p[0] * (x[i] - most));
    return log(sum) + p[1] * most;
}
/* Of floats, and the least of the greatest of rows. */
static double of_rows(const double *x, const double *p, long n)
{
    float least = 1e30f;
    #pragma omp parallel for reduction(min : least)
    for (long i = 0; i < n / 8; i++) {
        float most = -1e30f;
        for (long k = 0; k < 8; k++) {
            float v = (float)(x[8 * i + k] * p[0]);
            most = v >= most ? v : most;
        }
        least = most < least ? most : least;
    }
    return least * p[1];
}
/* What the loop begins with stays, there are no iterations, and two give the same. */
static double ties(const double *x, const double *p, long n)
{
    double high = 1e9 * p[0], none = p[1], first = -1, last = -1;
    #pragma omp parallel for reduction(max : high)
    for (long i = 0; i < n; i++)
        high = fmax(high, x[i]);
    #pragma omp parallel for reduction(min : none)
    for (long i = 0; i < n - n; i++)
        none = fmin(none, x[i]);
    #pragma omp parallel for reduction(max : first, last)
    for (long i = 0; i < n; i++) {
        double v = floor(x[i] * 3) * p[0] * (1 + 0 * x[i]);
        if (v > first)
            first = v;
        if (v >= last)
            last = v;
    }
    return 1e-9 * high + none + first * first + last;
}
/* A region that shares two loops, and numbers that a list names. */
static double named(const double *x, const double *p, long n)
{
    double most = 0, least = 1e9;
    int *list = malloc(n * sizeof *list);
    for (long i = 0; i < n; i++)
        list[i] = i * 7 % n;
    #pragma omp parallel
    {
        #pragma omp for reduction(max : most) schedule(dynamic, 8)
        for (long i = 0; i < n; i++)
            most = fmax(most, x[list[i]] * x[i] * p[0]);
        #pragma omp for reduction(min : least)
        for (long i = 0; i < n; i++)
            if (x[list[i]] < most && x[i] + p[1] * x[list[i]] < least)
                least = x[i] + p[1] * x[list[i]];
    }
    free(list);
    return most * least;
}
/* What the last iteration leaves, also of a loop that runs backwards. */
static double left(const double *x, const double *p, long n)
{
    double last = 0, other = 0, sum = 0;
    #pragma omp parallel for lastprivate(last) reduction(+ : sum)
    for (long i = 0; i < n; i++) {
        last = sin(x[i] * p[0]);
        sum += last * last;
    }
    #pragma omp parallel for lastprivate(other) reduction(+ : sum)
    for (long i = n - 1; i > 0; i--) {
        other = x[i] * x[i - 1] * p[1];
        sum += other * p[0];
    }
    return sum * last + other * other;
}
#define EACH(M) M(greatest) M(largest) M(soft) M(of_rows) M(ties) M(named) M(left)
#define TRY(F) \
    for (long i = 0; i < n; i++) \
        d[i] = 0; \
    dp[0] = dp[1] = 0; \
    __enzyme_autodiff((void *)F, enzyme_dup, x, d, enzyme_dup, p, dp, enzyme_const, n); \
    { \
        double sum = 0, weighed = 0, along = dp[0] * 0.5 - dp[1]; \
        for (long i = 0; i < n; i++) \
            sum += d[i] * d[i], weighed += d[i] * (i % 11), along += d[i] * v[i]; \
        double forward = __enzyme_fwddiff((void *)F, enzyme_dup, x, v, enzyme_dup, p, vp, enzyme_const, n); \
        double h = F == of_rows ? 1e-3 : 1e-7, at[2]; \
        for (int side = 0; side < 2; side++) { \
            double s = side ? -h : h; \
            for (long i = 0; i < n; i++) \
                y[i] = x[i] + s * v[i]; \
            q[0] = p[0] + s * vp[0], q[1] = p[1] + s * vp[1]; \
            at[side] = F(y, q, n); \
        } \
        printf("%.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", sum, weighed, dp[0], dp[1], forward, along, (at[0] - at[1]) / (2 * h)); \
    }
int main(int argc, char **argv)
{
    long n = atol(argv[1]);
    double *x = malloc(n * 8), *y = malloc(n * 8), *v = malloc(n * 8), *d = malloc(n * 8);
    double p[2] = {0.7, 1.3}, dp[2], vp[2] = {0.5, -1}, q[2];
    unsigned random = 7;
    for (long i = 0; i < n; i++) {
        random = random * 1664525 + 1013904223;
        x[i] = 0.5 + (random >> 8) * 3e-8;
        v[i] = i % 5 - 2.0;
    }
    EACH(TRY)
    return 0;
}
"#;

fn run(at: &Path, program: &str, length: &str, workers: u32) -> Vec<Vec<f64>> {
    let mut command = Command::new(at.join(program));
    command.arg(length);
    command.env("GRADUS_NUM_THREADS", workers.to_string());
    command.env("GRADUS_FORCE_FORK", "1");
    command.env("TSAN_OPTIONS", "exitcode=66 halt_on_error=1");
    let said = text(&succeeds(&mut command).stdout);
    let numbers = |line: &str| -> Vec<f64> {
        let words = line.split_whitespace();
        words.map(|n| n.parse().expect("a number")).collect()
    };
    said.lines().map(numbers).collect()
}

fn close(x: f64, y: f64, tolerance: f64) -> bool {
    (x - y).abs() <= tolerance * x.abs().max(1.0)
}

#[test]
fn min_max_from_selected_iteration() {
    let at = folder("argminmax");
    write(&at, "winners.c", PROGRAM);
    accepts(&at, "cc -O2 winners.c -o serial -lm");
    let serial = run(&at, "serial", "3000", 1);
    assert_eq!(serial.len(), 7);
    for (number, line) in serial.iter().enumerate() {
        let [.., forward, along, difference] = line[..] else {
            panic!("{line:?}");
        };
        // Single precision is coarse, and rounded-down values jump.
        let (exact, near) = if number == 3 {
            (1e-6, 2e-2)
        } else {
            (1e-9, 1e-4)
        };
        assert!(close(forward, along, exact), "{number}: {line:?}");
        let differs = number != 4 && !close(along, difference, near);
        assert!(!differs, "{number}: {line:?}");
    }
    let fast = "-O3 -ffast-math -march=native";
    for level in ["-O0", "-O1", "-O2", "-O3", fast] {
        let line = format!("gradus cc {level} -g -fopenmp --par-report winners.c -o parallel -lm");
        let said = shell(&at, &line);
        let said = text(&said.stdout) + &text(&said.stderr);
        let carried = "an iteration uses a value of another iteration";
        assert!(!said.contains(carried), "{level}: {said}");
        for workers in [1, 2, 4] {
            for (number, (one, other)) in
                std::iter::zip(&serial, run(&at, "parallel", "3000", workers)).enumerate()
            {
                let exact = match number {
                    3 => 1e-6,
                    _ if level == fast => 1e-9,
                    _ => 1e-11,
                };
                let same = std::iter::zip(&one[..6], &other).all(|(x, y)| close(*x, *y, exact));
                assert!(
                    same,
                    "{level}, {workers} workers, {number}: {one:?} {other:?}"
                );
            }
        }
    }
    accepts(
        &at,
        "cc -O1 -g -fopenmp -fsanitize=thread winners.c -o watched -lm",
    );
    run(&at, "watched", "2000", 4);
}
