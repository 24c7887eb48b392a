//! Integer arithmetic on the bits of floats: refused if the result becomes a float again, accepted
//! otherwise.

use crate::support::{accepts, folder, gradus, refuses, text, write};

/// The bits of floats, read and written in place as integers: no access has a float type.
#[test]
fn in_place_bit_changes_are_refused() {
    let at = folder("in-place");
    let program = "#include <string.h>
        double guess(double *x, int n) {
            double sum = 0;
            for (int i = 0; i < n; i++) {
                ((long *)x)[i] = 0x5fe6eb50c7b537a9 - (((long *)x)[i] >> 1);
                sum += x[i];
            }
            return sum;
        }
        double read(const double *x, int n) {
            unsigned long bits; double d, sum = 0;
            for (int i = 0; i < n; i++) {
                memcpy(&bits, x + i, 8);
                bits += 1ul << 52;
                memcpy(&d, &bits, 8);
                sum += d;
            }
            return sum;
        }
        double turned(double x) {
            union { double d; unsigned long i; } y = {x};
            y.i = y.i << 8 | y.i >> 56;
            return y.d;
        }
        double drawn(unsigned long *state, double s) {
            unsigned long bits = *state * 6364136223846793005u + 1442695040888963407u;
            union { unsigned long bits; double value; } u = {bits >> 12 | 0x3ff0000000000000};
            *state = bits;
            return s * u.value;
        }\n";
    write(&at, "place.c", program);
    for level in ["-O0", "-O2"] {
        let said = refuses(
            &at,
            &format!("grad place.c -f guess -o out.o -- {level}"),
            "GRD0008",
        );
        assert!(said.contains("place.c:5"), "{said}");
        for function in ["read", "turned"] {
            refuses(
                &at,
                &format!("grad place.c -f {function} -o out.o -- {level}"),
                "GRD0008",
            );
        }
        accepts(
            &at,
            &format!("grad place.c -f drawn --wrt s -o out.o -- {level}"),
        );
    }
}

/// Signs flipped, cleared and set by masks from memory to memory, like in Eigen: optimisers keep integers
/// between load and store.
#[test]
fn sign_masks_in_memory() {
    let at = folder("masks");
    let program = "#include <emmintrin.h>
        #include <string.h>
        #include <stdint.h>
        double lanes(const double *x, double *y, int n) {
            const __m128d both = _mm_castsi128_pd(_mm_setr_epi32(0, 1 << 31, 0, 1 << 31));
            const __m128d last = _mm_castsi128_pd(_mm_setr_epi32(0, 0, 0, 1 << 31));
            for (int i = 0; i < n; i += 6) {
                _mm_storeu_pd(y + i, _mm_xor_pd(_mm_loadu_pd(x + i), both));
                _mm_storeu_pd(y + i + 2, _mm_xor_pd(_mm_loadu_pd(x + i + 2), last));
                _mm_storeu_pd(y + i + 4, _mm_or_pd(_mm_loadu_pd(x + i + 4), both));
            }
            double s = 0;
            for (int i = 0; i < n; i++) s += (i + 1) * y[i] * y[n - 1 - i];
            return s;
        }
        double words(const double *x, double *y, int n) {
            for (int i = 0; i < n; i++) {
                uint64_t u; memcpy(&u, x + i, 8);
                u ^= 1ull << 63;
                memcpy(y + i, &u, 8);
            }
            double s = 0;
            for (int i = 0; i < n; i++) s += (i + 1) * y[i] * y[n - 1 - i];
            return s;
        }\n";
    write(&at, "masks.c", program);
    for level in ["-O1", "-O2", "-O3"] {
        for function in ["lanes", "words"] {
            let told = gradus(
                &at,
                &format!(
                    "check masks.c -f {function} --arg n=6 --arg x=rand(6) --arg y=rand(6) -- {level}"
                ),
            );
            assert!(told.status.success(), "{}", text(&told.stderr));
        }
    }
}

