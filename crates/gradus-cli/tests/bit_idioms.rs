//! An enumeration of bitwise idioms on floats. Each idiom is refused at its line, or its derivative agrees
//! with finite differences and between both modes.

use crate::support::{folder, gradus, shell, text, write};
use Outcome::{Either, Refused, Right};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The expected outcome of an idiom at every level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The derivative agrees with finite differences.
    Right,
    /// The compiler reports GRD0008 at its line.
    Refused,
    /// Either outcome is right: optimiser and type-based aliasing decide.
    Either,
}

/// An idiom: name, outcome, and a function's body. `a`, `b` and `c` are the bits of the floats `v`, `s` and
/// `r`. `T` is the float type. `U` and `I` are integers of equal size with `W` bits, `M` of them for the
/// fraction.
type Idiom = (&'static str, Outcome, &'static str);

// table
const IDIOMS: &[Idiom] = &[
    ("abs", Right, "return num(a & MAX);"),
    ("neg", Right, "return num(a ^ SIGN);"),
    ("nabs", Right, "return num(a | SIGN);"),
    ("neg_add", Right, "return num(a + SIGN);"),
    ("neg_sub", Right, "return num(a - SIGN);"),
    ("copysign", Right, "return num((a & MAX) | (b & SIGN));"),
    ("copysign_rev", Right, "return num((b & SIGN) | (a & MAX));"),
    ("copysign_xor", Right, "return num(a ^ ((a ^ b) & SIGN));"),
    ("copysign_add", Right, "return num((a & MAX) + (b & SIGN));"),
    (
        "copysign_shift",
        Right,
        "return num((a & MAX) | ((b >> (W-1)) << (W-1)));",
    ),
    (
        "copysign_shift2",
        Right,
        "return num(((a << 1) >> 1) | ((b >> (W-1)) << (W-1)));",
    ),
    (
        "copysign_neg",
        Right,
        "return num((a & MAX) | (~b & SIGN));",
    ),
    (
        "copysign_cmp",
        Right,
        "return num((a & MAX) | ((U)(s < 0) << (W-1)));",
    ),
    (
        "copysign_three",
        Right,
        "return num((a & MAX) | ((b ^ c) & SIGN));",
    ),
    (
        "copysign_cond",
        Right,
        "return num((a & MAX) | (s < 0 ? SIGN : 0));",
    ),
    ("flipsign", Right, "return num(a ^ (b & SIGN));"),
    (
        "flipsign_two",
        Right,
        "return num(a ^ (b & SIGN) ^ (c & SIGN));",
    ),
    ("flipsign_both", Right, "return num(a ^ ((b ^ c) & SIGN));"),
    (
        "flipsign_cmp",
        Right,
        "return num(a ^ ((U)(s < 0) << (W-1)));",
    ),
    ("flipsign_neg", Right, "return num(a ^ (~b & SIGN));"),
    ("sign_of", Right, "return num((bits((T)1) | (b & SIGN)));"),
    (
        "sign_times",
        Right,
        "return v * num(bits((T)1) | (b & SIGN));",
    ),
    ("signtest", Right, "return (a >> (W-1)) ? -v*s : v;"),
    ("signtest_lt", Right, "return (I)a < 0 ? -v*s : v;"),
    ("signtest_and", Right, "return (a & SIGN) ? -v*s : v*v;"),
    (
        "signmask_mul",
        Right,
        "return v * (T)(1 - 2*(int)(a >> (W-1)));",
    ),
    (
        "ashr_abs",
        Refused,
        "I m = (I)a >> (W-1); return num((a ^ (U)m) );",
    ),
    (
        "abs_ashr",
        Right,
        "U m = (U)((I)a >> (W-1)) & SIGN; return num(a ^ m);",
    ),
    (
        "neg_if",
        Right,
        "U m = (U)-(I)(s > 0) & SIGN; return num(a ^ m);",
    ),
    (
        "relu_mask",
        Refused,
        "U m = (U)((I)a >> (W-1)); return num(a & ~m);",
    ),
    (
        "relu_mask2",
        Right,
        "U m = (U)-(I)(v > 0); return num(a & m);",
    ),
    (
        "sel_mask",
        Right,
        "U m = (U)-(I)(s > r); return num((a & m) | (b & ~m));",
    ),
    (
        "sel_mask_xor",
        Right,
        "U m = (U)-(I)(s > r); return num(b ^ ((a ^ b) & m));",
    ),
    (
        "sel_mask_sign",
        Right,
        "U m = (U)((I)c >> (W-1)); return num((a & m) | (b & ~m));",
    ),
    (
        "sel_mul",
        Right,
        "U m = (U)(s > r); return num(a * m + b * (1 - m));",
    ),
    (
        "sel_andn",
        Right,
        "U m = (U)-(I)(s > r); return num((m & a) | (~m & b)) * v;",
    ),
    ("and_two", Refused, "return num(a & b);"),
    ("or_two", Refused, "return num(a | b);"),
    ("xor_two", Refused, "return num(a ^ b);"),
    ("andn_two", Refused, "return num(a & ~b);"),
    ("not", Refused, "return num(~a);"),
    ("and_lo", Refused, "return num(a & ~(((U)1<<(M/2))-1));"),
    ("and_hi", Refused, "return num(a & (((U)1<<(M/2))-1));"),
    (
        "trunc_split",
        Refused,
        "return num(a & ((~(U)0) << (M/2)));",
    ),
    (
        "dekker",
        Refused,
        "T hi = num(a & ((~(U)0) << (M/2))); T lo = v - hi; return hi*hi + lo*s;",
    ),
    (
        "round_bits",
        Refused,
        "return num((a + ((U)1 << (M/2-1))) & ((~(U)0) << (M/2)));",
    ),
    (
        "bf16_round",
        Refused,
        "return num(((a + ((U)1 << (M/2-1))) >> (M/2)) << (M/2));",
    ),
    (
        "exp_extract",
        Right,
        "return (T)(int)(((a >> M) & EXPMAX) - BIAS);",
    ),
    (
        "exp_extract_mul",
        Right,
        "return v * (T)(int)(((a >> M) & EXPMAX) - BIAS);",
    ),
    ("ilogb_mask", Right, "return s * (T)((I)(a & EXPO) >> M);"),
    (
        "frexp_mant",
        Refused,
        "return num((a & ~EXPO) | ((U)(BIAS-1) << M));",
    ),
    (
        "frexp_both",
        Refused,
        "int k = (int)((a >> M) & EXPMAX) - (BIAS-1); T m = num((a & ~EXPO) | ((U)(BIAS-1) << M)); return m * s + k;",
    ),
    (
        "mant_only",
        Refused,
        "return num((a & MANT) | ((U)BIAS << M));",
    ),
    ("exp_add1", Refused, "return num(a + ((U)1 << M));"),
    ("exp_sub1", Refused, "return num(a - ((U)1 << M));"),
    ("exp_add3", Refused, "return num(a + ((U)3 << M));"),
    (
        "exp_addn",
        Refused,
        "I k = (I)(r*3); return num(a + ((U)k << M));",
    ),
    (
        "pow2",
        Right,
        "I k = (I)(r*3); return v * num((U)(k + BIAS) << M);",
    ),
    ("pow2_bits", Refused, "return v * num(b & EXPO);"),
    ("exp_or", Refused, "return num(a | ((U)1 << M));"),
    ("exp_xor", Refused, "return num(a ^ ((U)1 << M));"),
    ("ulp", Refused, "return num(bits(v) & EXPO) * r;"),
    ("nextafter", Refused, "return num(a + 1);"),
    ("nextbelow", Refused, "return num(a - 1) * s;"),
    ("ulp_diff", Refused, "return num(a + 1) - v;"),
    ("shl1", Refused, "return num(a << 1);"),
    ("shr1", Refused, "return num(a >> 1);"),
    ("rot", Refused, "return num((a << 8) | (a >> (W-8)));"),
    (
        "rotback",
        Right,
        "U q = (a << 8) | (a >> (W-8)); return num((q >> 8) | (q << (W-8)));",
    ),
    ("shl_shr", Right, "return num((a << 1) >> 1);"),
    ("shr_shl", Refused, "return num((a >> (M/2)) << (M/2));"),
    ("isqrt", Refused, "return num(MAGIC - (a >> 1));"),
    (
        "isqrt_newton",
        Refused,
        "T y = num(MAGIC - (a >> 1)); y = y*((T)1.5 - (T)0.5*v*y*y); return y*s;",
    ),
    ("fastlog2", Refused, "return (T)(I)a * (T)1e-9;"),
    (
        "fastlog2_if",
        Refused,
        "I k = (I)a; if (s > 0) k += 5; return (T)k * (T)1e-9;",
    ),
    (
        "fastexp",
        Refused,
        "return num((U)(I)(v*(T)(1<<20)) + ((U)BIAS<<M));",
    ),
    ("fastlog_diff", Refused, "return (T)(I)(a - b) * (T)1e-9;"),
    (
        "fastpow",
        Refused,
        "return num((U)((I)(a - ((U)BIAS<<M)) / 2) + ((U)BIAS<<M));",
    ),
    ("mant_int", Refused, "return (T)(I)(a & MANT) * (T)1e-6;"),
    (
        "mant_hash",
        Refused,
        "U h = a * 0x9E3779B9u; return v * (T)(h & 7);",
    ),
    ("lowbit", Refused, "return v * (T)(a & 1);"),
    (
        "magic_round",
        Right,
        "T k = (v*8 + ROUND); return v * (k - ROUND);",
    ),
    (
        "magic_int",
        Right,
        "T k = v*8 + ROUND; I n = (I)(bits(k) << (W-8)) >> (W-8); return v * (T)n;",
    ),
    (
        "magic_odd",
        Right,
        "T k = v*8 + ROUND; return (bits(k) & 1) ? v*s : s*s;",
    ),
    ("isnan", Right, "return (a & MAX) > EXPO ? 0 : v;"),
    ("isinf", Right, "return (a & MAX) == EXPO ? 0 : v*s;"),
    ("iszero", Right, "return (a << 1) == 0 ? 0 : v*v;"),
    (
        "order",
        Right,
        "I p = (I)a, q = (I)b; p ^= (I)((U)(p >> (W-1)) >> 1); q ^= (I)((U)(q >> (W-1)) >> 1); return p < q ? v : s;",
    ),
    ("cmpbits", Right, "return a < b ? v*r : s;"),
    (
        "memcmp",
        Right,
        "return memcmp(&v, &s, sizeof v) ? v*r : s;",
    ),
    (
        "larger",
        Either,
        "return num((a & MAX) > (b & MAX) ? a : b);",
    ),
    ("smaller", Either, "return num(a > b ? b : a);"),
    (
        "smaller_signed",
        Either,
        "I p = (I)(a & MAX), q = (I)(b & MAX); return num((U)(p < q ? p : q));",
    ),
    (
        "order_back",
        Right,
        "I p = (I)a; p ^= (I)((U)(p >> (W-1)) >> 1); p ^= (I)((U)(p >> (W-1)) >> 1); return num((U)p);",
    ),
    (
        "sortkey",
        Refused,
        "U k = a ^ (((I)a < 0) ? ~(U)0 : SIGN); U z = k ^ ((k >> (W-1)) ? SIGN : ~(U)0); return num(z);",
    ),
    (
        "bswap2",
        Right,
        "U q = sizeof(T)==8 ? __builtin_bswap64(a) : __builtin_bswap32((uint32_t)a); q = sizeof(T)==8 ? __builtin_bswap64(q) : __builtin_bswap32((uint32_t)q); return num(q);",
    ),
    (
        "bytes_copy",
        Right,
        "T v = x[0]*x[1], y; unsigned char *p = (unsigned char *)&v, *q = (unsigned char *)&y; for (int i = 0; i < (int)sizeof v; i++) q[i] = p[i]; return y * x[2];",
    ),
    (
        "bytes_rev",
        Right,
        "T v = x[0]*x[1], y; unsigned char t[sizeof v]; memcpy(t, &v, sizeof v); unsigned char u[sizeof v]; for (int i = 0; i < (int)sizeof v; i++) u[i] = t[sizeof v - 1 - i]; unsigned char w[sizeof v]; for (int i = 0; i < (int)sizeof v; i++) w[i] = u[sizeof v - 1 - i]; memcpy(&y, w, sizeof v); return y * x[2];",
    ),
    (
        "bytes_shift",
        Right,
        "U q = 0; for (int i = 0; i < (int)sizeof v; i++) q |= (U)((a >> (8*i)) & 255) << (8*i); return num(q) * s;",
    ),
    (
        "bytes_sign",
        Right,
        "T v = x[0]*x[1]; ((unsigned char *)&v)[sizeof v - 1] ^= 0x80; return v * x[2];",
    ),
    (
        "bytes_abs",
        Right,
        "T v = x[0]*x[1]; ((unsigned char *)&v)[sizeof v - 1] &= 0x7f; return v * x[2];",
    ),
    (
        "bytes_exp",
        Refused,
        "T v = x[0]*x[1]; ((unsigned char *)&v)[sizeof v - 1] = 0x40; return v * x[2];",
    ),
    ("half_hi", Refused, "return num((a >> (W/2)) << (W/2));"),
    (
        "half_join",
        Right,
        "U hi = a >> (W/2), lo = a & (~(U)0 >> (W/2)); return num(hi << (W/2) | lo) * s;",
    ),
    (
        "half_cross",
        Refused,
        "U hi = a >> (W/2), lo = b & (~(U)0 >> (W/2)); return num(hi << (W/2) | lo) * s;",
    ),
    (
        "half_neg",
        Right,
        "U hi = (a >> (W/2)) ^ (SIGN >> (W/2)), lo = a & (~(U)0 >> (W/2)); return num(hi << (W/2) | lo) * s;",
    ),
    (
        "half_union",
        Right,
        "union { T v; struct { uint16_t h[sizeof(T)/2]; } w; } u; u.v = x[0]*x[1]; u.w.h[sizeof(T)/2-1] &= 0x7fff; return u.v * x[2];",
    ),
    (
        "half_word_cs",
        Right,
        "T v = x[0]*x[1], s = x[1]+x[2]; ((uint16_t *)&v)[sizeof(T)/2-1] = (((uint16_t *)&v)[sizeof(T)/2-1] & 0x7fff) | (((uint16_t *)&s)[sizeof(T)/2-1] & 0x8000); return v * x[2];",
    ),
    (
        "word_hi_read",
        Right,
        "T v = x[0]*x[1]; uint16_t h = ((uint16_t *)&v)[sizeof(T)/2-1]; return (h & 0x8000) ? -v*x[2] : v;",
    ),
    (
        "word_hi_float",
        Refused,
        "T v = x[0]*x[1]; uint16_t h = ((uint16_t *)&v)[sizeof(T)/2-1]; return (T)(h & 0x7fff) * x[2];",
    ),
    (
        "sort_ints",
        Either,
        "U t[3] = {a & MAX, b & MAX, c & MAX}; for (int i = 0; i < 3; i++) for (int j = i+1; j < 3; j++) if (t[i] > t[j]) { U z = t[i]; t[i] = t[j]; t[j] = z; } return num(t[0]) + num(t[2]) * num(t[1]);",
    ),
    (
        "array_mask",
        Right,
        "U t[3]; T y[3]; T z[3] = {x[0]*x[1], x[1]*x[2], x[2]*x[0]}; memcpy(t, z, sizeof t); for (int i = 0; i < 3; i++) t[i] &= MAX; memcpy(y, t, sizeof t); return y[0]*y[1] + y[2];",
    ),
    (
        "array_cs",
        Right,
        "U t[3]; T y[3]; T z[3] = {x[0]*x[1], x[1]*x[2], x[2]*x[0]}; memcpy(t, z, sizeof t); for (int i = 0; i < 3; i++) t[i] = (t[i] & MAX) | (t[(i+1)%3] & SIGN); memcpy(y, t, sizeof t); return y[0]*y[1] + y[2];",
    ),
    (
        "loop_acc_xor",
        Refused,
        "U t[3], q = 0; T z[3] = {x[0]*x[1], x[1]*x[2], x[2]*x[0]}; memcpy(t, z, sizeof t); for (int i = 0; i < 3; i++) q ^= t[i]; return num(q);",
    ),
    (
        "loop_sign",
        Right,
        "U t[3], q = 0; T z[3] = {x[0]*x[1], x[1]*x[2], x[2]*x[0]}; memcpy(t, z, sizeof t); for (int i = 0; i < 3; i++) q ^= t[i] & SIGN; return num(q ^ t[0]) * z[1];",
    ),
    (
        "loop_phi",
        Right,
        "U q = a; for (int i = 0; i < (int)(r*3); i++) q = q == a ? b : a; return num(q);",
    ),
    (
        "loop_scale",
        Refused,
        "U q = a; for (int i = 0; i < 3; i++) q += (U)1 << M; return num(q);",
    ),
    (
        "loop_fabs",
        Right,
        "U q = a; for (int i = 0; i < 3; i++) { q &= MAX; q = bits(num(q) * s); } return num(q);",
    ),
    (
        "global_way",
        Right,
        "static U keep; keep = a & MAX; return num(keep) * s;",
    ),
    (
        "swap_xor",
        Right,
        "a ^= b; b ^= a; a ^= b; return num(a) * 2 + num(b) * num(c);",
    ),
    ("mid", Refused, "return num((a >> 1) + (b >> 1));"),
    ("avg", Refused, "return num(a + (b - a) / 2);"),
    (
        "cond_bits",
        Right,
        "U q; if (s > 0) q = a & MAX; else q = b | SIGN; return num(q) * r;",
    ),
    (
        "cond_bits2",
        Right,
        "U q = b; if (a & SIGN) q = a ^ SIGN; return num(q) * r;",
    ),
    (
        "cmp_zero_bits",
        Right,
        "U q = a; if ((q & EXPO) == 0) q = 0; return num(q);",
    ),
    (
        "flush_mask",
        Right,
        "U m = (U)-(I)((a & EXPO) != 0); return num(a & m);",
    ),
    (
        "nan_box",
        Right,
        "U q = a; if ((q & EXPO) == EXPO) return 0; return num(q);",
    ),
    (
        "pack128",
        Right,
        "__extension__ typedef unsigned __int128 Q; T v = x[0]*x[1], s = x[1]+x[2]; Q q = ((Q)bits(v) << W) | bits(s); return num((U)(q >> W)) * 3 + num((U)q) * v;",
    ),
    (
        "pack128neg",
        Right,
        "__extension__ typedef unsigned __int128 Q; T v = x[0]*x[1], s = x[1]+x[2]; Q q = ((Q)bits(v) << W) | bits(s); q ^= (Q)SIGN << W; return num((U)(q >> W)) * 3 + num((U)q) * v;",
    ),
    (
        "minus_or",
        Right,
        "return num((a & MAX) | (U)(c & SIGN)) + num((b | SIGN) ^ (c & SIGN));",
    ),
    ("sub_mul", Right, "return num(a - b + b);"),
    ("mul1", Right, "U m = (U)(r > 0); return num(a * m);"),
    ("zext_sel", Right, "return num(s > 0 ? a : 0);"),
    (
        "popc",
        Refused,
        "return v * (T)__builtin_popcountll((unsigned long long)a);",
    ),
    (
        "trunc32",
        Refused,
        "return (T)(float)(uint32_t)(a >> (W/2));",
    ),
    (
        "int_index",
        Right,
        "static const T t[4] = {1,2,3,4}; return v * t[(a >> (M-2)) & 3];",
    ),
    (
        "int_half_conv",
        Refused,
        "return (T)(int32_t)(a >> (W/2)) * s;",
    ),
];

