//! Programs that alternate between a parallel function and its derivative: both are outlined from a single
//! function, and get distinct names.

use crate::support::{accepts, folder, run, write};

const PROGRAM: &str = r#"
#include <stdio.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

static void f(double *x, double *y, int n, int m)
{
    #pragma omp parallel for
    for (int i = 0; i < m; i++)
        y[i] = y[i] * x[i % n];
}
#ifdef THROUGH
static void gradient(double *x, double *a, double *y, double *b, int n, int m)
{
    __enzyme_autodiff((void *)f, enzyme_dup, x, a, enzyme_dup, y, b, enzyme_const, n, enzyme_const, m);
}
#else
#define gradient(x, a, y, b, n, m) \
    __enzyme_autodiff((void *)f, enzyme_dup, x, a, enzyme_dup, y, b, enzyme_const, n, enzyme_const, m)
#endif
int main(void)
{
    static double x[37], y[41], a[37], b[41];
    for (int i = 0; i < 41; i++)
        y[i] = 1 + i;
    for (int i = 0; i < 37; i++)
        x[i] = 1 + 0.01 * i;
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 41; i++)
            b[i] = 1;
        gradient(x, a, y, b, 37, 41);
    }
    f(x, y, 37, 41);
    for (int i = 0; i < 37; i++)
        printf("%.12g %.12g %.12g\n", y[i], a[i], b[i]);
}
"#;

#[test]
fn primal_and_derivative_coexist() {
    let folder = folder("primal_and_derivative");
    write(&folder, "p.c", PROGRAM);
    for level in 0..=3 {
        for way in ["", "-DTHROUGH"] {
            accepts(&folder, &format!("cc -O{level} {way} p.c -o serial"));
            accepts(
                &folder,
                &format!("cc -fopenmp -O{level} {way} p.c -o parallel"),
            );
            let serial = run(&folder, "serial", "0", 1, false);
            let told = run(&folder, "parallel", "0", 2, true);
            assert_eq!(told, serial, "-O{level} {way}");
        }
    }
}
