/* The functions of libdevice that clang's device headers call: for each its builtin, which becomes LLVM's
   intrinsic or the C library's function, or plain code. Device half only; `__nv_v*` stand in gradus/video.h.

   Directed rounding takes the nearest result and its exact remainder, and goes to the neighbour where the
   remainder says so. */
#ifndef GRADUS_LIBDEVICE_H
#define GRADUS_LIBDEVICE_H

#define GR_NV extern "C" __device__ inline __attribute__((always_inline))

#define GR_NV1(name)                                                                                 \
    GR_NV double __nv_##name(double a) { return __builtin_##name(a); }                               \
    GR_NV float __nv_##name##f(float a) { return __builtin_##name##f(a); }
#define GR_NV2(name)                                                                                 \
    GR_NV double __nv_##name(double a, double b) { return __builtin_##name(a, b); }                  \
    GR_NV float __nv_##name##f(float a, float b) { return __builtin_##name##f(a, b); }
GR_NV1(acos) GR_NV1(acosh) GR_NV1(asin) GR_NV1(asinh) GR_NV1(atan) GR_NV1(atanh) GR_NV1(cbrt) GR_NV1(ceil)
GR_NV1(cos) GR_NV1(cosh) GR_NV1(erf) GR_NV1(erfc) GR_NV1(exp) GR_NV1(exp10) GR_NV1(exp2) GR_NV1(expm1)
GR_NV1(fabs) GR_NV1(floor) GR_NV1(lgamma) GR_NV1(log) GR_NV1(log10) GR_NV1(log1p) GR_NV1(log2) GR_NV1(logb)
GR_NV1(nearbyint) GR_NV1(rint) GR_NV1(round) GR_NV1(sin) GR_NV1(sinh) GR_NV1(sqrt) GR_NV1(tan) GR_NV1(tanh)
GR_NV1(tgamma) GR_NV1(trunc)
GR_NV2(atan2) GR_NV2(copysign) GR_NV2(fdim) GR_NV2(fmax) GR_NV2(fmin) GR_NV2(fmod) GR_NV2(hypot)
GR_NV2(nextafter) GR_NV2(pow) GR_NV2(remainder)
#undef GR_NV1
#undef GR_NV2

GR_NV double __nv_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
GR_NV float __nv_fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
GR_NV double __nv_ldexp(double a, int b) { return __builtin_ldexp(a, b); }
GR_NV float __nv_ldexpf(float a, int b) { return __builtin_ldexpf(a, b); }
GR_NV double __nv_scalbn(double a, int b) { return __builtin_ldexp(a, b); }
GR_NV float __nv_scalbnf(float a, int b) { return __builtin_ldexpf(a, b); }
GR_NV double __nv_frexp(double a, int *b) { return __builtin_frexp(a, b); }
GR_NV float __nv_frexpf(float a, int *b) { return __builtin_frexpf(a, b); }
GR_NV double __nv_modf(double a, double *b) { return __builtin_modf(a, b); }
GR_NV float __nv_modff(float a, float *b) { return __builtin_modff(a, b); }
GR_NV double __nv_remquo(double a, double b, int *c) { return __builtin_remquo(a, b, c); }
GR_NV float __nv_remquof(float a, float b, int *c) { return __builtin_remquof(a, b, c); }
GR_NV int __nv_ilogb(double a) { return __builtin_ilogb(a); }
GR_NV int __nv_ilogbf(float a) { return __builtin_ilogbf(a); }
GR_NV long long __nv_llrint(double a) { return __builtin_llrint(a); }
GR_NV long long __nv_llrintf(float a) { return __builtin_llrintf(a); }
GR_NV long long __nv_llround(double a) { return __builtin_llround(a); }
GR_NV long long __nv_llroundf(float a) { return __builtin_llroundf(a); }
GR_NV double __nv_nan(const signed char *) { return __builtin_nan(""); }
GR_NV float __nv_nanf(const signed char *) { return __builtin_nanf(""); }

