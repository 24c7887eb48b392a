/* Atomic functions of every type, a histogram in shared memory, symbols of every kind, structures by value, device
   functions through pointers. */
#include "check.h"

__constant__ int weights[4];
__device__ unsigned long long total = 5;
__managed__ double scale = 2;
__constant__ int offset;
__constant__ char letters[4];
struct Range { int first, last; double factor; };

__global__ void histogram(const unsigned char *x, int n, unsigned *bins)
{
    __shared__ unsigned own[16];
    if (threadIdx.x < 16) own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[x[i] & 15], 1u);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

__global__ void all(int *i, unsigned *u, float *f, double *d, unsigned long long *l)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&i[0], t), atomicSub(&i[1], 1), atomicMin(&i[2], t - 50), atomicMax(&i[3], t), atomicOr(&i[4], 1 << (t & 7));
    atomicAnd(&i[5], ~(1 << (t & 3))), atomicXor(&i[6], t);
    atomicInc(&u[0], 9), atomicDec(&u[1], 6);
    atomicAdd(f, 0.5f), atomicAdd(d, 0.25), atomicAdd(&total, 3ull), atomicMax(l, (unsigned long long)t << 33);
    int seen = i[7], was;
    do {
        was = seen;
        seen = atomicCAS(&i[7], was, was + 2);
    } while (seen != was);
}

__device__ double twice(double x) { return 2 * x; }
__device__ double squared(double x) { return x * x; }
__global__ void applied(double *x, Range range, bool square)
{
    double (*f)(double) = square ? squared : twice;
    int t = threadIdx.x;
    if (t >= range.first && t < range.last) x[t] = f(x[t]) * range.factor * scale + weights[t % 4] + offset + letters[0] - 'a';
}

/* A shift by all bits of a value or more gives nothing, or copies of the sign. */
__global__ void shifted(unsigned *out, unsigned x, int y, unsigned long long z)
{
    unsigned by = threadIdx.x;
    out[3 * by] = x << by | x >> (32 - by);
    out[3 * by + 1] = (unsigned)(y >> (by + 8));
    out[3 * by + 2] = (unsigned)(z >> (2 * by));
}

int main()
{
    const int n = 10000;
    unsigned char *x;
    unsigned *bins;
    OK(cudaMallocManaged(&x, n));
    OK(cudaMallocManaged(&bins, 64));
    OK(cudaMemset(bins, 0, 64));
    unsigned expected[16] = {};
    for (int i = 0; i < n; i++) expected[(x[i] = i * i / 7) & 15]++;
    histogram<<<5, 96>>>(x, n, bins);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 16; i++) expect(bins[i] == expected[i], "histogram");

    unsigned *moved;
    OK(cudaMallocManaged(&moved, 120 * sizeof(unsigned)));
    shifted<<<1, 40>>>(moved, 0x80000001u, -1000000, 1ull << 40);
    OK(cudaDeviceSynchronize());
    for (int by = 0; by < 40; by++) {
        unsigned right = by == 0 ? 0 : by > 32 ? 0 : 0x80000001u >> (32 - by);
        if (by == 32) right = 0x80000001u;
        unsigned left = by < 32 ? 0x80000001u << by : 0;
        expect(moved[3 * by] == (left | right), "rotation");
        expect((int)moved[3 * by + 1] == -1000000 >> (by + 8 > 31 ? 31 : by + 8), "arithmetic shift");
        expect(moved[3 * by + 2] == (by > 31 ? 0 : (unsigned)((1ull << 40) >> (2 * by))), "long shift");
    }

    int *i;
    unsigned *u;
    float *f;
    double *d;
    unsigned long long *l, found;
    OK(cudaMallocManaged(&i, 64)), OK(cudaMallocManaged(&u, 64)), OK(cudaMallocManaged(&f, 64));
    OK(cudaMallocManaged(&d, 64)), OK(cudaMallocManaged(&l, 64));
    for (int k = 0; k < 8; k++) i[k] = 0;
    i[5] = 255, u[0] = u[1] = 0, *f = 0, *d = 0, *l = 7;
    all<<<4, 25>>>(i, u, f, d, l);
    OK(cudaMemcpyFromSymbol(&found, total, sizeof found));
    expect(i[0] == 4950 && i[1] == -100 && i[2] == -50 && i[3] == 99, "add, sub, min, max");
    expect(i[4] == 255 && i[5] == 240 && i[6] == 0 && i[7] == 200, "or, and, xor, compare and swap");
    expect(u[0] == 0 && u[1] == 5, "inc and dec go around");
    expect(*f == 50 && *d == 25 && found == 305 && *l == 99ull << 33, "floats and long ones");

    int host[4] = {1, 2, 3, 4};
    double *values;
    OK(cudaMemcpyToSymbol(weights, host, sizeof host));
    OK(cudaMemcpyToSymbol(weights, &host[3], sizeof(int), 2 * sizeof(int)));
    OK(cudaMallocManaged(&values, 32 * sizeof(double)));
    OK(cudaMemcpyToSymbol("offset", "\5\0\0", 4, 0, cudaMemcpyHostToDevice));
    OK(cudaMemcpyToSymbol(letters, "abc", 4));
    expect(cudaMemcpyToSymbol(weights, host, sizeof host + 4) == cudaErrorInvalidValue, "more than the symbol holds");
    expect(cudaMemcpyFromSymbol(host, weights, 4, sizeof host) == cudaErrorInvalidValue, "beyond the symbol");
    expect(cudaMemcpyToSymbol("nothing", host, 4) == cudaErrorInvalidSymbol, "no symbol of that name");
    for (int t = 0; t < 32; t++) values[t] = t;
    scale = 3;
    applied<<<1, 32>>>(values, Range{4, 30, 0.5}, true);
    applied<<<1, 32>>>(values, Range{0, 2, 2.0}, false);
    OK(cudaDeviceSynchronize());
    for (int t = 0; t < 32; t++) {
        double w = 5 + (t % 4 == 2 ? 4 : t % 4 + 1);
        double v = t < 2 ? 12.0 * t + w : t >= 4 && t < 30 ? 1.5 * t * t + w : t;
        near(values[t], v, "by value, by pointer");
    }
    return wrong;
}
