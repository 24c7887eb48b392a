// Launches one after the other, of one size: some run together, and all leave what they leave alone.
#include "check.h"
#include <utility>

#define CHECK(what) expect(what, #what)

__global__ void twice(float *y, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 2 * x[i];
}
__global__ void plus(float *z, const float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        z[i] = y[i] + 1;
}
__global__ void shifted(float *z, const float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n)
        z[i] = y[i + 1];
}
__global__ void __launch_bounds__(64) narrow(float *z, const float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        z[i] = y[i] - 1;
}
__global__ void total(float *sum, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(sum, x[i]);
}
__global__ void part(float *y, const float *x, const float *sum, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] / *sum;
}
__global__ void rows(float *b, const float *a, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h)
        b[y * w + x] = 3 * a[y * w + x];
}
__global__ void columns(float *b, const float *a, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h)
        b[x * h + y] = a[x * h + y] + 5;
}
__global__ void turned(float *z, const float *y, int n)
{
    __shared__ float s[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? y[i] : 0;
    __syncthreads();
    if (i < n)
        z[i] = s[blockDim.x - 1 - threadIdx.x];
}
__device__ float variable[1000];
__global__ void into(const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        variable[i] = x[i] * x[i];
}
__global__ void out_of(float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = variable[i] + 2;
}

static std::vector<float> host(const float *p, int n)
{
    std::vector<float> all(n);
    CHECK(cudaMemcpy(all.data(), p, n * sizeof *p, cudaMemcpyDeviceToHost) == cudaSuccess);
    return all;
}

int main(int count, char **)
{
    // The sizes are not constants.
    int n = 999 * count, blocks = (n + 127) / 128;
    float *x, *y, *z, *sum;
    for (float **p : {&x, &y, &z, &sum})
        CHECK(cudaMalloc(p, 1024 * sizeof **p) == cudaSuccess);
    std::vector<float> in(1024);
    for (int i = 0; i < 1024; i++)
        in[i] = i % 31 - 7;
    auto fresh = [&] {
        CHECK(cudaMemcpy(x, in.data(), 4096, cudaMemcpyHostToDevice) == cudaSuccess);
        CHECK(cudaMemset(y, 0, 4096) == cudaSuccess && cudaMemset(z, 0, 4096) == cudaSuccess);
        CHECK(cudaMemset(sum, 0, 4) == cudaSuccess);
    };

    fresh();
    twice<<<blocks, 128>>>(y, x, n);
    cudaDeviceSynchronize();
    plus<<<blocks, 128>>>(z, y, n);
    twice<<<blocks, 128>>>(x, z, n);
    auto a = host(z, n), b = host(x, n);
    for (int i = 0; i < n; i++)
        CHECK(a[i] == 2 * in[i] + 1 && b[i] == 2 * a[i]);

    // What a neighbour left.
    fresh();
    twice<<<blocks, 128>>>(y, x, n);
    shifted<<<blocks, 128>>>(z, y, n);
    a = host(z, n);
    for (int i = 0; i + 1 < n; i++)
        CHECK(a[i] == 2 * in[i + 1]);

    // Two addresses in one array: found when it runs.
    fresh();
    twice<<<blocks, 128>>>(y + 1, x, n);
    plus<<<blocks, 128>>>(z, y, n);
    a = host(z, n);
    for (int i = 1; i < n; i++)
        CHECK(a[i] == 2 * in[i - 1] + 1);
    fresh();
    twice<<<blocks, 128>>>(x + 1, y, n);
    plus<<<blocks, 128>>>(z, x, n);
    a = host(z, n);
    for (int i = 1; i < n; i++)
        CHECK(a[i] == 1);

    // The second cannot be launched: the first is done, and the error is the second's.
    fresh();
    twice<<<blocks, 128>>>(y, x, n);
    narrow<<<blocks, 128>>>(z, y, n);
    CHECK(cudaGetLastError() == cudaErrorLaunchOutOfResources);
    a = host(y, n), b = host(z, n);
    for (int i = 0; i < n; i++)
        CHECK(a[i] == 2 * in[i] && b[i] == 0);
    narrow<<<blocks, 128>>>(y, x, n);
    twice<<<blocks, 128>>>(z, x, n);
    CHECK(cudaGetLastError() == cudaErrorLaunchOutOfResources);
    b = host(z, n);
    for (int i = 0; i < n; i++)
        CHECK(b[i] == 2 * in[i]);
    // Neither can.
    twice<<<blocks, 2000>>>(y, y, n);
    plus<<<blocks, 2000>>>(z, z, n);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    CHECK(host(z, n) == b);

    // A sum that all add to.
    fresh();
    total<<<blocks, 128>>>(sum, x, n);
    part<<<blocks, 128>>>(y, x, sum, n);
    float whole = 0;
    for (int i = 0; i < n; i++)
        whole += in[i];
    a = host(y, n);
    for (int i = 0; i < n; i++)
        CHECK(a[i] == in[i] / whole);

    // Rows of the same length, and an array read as rows and as columns.
    int w = 37 * count, h = 23 * count;
    dim3 grid((w + 7) / 8, (h + 7) / 8), block(8, 8);
    fresh();
    rows<<<grid, block>>>(y, x, w, h);
    rows<<<grid, block>>>(z, y, w, h);
    a = host(z, w * h);
    for (int i = 0; i < w * h; i++)
        CHECK(a[i] == 9 * in[i]);
    fresh();
    rows<<<grid, block>>>(y, x, w, h);
    columns<<<grid, block>>>(z, y, w, h);
    a = host(z, w * h);
    for (int i = 0; i < w * h; i++)
        CHECK(a[i] == 3 * in[i] + 5);

    // Shared memory between.
    fresh();
    twice<<<7 * count, 128>>>(y, x, 896);
    turned<<<7 * count, 128>>>(z, y, 896);
    plus<<<7 * count, 128>>>(y, z, 896);
    a = host(y, 896);
    for (int i = 0; i < 896; i++)
        CHECK(a[i] == 2 * in[i / 128 * 128 + 127 - i % 128] + 1);

    // A variable.
    fresh();
    into<<<blocks, 128>>>(x, n);
    out_of<<<blocks, 128>>>(y, n);
    a = host(y, n);
    for (int i = 0; i < n; i++)
        CHECK(a[i] == in[i] * in[i] + 2);

    // Arrays exchanged in a loop.
    fresh();
    for (int k = 0; k < 4; k++) {
        plus<<<blocks, 128>>>(y, x, n);
        plus<<<blocks, 128>>>(z, y, n);
        std::swap(x, z);
    }
    a = host(x, n);
    for (int i = 0; i < n; i++)
        CHECK(a[i] == in[i] + 8);
    return wrong;
}