/* Of the C library, without a builtin. */
#define GR_NV_C(name)                                                                                \
    extern "C" __device__ double gr_libm_##name(double) __asm__(#name);                               \
    extern "C" __device__ float gr_libm_##name##f(float) __asm__(#name "f");                          \
    GR_NV double __nv_##name(double a) { return gr_libm_##name(a); }                                 \
    GR_NV float __nv_##name##f(float a) { return gr_libm_##name##f(a); }
#define GR_NV_CN(name)                                                                               \
    extern "C" __device__ double gr_libm_##name(int, double) __asm__(#name);                          \
    extern "C" __device__ float gr_libm_##name##f(int, float) __asm__(#name "f");                     \
    GR_NV double __nv_##name(int n, double a) { return gr_libm_##name(n, a); }                       \
    GR_NV float __nv_##name##f(int n, float a) { return gr_libm_##name##f(n, a); }
GR_NV_C(j0) GR_NV_C(j1) GR_NV_C(y0) GR_NV_C(y1) GR_NV_CN(jn) GR_NV_CN(yn)
#undef GR_NV_C
#undef GR_NV_CN

/* Sine and cosine, also of multiples of pi: the reduction to [-1, 1) is exact. */
GR_NV void __nv_sincos(double a, double *s, double *c) { *s = __builtin_sin(a); *c = __builtin_cos(a); }
GR_NV void __nv_sincosf(float a, float *s, float *c) { *s = __builtin_sinf(a); *c = __builtin_cosf(a); }
GR_NV double __nv_sinpi(double a)
{
    double r = a - 2.0 * __builtin_rint(a * 0.5);
    return r == __builtin_rint(r) ? __builtin_copysign(0.0, a) : __builtin_sin(3.14159265358979323846 * r);
}
GR_NV double __nv_cospi(double a)
{
    double r = __builtin_fabs(a - 2.0 * __builtin_rint(a * 0.5));
    return r == 0.5 ? 0.0 : __builtin_cos(3.14159265358979323846 * r);
}
GR_NV float __nv_sinpif(float a) { return (float)__nv_sinpi(a); }
GR_NV float __nv_cospif(float a) { return (float)__nv_cospi(a); }
GR_NV void __nv_sincospi(double a, double *s, double *c) { *s = __nv_sinpi(a); *c = __nv_cospi(a); }
GR_NV void __nv_sincospif(float a, float *s, float *c) { *s = __nv_sinpif(a); *c = __nv_cospif(a); }

/* Roots, norms, integer powers. */
GR_NV double __nv_rsqrt(double a) { return 1.0 / __builtin_sqrt(a); }
GR_NV float __nv_rsqrtf(float a) { return 1.0f / __builtin_sqrtf(a); }
GR_NV double __nv_rcbrt(double a) { return 1.0 / __builtin_cbrt(a); }
GR_NV float __nv_rcbrtf(float a) { return 1.0f / __builtin_cbrtf(a); }
GR_NV double __nv_rcp64h(double a) { return 1.0 / a; }
GR_NV double __nv_rhypot(double a, double b) { return 1.0 / __builtin_hypot(a, b); }
GR_NV float __nv_rhypotf(float a, float b) { return 1.0f / __builtin_hypotf(a, b); }
GR_NV double __nv_norm3d(double a, double b, double c) { return __builtin_hypot(__builtin_hypot(a, b), c); }
GR_NV double __nv_norm4d(double a, double b, double c, double d) { return __builtin_hypot(__nv_norm3d(a, b, c), d); }
GR_NV float __nv_norm3df(float a, float b, float c) { return (float)__builtin_sqrt((double)a * a + (double)b * b + (double)c * c); }
GR_NV float __nv_norm4df(float a, float b, float c, float d) { return (float)__builtin_sqrt((double)a * a + (double)b * b + (double)c * c + (double)d * d); }
GR_NV double __nv_norm(int n, const double *a)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum = __builtin_hypot(sum, a[i]);
    return sum;
}
GR_NV float __nv_normf(int n, const float *a)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += (double)a[i] * a[i];
    return (float)__builtin_sqrt(sum);
}
GR_NV double __nv_rnorm3d(double a, double b, double c) { return 1.0 / __nv_norm3d(a, b, c); }
GR_NV double __nv_rnorm4d(double a, double b, double c, double d) { return 1.0 / __nv_norm4d(a, b, c, d); }
GR_NV float __nv_rnorm3df(float a, float b, float c) { return 1.0f / __nv_norm3df(a, b, c); }
GR_NV float __nv_rnorm4df(float a, float b, float c, float d) { return 1.0f / __nv_norm4df(a, b, c, d); }
GR_NV double __nv_rnorm(int n, const double *a) { return 1.0 / __nv_norm(n, a); }
GR_NV float __nv_rnormf(int n, const float *a) { return 1.0f / __nv_normf(n, a); }
GR_NV double __nv_powi(double a, int n) { return __builtin_powi(a, n); }
GR_NV float __nv_powif(float a, int n) { return __builtin_powif(a, n); }

