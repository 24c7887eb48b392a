/* Textures against the programming guide's formulas: references and objects, point and linear filters, every
   address mode, elements as fractions; cubes; and surfaces. */
#include "check.h"

const int W = 8, H = 5;
texture<float, 2, cudaReadModeElementType> picture;
texture<int, 1, cudaReadModeElementType> line;
texture<float, 2, cudaReadModeElementType> halves;

__global__ void by_reference(float *out, const float *x, const float *y, int n, int *fetched)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < n) out[t] = tex2D(picture, x[t], y[t]);
    if (t < 16) fetched[t] = tex1Dfetch(line, t - 4);
}
__global__ void from_halves(float *out) { out[threadIdx.x] = tex2D(halves, threadIdx.x + 0.5f, 0.5f); }
__global__ void by_object(float *out, cudaTextureObject_t object, const float *x, const float *y, int n)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < n) out[t] = tex2D<float>(object, x[t], y[t]);
}
__global__ void written(cudaSurfaceObject_t surface)
{
    float here = surf2Dread<float>(surface, 4 * threadIdx.x, threadIdx.y);
    surf2Dwrite(here + 100, surface, 4 * threadIdx.x, threadIdx.y);
}
/* What each thread's direction meets in each of the cubes, and the texel itself. */
__global__ void in_cubes(float *out, cudaTextureObject_t cubes, cudaSurfaceObject_t faces, const float3 *directions, int n)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    float3 d = directions[t];
    out[3 * t] = texCubemap<float>(cubes, d.x, d.y, d.z);
    out[3 * t + 1] = texCubemapLayered<float>(cubes, d.x, d.y, d.z, 1);
    out[3 * t + 2] = surfCubemapread<float>(faces, 4 * (t % 4), t / 4 % 4, t / 16);
}

