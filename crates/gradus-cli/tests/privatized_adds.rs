//! Gradients of parallel loops whose iterations read shared floats: adds are privatised per chunk, or run
//! in a two-phase schedule if only neighbours conflict, bitwise independent of the number of workers.
//! Remaining atomic adds may have any alignment, also in packed structures.

use crate::support::{accepts, folder, shell, succeeds, text, write};
use std::path::Path;
use std::process::Command;

/// Poses against atoms that are members of packed structures, with a private array per iteration and a
/// function called by an otherwise empty loop; and members selected through an index array, which stay
/// atomic.
const PROGRAM: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
struct __attribute__((packed)) atom { double x, y, z; int kind; };
struct __attribute__((packed)) kind { int tag; double hard; float soft; };
enum { WIDE = 4 };
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

static void pose(long group, long atoms, const struct atom *a, const struct kind *k, const double *turn, double *out)
{
    double sum[WIDE], angle[WIDE];
    for (int l = 0; l < WIDE; l++) {
        angle[l] = turn[group * WIDE + l];
        sum[l] = sin(angle[l]) * cos(angle[l]);
    }
    for (long i = 0; i < atoms; i++) {
        struct atom one = a[i];
        struct kind of = k[one.kind];
        for (int l = 0; l < WIDE; l++) {
            double d = sqrt(1 + one.x * one.x + angle[l] * one.y * one.z);
            sum[l] += of.hard * d < 3 ? of.hard * d * d : of.soft * one.z;
        }
    }
    for (int l = 0; l < WIDE; l++)
        out[group * WIDE + l] = sum[l];
}
double energy(long groups, long atoms, const struct atom *restrict a, const struct kind *restrict k,
              const double *restrict turn, double *restrict out)
{
    #pragma omp parallel for
    for (long g = 0; g < groups; g++)
        pose(g, atoms, a, k, turn, out);
    double all = 0;
    for (long i = 0; i < groups * WIDE; i++)
        all += out[i] * (1 + i % 3);
    return all;
}
int main(int argc, char **argv)
{
    long groups = atol(argv[1]), atoms = atol(argv[2]), poses = groups * WIDE;
    struct atom *a = malloc(atoms * sizeof *a), *da = calloc(atoms, sizeof *a);
    struct kind k[3] = {{0, 0.5f, 0.25f}, {1, 1.5f, 0.125f}, {2, 0.75f, -0.5f}}, dk[3] = {{0}};
    double *turn = malloc(poses * 8), *dturn = calloc(poses, 8), *out = malloc(poses * 8), *dout = calloc(poses, 8);
    for (long i = 0; i < atoms; i++)
        a[i] = (struct atom){0.1 * (i % 13), 0.5 + 0.01 * (i % 29), 0.3 + 0.02 * (i % 7), (int)(i % 3)};
    for (long i = 0; i < poses; i++)
        turn[i] = 0.05 + 0.003 * (i % 101);
    __enzyme_autodiff((void *)energy, enzyme_const, groups, enzyme_const, atoms, enzyme_dup, a, da,
                      enzyme_dup, k, dk, enzyme_dup, turn, dturn, enzyme_dup, out, dout);
    for (long i = 0; i < atoms; i++)
        printf("%.17g %.17g %.17g ", da[i].x, da[i].y, da[i].z);
    printf("\n");
    for (int i = 0; i < 3; i++)
        printf("%.17g %.9g ", dk[i].hard, dk[i].soft);
    for (long i = 0; i < poses; i++)
        printf("%.17g ", dturn[i]);
    printf("\n");
    return 0;
}
"#;

/// Returns the program's output: the atoms' derivatives as text, and all numbers.
fn run(at: &Path, program: &str, sizes: [&str; 2], workers: u32) -> (String, Vec<f64>) {
    let mut command = Command::new(at.join(program));
    command.args(sizes);
    command.env("GRADUS_NUM_THREADS", workers.to_string());
    command.env("GRADUS_FORCE_FORK", "1");
    command.env("TSAN_OPTIONS", "exitcode=66 halt_on_error=1");
    let said = text(&succeeds(&mut command).stdout);
    let numbers = said
        .split_whitespace()
        .map(|n| n.parse().expect("a number"));
    let numbers = numbers.collect();
    let atoms = said.lines().next().expect("a line");
    (atoms.to_string(), numbers)
}