/// The declarations at the start of every program.
const BEGIN: &str = "#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#ifdef SINGLE
typedef float T; typedef uint32_t U; typedef int32_t I;
enum { W = 32, M = 23, BIAS = 127 };
#define ROUND 12582912.0f
#define MAGIC 0x5f3759dfu
#else
typedef double T; typedef uint64_t U; typedef int64_t I;
enum { W = 64, M = 52, BIAS = 1023 };
#define ROUND 6755399441055744.0
#define MAGIC 0x5fe6eb50c7b537a9ull
#endif
#define SIGN ((U)1 << (W - 1))
#define MAX (SIGN - 1)
#define MANT (((U)1 << M) - 1)
#define EXPO (MAX & ~MANT)
#define EXPMAX (EXPO >> M)
#if WAY == 0
static inline U bits(T x) { U u; memcpy(&u, &x, sizeof u); return u; }
static inline T num(U u) { T x; memcpy(&x, &u, sizeof u); return x; }
#elif WAY == 1
static inline U bits(T x) { union { T x; U u; } v; v.x = x; return v.u; }
static inline T num(U u) { union { T x; U u; } v; v.u = u; return v.x; }
#else
static inline U bits(T x) { return *(U *)&x; }
static inline T num(U u) { return *(T *)&u; }
#endif
struct two { T a, b; };
extern int enzyme_dup, enzyme_width;
void __enzyme_autodiff(void *, ...);
T __enzyme_fwddiff_one(void *, ...);
struct two __enzyme_fwddiff_two(void *, ...);
";

