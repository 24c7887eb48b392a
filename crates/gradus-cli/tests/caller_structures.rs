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

/// A program adds to addresses in an array of integers, or moves addresses among integers, and reads the results as
/// pointers.
#[test]
fn addresses_in_arrays_of_integers() {
    let at = folder("addresses_in_arrays_of_integers");
    let programs = [
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
        "__attribute__((noinline)) static uint64_t next(uint64_t *s) {
            uint64_t a = s[0], b = s[1];
            s[0] = b; a ^= a << 23; s[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
            return s[1] + b;
        }
        double f(double *x, int n) {
            uint64_t *w = malloc(8 * (n + 2));
            double r = 0, *y = malloc(8 * n);
            w[0] = 1; w[1] = 2;
            for (int i = 0; i < n; i++) { double *q = y + i; y[i] = x[i] * x[i]; memcpy(w + 2 + i, &q, 8); }
            for (int k = 0; k < 20; k++) {
                int i = 2 + next(w) % n, j = 2 + next(w) % n;
                uint64_t t = w[i]; w[i] = w[j]; w[j] = t;
            }
            for (int i = 0; i < n; i++) { double *q; memcpy(&q, w + 2 + i, 8); r += *q * (i + 1); }
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
