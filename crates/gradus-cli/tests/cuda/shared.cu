/* Shared memory, static and dynamic, and barriers: sums by halves, a transposition through a tile, a product of
   matrices by tiles, a stencil, a scan. */
#include "check.h"

__global__ void sums(const float *x, float *out, int n)
{
    extern __shared__ float part[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

__global__ void transposed(const double *from, double *to, int rows, int columns)
{
    __shared__ double tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < columns && y < rows) tile[threadIdx.y][threadIdx.x] = from[y * columns + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
    if (x < rows && y < columns) to[y * rows + x] = tile[threadIdx.x][threadIdx.y];
}

template <int size> __global__ void product(const float *a, const float *b, float *c, int n)
{
    __shared__ float left[size][size], right[size][size];
    int row = blockIdx.y * size + threadIdx.y, column = blockIdx.x * size + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += size) {
        left[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int j = 0; j < size; j++) sum += left[threadIdx.y][j] * right[j][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

__global__ void scan(int *x)
{
    __shared__ int two[2][128];
    int t = threadIdx.x, in = 0;
    two[0][t] = x[blockIdx.x * 128 + t];
    __syncthreads();
    for (int by = 1; by < 128; by *= 2) {
        two[1 - in][t] = t >= by ? two[in][t] + two[in][t - by] : two[in][t];
        in = 1 - in;
        __syncthreads();
    }
    x[blockIdx.x * 128 + t] = two[in][t];
}

/* A thread without work leaves before the barrier that the others meet at; a loop ends for all at once. */
__global__ void relaxed(float *x, int n, int steps)
{
    __shared__ float row[66];
    int t = threadIdx.x;
    if (t >= n) return;
    row[t + 1] = x[t];
    if (t == 0) row[0] = row[n + 1] = 0;
    for (int s = 0; s < steps; s++) {
        __syncthreads();
        float mean = (row[t] + row[t + 2]) / 2;
        __syncthreads();
        if (s == steps - 1) break;
        row[t + 1] = mean;
    }
    x[t] = row[t + 1];
}

/* Each adds its neighbour, then every fourth thread the fourth next, and so on; by rests, from either end. */
__global__ void neighbours(const int *x, int *first, int *last, int by)
{
    __shared__ int up[512], down[512];
    int t = threadIdx.x;
    up[t] = down[t] = x[blockIdx.x * 512 + t];
    __syncthreads();
    for (unsigned s = 1; s < blockDim.x; s *= 2) {
        if (t % (2 * s) == 0) up[t] += up[t + s];
        __syncthreads();
    }
    for (int i = 2; i <= 512; i = 2 * i) {
        if ((t + 1) % i == 0) down[t] += down[t - i / 2];
        __syncthreads();
    }
    if (t % by == 0) up[t] += t;
    __syncthreads();
    if (t == 0) first[blockIdx.x] = up[0] + up[by] - up[by + 1];
    if (t == 511) last[blockIdx.x] = down[511];
}

int main()
{
    const int n = 1000, side = 64;
    std::vector<float> x(n), out(8);
    double expected = 0;
    for (int i = 0; i < n; i++) expected += x[i] = (i * 7) % 13;
    float *dx, *dout;
    OK(cudaMalloc(&dx, n * sizeof(float)));
    OK(cudaMalloc(&dout, 8 * sizeof(float)));
    OK(cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    sums<<<8, 128, 128 * sizeof(float)>>>(dx, dout, n);
    OK(cudaMemcpy(out.data(), dout, 8 * sizeof(float), cudaMemcpyDeviceToHost));
    double sum = 0;
    for (float part : out) sum += part;
    near(sum, expected, "sum by halves");

    double *from, *to;
    OK(cudaMallocManaged(&from, 33 * 50 * sizeof(double)));
    OK(cudaMallocManaged(&to, 33 * 50 * sizeof(double)));
    for (int i = 0; i < 33 * 50; i++) from[i] = i;
    transposed<<<dim3(4, 3), dim3(16, 16)>>>(from, to, 33, 50);
    OK(cudaDeviceSynchronize());
    bool same = true;
    for (int i = 0; i < 33; i++)
        for (int j = 0; j < 50; j++) same = same && to[j * 33 + i] == from[i * 50 + j];
    expect(same, "transposition");

    float *a, *b, *c;
    OK(cudaMallocManaged(&a, side * side * sizeof(float)));
    OK(cudaMallocManaged(&b, side * side * sizeof(float)));
    OK(cudaMallocManaged(&c, side * side * sizeof(float)));
    for (int i = 0; i < side * side; i++) a[i] = i % 5, b[i] = i % 7;
    product<16><<<dim3(4, 4), dim3(16, 16)>>>(a, b, c, side);
    OK(cudaDeviceSynchronize());
    bool equal = true;
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            float s = 0;
            for (int k = 0; k < side; k++) s += a[i * side + k] * b[k * side + j];
            equal = equal && s == c[i * side + j];
        }
    expect(equal, "product by tiles");

    int *counts;
    OK(cudaMallocManaged(&counts, 256 * sizeof(int)));
    for (int i = 0; i < 256; i++) counts[i] = i % 3;
    scan<<<2, 128>>>(counts);
    OK(cudaDeviceSynchronize());
    int running = 0;
    bool prefix = true;
    for (int i = 0; i < 256; i++) {
        if (i == 128) running = 0;
        prefix = prefix && counts[i] == (running += i % 3);
    }
    expect(prefix, "scan");

    const int width = 50, steps = 9;
    std::vector<float> now(width + 2), next(width + 2);
    float *line;
    OK(cudaMallocManaged(&line, width * sizeof(float)));
    for (int i = 0; i < width; i++) line[i] = now[i + 1] = i % 4;
    relaxed<<<1, 64>>>(line, width, steps);
    OK(cudaDeviceSynchronize());
    for (int s = 0; s < steps - 1; s++) {
        for (int i = 1; i <= width; i++) next[i] = (now[i - 1] + now[i + 1]) / 2;
        for (int i = 1; i <= width; i++) now[i] = next[i];
    }
    for (int i = 0; i < width; i++) near(line[i], now[i + 1], "stencil");
    std::vector<int> many(4 * 512), first(4), last(4);
    for (int i = 0; i < 4 * 512; i++) many[i] = i * 37 % 1001 - 300;
    int *dmany, *dfirst, *dlast;
    OK(cudaMalloc(&dmany, many.size() * sizeof(int)));
    OK(cudaMalloc(&dfirst, 4 * sizeof(int)));
    OK(cudaMalloc(&dlast, 4 * sizeof(int)));
    OK(cudaMemcpy(dmany, many.data(), many.size() * sizeof(int), cudaMemcpyHostToDevice));
    for (int by : {3, 16, 37, 255}) {
        neighbours<<<4, 512>>>(dmany, dfirst, dlast, by);
        OK(cudaMemcpy(first.data(), dfirst, 4 * sizeof(int), cudaMemcpyDeviceToHost));
        OK(cudaMemcpy(last.data(), dlast, 4 * sizeof(int), cudaMemcpyDeviceToHost));
        for (int b = 0; b < 4; b++) {
            int up[512], all = 0;
            for (int t = 0; t < 512; t++) all += up[t] = many[b * 512 + t];
            for (int s = 1; s < 512; s *= 2)
                for (int t = 0; t < 512; t += 2 * s) up[t] += up[t + s];
            for (int t = 0; t < 512; t += by) up[t] += t;
            expect(last[b] == all && first[b] == up[0] + up[by] - up[by + 1], "sums of neighbours");
        }
    }
    return wrong;
}
