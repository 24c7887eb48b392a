//! Blocks allocated by a call and alive after its return. Blocks behind an argument retain their shadows
//! until a later call allocates new blocks. A block left in a global variable is refused, for any release
//! of the previous block.

use crate::support::{accepts, folder, gradus, refuses, succeeds, text, write};
use std::process::Command;

/// A growing workspace behind an argument, and a list whose newest nodes are retained.
const BEHIND_ARGUMENTS: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
struct space { double *d; int room; };
static double grows(const double *x, int n, struct space *w)
{
    if (w->room < n) {
        free(w->d);
        w->d = malloc(n * sizeof *w->d);
        w->room = n;
    }
    double s = 0;
    for (int i = 0; i < n; i++)
        w->d[i] = x[i] * x[i];
    for (int i = 0; i < n; i++)
        s += w->d[i] * w->d[n - 1 - i];
    return s;
}
struct node { struct node *next; double v; };
static double list(const double *x, int n, struct node **h)
{
    double s = 0;
    for (int i = 0; i < n; i++) {
        struct node *e = malloc(sizeof *e);
        e->v = x[i] * x[i];
        e->next = *h;
        *h = e;
        if (e->next && e->next->next && e->next->next->next) {
            free(e->next->next->next);
            e->next->next->next = 0;
        }
        if (i >= 2)
            s += e->v * e->next->v * e->next->next->v;
    }
    return s;
}
int main(void)
{
    enum { N = 9 };
    double x[N], dx[N], dy[N];
    struct space w = { 0 }, dw = { 0 }, v = { 0 };
    struct node *h = 0, *dh = 0, *g = 0;
    for (int n = 3; n <= N; n += 3) {
        for (int i = 0; i < n; i++)
            x[i] = 0.3 + 0.1 * i, dx[i] = dy[i] = 0;
        __enzyme_autodiff((void *)grows, enzyme_dup, x, dx, enzyme_const, n, enzyme_dup, &w, &dw);
        __enzyme_autodiff((void *)list, enzyme_dup, x, dy, enzyme_const, n, enzyme_dup, &h, &dh);
        double worst = 0;
        for (int i = 0; i < n; i++) {
            double at = x[i], step = 1e-6;
            x[i] = at + step;
            double up = grows(x, n, &v), up_list = list(x, n, &g);
            x[i] = at - step;
            double down = grows(x, n, &v), down_list = list(x, n, &g);
            x[i] = at;
            worst = fmax(worst, fabs((up - down) / (2 * step) - dx[i]));
            worst = fmax(worst, fabs((up_list - down_list) / (2 * step) - dy[i]));
        }
        puts(worst < 1e-6 ? "right" : "wrong");
    }
}
"#;

#[test]
fn persistent_block_keeps_shadow() {
    let folder = folder("persistent_blocks");
    write(&folder, "p.c", BEHIND_ARGUMENTS);
    for level in 0..=3 {
        accepts(&folder, &format!("cc -O{level} p.c -o p -lm"));
        let run = succeeds(
            Command::new("timeout")
                .args(["20", "./p"])
                .current_dir(&folder),
        );
        assert_eq!(text(&run.stdout), "right\nright\nright\n", "-O{level}");
    }
}

const GLOBAL: &str = r#"
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
static double *work, **rows;
static int room;
#ifdef ROTATES
static double *ring[3];
static double f(const double *x, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) {
        double *w = malloc(2 * sizeof *w);
        ring[i % 3] = w;
        w[0] = x[i] * x[i];
        s += w[0] * (ring[(i + 2) % 3] ? ring[(i + 2) % 3][0] : 1);
        free(ring[(i + 1) % 3]);
        ring[(i + 1) % 3] = 0;
    }
    return s;
}
#else
#ifdef DROPS
static void make(int n)
{
    work = malloc(n * sizeof *work);
    rows = malloc(n * sizeof *rows);
    for (int i = 0; i < n; i++)
        rows[i] = malloc(sizeof **rows);
}
static void drop(int n)
{
    if (work)
        free(work);
    for (int i = 0; i < n; i++)
        free(rows[i]);
    free(rows);
}
#else
static void make(int n)
{
    static double *row;
    if (room >= n)
        return;
#ifdef REALLOCATES
    work = realloc(work, n * sizeof *work);
#else
    free(work);
    work = malloc(n * sizeof *work);
#endif
    room = n;
    row = row ? row : malloc(n * sizeof *row);
    rows = malloc(n * sizeof *rows);
    for (int i = 0; i < n; i++)
        rows[i] = row + i;
}
static void drop(int n) {}
#endif
static double f(const double *x, int n)
{
    make(n);
    double s = 0;
    for (int i = 0; i < n; i++) {
        work[i] = x[i] * x[i];
        *rows[i] = x[i] * work[i];
    }
    for (int i = 0; i < n; i++)
        s += work[i] * x[n - 1 - i] + *rows[i];
    drop(n);
    return s;
}
#endif
int main(void)
{
    double x[4] = { 1, 2, 3, 4 }, d[4] = { 0 };
    for (int k = 0; k < 3; k++)
        __enzyme_autodiff((void *)f, enzyme_dup, x, d, enzyme_const, 4);
    printf("%g %g\n", d[0], d[3]);
}
"#;