/// Compares two results. The kinds' second derivatives are sums of 32-bit floats in arrival order of
/// threads: each of some ten thousand additions may round. A lost add would show in the leading digits.
fn is_close(one: &[f64], other: &[f64], atoms: usize) -> bool {
    let kinds = 3 * atoms..3 * atoms + 6;
    let close = |(at, (x, y)): (usize, (&f64, &f64))| {
        let single = kinds.contains(&at) && (at - kinds.start) % 2 == 1;
        let tolerance = if single { 1e-3 } else { 1e-10 };
        (x - y).abs() <= tolerance * x.abs().max(1.0)
    };
    one.len() == other.len() && std::iter::zip(one, other).enumerate().all(close)
}

#[test]
fn privatized_adds_per_chunk() {
    let at = folder("privatized_adds");
    write(&at, "packed.c", PROGRAM);
    accepts(&at, "cc -O2 packed.c -o serial -lm");
    let said = shell(
        &at,
        "gradus cc -O2 -g -fopenmp --report=full packed.c -o parallel -lm",
    );
    let said = text(&said.stdout) + &text(&said.stderr);
    let is_loop = |line: &&str| line.contains("parallel in the reverse pass: the loop in line");
    let line = said
        .lines()
        .find(is_loop)
        .unwrap_or_else(|| panic!("{said}"));
    let kind = "privatised, or atomic by a check at run time (";
    assert!(line.contains(kind), "{line}");
    // Long enough for chunks, and too short.
    for sizes in [["130", "90"], ["6", "7"], ["1", "50"]] {
        let atoms = sizes[1].parse().expect("a number");
        let (_, serial) = run(&at, "serial", sizes, 1);
        let (bits, one) = run(&at, "parallel", sizes, 1);
        assert!(is_close(&serial, &one, atoms), "{sizes:?}");
        for workers in [2, 4] {
            let (same, numbers) = run(&at, "parallel", sizes, workers);
            assert!(is_close(&serial, &numbers, atoms), "{sizes:?}, {workers}");
            assert!(sizes[0] != "130" || same == bits, "{workers} workers");
        }
    }
}

#[test]
fn packed_numbers_are_added_without_races() {
    let at = folder("packed_races");
    write(&at, "packed.c", PROGRAM);
    accepts(
        &at,
        "cc -O1 -g -fopenmp -fsanitize=thread packed.c -o watched -lm",
    );
    for sizes in [["120", "80"], ["20", "9"]] {
        run(&at, "watched", sizes, 4);
    }
}

/// Checks that one, two and four workers print the serial program's output.
fn is_the_serial(at: &Path, sizes: [&str; 2], tolerance: f64) {
    let (_, serial) = run(at, "serial", sizes, 1);
    for workers in [1, 2, 4] {
        let (_, numbers) = run(at, "parallel", sizes, workers);
        let close = |(x, y): (&f64, &f64)| (x - y).abs() <= tolerance * x.abs().max(1.0);
        let all = serial.len() == numbers.len() && std::iter::zip(&serial, &numbers).all(close);
        assert!(all, "{sizes:?}, {workers}: {serial:?} {numbers:?}");
    }
}

/// The report's text on two-phase adds.
const IN_ROUNDS: &str = "two-phase, or atomic by a check at run time (";

/// Stencils over a line and over rows, and the product of two arrays with disjoint, equal or overlapping
/// shadows.
const NEIGHBOURS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

