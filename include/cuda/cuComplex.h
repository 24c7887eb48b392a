/* Complex numbers as CUDA's C interface has them. */
#ifndef GRADUS_CUDA_COMPLEX_H
#define GRADUS_CUDA_COMPLEX_H
#include <math.h>
#include "gradus_cuda.h"

#define GR_COMPLEX static __inline__ __host__ __device__
typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define GR_COMPLEX_OF(type, scalar, infix, absolute, root)                                                               \
    GR_COMPLEX scalar cuCreal##infix(type x) { return x.x; }                                                             \
    GR_COMPLEX scalar cuCimag##infix(type x) { return x.y; }                                                             \
    GR_COMPLEX type cuConj##infix(type x) { type r = {x.x, -x.y}; return r; }                                            \
    GR_COMPLEX type cuCadd##infix(type a, type b) { type r = {a.x + b.x, a.y + b.y}; return r; }                         \
    GR_COMPLEX type cuCsub##infix(type a, type b) { type r = {a.x - b.x, a.y - b.y}; return r; }                         \
    GR_COMPLEX type cuCmul##infix(type a, type b) { type r = {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; return r; } \
    /* Scaled, so that no square overflows. */                                                                           \
    GR_COMPLEX type cuCdiv##infix(type a, type b)                                                                        \
    {                                                                                                                    \
        scalar scale = (scalar)1 / (absolute(b.x) + absolute(b.y));                                                      \
        scalar ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;                                   \
        scalar norm = (scalar)1 / (bx * bx + by * by);                                                                   \
        type r = {(ax * bx + ay * by) * norm, (ay * bx - ax * by) * norm};                                               \
        return r;                                                                                                        \
    }                                                                                                                    \
    GR_COMPLEX scalar cuCabs##infix(type x)                                                                              \
    {                                                                                                                    \
        scalar a = absolute(x.x), b = absolute(x.y);                                                                     \
        scalar large = a > b ? a : b, small = a > b ? b : a;                                                             \
        if (large == 0 || large - large != 0) return large + small;                                                      \
        scalar ratio = small / large;                                                                                    \
        return large * root((scalar)1 + ratio * ratio);                                                                  \
    }                                                                                                                    \
    GR_COMPLEX type cuCfma##infix(type a, type b, type c)                                                                \
    { type r = {a.x * b.x - a.y * b.y + c.x, a.x * b.y + a.y * b.x + c.y}; return r; }
GR_COMPLEX_OF(cuFloatComplex, float, f, fabsf, sqrtf)
GR_COMPLEX_OF(cuDoubleComplex, double, , fabs, sqrt)
#undef GR_COMPLEX_OF

GR_COMPLEX cuFloatComplex make_cuFloatComplex(float x, float y) { cuFloatComplex r = {x, y}; return r; }
GR_COMPLEX cuDoubleComplex make_cuDoubleComplex(double x, double y) { cuDoubleComplex r = {x, y}; return r; }
GR_COMPLEX cuComplex make_cuComplex(float x, float y) { return make_cuFloatComplex(x, y); }
GR_COMPLEX cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex x) { return make_cuDoubleComplex(x.x, x.y); }
GR_COMPLEX cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex x) { return make_cuFloatComplex((float)x.x, (float)x.y); }
#undef GR_COMPLEX
#endif
