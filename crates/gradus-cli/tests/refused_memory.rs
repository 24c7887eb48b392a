//! Failed allocations. A derivative prints the requested size and the largest entry of its tape, and
//! aborts. A failed allocation of the program itself behaves as without derivatives.

use crate::support::{accepts, folder, text, write};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

const PROGRAM: &str = "#include <gradus.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
double counted(double *x, int n, long steps) {
    for (long t = 0; t < steps; t++)
        for (int i = 0; i < n; i++)
            x[i] = sin(x[i]); // line 8
    return x[0] + x[n - 1];
}
double uncounted(double *x, int n, double least) {
    while (x[0] > least)
        for (int i = 0; i < n; i++)
            x[i] = sin(x[i]); // line 14
    return x[0] + x[n - 1];
}
double shadowed(double *x, long n) {
    double *p = malloc(n * sizeof *p);
    if (!p)
        return 3 * x[0];
    for (long i = 0; i < n; i++)
        p[i] = x[0] * (i & 3);
    double s = 0;
    for (long i = 0; i < n; i++)
        s += p[i] * p[n - 1 - i] + p[i] * p[i];
    free(p);
    return s;
}
int main(int c, char **v) {
    double x[64] = {1}, d[64] = {0}, size = c > 2 ? atof(v[2]) : 0;
    switch (*v[1]) {
    case 'c': gradus_vjp(counted, gradus_dup, x, d, gradus_const, 64, gradus_const, (long)size); break;
    case 'u': gradus_vjp(uncounted, gradus_dup, x, d, gradus_const, 64, gradus_const, size); break;
    case 's': d[0] = 1; d[0] = gradus_jvp_double(shadowed, gradus_dup, x, d, gradus_const, (long)size); break;
    }
    printf(\"%g\\n\", d[0]);
    return 0;
}
";

/// A gibibyte exceeds an address space of half a gibibyte.
const LIMIT: &str = "ulimit -v 500000; ulimit -c 0; exec ./p";
const SIGABRT: i32 = 6;

#[test]
fn failed_allocation_aborts_with_line() {
    let at = folder("refused_memory");
    write(&at, "p.c", PROGRAM);
    for level in 0..=3 {
        accepts(&at, &format!("cc -O{level} -g p.c -o p -lm"));
        let run = |words: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("{LIMIT} {words}")]);
            command.current_dir(&at).output().expect("it starts")
        };
        for (words, line) in [("c 1000000000", 8), ("c 10000000000", 8), ("u 1e-4", 14)] {
            let output = run(words);
            let said = text(&output.stderr);
            assert_eq!(
                output.status.signal(),
                Some(SIGABRT),
                "-O{level} {words}: {said}"
            );
            assert!(said.contains("cannot allocate"), "{words}: {said}");
            assert!(said.contains("bytes of memory"), "{words}: {said}");
            assert!(
                said.contains("p.c:8:") || said.contains("p.c:14:"),
                "{words} at {line}: {said}"
            );
        }
        assert!(run("c 10").status.success(), "-O{level}");
        // The program tests for a failed allocation.
        for (size, expected) in [("4", "36\n"), ("1e15", "3\n")] {
            let output = run(&format!("s {size}"));
            assert_eq!(text(&output.stdout), expected, "-O{level} {size}");
        }
        // The block fits into memory, but not its shadow.
        let output = run("s 4e7");
        assert_eq!(output.status.signal(), Some(SIGABRT), "-O{level}");
        assert!(text(&output.stderr).contains("allocate 320"), "-O{level}");
    }
}