/// Floats without typed accesses, read and written back as integers: their adjoints would pass unchanged.
/// Counters and indices, whose types the front end names, are accepted.
#[test]
fn untyped_memory_changed_as_integers() {
    let at = folder("untyped");
    let program = "#include <stdint.h>
        #include <string.h>
        static void one(double *x) { uint64_t b; memcpy(&b, x, 8); b += 1ull << 52; memcpy(x, &b, 8); }
        void twice(double *x, int n) { for (int i = 0; i < n; i++) one(x + i); }
        void other(const float *x, float *y, int n) {
            for (int i = 0; i < n; i++) { uint32_t b; memcpy(&b, &x[i], 4); b += 1 << 23; memcpy(&y[i], &b, 4); }
        }
        void named(double *x, int n) { for (int i = 0; i < n; i++) ((long *)x)[i] += 1l << 52; }
        void over(double *x, double *y, int n) {
            for (int i = 0; i < n; i++) {
                uint64_t b; memcpy(&b, &x[i], 8); memcpy(&y[i], &b, 8);
            }
        }
        struct list { double *x; long n; };
        void inner(struct list *l) { l->n++; for (int i = 0; i < l->n; i++) one(l->x + i); }
        double counts(double *x, int n, long *seen, double s) {
            for (int i = 0; i < n; i++) { seen[i & 3]++; s *= x[i]; }
            return s;
        }
        struct counted { double value; long n; int k; enum { none, some } what; };
        double members(struct counted *c, double s) {
            c->n++; c->k += 3; c->what = (c->what + 1) & 1; c->value *= s;
            return c->value;
        }
        void drawn(uint64_t *state, double *x, int n) {
            for (int i = 0; i < n; i++) { *state = *state * 6364136223846793005u + 1; x[i] *= (double)(*state >> 11); }
        }\n";
    write(&at, "untyped.c", program);
    for level in ["-O0", "-O2"] {
        // The declared parameter types show that `x` points to floats; nothing shows the type of `l->x`.
        for (function, line, code) in [
            ("twice", 3, "GRD0008"),
            ("other", 6, "GRD0008"),
            ("named", 8, "GRD0007"),
            ("inner", 3, "GRD0007"),
        ] {
            let asked = format!("grad untyped.c -f {function} -o out.o -- {level}");
            let said = refuses(&at, &asked, code);
            assert!(said.contains(&format!("untyped.c:{line}:")), "{said}");
        }
        // Floats moved as integers remain floats.
        let right = gradus(
            &at,
            &format!(
                "check untyped.c -f over --arg n=5 --arg x=rand(5) --arg y=rand(5) -- {level}"
            ),
        );
        assert!(right.status.success(), "{}", text(&right.stderr));
        for (function, wrt) in [("counts", "x,s"), ("members", "c,s"), ("drawn", "x")] {
            accepts(
                &at,
                &format!("grad untyped.c -f {function} --wrt {wrt} -o out.o -- {level}"),
            );
        }
    }
    // Without parameter types, and with a shadow for a generator's state.
    let asks = "#include <gradus.h>
        #include \"untyped.c\"
        int main(void) { double x = 1, d = 1; gradus_vjp(twice, gradus_dup, &x, &d, gradus_const, 1); return d != 2; }\n";
    write(&at, "bare.c", asks);
    let said = refuses(&at, "cc bare.c -o bare", "GRD0007");
    assert!(said.contains("untyped.c:3:"), "{said}");
    let asks = "#include <stdint.h>
        #include <gradus.h>
        double drawn(uint64_t *state, double *x, int n) {
            double s = 0;
            for (int i = 0; i < n; i++) { *state = *state * 6364136223846793005u + 1; s += x[i] * (double)(*state >> 61); }
            return s;
        }
        int main(void) {
            uint64_t state = 7, beside = 0; double x[2] = {1, 2}, d[2] = {0};
            gradus_vjp(drawn, gradus_dup, &state, &beside, gradus_dup, x, d, gradus_const, 2);
            return beside != 0;
        }\n";
    write(&at, "asks.c", asks);
    accepts(&at, "cc asks.c -o asks");
}

/// An address computed from an integer, not from an object, has no shadow at the corresponding distance.
/// Computed from null, it equals the address itself.
#[test]
fn addresses_from_integers_are_refused() {
    let at = folder("counted-address");
    let program = "#include <stdint.h>
        double moved(double *x) {
            uintptr_t a = (uintptr_t)x;
            double *p = (double *)((char *)8 + (a - 8));
            return *p * *p;
        }
        double whole(double *x) {
            uintptr_t a = (uintptr_t)x;
            double *p = (double *)((char *)0 + a);
            return *p * *p;
        }
        double either(double *x, int n) {
            double *p = n ? x : (double *)8;
            return p ? p[0] * n : 0;
        }\n";
    write(&at, "number.c", program);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let asked = format!("grad number.c -f moved -o out.o -- {level}");
        let said = refuses(&at, &asked, "GRD0006");
        assert!(said.contains("number.c:4:"), "{said}");
        for call in ["whole --arg x=rand(1)", "either --arg x=rand(1) --arg n=3"] {
            let right = gradus(&at, &format!("check number.c -f {call} -- {level}"));
            assert!(right.status.success(), "{}", text(&right.stderr));
        }
    }
}