/* Error functions' inverses: a rough start, then steps of Halley's method. */
GR_NV double gr_nv_erfinv_start(double a)
{
    double l = __builtin_log((1.0 - a) * (1.0 + a)), t = 4.330746750799873 + 0.5 * l;
    return __builtin_copysign(__builtin_sqrt(__builtin_sqrt(t * t - l / 0.147) - t), a);
}
GR_NV double __nv_erfinv(double a)
{
    if (!(a > -1.0 && a < 1.0)) return a == 1.0 || a == -1.0 ? a * __builtin_inf() : __builtin_nan("");
    double x = gr_nv_erfinv_start(a);
    for (int i = 0; i < 3; i++) {
        double e = (__builtin_erf(x) - a) / (1.1283791670955126 * __builtin_exp(-x * x));
        x -= e / (1.0 + x * e);
    }
    return x;
}
GR_NV double __nv_erfcinv(double a)
{
    if (!(a > 0.0 && a < 2.0)) return a == 0.0 ? __builtin_inf() : a == 2.0 ? -__builtin_inf() : __builtin_nan("");
    if (a > 0.0625) return __nv_erfinv(1.0 - a);
    double x = __builtin_sqrt(-__builtin_log(a * __builtin_sqrt(-__builtin_log(a))));
    for (int i = 0; i < 6; i++) {
        double e = (a - __builtin_erfc(x)) / (1.1283791670955126 * __builtin_exp(-x * x));
        x -= e / (1.0 + x * e);
    }
    return x;
}
GR_NV double __nv_erfcx(double a)
{
    if (a < 25.0) return __builtin_exp(a * a) * __builtin_erfc(a);
    double r = 1.0 / (a * a);
    return 0.5641895835477563 / a * (1.0 - 0.5 * r * (1.0 - 1.5 * r * (1.0 - 2.5 * r)));
}
GR_NV float __nv_erfinvf(float a) { return (float)__nv_erfinv(a); }
GR_NV float __nv_erfcinvf(float a) { return (float)__nv_erfcinv(a); }
GR_NV float __nv_erfcxf(float a) { return (float)__nv_erfcx(a); }
GR_NV double __nv_normcdf(double a) { return 0.5 * __builtin_erfc(-a * 0.70710678118654752440); }
GR_NV float __nv_normcdff(float a) { return (float)__nv_normcdf(a); }
GR_NV double __nv_normcdfinv(double a) { return -1.4142135623730951 * __nv_erfcinv(2.0 * a); }
GR_NV float __nv_normcdfinvf(float a) { return (float)__nv_normcdfinv(a); }

