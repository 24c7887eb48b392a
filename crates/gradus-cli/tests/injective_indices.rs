//! Gradients of loops whose iterations sum over a range of an index array, e.g. mesh nodes over the corners
//! of their elements. If no index occurs twice, the reverse pass uses plain adds.

use crate::support::{accepts, folder, shell, succeeds, text, write};
use std::path::Path;
use std::process::Command;

/// Node `i` sums its range of corners in the index array, zero to six. The variants of the index array:
/// injective, an index shared by two nodes, an index twice in a node; and the adjoints of both corner
/// arrays may be one array.
const PROGRAM: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

static __attribute__((noinline)) void nodes(long n, const int *start, const int *list, const double *a,
                                            const double *b, double *out)
{
    #pragma omp parallel for
    for (long i = 0; i < n; i++) {
        double s = 0, t = 0;
        for (int k = 0; k < start[i + 1] - start[i]; k++) {
            int c = list[start[i] + k];
            s += a[c];
            t += b[c];
        }
        out[i] = sin(s) + t * t;
    }
}
void f(long n, const int *start, const int *list, const double *a, const double *b, double *out, double *sum)
{
    for (int step = 0; step < 2; step++) {
        nodes(n, start, list, a, b, out);
        for (long i = 0; i < n; i++)
            *sum += out[i] * (1 + i % 7);
    }
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]), all = 0;
    int *start = malloc((n + 1) * sizeof *start);
    for (long i = 0; i <= n; i++) {
        start[i] = all;
        all += (i * 5 + i / 3) % 7;
    }
    double *a = malloc(all * 8), *b = malloc(all * 8), *da = calloc(all, 8), *db = calloc(all, 8);
    double *out = malloc(n * 8), *dout = calloc(n, 8);
    int *list = malloc(all * sizeof *list);
    for (long i = 0; i < all; i++)
        a[i] = 0.3 + 0.01 * (i % 53), b[i] = 0.5 - 0.01 * (i % 31);
    for (int way = 0; way < 4; way++) {
        for (long i = 0; i < all; i++)
            list[i] = all - 1 - i, da[i] = db[i] = 0;
        if (way == 1) list[start[n / 2]] = list[0];
        if (way == 2) list[start[n] - 1] = list[start[n] - 2];
        double sum = 0, one = 1;
        __enzyme_autodiff((void *)f, enzyme_const, n, enzyme_const, start, enzyme_const, list, enzyme_dup, a, da,
                          enzyme_dup, b, way == 3 ? da : db, enzyme_dup, out, dout, enzyme_dup, &sum, &one);
        double plain = 0, weighed = 0;
        for (long i = 0; i < all; i++)
            plain += da[i] - db[i], weighed += (da[i] + db[i]) * (i % 11);
        printf("%.17g %.17g %.17g\n", plain, weighed, da[all - 1]);
    }
    return 0;
}
"#;

fn run(at: &Path, program: &str, nodes: &str, workers: u32) -> Vec<f64> {
    let mut command = Command::new(at.join(program));
    command.arg(nodes);
    command.env("GRADUS_NUM_THREADS", workers.to_string());
    command.env("GRADUS_FORCE_FORK", "1");
    let said = text(&succeeds(&mut command).stdout);
    let numbers = said.split_whitespace().map(|word| word.parse::<f64>());
    numbers.map(|number| number.expect("a number")).collect()
}

/// Checks that the parallel program prints the serial numbers.
fn all_ways_agree(at: &Path) {
    for nodes in ["3000", "40"] {
        let serial = run(at, "serial", nodes, 1);
        assert!(serial.len() == 12 && serial.iter().all(|n| n.is_finite()));
        for workers in [1, 2, 4] {
            let numbers = run(at, "parallel", nodes, workers);
            let close = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-11 * x.abs().max(1.0);
            let all = std::iter::zip(&serial, &numbers).all(close);
            assert!(all, "{nodes}, {workers}: {serial:?} {numbers:?}");
        }
    }
}

