/* bfloat16: __nv_bfloat16, __nv_bfloat162 and their functions. */
#ifndef GRADUS_CUDA_BF16_H
#define GRADUS_CUDA_BF16_H
#include "gradus_cuda.h"
#ifdef __CUDA__
struct __nv_bfloat16_raw { unsigned short x; };
static inline __host__ __device__ float gr_widen_bfloat16(unsigned short bits) { return __builtin_bit_cast(float, (unsigned int)bits << 16); }
static inline __host__ __device__ unsigned short gr_narrow_bfloat16(float x)
{
    unsigned int bits = __builtin_bit_cast(unsigned int, x);
    if (x != x) return 0x7fff;
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
/* By way of a float whose last bit tells that something was cut off, so that it is rounded once. */
static inline __host__ __device__ unsigned short gr_narrow_bfloat16(double x)
{
    float near = (float)x;
    unsigned int bits = __builtin_bit_cast(unsigned int, near);
    if (near - near == 0 && (double)near != x) {
        if (__builtin_fabs((double)near) > __builtin_fabs(x)) bits--;
        bits |= 1;
    }
    return gr_narrow_bfloat16(__builtin_bit_cast(float, bits));
}
#define GR_SMALL __nv_bfloat16
#define GR_PAIR __nv_bfloat162
#define GR_RAW unsigned short
#define GR_RAWS __nv_bfloat16_raw
#define GR_NAME bfloat16
#include "gradus/small_floats.h"
#undef GR_SMALL
#undef GR_PAIR
#undef GR_RAW
#undef GR_RAWS
#undef GR_NAME
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#else
typedef struct { unsigned short x; } __nv_bfloat16;
typedef struct { __nv_bfloat16 x, y; } __nv_bfloat162;
#endif
#endif
