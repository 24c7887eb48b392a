//! Thread-count queries in differentiated programs: the answer is the number of workers for loops, and 1
//! for teams with a single rank. A program with interacting loops and teams gets a single answer.

use crate::support::{accepts, folder, refuses, run, shell, text, write};
use std::path::{Path, PathBuf};

/// The beginning of all programs; the serial build reports one thread.
const HEAD: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_max_threads(void) { return 1; }
static int omp_get_num_threads(void) { return 1; }
static int omp_get_thread_num(void) { return 0; }
static int omp_in_parallel(void) { return 0; }
static void omp_set_num_threads(int threads) {}
#endif
#define APART __attribute__((noinline))
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
"#;

/// A loop with dependent iterations in the single-threaded case, and a team that stores a result per thread
/// in local arrays; the number of threads changes at the end.
const MESH: &str = r#"
// Without care where there is one thread: iterations rely on each other there.
static void corners(long n, const double *x, const int *list, double *sum)
{
    int threads = omp_get_max_threads();
    double *own;
    if (threads > 1)
        own = malloc(n * sizeof *own);
    // The loop that asks.
    #pragma omp parallel for
    for (long i = 0; i < n; i++) {
        double v = x[i] * sin(x[i]);
        if (threads > 1)
            own[i] = v;
        else
            sum[list[i]] += v * sum[list[i]] / n;
    }
    if (threads > 1) {
        for (long i = 0; i < n; i++)
            sum[list[i]] += own[i] * sum[list[i]] / n;
        free(own);
    }
}
// A result of each thread, and where it is.
static APART void least(long n, const double *x, const int *list, double *limit)
{
    int threads = omp_get_max_threads();
    int at[threads];
    double limits[threads];
    #pragma omp parallel
    {
        double own = *limit;
        int place = -1, t = omp_get_thread_num();
        #pragma omp for
        for (long i = 0; i < n; i++) {
            double v = sqrt(1 + x[i] * x[i]) / (1 + list[i]);
            if (v < own)
                own = v, place = i;
        }
        limits[t] = own;
        at[t] = place;
    }
    for (int t = 1; t < threads; t++)
        if (limits[t] < limits[0])
            limits[0] = limits[t], at[0] = at[t];
    if (at[0] != -1)
        *limit = limits[0];
}
double energy(long n, double *x, const int *list, double *sum)
{
    double limit = 1e20;
    for (int step = 0; step < 2; step++) {
        corners(n, x, list, sum);
        least(n, x, list, &limit);
        // The loop after.
        #pragma omp parallel for
        for (long i = 0; i < n; i++)
            x[i] += 0.001 * limit * sum[list[i]];
    }
    omp_set_num_threads(4);
    return sum[0] * sum[1] + sum[2] * limit;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]);
    double *x = malloc(n * 8), *d = calloc(n, 8), sum[3] = {1, 2, 3}, s[3] = {0};
    int *list = malloc(n * sizeof *list);
    for (long i = 0; i < n; i++)
        x[i] = 0.5 + 0.01 * (i % 37), list[i] = i % 3;
    __enzyme_autodiff((void *)energy, enzyme_const, n, enzyme_dup, x, d, enzyme_const, list, enzyme_dup, sum, s);
    printf("%.13g %.13g %.13g %.13g\n", sum[0], sum[1], s[0], s[1]);
    for (long i = 0; i < n; i++)
        printf("%.13g ", d[i]);
    printf("\n");
    return 0;
}
"#;

