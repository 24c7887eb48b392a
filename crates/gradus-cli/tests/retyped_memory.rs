//! Gradients of programs that reuse memory with another type, e.g. blocks from a pool, as C allows. The
//! reverse pass reads the original contents, not the later contents.

use crate::support::{accepts, folder, gradus, succeeds, text, write};
use std::process::Command;

/// Every function fills an array in the pool, uses it, and overwrites it with other data.
const PROGRAM: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
#define APART __attribute__((noinline))

typedef struct { char *base; size_t used; } Pool;
static void *take(Pool *p, size_t bytes)
{
    void *at = p->base + p->used;
    p->used += (bytes + 15) / 16 * 16;
    return at;
}

static double integers(const double *x, int n, Pool *p)
{
    int *list = (int *)p->base;
    for (int i = 0; i < n; i++)
        list[i] = i * 7 % n;
    double s = 0;
    for (int i = 0; i < n; i++)
        s += x[list[i]] * x[i] * x[i];
    double *scale = (double *)p->base;
    for (int i = 0; i < n; i++)
        scale[i] = i * 0.5 + 1;
    for (int i = 0; i < n; i++)
        s += scale[n - 1 - i] * x[i] * x[i];
    return s;
}
static double numbers(const double *x, int n, Pool *p)
{
    double *scale = (double *)p->base;
    for (int i = 0; i < n; i++)
        scale[i] = sin(i) + 2;
    double s = 0;
    for (int i = 0; i < n; i++)
        s += x[i] * x[i] * scale[n - 1 - i];
    long *list = (long *)p->base;
    for (int i = 0; i < n; i++)
        list[i] = n - 1 - i;
    for (int i = 0; i < n; i++)
        s += x[list[i]] * x[i];
    return s;
}
static double widths(const double *x, int n, Pool *p)
{
    short *list = (short *)p->base;
    for (int i = 0; i < n; i++)
        list[i] = i * 3 % n;
    double s = 0;
    for (int i = 0; i < n; i++)
        s += x[list[i]] * x[i] * x[i];
    long *other = (long *)p->base;
    for (int i = 0; i < n; i++)
        other[i] = i * 5L % n;
    for (int i = 0; i < n; i++)
        s += x[other[i]] * x[i];
    return s;
}
struct edge { int from, to; };
struct face { long corner; int left; };
static double structures(const double *x, int n, Pool *p)
{
    struct edge *edges = (struct edge *)p->base;
    for (int i = 0; i < n; i++)
        edges[i] = (struct edge){ i, i * 7 % n };
    double s = 0;
    for (int i = 0; i < n; i++)
        s += x[edges[i].from] * x[edges[i].to] * x[i];
    struct face *faces = (struct face *)p->base;
    for (int i = 0; i < n; i++)
        faces[i] = (struct face){ n - 1 - i, i / 2 };
    for (int i = 0; i < n; i++)
        s += x[faces[i].corner] * x[faces[i].left];
    return s;
}
APART static void fill(int *list, int n)
{
    for (int i = 0; i < n; i++)
        list[i] = i * 7 % n;
}
APART static double use(const double *x, const int *list, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++)
        s += x[list[i]] * x[i] * x[i];
    return s;
}
APART static double scaled(const double *x, double *scale, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++)
        scale[i] = i * 0.5 + 1;
    for (int i = 0; i < n; i++)
        s += scale[n - 1 - i] * x[i] * x[i];
    return s;
}
static double functions(const double *x, int n, Pool *p)
{
    fill((int *)p->base, n);
    double s = use(x, (int *)p->base, n);
    return s + scaled(x, (double *)p->base, n);
}
static double stack(const double *x, int n, Pool *p)
{
    double s = 0;
    for (int step = 0; step < 3; step++) {
        p->used = 0;
        int *list = take(p, n * sizeof *list);
        fill(list, n);
        s += use(x, list, n);
        p->used = 0;
        double *scale = take(p, n * sizeof *scale);
        s += scaled(x, scale, n);
    }
    return s;
}
typedef double Function(const double *, int, Pool *);
static void check(const char *name, Function *f, const double *gradient, double *x, int n, Pool *p)
{
    double worst = 0;
    for (int i = 0; i < n; i++) {
        double at = x[i], h = 1e-6;
        x[i] = at + h;
        double up = f(x, n, p);
        x[i] = at - h;
        double down = f(x, n, p);
        x[i] = at;
        worst = fmax(worst, fabs((up - down) / (2 * h) - gradient[i]));
    }
    printf("%s %s\n", name, worst < 1e-6 ? "right" : "wrong");
}
#define CHECK(f) \
    memset(gradient, 0, sizeof gradient); \
    p.used = 0; \
    __enzyme_autodiff((void *)f, enzyme_dup, x, gradient, enzyme_const, n, enzyme_const, &p); \
    check(#f, f, gradient, x, n, &p)
int main(void)
{
    enum { n = 50 };
    double x[n], gradient[n];
    Pool p = { malloc(1 << 16), 0 };
    for (int i = 0; i < n; i++)
        x[i] = 0.3 + 0.01 * i;
    CHECK(integers);
    CHECK(numbers);
    CHECK(widths);
    CHECK(structures);
    CHECK(functions);
    CHECK(stack);
}
"#;

#[test]
fn retyped_pool_memory() {
    let folder = folder("retyped_memory");
    write(&folder, "p.c", PROGRAM);
    for level in 0..=3 {
        accepts(&folder, &format!("cc -O{level} p.c -o p -lm"));
        let run = succeeds(
            Command::new("timeout")
                .args(["20", "./p"])
                .current_dir(&folder),
        );
        let names = [
            "integers",
            "numbers",
            "widths",
            "structures",
            "functions",
            "stack",
        ];
        let expected: String = names.map(|name| format!("{name} right\n")).concat();
        assert_eq!(text(&run.stdout), expected, "-O{level}");
    }
}

/// C++ constructs another object in the memory of the first: in a buffer, a `variant`, or a union.
const OBJECTS: &str = r#"
#include <cmath>
#include <cstdio>
#include <new>
#include <variant>
#include <vector>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

static double variant(const double *x, int n)
{
    double s = 0;
    std::variant<int, double> v;
    for (int i = 0; i < n; i++) {
        v = i * 7 % n;
        s += x[std::get<int>(v)] * x[i] * x[i];
        v = 0.5 * i;
        s += std::get<double>(v) * x[i] * x[i];
    }
    return s;
}
union Word { int i; double d; };
static double words(const double *x, int n)
{
    std::vector<Word> w(n);
    double s = 0;
    for (int i = 0; i < n; i++)
        w[i].i = i * 7 % n;
    for (int i = 0; i < n; i++)
        s += x[w[i].i] * x[i] * x[i];
    for (int i = 0; i < n; i++)
        w[i].d = i * 0.5;
    for (int i = 0; i < n; i++)
        s += w[n - 1 - i].d * x[i] * x[i];
    return s;
}
static double buffer(const double *x, int n)
{
    alignas(16) static char at[8 * 64];
    double s = 0;
    for (int i = 0; i < n; i++)
        new (at + 8 * i) int(i * 7 % n);
    for (int i = 0; i < n; i++)
        s += x[*std::launder((int *)(at + 8 * i))] * x[i] * x[i];
    for (int i = 0; i < n; i++)
        new (at + 8 * i) double(i * 0.5);
    for (int i = 0; i < n; i++)
        s += *std::launder((double *)(at + 8 * i)) * x[i] * x[i];
    return s;
}
typedef double Function(const double *, int);
static void check(const char *name, Function *f, double *gradient, double *x, int n)
{
    double worst = 0;
    for (int i = 0; i < n; i++) {
        double at = x[i], h = 1e-6;
        x[i] = at + h;
        double up = f(x, n);
        x[i] = at - h;
        double down = f(x, n);
        x[i] = at;
        worst = fmax(worst, fabs((up - down) / (2 * h) - gradient[i]));
        gradient[i] = 0;
    }
    printf("%s %s\n", name, worst < 1e-6 ? "right" : "wrong");
}
#define CHECK(f) \
    __enzyme_autodiff((void *)f, enzyme_dup, x, gradient, enzyme_const, n); \
    check(#f, f, gradient, x, n)
int main()
{
    const int n = 50;
    double x[n], gradient[n] = {};
    for (int i = 0; i < n; i++)
        x[i] = 0.3 + 0.01 * i;
    CHECK(variant);
    CHECK(words);
    CHECK(buffer);
}
"#;

#[test]
fn retyped_cplusplus_objects() {
    let folder = folder("reused_memory_objects");
    write(&folder, "p.cc", OBJECTS);
    for level in 0..=3 {
        let command = format!("c++ -std=c++20 -O{level} p.cc -o p -lm");
        accepts(&folder, &command);
        let run = succeeds(
            Command::new("timeout")
                .args(["20", "./p"])
                .current_dir(&folder),
        );
        let names = ["variant", "words", "buffer"];
        let expected: String = names.map(|name| format!("{name} right\n")).concat();
        assert_eq!(text(&run.stdout), expected, "-O{level}");
    }
}

/// A length followed by floats, moved down by the size of both: the second float's location held an integer
/// before. From an alternation alone, type analysis must not conclude an array of structures: the shadow tells the kind
/// of each word.
#[test]
fn length_prefixed_arrays_keep_types() {
    let folder = folder("moved_down");
    let source = "#include <stdlib.h>
        #include <string.h>
        double __enzyme_autodiff(void *, ...);
        extern int enzyme_dup, enzyme_const;
        double f(const double *x, int n) {
            size_t bytes = 8 + n * sizeof(double);
            char *all = calloc(4, bytes);
            *(int *)(all + 16) = n;
            double *d = (double *)(all + 24), *moved = (double *)(all + 8);
            for (int i = 0; i < n; i++) d[i] = x[i] * x[i];
            memmove(all, all + 16, bytes);
            double s = 0;
            for (int i = 0; i < *(int *)all; i++) s += moved[i] * x[i];
            free(all);
            return s;
        }
        int main(void) {
            double x[3] = {1, 2, 3}, d[3] = {0};
            __enzyme_autodiff((void *)f, enzyme_dup, x, d, enzyme_const, 3);
            return d[1] != 12;
        }\n";
    write(&folder, "p.c", source);
    for level in 0..=3 {
        accepts(&folder, &format!("cc -O{level} -g p.c -o p"));
        succeeds(&mut Command::new(folder.join("p")));
    }
}

/// Copies of any length from and to arrays behind a length, partly indexed by the program: elements touched
/// by copies only are moved, too, or the request is refused.
#[test]
fn copy_only_elements_move_or_refused() {
    let folder = folder("only_copied");
    let share = "#include <math.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        double __enzyme_autodiff(void *, ...);
        extern int enzyme_dup, enzyme_const;
        double f(const double *x, int n);
        int main(void) {
            double x[6] = {0.7, 1.3, 0.4, 2.1, 0.9, 1.7}, d[6] = {0}, h = 1e-6;
            __enzyme_autodiff((void *)f, enzyme_dup, x, d, enzyme_const, 6);
            for (int i = 0; i < 6; i++) {
                double at = x[i];
                x[i] = at + h;
                double above = f(x, 6);
                x[i] = at - h;
                double difference = (above - f(x, 6)) / (2 * h);
                x[i] = at;
                if (fabs(difference - d[i]) > 1e-6 * (1 + fabs(difference))) return printf(\"%d: %g %g\\n\", i, d[i], difference);
            }
            return 0;
        }\n";
    let programs = [
        "struct S { long n; double d[]; };
        double f(const double *x, int n) {
            struct S *a = malloc(sizeof *a + n * 8); double y[6], r = 0;
            a->n = n; memcpy(a->d, x, n * 8);
            for (int i = 0; i < n / 3; i++) a->d[3 * i] *= 2;
            memcpy(y, a->d, n * 8);
            for (int i = 0; i < a->n; i++) r += y[i] * y[i] * (i + 1);
            free(a); return r;
        }\n",
        "struct E { double u, v, w; }; struct S { long n; struct E e[]; };
        double f(const double *x, int n) {
            struct S *a = malloc(sizeof *a + n * 8); double y[6], r = 0;
            a->n = n / 3; memcpy(a->e, x, n * 8);
            for (int i = 0; i < a->n; i++) a->e[i].u *= 2;
            memcpy(y, a->e, n * 8);
            for (int i = 0; i < n; i++) r += y[i] * y[i] * (i + 1);
            free(a); return r;
        }\n",
        "struct S { long n; double *p[]; };
        double f(const double *x, int n) {
            double w[6], *q[6], *y[6], r = 0;
            struct S *a = malloc(sizeof *a + n * 8);
            a->n = n;
            for (int i = 0; i < n; i++) w[i] = x[i] * x[i], q[i] = w + i, y[i] = w + 5 - i;
            memcpy(a->p, q, n * 8);
            for (int i = 0; i < n / 3; i++) r += *a->p[3 * i];
            memcpy(y, a->p, a->n * 8);
            for (int i = 0; i < n; i++) r += *y[i] * (i + 1);
            free(a); return r;
        }\n",
        "struct E { double *p, *q; }; struct S { long n; struct E e[]; };
        double f(const double *x, int n) {
            size_t z = sizeof(struct S) + n * 16; double w[6], o[6], r = 0;
            struct E q[6], y[6]; struct S *a = malloc(z), *b = malloc(z);
            a->n = n;
            for (int i = 0; i < n; i++) w[i] = x[i] * x[i], o[i] = x[i], q[i].p = w + i, q[i].q = o + i;
            memcpy(a->e, q, n * 16);
            for (int i = 0; i < n / 3; i++) *a->e[3 * i].p *= 2;
            memcpy(b, a, z); memcpy(y, b->e, n * 16);
            for (int i = 0; i < n; i++) r += *y[i].p * *y[i].q * (i + 1);
            free(a); free(b); return r;
        }\n",
    ];
    for (number, source) in programs.iter().enumerate() {
        write(&folder, "p.c", &format!("{share}{source}"));
        for flags in ["-O0", "-O0 -g", "-O2", "-O2 -g"] {
            let _ = std::fs::remove_file(folder.join("p"));
            let built = gradus(&folder, &format!("cc {flags} p.c -o p -lm"));
            let said = text(&built.stderr);
            if !built.status.success() {
                assert!(said.contains("error[GRD0007]"), "{number} {flags}: {said}");
                continue;
            }
            let run = Command::new("./p").current_dir(&folder).output();
            let run = run.expect("it starts");
            assert!(run.status.success(), "{number} {flags}: {run:?}");
        }
    }
}