/* Fast forms are as good as the others. */
GR_NV float __nv_fast_cosf(float a) { return __builtin_cosf(a); }
GR_NV float __nv_fast_sinf(float a) { return __builtin_sinf(a); }
GR_NV float __nv_fast_tanf(float a) { return __builtin_tanf(a); }
GR_NV void __nv_fast_sincosf(float a, float *s, float *c) { __nv_sincosf(a, s, c); }
GR_NV float __nv_fast_expf(float a) { return __builtin_expf(a); }
GR_NV float __nv_fast_exp10f(float a) { return __builtin_exp10f(a); }
GR_NV float __nv_fast_logf(float a) { return __builtin_logf(a); }
GR_NV float __nv_fast_log2f(float a) { return __builtin_log2f(a); }
GR_NV float __nv_fast_log10f(float a) { return __builtin_log10f(a); }
GR_NV float __nv_fast_powf(float a, float b) { return __builtin_powf(a, b); }
GR_NV float __nv_fast_fdividef(float a, float b) { return a / b; }

/* Questions about numbers. */
GR_NV int __nv_signbitd(double a) { return __builtin_signbit(a) != 0; }
GR_NV int __nv_signbitf(float a) { return __builtin_signbitf(a) != 0; }
GR_NV int __nv_isinfd(double a) { return __builtin_isinf(a); }
GR_NV int __nv_isinff(float a) { return __builtin_isinf(a); }
GR_NV int __nv_isnand(double a) { return __builtin_isnan(a); }
GR_NV int __nv_isnanf(float a) { return __builtin_isnan(a); }
GR_NV int __nv_isfinited(double a) { return __builtin_isfinite(a); }
GR_NV int __nv_finitef(float a) { return __builtin_isfinite(a); }
GR_NV float __nv_saturatef(float a) { return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f; }

/* Whole numbers. */
GR_NV int __nv_abs(int a) { return a < 0 ? -(unsigned int)a : a; }
GR_NV long long __nv_llabs(long long a) { return a < 0 ? -(unsigned long long)a : a; }
GR_NV int __nv_max(int a, int b) { return a > b ? a : b; }
GR_NV int __nv_min(int a, int b) { return a < b ? a : b; }
GR_NV unsigned int __nv_umax(unsigned int a, unsigned int b) { return a > b ? a : b; }
GR_NV unsigned int __nv_umin(unsigned int a, unsigned int b) { return a < b ? a : b; }
GR_NV long long __nv_llmax(long long a, long long b) { return a > b ? a : b; }
GR_NV long long __nv_llmin(long long a, long long b) { return a < b ? a : b; }
GR_NV unsigned long long __nv_ullmax(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
GR_NV unsigned long long __nv_ullmin(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
GR_NV int __nv_brev(int a) { return (int)__builtin_bitreverse32((unsigned int)a); }
GR_NV long long __nv_brevll(long long a) { return (long long)__builtin_bitreverse64((unsigned long long)a); }
GR_NV int __nv_clz(int a) { return a ? __builtin_clz((unsigned int)a) : 32; }
GR_NV int __nv_clzll(long long a) { return a ? __builtin_clzll((unsigned long long)a) : 64; }
GR_NV int __nv_ffs(int a) { return __builtin_ffs(a); }
GR_NV int __nv_ffsll(long long a) { return __builtin_ffsll(a); }
GR_NV int __nv_popc(unsigned int a) { return __builtin_popcount(a); }
GR_NV int __nv_popcll(unsigned long long a) { return __builtin_popcountll(a); }
GR_NV int __nv_mul24(int a, int b) { return (int)((unsigned int)((a << 8) >> 8) * (unsigned int)((b << 8) >> 8)); }
GR_NV unsigned int __nv_umul24(unsigned int a, unsigned int b) { return (a & 0xffffffu) * (b & 0xffffffu); }
GR_NV int __nv_mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
GR_NV unsigned int __nv_umulhi(unsigned int a, unsigned int b) { return (unsigned int)(((unsigned long long)a * b) >> 32); }
GR_NV long long __nv_mul64hi(long long a, long long b) { return (long long)(((__int128)a * b) >> 64); }
GR_NV unsigned long long __nv_umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)(((unsigned __int128)a * b) >> 64); }
GR_NV int __nv_hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
GR_NV int __nv_rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
GR_NV int __nv_uhadd(unsigned int a, unsigned int b) { return (int)(((unsigned long long)a + b) >> 1); }
GR_NV unsigned int __nv_urhadd(unsigned int a, unsigned int b) { return (unsigned int)(((unsigned long long)a + b + 1) >> 1); }
GR_NV int __nv_sad(int a, int b, int c) { return (int)((a > b ? (unsigned int)a - (unsigned int)b : (unsigned int)b - (unsigned int)a) + (unsigned int)c); }
GR_NV unsigned int __nv_usad(unsigned int a, unsigned int b, unsigned int c) { return (a > b ? a - b : b - a) + c; }
GR_NV int __nv_byte_perm(int a, int b, int s)
{
    unsigned long long bytes = (unsigned long long)(unsigned int)b << 32 | (unsigned int)a;
    unsigned int out = 0;
    for (int i = 0; i < 4; i++) {
        unsigned int choice = (unsigned int)s >> (4 * i) & 15u;
        unsigned int byte = (unsigned int)(bytes >> (8 * (choice & 7u))) & 255u;
        out |= (choice & 8u ? (byte & 128u ? 255u : 0u) : byte) << (8 * i);
    }
    return (int)out;
}

