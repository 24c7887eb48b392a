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
// Constants wrap, too: as an index, as a distance that two steps make, and for all sizes of elements.
struct Pair {
    int a;
    short b;
};
__global__ void constants(int *o)
{
    __shared__ int s[64];
    __shared__ char bytes[64];
    __shared__ double wide[65];
    __shared__ Pair pairs[64];
    __shared__ int rows[8][8];
    unsigned t = threadIdx.x;
    s[t] = 3 * t, bytes[t] = t, wide[t + 1] = t, pairs[t].a = t, pairs[t].b = -t, rows[t / 8][t % 8] = t;
    __syncthreads();
    int *p = s + t + 1;
    unsigned zero = t - t;
    int sum = (s + t + 1)[~0u] - 3 * t;
    sum |= p[0xffffffffu] - 3 * t;
    sum |= p[~zero] - 3 * t;
    sum |= *(p - 3 + ~0u - ~2u) - 3 * t;
    sum |= (bytes + t + 5)[-5u] - t;
    sum |= int((wide + t)[0x100000001ull]) - t;
    sum |= int((wide + t + 1)[0x20000000u]) - t;
    sum |= (pairs + t + 2)[-2u].a - t;
    sum |= (pairs + t + 2)[-2u].b + t;
    sum |= (&rows[t / 8][t % 8] + 9)[-9u] - t;
    sum |= s[0x40000005u] - 15;
    o[t] = sum;
}
// An access that wraps touches an element that is read and written by its name, too.
__global__ void met(int *o, unsigned one)
{
    __shared__ int s[64];
    unsigned t = threadIdx.x;
    if (t == 0) {
        s[31] = 1, s[32] = 2;
        int *p = s + 33;
        int before = p[~0u];
        s[32] = before + 5;
        int after = p[~0u];
        p[-2u] = 70;
        int by_name = s[31];
        s[31] = 8;
        int varied = p[-one - 1u];
        p[-one] = 90;
        o[0] = before, o[1] = after, o[2] = by_name, o[3] = varied, o[4] = s[32];
    }
}
// Functions that stay calls: all of their calls hand in shared memory, or some of them, or they call themselves.
__device__ __noinline__ int always(const int *p, unsigned i) { return p[~i] + p[-1u]; }
__device__ __noinline__ int sometimes(const int *p, unsigned i) { return i < 64 ? p[i] : p[i + 0u] + 1000; }
__device__ __noinline__ int beyond(const int *p, const int *q, unsigned i) { return sometimes(p, i) + q[i & 63]; }
__device__ __noinline__ int deep(const int *p, unsigned from, unsigned to)
{
    if (to - from == 1u) return p[from];
    unsigned middle = from + (to - from) / 2;
    return deep(p, from, middle) + deep(p, middle, to);
}
__device__ __noinline__ int turned(const int *p, const int *q, unsigned n)
{
    return n == 0u ? p[-1u] : turned(q, p, n - 1) + 1;
}
__global__ void called(int *o, const int *all)
{
    __shared__ int s[64];
    unsigned t = threadIdx.x;
    s[t] = 3 * t;
    __syncthreads();
    int sum = always(s + t + 1, 0) - 6 * t;
    sum |= sometimes(s + 40, t - 40u) - 3 * t - (t < 40 ? 1000 : 0);
    sum |= sometimes(all, t) - t;
    sum |= beyond(s + 40, all, t - 40u) - 3 * t - (t < 40 ? 1000 : 0) - int((t - 40u) & 63);
    sum |= beyond(all, s, t) - 4 * t;
    sum |= deep(s + 32, -32u, 32u) - 3 * 63 * 32;
    sum |= deep(all, 0, 64) - 63 * 32;
    sum |= turned(s + t + 1, all + 1, t & 30) - 3 * t - (t & 30);
    sum |= turned(s + t + 1, s + 1, t & 31) - (t & 1 ? 0 : 3 * t) - (t & 31);
    o[t] = sum;
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
    constants<<<1, 64>>>(found);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++) expect(found[i] == 0, "constants");
    met<<<1, 64>>>(found, 1);
    OK(cudaDeviceSynchronize());
    const int wanted[] = {2, 7, 70, 8, 90};
    for (int i = 0; i < 5; i++) expect(found[i] == wanted[i], "met");
    int *all;
    OK(cudaMallocManaged(&all, 65 * sizeof(int)));
    for (int i = 0; i < 65; i++) all[i] = i;
    called<<<1, 64>>>(found, all);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++) expect(found[i] == 0, "called");
    return wrong;
}
