//! Tests of private memory of threads in loops: memory written before read is privatised to iterations; a
//! dependence between iterations keeps the team.

#[allow(dead_code, reason = "the other tests use more of it")]
use crate::support::{Expected::*, Program, check};

#[rustfmt::skip]
const PROGRAMS: &[Program] = &[
    Program("a structure, assigned whole", Loops, "
        struct big from[43], t;
        for (int i = 0; i < n; i++) from[i] = (struct big){i, {b[i], 1, 2, 3, 4}};
        #pragma omp parallel for private(t)
        for (int i = 0; i < n; i++) { t = from[i]; a[i] = t.x + t.y[i % 5]; }"),
    Program("a structure, member by member, and handed on", Loops, "
        struct pair t;
        #pragma omp parallel for private(t)
        for (int i = 0; i < n; i++) { t.x = i; t.y = b[i]; add_pair(&t, &t); a[i] = t.x + t.y; }"),
    Program("a structure by value", Loops, "
        struct big from[43];
        for (int i = 0; i < n; i++) from[i] = (struct big){i, {b[i], 1, 2, 3, 4}};
        double (*f)(struct big) = pick_big(n);
        #pragma omp parallel for
        for (int i = 0; i < n; i++) a[i] = f(from[i]);"),
    Program("an array, filled in a loop", Loops, "
        double t[40];
        #pragma omp parallel for private(t)
        for (int i = 0; i < n; i++) {
          for (int k = 0; k < 40; k++) t[k] = b[i] + k * k;
          for (int k = 0; k < 40; k++) a[i] += t[(k * 7) % 40];
        }"),
    Program("the same, of a number of threads", Team, "
        double t[40];
        #pragma omp parallel for private(t) num_threads(3)
        for (int i = 0; i < n; i++) {
          for (int k = 0; k < 40; k++) t[k] = b[i] + k * k;
          for (int k = 0; k < 40; k++) a[i] += t[(k * 7) % 40];
        }"),
    Program("the same, again and again", Team, "
        double t[40];
        #pragma omp parallel private(t)
        for (int j = 0; j < 3; j++) {
          #pragma omp for
          for (int i = 0; i < n; i++) {
            for (int k = 0; k < 40; k++) t[k] = b[i] + k * k;
            for (int k = 0; k < 40; k++) a[i] += t[(k * 7) % 40];
          }
        }"),
    Program("what an iteration of a chunk leaves to the next in an array", Loops, "
        double t[3];
        #pragma omp parallel for private(t) schedule(static, 4)
        for (int i = 0; i < n; i++) {
          if (i % 4 == 0) t[0] = t[1] = t[2] = i;
          t[i % 3] += b[i];
          a[i] = t[0] + t[(i + 1) % 3];
        }"),
    Program("the same, of a size that is computed, as they come", Loops, "
        double t[3];
        int m = n / 7;
        #pragma omp parallel for private(t) schedule(dynamic, m)
        for (int i = 0; i < n; i++) {
          if (i % m == 0) t[0] = t[1] = t[2] = i;
          t[i % 3] += b[i];
          a[i] = t[0] + t[(i + 1) % 3];
        }"),
    Program("what it leaves in a variable", Team, "
        double t;
        #pragma omp parallel for private(t) schedule(static, 4)
        for (int i = 0; i < n; i++) {
          if (i % 4 == 0) t = i;
          t += b[i];
          a[i] = t;
        }"),
    Program("what an iteration leaves to the same one of the next loop", Team, "
        struct pair t[43];
        #pragma omp parallel private(t)
        {
          #pragma omp for schedule(static)
          for (int i = 0; i < n; i++) t[i] = (struct pair){i, b[i]};
          #pragma omp for schedule(static)
          for (int i = 0; i < n; i++) a[i] = t[i].x + t[i].y;
        }"),
    Program("a product and bits by hand", Loops, "
        long product = 3; int bits = 1;
        #pragma omp parallel
        {
          long p = 1; int o = 0;
          #pragma omp for
          for (int i = 0; i < 9; i++) { p *= b[i] + 1; o |= 1 << i; }
          #pragma omp critical
          { product *= p; bits |= o; }
        }
        a[0] = product; a[1] = bits;"),
    Program("a larger one by hand, of nothing", Loops, "
        int most = -100;
        #pragma omp parallel
        {
          int m = 7;
          #pragma omp for
          for (int i = n; i < 20; i++) m = m > b[i] ? m : b[i];
          #pragma omp critical
          most = most > m ? most : m;
        }
        a[0] = most;"),
    Program("an array, every other element", Team, "
        double t[40];
        #pragma omp parallel private(t)
        {
          for (int k = 0; k < 40; k++) t[k] = k;
          #pragma omp for
          for (int i = 0; i < n; i++) {
            for (int k = 0; k < 20; k++) t[2 * k] = b[i] + k * k;
            for (int k = 0; k < 40; k++) a[i] += t[(k * 7) % 40];
          }
        }"),
    Program("written in both arms", Loops, "
        struct pair t;
        #pragma omp parallel for private(t)
        for (int i = 0; i < n; i++) {
          if (b[i] > 4) { t.x = 1; t.y = b[i]; } else { t.x = i; t.y = 2; }
          add_pair(&t, &t);
          a[i] = t.x + t.y;
        }"),
    Program("written in one arm", Team, "
        struct pair t;
        #pragma omp parallel private(t)
        {
          t.x = 3; t.y = 4;
          #pragma omp for
          for (int i = 0; i < n; i++) {
            if (b[i] > 4) { t.x = 1; t.y = b[i]; } else { t.y = 2; }
            a[i] = use_pair(&t) + t.x;
            t.x = 3;
          }
        }"),
    Program("what one loop leaves to the next", Team, "
        struct pair t;
        #pragma omp parallel private(t)
        {
          #pragma omp for
          for (int i = 0; i < n; i++) { t.x = 7; t.y = 5; a[i] = use_pair(&t) + b[i]; }
          #pragma omp for
          for (int i = 0; i < n; i++) c[i] = use_pair(&t) + b[i];
        }"),
    Program("a union, by the smaller member", Team, "
        union { struct { char k; double y; } s; char bytes[16]; } t;
        #pragma omp parallel private(t)
        {
          for (int k = 0; k < 16; k++) t.bytes[k] = k;
          #pragma omp for
          for (int i = 0; i < n; i++) { t.s.k = 1; t.s.y = b[i]; a[i] = use_bytes(t.bytes) + t.s.y; }
        }"),
    Program("a function by its address", Loops, "
        double (*f)(double) = pick(n);
        #pragma omp parallel for
        for (int i = 0; i < n; i++) a[i] = f(b[i]);"),
];

#[test]
fn rank_distinction_reports_line() {
    let body = "
        double t[40];
        #pragma omp parallel for private(t) num_threads(4)
        for (int i = 0; i < n; i++) {
          for (int k = 0; k < 39; k++) t[k] = b[i] + k * k;
          a[i] += t[i % 39];
        }";
    let told = crate::support::team_reason(body);
    let wanted =
        "an iteration may read thread-private memory before the first write of the iteration";
    assert_eq!(told, Some((wanted.to_string(), 6)));
}

#[test]
fn as_built() {
    check(PROGRAMS, crate::support::AS_BUILT, true);
}

at_levels!(PROGRAMS);
