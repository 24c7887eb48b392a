//! x86 intrinsics, and inline assembly used by libraries in their place, are imported by their meaning;
//! manually aligned addresses are traced to the block before rounding.
#![cfg(target_arch = "x86_64")]

use crate::support::{accepts, folder, refuses, write};

/// Every lane has a distinct weight, so that no lane can replace another.
const INTRINSICS: &str = "#include <immintrin.h>
    static double weigh(__m128d v, double w) { double p[2]; _mm_storeu_pd(p, v); return w * p[0] * p[0] + (w + 1) * p[1]; }
    static double weigh4(__m128 v, double w) { float p[4]; _mm_storeu_ps(p, v);
        return w * p[0] * p[0] + (w + 1) * p[1] + (w + 2) * p[2] * p[1] + (w + 3) * p[3]; }
    double lanes(const double *x) {
        __m128d a = _mm_loadu_pd(x), b = _mm_loadu_pd(x + 2), c = _mm_loadu_pd(x + 4);
        __m128 s = _mm_setr_ps(x[0], x[1], x[2], x[3]), t = _mm_setr_ps(x[2], x[3], x[4], x[5]);
        double r = weigh(_mm_hadd_pd(a, b), 1) + weigh(_mm_hsub_pd(b, c), 2) + weigh(_mm_addsub_pd(a, c), 3)
            + weigh(_mm_min_pd(a, b), 5) + weigh(_mm_max_pd(b, c), 7)
            + weigh(_mm_min_sd(a, b), 11) + weigh(_mm_blendv_pd(a, b, _mm_sub_pd(a, c)), 13)
            + weigh(_mm_mul_pd(a, _mm_floor_pd(_mm_mul_pd(b, _mm_set1_pd(8)))), 17)
            + weigh4(_mm_hadd_ps(s, t), 1) + weigh4(_mm_hsub_ps(s, t), 2) + weigh4(_mm_addsub_ps(s, t), 3)
            + weigh4(_mm_max_ps(s, t), 5) + weigh4(_mm_blendv_ps(s, t, _mm_sub_ps(s, t)), 7);
        return r; }";

#[test]
fn intrinsics_have_derivatives() {
    let at = folder("x86_intrinsics-intrinsics");
    write(&at, "lanes.c", INTRINSICS);
    let x = "x=[0.3,-0.7,0.45,0.2,-0.6,0.9]";
    for level in ["-O0", "-O2"] {
        accepts(
            &at,
            &format!("check lanes.c -f lanes --single --arg {x} -- {level} -msse4.1"),
        );
    }
}

const WIDE: &str = "#include <immintrin.h>
    double wide(const double *x) {
        __m256d a = _mm256_loadu_pd(x), b = _mm256_loadu_pd(x + 4), r;
        r = _mm256_hadd_pd(a, _mm256_mul_pd(b, b));
        r = _mm256_mul_pd(r, _mm256_addsub_pd(a, b));
        r = _mm256_fmaddsub_pd(r, a, _mm256_max_pd(b, a));
        r = _mm256_add_pd(r, _mm256_blendv_pd(_mm256_mul_pd(a, b), a, _mm256_sub_pd(a, b)));
        double p[4]; _mm256_storeu_pd(p, r);
        return p[0] + 2 * p[1] + 3 * p[2] * p[3] + 5 * p[3]; }";

