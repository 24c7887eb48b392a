/* Warp primitives, atomics of every type and scope, min and max of mixed types, video instructions. */
#include <cstdio>
#include <device_launch_parameters.h>
#include <sm_60_atomic_functions.h>

template <class T> __device__ void exchanges(T *x)
{
    x[1] = __shfl_sync(~0u, x[0], 3) + __shfl_up_sync(~0u, x[0], 1) + __shfl_down_sync(~0u, x[0], 2, 16);
    x[2] = __shfl_xor_sync(~0u, x[0], 8);
}
__global__ void warps(int *i, unsigned *u, long long *l, unsigned long *w, float *f, double *d)
{
    exchanges(i), exchanges(u), exchanges(l), exchanges(w), exchanges(f), exchanges(d);
    i[0] = __any_sync(~0u, i[1]) + __all_sync(~0u, i[1]) + __popc(__ballot_sync(~0u, i[2])) + __activemask();
    u[3] = __match_any_sync(~0u, l[0]) | __match_all_sync(~0u, f[0], i);
    u[4] = __reduce_add_sync(~0u, u[5]) + __reduce_max_sync(~0u, i[5]) + __fns(u[0], 0, 2);
    __syncwarp();
    i[1] = __shfl_down(i[0], 1) + __any(i[3]);
    i[2] = __syncthreads_count(i[0]) + __syncthreads_and(i[1]) + __syncthreads_or(i[2]);
    u[6] = __vadd4(u[0], u[1]) + __vsadu4(u[0], u[1]) + __vcmpgts2(u[0], u[1]) + __funnelshift_l(u[0], u[1], 5);
    f[3] = __ldg(f) + max(f[0], 1.0) + min(i[0], 3u) + max(w[0], 7ul) + rsqrtf(f[1]) + __expf(f[2]) + __saturatef(f[3]);
    __stcs(f, __ldcg(f + 1));
    f[4] = log2(f[5]) + round(f[6]) + std::hypot(f[7], f[8]) + fma(f[5], f[6], f[7]) + ilogb(f[8]);
    sincos(f[9], f + 10, f + 11);
}
__global__ void atomics(int *i, unsigned *u, unsigned long long *l, long long *s, float *f, double *d, unsigned short *h)
{
    atomicAdd(i, 1), atomicAdd(u, 1), atomicAdd(l, 1), atomicAdd(f, 1.0f), atomicAdd(d, 1.0), atomicAdd_block(d, 1.0);
    atomicAdd_system(l, 1), atomicSub(i, 2), atomicExch(f, 3.0f), atomicMin(s, 1), atomicMax_system(l, 1), atomicInc(u, 5);
    atomicDec_block(u, 5), atomicCAS(h, (unsigned short)1, (unsigned short)2), atomicCAS_block(l, 1, 2), atomicOr(s, 1);
    __threadfence_block();
    assert(*i > 0);
    printf("%d %f\n", *i, *f);
}
__device__ int counter = 3;
__constant__ float table[16];
__managed__ int shared_with_host;
int main()
{
    float host[16] = {};
    int *i;
    unsigned *u;
    cudaMalloc(&i, 64), cudaMallocManaged(&u, 64);
    cudaMemcpyToSymbol(table, host, sizeof host);
    cudaMemcpyFromSymbol(&shared_with_host, counter, sizeof counter);
    dim3 block(32, 2);
    warps<<<1, block>>>(i, u, nullptr, nullptr, host, nullptr);
    atomics<<<dim3(2, 2), 32, 0, cudaStreamPerThread>>>(i, u, nullptr, nullptr, host, nullptr, nullptr);
    void *arguments[] = {&i, &u};
    int blocks, threads;
    cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, warps);
    cudaFuncSetAttribute(warps, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024);
    cudaLaunchKernel(warps, blocks, threads, arguments);
    return std::max(cudaDeviceSynchronize(), cudaGetLastError()) + min(blocks, 3u);
}
