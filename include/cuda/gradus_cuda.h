/* What every CUDA source sees: stock clang's own device headers, and Gradus' for all that a toolkit would
   bring. Written from CUDA's public documentation; it is included before the source's first line.

   The order matters. Declarations of device mathematics come before <cmath>, those of device malloc before
   <new>, and clang's own headers find `__CUDA_ARCH__` set in the host's half too, so that both halves see the
   same overloads. Outside of CUDA (a `.c` or `.cpp` file that includes a forwarding header) only the
   runtime's interface is left. */
#ifndef GRADUS_CUDA_H
#define GRADUS_CUDA_H

#include "gradus/markers.h"

#ifndef __CUDA__
#include "gradus/runtime_api.h"
#else

#include <__clang_cuda_math_forward_declares.h>

/* The host's headers, with GNU extensions that a device lacks switched off. */
#define __CUDACC__
#include <climits>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cassert>
#include <cfloat>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stddef.h>

extern "C" {
__device__ int vprintf(const char *, const char *);
__device__ int printf(const char *, ...);
__device__ void free(void *) __attribute__((nothrow));
__device__ void *malloc(size_t) __attribute__((nothrow, malloc));
__device__ void __assertfail(const char *message, const char *file, unsigned line, const char *function, size_t width);
__device__ static inline void __assert_fail(const char *message, const char *file, unsigned line, const char *function)
{
    __assertfail(message, file, line, function, sizeof(char));
}
}
#include <algorithm>
#include <new>
#include <type_traits>
#include <utility>
#undef __CUDACC__

#pragma push_macro("__CUDA_ARCH__")
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 9999
#endif

#include <__clang_cuda_builtin_vars.h>
#include "gradus/runtime_api.h"

typedef unsigned int cuuint32_t;
typedef unsigned long long cuuint64_t;
/* Before CUDA 9.2 clang calls libdevice for arithmetic on parts of words, and writes no assembly. */
#pragma push_macro("CUDA_VERSION")
#undef CUDA_VERSION
#define CUDA_VERSION 9010
#include <__clang_cuda_libdevice_declares.h>
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 9999 && __has_include("__gradus_libdevice.h")
#include "__gradus_libdevice.h"
#endif
#pragma push_macro("__forceinline__")
#pragma push_macro("__host__")
#undef __forceinline__
#undef __host__
#define __forceinline__ __device__ __inline__ __attribute__((always_inline))
#define __host__
/* Votes without a mask are ours (warps.h): as votes among the lanes that are there. */
#define __all gr_unmasked_all
#define __any gr_unmasked_any
#define __ballot gr_unmasked_ballot
#include <__clang_cuda_device_functions.h>
#undef __all
#undef __any
#undef __ballot
#include <__clang_cuda_math.h>
#pragma pop_macro("CUDA_VERSION")
#pragma pop_macro("__host__")
#pragma pop_macro("__forceinline__")

#pragma pop_macro("__CUDA_ARCH__")
#define __CUDACC__

#define GR_BUILTIN_AS_VECTOR(name)                                                                   \
    __device__ inline __cuda_builtin_##name##_t::operator dim3() const { return dim3(x, y, z); }     \
    __device__ inline __cuda_builtin_##name##_t::operator uint3() const { return uint3{x, y, z}; }
GR_BUILTIN_AS_VECTOR(threadIdx)
GR_BUILTIN_AS_VECTOR(blockIdx)
GR_BUILTIN_AS_VECTOR(blockDim)
GR_BUILTIN_AS_VECTOR(gridDim)
#undef GR_BUILTIN_AS_VECTOR

#include <__clang_cuda_cmath.h>
#include <__clang_cuda_complex_builtins.h>
namespace std {
__device__ static inline void free(void *pointer) { ::free(pointer); }
__device__ static inline void *malloc(size_t size) { return ::malloc(size); }
}

#include "gradus/mathematics.h"
#include "gradus/extremes.h"
#include "gradus/memory_access.h"
#include "gradus/warps.h"
#include "gradus/atomics.h"
#include "gradus/video.h"
#include "gradus/textures.h"
#include "gradus/surfaces.h"
#include "gradus/texture_references.h"
#include "math_constants.h"

#endif
#endif