/// The end of every program: compares reverse mode with finite differences and with forward mode, for one
/// tangent and for two.
const END: &str = "
static int check(const char *name, T (*f)(T *), void (*ways)(T *, T *, T *, T *, T *)) {
  static const T at[5][3] = {{(T)1.3, (T)-0.4, (T)2.7}, {(T)-1.3, (T)0.45, (T)0.7}, {(T)1.27, (T)1.43, (T)1.11},
                             {(T)-1.3, (T)-0.4, (T)-0.9}, {(T)0.3, (T)-2.4, (T)1.7}};
  const double step = W == 32 ? 2e-3 : 1e-6, within = W == 32 ? 2e-2 : 1e-6;
  for (int p = 0; p < 5; p++)
    for (int i = 0; i < 3; i++) {
      T x[3], y[3], d[3] = {0}, e[3] = {0}, g[3] = {0}, out[2] = {0};
      memcpy(x, at[p], sizeof x);
      y[0] = x[0], y[1] = x[1], y[2] = x[2], y[i] += (T)step;
      double up = f(y);
      y[i] = x[i] - (T)step;
      double slope = (up - f(y)) / (2 * step), size = fabs(slope) > 1 ? fabs(slope) : 1;
      e[i] = 1, g[(i + 1) % 3] = 1;
      ways(x, d, e, g, out);
      if (!(fabs(slope - d[i]) <= within * size) || !(fabs(out[0] - d[i]) <= 1e-5 * size)
          || !(fabs(out[1] - d[i]) <= 1e-5 * size)) {
        printf(\"%s at %d: x[%d] %g, reverse %g, forward %g and %g\\n\", name, p, i, slope, (double)d[i],
               (double)out[0], (double)out[1]);
        return 1;
      }
    }
  return 0;
}
";

