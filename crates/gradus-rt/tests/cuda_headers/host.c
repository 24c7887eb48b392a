/* The runtime's interface in plain C and C++. */
#include <cuda_runtime.h>
#include <cuda_runtime_api.h>
#include <cuComplex.h>
#include <curand.h>

int main(void)
{
    void *memory;
    struct cudaDeviceProp properties;
    cudaEvent_t event;
    float4 colour = make_float4(1, 2, 3, 4);
    cuDoubleComplex z = cuCmul(make_cuDoubleComplex(colour.x, 2), make_cuDoubleComplex(3, 4));
    if (cudaMalloc(&memory, 64) != cudaSuccess || cudaEventCreate(&event) != cudaSuccess) return 1;
    cudaGetDeviceProperties(&properties, 0);
    cudaMemcpy(memory, &colour, sizeof colour, cudaMemcpyHostToDevice);
    return (int)cudaFree(memory) + (int)cuCreal(z);
}
