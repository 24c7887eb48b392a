/* Gradients through more of CUDA: shuffles of single and double precision, streams and pinned memory, variables of the device, structures by value,
   shared memory whose size the launch gives, blocks that all write the same, tiles in a loop with barriers, blocks that count
   each other, loops in blocks of which each runs as long as it takes, shared memory of whole cache lines. */
#include "gradients.h"

/* ---- shuffles ---- */
__global__ void warps(const float *x, float *out, int n)
{
    int i = blockIdx.x * 32 + threadIdx.x;
    float v = i < n ? x[i] * x[i] : 0;
    for (int by = 16; by > 0; by /= 2) v += __shfl_down_sync(0xffffffff, v, by);
    if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(v);
}
double shuffles(const double *x, int n)
{
    int blocks = (n + 31) / 32;
    float h[N], *d, *out, y[N];
    for (int i = 0; i < n; i++) h[i] = (float)x[i];
    cudaMalloc(&d, n * sizeof(float));
    cudaMalloc(&out, blocks * sizeof(float));
    cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice);
    warps<<<blocks, 32>>>(d, out, n);
    cudaMemcpy(y, out, blocks * sizeof(float), cudaMemcpyDeviceToHost);
    double all = 0;
    for (int b = 0; b < blocks; b++) all += y[b];
    cudaFree(d);
    cudaFree(out);
    return all;
}
double shuffles_plain(const double *x, int n)
{
    double all = 0;
    for (int b = 0; b * 32 < n; b++) {
        double v = 0;
        for (int i = b * 32; i < n && i < b * 32 + 32; i++) v += x[i] * x[i];
        all += sqrt(v);
    }
    return all;
}

/* What a GPU exchanges in halves. */
__global__ void long_warps(const double *x, double *out, int n)
{
    int i = blockIdx.x * 32 + threadIdx.x;
    double v = i < n ? x[i] * x[i] : 0;
    for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(0xffffffff, v, by);
    double other = __shfl_sync(0xffffffff, i < n ? x[i] : 0, (threadIdx.x + 5) % 32);
    if (i < n) out[i] = sqrt(v) * other;
}
double long_shuffles(const double *x, int n)
{
    double *d = on_device(x, n), *out, y[N];
    cudaMalloc(&out, n * sizeof(double));
    long_warps<<<(n + 31) / 32, 32>>>(d, out, n);
    take_back(y, out, n);
    cudaFree(d);
    return sum(y, n);
}
double long_shuffles_plain(const double *x, int n)
{
    double y[N];
    for (int b = 0; b < n; b += 32) {
        double v = 0;
        for (int i = b; i < n && i < b + 32; i++) v += x[i] * x[i];
        for (int i = b; i < n && i < b + 32; i++) {
            int other = b + (i - b + 5) % 32;
            y[i] = sqrt(v) * (other < n ? x[other] : 0);
        }
    }
    return sum(y, n);
}

