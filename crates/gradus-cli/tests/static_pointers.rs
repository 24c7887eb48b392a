//! Pointers in global variables that lead to other variables: from the start, as tables that hold other words beside;
//! set by functions that are not differentiated; swapped in calls without derivatives.

mod support;

use std::process::{Command, Output};
use support::{accepts, folder, gradus, refuses, succeeds, text, write};

/// What programs share; `f` is theirs.
const ASKED: &str = r#"
#include <stdio.h>
extern int enzyme_const, enzyme_out, enzyme_dup;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
#define BACK(x, k) __enzyme_autodiff((void *)f, enzyme_out, (double)(x), enzyme_const, k)
#define ON(x, k) __enzyme_fwddiff((void *)f, enzyme_dup, (double)(x), 1.0, enzyme_const, k)
"#;

fn program(name: &str, source: &str) -> std::path::PathBuf {
    let folder = folder(name);
    write(&folder, "p.c", &format!("{ASKED}{source}"));
    folder
}

fn ran(folder: &std::path::Path) -> Output {
    let mut command = Command::new("timeout");
    command.args(["20", "./p"]).current_dir(folder);
    command.output().expect("it starts")
}

#[test]
fn a_table_of_addresses_may_hold_numbers_too() {
    let folder = program(
        "static_tables",
        "static double acc[2];
         static void *table[3] = { (void *)-16, acc, acc + 1 };
         static double f(double x, int k) { double *p = table[k]; *p = x * x; return acc[k - 1]; }
         int main(int c, char **v) {
             if (c > 5) table[0] = v;
             for (int k = 1; k < 3; k++) printf(\"%g %g\\n\", BACK(3, k), ON(3, k));
             return 0;
         }",
    );
    for level in 0..=3 {
        accepts(&folder, &format!("cc -O{level} p.c -o p"));
        let said = text(&succeeds(Command::new("./p").current_dir(&folder)).stdout);
        assert_eq!(said, "6 6\n6 6\n", "-O{level}");
    }
}

#[test]
fn what_is_too_long_to_be_read_may_lead_anywhere() {
    let folder = program(
        "static_long_tables",
        "static double acc[2];
         static struct { char more[17 << 20]; double *p[2]; } table = { .more = { 1 }, .p = { acc, acc + 1 } };
         static double f(double x, int k) { double *p = table.p[k - 1]; *p = x * x; return acc[k - 1]; }
         int main(int c, char **v) {
             if (c > 5) table.p[1] = 0;
             for (int k = 1; k < 3; k++) printf(\"%g %g\\n\", BACK(3, k), ON(3, k));
             return 0;
         }",
    );
    let said = refuses(&folder, "cc -O2 -c p.c", "GRD0033");
    assert!(said.contains("`table`"), "{said}");
}

/// Where another function puts the address of a variable into a pointer variable, the two are one memory.
#[test]
fn a_variable_that_a_pointer_may_lead_to_is_not_used_by_name() {
    let cases = [
        "double acc, *p; void set(void) { p = &acc; }
         static double f(double x, int k) { *p = x * x; return acc; }",
        "double acc, *p; void set(void) { p = &acc; }
         static double f(double x, int k) { acc = x * x; return *p; }",
        "double a, acc, *p = &a; void set(void) { p = &acc; }
         static double f(double x, int k) { *p = x * x; return acc; }",
        "static double acc[4]; struct box { double *q; int n; }; static struct box box, *p;
         static void keep(struct box *b, double *v) { b->q = v; b->n = 4; }
         void set(void) { keep(&box, acc); p = &box; }
         static double f(double x, int k) { for (int i = 0; i < p->n; i++) p->q[i] = x * x; return acc[2]; }",
    ];
    for (number, case) in cases.iter().enumerate() {
        let main = "int main(void) { set(); printf(\"%g\\n\", BACK(3, 1)); return 0; }";
        let folder = program(&format!("static_named{number}"), &format!("{case}\n{main}"));
        for level in [0, 2] {
            let said = refuses(&folder, &format!("cc -O{level} -c p.c"), "GRD0033");
            assert!(said.contains("`p` may lead to `acc`"), "{said}");
        }
    }
    let alike = "double acc, *p; void set(void) { p = &acc; }
                 static double f(double x, int k) { *p = x * x; return *p; }
                 int main(void) { set(); printf(\"%g %g\\n\", BACK(3, 1), ON(3, 1)); return 0; }";
    let folder = program("static_one_way", alike);
    accepts(&folder, "cc -O2 p.c -o p");
    assert_eq!(text(&ran(&folder).stdout), "6 6\n");
}

/// Two buffers change places in each call, with derivatives or without, and are used by name, too.
#[test]
fn shadows_of_swapped_pointers_go_along() {
    let folder = program(
        "static_swapped",
        "static double a[3], b[3], *now = a, *next = b;
         static double f(double x, int k) {
             for (int i = 0; i < 3; i++) now[i] = x * i, next[i] = x * x;
             double *t = now; now = next; next = t;
             return a[2] + 10 * b[1];
         }
         int main(void) {
             for (int i = 0; i < 4; i++) {
                 printf(\"%g \", BACK(3, 1));
                 printf(\"%g \", ON(3, 1));
                 for (int k = 0; k < i; k++) f(3, 1);
             }
             return 0;
         }",
    );
    for level in 0..=3 {
        accepts(&folder, &format!("cc -O{level} p.c -o p"));
        assert_eq!(
            text(&ran(&folder).stdout),
            "62 16 62 16 16 62 16 62 ",
            "-O{level}"
        );
    }
}

#[test]
fn a_pointer_that_leads_elsewhere_ends_the_program() {
    let folder = program(
        "static_elsewhere",
        "static double a, b, *p = &a;
         void elsewhere(void) { p = &b; }
         static double f(double x, int k) { a = x * x; *p = 1; return a; }
         int main(void) {
             printf(\"%g %g\\n\", BACK(3, 1), ON(3, 1));
             fflush(stdout);
             elsewhere();
             printf(\"%g\\n\", BACK(3, 1));
             return 0;
         }",
    );
    let built = gradus(&folder, "cc -O2 p.c -o p");
    assert!(built.status.success(), "{}", text(&built.stderr));
    let run = ran(&folder);
    assert_eq!(text(&run.stdout), "0 0\n");
    let said = text(&run.stderr);
    assert!(
        said.contains("`p` leads to memory without a shadow"),
        "{said}"
    );
}
