/* CUDA's vector types, their makers, and dim3. Alignments are those of the programming guide's table. */
#ifndef GRADUS_CUDA_VECTORS_H
#define GRADUS_CUDA_VECTORS_H

#include "markers.h"

#define GR_VECTORS(element, name, align2, align4)                                                            \
    struct name##1 { element x; };                                                                           \
    struct __align__(align2) name##2 { element x, y; };                                                      \
    struct name##3 { element x, y, z; };                                                                     \
    struct __align__(align4) name##4 { element x, y, z, w; };                                                \
    typedef struct name##1 name##1;                                                                          \
    typedef struct name##2 name##2;                                                                          \
    typedef struct name##3 name##3;                                                                          \
    typedef struct name##4 name##4;                                                                          \
    static __inline__ __host__ __device__ name##1 make_##name##1(element x) { name##1 r = {x}; return r; }   \
    static __inline__ __host__ __device__ name##2 make_##name##2(element x, element y)                       \
    { name##2 r = {x, y}; return r; }                                                                        \
    static __inline__ __host__ __device__ name##3 make_##name##3(element x, element y, element z)            \
    { name##3 r = {x, y, z}; return r; }                                                                     \
    static __inline__ __host__ __device__ name##4 make_##name##4(element x, element y, element z, element w) \
    { name##4 r = {x, y, z, w}; return r; }

GR_VECTORS(signed char, char, 2, 4)
GR_VECTORS(unsigned char, uchar, 2, 4)
GR_VECTORS(short, short, 4, 8)
GR_VECTORS(unsigned short, ushort, 4, 8)
GR_VECTORS(int, int, 8, 16)
GR_VECTORS(unsigned int, uint, 8, 16)
GR_VECTORS(long, long, 16, 16)
GR_VECTORS(unsigned long, ulong, 16, 16)
GR_VECTORS(long long, longlong, 16, 16)
GR_VECTORS(unsigned long long, ulonglong, 16, 16)
GR_VECTORS(float, float, 8, 16)
GR_VECTORS(double, double, 16, 16)
#undef GR_VECTORS

struct dim3 {
    unsigned int x, y, z;
#ifdef __cplusplus
    __host__ __device__ __attribute__((always_inline)) constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    __host__ __device__ __attribute__((always_inline)) constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    __host__ __device__ __attribute__((always_inline)) constexpr operator uint3() const { return uint3{x, y, z}; }
#endif
};
typedef struct dim3 dim3;

#endif
