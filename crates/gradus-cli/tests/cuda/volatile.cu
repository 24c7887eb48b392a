/* Code from before Volta: the threads of a warp speak through volatile shared memory, without a barrier. */
#include "check.h"

const int N = 128;

/* The last warp's steps of a sum, unrolled. */
__global__ void sum(const int *in, int *out)
{
    __shared__ int s[N];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * N + t];
    __syncthreads();
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
    if (t < 32) {
        volatile int *v = s;
        v[t] += v[t + 32];
        v[t] += v[t + 16];
        v[t] += v[t + 8];
        v[t] += v[t + 4];
        v[t] += v[t + 2];
        v[t] += v[t + 1];
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

/* Running sums of each warp, in a function, with zeros before each warp's numbers. */
static __device__ int before(int value, volatile int *s)
{
    int place = 2 * threadIdx.x - (threadIdx.x & 31), sum = value;
    s[place] = 0;
    place += 32;
    s[place] = sum;
    for (int far = 1; far < 32; far *= 2) s[place] = sum += s[place - far];
    return s[place - 1];
}
__global__ void running(const int *in, int *out)
{
    extern __shared__ int words[];
    out[threadIdx.x] = before(in[threadIdx.x], words);
}

/* Each thread hands its number to its left neighbour again and again: also what is read must be read first. */
__global__ void around(int *out, int rounds)
{
    __shared__ volatile int ring[32];
    int t = threadIdx.x;
    ring[t] = t;
    for (int i = 0; i < rounds; i++) ring[t] = ring[(t + 1) % 32] + ring[(t + 31) % 32];
    out[t] = ring[t];
}

int main()
{
    int *in, *out;
    OK(cudaMallocManaged(&in, 4 * N * sizeof(int))), OK(cudaMallocManaged(&out, N * sizeof(int)));
    for (int i = 0; i < 4 * N; i++) in[i] = (i * 37) % 101;
    sum<<<4, N>>>(in, out);
    OK(cudaDeviceSynchronize());
    for (int b = 0; b < 4; b++) {
        int wanted = 0;
        for (int i = 0; i < N; i++) wanted += in[b * N + i];
        expect(out[b] == wanted, "sum");
    }
    running<<<1, N, 2 * N * sizeof(int)>>>(in, out);
    OK(cudaDeviceSynchronize());
    for (int t = 0, wanted = 0; t < N; t++) {
        if (t % 32 == 0) wanted = 0;
        expect(out[t] == wanted, "running sums");
        wanted += in[t];
    }
    around<<<1, 32>>>(out, 5);
    OK(cudaDeviceSynchronize());
    int ring[32], next[32];
    for (int t = 0; t < 32; t++) ring[t] = t;
    for (int i = 0; i < 5; i++) {
        for (int t = 0; t < 32; t++) next[t] = ring[(t + 1) % 32] + ring[(t + 31) % 32];
        for (int t = 0; t < 32; t++) ring[t] = next[t];
    }
    for (int t = 0; t < 32; t++) expect(out[t] == ring[t], "a ring");
    return wrong;
}
