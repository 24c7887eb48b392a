// Kernels that access invalid memory. The access is a CUDA error that stays, and the program continues. The first
// argument selects the access.
#include "check.h"
#include <cstring>

__global__ void null_store(float *y) { y[threadIdx.x] = 1; }
__global__ void null_inside(float *y)
{
    float *none = nullptr;
    if (y[0] > 0) *none = y[0];
}
__global__ void far(float *y, long by) { y[(blockIdx.x * blockDim.x + threadIdx.x) * by] = 2; }
__global__ void shared_far(float *y, long by)
{
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    y[threadIdx.x * by] = s[63 - threadIdx.x];
}
__global__ void fine(int *n) { atomicAdd(n, 1); }

int main(int, char **said)
{
    float *y;
    int *n;
    OK(cudaMalloc(&y, 256 * sizeof(float)));
    OK(cudaMallocManaged(&n, sizeof(int)));
    float one = 1;
    OK(cudaMemcpy(y, &one, sizeof one, cudaMemcpyHostToDevice));
    auto is = [&](const char *name) { return !strcmp(said[1], name); };
    const long by = 1L << 40;
    if (is("null")) null_store<<<1, 1>>>(nullptr);
    if (is("nulls")) null_store<<<300, 256>>>(nullptr);
    if (is("inside")) null_inside<<<1, 1>>>(y);
    if (is("far")) far<<<4096, 128>>>(y, by);
    if (is("shared")) shared_far<<<2, 64>>>(y, by);
    if (is("address")) {
        long far_by = by;
        void *arguments[] = {&y, &far_by};
        cudaLaunchKernel((void *)far, dim3(64), dim3(64), arguments, 0, nullptr);
    }
    if (is("host")) *(volatile int *)8 = 1;
    expect(cudaDeviceSynchronize() == cudaErrorIllegalAddress, "the error");
    expect(cudaGetLastError() == cudaErrorIllegalAddress, "it is the last one");
    expect(cudaGetLastError() == cudaErrorIllegalAddress, "it stays");
    *n = 0;
    fine<<<4, 4>>>(n);
    expect(*n == 0, "nothing runs any more");
    expect(cudaMemcpy(&one, y, sizeof one, cudaMemcpyDeviceToHost) == cudaErrorIllegalAddress, "a copy");
    expect(cudaMalloc(&y, 8) == cudaErrorIllegalAddress, "memory");
    expect(!strcmp(cudaGetErrorString(cudaErrorIllegalAddress), "an illegal memory access was encountered"), "its text");
    puts("went on");
    return wrong;
}
