/* IEEE binary16: __half, __half2 and their functions. */
#ifndef GRADUS_CUDA_FP16_H
#define GRADUS_CUDA_FP16_H
#include "gradus_cuda.h"
#ifdef __CUDA__
struct __half_raw { unsigned short x; };
struct __half2_raw { unsigned short x, y; };
static inline __host__ __device__ float gr_widen_half(unsigned short bits) { return (float)__builtin_bit_cast(_Float16, bits); }
static inline __host__ __device__ unsigned short gr_narrow_half(float x) { return __builtin_bit_cast(unsigned short, (_Float16)x); }
static inline __host__ __device__ unsigned short gr_narrow_half(double x) { return __builtin_bit_cast(unsigned short, (_Float16)x); }
#define GR_SMALL __half
#define GR_PAIR __half2
#define GR_RAW unsigned short
#define GR_RAWS __half_raw
#define GR_NAME half
#include "gradus/small_floats.h"
#undef GR_SMALL
#undef GR_PAIR
#undef GR_RAW
#undef GR_RAWS
#undef GR_NAME
typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
/* Rounded towards zero, up, down: the neighbour of the nearest where it lies on the wrong side. */
static inline __host__ __device__ __half gr_half_towards(float x, bool wrong_above, bool wrong_below)
{
    __half near(x);
    float value = near;
    unsigned short bits = near.bits;
    if (value > x && wrong_above) bits = bits == 0 ? 0x8001 : (unsigned short)(bits & 0x8000 ? bits + 1 : bits - 1);
    if (value < x && wrong_below) bits = bits == 0x8000 ? 0x0001 : (unsigned short)(bits & 0x8000 ? bits - 1 : bits + 1);
    return __half(__half_raw{bits});
}
static inline __host__ __device__ __half __float2half_rz(float x) { return gr_half_towards(x, x > 0, x < 0); }
static inline __host__ __device__ __half __float2half_ru(float x) { return gr_half_towards(x, false, true); }
static inline __host__ __device__ __half __float2half_rd(float x) { return gr_half_towards(x, true, false); }
#else
typedef struct { unsigned short x; } __half;
typedef struct { __half x, y; } __half2;
#endif
#endif
