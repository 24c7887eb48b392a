/* Floating-point numbers of 8 bits: __nv_fp8_e4m3 (no infinities, NaN is 0x7f and 0xff, the largest is 448) and
   __nv_fp8_e5m2 (as IEEE, the largest is 57344), their vectors of two and four, and the conversions. They are
   stored and converted, not computed with. Conversions round to nearest even. */
#ifndef GRADUS_CUDA_FP8_H
#define GRADUS_CUDA_FP8_H
#include "cuda_bf16.h"
#include "cuda_fp16.h"
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short int __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
typedef enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;
#ifdef __CUDA__
#define GR_H static __inline__ __host__ __device__ __attribute__((always_inline))

GR_H __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind)
{
    const bool e4m3 = kind == __NV_E4M3;
    /* What is halfway to the next number after the largest rounds to the even one of both: of 448 (S.1111.110)
       itself, of 57344 (S.11110.11) the infinity behind it. */
    const double halfway = e4m3 ? 464.0 : 61440.0;
    const int mantissa = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
    const unsigned long long bits = __builtin_bit_cast(unsigned long long, x);
    const unsigned int sign = (unsigned int)(bits >> 63) << 7;
    const double size = __builtin_fabs(x);
    if (x != x) return 0x7f;
    if (e4m3 ? size > halfway : size >= halfway) {
        if (saturate == __NV_SATFINITE) return (__nv_fp8_storage_t)(sign | (e4m3 ? 0x7e : 0x7b));
        return (__nv_fp8_storage_t)(sign | (e4m3 ? 0x7f : 0x7c));
    }
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (exponent < 1 - bias) exponent = 1 - bias;
    const double scale = __builtin_bit_cast(double, (unsigned long long)(1023 + mantissa - exponent) << 52);
    const unsigned int steps = (unsigned int)__builtin_rint(size * scale);
    return (__nv_fp8_storage_t)(sign | (((unsigned int)(exponent + bias - 1) << mantissa) + steps));
}
GR_H float gr_widen_fp8(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind)
{
    const bool e4m3 = kind == __NV_E4M3;
    const unsigned int size = x & 0x7f;
    const unsigned int sign = (unsigned int)(x >> 7) << 31;
    const int mantissa = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
    if (e4m3 ? size == 0x7f : size > 0x7c) return __builtin_nanf("");
    if (!e4m3 && size == 0x7c) return __builtin_bit_cast(float, sign | 0x7f800000u);
    /* The bits of a float that is too small by a power of two, also where the number has no leading one. */
    const float scale = __builtin_bit_cast(float, (unsigned int)(127 + 127 - bias) << 23);
    return __builtin_bit_cast(float, sign | size << (23 - mantissa)) * scale;
}
GR_H __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return __nv_cvt_double_to_fp8(x, s, k); }
GR_H __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return __nv_cvt_double_to_fp8((float)__half(x), s, k); }
GR_H __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return __nv_cvt_double_to_fp8((float)__nv_bfloat16(x), s, k); }
GR_H __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t k) { return __half(gr_widen_fp8(x, k)); }
GR_H __nv_fp8x2_storage_t gr_fp8_pair(__nv_fp8_storage_t x, __nv_fp8_storage_t y) { return (__nv_fp8x2_storage_t)(x | y << 8); }
GR_H __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return gr_fp8_pair(__nv_cvt_double_to_fp8(x.x, s, k), __nv_cvt_double_to_fp8(x.y, s, k)); }
GR_H __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return gr_fp8_pair(__nv_cvt_float_to_fp8(x.x, s, k), __nv_cvt_float_to_fp8(x.y, s, k)); }
GR_H __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t k) { return gr_fp8_pair(__nv_cvt_halfraw_to_fp8(__half_raw{x.x}, s, k), __nv_cvt_halfraw_to_fp8(__half_raw{x.y}, s, k)); }
GR_H __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t k)
{
    return __half2_raw{__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, k).x, __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(x >> 8), k).x};
}