/// The answer reaches a loop of another function, by each possible path.
const LEAKS: &str = r#"
static int kept;
static double number;
static double parts[64];
#ifdef RETURNED
static APART int told(void) { return omp_get_max_threads(); }
#define ASKED told()
#endif
#ifdef STORED
static APART void ask(void) { kept = omp_get_max_threads(); }
#define ASKED (ask(), kept)
#endif
#ifdef BRANCHED
static APART void ask(void) { kept = 1; if (omp_get_max_threads() > 1) kept = 2; }
#define ASKED (ask(), kept)
#endif
#ifdef REPEATED
static APART void ask(void) { kept = 0; for (int t = omp_get_max_threads(); t > 0; t--) kept += 1; }
#define ASKED (ask(), kept)
#endif
#ifdef FLOAT
static APART void ask(void) { number = omp_get_max_threads(); }
#define ASKED (ask(), number)
#endif
#ifdef COUNTED
static APART void ask(void)
{
    kept = 0;
    #pragma omp parallel
    {
        #pragma omp atomic
        kept++;
        parts[omp_get_thread_num()] += 1;
    }
}
#define ASKED (ask(), kept)
#endif
#ifdef SIZED
static APART void ask(void)
{
    #pragma omp parallel
    {
        parts[omp_get_thread_num()] += 1;
        #pragma omp master
        kept = omp_get_num_threads();
    }
}
#define ASKED (ask(), kept)
#endif
#ifdef CHOSEN
static APART void ask(void)
{
    int threads = omp_get_max_threads();
    #pragma omp parallel
    {
        parts[omp_get_thread_num()] += 1;
        #pragma omp single
        number = threads > 1 ? 2.0 : 1.0;
    }
}
#define ASKED (ask(), number)
#endif
#ifdef GUARDING
static APART void ask(void)
{
    number = 1;
    if (omp_get_max_threads() > 1)
        number = 2;
}
#define ASKED (ask(), number)
#endif
#ifdef ADDED
static APART void ask(void)
{
    number = 0;
    #pragma omp parallel
    {
        parts[omp_get_thread_num()] += 1;
        #pragma omp atomic
        number += 1.0;
    }
}
#define ASKED (ask(), number)
#endif
#ifdef REDUCED
static APART void ask(void)
{
    double count = 0;
    #pragma omp parallel reduction(+ : count)
    {
        parts[omp_get_thread_num()] += 1;
        count += 1.0;
    }
    number = count;
}
#define ASKED (ask(), number)
#endif
#ifdef TABLE
static double table[2] = {1, 2};
static APART double ask(void) { return table[omp_get_max_threads() > 1]; }
#define ASKED ask()
#endif
#ifdef INSIDE
static APART void ask(void)
{
    #pragma omp parallel
    {
        parts[omp_get_thread_num()] += 1;
        #pragma omp master
        kept = 1 + (omp_in_parallel() != 0);
    }
}
#define ASKED (ask(), kept)
#endif
#ifdef PASSED
#define ASKED threads
#endif
static APART void fill(long n, int threads, const double *restrict x, double *restrict own, double *restrict sum)
{
    int several = ASKED > 1;
    #pragma omp parallel for
    for (long i = 0; i < n; i++) {
        double v = x[i] * x[i];
        if (several)
            own[i] = v;
        else
            sum[i % 3] += v;
    }
    if (several)
        for (long i = 0; i < n; i++)
            sum[i % 3] += own[i];
}
double corners(long n, const double *restrict x, double *restrict own, double *restrict sum)
{
#ifdef PASSED
    fill(n, omp_get_max_threads(), x, own, sum);
#else
    fill(n, 0, x, own, sum);
#endif
    return sum[0] * sum[1] + sum[2] * sum[2];
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]);
    double *x = malloc(n * 8), *d = calloc(n, 8), *own = calloc(n, 8), *o = calloc(n, 8);
    double sum[3] = {0}, s[3] = {0};
    for (long i = 0; i < n; i++)
        x[i] = 0.5 + 0.01 * (i % 37);
    __enzyme_autodiff((void *)corners, enzyme_const, n, enzyme_dup, x, d, enzyme_dup, own, o, enzyme_dup, sum, s);
    printf("%.13g %.13g %.13g\n", sum[0], sum[1], sum[2]);
    for (long i = 0; i < n; i++)
        printf("%.13g ", d[i]);
    printf("\n");
    return 0;
}
"#;

