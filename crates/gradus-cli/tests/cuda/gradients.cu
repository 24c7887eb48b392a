/* Gradients of host functions that launch kernels: reverse mode against forward mode, differences, and the gradient
   of the same function written as plain C++. */
#include "gradients.h"
#include "norms.h"

/* ---- elementwise ---- */
__global__ void waves(const double *x, double *y, int n, double s)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = sin(s * x[i]) * x[i];
}
double elementwise(const double *x, int n)
{
    double *dx, *dy, y[N];
    cudaMalloc(&dx, n * sizeof(double));
    cudaMalloc(&dy, n * sizeof(double));
    cudaMemcpy(dx, x, n * sizeof(double), cudaMemcpyHostToDevice);
    waves<<<(n + B - 1) / B, B>>>(dx, dy, n, 1.5);
    cudaMemcpy(y, dy, n * sizeof(double), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(dy);
    return sum(y, n);
}
double elementwise_plain(const double *x, int n)
{
    double y[N];
    for (int i = 0; i < n; i++) y[i] = sin(1.5 * x[i]) * x[i];
    return sum(y, n);
}

/* ---- a stencil in a time loop: two launches that depend on each other; constant memory; timing ---- */
__constant__ double weights[3];
__global__ void step(const double *from, double *to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double left = i > 0 ? from[i - 1] : 0, right = i + 1 < n ? from[i + 1] : 0;
    to[i] = weights[0] * left + weights[1] * from[i] + weights[2] * right * from[i];
}
__global__ void damp(double *x, const double *by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] -= 0.01 * by[i] * by[i] * x[i];
}
double stencil(const double *x, int n)
{
    double *a, *b, y[N];
    float time;
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    cudaMallocManaged(&a, n * sizeof(double));
    cudaMalloc((void **)&b, n * sizeof(double));
    cudaMemset(b, 0, n * sizeof(double));
    double w[3] = {0.2, 0.5 + 0.1 * x[0], 0.25};
    cudaMemcpyToSymbol(weights, w, sizeof w);
    cudaMemcpy(a, x, n * sizeof(double), cudaMemcpyHostToDevice);
    cudaEventRecord(start);
    for (int t = 0; t < 5; t++) {
        step<<<(n + B - 1) / B, B>>>(a, b, n);
        damp<<<(n + B - 1) / B, B>>>(b, a, n);
        double *other = a;
        a = b, b = other;
    }
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    cudaEventElapsedTime(&time, start, stop);
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    cudaDeviceSynchronize();
    if (cudaGetLastError() != cudaSuccess) return -1;
    take_back(y, a, n);
    cudaFree(b);
    return sum(y, n);
}
double stencil_plain(const double *x, int n)
{
    double one[N], two[N], *a = one, *b = two;
    double w[3] = {0.2, 0.5 + 0.1 * x[0], 0.25};
    for (int i = 0; i < n; i++) a[i] = x[i];
    for (int t = 0; t < 5; t++) {
        for (int i = 0; i < n; i++) {
            double left = i > 0 ? a[i - 1] : 0, right = i + 1 < n ? a[i + 1] : 0;
            b[i] = w[0] * left + w[1] * a[i] + w[2] * right * a[i];
        }
        for (int i = 0; i < n; i++) b[i] -= 0.01 * a[i] * a[i] * b[i];
        double *other = a;
        a = b, b = other;
    }
    return sum(a, n);
}

/* ---- a reduction with shared memory and barriers ---- */
double reduction(const double *x, int n)
{
    int blocks = (n + B - 1) / B;
    double *dx = on_device(x, n), *out, y[N], all = 0;
    cudaMalloc(&out, blocks * sizeof(double));
    norms<<<blocks, B>>>(dx, out, n);
    take_back(y, out, blocks);
    for (int b = 0; b < blocks; b++) all += y[b];
    cudaFree(dx);
    return all;
}
double reduction_plain(const double *x, int n)
{
    double all = 0;
    for (int b = 0; b * B < n; b++) {
        double part = 0;
        for (int i = b * B; i < n && i < (b + 1) * B; i++) part += x[i] * x[i] * x[i];
        all += sqrt(1 + part * part);
    }
    return all;
}

/* ---- scattered adds by atomics ---- */
__global__ void scatter(const double *x, double *bins, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[(i * 7) % 16], x[i] * x[i]);
}
double atomics(const double *x, int n)
{
    double *dx = on_device(x, n), *bins, y[16], all = 0;
    cudaMalloc(&bins, 16 * sizeof(double));
    cudaMemset(bins, 0, 16 * sizeof(double));
    scatter<<<(n + B - 1) / B, B>>>(dx, bins, n);
    take_back(y, bins, 16);
    for (int b = 0; b < 16; b++) all += sin(y[b]);
    cudaFree(dx);
    return all;
}
double atomics_plain(const double *x, int n)
{
    double bins[16] = {}, all = 0;
    for (int i = 0; i < n; i++) bins[(i * 7) % 16] += x[i] * x[i];
    for (int b = 0; b < 16; b++) all += sin(bins[b]);
    return all;
}

/* ---- a tile with its halo: two loads by some threads, a barrier, neighbours ---- */
__global__ void smooth(const double *x, double *y, int n)
{
    __shared__ double tile[B + 2];
    int t = threadIdx.x, i = blockIdx.x * B + t;
    tile[t + 1] = i < n ? x[i] : 0;
    if (t == 0) tile[0] = i > 0 ? x[i - 1] : 0;
    if (t == B - 1) tile[B + 1] = i + 1 < n ? x[i + 1] : 0;
    __syncthreads();
    if (i < n) y[i] = tile[t] * tile[t + 1] + exp(0.1 * tile[t + 2]);
}
double tiled(const double *x, int n)
{
    double *dx = on_device(x, n), *dy, y[N];
    cudaMalloc(&dy, n * sizeof(double));
    smooth<<<(n + B - 1) / B, B>>>(dx, dy, n);
    smooth<<<(n + B - 1) / B, B>>>(dy, dx, n);
    take_back(y, dx, n);
    cudaFree(dy);
    return sum(y, n);
}
double tiled_plain(const double *x, int n)
{
    double one[N], two[N];
    const double *from = x;
    for (double *to : {one, two}) {
        for (int i = 0; i < n; i++) {
            double left = i > 0 ? from[i - 1] : 0, right = i + 1 < n ? from[i + 1] : 0;
            to[i] = left * from[i] + exp(0.1 * right);
        }
        from = to;
    }
    return sum(two, n);
}

int main()
{
    compare<elementwise, elementwise_plain>("elementwise");
    compare<stencil, stencil_plain>("stencil");
    compare<reduction, reduction_plain>("reduction");
    compare<atomics, atomics_plain>("atomics");
    compare<tiled, tiled_plain>("tiled");
    return wrong;
}