/* One number; constructors take the largest for what is too large. */
#define GR_FP8(type, kind)                                                                                          \
    struct __align__(1) type {                                                                                      \
        __nv_fp8_storage_t __x;                                                                                     \
        type() = default;                                                                                           \
        explicit __host__ __device__ type(double x) : __x(__nv_cvt_double_to_fp8(x, __NV_SATFINITE, kind)) {}       \
        explicit __host__ __device__ type(float x) : type((double)x) {}                                             \
        explicit __host__ __device__ type(__half x) : type((double)(float)x) {}                                     \
        explicit __host__ __device__ type(__nv_bfloat16 x) : type((double)(float)x) {}                              \
        template <class T, class = std::enable_if_t<std::is_integral_v<T>>>                                         \
        explicit __host__ __device__ type(T x) : type((double)x) {}                                                 \
        explicit __host__ __device__ operator float() const { return gr_widen_fp8(__x, kind); }                     \
        explicit __host__ __device__ operator double() const { return gr_widen_fp8(__x, kind); }                    \
        explicit __host__ __device__ operator __half() const { return __half(gr_widen_fp8(__x, kind)); }            \
        explicit __host__ __device__ operator __nv_bfloat16() const { return __nv_bfloat16(gr_widen_fp8(__x, kind)); } \
        explicit __host__ __device__ operator bool() const { return (__x & 0x7f) != 0; }                            \
        template <class T, class = std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>>             \
        explicit __host__ __device__ operator T() const { return (T)gr_widen_fp8(__x, kind); }                      \
    };
GR_FP8(__nv_fp8_e4m3, __NV_E4M3)
GR_FP8(__nv_fp8_e5m2, __NV_E5M2)
#undef GR_FP8
#define GR_FP8X2(type, kind)                                                                                        \
    struct __align__(2) type {                                                                                      \
        __nv_fp8x2_storage_t __x;                                                                                   \
        type() = default;                                                                                           \
        explicit __host__ __device__ type(double2 x) : __x(__nv_cvt_double2_to_fp8x2(x, __NV_SATFINITE, kind)) {}   \
        explicit __host__ __device__ type(float2 x) : __x(__nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, kind)) {}     \
        explicit __host__ __device__ type(__half2 x) : type(make_float2(x.x, x.y)) {}                               \
        explicit __host__ __device__ type(__nv_bfloat162 x) : type(make_float2(x.x, x.y)) {}                        \
        explicit __host__ __device__ operator float2() const                                                        \
        { return make_float2(gr_widen_fp8((__nv_fp8_storage_t)__x, kind), gr_widen_fp8((__nv_fp8_storage_t)(__x >> 8), kind)); } \
        explicit __host__ __device__ operator __half2() const                                                       \
        { const float2 x = (float2)*this; return __half2(__half(x.x), __half(x.y)); }                               \
    };
GR_FP8X2(__nv_fp8x2_e4m3, __NV_E4M3)
GR_FP8X2(__nv_fp8x2_e5m2, __NV_E5M2)
#undef GR_FP8X2
#define GR_FP8X4(type, pair, kind)                                                                                  \
    struct __align__(4) type {                                                                                      \
        __nv_fp8x4_storage_t __x;                                                                                   \
        type() = default;                                                                                           \
        explicit __host__ __device__ type(double4 x)                                                                \
            : __x(pair(make_double2(x.x, x.y)).__x | (unsigned int)pair(make_double2(x.z, x.w)).__x << 16) {}       \
        explicit __host__ __device__ type(float4 x)                                                                 \
            : __x(pair(make_float2(x.x, x.y)).__x | (unsigned int)pair(make_float2(x.z, x.w)).__x << 16) {}         \
        explicit __host__ __device__ type(__half2 low, __half2 high)                                                \
            : __x(pair(low).__x | (unsigned int)pair(high).__x << 16) {}                                            \
        explicit __host__ __device__ type(__nv_bfloat162 low, __nv_bfloat162 high)                                  \
            : __x(pair(low).__x | (unsigned int)pair(high).__x << 16) {}                                            \
        explicit __host__ __device__ operator float4() const                                                        \
        {                                                                                                           \
            return make_float4(gr_widen_fp8((__nv_fp8_storage_t)__x, kind), gr_widen_fp8((__nv_fp8_storage_t)(__x >> 8), kind), \
                               gr_widen_fp8((__nv_fp8_storage_t)(__x >> 16), kind), gr_widen_fp8((__nv_fp8_storage_t)(__x >> 24), kind)); \
        }                                                                                                           \
    };
GR_FP8X4(__nv_fp8x4_e4m3, __nv_fp8x2_e4m3, __NV_E4M3)
GR_FP8X4(__nv_fp8x4_e5m2, __nv_fp8x2_e5m2, __NV_E5M2)
#undef GR_FP8X4
#undef GR_H
#endif
#endif
