//! Members of integer types that hold parts of numbers.

use crate::support::{folder, refuses, write};

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// Members of integer types hold the parts of a number: copied member by member, the number has no shadow.
#[test]
fn parts_of_numbers_in_members() {
    let at = folder("parts_of_numbers_in_members");
    let programs = [
        "struct parts { char a, b, c, d; float g; };
        __attribute__((noinline)) static void copy(struct parts *p, const struct parts *q) {
            p->a = q->a; p->b = q->b; p->c = q->c; p->d = q->d; p->g = q->g;
        }",
        "struct parts { short a, b; float g; };
        __attribute__((noinline)) static void copy(struct parts *p, const struct parts *q) {
            p->a = q->a; p->b = q->b; p->g = q->g;
        }",
    ];
    let rest = "double f(double *x, int n) {
            struct parts *p = malloc(8 * n), *q = malloc(8 * n);
            double r = 0;
            for (int i = 0; i < n; i++) { float t = (float)x[i] * 2; memcpy(&p[i].a, &t, 4); p[i].g = t * t; }
            for (int i = 0; i < n; i++) copy(q + i, p + n - 1 - i);
            for (int i = 0; i < n; i++) { float t; memcpy(&t, &q[i].a, 4); r += t * q[i].g * (i + 1); }
            free(p); free(q);
            return r;
        }";
    for program in programs {
        let head = "#include <stdlib.h>\n#include <string.h>\n";
        write(&at, "p.c", &format!("{head}{program}\n{rest}\n"));
        for level in LEVELS {
            let command = format!("check p.c -f f --arg n=5 --arg x=rand(n) -- {level}");
            refuses(&at, &command, "GRD0008");
        }
    }
}
