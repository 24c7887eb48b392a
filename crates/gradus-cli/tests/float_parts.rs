//! Partial overwrites of floats by integers: in memory at a variable offset, and as elements of narrower
//! integer vectors. Each is refused at its line. Whole floats moved as integers keep their derivatives.

use crate::support::{accepts, folder, refuses, write};

const PROGRAM: &str = r#"
#include <stdint.h>
#include <string.h>
#define PART(type, at, how) type h; memcpy(&h, (char *)p + at, sizeof h); how; memcpy((char *)p + at, &h, sizeof h)
#define EACH(name, how) \
    static __attribute__((noinline)) void change_##name(double *a, int n) { \
        for (int i = 0; i < n; i++) { double *p = a + i; how; } } \
    double name(const double *x, int n) { \
        double a[64], s = 0; \
        for (int i = 0; i < n; i++) a[i] = x[i] * x[i]; \
        change_##name(a, n); \
        for (int i = 0; i < n; i++) s += a[i] * (i + 1); \
        return s; }
EACH(sign_by_half, PART(uint32_t, 4, h ^= 0x80000000u))
EACH(sign_by_byte, ((unsigned char *)p)[7] ^= 0x80)
EACH(size_by_byte, ((unsigned char *)p)[7] &= 0x7f)
EACH(upper_is_constant, uint32_t h = 0x3ff00000u; memcpy((char *)p + 4, &h, 4))
EACH(exponent_up, PART(uint16_t, 6, h += 16))
EACH(mixed, memcpy((char *)p + 4, (char *)(a + (i + 1) % n) + 4, 4))
EACH(last_bits, PART(uint32_t, 0, h &= 0xffff0000u))
EACH(moved, uint64_t t; memcpy(&t, a + (n - 1), 8); memcpy(a + (n - 1), p, 8); memcpy(p, &t, 8))

typedef double v2 __attribute__((vector_size(16)));
typedef int i4 __attribute__((vector_size(16)));
typedef short s8 __attribute__((vector_size(16)));
typedef unsigned char c16 __attribute__((vector_size(16)));
typedef long l2 __attribute__((vector_size(16)));
typedef float f4 __attribute__((vector_size(16)));
#define LANES(name, type, ...) double name(const double *x, int n) { \
    v2 a = { x[0] * x[0], x[1] * x[0] }; type b = (type)a; __VA_ARGS__; a = (v2)b; return a[0] + 2 * a[1] + n; }
LANES(lane_sign, i4, b[1] ^= 0x80000000)
LANES(lane_size, i4, b[3] &= 0x7fffffff)
LANES(lane_short, s8, b[3] ^= 0x8000)
LANES(lane_byte, c16, b[7] ^= 0x80; b[15] |= 0x80)
LANES(lanes_swapped, i4, int t = b[1]; b[1] = b[3]; b[3] = t)
LANES(lane_then_shuffle, i4, b ^= (i4){ 0, 0x80000000, 0, 0 }; b = __builtin_shufflevector(b, b, 2, 3, 0, 1))
LANES(bytes_shuffled, c16, b = __builtin_shufflevector(b, b, 0, 1, 2, 3, 4, 5, 6, 15, 8, 9, 10, 11, 12, 13, 14, 7))
LANES(lane_of_other, i4, b[1] |= 0x80000000; b[3] ^= b[1] & 0x80000000)
LANES(lane_at, i4, b[n & 3] ^= 0x80000000)
LANES(wholes_swapped, l2, b = __builtin_shufflevector(b, b, 1, 0))
LANES(whole_sign, l2, b[1] ^= (long)1 << 63)
double other_format(const double *x, int n) { v2 a = { x[0] * x[1], x[0] }; f4 b = (f4)a; return b[1] * x[0]; }
double wider_format(const double *x, int n) {
    f4 a = { (float)x[0], (float)(x[0] * x[1]), 1, n }; v2 b = (v2)a; return b[0] * x[0]; }