/* The same bits under another type. */
GR_NV unsigned long long __nv_double_as_longlong(double a) { return __builtin_bit_cast(unsigned long long, a); }
GR_NV double __nv_longlong_as_double(long long a) { return __builtin_bit_cast(double, a); }
GR_NV int __nv_float_as_int(float a) { return __builtin_bit_cast(int, a); }
GR_NV unsigned int __nv_float_as_uint(float a) { return __builtin_bit_cast(unsigned int, a); }
GR_NV float __nv_int_as_float(int a) { return __builtin_bit_cast(float, a); }
GR_NV float __nv_uint_as_float(unsigned int a) { return __builtin_bit_cast(float, a); }
GR_NV int __nv_double2hiint(double a) { return (int)(__nv_double_as_longlong(a) >> 32); }
GR_NV int __nv_double2loint(double a) { return (int)__nv_double_as_longlong(a); }
GR_NV double __nv_hiloint2double(int hi, int lo) { return __nv_longlong_as_double((long long)((unsigned long long)(unsigned int)hi << 32 | (unsigned int)lo)); }
GR_NV unsigned short __nv_float2half_rn(float a) { return __builtin_bit_cast(unsigned short, (_Float16)a); }
GR_NV float __nv_half2float(unsigned short a) { return (float)__builtin_bit_cast(_Float16, a); }

/* To whole numbers: what does not fit becomes the nearest that does, what is no number 0, or the highest bit where
   either has 64 bits. */
#define GR_NV_TO(from, type, to, result, low, high, none)                                                  \
    GR_NV result gr_nv_##from##2##to(type a)                                                         \
    {                                                                                                \
        return !(a == a) ? (result)(none) : a <= (type)(low) ? (result)(low) : a >= (type)(high) ? (result)(high) : (result)a; \
    }                                                                                                \
    GR_NV result __nv_##from##2##to##_rz(type a) { return gr_nv_##from##2##to(a); }                  \
    GR_NV result __nv_##from##2##to##_rn(type a) { return gr_nv_##from##2##to(__builtin_elementwise_rint(a)); } \
    GR_NV result __nv_##from##2##to##_rd(type a) { return gr_nv_##from##2##to(__builtin_elementwise_floor(a)); } \
    GR_NV result __nv_##from##2##to##_ru(type a) { return gr_nv_##from##2##to(__builtin_elementwise_ceil(a)); }