/// A team stores a result per thread in memory known to others; the reader queries the number of threads;
/// older results exist.
const MEETING: &str = r#"
static double parts[64];
static APART void leave(int rank, double sum)
{
    if (rank < 0)
        rank = omp_get_thread_num();
    parts[rank] = sum;
}
static APART double add(long n, const double *x, double *apart)
{
#ifdef GUARDED
    int threads = omp_get_max_threads();
    double own[threads];
    #pragma omp parallel
    {
        double sum = 0;
        #pragma omp for
        for (long i = 0; i < n; i++)
            sum += x[i] * x[i];
        own[omp_get_thread_num()] = sum;
    }
    for (int t = 1; t < threads; t++)
        own[0] += own[t];
    if (threads > 1)
        *apart = own[0];
    else
        *parts += own[0];
    return 0;
#else
    #pragma omp parallel
    {
        double sum = 0;
        #pragma omp for
        for (long i = 0; i < n; i++)
            sum += x[i] * x[i];
#ifdef FENCED
        #pragma omp flush
#endif
#ifdef CALLED
        leave(omp_get_thread_num(), sum);
#elif defined(ASKING)
        leave(-1, sum);
#else
        parts[omp_get_thread_num()] = sum;
#endif
    }
    return 0;
#endif
}
#ifdef POINTED
static int (*volatile asks)(void) = omp_get_max_threads;
#define THREADS asks()
#elif defined(UNSEEN)
extern int number_of_threads(void);
#define THREADS number_of_threads()
#else
#define THREADS omp_get_max_threads()
#endif
static APART double total(const double *apart)
{
    double sum = parts[0];
#ifdef GUARDED
    if (omp_get_max_threads() > 1)
        sum += *apart;
#elif defined(PLACES)
    for (int t = 1; t < omp_get_max_threads(); t++)
        sum += parts[t];
#else
    int threads = THREADS;
    if (threads > 1)
        sum += parts[1];
    if (threads > 2)
        sum += parts[2];
    if (threads > 3)
        sum += parts[3];
#endif
    return sum;
}
double energy(long n, double *x, double *apart)
{
    #pragma omp parallel for
    for (long i = 0; i < n; i++)
        x[i] += 0.1 * x[i] * x[i];
    add(n, x, apart);
    double all = total(apart);
    return all * all;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]);
    double *x = malloc(n * 8), *d = calloc(n, 8), apart = 7, away = 0;
    for (long i = 0; i < n; i++)
        x[i] = 0.5 + 0.01 * (i % 37);
#ifndef GUARDED
    for (int t = 0; t < 64; t++)
        parts[t] = 1e6;
#endif
    __enzyme_autodiff((void *)energy, enzyme_const, n, enzyme_dup, x, d, enzyme_dup, &apart, &away);
    for (long i = 0; i < n; i++)
        printf("%.13g ", d[i]);
    printf("\n");
    return 0;
}
"#;

/// The function that requests the derivative also queries the number of threads, and calls the primal
/// itself.
const BESIDE: &str = r#"
APART double energy(long n, const double *x, double *parts, int threads)
{
    #pragma omp parallel
    {
        double sum = 0;
        #pragma omp for
        for (long i = 0; i < n; i++)
            sum += x[i] * x[i] * x[i];
        parts[omp_get_thread_num()] = sum;
    }
    double all = 0;
    for (int t = 0; t < threads; t++)
        all += parts[t];
    return all * all;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]);
    int threads = omp_get_max_threads();
    double *x = malloc(n * 8), *d = calloc(n, 8), *parts = calloc(threads, 8), *away = calloc(threads, 8);
    for (long i = 0; i < n; i++)
        x[i] = 0.5 + 0.01 * (i % 37);
    printf("%.13g\n", energy(n, x, parts, threads));
    __enzyme_autodiff((void *)energy, enzyme_const, n, enzyme_dup, x, d, enzyme_dup, parts, away, enzyme_const, threads);
    for (long i = 0; i < n; i++)
        printf("%.13g ", d[i]);
    printf("\n");
    return 0;
}
"#;

/// Each rank of a team that stays a team sets a mark, and the program counts the marks: the number of
/// threads is the team's.
const MARKED: &str = r#"
static int stop;
#ifdef KNOWN
static char marks[64];
#endif
double energy(long n, const double *x, double *sum)
{
#ifndef KNOWN
    char marks[64];
#endif
    int threads = 0;
    for (int t = 0; t < 64; t++)
        marks[t] = 0;
    #pragma omp parallel
    {
        int now;
#ifdef NUMBERED
        marks[omp_get_thread_num()] = omp_get_thread_num() + 1;
#else
        marks[omp_get_thread_num()] = 1;
#endif
        #pragma omp flush
        #pragma omp atomic read
        now = stop;
        if (now)
            marks[63] = 1;
    }
    for (int t = 0; t < 64; t++)
        threads += marks[t] != 0;
    double *own = calloc(n, sizeof *own);
    // Without care where there is one thread.
    #pragma omp parallel for
    for (long i = 0; i < n; i++) {
        double v = x[i] * x[i];
        if (threads > 1)
            own[i] = v;
        else
            sum[i % 3] += v * sum[i % 3] / n;
    }
    if (threads > 1)
        for (long i = 0; i < n; i++)
            sum[i % 3] += own[i] * sum[i % 3] / n;
    free(own);
    return sum[0] * sum[1] + sum[2];
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]);
    double *x = malloc(n * 8), *d = calloc(n, 8), sum[3] = {1, 2, 3}, s[3] = {0};
    for (long i = 0; i < n; i++)
        x[i] = 0.5 + 0.01 * (i % 37);
    __enzyme_autodiff((void *)energy, enzyme_const, n, enzyme_dup, x, d, enzyme_dup, sum, s);
    for (long i = 0; i < n; i++)
        printf("%.13g ", d[i]);
    printf("\n");
    return 0;
}
"#;

