/* What a block keeps for its threads across a barrier is more than the first thread's stack holds: 1024 threads with
   9,600 bytes each. */
#include "check.h"

__global__ void columns(const double *x, double *y, int n)
{
    double own[1200];
    int t = threadIdx.x;
    for (int i = 0; i < 1200; i++) own[i] = x[(t + i * (blockIdx.x + 1)) % n];
    __syncthreads();
    double sum = 0;
    for (int i = 0; i < 1200; i++) sum += own[(i * 7 + t) % 1200] * i;
    y[blockIdx.x * blockDim.x + t] = sum;
}

int main()
{
    int n = 5000, blocks = 3, threads = 1024;
    std::vector<double> x(n), y(blocks * threads);
    for (int i = 0; i < n; i++) x[i] = i % 91;
    double *dx, *dy;
    OK(cudaMalloc(&dx, n * sizeof(double)));
    OK(cudaMalloc(&dy, y.size() * sizeof(double)));
    OK(cudaMemcpy(dx, x.data(), n * sizeof(double), cudaMemcpyHostToDevice));
    columns<<<blocks, threads>>>(dx, dy, n);
    OK(cudaMemcpy(y.data(), dy, y.size() * sizeof(double), cudaMemcpyDeviceToHost));
    for (int b = 0; b < blocks; b++)
        for (int t = 0; t < threads; t += 37) {
            double sum = 0;
            for (int i = 0; i < 1200; i++) sum += x[(t + (i * 7 + t) % 1200 * (b + 1)) % n] * i;
            near(y[b * threads + t], sum, "sums");
        }
    OK(cudaFree(dx));
    OK(cudaFree(dy));
    return wrong;
}
