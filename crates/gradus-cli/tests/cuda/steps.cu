/* Loops that threads run in step: each thread goes down a column, under guards, inside of loops with barriers,
   with several sums, early ends and blocks of two dimensions. */
#include "check.h"

__global__ void columns(const float *a, const float *weight, float *sum, float *square, int rows, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0, q = 1;
    for (int k = 0; k < rows; k++) {
        float v = a[k * n + i] * weight[k];
        s += v;
        if (v > 0.25f) q += v * v;
    }
    sum[i] = s;
    square[i] = q;
}

__global__ void tiles(const double *a, const double *b, double *c, int n)
{
    extern __shared__ double part[];
    int x = threadIdx.x, y = threadIdx.y, wide = blockDim.x;
    int i = blockIdx.y * blockDim.y + y, j = blockIdx.x * wide + x;
    double sum = 0;
    for (int k = 0; k < n; k += wide) {
        part[y * wide + x] = i < n && k + x < n ? a[i * n + k + x] : 0;
        __syncthreads();
        int most = min(wide, n - k);
        if (j < n)
            for (int m = 0; m < most; m++) sum += part[y * wide + m] * b[(k + m) * n + j];
        __syncthreads();
    }
    if (i < n && j < n) c[i * n + j] = sum;
}

/* Each thread adds up over what all read; under a guard, and with a loop inside that leaves early. */
__global__ void pulls(const float4 *p, float4 *a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 me = p[i], sum = make_float4(0, 0, 0, 0);
    for (int j = 0; j < n; j++) {
        float4 other = p[j];
        float x = other.x - me.x, y = other.y - me.y, z = other.z - me.z;
        float near = rsqrtf(x * x + y * y + z * z + 0.25f);
        if (near > 0.5f) sum.w += near;
        near *= other.w * near * near;
        sum.x += x * near, sum.y += y * near, sum.z += z * near;
    }
    a[i] = sum;
}

/* The order of threads matters: what one writes another waits for. */
__global__ void chained(int *next, int *order, const int *a, int rows, int n)
{
    int i = threadIdx.x, s = 0;
    for (int k = 0; k < rows; k++) s += a[k * n + i];
    order[atomicAdd(next, 1)] = s;
}

int main()
{
    const int rows = 300, n = 1000, m = 70;
    std::vector<float> a(rows * n), weight(rows), sum(n), square(n);
    for (int i = 0; i < rows * n; i++) a[i] = (i * 37 % 101) / 101.0f;
    for (int k = 0; k < rows; k++) weight[k] = 1 + k % 3;
    float *da, *dw, *ds, *dq;
    OK(cudaMalloc(&da, a.size() * 4));
    OK(cudaMalloc(&dw, rows * 4));
    OK(cudaMalloc(&ds, n * 4));
    OK(cudaMalloc(&dq, n * 4));
    OK(cudaMemcpy(da, a.data(), a.size() * 4, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(dw, weight.data(), rows * 4, cudaMemcpyHostToDevice));
    columns<<<(n + 127) / 128, 128>>>(da, dw, ds, dq, rows, n);
    OK(cudaMemcpy(sum.data(), ds, n * 4, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(square.data(), dq, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        float s = 0, q = 1;
        for (int k = 0; k < rows; k++) {
            float v = a[k * n + i] * weight[k];
            s += v;
            if (v > 0.25f) q += v * v;
        }
        expect(std::fabs(sum[i] - s) <= 1e-5f * s && std::fabs(square[i] - q) <= 1e-5f * q, "columns");
    }

    std::vector<double> x(m * m), y(m * m), z(m * m);
    for (int i = 0; i < m * m; i++) x[i] = i % 13 - 6, y[i] = i % 7 - 3;
    double *dx, *dy, *dz;
    OK(cudaMalloc(&dx, m * m * 8));
    OK(cudaMalloc(&dy, m * m * 8));
    OK(cudaMalloc(&dz, m * m * 8));
    OK(cudaMemcpy(dx, x.data(), m * m * 8, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(dy, y.data(), m * m * 8, cudaMemcpyHostToDevice));
    dim3 block(32, 4);
    tiles<<<dim3((m + 31) / 32, (m + 3) / 4), block, 32 * 4 * sizeof(double)>>>(dx, dy, dz, m);
    OK(cudaMemcpy(z.data(), dz, m * m * 8, cudaMemcpyDeviceToHost));
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            double s = 0;
            for (int k = 0; k < m; k++) s += x[i * m + k] * y[k * m + j];
            expect(z[i * m + j] == s, "tiles");
        }

    std::vector<float4> bodies(500), pulled(500);
    for (int i = 0; i < 500; i++)
        bodies[i] = make_float4(i * 7 % 31 / 8.0f, i * 11 % 29 / 8.0f, i * 5 % 23 / 8.0f, 1 + i % 3);
    float4 *dbodies, *dpulled;
    OK(cudaMalloc(&dbodies, 500 * sizeof(float4)));
    OK(cudaMalloc(&dpulled, 500 * sizeof(float4)));
    OK(cudaMemcpy(dbodies, bodies.data(), 500 * sizeof(float4), cudaMemcpyHostToDevice));
    pulls<<<4, 128>>>(dbodies, dpulled, 500);
    OK(cudaMemcpy(pulled.data(), dpulled, 500 * sizeof(float4), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 500; i++) {
        double sx = 0, sw = 0, all = 0;
        for (float4 other : bodies) {
            double bx = other.x - bodies[i].x, by = other.y - bodies[i].y, bz = other.z - bodies[i].z;
            double near = 1 / std::sqrt(bx * bx + by * by + bz * bz + 0.25);
            if (near > 0.5) sw += near;
            sx += bx * other.w * near * near * near;
            all += std::fabs(bx) * other.w * near * near * near;
        }
        expect(std::fabs(pulled[i].x - sx) <= 1e-4 * all && std::fabs(pulled[i].w - sw) <= 0.51, "pulls");
    }

    std::vector<int> ints(64 * 32), order(32);
    for (int i = 0; i < 64 * 32; i++) ints[i] = i;
    int *di, *next, *dorder;
    OK(cudaMalloc(&di, ints.size() * 4));
    OK(cudaMalloc(&next, 4));
    OK(cudaMalloc(&dorder, 32 * 4));
    OK(cudaMemset(next, 0, 4));
    OK(cudaMemcpy(di, ints.data(), ints.size() * 4, cudaMemcpyHostToDevice));
    chained<<<1, 32>>>(next, dorder, di, 64, 32);
    OK(cudaMemcpy(order.data(), dorder, 32 * 4, cudaMemcpyDeviceToHost));
    long all = 0;
    for (int s : order) all += s;
    expect(all == 2048L * 2047 / 2, "chained");
    return wrong;
}
