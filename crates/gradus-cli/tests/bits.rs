//! Arithmetic on the bits of numbers: refused wherever numbers are made of it, and nowhere else.

mod support;

use support::{accepts, folder, refuses, write};

/// The bits of numbers, read and written in place as if they were integers: no access shows a number.
#[test]
fn numbers_changed_in_place_as_integers_are_refused() {
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

/// The exponent of a number is exchanged by a mask of two runs and a constant that fits between them.
#[test]
fn numbers_whose_exponent_is_exchanged_are_refused() {
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
