/* CUDA's words for functions, variables and types, as clang's attributes; and the versions we stand for. */
#ifndef GRADUS_CUDA_MARKERS_H
#define GRADUS_CUDA_MARKERS_H

#define CUDA_VERSION 12020
#define CUDART_VERSION 12020
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 2
#define __CUDACC_VER_BUILD__ 0
#define CUDA_API_PER_THREAD_DEFAULT_STREAM_SUPPORTED 1
/* Programs ask by these whether the types of the runtime and of the host are known. */
#define __DRIVER_TYPES_H__
#define __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_API_H__
#define __VECTOR_TYPES_H__
#define __HOST_DEFINES_H__

#define CUDART_CB
#define CUDARTAPI
#define CUDAAPI
#define CUDA_CB

#ifdef __CUDA__
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
/* One memory: a managed variable is a device variable that the host names too. */
#define __managed__ __attribute__((device))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __grid_constant__ __attribute__((grid_constant))
#define __maxnreg__(n)
#define __cluster_dims__(...)
#else
#define __device__
#define __host__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __launch_bounds__(...)
#define __grid_constant__
#endif

#define __forceinline__ __inline__ __attribute__((always_inline))
/* `__noinline__` is a word of clang's in CUDA, and one of the standard library's attributes in plain C++. */
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __inline_hint__ inline
#define __nv_pure__ __attribute__((pure))
#ifndef __restrict
#define __restrict __restrict__
#endif

#ifdef __cplusplus
#define __dv(value) = value
#else
#define __dv(value)
#endif

#endif
