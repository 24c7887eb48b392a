/* The C++ forms of runtime functions: typed pointers, symbols by reference, kernels by name. */
#ifndef GRADUS_CUDA_RUNTIME_TEMPLATES_H
#define GRADUS_CUDA_RUNTIME_TEMPLATES_H

template <class T> static inline cudaError_t cudaMalloc(T **pointer, size_t size)
{
    return ::cudaMalloc((void **)(void *)pointer, size);
}
template <class T> static inline cudaError_t cudaMallocHost(T **pointer, size_t size, unsigned int flags = 0)
{
    return ::cudaHostAlloc((void **)(void *)pointer, size, flags);
}
template <class T> static inline cudaError_t cudaHostAlloc(T **pointer, size_t size, unsigned int flags)
{
    return ::cudaHostAlloc((void **)(void *)pointer, size, flags);
}
template <class T> static inline cudaError_t cudaHostGetDevicePointer(T **device, void *host, unsigned int flags)
{
    return ::cudaHostGetDevicePointer((void **)(void *)device, host, flags);
}
template <class T> static inline cudaError_t cudaMallocManaged(T **pointer, size_t size, unsigned int flags = cudaMemAttachGlobal)
{
    return ::cudaMallocManaged((void **)(void *)pointer, size, flags);
}
template <class T> static inline cudaError_t cudaMallocPitch(T **pointer, size_t *pitch, size_t width, size_t height)
{
    return ::cudaMallocPitch((void **)(void *)pointer, pitch, width, height);
}
template <class T> static inline cudaError_t cudaMallocAsync(T **pointer, size_t size, cudaStream_t stream)
{
    return ::cudaMallocAsync((void **)(void *)pointer, size, stream);
}
template <class T> static inline cudaError_t cudaMallocFromPoolAsync(T **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream)
{
    return ::cudaMallocFromPoolAsync((void **)(void *)pointer, size, pool, stream);
}
template <class T> static inline cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, T *pointer, size_t length = 0, unsigned int flags = cudaMemAttachSingle)
{
    return ::cudaStreamAttachMemAsync(stream, (void *)pointer, length, flags);
}

/* A symbol's address is that of the one variable that host and device share. Text may be a variable of text, or
   the name of one, as CUDA 4 had it: the runtime tells which. */
template <class T> static inline const void *gr_symbol(const T &symbol) { return (const void *)&symbol; }
template <int n> static inline const void *gr_symbol(const char (&symbol)[n]) { return __gr_symbol(symbol); }

/* Whether a copy stays within a variable. Text may be a name, and an array's size may be told elsewhere. */
template <class T, size_t size = sizeof(T)> static inline bool gr_holds(const T &, size_t count, size_t offset) { return offset <= size && count <= size - offset; }
template <int n> static inline bool gr_holds(const char (&)[n], size_t, size_t) { return true; }
static inline bool gr_holds(const volatile void *, size_t, size_t) { return true; }

template <class T> static inline cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *from, size_t count, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
    return ::cudaMemcpyToSymbol(gr_symbol(symbol), gr_holds(symbol, count, offset) ? from : nullptr, count, offset, kind);
}
template <class T> static inline cudaError_t cudaMemcpyToSymbolAsync(const T &symbol, const void *from, size_t count, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t stream = 0)
{
    return ::cudaMemcpyToSymbolAsync(gr_symbol(symbol), gr_holds(symbol, count, offset) ? from : nullptr, count, offset, kind, stream);
}
template <class T> static inline cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t count, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
{
    return ::cudaMemcpyFromSymbol(gr_holds(symbol, count, offset) ? to : nullptr, gr_symbol(symbol), count, offset, kind);
}
template <class T> static inline cudaError_t cudaMemcpyFromSymbolAsync(void *to, const T &symbol, size_t count, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t stream = 0)
{
    return ::cudaMemcpyFromSymbolAsync(gr_holds(symbol, count, offset) ? to : nullptr, gr_symbol(symbol), count, offset, kind, stream);
}
template <class T> static inline cudaError_t cudaGetSymbolAddress(void **pointer, const T &symbol)
{
    return ::cudaGetSymbolAddress(pointer, gr_symbol(symbol));
}
template <class A, class T> static inline cudaError_t cudaGetSymbolAddress(A **pointer, const T &symbol)
{
    return ::cudaGetSymbolAddress((void **)(void *)pointer, gr_symbol(symbol));
}
template <class T> static inline cudaError_t cudaGetSymbolSize(size_t *size, const T &)
{
    *size = sizeof(T);
    return cudaSuccess;
}

static inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags)
{
    return ::cudaEventCreateWithFlags(event, flags);
}

