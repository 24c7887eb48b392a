/* A CUDA program as people write them: a plate cools, step by step, in tiles of shared memory. What is asked of it
   was never thought of: how much each starting temperature matters for the heat that arrives at a sensor. */
#include <cmath>
#include <cstdio>
#include <ctime>
#include <vector>
#include <gradus.h>

constexpr int side = 256, tile = 16, steps = 20;
__constant__ double rate[1];

__global__ void cool(const double *from, double *to)
{
    __shared__ double here[tile + 2][tile + 2];
    int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    here[ty][tx] = from[y * side + x];
    if (tx == 1) here[ty][0] = x > 0 ? from[y * side + x - 1] : 0;
    if (tx == tile) here[ty][tile + 1] = x + 1 < side ? from[y * side + x + 1] : 0;
    if (ty == 1) here[0][tx] = y > 0 ? from[(y - 1) * side + x] : 0;
    if (ty == tile) here[tile + 1][tx] = y + 1 < side ? from[(y + 1) * side + x] : 0;
    __syncthreads();
    double t = here[ty][tx];
    double flow = here[ty][tx - 1] + here[ty][tx + 1] + here[ty - 1][tx] + here[ty + 1][tx] - 4 * t;
    to[y * side + x] = t + rate[0] * flow * (1 + 0.1 * t * t);
}
__global__ void sense(const double *t, double *heat)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % side - 100, y = i / side - 80;
    if (x * x + y * y < 400) atomicAdd(heat, t[i] * t[i]);
}

double measured(const double *start)
{
    size_t bytes = side * side * sizeof(double);
    double *a, *b, *heat, result, given = 0.2;
    cudaMalloc(&a, bytes);
    cudaMalloc(&b, bytes);
    cudaMalloc(&heat, sizeof(double));
    cudaMemset(heat, 0, sizeof(double));
    cudaMemcpyToSymbol(rate, &given, sizeof given);
    cudaMemcpy(a, start, bytes, cudaMemcpyHostToDevice);
    for (int step = 0; step < steps; step++) {
        cool<<<dim3(side / tile, side / tile), dim3(tile, tile)>>>(a, b);
        double *other = a;
        a = b, b = other;
    }
    sense<<<side * side / 256, 256>>>(a, heat);
    cudaMemcpy(&result, heat, sizeof result, cudaMemcpyDeviceToHost);
    cudaFree(a);
    cudaFree(b);
    cudaFree(heat);
    return result;
}

static double seconds()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

int main()
{
    int n = side * side;
    std::vector<double> start(n), gradient(n), way(n), moved(n);
    for (int i = 0; i < n; i++) start[i] = 0.5 + 0.4 * sin(0.003 * i), way[i] = 1 + cos(0.01 * i);
    double before = seconds();
    measured(start.data());
    double once = seconds() - before;
    before = seconds();
    gradus_vjp(measured, gradus_dup, start.data(), gradient.data());
    double all = seconds() - before;
    double slope = gradus_jvp_double(measured, gradus_dup, start.data(), way.data());
    double along = 0, h = 1e-6, ends[2];
    for (int i = 0; i < n; i++) along += gradient[i] * way[i];
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < n; i++) moved[i] = start[i] + (s ? h : -h) * way[i];
        ends[s] = measured(moved.data());
    }
    double difference = (ends[1] - ends[0]) / (2 * h);
    printf("  %d temperatures, %d steps; along one direction:\n", n, steps);
    printf("    reverse mode   %.12g   (all %d derivatives: %.1f times one run)\n", along, n, all / once);
    printf("    forward mode   %.12g\n    differences    %.12g\n", slope, difference);
    double size = fabs(along);
    return !(size > 1 && fabs(slope - along) < 1e-10 * size && fabs(difference - along) < 1e-6 * size);
}
