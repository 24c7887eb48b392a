/* What the run time's interface gives and refuses: pools, peers, pinned memory, addresses, attributes, events. */
#include "check.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#define IS(call, error)                                                                        \
    expect((call) == error && cudaGetLastError() == (error == cudaSuccess ? cudaSuccess : error), #call)

__global__ void __launch_bounds__(128) add_one(int *x, int n)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < n) x[t]++;
}
__global__ void turned(int *x)
{
    extern __shared__ int s[];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
__constant__ int table[16];

static void pools()
{
    const int n = 1000;
    std::vector<int> back(n);
    cudaStream_t stream;
    cudaMemPool_t all, own;
    OK(cudaStreamCreate(&stream));
    OK(cudaDeviceGetDefaultMemPool(&all, 0));
    unsigned long long most = ~0ull;
    OK(cudaMemPoolSetAttribute(all, cudaMemPoolAttrReleaseThreshold, &most));
    int *x;
    OK(cudaMallocAsync(&x, n * sizeof *x, stream));
    OK(cudaMemsetAsync(x, 0, n * sizeof *x, stream));
    add_one<<<8, 128, 0, stream>>>(x, n);
    OK(cudaMemcpyAsync(back.data(), x, n * sizeof *x, cudaMemcpyDeviceToHost, stream));
    OK(cudaFreeAsync(x, stream));
    OK(cudaStreamSynchronize(stream));
    for (int value : back) expect(value == 1, "memory of the stream's");
    cudaMemPoolProps wanted = {};
    wanted.allocType = cudaMemAllocationTypePinned;
    wanted.location.type = cudaMemLocationTypeDevice;
    OK(cudaMemPoolCreate(&own, &wanted));
    OK(cudaMallocFromPoolAsync(&x, 100, own, stream));
    OK(cudaFreeAsync(x, stream));
    OK(cudaMemPoolTrimTo(own, 0));
    OK(cudaMemPoolDestroy(own));
    OK(cudaStreamDestroy(stream));
}

static void streams_and_events()
{
    cudaStream_t stream;
    cudaEvent_t first, second, untimed;
    float time = -1;
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&first));
    OK(cudaEventCreateWithFlags(&second, cudaEventDefault));
    OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    IS(cudaEventElapsedTime(&time, first, second), cudaErrorInvalidResourceHandle);
    OK(cudaEventRecord(first, stream));
    OK(cudaEventRecord(second, stream));
    OK(cudaEventRecord(untimed, stream));
    OK(cudaStreamWaitEvent(stream, second, 0));
    OK(cudaEventSynchronize(second));
    OK(cudaEventElapsedTime(&time, first, second));
    expect(time >= 0, "time between events");
    IS(cudaEventElapsedTime(&time, first, untimed), cudaErrorInvalidResourceHandle);
    int called = 0;
    OK(cudaLaunchHostFunc(stream, [](void *at) { *(int *)at = 5; }, &called));
    OK(cudaStreamSynchronize(stream));
    expect(called == 5, "a function of the host's in a stream");
    OK(cudaStreamDestroy(stream));
}

static void addresses(int *device)
{
    cudaPointerAttributes told;
    int local = 0, *pinned, *mapped;
    OK(cudaPointerGetAttributes(&told, device));
    expect(told.type == cudaMemoryTypeDevice && told.devicePointer == device, "device memory");
    OK(cudaPointerGetAttributes(&told, &local));
    expect(told.type == cudaMemoryTypeUnregistered, "nobody's memory");
    OK(cudaHostAlloc(&pinned, 64, cudaHostAllocMapped));
    OK(cudaPointerGetAttributes(&told, pinned));
    expect(told.type == cudaMemoryTypeHost, "pinned memory");
    OK(cudaHostGetDevicePointer(&mapped, pinned, 0));
    *pinned = 4;
    add_one<<<1, 1>>>(mapped, 1);
    OK(cudaDeviceSynchronize());
    expect(*pinned == 5, "a kernel on pinned memory");
    OK(cudaFreeHost(pinned));
    std::vector<int> own(100);
    OK(cudaHostRegister(own.data(), 400, cudaHostRegisterDefault));
    IS(cudaHostRegister(own.data(), 400, 0), cudaErrorHostMemoryAlreadyRegistered);
    OK(cudaHostUnregister(own.data()));
    IS(cudaHostUnregister(own.data()), cudaErrorHostMemoryNotRegistered);
    int peer = 9;
    OK(cudaDeviceCanAccessPeer(&peer, 0, 0));
    expect(peer == 0, "no device is its own peer");
    OK(cudaMemcpyPeer(device, 0, device + 16, 0, 64));
}