/* Kernels: the address of one stands for it. */
template <class F> static inline cudaError_t cudaLaunchKernel(F *kernel, dim3 grid, dim3 block, void **arguments, size_t shared = 0, cudaStream_t stream = 0)
{
    return ::cudaLaunchKernel((const void *)kernel, grid, block, arguments, shared, stream);
}
template <class F> static inline cudaError_t cudaLaunchCooperativeKernel(F *kernel, dim3 grid, dim3 block, void **arguments, size_t shared = 0, cudaStream_t stream = 0)
{
    return ::cudaLaunchCooperativeKernel((const void *)kernel, grid, block, arguments, shared, stream);
}
template <class F> static inline cudaError_t cudaFuncSetCacheConfig(F *kernel, cudaFuncCache config)
{
    return ::cudaFuncSetCacheConfig((const void *)kernel, config);
}
template <class F> static inline cudaError_t cudaFuncSetSharedMemConfig(F *kernel, cudaSharedMemConfig config)
{
    return ::cudaFuncSetSharedMemConfig((const void *)kernel, config);
}
template <class F> static inline cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute attribute, int value)
{
    return ::cudaFuncSetAttribute((const void *)kernel, attribute, value);
}
template <class F> static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, F *kernel)
{
    return ::cudaFuncGetAttributes(attributes, (const void *)kernel);
}
template <class F> static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F kernel, int threads, size_t shared)
{
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)kernel, threads, shared);
}
template <class F> static inline cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *shared, F *kernel, int blocks, int threads)
{
    return ::cudaOccupancyAvailableDynamicSMemPerBlock(shared, (const void *)kernel, blocks, threads);
}
template <class F> static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, F kernel, int threads, size_t shared, unsigned int flags)
{
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, (const void *)kernel, threads, shared, flags);
}

/* The block size with the most threads at work, `shared(threads)` bytes of shared memory each, and the
   number of blocks that fill the device. */
template <class F, class S> static inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *grid, int *block, F kernel, S shared, int limit = 0)
{
    cudaFuncAttributes attributes;
    cudaError_t error = ::cudaFuncGetAttributes(&attributes, (const void *)kernel);
    int device = 0, processors = 1, best = 0;
    if (error == cudaSuccess) error = ::cudaGetDevice(&device);
    if (error == cudaSuccess) error = ::cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    int most = attributes.maxThreadsPerBlock;
    if (limit > 0 && limit < most) most = limit;
    for (int threads = most; error == cudaSuccess && threads > 0; threads -= threads % 32 ? threads % 32 : 32) {
        int blocks = 0;
        error = ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)kernel, threads, shared(threads));
        if (error == cudaSuccess && blocks * threads > best) {
            best = blocks * threads;
            *block = threads;
            *grid = blocks * processors;
        }
    }
    return error;
}
template <class F> static inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, F kernel, size_t shared = 0, int limit = 0)
{
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(grid, block, kernel, [shared](int) { return shared; }, limit);
}
template <class F> static inline cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, F kernel, size_t shared = 0, int limit = 0, unsigned int = 0)
{
    return cudaOccupancyMaxPotentialBlockSize(grid, block, kernel, shared, limit);
}

/* Channel formats of C++ types. */
template <class T> struct gr_channel { static const int count = 0; };
#define GR_CHANNEL(type, element, channels, which)                                     \
    template <> struct gr_channel<type> {                                              \
        typedef element scalar;                                                        \
        static const int count = channels, bits = 8 * sizeof(element);                 \
        static const cudaChannelFormatKind kind = cudaChannelFormatKind##which;        \
    };
#define GR_CHANNELS(scalar, name, which)                                               \
    GR_CHANNEL(scalar, scalar, 1, which) GR_CHANNEL(name##1, scalar, 1, which)         \
    GR_CHANNEL(name##2, scalar, 2, which) GR_CHANNEL(name##4, scalar, 4, which)
GR_CHANNEL(char, char, 1, Signed)
GR_CHANNELS(signed char, char, Signed)
GR_CHANNELS(unsigned char, uchar, Unsigned)
GR_CHANNELS(short, short, Signed)
GR_CHANNELS(unsigned short, ushort, Unsigned)
GR_CHANNELS(int, int, Signed)
GR_CHANNELS(unsigned int, uint, Unsigned)
GR_CHANNELS(long, long, Signed)
GR_CHANNELS(unsigned long, ulong, Unsigned)
GR_CHANNELS(float, float, Float)
#undef GR_CHANNELS
#undef GR_CHANNEL

template <class T> static inline cudaChannelFormatDesc cudaCreateChannelDesc()
{
    typedef gr_channel<T> channel;
    return cudaCreateChannelDesc(channel::bits, channel::count > 1 ? channel::bits : 0,
                                 channel::count > 2 ? channel::bits : 0, channel::count > 3 ? channel::bits : 0,
                                 channel::kind);
}

#endif