__global__ void in_line(float *out, cudaTextureObject_t object) { out[threadIdx.x] = tex1Dfetch<float>(object, threadIdx.x); }
/* What four elements of a kind are when they are read as fractions, or as they are. */
template <class T> static void promoted(const T (&elements)[4], cudaChannelFormatKind kind, bool fractions, const float (&expected)[4])
{
    T *memory;
    float *out;
    OK(cudaMalloc(&memory, sizeof elements)), OK(cudaMallocManaged(&out, 4 * sizeof *out));
    OK(cudaMemcpy(memory, elements, sizeof elements, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = memory, resource.res.linear.sizeInBytes = sizeof elements;
    resource.res.linear.desc = cudaCreateChannelDesc(8 * sizeof(T), 0, 0, 0, kind);
    cudaTextureDesc reading = {};
    reading.readMode = fractions ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    cudaTextureObject_t object;
    OK(cudaCreateTextureObject(&object, &resource, &reading, NULL));
    in_line<<<1, 4>>>(out, object);
    OK(cudaDestroyTextureObject(object));
    for (int t = 0; t < 4; t++) near(out[t], expected[t], "promoted");
    OK(cudaFree(memory)), OK(cudaFree(out));
    reading.seamlessCubemap = 1, reading.filterMode = cudaFilterModeLinear;
    expect(cudaCreateTextureObject(&object, &resource, &reading, NULL) != cudaSuccess, "cubes without seams");
}
static void promotions()
{
    promoted<unsigned char>({0, 51, 102, 255}, cudaChannelFormatKindUnsigned, true, {0, 0.2f, 0.4f, 1});
    promoted<signed char>({-128, -127, 0, 127}, cudaChannelFormatKindSigned, true, {-1, -1, 0, 1});
    promoted<unsigned short>({0, 13107, 65535, 26214}, cudaChannelFormatKindUnsigned, true, {0, 0.2f, 1, 0.4f});
    promoted<float>({0.25f, -3, 1e6f, 7}, cudaChannelFormatKindFloat, true, {0.25f, -3, 1e6f, 7});
    /* 1, -2, 65504 and the least of 16 bits. */
    for (bool fractions : {false, true})
        promoted<unsigned short>({0x3c00, 0xc000, 0x7bff, 0x0001}, cudaChannelFormatKindFloat, fractions, {1, -2, 65504, 5.9604645e-8f});
}

static float texels[H][W];

/* The index that an address mode gives; -1 outside of a border. */
static int place(int i, int n, int mode, bool normalized)
{
    if (mode == cudaAddressModeBorder) return i < 0 || i >= n ? -1 : i;
    if (normalized && mode == cudaAddressModeWrap) return ((i % n) + n) % n;
    if (normalized && mode == cudaAddressModeMirror) {
        int period = ((i % (2 * n)) + 2 * n) % (2 * n);
        return period < n ? period : 2 * n - 1 - period;
    }
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}
static double texel(int i, int j, int mode, bool normalized)
{
    int x = place(i, W, mode, normalized), y = place(j, H, mode, normalized);
    return x < 0 || y < 0 ? 0 : texels[y][x];
}
static double sampled(double x, double y, int mode, bool normalized, bool linear)
{
    if (normalized) x *= W, y *= H;
    if (!linear) return texel((int)std::floor(x), (int)std::floor(y), mode, normalized);
    double xb = x - 0.5, yb = y - 0.5;
    int i = (int)std::floor(xb), j = (int)std::floor(yb);
    double a = std::rint((xb - i) * 256) / 256, b = std::rint((yb - j) * 256) / 256;
    return (1 - a) * (1 - b) * texel(i, j, mode, normalized) + a * (1 - b) * texel(i + 1, j, mode, normalized) +
           (1 - a) * b * texel(i, j + 1, mode, normalized) + a * b * texel(i + 1, j + 1, mode, normalized);
}

/* Two cubes of 4 by 4 texels on each face, looked at through the middle of each texel, where no filter mixes. */
static void cubes()
{
    const int n = 6 * 16;
    float numbers[2 * n], *out;
    for (int i = 0; i < 2 * n; i++) numbers[i] = i;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    OK(cudaMalloc3DArray(&array, &format, make_cudaExtent(4, 4, 12), cudaArrayCubemap | cudaArrayLayered));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(numbers, 4 * sizeof(float), 4, 4);
    copy.dstArray = array, copy.extent = make_cudaExtent(4, 4, 12), copy.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&copy));
    float3 *directions;
    OK(cudaMallocManaged(&directions, n * sizeof *directions)), OK(cudaMallocManaged(&out, 3 * n * sizeof *out));
    for (int t = 0; t < n; t++) {
        /* Where a texel of a cube of side 2 lies: the table of the programming guide, read backwards. */
        float s = (t % 4 + 0.5f) / 2 - 1, r = (t / 4 % 4 + 0.5f) / 2 - 1, far = 1 + t % 3;
        const float3 table[6] = {{1, -r, -s}, {-1, -r, s}, {s, 1, r}, {s, -1, -r}, {s, -r, 1}, {-s, -r, -1}};
        float3 d = table[t / 16];
        directions[t] = make_float3(far * d.x, far * d.y, far * d.z);
    }
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    for (int linear = 0; linear < 2; linear++)
        for (int normalized = 0; normalized < 2; normalized++) {
            cudaTextureDesc reading = {};
            for (cudaTextureAddressMode &mode : reading.addressMode) mode = cudaAddressModeClamp;
            reading.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
            reading.normalizedCoords = normalized;
            cudaTextureObject_t object;
            cudaSurfaceObject_t faces;
            OK(cudaCreateTextureObject(&object, &resource, &reading, NULL));
            OK(cudaCreateSurfaceObject(&faces, &resource));
            in_cubes<<<(n + 63) / 64, 64>>>(out, object, faces, directions, n);
            OK(cudaDestroyTextureObject(object));
            for (int t = 0; t < n; t++) {
                near(out[3 * t], t, "cube"), near(out[3 * t + 1], n + t, "second cube");
                near(out[3 * t + 2], t, "face");
            }
        }
}