#[test]
fn blocks_left_in_globals_are_refused() {
    let folder = folder("kept_in_globals");
    write(&folder, "p.c", GLOBAL);
    for level in 0..=3 {
        refuses(&folder, &format!("cc -O{level} p.c -o p"), "GRD0033");
        refuses(
            &folder,
            &format!("cc -O{level} -DREALLOCATES p.c -o p"),
            "GRD0033",
        );
        refuses(
            &folder,
            &format!("cc -O{level} -DROTATES p.c -o p"),
            "GRD0033",
        );
        accepts(&folder, &format!("cc -O{level} -DDROPS p.c -o p"));
        let run = succeeds(&mut Command::new(folder.join("p")));
        assert_eq!(text(&run.stdout), "81 171\n", "-O{level}");
    }
}

/// The loop around the free runs `m` times, and the loop around the allocation `n` times.
const FREED_IN_LOOP: &str = r#"
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
static double *rows[8];
static double f(const double *x, int n, int m)
{
    double s = 0;
    for (int i = 0; i < n; i++) rows[i] = malloc(sizeof **rows);
    for (int i = 0; i < n; i++) *rows[i] = x[i] * x[i];
    for (int i = 0; i < n; i++) s += *rows[i] * x[n - 1 - i];
    for (int i = 0; i < COUNT; i++) free(rows[i]);
    return s;
}
int main(void)
{
    double x[4] = { 1, 2, 3, 4 }, d[4] = { 0 };
    __enzyme_autodiff((void *)f, enzyme_dup, x, d, enzyme_const, 4, enzyme_const, 4);
    printf("%g %g\n", d[0], d[3]);
}
"#;

#[test]
fn free_in_a_loop_that_may_not_run_is_no_free() {
    let folder = folder("freed_in_loop");
    write(&folder, "p.c", FREED_IN_LOOP);
    for level in 0..=3 {
        let compile = |count: &str| format!("cc -O{level} -DCOUNT={count} p.c -o p");
        refuses(&folder, &compile("m"), "GRD0033");
        accepts(&folder, &compile("n"));
        let run = succeeds(&mut Command::new(folder.join("p")));
        assert_eq!(text(&run.stdout), "24 9\n", "-O{level}");
    }
}

/// A cache of the last result keeps a number whose derivative is lost; memory for intermediate results does not.
#[test]
fn numbers_of_earlier_calls_warn() {
    let folder = folder("kept_values");
    let source = "#include <math.h>
static double work[100], total, table[8];
static int known[8];
static double law(double v)
{
    static double last_v = -1, last_r;
    if (v != last_v) {
        last_v = v;
        last_r = sin(v);
    }
    return last_r; // law
}
double cached(const double *x, int n) { return law(x[0]) * x[n - 1]; }
static double weight(int i, double v)
{
    if (!known[i]) {
        table[i] = sin(v * (i + 1));
        known[i] = 1;
    }
    return table[i]; // weight
}
double tabled(const double *x, int n) { return weight(n & 7, x[0]) * x[n - 1]; }
static void add(double v) { total += v; }
double reset(const double *x, int n)
{
    total = 0;
    for (int i = 0; i < n; i++)
        add(x[i] * x[i]);
    return total;
}
double scratch(const double *x, int n)
{
    for (int i = 0; i < n; i++)
        work[i] = x[i] * x[i];
    double s = n > 3 ? work[3] : work[0];
    for (int i = 0; i < n; i++)
        s += work[i] * x[i];
    if (s > 1)
        total = s;
    else
        total = 2 * s;
    return total;
}
";
    write(&folder, "kept.c", source);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        for (function, line) in [
            ("cached", Some("law")),
            ("tabled", Some("weight")),
            ("reset", None),
            ("scratch", None),
        ] {
            let command = format!("grad kept.c -f {function} -o kept.o -- {level}");
            let said = text(&gradus(&folder, &command).stderr);
            let place = line.and_then(|line| {
                let mark = format!("// {line}");
                source.lines().position(|text| text.ends_with(&mark))
            });
            assert_eq!(said.contains("warning[GRD0033]"), place.is_some(), "{said}");
            let named = place.is_none_or(|place| said.contains(&format!("kept.c:{}:", place + 1)));
            assert!(named || level != "-O0", "{said}");
        }
    }
}
