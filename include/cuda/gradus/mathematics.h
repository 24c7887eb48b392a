/* Mathematics that CUDA has and a C library has not, and overloads. */
#ifndef GRADUS_CUDA_MATHEMATICS_H
#define GRADUS_CUDA_MATHEMATICS_H

#define GR_HOST static inline __host__
GR_HOST float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
GR_HOST double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
GR_HOST float rsqrt(float x) { return rsqrtf(x); }
GR_HOST float rcbrtf(float x) { return 1.0f / __builtin_cbrtf(x); }
GR_HOST double rcbrt(double x) { return 1.0 / __builtin_cbrt(x); }
GR_HOST float sinpif(float x) { return (float)__builtin_sin(3.14159265358979323846 * __builtin_fmod((double)x, 2.0)); }
GR_HOST float cospif(float x) { return (float)__builtin_cos(3.14159265358979323846 * __builtin_fmod((double)x, 2.0)); }
GR_HOST double sinpi(double x) { return __builtin_sin(3.14159265358979323846 * __builtin_fmod(x, 2.0)); }
GR_HOST double cospi(double x) { return __builtin_cos(3.14159265358979323846 * __builtin_fmod(x, 2.0)); }
GR_HOST float norm3df(float x, float y, float z) { return (float)__builtin_sqrt((double)x * x + (double)y * y + (double)z * z); }
GR_HOST double norm3d(double x, double y, double z) { return __builtin_hypot(__builtin_hypot(x, y), z); }
GR_HOST float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }
GR_HOST double rnorm3d(double x, double y, double z) { return 1.0 / norm3d(x, y, z); }
GR_HOST float rhypotf(float x, float y) { return 1.0f / __builtin_hypotf(x, y); }
GR_HOST double rhypot(double x, double y) { return 1.0 / __builtin_hypot(x, y); }
GR_HOST double normcdf(double x) { return 0.5 * __builtin_erfc(-x * 0.70710678118654752440); }
GR_HOST float normcdff(float x) { return (float)normcdf((double)x); }
GR_HOST void sincospi(double x, double *sine, double *cosine) { *sine = sinpi(x); *cosine = cospi(x); }
GR_HOST void sincospif(float x, float *sine, float *cosine) { *sine = sinpif(x); *cosine = cospif(x); }
#undef GR_HOST

/* Overloads for float that clang declares and leaves to a toolkit's header. */
#define GR_DEVICE static __inline__ __device__ __attribute__((always_inline))
#define GR_ONE(name) GR_DEVICE float name(float x) { return ::name##f(x); }
#define GR_TWO(name) GR_DEVICE float name(float x, float y) { return ::name##f(x, y); }
/* Whatever the tag, CUDA's is the one quiet NaN. */
GR_DEVICE double nan(const char *) { return __builtin_nan(""); }
GR_DEVICE float nanf(const char *) { return __builtin_nanf(""); }
GR_ONE(acosh)
GR_ONE(asinh)
GR_ONE(atanh)
GR_ONE(cbrt)
GR_ONE(erf)
GR_ONE(erfc)
GR_ONE(exp2)
GR_ONE(expm1)
GR_ONE(lgamma)
GR_ONE(log1p)
GR_ONE(log2)
GR_ONE(logb)
GR_ONE(nearbyint)
GR_ONE(rint)
GR_ONE(round)
GR_ONE(tgamma)
GR_ONE(trunc)
GR_TWO(copysign)
GR_TWO(fdim)
GR_TWO(fmax)
GR_TWO(fmin)
GR_TWO(hypot)
GR_TWO(nextafter)
GR_TWO(remainder)
GR_DEVICE float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
GR_DEVICE float remquo(float x, float y, int *quotient) { return ::remquof(x, y, quotient); }
GR_DEVICE float scalbn(float x, int by) { return ::scalbnf(x, by); }
GR_DEVICE float scalbln(float x, long by) { return ::scalblnf(x, by); }
GR_DEVICE int ilogb(float x) { return ::ilogbf(x); }
GR_DEVICE long lrint(float x) { return ::lrintf(x); }
GR_DEVICE long lround(float x) { return ::lroundf(x); }
GR_DEVICE long long llrint(float x) { return ::llrintf(x); }
GR_DEVICE long long llround(float x) { return ::llroundf(x); }
GR_DEVICE void sincos(float x, float *sine, float *cosine) { ::sincosf(x, sine, cosine); }
GR_DEVICE void sincospi(float x, float *sine, float *cosine) { ::sincospif(x, sine, cosine); }
#undef GR_TWO
#undef GR_ONE
#undef GR_DEVICE

/* Saturation and fused steps that device code calls by CUDA's names. */
static inline __device__ void __nanosleep(unsigned int) {}
static inline __device__ unsigned int __dp4a(unsigned int a, unsigned int b, unsigned int sum)
{
    for (int i = 0; i < 32; i += 8) sum += ((a >> i) & 255u) * ((b >> i) & 255u);
    return sum;
}
static inline __device__ int __dp4a(int a, int b, int sum)
{
    for (int i = 0; i < 32; i += 8) sum += (int)(signed char)(a >> i) * (int)(signed char)(b >> i);
    return sum;
}
static inline __device__ int __dp2a_lo(int a, int b, int sum)
{
    return sum + (int)(short)a * (int)(signed char)b + (int)(short)(a >> 16) * (int)(signed char)(b >> 8);
}
static inline __device__ int __dp2a_hi(int a, int b, int sum)
{
    return sum + (int)(short)a * (int)(signed char)(b >> 16) + (int)(short)(a >> 16) * (int)(signed char)(b >> 24);
}

/* Functions without an execution space that only kernels call may end so, too. */
static inline __host__ __attribute__((noreturn)) void __trap(void) { __builtin_trap(); }

#endif