double line(long n, const double *restrict a, double *restrict o)
{
    #pragma omp parallel for
    for (long i = 2; i < n - 2; i++)
        o[i] = a[i - 2] * a[i + 1] + 0.5 * a[i] - a[i + 2] * a[i + 2];
    double all = 0;
    for (long i = 2; i < n - 2; i++)
        all += o[i] * (1 + i % 5);
    return all;
}
double rows(long n, long m, const double *restrict a, double *restrict o)
{
    #pragma omp parallel for
    for (long i = 1; i < n - 1; i++)
        for (long j = 1; j < m - 1; j++)
            o[i * m + j] = a[i * m + j] * (a[(i - 1) * m + j] + a[(i + 1) * m + j] - a[i * m + j - 1] * a[i * m + j + 1]);
    double all = 0;
    for (long i = 1; i < n - 1; i++)
        for (long j = 1; j < m - 1; j++)
            all += o[i * m + j] * (1 + (i + j) % 3);
    return all;
}
double dot(long n, const double *a, const double *b)
{
    double all = 0;
    #pragma omp parallel for reduction(+ : all)
    for (long i = 0; i < n; i++)
        all += a[i] * b[i] * b[i];
    return all;
}
static void print(long n, double *d)
{
    double sum = 0, weighed = 0;
    for (long i = 0; i < n; i++)
        sum += d[i], weighed += d[i] * (i % 11);
    printf("%.17g %.17g %.17g %.17g %.17g\n", sum, weighed, d[1], d[n / 2], d[n - 2]);
    for (long i = 0; i < n; i++)
        d[i] = 0;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]), m = atol(argv[2]), all = n * m;
    double *a = malloc(all * 8), *o = malloc(all * 8), *w = calloc(all, 8), *d = calloc(2 * all, 8);
    for (long i = 0; i < all; i++)
        a[i] = 0.5 + 0.01 * (i % 37), o[i] = 0;
    __enzyme_autodiff((void *)line, enzyme_const, all, enzyme_dup, a, d, enzyme_dup, o, w);
    print(all, d);
    for (long i = 0; i < all; i++)
        o[i] = w[i] = 0;
    __enzyme_autodiff((void *)rows, enzyme_const, n, enzyme_const, m, enzyme_dup, a, d, enzyme_dup, o, w);
    print(all, d);
    long shifts[] = {all, 0, 3};
    for (int k = 0; k < 3; k++) {
        __enzyme_autodiff((void *)dot, enzyme_const, all, enzyme_dup, a, d, enzyme_dup, a, d + shifts[k]);
        print(2 * all, d);
    }
    return 0;
}
"#;

#[test]
fn two_phase_adds() {
    let at = folder("neighbours");
    write(&at, "neighbours.c", NEIGHBOURS);
    accepts(&at, "cc -O2 neighbours.c -o serial");
    let said = shell(
        &at,
        "gradus cc -O2 -g -fopenmp --report=full neighbours.c -o parallel",
    );
    let said = text(&said.stdout) + &text(&said.stderr);
    let is_loop = |line: &&str| line.contains("parallel in the reverse pass: the loop in line");
    let lines: Vec<&str> = said.lines().filter(is_loop).collect();
    let turns = |line: &&str| line.contains(IN_ROUNDS) && !line.contains("atomic (");
    assert!(lines.len() >= 3 && lines.iter().all(turns), "{said}");
    for sizes in [["170", "130"], ["5", "9"]] {
        is_the_serial(&at, sizes, 1e-12);
    }
    accepts(
        &at,
        "cc -O1 -g -fopenmp -fsanitize=thread neighbours.c -o watched",
    );
    run(&at, "watched", ["110", "90"], 4);
}

/// Loops that also reduce adjoints of floats from outside: a float used 24 times per iteration, a float
/// used in a branch, and a float whose bits an iteration may store.
const SUMMED_TOO: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

__attribute__((noinline)) static void corners(long n, const int *list, const double *x, double dt, double *restrict o)
{
    #pragma omp parallel for firstprivate(n, dt)
    for (long i = 0; i < n; i++) {
        const int *c = list + 8 * i;
        double all = 0;
        for (int k = 0; k < 8; k++)
            all += sin(dt * x[3 * c[k]]) + cos(dt * x[3 * c[k] + 1]) * sin(dt + x[3 * c[k] + 2]);
        o[i] = all;
    }
}
__attribute__((noinline)) static void limited(long n, const int *list, const double *x, double dt, double least, double *restrict o)
{
    #pragma omp parallel for firstprivate(n, dt, least)
    for (long i = 0; i < n; i++) {
        double v = x[list[8 * i]];
        if (o[i] > 0.5)
            v = v * dt * v;
        o[i] = v - 1;
        if (fabs(o[i]) < 0.1)
            o[i] = 0;
        if (o[i] < least)
            o[i] = least;
    }
}
double value(long n, const int *list, const double *x, const double *p, double *restrict o)
{
    corners(n, list, x, p[0], o);
    double all = 0;
    for (long i = 0; i < n; i++)
        all += o[i] * (1 + i % 3);
    limited(n, list, x, p[0], p[1], o);
    for (long i = 0; i < n; i++)
        all += o[i] * o[i] * (1 + i % 5);
    return all;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]), all = 3 * (n + 8);
    double *x = malloc(all * 8), *d = calloc(all, 8), *o = calloc(n, 8), *w = calloc(n, 8);
    int *list = malloc(8 * n * sizeof *list);
    for (long i = 0; i < all; i++)
        x[i] = 0.5 + 0.01 * (i % 137);
    for (long i = 0; i < 8 * n; i++)
        list[i] = i / 8 + i % 8;
    double p[2] = {0.7, -0.3}, dp[2] = {0, 0}, sum = 0, weighed = 0;
    __enzyme_autodiff((void *)value, enzyme_const, n, enzyme_const, list, enzyme_dup, x, d, enzyme_dup, p, dp, enzyme_dup, o, w);
    for (long i = 0; i < all; i++)
        sum += d[i], weighed += d[i] * (i % 11);
    printf("0\n%.17g %.17g %.17g %.17g\n", sum, weighed, dp[0], dp[1]);
    return 0;
}
"#;