/// A program that requests as many threads as the default.
const ASKED_FOR: &str = r#"
double energy(long n, const double *x)
{
    int threads = omp_get_max_threads();
    double sum = 0;
    omp_set_num_threads(threads);
    // The loop.
    #pragma omp parallel for reduction(+ : sum)
    for (long i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum * sum;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]);
    double *x = malloc(n * 8), *d = calloc(n, 8);
    for (long i = 0; i < n; i++)
        x[i] = 0.5 + 0.01 * (i % 37);
    __enzyme_autodiff((void *)energy, enzyme_const, n, enzyme_dup, x, d);
    for (long i = 0; i < n; i++)
        printf("%.11g ", d[i]);
    printf("%d\n", omp_get_max_threads() > 0);
    return 0;
}
"#;

const SERIAL_LOOP: &str = "depends on the number of threads";

/// Builds a program serially and in parallel. Returns the folder and the compiler's output.
fn build(name: &str, source: &str, flags: &str) -> (PathBuf, String) {
    let at = folder(name);
    write(&at, "it.c", &(HEAD.to_string() + source));
    accepts(&at, &format!("cc -O2 {flags} it.c -o serial -lm"));
    let command = format!("gradus cc -O2 -g -fopenmp --report=full {flags} it.c -o parallel -lm");
    let said = shell(&at, &command);
    (at, text(&said.stdout) + &text(&said.stderr))
}

/// Checks that the parallel program prints the serial output, with any number of workers.
fn is_the_same(at: &Path, counts: &[&str]) {
    for count in counts {
        let serial = run(at, "serial", count, 1, false);
        for workers in [1, 2, 4] {
            for force in [false, true] {
                let parallel = run(at, "parallel", count, workers, force);
                assert_eq!(serial, parallel, "{count}, {workers}, {force}");
            }
        }
    }
}

#[test]
fn local_answers_are_worker_count() {
    let (at, said) = build("told_mesh", MESH, "");
    assert!(!said.contains(SERIAL_LOOP), "{said}");
    let source = HEAD.to_string() + MESH;
    for marker in ["// The loop that asks.", "// The loop after."] {
        let before = source.lines().take_while(|line| !line.contains(marker));
        let line = before.count() + 3;
        let parallel = format!("parallel in the reverse pass: the loop in line {line};");
        assert!(said.contains(&parallel), "{parallel} {said}");
    }
    is_the_same(&at, &["300", "20000"]);
    accepts(
        &at,
        "cc -O1 -g -fopenmp -fsanitize=thread it.c -o watched -lm",
    );
    run(&at, "watched", "300", 4, true);
}

/// Loops test the number of threads at their start, unless a region remains with a single thread in the
/// derivative.
#[test]
fn leaked_answers_serialize_loops() {
    let ways = [
        "RETURNED", "STORED", "BRANCHED", "REPEATED", "FLOAT", "COUNTED", "SIZED", "PASSED",
        "CHOSEN", "GUARDING", "ADDED", "REDUCED", "TABLE", "INSIDE",
    ];
    for way in ways {
        let name = format!("told_{}", way.to_lowercase());
        let (at, said) = build(&name, LEAKS, &format!("-D{way}"));
        let is_serial = way == "INSIDE";
        assert_eq!(said.contains(SERIAL_LOOP), is_serial, "{way}: {said}");
        let parallel = said.contains("parallel in the reverse pass");
        assert_eq!(parallel, !is_serial, "{way}: {said}");
        is_the_same(&at, &["3000"]);
    }
}

#[test]
fn per_rank_results_with_one_thread() {
    for way in ["GUARDED", "PLACES", "UNROLLED", "CALLED", "ASKING"] {
        let name = format!("told_{}", way.to_lowercase());
        let (at, said) = build(&name, MEETING, &format!("-D{way}"));
        assert!(!said.contains(SERIAL_LOOP), "{way}: {said}");
        is_the_same(&at, &["300"]);
    }
}

