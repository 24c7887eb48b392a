/* The runtime: streams, events, errors of wrong launches and copies, launches through pointers, pitched memory,
   occupancy, random numbers on both sides, and a kernel's printf. */
#include "check.h"
#include <curand.h>
#include <curand_kernel.h>

static __global__ void __launch_bounds__(256) add(int *x, int by) { x[blockIdx.x * blockDim.x + threadIdx.x] += by; }
__global__ void say(int n) { if (threadIdx.x == 0) printf("kernel %d %s %.2f\n", n, "says", n / 4.0); }
__global__ void rows(float *x, size_t pitch, int width)
{
    float *row = (float *)((char *)x + blockIdx.x * pitch);
    for (int i = threadIdx.x; i < width; i += blockDim.x) row[i] = blockIdx.x * 1000 + i;
}
__global__ void uniform(float *out)
{
    curandState state;
    curand_init(1234, threadIdx.x, 0, &state);
    out[threadIdx.x] = curand_uniform(&state);
}
__global__ void published(unsigned *out)
{
    curandStateMRG32k3a mrg;
    curandStatePhilox4_32_10_t philox;
    curand_init(0, 0, 0, &mrg), curand_init(0, 0, 0, &philox);
    for (int i = 0; i < 3; i++) out[i] = curand(&mrg);
    for (int i = 3; i < 7; i++) out[i] = curand(&philox);
}
int other_file(int *x);

int main()
{
    int *x, host[512] = {};
    OK(cudaMalloc(&x, sizeof host));
    OK(cudaMemset(x, 0, sizeof host));
    cudaStream_t stream;
    cudaEvent_t begin, end;
    OK(cudaStreamCreate(&stream)), OK(cudaEventCreate(&begin)), OK(cudaEventCreate(&end));
    OK(cudaEventRecord(begin, stream));
    add<<<2, 256, 0, stream>>>(x, 1);
    auto chosen = &add;
    chosen<<<2, 256, 0, stream>>>(x, 10);
    int by = 100;
    void *arguments[] = {&x, &by};
    OK(cudaLaunchKernel(add, dim3(2), dim3(256), arguments, 0, stream));
    OK(cudaEventRecord(end, stream)), OK(cudaEventSynchronize(end)), OK(cudaStreamSynchronize(stream));
    float milliseconds = -1;
    OK(cudaEventElapsedTime(&milliseconds, begin, end));
    expect(milliseconds >= 0, "time");
    expect(other_file(x) == 0, "a kernel of the same name in another file");
    OK(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 512; i++) expect(host[i] == 1111, "launches");

    add<<<1, 2000>>>(x, 1);
    expect(cudaGetLastError() == cudaErrorInvalidConfiguration, "a block of 2000");
    add<<<0, 1>>>(x, 1);
    expect(cudaPeekAtLastError() == cudaErrorInvalidConfiguration, "an empty grid");
    expect(cudaGetLastError() == cudaErrorInvalidConfiguration && cudaGetLastError() == cudaSuccess, "told once");
    add<<<1, 512>>>(x, 1);
    expect(cudaGetLastError() == cudaErrorLaunchOutOfResources, "more than the launch bounds");
    expect(cudaMemcpy(NULL, host, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue, "a copy to null");
    expect(cudaMemcpy(x, host, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue, "a copy the wrong way");
    expect(cudaMemcpy(x, host, sizeof host + 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue, "a copy too long");
    expect(cudaFree(host) == cudaErrorInvalidValue, "not the device's");
    cudaGetLastError();

    float *matrix, back[3][10];
    size_t pitch;
    OK(cudaMallocPitch(&matrix, &pitch, sizeof back[0], 3));
    rows<<<3, 4>>>(matrix, pitch, 10);
    OK(cudaMemcpy2D(back, sizeof back[0], matrix, pitch, sizeof back[0], 3, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 10; j++) expect(back[i][j] == i * 1000 + j, "pitch");

    int blocks = 0, threads = 0;
    OK(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, add));
    expect(blocks > 0 && threads == 256, "occupancy");
    cudaFuncAttributes attributes;
    OK(cudaFuncGetAttributes(&attributes, add));
    expect(attributes.maxThreadsPerBlock == 256, "attributes");

    float *numbers, *same;
    curandGenerator_t generator;
    OK(cudaMallocManaged(&numbers, 64 * 4)), OK(cudaMallocManaged(&same, 64 * 4));
    curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
    curandSetPseudoRandomGeneratorSeed(generator, 1234);
    curandGenerateUniform(generator, numbers, 64);
    uniform<<<1, 64>>>(same);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++) expect(numbers[i] == same[i], "random numbers");
    near(std::round(1e4 * numbers[0]), 1455, "the first random number");
    /* L'Ecuyer's first numbers, 545508589 1368065410 1327943761, made such of 32 bits; those of Philox's authors. */
    const unsigned known[7] = {545508615, 1368065476, 1327943825, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    unsigned *words = (unsigned *)same;
    published<<<1, 1>>>(words);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 7; i++) near(words[i], known[i], "published random numbers");

    fflush(stdout);
    say<<<1, 32>>>(7);
    OK(cudaFree(x));
    return wrong;
}