#[test]
fn two_phase_adds_with_reductions() {
    let at = folder("summed_too");
    write(&at, "summed.c", SUMMED_TOO);
    accepts(&at, "cc -O2 summed.c -o serial -lm");
    for level in ["-O1", "-O2", "-O3"] {
        let said = shell(
            &at,
            &format!(
                "gradus cc {level} -g -fopenmp --report=full --par-report summed.c -o parallel -lm"
            ),
        );
        let said = text(&said.stdout) + &text(&said.stderr);
        let is_loop = |line: &&str| line.contains("parallel in the reverse pass: the loop in line");
        let lines: Vec<&str> = said.lines().filter(is_loop).collect();
        let turns = |line: &&str| line.contains(IN_ROUNDS) && !line.contains("atomic (");
        assert!(
            lines.len() >= 2 && lines.iter().all(turns),
            "{level}: {said}"
        );
        assert!(
            !said.contains("an iteration uses a value of another iteration"),
            "{level}: {said}"
        );
        for sizes in [["20000", ""], ["70", ""]] {
            is_the_serial(&at, sizes, 1e-11);
        }
    }
    accepts(
        &at,
        "cc -O1 -g -fopenmp -fsanitize=thread summed.c -o watched -lm",
    );
    run(&at, "watched", ["9000", ""], 4);
}

/// A maximum, a minimum and a product over neighbours, and a maximum over an index array: each derivative
/// depends on the order of iterations.
const ORDERED: &str = r#"
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

double extremes(long n, const double *a)
{
    double most = 0, least = 100;
    #pragma omp parallel for reduction(max : most) reduction(min : least)
    for (long i = 1; i < n; i++) {
        double both = a[i] * a[i - 1];
        if (both > most)
            most = both;
        if (both < least)
            least = both;
    }
    return most * most - least;
}
double product(long n, const double *a)
{
    double all = 1;
    #pragma omp parallel for reduction(* : all)
    for (long i = 1; i < n; i++)
        all *= 1 + 0.01 * (a[i] - a[i - 1]) * a[i];
    return all;
}
double named(long n, const int *list, const double *a)
{
    double most = 0;
    #pragma omp parallel for reduction(max : most)
    for (long i = 0; i < n; i++) {
        double both = a[list[i]] * a[list[i] + 1];
        if (both > most)
            most = both;
    }
    return most;
}
static void print(long n, double *d)
{
    double sum = 0, weighed = 0, squares = 0;
    for (long i = 0; i < n; i++)
        sum += d[i], weighed += d[i] * i, squares += d[i] * d[i] * (i % 13);
    printf("%.17g %.17g %.17g\n", sum, weighed, squares);
    for (long i = 0; i < n; i++)
        d[i] = 0;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]);
    double *a = malloc((n + 1) * 8), *d = calloc(n + 1, 8);
    int *list = malloc(n * sizeof *list);
    unsigned random = 1;
    printf("0\n");
    for (int turn = 0; turn < 6; turn++) {
        for (long i = 0; i <= n; i++)
            random = random * 1664525 + 1013904223, a[i] = 0.5 + (random >> 8) * 1e-8;
        for (long i = 0; i < n; i++)
            list[i] = turn % 2 ? i : n - 1 - i;
        __enzyme_autodiff((void *)extremes, enzyme_const, n, enzyme_dup, a, d);
        print(n, d);
        __enzyme_autodiff((void *)product, enzyme_const, n, enzyme_dup, a, d);
        print(n, d);
        __enzyme_autodiff((void *)named, enzyme_const, n, enzyme_const, list, enzyme_dup, a, d);
        print(n + 1, d);
    }
    return 0;
}
"#;

