//! Gradients of atomic sums of `float`s, many of which C computes in `double`, and of `float` complex
//! numbers.

use crate::support::{accepts, folder, refuses, run, shell, succeeds, text, write};
use std::process::Command;

/// Each variant of `add` adds to single-precision numbers; the gradient is checked against a formula.
const SUMS: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
void __enzyme_fwddiff(void *, ...);
#if WAY == 0
#define ADD(y, x) y += 0.25 * x
#define SLOPE 0.25
#elif WAY == 1
#define ADD(y, x) y -= 0.25 * (x * x)
#define SLOPE (-0.5 * x[i])
#elif WAY == 2
#define ADD(y, x) y = (x * 1.5 + 2.0) + y
#define SLOPE 1.5
#elif WAY == 3
#define ADD(y, x) y = y + sin(x)
#define SLOPE cos(x[i])
#elif WAY == 4
#define ADD(y, x) y *= 1 + x
#endif
static void f(const float *x, float *y, int n)
{
    #pragma omp parallel for
    for (int i = 0; i < n; i++) {
        #pragma omp atomic
        ADD(y[i / 3 % 7], x[i]);
    }
}
int main(int argc, char **argv)
{
    int n = atoi(argv[1]);
    float *x = calloc(n, 4), *dx = calloc(n, 4), *t = calloc(n, 4), y[7] = {0}, dy[7], ty[7] = {0};
    for (int i = 0; i < n; i++)
        x[i] = 0.5 + 0.3 * sin(i), t[i] = 1;
    for (int k = 0; k < 7; k++)
        dy[k] = 1 + k;
    __enzyme_fwddiff((void *)f, enzyme_dup, x, t, enzyme_dup, y, ty, enzyme_const, n);
    double forward = 0, reverse = 0;
    for (int k = 0; k < 7; k++)
        forward += dy[k] * ty[k];
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, n);
    double worst = 0;
#if WAY < 4
    for (int i = 0; i < n; i++)
        worst = fmax(worst, fabs(dx[i] - (1 + i / 3 % 7) * SLOPE));
#endif
    for (int i = 0; i < n; i++)
        reverse += dx[i];
    int same = fabs(forward - reverse) < 1e-4 * (1 + fabs(reverse));
    printf("%s %s\n", worst < 1e-5 ? "right" : "wrong", same ? "same" : "other");
}
"#;

#[test]
fn double_adds_to_float_sums() {
    let folder = folder("float_updates");
    write(&folder, "p.c", SUMS);
    for way in 0..4 {
        for level in 0..=3 {
            let flags = format!("-O{level} -DWAY={way}");
            accepts(&folder, &format!("cc -fopenmp {flags} p.c -o p -lm"));
            for (workers, force) in [(1, false), (2, true), (4, true)] {
                let said = run(&folder, "p", "1000", workers, force);
                assert_eq!(said, "right same\n", "{flags}, {workers} workers");
            }
        }
    }
    let said = shell(
        &folder,
        "gradus cc -O2 -fopenmp --report=full -DWAY=0 p.c -o p -lm",
    );
    let said = text(&said.stdout) + &text(&said.stderr);
    assert!(said.contains("parallel in the reverse pass"), "{said}");
}

#[test]
fn an_atomic_product_is_refused() {
    let folder = folder("float_products");
    write(&folder, "p.c", SUMS);
    refuses(&folder, "cc -O2 -fopenmp -DWAY=4 p.c -o p -lm", "GRD0031");
}

const COMPLEX: &str = r#"
#include <complex.h>
#include <math.h>
#include <stdio.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
static float f(const float *x, int n)
{
    float _Complex z = x[0] + x[1] * I;
    for (int i = 2; i < n; i++)
        z = (z * (1 + x[i] * I)) / (2 + x[i] * z);
    return crealf(z) + 2 * cimagf(z);
}
int main(void)
{
    enum { N = 9 };
    float x[N], dx[N] = {0};
    for (int i = 0; i < N; i++)
        x[i] = 0.3 + 0.1 * i;
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, N);
    double worst = 0;
    for (int i = 0; i < N; i++) {
        float at = x[i], h = 1e-2;
        x[i] = at + h;
        double up = f(x, N);
        x[i] = at - h;
        double down = f(x, N);
        x[i] = at;
        worst = fmax(worst, fabs((up - down) / (2 * h) - dx[i]));
    }
    printf("%s\n", worst < 1e-3 ? "right" : "wrong");
}
"#;

#[test]
fn products_and_quotients_of_float_complex_numbers_have_derivatives() {
    let folder = folder("float_complex");
    write(&folder, "p.c", COMPLEX);
    for level in 0..=3 {
        accepts(&folder, &format!("cc -O{level} p.c -o p -lm"));
        let run = succeeds(Command::new(folder.join("p")).current_dir(&folder));
        assert_eq!(text(&run.stdout), "right\n", "-O{level}");
    }
}
