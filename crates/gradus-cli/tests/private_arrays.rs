//! Gradients of functions that allocate a private array only for several threads.

use crate::support::{accepts, folder, succeeds, text, write};
use std::process::Command;

/// Each step works in a private array for several threads, and in place for a single thread.
const PROGRAM: &str = r#"
#ifdef THREADS
static int omp_get_max_threads(void) { return THREADS; }
#else
#include <omp.h>
#endif
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
long counted_most(int again);

static void step(double *x, long n)
{
    int threads = omp_get_max_threads();
    double *own;
    if (threads > 1)
        own = malloc(n * sizeof *own);
    #pragma omp parallel for
    for (long i = 0; i < n; i++) {
        double y = 0.5 * x[i] + i;
        if (threads > 1)
            own[i] = y;
        else
            x[i] = 2 * y;
    }
    if (threads > 1) {
        #pragma omp parallel for
        for (long i = 0; i < n; i++)
            x[i] += own[n - 1 - i];
        if (own)
            free(own);
    }
}
void f(double *x, long n, int steps, double *sum)
{
    for (int s = 0; s < steps; s++)
        step(x, n);
    for (long i = 0; i < n; i++)
        *sum += (i % 7) * x[i];
}
int main(void)
{
    enum { N = 20000 };
    static double x[N], dx[N];
    double sum = 0, one = 1, all = 0;
    for (long i = 0; i < N; i++)
        x[i] = 1;
    long before = counted_most(1);
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, (long)N, enzyme_const, 40, enzyme_dup, &sum, &one);
    for (long i = 0; i < N; i++)
        all += dx[i] * (1 + i % 3);
    printf("%.12g %ld\n", all, counted_most(0) - before);
    return 0;
}
"#;

/// Counts the bytes allocated at any time.
const COUNT: &str = r"
#include <malloc.h>
#include <stddef.h>
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void __libc_free(void *);
static long live, most;
static void *counted(void *block)
{
    long now = __atomic_add_fetch(&live, (long)malloc_usable_size(block), __ATOMIC_RELAXED);
    if (now > most) most = now;
    return block;
}
long counted_most(int again)
{
    if (again) most = live;
    return most;
}
void *malloc(size_t bytes) { return counted(__libc_malloc(bytes)); }
void *calloc(size_t count, size_t bytes) { return counted(__libc_calloc(count, bytes)); }
void free(void *block)
{
    if (block) __atomic_sub_fetch(&live, (long)malloc_usable_size(block), __ATOMIC_RELAXED);
    __libc_free(block);
}
";

/// Returns the program's output: a sum of the gradient, and the peak of allocated bytes.
fn run(at: &std::path::Path, program: &str, workers: u32) -> (f64, f64) {
    let mut command = Command::new(at.join(program));
    command.env("OMP_NUM_THREADS", workers.to_string());
    command.env("GRADUS_FORCE_FORK", "1");
    let said = text(&succeeds(&mut command).stdout);
    let mut numbers = said.split_whitespace().map(|word| word.parse::<f64>());
    let mut next = || numbers.next().expect("two numbers").expect("a number");
    (next(), next())
}

#[test]
fn private_arrays_leave_no_shadows() {
    let at = folder("private_arrays");
    write(&at, "own.c", PROGRAM);
    write(&at, "count.c", COUNT);
    accepts(&at, "cc -O1 -fno-builtin -c count.c -o count.o");
    accepts(&at, "cc -O2 -DTHREADS=1 own.c count.o -o one");
    accepts(&at, "cc -O2 -DTHREADS=2 own.c count.o -o several");
    accepts(&at, "cc -O2 -fopenmp own.c count.o -o parallel");
    for workers in [1, 2, 4] {
        let serial = if workers == 1 { "one" } else { "several" };
        let (expected, _) = run(&at, serial, 1);
        let (sum, held) = run(&at, "parallel", workers);
        let close = (sum - expected).abs() <= 1e-9 * expected.abs();
        assert!(close, "{workers}: {sum} {expected}");
        // Forty shadows of 160,000 bytes exceed the limit.
        assert!(held < 4e6, "{workers}: {held}");
    }
}