static void refusals(int *device)
{
    int host[16] = {};
    void *none = nullptr;
    IS(cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    IS(cudaMemcpy(device, nullptr, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    IS(cudaMemcpy(device, host, 4, (cudaMemcpyKind)17), cudaErrorInvalidMemcpyDirection);
    IS(cudaMemset(nullptr, 0, 4), cudaErrorInvalidValue);
    IS(cudaMemcpyToSymbol(table, host, 100), cudaErrorInvalidValue);
    IS(cudaMemcpy2D(host, 2, device, 64, 8, 2, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue);
    IS(cudaFree(host), cudaErrorInvalidValue);
    IS(cudaSetDevice(3), cudaErrorInvalidDevice);
    IS(cudaMalloc(&none, (size_t)1 << 60), cudaErrorMemoryAllocation);
    add_one<<<1, 2000>>>(device, 1);
    IS(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
    add_one<<<1, 256>>>(device, 1);
    IS(cudaPeekAtLastError(), cudaErrorLaunchOutOfResources);
    add_one<<<dim3(1, 70000), 128>>>(device, 1);
    IS(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
    turned<<<1, 32, 1 << 20>>>(device);
    IS(cudaPeekAtLastError(), cudaErrorInvalidValue);
    IS(cudaLaunchKernel((void *)host, dim3(1), dim3(1), &none, 0, 0), cudaErrorInvalidDeviceFunction);
}

/* Four numbers of 8 bits from two pairs of 16, on the host and the device. */
static __global__ void narrow(float4 *from, float4 *to)
{
    const __nv_fp8x4_e4m3 halves(__floats2half2_rn(from->x, from->y), __floats2half2_rn(from->z, from->w));
    const __nv_fp8x4_e5m2 others(__floats2bfloat162_rn(from->x, from->y), __floats2bfloat162_rn(from->z, from->w));
    to[0] = (float4)halves;
    to[1] = (float4)others;
}

static void narrow_numbers()
{
    float4 *x;
    OK(cudaMallocManaged(&x, 3 * sizeof *x));
    x[0] = make_float4(1.5f, -2.25f, 500.0f, 0.0f);
    narrow<<<1, 1>>>(x, x + 1);
    OK(cudaDeviceSynchronize());
    expect(x[1].x == 1.5f && x[1].y == -2.25f && x[1].z == 448.0f && x[1].w == 0.0f, "pairs of halves");
    expect(x[2].x == 1.5f && x[2].y == -2.0f && x[2].z == 512.0f && x[2].w == 0.0f, "pairs of bfloat16");
    OK(cudaFree(x));
}

static void attributes()
{
    cudaFuncAttributes told;
    int blocks, least, size, value;
    OK(cudaFuncGetAttributes(&told, add_one));
    expect(told.maxThreadsPerBlock == 128, "launch bounds");
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_one, 128, 0));
    expect(blocks == 16, "blocks of a multiprocessor");
    size_t each;
    OK(cudaOccupancyAvailableDynamicSMemPerBlock(&each, add_one, 4, 128));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_one, 128, each));
    expect(blocks == 4, "shared memory for four blocks");
    IS(cudaOccupancyAvailableDynamicSMemPerBlock(&each, add_one, 17, 128), cudaErrorInvalidValue);
    OK(cudaOccupancyMaxPotentialBlockSize(&least, &size, add_one, 0, 0));
    expect(size == 128 && least > 0, "the block that fills it");
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0));
    expect(value == 1024, "threads of a block");
}

int main()
{
    int *device;
    OK(cudaMalloc(&device, 128 * sizeof *device));
    pools();
    streams_and_events();
    addresses(device);
    refusals(device);
    attributes();
    narrow_numbers();
    OK(cudaFree(device));
    IS(cudaFree(device), cudaErrorInvalidValue);
    return wrong;
}
