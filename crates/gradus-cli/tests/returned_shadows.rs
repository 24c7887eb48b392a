//! Shadows of returned pointers: the caller reads tangents from the shadow, or adds cotangents before the
//! reverse pass. A result without a shadow is refused.

use crate::support::{accepts, folder, refuses, shell, text, write};

const LEVELS: [&str; 3] = ["-O0", "-O2", "-O3"];

const DECLARATIONS: &str = "#include <gradus.h>
#include <stdio.h>
#include <stdlib.h>
struct both { double *value, *shadow; };
struct taped { void *tape; double *value, *shadow; };
struct both __enzyme_fwddiff_both(void *, ...);
double *__enzyme_fwddiff_shadow(void *, ...);
struct taped __enzyme_augmentfwd_taped(void *, ...);
double *__enzyme_autodiff_shadow(void *, ...);
void __enzyme_reverse(void *, ...);
extern int enzyme_dup, enzyme_const, enzyme_dup_return, enzyme_primal_return, enzyme_const_return;
";

fn prints(test: &str, program: &str, expected: &str) {
    let at = folder(test);
    write(&at, "main.c", &format!("{DECLARATIONS}{program}"));
    for level in LEVELS {
        let said = accepts(&at, &format!("cc {level} -w main.c -o main -lm"));
        assert!(!said.contains("GRD0019"), "{level}: {said}");
        let printed = text(&shell(&at, "./main").stdout);
        assert_eq!(printed, expected, "{level}");
    }
}

fn refused(test: &str, program: &str, word: &str) {
    let at = folder(test);
    write(&at, "main.c", &format!("{DECLARATIONS}{program}"));
    for level in LEVELS {
        let said = refuses(&at, &format!("cc {level} -w main.c -o main -lm"), "GRD0017");
        assert!(said.contains(word), "{level}: {said}");
    }
}

