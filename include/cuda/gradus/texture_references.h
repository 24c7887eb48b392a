/* Texture references, as CUDA had them up to version 11: global variables of a class that clang knows, read in
   kernels by name. The variable of host and device is one; its address is what a fetch needs. */
#ifndef GRADUS_CUDA_TEXTURE_REFERENCES_H
#define GRADUS_CUDA_TEXTURE_REFERENCES_H

#define cudaTextureType1D 0x01
#define cudaTextureType2D 0x02
#define cudaTextureType3D 0x03
#define cudaTextureTypeCubemap 0x0C
#define cudaTextureType1DLayered 0xF1
#define cudaTextureType2DLayered 0xF2

template <class T, int dimensions = cudaTextureType1D, cudaTextureReadMode mode = cudaReadModeElementType>
struct __attribute__((device_builtin_texture_type)) texture : public textureReference {
    __host__ texture(int normalized = 0, cudaTextureFilterMode filter = cudaFilterModePoint, cudaTextureAddressMode address = cudaAddressModeClamp)
        : textureReference()
    {
        this->normalized = normalized;
        filterMode = filter;
        addressMode[0] = addressMode[1] = addressMode[2] = address;
        channelDesc = cudaCreateChannelDesc<T>();
        gr_fractions = mode == cudaReadModeNormalizedFloat;
    }
    __host__ texture(int normalized, cudaTextureFilterMode filter, cudaTextureAddressMode address, cudaChannelFormatDesc format)
        : texture(normalized, filter, address)
    {
        channelDesc = format;
    }
};

/* What a fetch from such a texture gives. */
template <class T, cudaTextureReadMode mode> struct gr_fetched { typedef T type; };
template <class T> struct gr_fetched<T, cudaReadModeNormalizedFloat> { typedef typename gr_as_float<T>::type type; };

#define GR_BY_REFERENCE(name, value, ...)                                                                       \
    template <class T, int dimensions, cudaTextureReadMode mode>                                                \
    GR_TEXTURE typename gr_fetched<T, mode>::type name(const texture<T, dimensions, mode> &reference, __VA_ARGS__) \
    {                                                                                                           \
        typedef typename gr_fetched<T, mode>::type V;                                                           \
        const textureReference *texture = (const textureReference *)(const void *)&reference;                   \
        return value;                                                                                           \
    }
GR_BY_REFERENCE(tex1Dfetch, (gr_fetch1<V, mode == cudaReadModeNormalizedFloat>(texture, x)), int x)
GR_BY_REFERENCE(tex1D, gr_fetch<V>(texture, 1, x, 0.0f, 0.0f, 0), float x)
GR_BY_REFERENCE(tex2D, gr_fetch<V>(texture, 2, x, y, 0.0f, 0), float x, float y)
GR_BY_REFERENCE(tex3D, gr_fetch<V>(texture, 3, x, y, z, 0), float x, float y, float z)
GR_BY_REFERENCE(tex1DLayered, gr_fetch<V>(texture, 1, x, 0.0f, 0.0f, gr_layer(texture, layer)), float x, int layer)
GR_BY_REFERENCE(tex2DLayered, gr_fetch<V>(texture, 2, x, y, 0.0f, gr_layer(texture, layer)), float x, float y, int layer)
GR_BY_REFERENCE(texCubemap, gr_cube<V>(texture, x, y, z, 0), float x, float y, float z)
GR_BY_REFERENCE(texCubemapLayered, gr_cube<V>(texture, x, y, z, layer), float x, float y, float z, int layer)
#undef GR_BY_REFERENCE

#define GR_TEXTURE_OF template <class T, int dimensions, cudaTextureReadMode mode> static inline cudaError_t
#define GR_REFERENCE const texture<T, dimensions, mode> &reference
GR_TEXTURE_OF cudaBindTexture(size_t *offset, GR_REFERENCE, const void *pointer, const cudaChannelFormatDesc &format, size_t size = 0xffffffffu)
{
    return ::cudaBindTexture(offset, &reference, pointer, &format, size);
}
GR_TEXTURE_OF cudaBindTexture(size_t *offset, GR_REFERENCE, const void *pointer, size_t size = 0xffffffffu)
{
    return ::cudaBindTexture(offset, &reference, pointer, &reference.channelDesc, size);
}
GR_TEXTURE_OF cudaBindTexture2D(size_t *offset, GR_REFERENCE, const void *pointer, const cudaChannelFormatDesc &format, size_t width, size_t height, size_t pitch)
{
    return ::cudaBindTexture2D(offset, &reference, pointer, &format, width, height, pitch);
}
GR_TEXTURE_OF cudaBindTexture2D(size_t *offset, GR_REFERENCE, const void *pointer, size_t width, size_t height, size_t pitch)
{
    return ::cudaBindTexture2D(offset, &reference, pointer, &reference.channelDesc, width, height, pitch);
}
GR_TEXTURE_OF cudaBindTextureToArray(GR_REFERENCE, cudaArray_const_t array, const cudaChannelFormatDesc &format)
{
    return ::cudaBindTextureToArray(&reference, array, &format);
}
GR_TEXTURE_OF cudaBindTextureToArray(GR_REFERENCE, cudaArray_const_t array)
{
    return ::cudaBindTextureToArray(&reference, array, 0);
}
GR_TEXTURE_OF cudaUnbindTexture(GR_REFERENCE) { return ::cudaUnbindTexture(&reference); }
GR_TEXTURE_OF cudaGetTextureAlignmentOffset(size_t *offset, GR_REFERENCE)
{
    return ::cudaGetTextureAlignmentOffset(offset, &reference);
}
#undef GR_REFERENCE
#undef GR_TEXTURE_OF
#undef GR_TEXTURE

#endif