/* ---- streams, variables, structures ---- */
struct curve {
    double a, b;
    int which;
    double c[4];
};
__device__ double totals[2], table[N];
__device__ __attribute__((noinline)) double at(double x, const curve &p) { return p.a * x * x + p.b * x + p.c[p.which]; }
__global__ void fill(const double *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) table[i] = x[i] * 2;
}
__global__ void add(const double *x, curve p, int n)
{
    extern __shared__ double part[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? at(x[i], p) * table[n - 1 - i] : 0;
    __syncthreads();
    if (threadIdx.x > 0) return;
    double all = 0;
    for (int t = 0; t < blockDim.x; t++) all += part[t];
    atomicAdd(&totals[blockIdx.x % 2], all);
}
double streams(const double *x, int n)
{
    double *h, *d, y[2], none[2] = {0, 0};
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMallocHost((void **)&h, n * sizeof(double));
    cudaMallocAsync(&d, n * sizeof(double), stream);
    for (int i = 0; i < n; i++) h[i] = x[i];
    cudaMemcpyAsync(d, h, n * sizeof(double), cudaMemcpyHostToDevice, stream);
    cudaMemcpyToSymbol(totals, none, sizeof none);
    curve p = {x[0], 0.5, 2, {1, 2, x[1], 4}};
    fill<<<(n + B - 1) / B, B, 0, stream>>>(d, n);
    add<<<(n + B - 1) / B, B, B * sizeof(double), stream>>>(d, p, n);
    cudaStreamSynchronize(stream);
    cudaMemcpyFromSymbol(y, totals, sizeof y);
    cudaFreeHost(h);
    cudaFreeAsync(d, stream);
    cudaStreamDestroy(stream);
    return y[0] * y[1];
}
double streams_plain(const double *x, int n)
{
    double y[2] = {0, 0};
    for (int i = 0; i < n; i++)
        y[i / B % 2] += (x[0] * x[i] * x[i] + 0.5 * x[i] + x[1]) * 2 * x[n - 1 - i];
    return y[0] * y[1];
}

/* ---- all blocks write the same: one of them has the derivative ---- */
__global__ void same(const double *x, double *out) { out[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x] * x[1]; }
double repeated(const double *x, int n)
{
    double *d = on_device(x, n), *out, y[B];
    cudaMalloc(&out, B * sizeof(double));
    same<<<1000, B>>>(d, out);
    take_back(y, out, B);
    cudaFree(d);
    return sum(y, B);
}
double repeated_plain(const double *x, int)
{
    double y[B];
    for (int i = 0; i < B; i++) y[i] = x[i] * x[i] * x[1];
    return sum(y, B);
}

/* ---- a product of matrices by tiles ---- */
constexpr int side = 16, tile = 8;
__global__ void product(const double *a, const double *b, double *c)
{
    __shared__ double left[tile][tile], right[tile][tile];
    int row = blockIdx.y * tile + threadIdx.y, column = blockIdx.x * tile + threadIdx.x;
    double all = 0;
    for (int k = 0; k < side; k += tile) {
        left[threadIdx.y][threadIdx.x] = a[row * side + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * side + column];
        __syncthreads();
        for (int j = 0; j < tile; j++) all += left[threadIdx.y][j] * right[j][threadIdx.x];
        __syncthreads();
    }
    c[row * side + column] = all;
}
double matrices(const double *x, int)
{
    constexpr int n = side * side;
    double *a = on_device(x, n), *b, *c, y[n];
    cudaMalloc(&b, n * sizeof(double));
    cudaMalloc(&c, n * sizeof(double));
    dim3 grid(side / tile, side / tile), block(tile, tile);
    product<<<grid, block>>>(a, a, b);
    product<<<grid, block>>>(b, a, c);
    take_back(y, c, n);
    cudaFree(a);
    cudaFree(b);
    return sum(y, n) * 1e-3;
}
double matrices_plain(const double *x, int)
{
    constexpr int n = side * side;
    double one[n] = {}, two[n] = {};
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++)
            for (int k = 0; k < side; k++) one[i * side + j] += x[i * side + k] * x[k * side + j];
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++)
            for (int k = 0; k < side; k++) two[i * side + j] += one[i * side + k] * x[k * side + j];
    return sum(two, n) * 1e-3;
}

/* ---- the last block adds up what all have left: blocks have an order ---- */
__device__ unsigned finished;
__global__ void parts(const double *x, double *part, double *out, int n)
{
    __shared__ double s[B];
    __shared__ bool last;
    int t = threadIdx.x, i = blockIdx.x * B + t;
    s[t] = i < n ? x[i] * x[i] * x[i] : 0;
    __syncthreads();
    for (int by = B / 2; by > 0; by /= 2) {
        if (t < by) s[t] += s[t + by];
        __syncthreads();
    }
    if (t == 0) {
        part[blockIdx.x] = s[0];
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        double all = 0;
        for (int b = 0; b < gridDim.x; b++) all += part[b] * part[b];
        *out = all;
    }
}
double counted(const double *x, int n)
{
    int blocks = (n + B - 1) / B;
    double *d = on_device(x, n), *part, *out, y;
    cudaMalloc(&part, blocks * sizeof(double));
    cudaMalloc(&out, sizeof(double));
    parts<<<blocks, B>>>(d, part, out, n);
    cudaMemcpy(&y, out, sizeof(double), cudaMemcpyDeviceToHost);
    cudaFree(d);
    cudaFree(part);
    cudaFree(out);
    return y;
}
double counted_plain(const double *x, int n)
{
    double all = 0;
    for (int b = 0; b * B < n; b++) {
        double part = 0;
        for (int i = b * B; i < n && i < (b + 1) * B; i++) part += x[i] * x[i] * x[i];
        all += part * part;
    }
    return all;
}

