//! Structures with pointers that the caller owns, and addresses in integers.

use crate::support::{accepts, folder, refuses, succeeds, write};
use std::process::Command;

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// The program compares the gradient with differences.
#[test]
fn a_network_of_nodes() {
    let at = folder("caller_structures");
    write(&at, "p.c", include_str!("caller_structures.c"));
    for level in LEVELS {
        accepts(&at, &format!("cc {level} p.c -o p -lm"));
        succeeds(Command::new("./p").current_dir(&at));
    }
}

/// A program adds to an address in a variable of an integer type, and reads the result as a pointer.
#[test]
fn stored_sums_of_addresses() {
    let at = folder("stored_sums_of_addresses");
    let programs = [
        "struct place { uint64_t start; double *now; double values[4]; };
        __attribute__((noinline)) static void step(struct place *s, long i) {
            uint64_t next = s->start + 8 * i;
            memcpy(&s->now, &next, 8);
        }
        double f(double *x, int n) {
            struct place *s = malloc(sizeof *s);
            double r = 0, *y = malloc(8 * n);
            for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
            memcpy(&s->start, &y, 8);
            for (int i = 0; i < n; i++) { step(s, i); r += *s->now * (i + 1); }
            free(y); free(s);
            return r;
        }",
        "struct node { double v; struct node *next; };
        __attribute__((noinline)) static void move(uint64_t *w, int n, uint64_t by) {
            for (int i = 0; i < n; i++) if (w[2 * i + 1]) w[2 * i + 1] += by;
        }
        double f(double *x, int n) {
            struct node *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *a);
            double r = 0, w = 1;
            for (int i = 0; i < n; i++) { a[i].v = x[i] * x[i]; a[i].next = i + 1 < n ? a + i + 1 : 0; }
            memcpy(b, a, n * sizeof *a);
            move((uint64_t *)b, n, (uint64_t)b - (uint64_t)a);
            for (struct node *p = b; p; p = p->next) { r += p->v * w; w *= 2; }
            free(a); free(b);
            return r;
        }",
        "double f(double *x, int n) {
            uint64_t *w = malloc(8 * n);
            double r = 0, *y = malloc(8 * n);
            for (int i = 0; i < n; i++) { double *q = y + i; y[i] = x[i] * x[i]; memcpy(w + i, &q, 8); }
            for (int k = 0; k < 20; k++) {
                int i = k * 7 % n, j = k * 5 % n;
                uint64_t t = w[i] + 1; w[i] = w[j]; w[j] = t - 1;
            }
            for (int i = 0; i < n; i++) { double *q; memcpy(&q, w + i, 8); r += *q * (i + 1); }
            free(y); free(w);
            return r;
        }",
    ];
    let head = "#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n";
    for program in programs {
        write(&at, "p.c", &format!("{head}{program}\n"));
        for level in LEVELS {
            let command = format!("check p.c -f f --arg n=5 --arg x=rand(n) -- {level}");
            refuses(&at, &command, "GRD0006");
        }
    }
}

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