GR_NV_TO(float, float, int, int, -2147483647 - 1, 2147483647, 0)
GR_NV_TO(float, float, uint, unsigned int, 0, 4294967295u, 0)
GR_NV_TO(float, float, ll, long long, -9223372036854775807ll - 1, 9223372036854775807ll, 1ull << 63)
GR_NV_TO(float, float, ull, unsigned long long, 0, 18446744073709551615ull, 1ull << 63)
GR_NV_TO(double, double, int, int, -2147483647 - 1, 2147483647, 1u << 31)
GR_NV_TO(double, double, uint, unsigned int, 0, 4294967295u, 1u << 31)
GR_NV_TO(double, double, ll, long long, -9223372036854775807ll - 1, 9223372036854775807ll, 1ull << 63)
GR_NV_TO(double, double, ull, unsigned long long, 0, 18446744073709551615ull, 1ull << 63)
#undef GR_NV_TO

/* From the nearest result, by the sign of what it lacks of the exact one, to the result of another rounding. */
GR_NV float gr_nv_ruf(float p, float rest) { return rest > 0 ? __builtin_nextafterf(p, __builtin_inff()) : p; }
GR_NV float gr_nv_rdf(float p, float rest) { return rest < 0 ? __builtin_nextafterf(p, -__builtin_inff()) : p; }
GR_NV float gr_nv_rzf(float p, float rest) { return p > 0 ? gr_nv_rdf(p, rest) : p < 0 ? gr_nv_ruf(p, rest) : p; }
GR_NV float gr_nv_rnf(float p, float) { return p; }
GR_NV double gr_nv_ru(double p, double rest) { return rest > 0 ? __builtin_nextafter(p, __builtin_inf()) : p; }
GR_NV double gr_nv_rd(double p, double rest) { return rest < 0 ? __builtin_nextafter(p, -__builtin_inf()) : p; }
GR_NV double gr_nv_rz(double p, double rest) { return p > 0 ? gr_nv_rd(p, rest) : p < 0 ? gr_nv_ru(p, rest) : p; }
GR_NV double gr_nv_rn(double p, double) { return p; }