/// Regions lowered to loops over threads have all threads, for any code that counts threads; a region that
/// stays a team has a single thread in the derivative.
#[test]
fn opaque_queries_right_or_refused() {
    let source = HEAD.to_string() + MEETING;
    let line = |text: &str| {
        let lines = source.lines();
        lines.take_while(|line| !line.contains(text)).count() + 1
    };
    for (way, message) in [
        ("POINTED", "takes the address of `omp_get_max_threads`"),
        ("UNSEEN", "this unknown function"),
    ] {
        let at = folder(&format!("told_{}", way.to_lowercase()));
        write(&at, "it.c", &source);
        let other =
            HEAD.to_string() + "int number_of_threads(void) { return omp_get_max_threads(); }";
        write(&at, "other.c", &other);
        accepts(&at, &format!("cc -O2 -D{way} it.c other.c -o serial -lm"));
        accepts(&at, "cc -O2 -fopenmp -c other.c -o other.o");
        let build = format!("cc -O2 -g -fopenmp -D{way} it.c other.o -o parallel -lm");
        accepts(&at, &build);
        is_the_same(&at, &["300"]);
        let error = refuses(&at, &format!("{build} -DFENCED"), "GRD0011");
        assert!(error.contains(message), "{error}");
        if way == "UNSEEN" {
            let place = format!("it.c:{}:", line("int threads = THREADS;"));
            assert!(error.contains(&place), "{place} {error}");
        }
    }
}

/// If other code knows the marks, marks of a run with all threads may also be present.
#[test]
fn counted_marks_one_rank_or_refused() {
    for way in ["COUNTED", "NUMBERED"] {
        let name = format!("told_marks_{}", way.to_lowercase());
        let (at, said) = build(&name, MARKED, &format!("-D{way}"));
        assert!(said.contains(SERIAL_LOOP), "{way}: {said}");
        is_the_same(&at, &["3000"]);
    }
    let at = folder("told_marks_known");
    write(&at, "it.c", &(HEAD.to_string() + MARKED));
    let error = refuses(&at, "cc -O2 -g -fopenmp -DKNOWN it.c -o it -lm", "GRD0011");
    assert!(error.contains("writes a separate location"), "{error}");
}

#[test]
fn default_thread_request_is_parallel() {
    let (at, said) = build("told_asked_for", ASKED_FOR, "");
    assert!(!said.contains(SERIAL_LOOP), "{said}");
    is_the_same(&at, &["300", "20000"]);
}

#[test]
fn callers_with_one_thread_answer() {
    let (at, _) = build("told_beside", BESIDE, "");
    is_the_same(&at, &["300"]);
}

/// A region in a function called by another region: a single thread there, and all threads elsewhere.
const NESTED: &str = "
#include <omp.h>
#include <stdio.h>
extern void *__enzyme_autodiff(void *, ...);
extern int enzyme_dup;
#ifndef NUMBER
#define NUMBER
#endif
static void inner(const double *x, double *y) {
#pragma omp parallel NUMBER
  {
    int rank = omp_get_thread_num(), ranks = omp_get_num_threads();
    y[rank] = x[rank] * x[rank] * ranks;
  }
}
static void outer(const double *x, double *y) {
#if defined SINGLE
#pragma omp parallel
#pragma omp single
  inner(x, y);
#elif defined LOOP
#pragma omp parallel for
  for (int i = 0; i < 2; i++) inner(x + 2 * i, y + 2 * i);
#else
  inner(x, y);
#endif
}
int main(void) {
  double x[4] = {1, 2, 3, 4}, dx[4] = {0}, y[4] = {0}, dy[4] = {1, 1, 1, 1}, sum = 0, slope = 0;
  outer(x, y);
  for (int i = 0; i < 4; i++) sum += y[i];
  __enzyme_autodiff((void *)outer, enzyme_dup, x, dx, enzyme_dup, y, dy);
  for (int i = 0; i < 4; i++) slope += x[i] * dx[i] / 2;
  printf(\"%d\\n\", sum == slope);
}
";

#[test]
fn nested_regions_one_rank_or_refused() {
    let at = folder("told_nested");
    write(&at, "it.c", NESTED);
    let line = NESTED
        .lines()
        .take_while(|line| !line.contains("parallel NUMBER"));
    let place = format!("it.c:{}:", line.count() + 1);
    for way in ["SINGLE", "LOOP"] {
        let build = format!("cc -O2 -g -fopenmp -D{way} it.c -o parallel");
        accepts(&at, &build);
        assert_eq!(run(&at, "parallel", "", 4, false), "1\n", "{way}");
        let error = refuses(&at, &format!("{build} -DNUMBER=num_threads(4)"), "GRD0011");
        assert!(error.contains(&place), "{error}");
    }
    accepts(
        &at,
        "cc -O2 -g -fopenmp -DNUMBER=num_threads(4) it.c -o parallel",
    );
    assert_eq!(run(&at, "parallel", "", 4, false), "1\n");
}