int main()
{
    cubes();
    promotions();
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++) texels[j][i] = 3 * i + j * j;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    OK(cudaMallocArray(&array, &format, W, H));
    OK(cudaMemcpy2DToArray(array, 0, 0, texels, sizeof texels[0], sizeof texels[0], H, cudaMemcpyHostToDevice));

    const int n = 400;
    float *x, *y, *out;
    int *fetched, *numbers;
    OK(cudaMallocManaged(&x, n * 4)), OK(cudaMallocManaged(&y, n * 4)), OK(cudaMallocManaged(&out, n * 4));
    OK(cudaMallocManaged(&fetched, 64)), OK(cudaMallocManaged(&numbers, 40));
    for (int t = 0; t < 10; t++) numbers[t] = 10 + t;
    OK(cudaBindTexture(NULL, line, numbers, 40));
    OK(cudaBindTextureToArray(picture, array));

    /* Rows are read in the bound format; linear memory is read in the format of the program. */
    unsigned short *bits;
    OK(cudaMallocManaged(&bits, 8));
    bits[0] = 0x3c00, bits[1] = 0x4000, bits[2] = 0xc200, bits[3] = 0x3800;
    cudaChannelFormatDesc half = cudaCreateChannelDesc(16, 0, 0, 0, cudaChannelFormatKindFloat);
    OK(cudaBindTexture2D(NULL, halves, bits, half, 4, 1, 8));
    from_halves<<<1, 4>>>(out);
    OK(cudaDeviceSynchronize());
    const float wanted[4] = { 1, 2, -3, 0.5f };
    for (int t = 0; t < 4; t++) expect(out[t] == wanted[t], "half");
    expect(cudaBindTexture(NULL, line, bits, half, 8) == cudaErrorInvalidChannelDescriptor, "linear memory of another format");
    cudaGetLastError();

    for (int mode = cudaAddressModeWrap; mode <= cudaAddressModeBorder; mode++)
        for (int normalized = 0; normalized < 2; normalized++)
            for (int linear = 0; linear < 2; linear++) {
                /* Exact in binary, so that both sides round alike. */
                for (int t = 0; t < n; t++) {
                    x[t] = (t % 20) * 0.1875f - 1.0f, y[t] = (t / 20) * 0.21875f - 1.0f;
                    if (!normalized) x[t] *= 4, y[t] *= 2;
                }
                picture.normalized = normalized;
                picture.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
                picture.addressMode[0] = picture.addressMode[1] = (cudaTextureAddressMode)mode;
                by_reference<<<(n + 63) / 64, 64>>>(out, x, y, n, fetched);
                OK(cudaDeviceSynchronize());
                for (int t = 0; t < n; t++) near(out[t], sampled(x[t], y[t], mode, normalized, linear), "reference");

                cudaResourceDesc resource = {};
                resource.resType = cudaResourceTypeArray;
                resource.res.array.array = array;
                cudaTextureDesc reading = {};
                reading.addressMode[0] = reading.addressMode[1] = (cudaTextureAddressMode)mode;
                reading.filterMode = picture.filterMode;
                reading.normalizedCoords = normalized;
                cudaTextureObject_t object;
                OK(cudaCreateTextureObject(&object, &resource, &reading, NULL));
                by_object<<<(n + 63) / 64, 64>>>(out, object, x, y, n);
                OK(cudaDestroyTextureObject(object));
                for (int t = 0; t < n; t++) near(out[t], sampled(x[t], y[t], mode, normalized, linear), "object");
            }
    for (int t = 0; t < 16; t++) expect(fetched[t] == (t >= 4 && t < 14 ? 6 + t : 0), "fetch");

    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface;
    OK(cudaCreateSurfaceObject(&surface, &resource));
    written<<<1, dim3(W, H)>>>(surface);
    float back[H][W];
    OK(cudaMemcpy2DFromArray(back, sizeof back[0], array, 0, 0, sizeof back[0], H, cudaMemcpyDeviceToHost));
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++) near(back[j][i], texels[j][i] + 100, "surface");
    return wrong;
}
