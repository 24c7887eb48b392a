// Shared memory has 32-bit addresses on a GPU: indices wrap.
#include "check.h"
#include <cstdint>

__global__ void backwards(const float *a, float *o)
{
    __shared__ float s[64];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    float *p = s + 40;
    uint32_t i = threadIdx.x & 31;
    o[threadIdx.x] = p[~i];
}
// A number from memory, unknown to the compiler.
__global__ void listed(const unsigned *at, int *o)
{
    extern __shared__ int room[];
    int *half = room + blockDim.x / 2;
    room[threadIdx.x] = 3 * threadIdx.x;
    __syncthreads();
    o[threadIdx.x] = half[at[threadIdx.x]];
}
template <typename T> __global__ void stored(T *o, unsigned n)
{
    __shared__ T s[128];
    s[threadIdx.x] = 0;
    __syncthreads();
    T *end = &s[128];
    for (unsigned k = 1; k <= n; k++)
        if (k % blockDim.x == threadIdx.x) end[0u - k] = T(k);
    __syncthreads();
    o[threadIdx.x] = s[threadIdx.x];
}
__device__ double before(const double *p, unsigned back) { return p[-back] + *(p - 1 - back + 1); }
__global__ void passed(double *o)
{
    __shared__ double s[8][8];
    s[threadIdx.y][threadIdx.x] = threadIdx.y * 8 + threadIdx.x;
    __syncthreads();
    o[threadIdx.y * 8 + threadIdx.x] = before(&s[7][7], 63 - (threadIdx.y * 8 + threadIdx.x));
}

int main()
{
    float *a, *o;
    OK(cudaMallocManaged(&a, 64 * sizeof(float)));
    OK(cudaMallocManaged(&o, 64 * sizeof(float)));
    for (int i = 0; i < 64; i++) a[i] = i;
    backwards<<<1, 64>>>(a, o);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++) near(o[i], 39 - (i & 31), "backwards");
    unsigned *at;
    int *found;
    OK(cudaMallocManaged(&at, 64 * sizeof(unsigned)));
    OK(cudaMallocManaged(&found, 64 * sizeof(int)));
    for (int i = 0; i < 64; i++) at[i] = unsigned(i) - 32u;
    listed<<<1, 64, 64 * sizeof(int)>>>(at, found);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++) expect(found[i] == 3 * i, "listed");
    short *s;
    OK(cudaMallocManaged(&s, 128 * sizeof(short)));
    stored<<<1, 128>>>(s, 100);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 128; i++) expect(s[i] == (i >= 28 ? 128 - i : 0), "stored");
    double *d;
    OK(cudaMallocManaged(&d, 64 * sizeof(double)));
    passed<<<1, dim3(8, 8)>>>(d);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++) near(d[i], 2 * i, "passed");
    return wrong;
}
