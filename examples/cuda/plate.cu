// Heat in a plate by a CUDA kernel with tiles in shared memory. The gradient of the final heat by the initial
// temperatures, compared with central differences.
#include <gradus.h>
#include <cmath>
#include <cstdio>
#include <vector>

constexpr int N = 64, TILE = 16, STEPS = 10;

__global__ void step(const double *u, double *next)
{
    __shared__ double tile[TILE + 2][TILE + 2];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    int s = threadIdx.x + 1, t = threadIdx.y + 1;
    auto at = [&](int x, int y) { return x < 0 || y < 0 || x >= N || y >= N ? 0.0 : u[y * N + x]; };
    tile[t][s] = at(x, y);
    if (s == 1) tile[t][0] = at(x - 1, y);
    if (s == TILE) tile[t][s + 1] = at(x + 1, y);
    if (t == 1) tile[0][s] = at(x, y - 1);
    if (t == TILE) tile[t + 1][s] = at(x, y + 1);
    __syncthreads();
    double middle = tile[t][s], around = tile[t][s - 1] + tile[t][s + 1] + tile[t - 1][s] + tile[t + 1][s];
    next[y * N + x] = middle + 0.1 * (around - 4 * middle) / (1 + middle * middle);
}

double heat(const double *start)
{
    double *u, *next;
    std::vector<double> end(N * N);
    cudaMalloc(&u, N * N * sizeof(double));
    cudaMalloc(&next, N * N * sizeof(double));
    cudaMemcpy(u, start, N * N * sizeof(double), cudaMemcpyHostToDevice);
    for (int k = 0; k < STEPS; k++) {
        step<<<dim3(N / TILE, N / TILE), dim3(TILE, TILE)>>>(u, next);
        double *swap = u;
        u = next;
        next = swap;
    }
    cudaMemcpy(end.data(), u, N * N * sizeof(double), cudaMemcpyDeviceToHost);
    cudaFree(u);
    cudaFree(next);
    double sum = 0;
    for (double temperature : end) sum += temperature * temperature;
    return sum;
}

int main()
{
    std::vector<double> start(N * N), gradient(N * N);
    for (int i = 0; i < N * N; i++) start[i] = std::sin(0.1 * (i % N)) + std::cos(0.07 * (i / N));
    gradus_vjp(&heat, gradus_dup, start.data(), gradient.data());
    double error = 0;
    for (int i = 5; i < N * N; i += N * N / 7) {
        double kept = start[i], h = 1e-4;
        start[i] = kept + h;
        double above = heat(start.data());
        start[i] = kept - h;
        double below = heat(start.data());
        start[i] = kept;
        error = std::fmax(error, std::fabs((above - below) / (2 * h) - gradient[i]));
    }
    std::printf("largest difference: %s\n", error < 1e-7 ? "below 1e-7" : "too large");
    return error < 1e-7 ? 0 : 1;
}
