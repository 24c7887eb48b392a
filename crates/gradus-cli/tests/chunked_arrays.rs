//! Iterations distributed by the program in chunks, each with an array of computed length.

use crate::support::{accepts, folder, run, write};

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

static void sums(const double *x, double *y, int n)
{
    #pragma omp parallel for schedule(SCHEDULE)
    for (int i = 0; i < n; i++) {
        int k = i % 7 + 1;
        double a[k], s = 0;
        for (int j = 0; j < k; j++)
            a[j] = x[i] * (j + 1);
        for (int j = 0; j < k; j++)
            s = s * 0.1 + a[j] * a[k - 1 - j];
        y[i] = s;
    }
}
int main(int argc, char **argv)
{
    enum { N = 41 };
    double x[N], y[N], dx[N] = {0}, dy[N];
    for (int i = 0; i < N; i++)
        x[i] = 1 + 0.1 * i, dy[i] = 1 + i % 3;
    sums(x, y, N);
    __enzyme_autodiff((void *)sums, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, N);
    for (int i = 0; i < N; i++)
        printf("%.12g %.12g\n", y[i], dx[i]);
}
"#;

#[test]
fn array_is_private_per_iteration() {
    let folder = folder("chunked_arrays");
    write(&folder, "p.c", PROGRAM);
    for schedule in ["static,3", "dynamic,4", "guided,2"] {
        for level in 0..=3 {
            let flags = format!("-O{level} -DSCHEDULE={schedule}");
            accepts(&folder, &format!("cc {flags} p.c -o serial -lm"));
            accepts(&folder, &format!("cc -fopenmp {flags} p.c -o parallel -lm"));
            let serial = run(&folder, "serial", "0", 1, false);
            for workers in [1, 2, 4] {
                let told = run(&folder, "parallel", "0", workers, true);
                assert_eq!(told, serial, "{flags}, {workers} workers");
            }
        }
    }
}