double half_at(const double *x, int n) {
    v2 a = { x[0] * x[1], x[0] }; i4 b = (i4)a; int h = b[n & 3]; float f; memcpy(&f, &h, 4); return f * x[0]; }
LANES(whole_at, l2, long t = b[n & 1]; b[n & 1] = b[0]; b[0] = t)
double memory_as_floats(const double *x, int n) {
    double a[8], s = 0; for (int i = 0; i < n; i++) a[i] = x[i] * x[i];
    for (int i = 0; i < n; i++) { float f; memcpy(&f, (char *)(a + i) + 4, 4); s += f; }
    return s; }
double copied_as_floats(const double *x, int n) {
    double a[8], s = 0; float b[16]; for (int i = 0; i < n; i++) a[i] = x[i] * x[i];
    memcpy(b, a, sizeof b); for (int i = 0; i < n; i++) s += b[2 * i + 1]; return s; }
double memory_as_doubles(const double *x, int n) {
    float a[16]; double s = 0; for (int i = 0; i < 2 * n; i++) a[i] = x[i / 2] * (i + 1);
    for (int i = 0; i < n; i++) { double f; memcpy(&f, (char *)(a + 2 * i), 8); s += f * 1e-3; }
    return s; }
union either { double d; float f[2]; };
double used_again(const double *x, int n) {
    union either u[8]; double s = 0;
    for (int i = 0; i < n; i++) u[i].d = x[i] * x[i]; for (int i = 0; i < n; i++) s += u[i].d;
    for (int i = 0; i < n; i++) u[i].f[1] = 0.5f; for (int i = 0; i < n; i++) s += u[i].f[1] * x[i];
    return s; }
struct two { double d; float f; } ;
double side_by_side(const double *x, int n) {
    struct two a[8], b[8]; double s = 0;
    for (int i = 0; i < n; i++) a[i] = (struct two){ x[i] * x[i], (float)i };
    memcpy(b, a, sizeof b); for (int i = 0; i < n; i++) s += b[i].d * b[i].f; return s; }
double of_floats(const double *x, int n) {
    f4 a = { (float)x[0], (float)(x[0] * x[1]), 1, n }; s8 b = (s8)a; b[1] ^= 0x8000; a = (f4)b;
    return a[0] + a[1];
}
"#;

const REFUSED: &[&str] = &[
    "sign_by_half",
    "sign_by_byte",
    "size_by_byte",
    "upper_is_constant",
    "exponent_up",
    "mixed",
    "last_bits",
    "lane_sign",
    "lane_size",
    "lane_short",
    "lane_byte",
    "lanes_swapped",
    "lane_then_shuffle",
    "bytes_shuffled",
    "lane_of_other",
    "lane_at",
    "of_floats",
    "other_format",
    "wider_format",
    "half_at",
    "memory_as_floats",
    "copied_as_floats",
    "memory_as_doubles",
];

const RIGHT: &[&str] = &[
    "moved",
    "wholes_swapped",
    "whole_sign",
    "whole_at",
    "used_again",
    "side_by_side",
];

#[test]
fn partial_float_overwrites_refused() {
    let at = folder("float_parts");
    write(&at, "parts.c", PROGRAM);
    for flags in ["-O0", "-O1", "-O2 -g", "-O3 -mavx2"] {
        for name in REFUSED {
            let line = format!("grad parts.c -f {name} -o out.o -- -w {flags}");
            let said = refuses(&at, &line, "GRD0008");
            assert!(said.contains("parts.c:"), "{name} {flags}: {said}");
        }
        for name in RIGHT {
            let line =
                format!("check parts.c -f {name} --arg n=4 --arg x=[0.7,-1.3,0.4,2] -- -w {flags}");
            let said = accepts(&at, &line);
            assert!(
                said.contains("the derivative is right"),
                "{name} {flags}: {said}"
            );
        }
    }
}
