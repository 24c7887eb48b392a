/* Checks of results, and the choice of a device, by the names that CUDA's samples use. */
#ifndef GRADUS_CUDA_HELPER_CUDA_H
#define GRADUS_CUDA_HELPER_CUDA_H
#include <stdio.h>
#include <stdlib.h>
#include "gradus_cuda.h"
#include "helper_string.h"

#define EXIT_WAIVED 2
#ifndef MAX
#define MAX(a, b) (a > b ? a : b)
#endif

static inline const char *_cudaGetErrorEnum(cudaError_t error) { return cudaGetErrorName(error); }
template <class T> static inline const char *_cudaGetErrorEnum(T) { return "unknown error"; }

template <class T> static inline void check(T result, const char *function, const char *file, int line)
{
    if (result) {
        fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\" \n", file, line, (int)result, _cudaGetErrorEnum(result), function);
        exit(EXIT_FAILURE);
    }
}
#define checkCudaErrors(value) check((value), #value, __FILE__, __LINE__)

static inline void __getLastCudaError(const char *message, const char *file, int line)
{
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) {
        fprintf(stderr, "%s(%i) : getLastCudaError() CUDA error : %s : (%d) %s.\n", file, line, message, (int)error, cudaGetErrorString(error));
        exit(EXIT_FAILURE);
    }
}
#define getLastCudaError(message) __getLastCudaError(message, __FILE__, __LINE__)
static inline void __printLastCudaError(const char *message, const char *file, int line)
{
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess)
        fprintf(stderr, "%s(%i) : getLastCudaError() CUDA error : %s : (%d) %s.\n", file, line, message, (int)error, cudaGetErrorString(error));
}
#define printLastCudaError(message) __printLastCudaError(message, __FILE__, __LINE__)

static inline int ftoi(float value) { return value >= 0 ? (int)(value + 0.5) : (int)(value - 0.5); }
static inline int _ConvertSMVer2Cores(int, int) { return 64; }
static inline const char *_ConvertSMVer2ArchName(int, int) { return "Volta"; }
static inline int gpuGetMaxGflopsDeviceId() { return 0; }
static inline int gpuDeviceInit(int device)
{
    checkCudaErrors(cudaSetDevice(device));
    return device;
}
static inline int findCudaDevice(int argc, const char **argv)
{
    int device = checkCmdLineFlag(argc, argv, "device") ? getCmdLineArgumentInt(argc, argv, "device=") : 0;
    return gpuDeviceInit(device);
}
static inline int findIntegratedGPU() { return -1; }
static inline bool checkCudaCapabilities(int major, int minor)
{
    cudaDeviceProp properties;
    checkCudaErrors(cudaGetDeviceProperties(&properties, 0));
    return properties.major > major || (properties.major == major && properties.minor >= minor);
}
#endif