/// Returns a program of some idioms; each function has a separate line.
fn program(idioms: &[&Idiom]) -> String {
    let mut text = BEGIN.to_string();
    for (name, _, body) in idioms {
        text += &format!(
            "T f_{name}(T *x) {{ T v = x[0]*x[1], s = x[1]+x[2], r = x[2]; U a = bits(v), b = bits(s), c = bits(r); \
             (void)a; (void)b; (void)c; {{ {body} }} }}\n"
        );
    }
    text += END;
    for (name, ..) in idioms {
        text += &format!(
            "static void w_{name}(T *x, T *d, T *e, T *g, T *out) {{\n\
             __enzyme_autodiff((void *)f_{name}, enzyme_dup, x, d);\n\
             out[0] = __enzyme_fwddiff_one((void *)f_{name}, enzyme_dup, x, e);\n\
             out[1] = __enzyme_fwddiff_two((void *)f_{name}, enzyme_width, 2, enzyme_dup, x, e, g).a; }}\n"
        );
    }
    text += "int main(void) { int wrong = 0;\n";
    for (name, ..) in idioms {
        text += &format!("wrong |= check(\"{name}\", f_{name}, w_{name});\n");
    }
    text + "return wrong; }\n"
}

/// Returns the idioms that a compiler with these flags refuses, each with GRD0008 at its line.
fn refused(at: &Path, flags: &str, idioms: &[&Idiom]) -> BTreeSet<String> {
    write(at, "refused.c", &program(idioms));
    let told = gradus(at, &format!("cc -w {flags} -c refused.c"));
    let said = text(&told.stderr);
    let mut names = BTreeSet::new();
    for block in said.split("\n\n").filter(|b| b.contains("error[")) {
        assert!(block.contains("GRD0008"), "{flags}\n{block}");
        assert!(block.contains("refused.c:"), "{flags}\n{block}");
        let name = block.split_once("in function `f_").map(|(_, rest)| rest);
        let name = name.and_then(|rest| rest.split_once('`'));
        names.extend(name.map(|(name, _)| name.to_string()));
    }
    names
}

