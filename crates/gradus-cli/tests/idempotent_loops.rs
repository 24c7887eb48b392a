//! Gradients of programs that repeat an idempotent computation, like mini-applications for timing: a single
//! repetition is differentiated if repetitions are independent, and all otherwise.

use crate::support::{accepts, folder, shell, succeeds, text, write};
use std::process::Command;

/// `again` fills private blocks and stores equal results in `out` each time; `grows` adds to `out`.
const PROGRAM: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

static void pressure(long n, const double *x, double *p)
{
    #pragma omp parallel for
    for (long i = 0; i < n; i++) {
        p[i] = x[i] * x[i];
        if (p[i] > 0.5)
            p[i] = 0.5 + 0.1 * x[i];
    }
}
double again(long times, long n, const double *x)
{
    double *p = malloc(n * 8), *q = malloc(n * 8), *out = malloc(n * 8), sum = 0;
    for (long k = 0; k < times; k++) {
        double *half = malloc(n * 8);
        pressure(n, x, half);
        #pragma omp parallel for
        for (long i = 0; i < n; i++)
            q[i] = half[i] > 0.3 ? sin(half[i]) : 0.2;
        pressure(n, q, p);
        #pragma omp parallel for
        for (long i = 0; i < n; i++)
            out[i] = exp(p[i]) * half[i];
        free(half);
    }
    for (long i = 0; i < n; i++)
        sum += out[i] * q[i];
    free(p), free(q), free(out);
    return times > 0 ? sum : 0;
}
double grows(long times, long n, const double *x)
{
    double *p = malloc(n * 8), *out = calloc(n, 8), sum = 0;
    for (long k = 0; k < times; k++) {
        pressure(n, x, p);
        for (long i = 0; i < n; i++)
            out[i] += out[i] * 0.5 + p[i] * x[i];
    }
    for (long i = 0; i < n; i++)
        sum += out[i];
    free(p), free(out);
    return sum;
}
typedef double function(long, long, const double *);
int main(void)
{
    enum { N = 40 };
    double x[N], g[2][N] = {{0}};
    function *all[] = {again, grows};
    for (int i = 0; i < N; i++)
        x[i] = 0.05 + 0.023 * i;
    for (long times = 0; times < 4; times++) {
        memset(g, 0, sizeof g);
        __enzyme_autodiff((void *)again, enzyme_const, times, enzyme_const, (long)N, enzyme_dup, x, g[0]);
        __enzyme_autodiff((void *)grows, enzyme_const, times, enzyme_const, (long)N, enzyme_dup, x, g[1]);
        for (int k = 0; k < 2; k++) {
            double worst = 0;
            for (int i = 0; i < N; i++) {
                double old = x[i], h = 1e-6;
                x[i] = old + h; double up = all[k](times, N, x);
                x[i] = old - h; double down = all[k](times, N, x);
                x[i] = old;
                worst = fmax(worst, fabs(g[k][i] - (up - down) / (2 * h)));
            }
            printf("%g\n", worst);
        }
    }
    return 0;
}
"#;

#[test]
fn idempotent_loop_runs_once() {
    let at = folder("idempotent_loops");
    write(&at, "repeats.c", PROGRAM);
    for options in ["-O2", "-O2 -fopenmp", "-O0", "-O3 -fopenmp"] {
        accepts(&at, &format!("cc {options} repeats.c -o repeats -lm"));
        let mut program = Command::new(at.join("repeats"));
        let said = text(&succeeds(&mut program).stdout);
        let far: Vec<f64> = said
            .lines()
            .map(|line| line.parse().expect("a number"))
            .collect();
        assert!(
            far.len() == 8 && far.iter().all(|far| *far < 1e-7),
            "{options}: {said}"
        );
    }
    let said = shell(
        &at,
        "gradus cc -O2 -g -fopenmp --report=full repeats.c -o repeats -lm",
    );
    let said = text(&said.stdout) + &text(&said.stderr);
    let loops = PROGRAM.lines().enumerate();
    let loops: Vec<usize> = loops
        .filter(|(_, l)| l.contains("k < times"))
        .map(|(at, _)| at + 1)
        .collect();
    // Values of `again` are saved once, values of `grows` per repetition.
    let keeps_each = |name: &str, line: usize| {
        let own = said
            .split("\n\n")
            .filter(|part| part.trim_start().starts_with(name));
        let own: Vec<&str> = own.collect();
        assert!(!own.is_empty(), "{said}");
        let by = format!("iterations of line {line} ");
        own.iter()
            .any(|part| part.contains("× times") || part.contains(&by))
    };
    assert!(!keeps_each("again (", loops[0]), "{said}");
    assert!(keeps_each("grows (", loops[1]), "{said}");
}
