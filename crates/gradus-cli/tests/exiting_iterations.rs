//! Gradients of parallel loops whose iterations may exit the program; if several would, either may do so,
//! as in the program itself.

use crate::support::{accepts, folder, shell, text, write};
use std::process::Command;

const PROGRAM: &str = r#"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double roots(long n, const double *restrict x, double *restrict o)
{
    #pragma omp parallel for
    for (long i = 0; i < n; i++) {
        if (x[i] <= 0)
            exit(3);
        assert(x[i] < 9);
        o[i] = sqrt(x[i]) * sin(x[i]);
    }
    double all = 0;
    for (long i = 0; i < n; i++)
        all += o[i] * (1 + i % 5);
    return all;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]);
    double *x = malloc(n * 8), *d = calloc(n, 8), *o = calloc(n, 8), *w = calloc(n, 8);
    for (long i = 0; i < n; i++)
        x[i] = 0.5 + 0.01 * (i % 37);
    if (argc > 2)
        x[atol(argv[2])] = atof(argv[3]);
    __enzyme_autodiff((void *)roots, enzyme_const, n, enzyme_dup, x, d, enzyme_dup, o, w);
    for (long i = 0; i < n; i++)
        printf("%.13g ", d[i]);
    printf("\n");
    return 0;
}
"#;

#[test]
fn exiting_loops_are_parallel() {
    let at = folder("exiting_iterations");
    write(&at, "ends.c", PROGRAM);
    accepts(&at, "cc -O2 ends.c -o serial -lm");
    let said = shell(
        &at,
        "gradus cc -O2 -g -fopenmp --report=full ends.c -o parallel -lm",
    );
    let said = text(&said.stdout) + &text(&said.stderr);
    assert!(
        said.contains("parallel in the reverse pass: the loop in line 11;"),
        "{said}"
    );
    let of = |program: &str, args: &[&str], workers: &str| {
        let mut command = Command::new(at.join(program));
        command.args(args);
        command.env("GRADUS_NUM_THREADS", workers);
        command.env("GRADUS_FORCE_FORK", "1");
        command.output().expect("it runs")
    };
    for workers in ["1", "2", "4"] {
        let good = ["3000"];
        let serial = of("serial", &good, "1");
        assert_eq!(serial.stdout, of("parallel", &good, workers).stdout);
        let ended = of("parallel", &["3000", "1700", "-1"], workers);
        assert_eq!(ended.status.code(), Some(3), "{workers}");
        let failed = of("parallel", &["3000", "1700", "11"], workers);
        let said = text(&failed.stderr);
        assert!(
            !failed.status.success() && said.contains("x[i] < 9"),
            "{said}"
        );
    }
}
