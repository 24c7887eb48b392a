/* Launches of known kernels, which the host makes itself, beside those by address: arguments of every kind,
   wrong configurations, launches inside of arguments, exceptions on the way, long kernels at many places. */
#include "check.h"
#include <stdexcept>
#include <string>

struct pair { float x, y; };
struct large { double a[5]; int n; };
struct nothing {};

__global__ void mixed(float *out, int n, pair p, nothing, large l, bool up, char c)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    l.a[0] += i;
    if (i < n) out[i] = p.x * i + p.y + (float)(l.a[0] + l.a[4]) + (up ? 100 : 0) + c;
}
static __global__ void add(int *x, int by) { atomicAdd(x, by * (int)(gridDim.x * blockDim.y)); }
template <class T> __global__ void fill(T *x, T value) { x[threadIdx.z] = value; }
__global__ void __launch_bounds__(64) few(int *x) { atomicAdd(x, 1); }
__global__ void dynamic(int *x, int n)
{
    extern __shared__ int part[];
    part[threadIdx.x] = n;
    __syncthreads();
    x[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x] + (int)threadIdx.x;
}

static int read(int *x)
{
    int value = 0;
    OK(cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}
static int again(int *x)
{
    add<<<1, 1>>>(x, 1000);
    return 1;
}
static int thrown() { throw std::runtime_error("none"); }

/* Destructors stand behind these launches. */
static void guarded(int *x, bool fails)
{
    std::string text = "long enough to be on the heap, so that it has to be freed";
    std::vector<int> sizes(3, 2);
    add<<<sizes[0], dim3(1, sizes.size())>>>(x, fails ? thrown() : (int)text.size());
}

int main(int argc, char **)
{
    float *f;
    int *x;
    OK(cudaMalloc(&f, 300 * sizeof(float)));
    OK(cudaMalloc(&x, 64 * sizeof(int)));
    OK(cudaMemset(x, 0, 64 * sizeof(int)));

    large l = {{1, 2, 3, 4, 5}, 6};
    dim3 grid(3), block(100);
    mixed<<<grid, block>>>(f, 300, pair{2, 0.5f}, nothing{}, l, argc == 1, 'A');
    std::vector<float> seen(300);
    OK(cudaMemcpy(seen.data(), f, 300 * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 300; i++) near(seen[i], 2.0 * i + 0.5 + 1 + i + 5 + 100 + 65, "arguments");

    add<<<2, dim3(1, 3)>>>(x, 5);
    expect(read(x) == 2 * 3 * 5 * 6, "sizes");
    add<<<argc, 1>>>(x, argc > 1 ? 7 : again(x));
    expect(read(x) == 180 + 1000 + 1, "a launch inside of an argument");
    guarded(x, false);
    expect(read(x) == 1181 + 2 * 3 * 6 * 57, "destructors");
    try {
        guarded(x, true);
        expect(false, "it throws");
    } catch (const std::runtime_error &) {
    }
    expect(read(x) == 1181 + 2052, "what throws is not launched");

    fill<<<1, dim3(1, 1, 5)>>>(f, 2.5f);
    fill<<<1, dim3(1, 1, 5)>>>(x, 3);
    OK(cudaMemcpy(seen.data(), f, 6 * sizeof(float), cudaMemcpyDeviceToHost));
    expect(seen[4] == 2.5f && seen[5] == 2.0f * 5 + 0.5f + 176 && read(x) == 3, "templates");

    /* By address, in three ways. */
    void (*pointer)(int *, int) = argc > 5 ? nullptr : add;
    pointer<<<1, 1>>>(x, 4);
    int by = 5;
    void *arguments[] = {&x, &by};
    OK(cudaLaunchKernel((const void *)add, dim3(2), dim3(1), arguments, 0, nullptr));
    OK(cudaLaunchKernel((const void *)pointer, dim3(1), dim3(1), arguments, 0, nullptr));
    expect(read(x) == 3 + 4 + 5 * 2 * 2 + 5, "launches by address");

    dynamic<<<1, 8, 8 * sizeof(int)>>>(x, 9);
    expect(read(x) == 9, "memory whose size the launch gives");

    /* What cannot be is an error and runs nothing. */
    add<<<1, 2000>>>(x, 1);
    expect(cudaGetLastError() == cudaErrorInvalidConfiguration, "too many threads");
    expect(cudaGetLastError() == cudaSuccess, "the error was taken");
    add<<<0, 1>>>(x, 1);
    expect(cudaPeekAtLastError() == cudaErrorInvalidConfiguration, "no blocks");
    expect(cudaGetLastError() == cudaErrorInvalidConfiguration, "the error stays until it is taken");
    few<<<1, 65>>>(x);
    expect(cudaGetLastError() == cudaErrorLaunchOutOfResources, "more than the kernel's bounds");
    dynamic<<<1, 8, 1 << 20>>>(x, 9);
    expect(cudaGetLastError() == cudaErrorInvalidValue, "more shared memory than there is");
    expect(read(x) == 9, "nothing ran");
    OK(cudaFree(f));
    OK(cudaFree(x));
    return wrong;
}
