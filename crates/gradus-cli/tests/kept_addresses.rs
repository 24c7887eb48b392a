//! Pointers stored in blocks reached from global variables. Addresses that are only stored need no shadows;
//! addresses that are loaded again are refused. A global's pointer without a shadow ends the program with
//! its line.

use crate::support::{accepts, folder, refuses, succeeds, text, write};
use std::path::Path;
use std::process::{Command, Output};

/// The declarations shared by the programs.
const ASKED: &str = "#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
#ifdef __cplusplus
template <class R, class... T> R __enzyme_fwddiff(T...);
template <class R, class... T> R __enzyme_autodiff(T...);
#define ON(f) __enzyme_fwddiff<double>((void *)f, enzyme_dup, x, dx, enzyme_const, 3)
#define BACK(f) __enzyme_autodiff<void>((void *)f, enzyme_dup, x, dx, enzyme_const, 3)
#else
double __enzyme_fwddiff(void *, ...);
void __enzyme_autodiff(void *, ...);
#define ON(f) __enzyme_fwddiff((void *)f, enzyme_dup, x, dx, enzyme_const, 3)
#define BACK(f) __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, 3)
#endif
#define SUM(r) double r = 0; for (int i = 0; i < n; i++) r += x[i] * x[i]
/* Calls without derivatives come before those with. */
#define SHOW(f) do { double x[3] = {1, 2, 3}, dx[3] = {1, 0, 0}; f(x, 3); f(x, 3); double t = ON(f); f(x, 3); \\
    dx[0] = 0; BACK(f); f(x, 3); BACK(f); printf(\"%g %g %g %g\\n\", t, dx[0], dx[1], dx[2]); } while (0)
";

/// Blocks allocated once, growing blocks, structures, nodes; and separate memory that is written.
const NOTED: &str = "
static double **seen; static int used;
__attribute__((noinline)) static double made_once(double *x, int n) {
    if (!seen) seen = malloc(64 * sizeof *seen);
    seen[used++ & 63] = x;
    SUM(r); return r;
}
static double **list; static size_t room, length;
static void note(double *p) {
    if (length == room) {
        room = room ? 2 * room : 1;
        list = realloc(list, room * sizeof *list);
    }
    list[length++] = p;
}
static double grown(double *x, int n) {
    double y[3];
    note(x); note(y);
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
    return y[0] + y[1] + y[2];
}
static struct entry { double *p; int n; struct entry *before; } *entries; static int filled;
static double structures(double *x, int n) {
    if (!entries) entries = calloc(64, sizeof *entries);
    entries[filled].p = x; entries[filled].n = n;
    entries[filled].before = filled ? &entries[filled - 1] : 0;
    filled = (filled + 1) & 63;
    SUM(r); return r;
}
static struct node { struct node *next; const double *p; } *head;
static double nodes(const double *x, int n) {
    struct node *e = malloc(sizeof *e);
    e->p = x; e->next = head; head = e;
    if (e->next && e->next->next) { free(e->next->next); e->next->next = 0; }
    SUM(r); return r;
}
int main(void) { SHOW(made_once); SHOW(grown); SHOW(structures); SHOW(nodes); return 0; }
";

/// Checks the output of a program at each level, with and without debug information, built by `compiler`.
fn prints(folder: &Path, compiler: &str, file: &str, expected: &str) {
    for level in 0..=3 {
        for debug in ["", "-g"] {
            accepts(folder, &format!("{compiler} -O{level} {debug} {file} -o p"));
            let said = text(&succeeds(Command::new("./p").current_dir(folder)).stdout);
            assert_eq!(said, expected, "-O{level} {debug}");
        }
    }
}

#[test]
fn stored_addresses_need_no_shadow() {
    let at = folder("noted_addresses");
    write(&at, "p.c", &format!("{ASKED}{NOTED}"));
    prints(&at, "cc", "p.c", &"2 4 8 12\n".repeat(4));
}

#[test]
fn static_vector_stores_addresses() {
    let at = folder("noted_in_vectors");
    let program = "#include <vector>
        static std::vector<const double *> seen;
        __attribute__((noinline)) static double f(const double *x, int n) { seen.push_back(x); SUM(r); return r; }
        int main() { SHOW(f); }";
    write(&at, "p.cpp", &format!("{ASKED}{program}"));
    prints(&at, "c++", "p.cpp", "2 4 8 12\n");
}

/// Checks the diagnostic at every level, with and without debug information, in both modes.
#[test]
fn loaded_addresses_are_refused() {
    let at = folder("read_back_addresses");
    let cases = [
        "static double **seen; static int used;
         static double f(double *x, int n) {
             if (!seen) seen = malloc(64 * sizeof *seen);
             seen[used++ & 63] = x;
             double r = 0;
             for (int i = 0; i < n; i++) r += x[i] * seen[0][i];
             return r; }",
        "static struct node { struct node *next; double *p; } *head;
         static double f(double *x, int n) {
             struct node *e = malloc(sizeof *e);
             e->p = x; e->next = head; head = e;
             double r = 0;
             for (e = head; e; e = e->next) for (int i = 0; i < n; i++) r += x[i] * e->p[i];
             return r; }",
    ];
    let main = ["ON(f)", "BACK(f)"].map(|ask| {
        format!("int main(void) {{ double x[3] = {{1, 2, 3}}, dx[3] = {{1}}; f(x, 3); {ask}; return 0; }}")
    });
    for case in cases {
        for main in &main {
            write(&at, "p.c", &format!("{ASKED}{case}\n{main}"));
            for level in 0..=3 {
                for debug in ["", "-g"] {
                    let said = refuses(&at, &format!("cc -O{level} {debug} -c p.c"), "GRD0033");
                    assert!(said.contains("`seen`") || said.contains("`head`"), "{said}");
                }
            }
        }
    }
}

fn ran(folder: &Path) -> Output {
    let mut command = Command::new("timeout");
    command.args(["20", "./p"]).current_dir(folder);
    command.output().expect("it starts")
}

/// An array of pointers in a static variable has a shadow; a pointer stored by calls without derivatives
/// has none.
#[test]
fn missing_shadow_aborts_with_line() {
    let at = folder("missing_shadows");
    let program = "static double *seen[8]; static int used;
        __attribute__((noinline)) static double f(double *x, int n) {
            seen[used++ & 7] = x;
            double r = 0;
            for (int i = 0; i < n; i++)
                r += x[i] * seen[0][i]; // line 24
            return r;
        }
        int main(int c, char **v) {
            double x[3] = {1, 2, 3}, dx[3] = {0};
            if (c > 1) f(x, 3);
            BACK(f);
            printf(\"%g %g %g\\n\", dx[0], dx[1], dx[2]);
            return 0;
        }";
    write(&at, "p.c", &format!("{ASKED}{program}"));
    for level in 0..=3 {
        accepts(&at, &format!("cc -O{level} -g p.c -o p"));
        assert_eq!(text(&ran(&at).stdout), "2 4 6\n", "-O{level}");
        let mut command = Command::new("./p");
        let output = command.arg("first").current_dir(&at).output();
        let output = output.expect("it starts");
        let said = text(&output.stderr);
        assert!(
            !output.status.success() && said.contains("p.c:") && said.contains("without a shadow"),
            "-O{level}: {}\n{said}",
            output.status
        );
    }
}

/// A shadow belongs to the pointer with which it was stored: it is used as long as the variable holds that
/// pointer, and not after the program replaced the pointer outside derivatives.
#[test]
fn replaced_pointer_drops_shadow() {
    let at = folder("replaced_pointers");
    let program = "#include <string.h>
        struct row { int n; double *at; long more; };
        static struct row rows[40]; static double *one, *list[300];
        __attribute__((noinline)) static void keep(double *x, int n) {
            for (int k = 1; k < 40; k += 13) rows[k].at = x;
            for (int k = 0; k < 300; k += 7) list[k] = x;
            one = x;
        }
        __attribute__((noinline)) static void move(double *z, int which) {
            if (which == 1) one = z;
            if (which == 2) rows[14].at = z;
            if (which == 3) memcpy(&list[294], &z, sizeof z);
        }
        static double f(double *x, int n) {
            if (n > 3) { keep(x, n); n -= 3; }
            double r = 0;
            for (int i = 0; i < n; i++) r += rows[14].at[i] * one[i] * list[294][i];
            return r;
        }
        int main(int c, char **v) {
            double x[3] = {1, 2, 3}, dx[3] = {1, 1, 1}, z[3] = {1, 1, 1};
            int which = atoi(v[1]);
            double t = __enzyme_fwddiff((void *)f, enzyme_dup, x, dx, enzyme_const, 6);
            double s = ON(f);
            memset(dx, 0, sizeof dx);
            __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, 6);
            BACK(f);
            printf(\"%g %g %g %g %g\\n\", t, s, dx[0], dx[1], dx[2]);
            fflush(stdout);
            if (which) move(z, which);
            if (c > 2) BACK(f); else ON(f);
            printf(\"%g %g %g\\n\", dx[0], dx[1], dx[2]);
            return 0;
        }";
    write(&at, "p.c", &format!("{ASKED}{program}"));
    for level in 0..=3 {
        accepts(&at, &format!("cc -O{level} -g p.c -o p"));
        for (arguments, right) in [("0 back", "9 36 81"), ("0", "6 24 54")] {
            let mut command = Command::new("./p");
            let said = command.args(arguments.split(' ')).current_dir(&at);
            let said = text(&succeeds(said).stdout);
            let expected = format!("42 42 6 24 54\n{right}\n");
            assert_eq!(said, expected, "-O{level} {arguments}");
        }
        for arguments in ["1", "2", "3", "1 back", "2 back", "3 back"] {
            let mut command = Command::new("./p");
            let output = command.args(arguments.split(' ')).current_dir(&at).output();
            let output = output.expect("it starts");
            let said = text(&output.stderr);
            assert!(
                !output.status.success() && said.contains("without a shadow"),
                "-O{level} {arguments}: {}\n{said}{}",
                output.status,
                text(&output.stdout)
            );
        }
    }
}