/// Checks the enumeration with a compiler's flags.
fn check_all(test: &str, flags: &str) {
    let at = folder(test);
    let of = |outcome| {
        let list = IDIOMS.iter().filter(move |idiom| idiom.1 == outcome);
        list.collect::<Vec<_>>()
    };
    let all = of(Refused);
    let told = refused(&at, flags, &all);
    let silent: Vec<_> = all.iter().filter(|idiom| !told.contains(idiom.0)).collect();
    assert!(silent.is_empty(), "{flags}: not refused: {silent:?}");

    let mut right = of(Right);
    let either = of(Either);
    let told = refused(&at, flags, &either);
    right.extend(either.iter().filter(|idiom| !told.contains(idiom.0)));
    write(&at, "right.c", &program(&right));
    shell(&at, &format!("gradus cc -w {flags} right.c -o right -lm"));
    let ran = Command::new(at.join("right")).output().expect("it runs");
    assert!(ran.status.success(), "{flags}\n{}", text(&ran.stdout));
}

#[test]
fn doubles_at_every_level() {
    for level in ["-O0", "-O1", "-O2", "-O3", "-O0 -g", "-O2 -g"] {
        check_all("idioms-double", level);
    }
}

#[test]
fn floats_at_every_level() {
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        check_all("idioms-float", &format!("-DSINGLE {level}"));
    }
}