/// Assembly from Eigen: fused multiply-adds, minima, comments.
const ASSEMBLY: &str = "#include <immintrin.h>
    static inline __m256d sum(__m256d a, __m256d b, __m256d c) {
        __m256d r = c;
        __asm__(\"vfmadd231pd %[a], %[b], %[c]\" : [c] \"+x\" (r) : [a] \"x\" (a), [b] \"x\" (b));
        return r; }
    static inline __m256d least(__m256d a, __m256d b) {
        __m256d r;
        asm(\"vminpd %[a], %[b], %[res]\" : [res] \"=x\" (r) : [a] \"x\" (a), [b] \"x\" (b));
        return r; }
    double product(const double *a, const double *b, double *c, int n) {
        double s = 0;
        for (int i = 0; i < n; i++) {
            __m256d t = _mm256_setzero_pd();
            __asm__ __volatile__(\"#begin of a row\");
            for (int k = 0; k < n; k++)
                t = sum(_mm256_broadcast_sd(a + n * i + k), _mm256_loadu_pd(b + 4 * k), t);
            __asm__ __volatile__(\"#end of a row\");
            _mm256_storeu_pd(c + 4 * i, least(t, _mm256_loadu_pd(b)));
        }
        for (int i = 0; i < 4 * n; i++) s += c[i] * c[i];
        return s; }";

#[test]
fn wide_lanes_and_assembly_have_derivatives() {
    let at = folder("x86_intrinsics-wide");
    write(&at, "wide.c", WIDE);
    write(&at, "assembly.c", ASSEMBLY);
    accepts(&at, "grad wide.c -f wide -o wide.o -- -O2 -mavx2 -mfma");
    let said = accepts(
        &at,
        "grad assembly.c -f product -o product.o -- -O2 -mavx2 -mfma",
    );
    // A comment writes no memory: rows are loaded again.
    assert!(!said.contains("`load`"), "{said}");
    if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
        accepts(
            &at,
            "check wide.c -f wide --arg x=[0.3,-0.7,0.45,0.2,-0.6,0.9,0.8,-0.25] -- -O2 -mavx2 -mfma",
        );
        for level in ["-O0", "-O3"] {
            accepts(
                &at,
                &format!(
                    "check assembly.c -f product --arg n=5 --arg a=rand(25) --arg b=rand(20) --arg c=zeros(20) -- {level} -mavx2 -mfma"
                ),
            );
        }
    }
}

/// Unknown assembly is refused.
#[test]
fn other_assembly_is_refused() {
    const DIVIDES: &str = "#include <emmintrin.h>
        double ratio(double *x) {
            __m128d a = _mm_loadu_pd(x), b = _mm_loadu_pd(x + 2);
            asm(\"divpd %[b], %[a]\" : [a] \"+x\" (a) : [b] \"x\" (b));
            _mm_storeu_pd(x, a);
            return x[0] + x[1]; }";
    let at = folder("x86_intrinsics-other");
    write(&at, "ratio.c", DIVIDES);
    refuses(&at, "grad ratio.c -f ratio -o ratio.o", "GRD0015");
}

/// Allocators that round addresses up and store the original address before the memory, like Eigen's.
#[test]
fn rounded_addresses() {
    const ALIGNED: &str = "#include <stdint.h>
        #include <stdlib.h>
        static void *get(size_t bytes) {
            void *block = malloc(bytes + 64);
            void *start = (void *)(((uintptr_t)block & ~(uintptr_t)63) + 64);
            ((void **)start)[-1] = block;
            return start; }
        static void give(void *start) { free(((void **)start)[-1]); }
        __attribute__((noinline)) static void fill(double *b, const double *x, int n) {
            for (int i = 0; i < n; i++) b[i] = x[i] * x[i]; }
        double squares(const double *x, int n) {
            double *b = get(n * sizeof(double)), s = 0, *room = malloc((n + 4) * sizeof(double));
            double *c = (double *)(((uintptr_t)room + 31) & ~(uintptr_t)31);
            fill(b, x, n);
            for (int i = 0; i < n; i++) c[i] = b[i] * x[n - 1 - i];
            for (int i = 0; i < n; i++) s += b[i] * c[i];
            give(b);
            free(room);
            return s; }";
    let at = folder("x86_intrinsics-aligned");
    write(&at, "aligned.c", ALIGNED);
    for level in ["-O0", "-O1", "-O3"] {
        accepts(
            &at,
            &format!("check aligned.c -f squares --arg n=7 --arg x=rand(7) -- {level}"),
        );
    }
}

/// Elements at byte offsets added to addresses as integers, as in programs that traverse several matrices
/// by a single offset.
#[test]
fn addresses_plus_byte_offsets() {
    const MOVED: &str = "#include <stdint.h>
        #include <stdlib.h>
        #define AT(matrix, offset) (*(double *)((uintptr_t)(matrix) + (offset)))
        double squares(const double *x, unsigned n) {
            unsigned bytes = n * sizeof(double) + 32;
            char *heap = malloc(3 * bytes), *start = heap;
            if ((uintptr_t)heap & 31)
                heap = (char *)((uintptr_t)heap + 32 - ((uintptr_t)heap & 31));
            double *a = (double *)heap, *b = (double *)(heap += bytes);
            uintptr_t there = 0, step = (uintptr_t)(n - n / 2) << 3;
            for (unsigned row = 0; row < 2; row++) {
                for (unsigned i = 0; i < n / 2; i++) {
                    AT(a, there) = AT(x, there) * AT(x, there);
                    AT(b, there) = AT(a, there) * x[i];
                    there += sizeof(double);
                }
                there += step - (n - n / 2) * sizeof(double);
            }
            double s = 0;
            for (unsigned i = 0; i < n / 2 * 2; i++) s += a[i] * b[i];
            free(start);
            return s; }";
    let at = folder("x86_intrinsics-moved");
    write(&at, "moved.c", MOVED);
    for level in ["-O0", "-O1", "-O3"] {
        accepts(
            &at,
            &format!("check moved.c -f squares --arg n=8 --arg x=rand(8) -- {level}"),
        );
    }
}

/// A 64-bit integer may be the distance to another block.
#[test]
fn addresses_plus_distances() {
    const FAR: &str = "#include <stdint.h>
        __attribute__((noinline)) static double at(const double *a, long distance, int i) {
            return *(double *)((uintptr_t)a + distance + 8 * i); }
        double both(const double *x, const double *y, int n) {
            double s = 0;
            for (int i = 0; i < n; i++) s += x[i] * at(x, (uintptr_t)y - (uintptr_t)x, i);
            return s; }";
    let at = folder("x86_intrinsics-far");
    write(&at, "far.c", FAR);
    let values = "--arg n=4 --arg x=rand(n) --arg y=rand(n)";
    for level in ["-O0", "-O1", "-O3"] {
        accepts(&at, &format!("check far.c -f both {values} -- {level}"));
    }
}

/// A lane not assigned on a path may hold anything, including a NaN.
const UNFILLED: &str = "typedef double two __attribute__((vector_size(16)));
    double unfilled(const double *x, const int *taken) {
        two a;
        if (taken[0]) a[0] = x[0];
        if (taken[1]) a[1] = x[1];
        two p = a * (two){x[2], x[3]};
        return (taken[0] ? p[0] : 0) + (taken[1] ? p[1] : 0); }";

#[test]
fn undefined_lanes_reach_no_adjoint() {
    let at = folder("x86_intrinsics-unfilled");
    write(&at, "unfilled.c", UNFILLED);
    accepts(
        &at,
        "grad unfilled.c -f unfilled --emit gir -o unfilled.gir -- -O2",
    );
    let derivative = std::fs::read_to_string(at.join("unfilled.gir")).expect("it is there");
    let guards = derivative.matches("fcmp une").count();
    assert_eq!(guards, 1, "{derivative}");
    let line = |taken| format!("check unfilled.c -f unfilled --arg x=rand(4) --arg taken={taken}");
    for taken in ["[1,0]", "[0,1]", "[1,1]"] {
        accepts(&at, &line(taken));
    }
    // All derivatives are zero here, and none is a NaN, which would disagree.
    let said = refuses(&at, &line("[0,0]"), "GRD0027");
    assert!(said.contains("every derivative is zero"), "{said}");
}
