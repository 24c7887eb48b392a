/* What the programs beside this share: inputs that every type holds exactly, and results as text. */
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <type_traits>
/* The package's kernels of small numbers stand behind questions for the architecture, which the host's half has
   none of: its own host finds kernels by their names. */
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 890
#endif

template <class T> T *fresh(size_t n)
{
    T *p = nullptr;
    if (cudaMallocManaged(&p, n * sizeof(T)) != cudaSuccess) abort();
    memset((void *)p, 0, n * sizeof(T));
    return p;
}
/* Integers are 0 to 30; others are multiples of an eighth up to 15 eighths. */
template <class T> T *input(size_t n, int seed)
{
    T *p = fresh<T>(n);
    for (size_t i = 0; i < n; i++) {
        const int k = (int)((i * 37 + (size_t)seed * 11) % 31);
        if constexpr (std::is_integral_v<T>) p[i] = (T)k;
        else p[i] = T((float)(k - 15) / 8);
    }
    return p;
}
inline size_t *sizes(std::initializer_list<size_t> list)
{
    size_t *p = fresh<size_t>(list.size());
    size_t at = 0;
    for (size_t x : list) p[at++] = x;
    return p;
}
template <class T> void say(const char *name, const T *p, size_t n)
{
    cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess) error = cudaGetLastError();
    if (error != cudaSuccess) { printf("%s failed: %s\n", name, cudaGetErrorString(error)); exit(1); }
    printf("%s", name);
    for (size_t i = 0; i < n; i++) {
        if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>) printf(" %.17g", (double)p[i]);
        else printf(" %.17g", (double)(float)p[i]);
    }
    printf("\n");
}