#[test]
fn unions_and_casts() {
    for way in [
        "-DWAY=1 -O0",
        "-DWAY=1 -O2 -DSINGLE",
        "-DWAY=2 -O1 -fno-strict-aliasing",
    ] {
        check_all("idioms-ways", way);
    }
}

/// Checks vectors likewise: language vectors and SSE vectors.
#[test]
fn vectors() {
    let at = folder("idioms-vectors");
    let program = "#include <emmintrin.h>
        #include <stdint.h>
        typedef double V __attribute__((vector_size(32)));
        typedef int64_t L __attribute__((vector_size(32)));
        #define LANES V v = {x[0]*x[1], x[1]+x[2], x[2]*x[0], x[0]-x[2]}, s = {x[1], -x[0], x[2]*x[2], x[1]*x[2]}; \\
            L a = (L)v, b = (L)s, sign = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN}; (void)a; (void)b; (void)sign;
        #define GIVE(e) V y = (V)(e); return y[0] + 2*y[1]*y[2] + 3*y[3];
        double copied(double *x) { LANES GIVE((a & ~sign) | (b & sign)) }
        double flipped(double *x) { LANES GIVE(a ^ (b & sign)) }
        double compared(double *x) { LANES GIVE(a ^ ((s < v) & sign)) }
        double chosen(double *x) { LANES L m = s < v; GIVE((a & m) | (b & ~m)) }
        double exponents(double *x) { LANES V y = __builtin_convertvector((a >> 52) & 2047, V); return y[0]*y[1]*v[2]; }
        double pairs(double *x) {
            __m128d v = _mm_set_pd(x[0]*x[1], x[2]), s = _mm_set_pd(x[1], -x[0]), m = _mm_set1_pd(-0.0);
            __m128d y = _mm_or_pd(_mm_andnot_pd(m, v), _mm_and_pd(m, s)), z = _mm_xor_pd(v, _mm_and_pd(m, s));
            return y[0]*3 + y[1]*z[0] + z[1];
        }
        double mixed(double *x) { LANES GIVE(a ^ b) }
        double cut(double *x) { LANES GIVE(a & -4096) }
        double raised(double *x) { LANES GIVE(a + (1ll << 52)) }
        double converted(double *x) { LANES V y = __builtin_convertvector(a, V) * 1e-9; return y[0] + y[1]; }
        double halved(double *x) {
            __m128d v = _mm_set_pd(x[0]*x[1], x[2]);
            return _mm_castsi128_pd(_mm_srli_epi64(_mm_castpd_si128(v), 1))[0];
        }\n";
    write(&at, "vectors.c", program);
    for level in ["-O0", "-O2"] {
        for name in [
            "copied",
            "flipped",
            "compared",
            "chosen",
            "exponents",
            "pairs",
        ] {
            let asked = format!("check vectors.c -f {name} --arg x=[1.3,-0.45,2.7] -- -w {level}");
            let told = gradus(&at, &asked);
            assert!(told.status.success(), "{asked}\n{}", text(&told.stderr));
        }
        for name in ["mixed", "cut", "raised", "converted", "halved"] {
            let asked = format!("grad vectors.c -f {name} -o out.o -- -w {level}");
            let said = crate::support::refuses(&at, &asked, "GRD0008");
            assert!(said.contains("vectors.c:"), "{said}");
        }
    }
}