#pragma clang fp contract(off)
#define GR_NV_SUM(type, a, b, p) ({ type gr_t = (p) - (a); ((a) - ((p) - gr_t)) + ((b) - gr_t); })
#define GR_NV_ROUNDED(mode)                                                                          \
    GR_NV float __nv_fadd_##mode(float a, float b) { float p = a + b; return gr_nv_##mode##f(p, GR_NV_SUM(float, a, b, p)); } \
    GR_NV float __nv_fsub_##mode(float a, float c) { float b = -c, p = a + b; return gr_nv_##mode##f(p, GR_NV_SUM(float, a, b, p)); } \
    GR_NV float __nv_fmul_##mode(float a, float b) { float p = a * b; return gr_nv_##mode##f(p, __builtin_fmaf(a, b, -p)); } \
    GR_NV float __nv_fdiv_##mode(float a, float b) { float p = a / b, rest = __builtin_fmaf(-p, b, a); return gr_nv_##mode##f(p, b < 0 ? -rest : rest); } \
    GR_NV float __nv_frcp_##mode(float b) { return __nv_fdiv_##mode(1.0f, b); }                      \
    GR_NV float __nv_fsqrt_##mode(float a) { float p = __builtin_sqrtf(a); return gr_nv_##mode##f(p, __builtin_fmaf(-p, p, a)); } \
    GR_NV float __nv_double2float_##mode(double a) { float p = (float)a; double rest = a - (double)p; return gr_nv_##mode##f(p, rest > 0 ? 1.0f : rest < 0 ? -1.0f : 0.0f); } \
    GR_NV float __nv_fmaf_##mode(float a, float b, float c)                                          \
    {                                                                                                \
        float p = __builtin_fmaf(a, b, c);                                                           \
        double exact = (double)a * b, sum = exact + c, low = GR_NV_SUM(double, exact, (double)c, sum); \
        double rest = (sum - p) + low;                                                               \
        return gr_nv_##mode##f(p, rest > 0 ? 1.0f : rest < 0 ? -1.0f : 0.0f);                        \
    }                                                                                                \
    GR_NV float __nv_fmaf_ieee_##mode(float a, float b, float c) { return __nv_fmaf_##mode(a, b, c); } \
    GR_NV double __nv_dadd_##mode(double a, double b) { double p = a + b; return gr_nv_##mode(p, GR_NV_SUM(double, a, b, p)); } \
    GR_NV double __nv_dsub_##mode(double a, double c) { double b = -c, p = a + b; return gr_nv_##mode(p, GR_NV_SUM(double, a, b, p)); } \
    GR_NV double __nv_dmul_##mode(double a, double b) { double p = a * b; return gr_nv_##mode(p, __builtin_fma(a, b, -p)); } \
    GR_NV double __nv_ddiv_##mode(double a, double b) { double p = a / b, rest = __builtin_fma(-p, b, a); return gr_nv_##mode(p, b < 0 ? -rest : rest); } \
    GR_NV double __nv_drcp_##mode(double b) { return __nv_ddiv_##mode(1.0, b); }                     \
    GR_NV double __nv_dsqrt_##mode(double a) { double p = __builtin_sqrt(a); return gr_nv_##mode(p, __builtin_fma(-p, p, a)); } \
    GR_NV double __nv_fma_##mode(double a, double b, double c)                                       \
    {                                                                                                \
        double p = __builtin_fma(a, b, c), high = a * b, low = __builtin_fma(a, b, -high);           \
        double sum = high + c, rest = ((sum - p) + GR_NV_SUM(double, high, c, sum)) + low;           \
        return gr_nv_##mode(p, rest);                                                                \
    }                                                                                                \
    GR_NV float __nv_int2float_##mode(int a) { return __nv_double2float_##mode((double)a); }         \
    GR_NV float __nv_uint2float_##mode(unsigned int a) { return __nv_double2float_##mode((double)a); } \
    GR_NV float __nv_ll2float_##mode(long long a) { float p = (float)a; __int128 rest = (__int128)a - (__int128)p; return gr_nv_##mode##f(p, rest > 0 ? 1.0f : rest < 0 ? -1.0f : 0.0f); } \
    GR_NV float __nv_ull2float_##mode(unsigned long long a) { float p = (float)a; __int128 rest = (__int128)a - (__int128)p; return gr_nv_##mode##f(p, rest > 0 ? 1.0f : rest < 0 ? -1.0f : 0.0f); } \
    GR_NV double __nv_ll2double_##mode(long long a) { double p = (double)a; __int128 rest = (__int128)a - (__int128)p; return gr_nv_##mode(p, rest > 0 ? 1.0 : rest < 0 ? -1.0 : 0.0); } \
    GR_NV double __nv_ull2double_##mode(unsigned long long a) { double p = (double)a; __int128 rest = (__int128)a - (__int128)p; return gr_nv_##mode(p, rest > 0 ? 1.0 : rest < 0 ? -1.0 : 0.0); }
GR_NV_ROUNDED(rn) GR_NV_ROUNDED(rz) GR_NV_ROUNDED(ru) GR_NV_ROUNDED(rd)
#undef GR_NV_ROUNDED
#undef GR_NV_SUM
GR_NV float __nv_frsqrt_rn(float a) { return (float)(1.0 / __builtin_sqrt((double)a)); }
GR_NV double __nv_int2double_rn(int a) { return a; }
GR_NV double __nv_uint2double_rn(unsigned int a) { return a; }
#pragma clang fp contract(fast)

#undef GR_NV
#endif