#[test]
fn injective_corners_add_plainly() {
    let at = folder("injective_indices");
    write(&at, "corners.c", PROGRAM);
    accepts(&at, "cc -O2 corners.c -o serial -lm");
    let said = shell(
        &at,
        "gradus cc -O2 -g -fopenmp --report=full corners.c -o parallel -lm",
    );
    let said = text(&said.stdout) + &text(&said.stderr);
    let is_loop = |line: &&str| line.contains("parallel in the reverse pass: the loop in line");
    let adds = |line: &&str| line.contains("2 two-phase, or atomic by a check");
    assert!(
        said.lines().filter(is_loop).any(|line| adds(&line)),
        "{said}"
    );
    all_ways_agree(&at);
    accepts(
        &at,
        "cc -O1 -g -fopenmp -fsanitize=thread corners.c -o watched -lm",
    );
    run(&at, "watched", "3000", 4);
}

/// Each thread traverses its part of an index array, conditionally reads some of the indexed elements, and
/// stores its result in a private slot. The first three variants are as above; in the last, the index array
/// is sorted. The arrays are members of an object passed by reference.
const THREADS: &str = r#"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#ifdef SERIAL
static int omp_get_max_threads() { return 1; }
static int omp_get_thread_num() { return 0; }
#else
#include <omp.h>
#endif
extern int enzyme_dup, enzyme_const;
template <typename R, typename... T> R __enzyme_autodiff(void *, T...);

struct Mesh { int name; std::vector<double> a, b; };
static __attribute__((noinline)) void least(Mesh &mesh, int n, const int *list, double &found)
{
    int threads = omp_get_max_threads();
    std::vector<double> own(threads, 0.0);
    #pragma omp parallel firstprivate(n)
    {
        double sum = 0;
        int t = omp_get_thread_num();
        #pragma omp for
        for (int i = 0; i < n; i++) {
            int at = list[i];
            double x = mesh.a[at] * mesh.a[at];
            if (mesh.b[at] < 0)
                x += mesh.b[at] * mesh.b[at] * x;
            sum += std::sqrt(x) * mesh.b[at];
        }
        own[t] = sum;
    }
    for (int t = 0; t < threads; t++)
        found += own[t];
}
void f(Mesh *mesh, int n, const int *list, double *sum)
{
    for (int step = 0; step < 2; step++)
        least(*mesh, n, list, *sum);
}
int main(int argc, char **argv)
{
    int n = atoi(argv[1]);
    std::vector<int> list(n);
    Mesh mesh{0, std::vector<double>(n), std::vector<double>(n)};
    for (int i = 0; i < n; i++)
        mesh.a[i] = 0.3 + 0.01 * (i % 53), mesh.b[i] = 0.2 - 0.01 * (i % 31);
    for (int way = 0; way < 4; way++) {
        Mesh adjoint{0, std::vector<double>(n), std::vector<double>(n)};
        for (int i = 0; i < n; i++)
            list[i] = way == 3 ? i : n - 1 - i;
        if (way == 1) list[n / 2] = list[0];
        if (way == 2) list[n - 1] = list[n - 2];
        double sum = 0, one = 1;
        __enzyme_autodiff<void>((void *)f, enzyme_dup, &mesh, &adjoint, enzyme_const, n, enzyme_const, list.data(),
                                enzyme_dup, &sum, &one);
        double plain = 0, weighed = 0;
        for (int i = 0; i < n; i++)
            plain += adjoint.a[i] - adjoint.b[i], weighed += (adjoint.a[i] + adjoint.b[i]) * (i % 11);
        printf("%.17g %.17g %.17g\n", plain, weighed, adjoint.a[n - 1]);
    }
    return 0;
}
"#;

#[test]
fn per_thread_indices_add_plainly() {
    let at = folder("named_once_by_threads");
    write(&at, "threads.cpp", THREADS);
    accepts(
        &at,
        "c++ -O2 -DSERIAL threads.cpp -o serial -Wno-unknown-pragmas",
    );
    let said = shell(
        &at,
        "gradus c++ -O2 -g -fopenmp --report=full threads.cpp -o parallel",
    );
    let said = text(&said.stdout) + &text(&said.stderr);
    let is_loop = |line: &&str| line.contains("parallel in the reverse pass: the loop in line");
    let adds = |line: &&str| line.contains("2 two-phase, or atomic by a check");
    assert!(
        said.lines().filter(is_loop).any(|line| adds(&line)),
        "{said}"
    );
    all_ways_agree(&at);
    accepts(
        &at,
        "c++ -O1 -g -fopenmp -fsanitize=thread threads.cpp -o watched",
    );
    run(&at, "watched", "3000", 4);
}