/* ---- each block halves until it is small: nobody knows before how often ---- */
__global__ void halve(const double *x, double *out, int n)
{
    __shared__ double s[B];
    int t = threadIdx.x, i = blockIdx.x * B + t;
    s[t] = i < n ? x[i] * (1 + blockIdx.x) : 0;
    __syncthreads();
    while (s[0] * s[0] > 0.01) {
        double next = 0.5 * s[t] + 0.1 * s[(t + 1) % B] * s[t];
        __syncthreads();
        s[t] = next;
        __syncthreads();
    }
    if (i < n) out[i] = s[t] * s[B - 1 - t];
}
double halved(const double *x, int n)
{
    double *d = on_device(x, n), *out, y[N];
    cudaMalloc(&out, n * sizeof(double));
    halve<<<(n + B - 1) / B, B>>>(d, out, n);
    take_back(y, out, n);
    cudaFree(d);
    return sum(y, n);
}
double halved_plain(const double *x, int n)
{
    double y[N];
    for (int b = 0; b * B < n; b++) {
        double s[B], next[B];
        for (int t = 0; t < B; t++) s[t] = b * B + t < n ? x[b * B + t] * (1 + b) : 0;
        while (s[0] * s[0] > 0.01) {
            for (int t = 0; t < B; t++) next[t] = 0.5 * s[t] + 0.1 * s[(t + 1) % B] * s[t];
            for (int t = 0; t < B; t++) s[t] = next[t];
        }
        for (int t = 0; t < B; t++)
            if (b * B + t < n) y[b * B + t] = s[t] * s[B - 1 - t];
    }
    return sum(y, n);
}

/* ---- shared memory of whole cache lines, which a function of its own reads ---- */
constexpr int wide = 16;
struct alignas(128) line {
    double v[wide];
};
__device__ __attribute__((noinline)) double squares(const line &l)
{
    double all = 0;
    for (int k = 0; k < wide; k++) all += l.v[k] * l.v[k];
    return all;
}
__device__ __attribute__((noinline)) bool begins_a_line(const void *p) { return (size_t)p % alignof(line) == 0; }
__global__ void lengths(const double *x, double *out, int n)
{
    __shared__ double before[3];
    __shared__ line kept[3];
    int t = threadIdx.x, i = blockIdx.x * 3 * wide + t;
    kept[t / wide].v[t % wide] = i < n ? x[i] : 0;
    if (t < 3) before[t] = i < n ? x[i] : 0;
    __syncthreads();
    if (t < 3) out[blockIdx.x * 3 + t] = begins_a_line(kept) ? sqrt(1 + squares(kept[t])) * before[2 - t] : -1;
}
double lines(const double *x, int n)
{
    int blocks = (n + 3 * wide - 1) / (3 * wide);
    double *d = on_device(x, n), *out, y[N];
    cudaMalloc(&out, 3 * blocks * sizeof(double));
    lengths<<<blocks, 3 * wide>>>(d, out, n);
    take_back(y, out, 3 * blocks);
    cudaFree(d);
    return sum(y, 3 * blocks);
}
double lines_plain(const double *x, int n)
{
    double y[N];
    int count = 0;
    for (int first = 0; first < n; first += 3 * wide)
        for (int t = 0; t < 3; t++) {
            double all = 0;
            for (int i = first + t * wide; i < n && i < first + (t + 1) * wide; i++) all += x[i] * x[i];
            int other = first + 2 - t;
            y[count++] = sqrt(1 + all) * (other < n ? x[other] : 0);
        }
    return sum(y, count);
}

int main()
{
    compare<shuffles, shuffles_plain>("shuffles", 1e-3, 1e-2);
    compare<long_shuffles, long_shuffles_plain>("long shuffles");
    compare<streams, streams_plain>("streams");
    compare<repeated, repeated_plain>("repeated");
    compare<matrices, matrices_plain>("matrices");
    compare<counted, counted_plain>("counted");
    compare<halved, halved_plain>("halved");
    compare<lines, lines_plain>("lines");
    return wrong;
}