/// The second number does not depend on `x`: the tangent is zero, and the cotangent is unused.
#[test]
fn a_fresh_block_comes_with_its_shadow() {
    prints(
        "returned_fresh",
        "double *f(const double *x) { double *p = malloc(16); p[0] = x[0] * x[0]; p[1] = 1; return p; }
         double *one(const double *x) { double *p = malloc(8); p[0] = 1; return p; }
         int main(void) {
           double x = 3, d = 1, g = 0;
           struct both q = __enzyme_fwddiff_both((void *)f, enzyme_primal_return, enzyme_dup_return, enzyme_dup, &x, &d);
           double *s = __enzyme_fwddiff_shadow((void *)f, enzyme_dup, &x, &d);
           printf(\"%g %g %g %g\\n\", q.value[0], q.shadow[0], q.shadow[1], s[0]);
           free(q.value), free(q.shadow), free(s);
           s = __enzyme_fwddiff_shadow((void *)one, enzyme_dup, &x, &d);
           printf(\"%g\\n\", s[0]);
           struct taped t = __enzyme_augmentfwd_taped((void *)f, enzyme_primal_return, enzyme_dup_return, enzyme_dup, &x, &g);
           printf(\"%g %g %g\\n\", t.value[0], t.shadow[0], t.shadow[1]);
           t.shadow[0] = 10, t.shadow[1] = 5, t.value[0] = -7;
           __enzyme_reverse((void *)f, enzyme_dup_return, enzyme_dup, &x, &g, t.tape);
           printf(\"%g\\n\", g);
           free(t.value), free(t.shadow);
         }\n",
        "9 6 0 6\n0\n9 0 0\n60\n",
    );
}

/// The reverse pass reads values left in the block by the forward pass, although the caller overwrites and
/// frees the block.
#[test]
fn the_caller_may_overwrite_and_free_the_block() {
    prints(
        "returned_overwritten_outside",
        "double *f(const double *x, int n) {
           double *p = malloc(n * 8);
           p[0] = x[0];
           for (int i = 1; i < n; i++) p[i] = p[i - 1] * p[i - 1] * x[i];
           return p;
         }
         int main(void) {
           double x[4] = {1, 2, 3, 0.5}, g[4] = {0}, *s;
           struct taped t = __enzyme_augmentfwd_taped((void *)f, enzyme_primal_return, enzyme_dup_return, enzyme_dup, x, g, enzyme_const, 4);
           for (int i = 0; i < 4; i++) t.value[i] = 100;
           free(t.value);
           t.shadow[3] = 1;
           __enzyme_reverse((void *)f, enzyme_dup_return, enzyme_dup, x, g, enzyme_const, 4, t.tape);
           printf(\"%g %g %g %g\\n\", g[0], g[1], g[2], g[3]);
           s = __enzyme_fwddiff_shadow((void *)f, enzyme_dup, x, (double[4]){1, 0, 0, 0}, enzyme_const, 4);
           printf(\"%g\\n\", s[3]);
         }\n",
        "576 144 48 144\n576\n",
    );
}

/// Blocks of any size, and blocks that point to blocks.
#[test]
fn blocks_behind_a_returned_block_have_shadows() {
    prints(
        "returned_nested",
        "struct row { int n; double *d; };
         struct rows { void *tape; struct row *value, *shadow; };
         struct rows __enzyme_augmentfwd_rows(void *, ...);
         struct row *f(const double *x, int n) {
           struct row *r = malloc(sizeof *r);
           r->n = n;
           r->d = malloc(n * sizeof *r->d);
           for (int i = 0; i < n; i++) r->d[i] = x[i] * x[i] * x[i];
           return r;
         }
         int main(void) {
           enum { N = 40000 };
           double *x = malloc(N * 8), *g = calloc(N, 8);
           for (int i = 0; i < N; i++) x[i] = 1 + i % 3;
           struct rows t = __enzyme_augmentfwd_rows((void *)f, enzyme_primal_return, enzyme_dup_return, enzyme_dup, x, g, enzyme_const, N);
           for (int i = 0; i < N; i++) t.shadow->d[i] = 1;
           __enzyme_reverse((void *)f, enzyme_dup_return, enzyme_dup, x, g, enzyme_const, N, t.tape);
           printf(\"%g %g %g %g\\n\", t.value->d[5], g[0], g[1], g[N - 2]);
           free(t.value->d), free(t.shadow->d), free(t.value), free(t.shadow);
         }\n",
        "27 3 12 27\n",
    );
}

#[test]
fn a_static_array_has_tangents_and_no_cotangents() {
    let array = "static double st[2];
        double *f(const double *x) { st[0] = x[0] * x[0]; return st; }\n";
    prints(
        "returned_static",
        &format!(
            "{array}int main(void) {{ double x = 3, d = 1; double *s = __enzyme_fwddiff_shadow((void *)f, enzyme_dup_return, enzyme_dup, &x, &d); printf(\"%g %g %g\\n\", s[0], s[1], st[0]); }}\n"
        ),
        "6 0 9\n",
    );
    refused(
        "returned_static_split",
        &format!(
            "{array}int main(void) {{ double x = 3, g = 0; struct taped t = __enzyme_augmentfwd_taped((void *)f, enzyme_primal_return, enzyme_dup_return, enzyme_dup, &x, &g); t.shadow[0] = 1; __enzyme_reverse((void *)f, enzyme_dup_return, enzyme_dup, &x, &g, t.tape); return g != 6; }}\n"
        ),
        "`st`",
    );
}

#[test]
fn a_result_without_a_shadow_is_refused() {
    refused(
        "returned_const",
        "double *f(double *x, const double *y) { return *x < *y ? x + 1 : x; }
         int main(void) { double x = 3, y = 1, d = 1; double *s = __enzyme_fwddiff_shadow((void *)f, enzyme_const, &x, enzyme_dup, &y, &d); return s[0] != 0; }\n",
        "memory without a shadow",
    );
    refused(
        "returned_combined",
        "double *f(const double *x) { double *p = malloc(8); p[0] = x[0] * x[0]; return p; }
         int main(void) { double x = 3, g = 0; double *s = __enzyme_autodiff_shadow((void *)f, enzyme_dup_return, enzyme_dup, &x, &g); return s[0] != 0; }\n",
        "dup_return",
    );
}
