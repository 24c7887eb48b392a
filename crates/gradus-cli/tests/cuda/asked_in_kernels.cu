// Derivatives that threads of kernels request: all of them add to the memory that they share.
#include "check.h"
#include <gradus.h>
template <typename R = void, typename... A> __device__ R __enzyme_autodiff(void *, A...);
template <typename R = void, typename... A> __device__ R __enzyme_fwddiff(void *, A...);
template <typename R = void *, typename... A> __device__ R __enzyme_augmentfwd(void *, A...);
template <typename R = void, typename... A> __device__ R __enzyme_reverse(void *, A...);
extern __device__ int enzyme_dup, enzyme_const, enzyme_out, enzyme_width, enzyme_tape;

const int N = 20000, BLOCK = 64, GRID = (N + BLOCK - 1) / BLOCK, TIMES = 4;

// All threads read the first two numbers.
__device__ void common(const double *x, double *y, int i) { y[i] = x[0] * x[1] * (i % 7 + 1); }
// A thread computes its own index.
__device__ void placed(const double *x, double *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[0] * x[0] * (i % 5);
}
__device__ double at_place(const double *x, int i) { return x[i % 3] * x[2]; }
__device__ void by_others(const double *x, double *y, int i) { y[i] = at_place(x, i) * at_place(x, i + 1); }
// The sum is atomic.
__device__ void summed(const double *x, double *y, int i) { atomicAdd(y, x[i % 4] * x[0]); }
__device__ double number(double x) { return x * x * x; }
__device__ void own(const double *x, double *y, int i)
{
    double kept[4];
    for (int k = 0; k < 4; k++) kept[k] = x[k] * (i % 3);
    double sum = 0;
    for (int k = 0; k < 4; k++) sum += kept[k] * kept[(k + 1) % 4];
    y[i] = sum;
}
__device__ void single(const float *x, float *y, int i) { y[i] = x[0] * x[0] * (i % 2); }
__device__ double weights[4];

__global__ void k_common(double *x, double *dx, double *y, double *dy)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) __enzyme_autodiff((void *)common, x, dx, y, dy, i);
}
__global__ void k_marked(double *x, double *dx, double *y, double *dy)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) __enzyme_autodiff((void *)common, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, i);
}
__global__ void k_placed(double *x, double *dx, double *y, double *dy)
{
    __enzyme_autodiff((void *)placed, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, N);
}
__device__ void helper(double *x, double *dx, double *y, double *dy, int i)
{
    __enzyme_autodiff((void *)by_others, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, i);
}
__global__ void k_by_others(double *x, double *dx, double *y, double *dy)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) helper(x, dx, y, dy, i);
}
__global__ void k_summed(double *x, double *dx, double *y, double *dy)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) __enzyme_autodiff((void *)summed, x, dx, y, dy, i);
}
__global__ void k_own(double *x, double *dx, double *y, double *dy)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) __enzyme_autodiff((void *)own, x, dx, y, dy, i);
}
// The shadow is shared memory, and then a variable of the device.
__global__ void k_block(double *x, double *dx, double *y, double *dy)
{
    __shared__ double room[2];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 2) room[threadIdx.x] = 0;
    __syncthreads();
    if (i < N) __enzyme_autodiff((void *)common, x, room, y, dy, i);
    __syncthreads();
    if (threadIdx.x < 2) atomicAdd(&dx[threadIdx.x], room[threadIdx.x]);
}
__global__ void k_variable(double *x, double *y, double *dy)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) __enzyme_autodiff((void *)common, x, weights, y, dy, i);
}
__global__ void k_wide(double *x, double *dx, double *dx2, double *y, double *dy, double *dy2)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        __enzyme_autodiff((void *)common, enzyme_width, 2, enzyme_dup, x, dx, dx2, enzyme_dup, y, dy, dy2,
                          enzyme_const, i);
}
__global__ void k_split(double *x, double *dx, double *y, double *dy)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    void *tape = __enzyme_augmentfwd((void *)common, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, i);
    __enzyme_reverse((void *)common, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, i, tape);
}
__global__ void k_words(double *x, double *dx, double *y, double *dy)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) gradus_vjp(common, gradus_dup, x, dx, gradus_dup, y, dy, gradus_const, i);
}
__global__ void k_number(const double *x, double *g)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) g[i] = __enzyme_autodiff<double>((void *)number, x[i % 4]);
}
__global__ void k_forward(double *x, double *dx, double *y, double *dy)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) __enzyme_fwddiff((void *)common, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, i);
}
__global__ void k_single(float *x, float *dx, float *y, float *dy)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) __enzyme_autodiff((void *)single, x, dx, y, dy, i);
}