/// Optimisers extract the bits of an element from an integer vector.
#[test]
fn element_signs_are_flipped() {
    let at = folder("element");
    let program = "typedef double pair __attribute__((vector_size(16)));
        double turned(const double *x, int n, double s) {
            pair v = {x[0] * s, s};
            union { double d; long l; } u;
            u.d = v[n & 1];
            u.l ^= 1l << 63;
            return u.d * s;
        }\n";
    write(&at, "element.c", program);
    for (level, n) in [("-O0", 4), ("-O2", 4), ("-O2", 5)] {
        let line =
            format!("check element.c -f turned --arg n={n} --arg x=rand(2) --arg s=0.7 -- {level}");
        let right = gradus(&at, &line);
        assert!(right.status.success(), "{}", text(&right.stderr));
    }
}

/// The exponent of a float is replaced by a mask of two bit runs and a constant that fits between them.
#[test]
fn exponent_replacement_is_refused() {
    let at = folder("exponent");
    let program = "#include <stdint.h>
        double fraction(double x, int *e) {
            union { double d; uint64_t i; } y = {x};
            *e = (int)(y.i >> 52 & 0x7ff) - 0x3fe;
            y.i &= 0x800fffffffffffff;
            y.i |= 0x3fe0000000000000;
            return y.d;
        }
        struct counted { float value; int times; };
        __attribute__((noinline)) static struct counted once_more(struct counted c, double x) {
            c.value = (float)(0.5 * c.value + 0.4 * x);
            c.times = c.times + 1;
            return c;
        }
        double twice(double x, int n) {
            struct counted c = {(float)x, n};
            c = once_more(once_more(c, x * x), x);
            return c.value * c.times;
        }\n";
    write(&at, "exponent.c", program);
    for level in ["-O0", "-O2"] {
        let line = format!("grad exponent.c -f fraction --wrt x -o out.o -- {level}");
        refuses(&at, &line, "GRD0008");
        accepts(
            &at,
            &format!("grad exponent.c -f twice --wrt x -o out.o -- {level}"),
        );
    }
}

/// Floats copied byte by byte, or assembled from bytes, would have a zero derivative. Bytes that never
/// become a float are accepted.
#[test]
fn floats_from_bytes_are_refused() {
    let at = folder("bytes");
    let program = "#include <stdint.h>
        #include <string.h>
        static void copied(void *to, const void *from, unsigned long n) {
            unsigned char *t = to; const unsigned char *f = from;
            for (unsigned long i = 0; i < n; i++) t[i] = f[n - 1 - i];
            for (unsigned long i = 0; i < n / 2; i++) { unsigned char k = t[i]; t[i] = t[n - 1 - i]; t[n - 1 - i] = k; }
        }
        double direct(const double *x, int n) {
            double y[8], s = 0;
            copied(y, x, sizeof y);
            for (int i = 0; i < n; i++) s += y[i] * y[i];
            return s;
        }
        double text(const double *x, int n) {
            unsigned char b[64]; double y[8], s = 0;
            copied(b, x, sizeof b);
            copied(y, b, sizeof b);
            for (int i = 0; i < n; i++) s += y[i] * y[i];
            return s;
        }
        double shifted(const double *x, int n) {
            double s = 0;
            for (int i = 0; i < n; i++) {
                const unsigned char *b = (const unsigned char *)&x[i];
                uint64_t bits = 0;
                for (int k = 7; k >= 0; k--) bits = bits << 8 | b[k];
                union { uint64_t u; double d; } v = {bits};
                s += v.d * v.d;
            }
            return s;
        }
        double counted(const double *x, int n, unsigned char *seen, double s) {
            const unsigned char *b = (const unsigned char *)x;
            int sum = 0;
            for (int i = 0; i < 8 * n; i++) { seen[i & 63] ^= b[i]; sum += b[i] & 1; }
            for (int i = 0; i < n; i++) s *= x[i];
            return s + sum;
        }
        double hashed(const double *x, int n, unsigned char *seen, int *many, double s) {
            const unsigned char *b = (const unsigned char *)x;
            int sum = 0;
            for (int i = 0; i < 8 * n; i++) { seen[i & 63] ^= b[i]; sum += b[i] & 1; }
            for (int i = 0; i < n; i++) s *= x[i];
            *many = sum;
            return s;
        }
        struct entry { double value; char name[8]; int n; };
        double named(const double *x, int n) {
            struct entry e[4]; double s = 0;
            for (int i = 0; i < n; i++) {
                e[i & 3].value = x[i] * s; e[i & 3].name[0] = 'a'; e[i & 3].name[1] = (char)i; e[i & 3].n = i;
                s += e[i & 3].value + x[i] + (e[i & 3].name[0] == 'b');
            }
            return s;
        }\n";
    write(&at, "bytes.c", program);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        for function in ["direct", "text", "shifted", "counted --wrt x,s"] {
            let line = format!("grad bytes.c -f {function} -o out.o -- {level}");
            refuses(&at, &line, "GRD0008");
        }
        for function in ["hashed --wrt x,s", "named"] {
            accepts(
                &at,
                &format!("grad bytes.c -f {function} -o out.o -- {level}"),
            );
        }
    }
}

