/* Texture references and objects of every dimension, surfaces, arrays. */
#include <cuda.h>
#include <helper_cuda.h>

texture<float, 1, cudaReadModeElementType> line;
texture<uchar4, cudaTextureType2D, cudaReadModeNormalizedFloat> picture(1, cudaFilterModeLinear, cudaAddressModeWrap);
texture<int2, 3> volume;

__global__ void by_reference(float *out)
{
    out[0] = tex1Dfetch(line, threadIdx.x) + tex1D(line, 0.5f);
    float4 colour = tex2D(picture, 0.25f, 0.75f);
    int2 pair = tex3D(volume, 1.0f, 2.0f, 3.0f);
    out[1] = colour.x + pair.y;
}
__global__ void by_object(float *out, cudaTextureObject_t texture, cudaSurfaceObject_t surface)
{
    out[0] = tex2D<float>(texture, 0.5f, 0.5f) + tex3D<float4>(texture, 1.0f, 1.0f, 1.0f).w + tex1Dfetch<int>(texture, 3);
    out[1] = tex2DLayered<float>(texture, 0.5f, 0.5f, 2) + tex2Dgather<float4>(texture, 0.5f, 0.5f, 1).x;
    tex1D(&out[2], texture, 0.5f);
    surf2Dwrite(out[1], surface, 4 * threadIdx.x, 0);
    surf2Dread(&out[3], surface, 4 * threadIdx.x, 0, cudaBoundaryModeClamp);
}
int main()
{
    float *pixels;
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    checkCudaErrors(cudaMalloc((void **)&pixels, 1024));
    checkCudaErrors(cudaMallocArray(&array, &format, 16, 16));
    checkCudaErrors(cudaBindTexture(0, line, pixels, 1024));
    checkCudaErrors(cudaBindTextureToArray(picture, array));
    picture.addressMode[0] = cudaAddressModeMirror;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc reading = {};
    cudaTextureObject_t object = 0;
    checkCudaErrors(cudaCreateTextureObject(&object, &resource, &reading, NULL));
    by_reference<<<1, 1>>>(pixels);
    by_object<<<1, 1>>>(pixels, object, 0);
    getLastCudaError("launch");
    return cudaUnbindTexture(line);
}