double *x, *dx, *dx2, *y, *dy, *dy2;
void begin()
{
    for (int k = 0; k < 4; k++) x[k] = k + 1, dx[k] = dx2[k] = 0;
    for (int i = 0; i < N; i++) y[i] = 0, dy[i] = 1, dy2[i] = 2;
}
// Compares the shadows with the sum of all threads' derivatives on paper.
template <typename F> void check(F term, const char *what, int count)
{
    OK(cudaDeviceSynchronize());
    for (int k = 0; k < count; k++) {
        double sum = 0;
        for (int i = 0; i < N; i++) sum += term(i, k);
        near(dx[k], sum, what);
    }
}
double of_common(int i, int k) { return (i % 7 + 1) * x[1 - k]; }

int main()
{
    for (double **all : {&x, &dx, &dx2, &y, &dy, &dy2}) OK(cudaMallocManaged(all, N * sizeof(double)));
    for (int times = 0; times < TIMES; times++) {
        for (auto k : {k_common, k_marked, k_block, k_split, k_words}) {
            begin();
            k<<<GRID, BLOCK>>>(x, dx, y, dy);
            check(of_common, "all read two numbers", 2);
        }
        begin();
        k_placed<<<GRID, BLOCK>>>(x, dx, y, dy);
        check([](int i, int) { return 2 * x[0] * (i % 5); }, "a thread's own place", 1);
        begin();
        k_by_others<<<GRID, BLOCK>>>(x, dx, y, dy);
        check(
            [](int i, int k) {
                double d = 0;
                const double a = x[i % 3], b = x[(i + 1) % 3], c = x[2];
                if (k == i % 3) d += b * c * c;
                if (k == (i + 1) % 3) d += a * c * c;
                if (k == 2) d += 2 * a * b * c;
                return d;
            },
            "functions called", 3);
        begin();
        k_summed<<<GRID, BLOCK>>>(x, dx, y, dy);
        check([](int i, int k) { return (k == i % 4 ? x[0] : 0) + (k == 0 ? x[i % 4] : 0); }, "an atomic sum", 4);
        begin();
        k_own<<<GRID, BLOCK>>>(x, dx, y, dy);
        check([](int i, int k) { double f = i % 3; return f * f * (x[(k + 1) % 4] + x[(k + 3) % 4]); }, "an array of its own", 4);
        begin();
        double zero[4] = {0, 0, 0, 0};
        OK(cudaMemcpyToSymbol(weights, zero, sizeof zero));
        k_variable<<<GRID, BLOCK>>>(x, y, dy);
        OK(cudaMemcpyFromSymbol(dx, weights, sizeof zero));
        check(of_common, "a variable of the device", 2);
        begin();
        k_wide<<<GRID, BLOCK>>>(x, dx, dx2, y, dy, dy2);
        check(of_common, "two at once", 2);
        near(dx2[0], 2 * dx[0], "two at once");
    }
    begin();
    k_number<<<GRID, BLOCK>>>(x, y);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < N; i++) near(y[i], 3 * x[i % 4] * x[i % 4], "a number");
    begin();
    dx[0] = 1;
    k_forward<<<GRID, BLOCK>>>(x, dx, y, dy);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < N; i++) near(dy[i], x[1] * (i % 7 + 1), "forward");
    float *f[4];
    for (float *&one : f) OK(cudaMallocManaged(&one, N * sizeof(float)));
    f[0][0] = 3, f[1][0] = 0;
    for (int i = 0; i < N; i++) f[3][i] = 1;
    k_single<<<GRID, BLOCK>>>(f[0], f[1], f[2], f[3]);
    OK(cudaDeviceSynchronize());
    near(f[1][0], 6.0 * (N / 2), "single precision");
    return wrong;
}