/// An integer that holds two floats, one of them used: the neighbour's adjoint is preserved.
#[test]
fn neighbouring_float_keeps_adjoint() {
    let at = folder("neighbours");
    write(
        &at,
        "wide.ll",
        "define double @square(ptr %x) {
            %both = load i128, ptr %x, align 8
            %bits = trunc i128 %both to i64
            %first = bitcast i64 %bits to double
            %product = fmul double %first, %first
            ret double %product
        }\n",
    );
    write(
        &at,
        "main.c",
        "double square_vjp(double *x, double *x_adj, double result_adj);
        int main(void) {
            double x[2] = {3, 5}, x_adj[2] = {1, 2};
            square_vjp(x, x_adj, 1);
            return !(x_adj[0] == 7 && x_adj[1] == 2);
        }\n",
    );
    accepts(&at, "grad wide.ll -f square -o wide.o");
    accepts(&at, "cc main.c wide.o -o main");
    let status = std::process::Command::new(at.join("main")).status();
    assert!(status.expect("it runs").success());
}

const REASONS: &str = "#include <string.h>
#include <stdlib.h>
double root(const double *x, int n) { double y = x[0] * x[0] + 1; long b; memcpy(&b, &y, 8); b = 0x5fe6eb50c7b537a9 - (b >> 1); memcpy(&y, &b, 8); return y * x[1]; }
double logarithm(const double *x, int n) { double y = x[0] * x[0] + 1; long b; memcpy(&b, &y, 8); return (double)b * 1e-16; }
double exponential(const double *x, int n) { long b = (long)(x[0] * 6497320848556798.0) + 0x3fef127e83d16f12; double y; memcpy(&y, &b, 8); return y * x[1]; }
union word { double d; long l; };
double tagged(const double *x, int n) {
  union word *w = malloc(n * sizeof *w); char *tag = malloc(n); double s = 0;
  for (int i = 0; i < n; i++) { if (i % 2) { w[i].d = x[i] * x[i]; tag[i] = 0; } else { w[i].l = i; tag[i] = 1; } }
  for (int i = 0; i < n; i++) s += tag[i] ? x[0] * (double)(w[i].l * 3) : w[i].d;
  free(w); free(tag); return s; }
double format(const double *x, int n) { double *b = malloc(8); float f; *b = x[0] * x[0]; memcpy(&f, b, 4); double s = f * x[1]; free(b); return s; }
union slot { double number; const double *address; long l; };
double moved(const double *x, int n) {
  union slot *a = malloc(2 * n * sizeof *a), *b = a + n; double s = 0;
  for (int i = 0; i < n; i++) { if (i % 2) a[i].number = x[i] * x[i]; else a[i].address = x + i; }
  for (int i = 0; i < n; i++) b[i].l = a[n - 1 - i].l;
  for (int i = 0; i < n; i++) s += (n - 1 - i) % 2 ? b[i].number : *b[i].address;
  free(a); return s; }
";

/// Each reason of GRD0008 has its own message, and the remedy that fits.
#[test]
fn remedies_fit_the_reason() {
    let at = folder("bits-reasons");
    write(&at, "r.c", REASONS);
    for level in ["-O1", "-O2"] {
        for (function, message, remedy) in [
            (
                "root",
                "integer arithmetic on the bits",
                "floating-point operations",
            ),
            (
                "logarithm",
                "fraction bits of an active",
                "`log2` or `frexp`",
            ),
            (
                "exponential",
                "an integer converted from an active number",
                "`exp2` or `ldexp`",
            ),
            (
                "tagged",
                "an integer of a union",
                "a structure member of its own instead of the union",
            ),
            (
                "format",
                "in another format than it was stored",
                "a cast between the formats",
            ),
            ("moved", "is moved as an integer", "copy the whole union"),
        ] {
            let line = format!("grad r.c -f {function} -o r.o -- {level}");
            let said = refuses(&at, &line, "GRD0008");
            assert!(said.contains(message), "{function} {level}: {said}");
            let help = said.lines().find(|line| line.contains("= help: "));
            assert!(
                help.is_some_and(|help| help.contains(remedy)),
                "{function} {level}: {said}"
            );
        }
    }
}