#[test]
fn order_dependent_loops_stay_serial() {
    let at = folder("ordered_rounds");
    write(&at, "ordered.c", ORDERED);
    accepts(&at, "cc -O2 ordered.c -o serial");
    for level in ["-O0", "-O2"] {
        accepts(&at, &format!("cc {level} -fopenmp ordered.c -o parallel"));
        // Long enough for the two-phase schedule, and too short.
        for sizes in [["30000", ""], ["200", ""]] {
            is_the_serial(&at, sizes, 1e-11);
        }
    }
}

/// Mesh elements read the values of their corners, and values of a second index array if a value is large;
/// index arrays ascend, descend, and alternate.
const MESH: &str = r#"
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);

double mesh(long n, const int *corners, const int *other, const double *x, const double *y, double *o)
{
    #pragma omp parallel for
    for (long i = 0; i < n; i++) {
        const int *c = corners + 3 * i;
        double s = x[c[0]] * y[c[1]] + x[c[1]] * x[c[2]] * y[c[2]];
        if (s > 1.1)
            s += y[other[i]] * s;
        o[i] = s * s;
    }
    double all = 0;
    for (long i = 0; i < n; i++)
        all += o[i] * (1 + i % 5);
    return all;
}
static void print(long n, double *d)
{
    double sum = 0, weighed = 0;
    for (long i = 0; i < n; i++)
        sum += d[i], weighed += d[i] * (i % 11);
    printf("%.17g %.17g %.17g %.17g %.17g\n", sum, weighed, d[1], d[n / 2], d[n - 2]);
    for (long i = 0; i < n; i++)
        d[i] = 0;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]), wide = atol(argv[2]), nodes = n + wide + 2;
    int *corners = malloc(3 * n * sizeof *corners), *other = malloc(n * sizeof *other);
    double *x = malloc(nodes * 8), *y = malloc(nodes * 8), *o = malloc(n * 8), *w = calloc(n, 8);
    double *d = calloc(2 * nodes, 8);
    for (long i = 0; i < nodes; i++)
        x[i] = 0.5 + 0.01 * (i % 37), y[i] = 1 + 0.02 * (i % 17);
    for (int way = 0; way < 3; way++) {
        for (long i = 0; i < n; i++) {
            long at = way == 0 ? i : way == 1 ? n - 1 - i : i * 7919 % n;
            corners[3 * i] = at, corners[3 * i + 1] = at + 1, corners[3 * i + 2] = at + wide;
            other[i] = at / 2;
            o[i] = w[i] = 0;
        }
        for (int shift = 0; shift < 3; shift++) {
            double *dy = d + (shift == 0 ? nodes : shift == 1 ? 0 : 2);
            __enzyme_autodiff((void *)mesh, enzyme_const, n, enzyme_const, corners, enzyme_const, other, enzyme_dup, x, d,
                              enzyme_dup, y, dy, enzyme_dup, o, w);
            print(2 * nodes, d);
            for (long i = 0; i < n; i++)
                o[i] = w[i] = 0;
        }
    }
    return 0;
}
"#;

#[test]
fn two_phase_indirect_adds() {
    let at = folder("listed_rounds");
    write(&at, "mesh.c", MESH);
    accepts(&at, "cc -O2 mesh.c -o serial");
    let said = shell(
        &at,
        "gradus cc -O2 -g -fopenmp --report=full mesh.c -o parallel",
    );
    let said = text(&said.stdout) + &text(&said.stderr);
    let is_loop = |line: &&str| line.contains("parallel in the reverse pass: the loop in line");
    let line = said
        .lines()
        .find(is_loop)
        .unwrap_or_else(|| panic!("{said}"));
    assert!(
        line.contains(IN_ROUNDS) && !line.contains("atomic ("),
        "{line}"
    );
    // One phase, few, more than the maximum, and too short for the inspector.
    for sizes in [
        ["6000", "2"],
        ["6000", "500"],
        ["6000", "5000"],
        ["30", "3"],
    ] {
        is_the_serial(&at, sizes, 1e-12);
    }
    accepts(
        &at,
        "cc -O1 -g -fopenmp -fsanitize=thread mesh.c -o watched",
    );
    for sizes in [["6000", "500"], ["6000", "5000"]] {
        run(&at, "watched", sizes, 4);
    }
}
